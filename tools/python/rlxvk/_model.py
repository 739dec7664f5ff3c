"""Models from files."""
from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np

from . import errors
from ._arrays import NUMPY, Array, host_array, pointer, shape_text
from ._build import enum_value
from ._device import Context, DeviceLike, chosen_context, context_of
from ._executable import Executable, arranged, no_input
from ._library import Handle, Unpicklable, check, ffi, lib, listed, new, text

_KEPT = 8 # executables of a model

# Dtypes in which the library takes values that decide sizes.
_VALUE_DTYPES = {"i": lib.RLXVK_I64, "u": lib.RLXVK_I64, "b": lib.RLXVK_BOOL, "f": lib.RLXVK_F64}

Source = Union[str, "os.PathLike[str]", bytes]


@dataclass(frozen=True)
class Options:
    """The options of `load`, which says what they mean."""

    device: DeviceLike | None = None
    folder: str | os.PathLike[str] | None = None
    bind: Mapping[str, int] | None = None
    values: Mapping[str, Any] | None = None
    outputs: Sequence[str] | None = None
    precision: str = "f32"
    capacity: int | None = None
    cache: str | None = None


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model.

    `dtype` is the type of arrays, and None if rlxvk has no such type. `shape` has a number or the
    name of a dim for each axis; None in place of a dim or of the shape means that the file does
    not tell. `type` is the name of the type in the file, for example "FLOAT".
    """

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int | str | None, ...] | None
    type: str

    def __str__(self) -> str:
        dtype = self.type if self.dtype is None else str(self.dtype)
        return f"{self.name}: {dtype} {'?' if self.shape is None else shape_text(self.shape)}"


@dataclass(frozen=True)
class Problem:
    """One thing that keeps a model from running.

    `status` is the name of an error, such as "E_UNSUPPORTED". `node` is the name of the node in
    the file, `op` its kind, and `attribute` the attribute that is to blame; "" if there is none.
    `text` says why, and what may help.
    """

    status: str
    node: str
    op: str
    attribute: str
    text: str

    def __str__(self) -> str:
        place = f"{self.op} '{self.node}'" if self.op else ""
        place += f", attribute {self.attribute}" if self.attribute else ""
        return f"{place}: {self.text}" if place else self.text


class Outputs(tuple[Array, ...]):
    """The arrays of a call, in the order of the model's outputs.

    It is a tuple: `y, = model(x)`, `outputs[0]`. It takes names, too: `outputs["y"]`.
    """

    names: tuple[str, ...]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"no output '{key}'; there are: {', '.join(self.names)}")
            key = self.names.index(key)
        return tuple.__getitem__(self, key)

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{n}={a!r}' for n, a in zip(self.names, self))})"

    def __reduce__(self) -> Any:
        return _outputs, (tuple(self), self.names)


def _outputs(arrays: Sequence[Array], names: tuple[str, ...]) -> Outputs:
    outputs = Outputs(arrays)
    outputs.names = names
    return outputs


class _GraphOptions:
    """The options of a graph as structs of the library, and the memory that they point to."""

    def __init__(
        self, bind: Mapping[str, int], values: Mapping[str, Any], outputs: Sequence[str] | None
    ) -> None:
        self._keep: list[Any] = []
        self.struct = new("rlxvk_model_graph_options")
        if bind:
            items = [{"name": self._text(n), "size": int(s)} for n, s in bind.items()]
            self.struct.bindings = self._hold(ffi.new("rlxvk_model_binding[]", items))
            self.struct.binding_count = len(items)
        if values:
            items = [self._value(name, value) for name, value in values.items()]
            self.struct.values = self._hold(ffi.new("rlxvk_model_value[]", items))
            self.struct.value_count = len(items)
        if outputs is not None:
            names = [self._text(name) for name in outputs]
            self.struct.outputs = self._hold(ffi.new("char *[]", names))
            self.struct.output_count = len(names)

    def _hold(self, memory: Any) -> Any:
        self._keep.append(memory)
        return memory

    def _text(self, name: str) -> Any:
        return self._hold(ffi.new("char[]", name.encode()))

    def _value(self, name: str, value: Any) -> dict[str, Any]:
        given = np.asarray(value)
        dtype = _VALUE_DTYPES.get(given.dtype.kind)
        if dtype is None:
            raise errors.DtypeError(
                f"the value of input '{name}' has elements of {given.dtype}; a value that decides "
                "sizes is made of integers, floats or booleans"
            )
        array = self._hold(np.array(given, NUMPY[dtype], order="C"))
        return {
            "name": self._text(name),
            "data": self._hold(pointer(array)),
            "length": array.size,
            "dtype": dtype,
        }


class _Compiled:
    """An executable of a model, with what the model knows of its sizes."""

    def __init__(self, executable: Executable, sizes: dict[str, int], inputs: list[int]) -> None:
        self.executable = executable
        self.sizes = sizes
        self.inputs = inputs # indices of those that are not values
        # (index, axis, index of the count) of outputs whose size data decides
        self.counts: list[tuple[int, int, int]] = []


def _open_model(source: Any, folder: Any) -> Handle:
    options = new("rlxvk_model_options")
    path = None if folder is None else ffi.new("char[]", os.fsencode(folder)) # outlives the call
    if path is not None:
        options.folder = path
    out = ffi.new("rlxvk_model **")
    if isinstance(source, (str, os.PathLike)):
        check(lib.rlxvk_model_open(os.fsencode(source), options, out))
        return Handle(out[0], lib.rlxvk_model_destroy)
    data = ffi.from_buffer(bytes(source)) # not copied if it is bytes already
    check(lib.rlxvk_model_open_bytes(data, len(data), options, out))
    return Handle(out[0], lib.rlxvk_model_destroy, keep=data)


class Model(Unpicklable):
    """A model from a file. `load` makes it.

    Call it with arrays, by order or by name: `model(x)`, `model(x=x, mask=mask)`. The result is an
    Outputs: a tuple of new arrays that also takes names.

    Arrays. A contiguous NumPy array of the input's dtype is used as it is. Others are copied, and
    converted if nothing is lost: integers to any type that has these very integers, booleans to
    anything, floats to wider floats. Lists and numbers of Python become any floats. The device
    holds integers as float32, so integers above 2^24 in magnitude are a RangeError. BF16 tensors
    are float32 in NumPy: inputs are rounded to nearest, outputs are exact.

    Sizes. Named dims get their sizes from the arrays. The model is compiled the first time that
    sizes come up; the last 8 executables are kept, and all share one copy of the weights.

    Threads. Any thread may call a model; calls of one model wait for each other. Other Python
    threads go on during a call. After a fork, the child must load its own models: start processes
    with "spawn". A Model cannot be pickled.
    """

    def __init__(self, source: Source, options: Options) -> None:
        self._precision = enum_value("rlxvk_precision", options.precision)
        if isinstance(source, (str, os.PathLike)):
            self._source = os.fspath(source)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self._source = "bytes"
        else:
            raise TypeError(f"a model is a path or bytes, not {type(source).__name__}")
        # Without a device, a context is made when it is needed: a model can be looked at without.
        self._context = _context_or_none(options.device)
        self._handle = _open_model(source, options.folder)
        self._bind = dict(options.bind or {})
        self._values = dict(options.values or {})
        self._wanted = None if options.outputs is None else list(options.outputs)
        inputs, dtypes = self._infos(lib.rlxvk_model_inputs)
        file_outputs, _ = self._infos(lib.rlxvk_model_outputs)
        self._check_names(inputs)
        taken = [i for i, info in enumerate(inputs) if info.name not in self._values]
        self._inputs = [inputs[i] for i in taken]
        self._dtypes = [dtypes[i] for i in taken]
        self._names = [info.name for info in self._inputs]
        self._places = {name: i for i, name in enumerate(self._names)}
        named = {info.name: info for info in file_outputs}
        unknown = TensorInfo("", None, None, "?")
        self._outputs = file_outputs
        if self._wanted is not None:
            self._outputs = [replace(named.get(n, unknown), name=n) for n in self._wanted]
        self._output_names = tuple(info.name for info in self._outputs)
        self._deciding: tuple[int, ...] = () # inputs whose values decide sizes, once it is known
        self._compiled: OrderedDict[Any, _Compiled] = OrderedDict()

    def _open_context(self) -> Handle:
        if self._context is None:
            self._context = context_of(None)
        return self._context._handle

    # ---- Looking at a model ----

    def _infos(self, call: Any) -> tuple[list[TensorInfo], list[int]]:
        """The inputs or outputs of the file, and the library's dtypes of them."""
        found, dtypes = [], []
        for info in listed("rlxvk_model_info", call, self._handle.pointer):
            shape = tuple(self._dim(info, axis) for axis in range(info.shape.rank))
            found.append(
                TensorInfo(
                    name=text(info.name),
                    dtype=NUMPY.get(info.dtype),
                    shape=shape if info.has_shape else None,
                    type=text(info.type),
                )
            )
            dtypes.append(info.dtype)
        return found, dtypes

    def _dim(self, info: Any, axis: int) -> int | str | None:
        name = text(info.dim_names[axis])
        if name:
            return self._bind.get(name, name)
        size: int = info.shape.dims[axis]
        return size if size >= 0 else None

    def _check_names(self, inputs: Sequence[TensorInfo]) -> None:
        names = [info.name for info in inputs]
        for name in self._values:
            if name not in names:
                raise errors.UnknownNameError(no_input("model", name, names))

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs that a call takes, in their order."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs that a call gives, in their order. Files seldom tell their sizes."""
        return tuple(self._outputs)

    @property
    def executables(self) -> tuple[dict[str, int], ...]:
        """The sizes of named dims for which the model is compiled now, the latest used last."""
        with self._handle.lock:
            return tuple(dict(compiled.sizes) for compiled in self._compiled.values())

    def __repr__(self) -> str:
        lines = [f"<rlxvk.{type(self).__name__} {self._source}"]
        lines += [f"  input  {info}" for info in self._inputs]
        lines += [f"  output {info}" for info in self._outputs]
        return "\n".join(lines) + ">"

    def problems(self) -> list[Problem]:
        """Lists all that keeps the model from running; [] if nothing does.

        It builds the graph for the sizes and values that `load` got, and compiles nothing. What
        needs other sizes, or the device, shows only in a call.
        """
        options = _GraphOptions(self._bind, self._values, self._wanted)
        graph = ffi.new("rlxvk_graph **")
        with self._handle.lock:
            status = lib.rlxvk_model_graph(self._handle.pointer, options.struct, graph)
            lib.rlxvk_graph_destroy(graph[0])
            found = self._problems() if status else []
            if status and not found:
                check(status)
            return found

    def _problems(self) -> list[Problem]:
        """Those of the last graph."""
        return [
            Problem(
                status=text(lib.rlxvk_status_name(problem.status)),
                node=text(problem.node),
                op=text(problem.op),
                attribute=text(problem.attribute),
                text=text(problem.text),
            )
            for problem in listed(
                "rlxvk_model_problem", lib.rlxvk_model_problems, self._handle.pointer
            )
        ]

    # ---- Running ----

    def __call__(self, /, *arrays: Any, **named: Any) -> Outputs:
        """Runs the model on arrays, and returns its outputs as new arrays.

        Raises, before anything runs:
            MissingInputError   an input is not given
            UnknownNameError    there is no such input, or there are too many
            DtypeError          an array cannot become the input's dtype without loss
            RangeError          an integer does not fit
            ShapeError          an array has another rank or size than the input
            BindConflictError   two inputs give one named dim two sizes
            and the exceptions of compiling, if the sizes are new; see `compile`
        and DeviceLostError, TimeoutError, SingularError, IndexOobError of a run.
        """
        given = self._arrange(arrays, named)
        taken = [
            host_array(value, dtype, info.name)
            for value, dtype, info in zip(given, self._dtypes, self._inputs)
        ]
        with self._handle.lock:
            compiled = self._compiled_for(taken)
            if len(compiled.inputs) != len(taken):
                taken = [taken[i] for i in compiled.inputs]
            results = compiled.executable.run(taken)
        for index, axis, count in compiled.counts:
            results[index] = _first(results[index], axis, int(results[count]))
        return _outputs(results[: len(self._output_names)], self._output_names)

    def compile(self, **sizes: int) -> None:
        """Compiles the model for sizes of its named dims: `model.compile(batch=8)`.

        A later call with such arrays begins at once. All dims of `inputs` that have a name need a
        size. If the model is compiled for them already, they only count as used.

        Raises UnknownNameError for an unknown dim, UnboundSymbolError for a missing one, and the
        exceptions of what cannot be run: UnsupportedError, ShapeError, TooLargeError and others.
        """
        names = self._dim_names()
        for name in sizes:
            if name not in names:
                raise errors.UnknownNameError(
                    f"no input has a dim '{name}'; there are: {', '.join(names) or 'none'}"
                )
        missing = [name for name in names if name not in sizes]
        if missing:
            raise errors.UnboundSymbolError(
                f"dims have no size: {', '.join(missing)}; give each, as in compile({missing[0]}=1)"
            )
        shapes = tuple(
            tuple(sizes[dim] if isinstance(dim, str) else dim for dim in info.shape or ())
            for info in self._inputs
        )
        with self._handle.lock:
            if self._find(shapes) is None:
                self._keep(shapes, self._compile(dict(sizes), {}))

    def _dim_names(self) -> list[str]:
        """Named dims that arrays give their sizes, in the order of the inputs."""
        dims = (dim for info in self._inputs for dim in info.shape or () if isinstance(dim, str))
        return list(dict.fromkeys(dims))

    def _arrange(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The values of all inputs, in their order."""
        given = arranged("model", self._names, arrays, named)
        for info in self._inputs:
            if info.name not in given:
                raise errors.MissingInputError(f"input '{info.name}' is missing; it is {info}")
        return [given[name] for name in self._names]

    def _compiled_for(self, arrays: Sequence[Array]) -> _Compiled:
        """The executable of these arrays, which is made if need be."""
        shapes = tuple([array.shape for array in arrays])
        key = shapes + tuple([arrays[i].tobytes() for i in self._deciding])
        compiled = self._find(key)
        if compiled is None:
            sizes = self._sizes(shapes)
            compiled = self._compile_deciding(sizes, arrays)
            # Now it may be known that more values decide sizes.
            key = shapes + tuple([arrays[i].tobytes() for i in self._deciding])
            self._keep(key, compiled)
        return compiled

    def _find(self, key: Any) -> _Compiled | None:
        compiled = self._compiled.get(key)
        if compiled is not None:
            self._compiled.move_to_end(key)
        return compiled

    def _keep(self, key: Any, compiled: _Compiled) -> None:
        self._compiled[key] = compiled
        if len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)

    def _sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The sizes of named dims. Checks all shapes."""
        sizes: dict[str, int] = {}
        origins: dict[str, str] = {}
        for info, shape in zip(self._inputs, shapes):
            wanted = info.shape
            if wanted is None:
                continue
            if len(shape) != len(wanted):
                raise errors.ShapeError(
                    f"input '{info.name}' has shape {shape_text(shape)}, of rank {len(shape)}; "
                    f"the model takes {shape_text(wanted)}, of rank {len(wanted)}"
                )
            for axis, (dim, size) in enumerate(zip(wanted, shape)):
                if isinstance(dim, str):
                    origin = f"axis {axis} of input '{info.name}'"
                    if sizes.setdefault(dim, size) != size:
                        raise errors.BindConflictError(
                            f"dim '{dim}' is {sizes[dim]} by {origins[dim]} and {size} by "
                            f"{origin}, which has shape {shape_text(shape)}; the model takes "
                            f"{shape_text(wanted)}"
                        )
                    origins.setdefault(dim, origin)
                elif dim is not None and dim != size:
                    raise errors.ShapeError(
                        f"input '{info.name}' has shape {shape_text(shape)}; the model takes "
                        f"{shape_text(wanted)}, so axis {axis} must be {dim}"
                    )
        return sizes

    # ---- Compiling ----

    def _compile_deciding(self, sizes: dict[str, int], arrays: Sequence[Array]) -> _Compiled:
        """Compiles. If values of inputs turn out to decide sizes, those of this call do."""
        while True:
            values = {self._inputs[i].name: arrays[i] for i in self._deciding}
            try:
                return self._compile(sizes, values)
            except errors.Error:
                known = self._deciding
                self._deciding = known + tuple(i for i in self._needed() if i not in known)
                if self._deciding == known:
                    raise
                self._compiled.clear() # because keys have these values from now on

    def _needed(self) -> list[int]:
        """The inputs of which the last graph needed the values."""
        infos = listed("rlxvk_model_info", lib.rlxvk_model_inputs, self._handle.pointer)
        names = (text(info.name) for info in infos if info.needs_value)
        return [self._places[name] for name in names if name in self._places]

    def _compile(self, sizes: dict[str, int], values: Mapping[str, Array]) -> _Compiled:
        graph = _GraphOptions({**self._bind, **sizes}, {**self._values, **values}, self._wanted)
        options = new("rlxvk_compile_options")
        options.precision = self._precision
        if self._compiled: # all share the weights of the first one
            options.share_with = next(iter(self._compiled.values())).executable.handle.pointer
        out = ffi.new("rlxvk_executable **")
        status = lib.rlxvk_model_executable(
            self._handle.pointer, self._open_context().pointer, graph.struct, options, out
        )
        if status:
            sentence = text(lib.rlxvk_last_error())
            others = len(self._problems()) - 1
            kind = "problem" if others == 1 else "problems"
            more = f" (and {others} more {kind}: model.problems() lists them)" * (others > 0)
            raise errors.BY_NUMBER.get(status, errors.Error)(sentence + more)
        handle = Handle(out[0], lib.rlxvk_executable_destroy, self._handle.lock)
        names = [info.name for info in self._inputs]
        inputs = [i for i, name in enumerate(names) if name not in values]
        compiled = _Compiled(Executable(handle, [names[i] for i in inputs]), sizes, inputs)
        self._note_counts(compiled)
        return compiled

    def _note_counts(self, compiled: _Compiled) -> None:
        if self._wanted is None:
            infos = listed("rlxvk_model_info", lib.rlxvk_model_outputs, self._handle.pointer)
            compiled.counts = [
                (i, info.count_axis, info.count_output)
                for i, info in enumerate(infos)
                if info.count_output
            ]
        elif len(compiled.executable.outputs) > len(self._wanted):
            raise errors.UnsupportedError(
                "the data of a run decides the size of one of the outputs that `outputs` names; "
                "such outputs can only be had with all others, so leave `outputs` out"
            )


def _context_or_none(device: DeviceLike | None) -> Context | None:
    """The context that is chosen by now; None if it is to be the default."""
    return context_of(device) if device is not None else chosen_context()


def _first(array: Array, axis: int, count: int) -> Array:
    """The first `count` indices of an axis."""
    return array[(slice(None),) * axis + (slice(count),)].copy()
