"""Compiling graphs, and calling what comes of it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from . import errors
from ._arrays import NUMPY, Array, host_array, pointer, shape_text
from ._build import Graph, drawn, enum_value, name_of, svg
from ._device import DeviceLike, context_of
from ._executable import Executable, arranged, shape_of
from ._library import Handle, Unpicklable, check, ffi, lib, listed, new, text
from ._tensor import Tensor


def compile(
    graph: Graph,
    outputs: Sequence[Tensor],
    *,
    params: Mapping[str, Any] | None = None,
    device: DeviceLike | None = None,
    precision: str = "f32",
    weights: str = "as_declared",
    share: Function | None = None,
    profile: bool = False,
    seed: int | None = None,
    **options: Any,
) -> Function:
    """Compiles a graph to a Function that computes `outputs`.

    The graph stays as it is: it may grow, and be compiled again for other outputs. It is compiled
    to the device when its sizes are known: here, or in the first call with arrays of new sizes.

    params      values of params by name; others can be set later by `Function.params`
    device      where it runs, as for Context; None is the device of the innermost
                `with rlxvk.device(...)`, or else the default
    precision   of matrix products: "f32", "f16", "bf16", "split" (rlxvk_compile.h)
    weights     how float32 params are held: "as_declared", "f16", "bf16"
    share       a Function whose params this one uses, where name, shape and dtype are the same
    profile     times every step: `Function.profile`
    seed        of random numbers, which advance with each call; None: every call draws the same
    options     other members of rlxvk_compile_options by their names; switches are True or False

    Raises NoOutputsError, UnsupportedError, TooLargeError, UnknownNameError for a wrong name in
    `params`, AttrError for a wrong option, and the exceptions of the device.
    """
    made = new("rlxvk_compile_options")
    made.precision = enum_value("rlxvk_precision", precision)
    made.weight_storage = enum_value("rlxvk_weight_storage", weights)
    if profile:
        made.profile = lib.RLXVK_ON
    if share is not None:
        made.share_with = share._handle.pointer
    if seed is not None:
        random = new("rlxvk_rng_options", seed=seed, advance_per_run=True) # lives until the return
        made.rng = random
    _set_options(made, options)
    context = context_of(device) if share is None or device is not None else share._context
    bound = with_outputs(graph, outputs)
    out = ffi.new("rlxvk_executable **")
    check(lib.rlxvk_compile(context._handle.pointer, bound.pointer, made, out))
    needs = () if share is None else (share._handle,)
    handle = Handle(out[0], lib.rlxvk_executable_destroy, keep=needs)
    function = Function(bound, handle, context, len(outputs))
    for name, value in (params or {}).items():
        function.params[name] = value
    return function


def _set_options(struct: Any, options: Mapping[str, Any]) -> None:
    """Members of the compile options that are switches or numbers."""
    types = {name: f.type for name, f in ffi.typeof("rlxvk_compile_options").fields}
    known = {n: t for n, t in types.items() if t.kind in ("enum", "primitive")}
    del known["struct_size"]
    for name, value in options.items():
        if name not in known:
            raise errors.AttrError(f"compile has no option '{name}'; it has: {', '.join(known)}")
        kind = known[name]
        if name_of(kind) == "rlxvk_toggle":
            value = lib.RLXVK_ON if value else lib.RLXVK_OFF
        elif kind.kind == "enum":
            value = enum_value(name_of(kind), value)
        setattr(struct, name, value)


def with_outputs(graph: Graph, outputs: Sequence[Tensor]) -> Handle:
    """A copy of the graph that has these outputs."""
    graph._check()
    out = ffi.new("rlxvk_graph **")
    check(lib.rlxvk_graph_bind(graph._handle.pointer, ffi.NULL, 0, out))
    copy = Handle(out[0], lib.rlxvk_graph_destroy)
    if isinstance(outputs, Tensor):
        raise TypeError("outputs is a list of tensors: compile(graph, [y])")
    for tensor in outputs:
        if not isinstance(tensor, Tensor) or tensor._graph is not graph:
            raise errors.DanglingError(f"the output {tensor!r} is no tensor of this graph")
        own = lib.rlxvk_graph_tensor(copy.pointer, tensor._handle)
        lib.rlxvk_graph_output(copy.pointer, own)
    check(lib.rlxvk_graph_status(copy.pointer))
    return copy


class Params(MutableMapping[str, Array]):
    """The params of a Function: `f.params["w"]` reads, and `f.params["w"] = array` sets one."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def _codes(self) -> dict[str, tuple[tuple[int, ...], int]]:
        infos = listed(
            "rlxvk_tensor_info", lib.rlxvk_executable_params, self._function._handle.pointer
        )
        return {text(info.name): (shape_of(info.shape), info.dtype) for info in infos}

    def _find(self, name: str) -> tuple[tuple[int, ...], int]:
        known = self._codes()
        if name not in known:
            raise errors.UnknownNameError(
                f"there is no param '{name}'; there are: {', '.join(known) or 'none'}"
            )
        return known[name]

    def __getitem__(self, name: str) -> Array:
        shape, code = self._find(name)
        array = np.empty(shape, NUMPY[code])
        given = lib.RLXVK_F32 if code == lib.RLXVK_BF16 else code
        handle = self._function._handle
        with handle.lock:
            check(
                lib.rlxvk_read_param_typed(
                    handle.pointer, name.encode(), pointer(array), array.nbytes, given
                )
            )
        return array

    def __setitem__(self, name: str, value: Any) -> None:
        shape, code = self._find(name)
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and NUMPY[code].kind == "f":
            value = value.astype(NUMPY[code]) # the numbers of NumPy's functions
        array = host_array(value, code, name)
        if array.shape != shape:
            raise errors.ShapeError(
                f"param '{name}' has shape {shape_text(shape)}, and the array has "
                f"{shape_text(array.shape)}"
            )
        given = lib.RLXVK_F32 if code == lib.RLXVK_BF16 else code
        handle = self._function._handle
        with handle.lock:
            check(
                lib.rlxvk_set_param_typed(
                    handle.pointer, name.encode(), pointer(array), array.nbytes, given
                )
            )

    def __delitem__(self, name: str) -> None:
        raise TypeError("params of a compiled graph stay; set them to other values")

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes())

    def __len__(self) -> int:
        return len(self._codes())

    def __repr__(self) -> str:
        lines = (f"{n}: {NUMPY[c]} {shape_text(s)}" for n, (s, c) in self._codes().items())
        return f"<rlxvk.Params {', '.join(lines)}>"


