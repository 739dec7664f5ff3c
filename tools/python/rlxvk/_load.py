"""Opening model files."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import errors
from ._device import DeviceLike
from ._language import LanguageModel
from ._model import Model, Options, Source


def _is_language_model(source: Source) -> bool:
    """Whether it is a GGUF file, by its first bytes. What is no file, Model refuses."""
    try:
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                return file.read(4) == b"GGUF"
        return bytes(source[:4]) == b"GGUF"
    except (OSError, TypeError):
        return False


def load(
    source: Source,
    *,
    device: DeviceLike | None = None,
    folder: str | os.PathLike[str] | None = None,
    bind: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    precision: str = "f32",
    capacity: int | None = None,
    cache: str | None = None,
) -> Model:
    """Opens a model: an ONNX file as a Model, a GGUF file as a LanguageModel.

    `source` is a path, or the bytes of the file. A file must stay as it is while the Model lives,
    because large weights are read when they are needed. Nothing is compiled before the first call.

    device      where it runs, as for Context; None is the device of the innermost
                `with rlxvk.device(...)`, or else the default
    folder      where weights in files of their own are; None is the folder of the path
    bind        sizes of named dims, for example {"batch": 1}; calls then need these sizes
    values      values of inputs that decide sizes, such as the shape of a Reshape; calls do not
                take these inputs. If such an input is not here, each call gives its value, and
                new values compile anew
    outputs     names of values of the file to be the outputs, also inner ones; None: the file's
    precision   of matrix products: "f32", "f16", "bf16", "split" (rlxvk_compile.h). "f32" is that
                of the environment variable RLXVK_PRECISION if it is set
    capacity    of a LanguageModel: most tokens of a text, prompt and continuation together; None
                is 4096, or the model's context if that is shorter
    cache       of a LanguageModel: type of cached keys and values, "f32" or "f16", which takes half
                the memory; None is "f32"

    Raises FileError, if it cannot be read, is damaged or is no model; UnsupportedError for an
    architecture or type that is not supported; UnknownNameError for names that the model lacks;
    NoDeviceError; AttrError for an unknown precision or cache, or an option of other models.
    """
    options = Options(device, folder, bind, values, outputs, precision, capacity, cache)
    if _is_language_model(source):
        return LanguageModel(source, options)
    for name in "capacity", "cache":
        if getattr(options, name) is not None:
            raise errors.AttrError(f"'{name}' is an option of language models, from GGUF files")
    return Model(source, options)
