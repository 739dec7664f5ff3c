"""Machine-learning models on any Vulkan GPU.

    import numpy, rlxvk

    model = rlxvk.load("model.onnx")
    y, = model(x=numpy.ones((1, 3), numpy.float32))
    print(rlxvk.load("model.gguf").generate("Once upon a time"))

load            opens an ONNX file as a Model, a GGUF file as a LanguageModel
Model           runs on arrays, and tells its inputs, outputs and problems
LanguageModel   continues texts and answers turns
devices         lists the devices of this machine
device          `with rlxvk.device("H200"):` chooses one for the models that are loaded in the block
Context         an open device
Error           the base of all exceptions; `rlxvk.errors` has one for each status of the library

The package calls the C library librlxvk.so. It takes the one that the environment variable
RLXVK_LIBRARY names, or that beside it, or the system's. After a fork, objects of the parent are
useless in the child: start processes with "spawn", or import and load in the child.
"""
from . import errors
from ._device import Context, Device, device, devices
from ._error import Error
from ._library import __version__
from ._language import Chat, LanguageModel, Sampling
from ._load import load
from ._model import Model, Outputs, Problem, TensorInfo

__all__ = [
    "Chat",
    "Context",
    "Device",
    "Error",
    "LanguageModel",
    "Model",
    "Outputs",
    "Problem",
    "Sampling",
    "TensorInfo",
    "__version__",
    "device",
    "devices",
    "errors",
    "load",
]