class Function(Unpicklable):
    """A compiled graph. Call it with arrays, by order or by name: `y, = f(x=batch)`.

    Arrays are taken as a Model takes them. Sizes that the graph leaves open are those of the
    arrays; each set of sizes is compiled once, and the last 8 are kept. The result is a tuple of
    new arrays. Any thread may call it; calls of one Function wait for each other, and other Python
    threads go on meanwhile.
    """

    def __init__(self, graph: Handle, handle: Handle, context: Any, outputs: int) -> None:
        self._graph = graph
        self._handle = handle
        self._context = context
        self._output_count = outputs
        infos = listed("rlxvk_tensor_info", lib.rlxvk_executable_inputs, handle.pointer)
        own = {text(info.name): info for info in infos}
        # Inputs of the library's own, such as "rlxvk.rng", set themselves.
        self._given = [name for name in own if not name.startswith("rlxvk.")]
        # On the others no output depends: a call may give them, and they are left out.
        self._names = [name for name in self._given if own[name].live]
        self._places = {name: i for i, name in enumerate(self._names)}
        self._codes = [own[name].dtype for name in self._names]
        self._dims = [shape_of(own[name].shape) for name in self._names]
        self._texts = [text(own[name].shape_text) for name in self._names]
        # Symbols of sizes, each by its code in shapes.
        count = ffi.new("size_t *")
        check(lib.rlxvk_executable_symbols(handle.pointer, ffi.NULL, 0, count))
        symbols = ffi.new("rlxvk_binding[]", count[0])
        check(lib.rlxvk_executable_symbols(handle.pointer, symbols, count[0], count))
        self._symbols = {int(lib.rlxvk_symbol(s.symbol)): int(s.symbol) for s in symbols}
        self._bound: tuple[int, ...] | None = None
        self._shapes: list[tuple[int, ...]] | None = None
        self._current: Any = None
        self._executables: dict[tuple[int, ...], Executable] = {}
        self.params = Params(self)

    # ---- Calling ----

    def __call__(self, /, *arrays: Any, **named: Any) -> tuple[Array, ...]:
        """Runs the graph, and returns its outputs as new arrays.

        Raises MissingInputError, UnknownNameError, DtypeError, RangeError and ShapeError before
        anything runs; BindConflictError if two inputs give one dim two sizes; UnsetParamError; the
        exceptions of compiling if sizes are new; and those of a run.
        """
        given = self._arrange(arrays, named)
        taken = [host_array(v, c, n) for v, c, n in zip(given, self._codes, self._names)]
        shapes = [array.shape for array in taken]
        with self._handle.lock:
            if shapes != self._shapes: # those of the last call are known to fit
                self._shapes = None
                self._current = self._executable(shapes)
                self._shapes = shapes
            return tuple(self._current.run(taken))

    def _arrange(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        if not named and len(arrays) == len(self._given) == len(self._names):
            return list(arrays)
        given = arranged("graph", self._given, arrays, named)
        try:
            return [given[name] for name in self._names]
        except KeyError as missing:
            name = missing.args[0]
            raise errors.MissingInputError(
                f"input '{name}' of shape {self._wanted(name)} is missing"
            ) from None

    def _executable(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        sizes = self._sizes(shapes)
        if sizes != self._bound:
            self._bind(sizes)
        executable = self._executables.get(sizes)
        if executable is None:
            executable = Executable(self._handle, self._names, self._bound_shapes(sizes))
            if len(self._executables) >= 64:
                self._executables.clear()
            self._executables[sizes] = executable
        self._check_shapes(executable, shapes)
        return executable

    def _sizes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The sizes of symbols that stand alone in a shape; checks ranks and known dims."""
        found: dict[int, int] = {}
        for name, dims, shape in zip(self._names, self._dims, shapes):
            if len(dims) != len(shape):
                raise self._misfit(name, shape)
            for dim, size in zip(dims, shape):
                if dim >= 0 and dim != size:
                    raise self._misfit(name, shape)
                if dim in self._symbols and found.setdefault(dim, size) != size:
                    raise errors.BindConflictError(
                        f"input '{name}' has shape {shape_text(shape)}, but another axis gives its "
                        f"dim the size {found[dim]}; the graph takes {self._wanted(name)}"
                    )
        missing = [s for code, s in self._symbols.items() if code not in found]
        if missing:
            raise errors.UnboundSymbolError(
                f"no input has a dim of its own for {len(missing)} of the graph's sizes; give the "
                "graph an input with such a dim"
            )
        return tuple(found[code] for code in self._symbols)

    def _misfit(self, name: str, shape: tuple[int, ...]) -> errors.ShapeError:
        return errors.ShapeError(
            f"input '{name}' has shape {shape_text(shape)}; the graph takes {self._wanted(name)}"
        )

    def _wanted(self, name: str) -> str:
        return self._texts[self._places[name]]

    def _bindings(self, sizes: tuple[int, ...]) -> Any:
        pairs = [{"symbol": s, "size": n} for s, n in zip(self._symbols.values(), sizes)]
        return ffi.new("rlxvk_binding[]", pairs)

    def _bind(self, sizes: tuple[int, ...]) -> None:
        if self._symbols:
            bindings = self._bindings(sizes)
            check(lib.rlxvk_bind_symbols(self._handle.pointer, bindings, len(sizes)))
        self._bound = sizes

    def _bound_shapes(self, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes of the inputs at these sizes."""
        out = ffi.new("rlxvk_graph **")
        check(lib.rlxvk_graph_bind(self._graph.pointer, self._bindings(sizes), len(sizes), out))
        bound = Handle(out[0], lib.rlxvk_graph_destroy)
        tensors = (lib.rlxvk_graph_tensor_named(bound.pointer, n.encode()) for n in self._names)
        return [shape_of(lib.rlxvk_tensor_shape(bound.pointer, t)) for t in tensors]

    def _check_shapes(self, executable: Executable, shapes: Sequence[tuple[int, ...]]) -> None:
        """Dims that are computed from others, which no symbol of their own tells."""
        for name, shape, wanted in zip(self._names, shapes, executable.input_shapes):
            if shape != wanted:
                raise errors.ShapeError(
                    f"input '{name}' has shape {shape_text(shape)}; with these sizes the graph "
                    f"takes {shape_text(wanted)}"
                )

    # ---- Looking at it ----

    def profile(self) -> Profile:
        """The time of each step of the last call. Compile with `profile=True`."""
        steps = listed("rlxvk_step_time", lib.rlxvk_executable_profile, self._handle.pointer)
        return Profile(
            (text(s.name), text(s.node), s.node_id, s.gpu, s.microseconds, s.times) for s in steps
        )

    def report(self) -> dict[str, int | float]:
        """Numbers of its memory, in bytes, and of the work of one call."""
        memory, plan = new("rlxvk_memory_report"), new("rlxvk_plan_report")
        lib.rlxvk_executable_memory(self._handle.pointer, memory)
        lib.rlxvk_executable_plan(self._handle.pointer, plan)
        return {
            name: getattr(struct, name)
            for struct in (memory, plan)
            for name, _ in ffi.typeof(struct).item.fields
            if name != "struct_size"
        }

    def dot(self) -> str:
        """What runs, with its kernels, as a text for graphviz."""
        return drawn(lib.rlxvk_executable_dot, self._handle.pointer)

    def _repr_svg_(self) -> str | None:
        try:
            return svg(self.dot())
        except errors.UnboundSymbolError: # no call has told its sizes
            return None

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}: {t}" for n, t in zip(self._names, self._texts))
        return f"<rlxvk.Function of ({inputs}) with {self._output_count} outputs>"


class Profile(list[Any]):
    """Steps of a call as tuples (kernel, node, number, on the GPU, microseconds, times). As text it
    is a table, the longest first."""

    def __repr__(self) -> str:
        def spent_in(step: Any) -> float:
            return float(step[4] * max(step[5], 1))

        total = sum(map(spent_in, self))
        lines = [f"{'us':>10} {'share':>6}  kernel and node"]
        for step in sorted(self, key=spent_in, reverse=True):
            name, node, _, gpu, _, _ = step
            spent = spent_in(step)
            share = 100 * spent / total if total else 0
            where = "" if gpu else " (host)"
            lines.append(f"{spent:10.1f} {share:5.1f}%  {name} {node}{where}".rstrip())
        lines.append(f"{total:10.1f}         together")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"
