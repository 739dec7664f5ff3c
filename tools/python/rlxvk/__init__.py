"""Machine-learning models and graphs on any Vulkan GPU.

    import numpy, rlxvk

    model = rlxvk.load("model.onnx")
    y, = model(x=numpy.ones((1, 3), numpy.float32))
    print(rlxvk.load("model.gguf").generate("Once upon a time"))

    g = rlxvk.Graph()
    x = g.input("x", (None, 784))
    w = g.param("w", (784, 10))
    f = rlxvk.compile(g, [(x @ w).softmax(-1)], params={"w": weights})
    y, = f(x=batch)

load            opens an ONNX file as a Model, a GGUF file as a LanguageModel
Model           runs on arrays, and tells its inputs, outputs and problems
LanguageModel   continues texts and answers turns
Graph, Tensor   graphs that Python builds, with operators and methods of NumPy and PyTorch
ops             every op of the library; nn has layers by the names of PyTorch
compile         makes a Function of a graph, which runs on arrays
grad, optim     gradients and optimizers
Body            a graph inside a graph: call, cond, while_loop, scan
devices         lists the devices of this machine
device          `with rlxvk.device("H200"):` chooses one for what the block loads and compiles
Context         an open device
Error           the base of all exceptions; `rlxvk.errors` has one for each status of the library

The package calls the C library librlxvk.so. It takes the one that the environment variable
RLXVK_LIBRARY names, or that beside it, or the system's. After a fork, objects of the parent are
useless in the child: start processes with "spawn", or import and load in the child.
"""
from . import errors
from ._build import Dim, Graph
from ._device import Context, Device, device, devices
from ._error import Error
from ._function import Function, Params, Profile, compile
from ._library import __version__
from ._language import Chat, LanguageModel, Sampling
from ._load import load
from ._model import Model, Outputs, Problem, TensorInfo
from ._tensor import Tensor
from ._transforms import Body, call, cond, grad, scan, while_loop
from . import nn, ops, optim

__all__ = [
    "Body",
    "Chat",
    "Context",
    "Device",
    "Dim",
    "Error",
    "Function",
    "Graph",
    "LanguageModel",
    "Model",
    "Outputs",
    "Params",
    "Problem",
    "Profile",
    "Sampling",
    "Tensor",
    "TensorInfo",
    "__version__",
    "call",
    "compile",
    "cond",
    "device",
    "devices",
    "errors",
    "grad",
    "load",
    "nn",
    "ops",
    "optim",
    "scan",
    "while_loop",
]
