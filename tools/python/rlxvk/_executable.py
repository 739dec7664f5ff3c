"""Compiled graphs: the base of models, and of graphs that Python builds."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import errors
from ._arrays import NUMPY, Array, pointer
from ._library import Handle, check, ffi, lib, listed, text


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape of the library as a tuple."""
    return tuple(shape.dims[0 : shape.rank])


def no_input(owner: str, name: str, names: Iterable[str]) -> str:
    """The sentence for a name that the model or graph does not have."""
    return f"the {owner} has no input '{name}'; it has: {', '.join(names) or 'none'}"


def arranged(
    owner: str, names: Sequence[str], arrays: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """What a call gives, by the names of inputs: first by order, then by name."""
    if len(arrays) > len(names):
        raise errors.UnknownNameError(
            f"the {owner} has {len(names)} inputs, and the call gives {len(arrays)} arrays"
        )
    given = dict(zip(names, arrays))
    for name, value in named.items():
        if name not in names:
            raise errors.UnknownNameError(no_input(owner, name, names))
        if name in given:
            raise errors.DupNameError(f"input '{name}' is given twice: by order and by name")
        given[name] = value
    return given


class Executable:
    """A graph that is compiled for fixed sizes. The one who runs it holds the lock of its handle.

    Structs of a run are made once; a run only puts the addresses of arrays into them.
    """

    def __init__(
        self,
        handle: Handle,
        inputs: Sequence[str],
        shapes: Sequence[tuple[int, ...]] | None = None,
    ) -> None:
        """`inputs` are names, in the order in which `run` gets arrays. `shapes` are those of the
        present binding, if the executable has symbols."""
        self.handle = handle
        infos = listed("rlxvk_tensor_info", lib.rlxvk_executable_inputs, handle.pointer)
        known = {text(info.name): info for info in infos}
        self._names = [ffi.new("char[]", name.encode()) for name in inputs]
        self._inputs = ffi.new("rlxvk_run_input[]", len(inputs))
        self.input_shapes = shapes or [shape_of(known[name].shape) for name in inputs]
        for item, name, own, shape in zip(self._inputs, inputs, self._names, self.input_shapes):
            item.name = own
            self._describe(item, known[name].dtype, shape)
        count = lib.rlxvk_executable_output_count(handle.pointer)
        self._outputs = ffi.new("rlxvk_run_output[]", count)
        self.outputs: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        for i, item in enumerate(self._outputs):
            dtype = lib.rlxvk_executable_output_dtype(handle.pointer, i)
            shape = shape_of(lib.rlxvk_executable_output_shape(handle.pointer, i))
            item.index = i
            self._describe(item, dtype, shape)
            self.outputs.append((shape, NUMPY[dtype]))
        # Items by themselves, because to index an array takes time in each run.
        self._input_items = list(self._inputs)
        self._output_items = list(self._outputs)

    @staticmethod
    def _describe(item: Any, dtype: int, shape: tuple[int, ...]) -> None:
        item.length = int(np.prod(shape, dtype=np.int64))
        item.dtype = dtype
        item.f32_words = dtype == lib.RLXVK_BF16

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs once. The arrays are contiguous, of the sizes and host types of the inputs."""
        for item, array in zip(self._input_items, arrays):
            item.data = pointer(array)
        results = []
        for item, (shape, dtype) in zip(self._output_items, self.outputs):
            result = np.empty(shape, dtype)
            item.buffer = pointer(result)
            results.append(result)
        status = lib.rlxvk_run(
            self.handle.pointer, self._inputs, len(arrays), self._outputs, len(results)
        )
        if status:
            check(status)
        return results
