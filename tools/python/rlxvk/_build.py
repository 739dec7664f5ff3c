"""Graphs, their tensors and sizes, and how arguments of Python become those of builder calls."""
from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import errors
from ._arrays import NUMPY, Array, pointer
from ._library import Handle, Unpicklable, check, ffi, lib, set_size, text

DTypeLike = Any # what numpy.dtype takes, or a name of the library, such as "bf16"
DimLike = Union[int, "Dim"]
ShapeLike = Sequence[Union[int, "Dim", str, None]]

_FIRST_SYMBOL = lib.RLXVK_USER_SYMBOL
_NAMES: dict[str, int] = {
    text(lib.rlxvk_dtype_name(d)).lower(): d for d in range(lib.RLXVK_DTYPE_COUNT)
}
_OF_NUMPY = {dtype: code for code, dtype in NUMPY.items() if code != lib.RLXVK_BF16}


def dtype_code(dtype: DTypeLike) -> int:
    """The library's number of a dtype."""
    if isinstance(dtype, str) and dtype.lower() in _NAMES:
        return _NAMES[dtype.lower()]
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = None
    code = _OF_NUMPY.get(known) if known is not None else None
    if code is None:
        raise errors.DtypeError(
            f"the library has no dtype {dtype!r}; it has {', '.join(_NAMES)}, also as numpy's types"
        )
    return code


class Dim:
    """A size that is known when the graph runs, such as a batch size.

    Dims of one graph can be added, subtracted, multiplied, and divided (//, rounded down) with each
    other and with integers. Where a size is expected, a Dim will do.
    """

    __slots__ = ("_graph", "_code")

    def __init__(self, graph: Graph, code: int) -> None:
        self._graph = graph
        self._code = code

    def _with(self, call: Any, other: DimLike, turned: bool = False) -> DimLike:
        if not isinstance(other, (int, Dim)):
            raise TypeError(f"a size and {other!r}: sizes are integers and Dims")
        a, b = self._code, _size(self._graph, other)
        if turned:
            a, b = b, a
        code = call(self._graph._handle.pointer, a, b)
        self._graph._check()
        return self._graph._dim(code)

    def __add__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_add, other)

    def __radd__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_add, other, True)

    def __sub__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_sub, other)

    def __rsub__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_sub, other, True)

    def __mul__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_multiply, other)

    def __rmul__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_multiply, other, True)

    def __floordiv__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_div, other)

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return self._with(lib.rlxvk_dim_div, other, True)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Dim):
            return False
        return self._graph is other._graph and self._code == other._code

    def __hash__(self) -> int:
        return hash(self._code)

    def __repr__(self) -> str:
        return self._graph._dim_text(self._code)


class Graph(Unpicklable):
    """A graph that grows by one node with each call.

        g = rlxvk.Graph()
        x = g.input("x", (None, 784))
        w = g.param("w", (784, 10))
        f = rlxvk.compile(g, [(x @ w).softmax(-1)], params={"w": weights})

    Tensors have operators and methods of NumPy and PyTorch; `rlxvk.ops` has every op of the
    library, and `rlxvk.nn` layers by the names of PyTorch. One thread at a time uses a graph.

    After a call that failed, a graph takes no more calls, because the library keeps its first
    error: correct the call and build the graph anew.
    """

    def __init__(self) -> None:
        out = ffi.new("rlxvk_graph **")
        check(lib.rlxvk_graph_create(out))
        self._handle = Handle(out[0], lib.rlxvk_graph_destroy)
        self._symbols: dict[str, int] = {}
        self._dim_names: dict[int, str] = {}
        self._numbers = itertools.count(_FIRST_SYMBOL)
        self._inputs: dict[str, Tensor] = {}
        self._params: dict[str, Tensor] = {}

    # ---- Leaves ----

    def input(self, name: str, shape: ShapeLike, dtype: DTypeLike = "f32") -> Tensor:
        """A value that each run gets.

        Dims of `shape` are numbers, Dims, names of dims ("batch": the same size wherever the name
        is used in this graph), or None: a size of its own.
        """
        tensor = self._leaf(lib.rlxvk_input, name, shape, dtype)
        self._inputs[name] = tensor
        return tensor

    def param(self, name: str, shape: ShapeLike, dtype: DTypeLike = "f32") -> Tensor:
        """A weight, which `compile` or `Function.params` sets, and which optimizers change."""
        tensor = self._leaf(lib.rlxvk_param, name, shape, dtype)
        self._params[name] = tensor
        return tensor

    def state(self, name: str, shape: ShapeLike, dtype: DTypeLike = "f32") -> Tensor:
        """A param that is zeros until it is set or written: a running mean, for example."""
        tensor = self._leaf(lib.rlxvk_state, name, shape, dtype)
        self._params[name] = tensor
        return tensor

    def constant(self, value: Any, dtype: DTypeLike | None = None) -> Tensor:
        """An array that never changes. Without a dtype it keeps that of an array; numbers and lists
        of Python become f32."""
        if dtype is None:
            own = isinstance(value, (np.ndarray, np.generic))
            code = dtype_code(value.dtype if own else np.float32)
        else:
            code = dtype_code(dtype)
        return self._constant(value, code)

    def _constant(self, value: Any, code: int) -> Tensor:
        array: Array = np.ascontiguousarray(value, NUMPY[code]).reshape(np.shape(value))
        if code == lib.RLXVK_BF16: # NumPy has no such type: made of f32, and rounded by a cast
            whole = self._constant(array, lib.RLXVK_F32)
            return self._made(lib.rlxvk_cast(self._handle.pointer, whole._handle, code))
        data = pointer(array)
        shape = self._shape(array.shape)
        return self._made(
            lib.rlxvk_constant(self._handle.pointer, code, shape, data, array.nbytes)
        )

    def _leaf(self, call: Any, name: str, shape: ShapeLike, dtype: DTypeLike) -> Tensor:
        dims = self._shape(shape)
        return self._made(call(self._handle.pointer, name.encode(), dtype_code(dtype), dims))

    # ---- Sizes ----

    def dim(self, name: str, example: int | None = None) -> Dim:
        """The size that `name` stands for.

        The library tries each call at example sizes. If a call suits only some sizes, for example
        because a window must divide a length, `example` is a size that fits.
        """
        symbol = self._symbols.get(name)
        if symbol is None:
            symbol = self._symbols[name] = next(self._numbers)
        if example is not None:
            lib.rlxvk_set_symbol_example(self._handle.pointer, symbol, example)
            self._check()
        code = lib.rlxvk_symbol(symbol)
        self._dim_names[code] = name
        return Dim(self, code)

    def _dim(self, code: int) -> DimLike:
        return code if code >= 0 else Dim(self, code)

    def _dim_text(self, code: int) -> str:
        name = self._dim_names.get(code)
        if name:
            return name
        buffer = ffi.new("char[]", 128)
        shape = ffi.new("rlxvk_shape *", {"rank": 1, "dims": [code]})
        if lib.rlxvk_shape_text(self._handle.pointer, shape[0], buffer, 128):
            return "?"
        return text(buffer)

    def _shape(self, shape: Any) -> Any:
        if isinstance(shape, (int, Dim, str)):
            shape = (shape,)
        dims = [self._size(dim) for dim in shape]
        if len(dims) > lib.RLXVK_MAX_RANK:
            raise errors.ShapeError(
                f"a shape of rank {len(dims)}; tensors have at most {lib.RLXVK_MAX_RANK} axes"
            )
        return ffi.new("rlxvk_shape *", {"rank": len(dims), "dims": dims})[0]

    def _size(self, dim: Any) -> int:
        if dim is None:
            symbol = next(self._numbers)
            return int(lib.rlxvk_symbol(symbol))
        if isinstance(dim, str):
            return self.dim(dim)._code
        return _size(self, dim)

    # ---- Nodes ----

    def _check(self) -> None:
        """Raises the error of a call. The graph takes calls again after it."""
        if lib.rlxvk_graph_status(self._handle.pointer):
            sentence = text(lib.rlxvk_graph_error(self._handle.pointer))
            status = lib.rlxvk_graph_clear_error(self._handle.pointer)
            raise errors.BY_NUMBER.get(status, errors.Error)(sentence)

    def _made(self, handle: Any) -> Tensor:
        if not handle.graph:
            self._check()
        return Tensor(self, handle)

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The inputs by name, in the order of their calls."""
        return dict(self._inputs)

    @property
    def params(self) -> dict[str, Tensor]:
        """The params and states by name, in the order of their calls."""
        return dict(self._params)

    def dot(self) -> str:
        """The graph as a text for graphviz."""
        return drawn(lib.rlxvk_graph_dot, self._handle.pointer)

    def _repr_svg_(self) -> str | None:
        """For notebooks: a drawing by graphviz, if it is installed."""
        return svg(self.dot())

    def __repr__(self) -> str:
        count = lib.rlxvk_graph_node_count(self._handle.pointer)
        lines = [f"<rlxvk.Graph of {count} nodes"]
        lines += [f"  input {t}" for t in map(_described, self._inputs.items())]
        lines += [f"  param {t}" for t in map(_described, self._params.items())]
        return "\n".join(lines) + ">"


def _described(item: tuple[str, Tensor]) -> str:
    name, tensor = item
    return f"{name}: {tensor.dtype_name} {tensor.shape}"


def drawn(call: Any, pointer_of: Any) -> str:
    """The whole text of a call that writes as much as fits, and tells how much there is."""
    size = 1 << 16
    length = ffi.new("size_t *")
    while True:
        buffer = ffi.new("char[]", size)
        check(call(pointer_of, buffer, size, length))
        if length[0] < size:
            return text(buffer)
        size = length[0] + 1


def svg(dot: str) -> str | None:
    """Drawn by the program `dot` of graphviz; None if it is not installed."""
    import shutil
    import subprocess

    if not shutil.which("dot"):
        return None
    command = ["dot", "-Tsvg"]
    done = subprocess.run(command, input=dot, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout or None


def _size(graph: Graph, value: Any) -> int:
    if isinstance(value, Dim):
        if value._graph is not graph:
            raise errors.DanglingError(f"the dim {value!r} is of another graph")
        return value._code
    return int(value.__index__())


# ---- Building ----


@functools.lru_cache(maxsize=None)
def _plan(plan: str) -> tuple[tuple[str, str], ...]:
    pairs = (role.partition(":") for role in plan.split())
    return tuple((role, detail) for role, _, detail in pairs)


@functools.lru_cache(maxsize=None)
def enumerators(kind: str) -> dict[str, int]:
    """The names of an enumeration without what all have in common, in lower case."""
    members = {str(name): int(value) for value, name in sorted(ffi.typeof(kind).elements.items())}
    words = [name.split("_") for name in members]
    shared = 0
    while all(len(w) > shared + 1 and w[shared] == words[0][shared] for w in words):
        shared += 1
    return {"_".join(name.split("_")[shared:]).lower(): value for name, value in members.items()}


def enum_value(kind: str, value: Any) -> int:
    """The number of an enumerator: given by its name, or None for 0."""
    if value is None:
        return 0
    names = enumerators(kind)
    if isinstance(value, str) and value.lower() in names:
        return names[value.lower()]
    if isinstance(value, int) and not isinstance(value, bool) and value in names.values():
        return value
    raise errors.AttrError(
        f"no {kind[len('rlxvk_'):].replace('_', ' ')} {value!r}; there are: {', '.join(names)}"
    )


def _tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Mapping):
            yield from _tensors_in(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _tensors_in(value)


class _Call:
    """The making of one call: it holds what the arguments point to until the call is over."""

    def __init__(self, graph: Graph, first: Tensor | None) -> None:
        self.graph = graph
        self.first = first
        self.keep: list[Any] = []
        self.length = 0 # of the latest sequence

    def hold(self, memory: Any) -> Any:
        self.keep.append(memory)
        return memory

    def tensor(self, value: Any) -> Any:
        if value is None:
            return ffi.new("rlxvk_tensor *")[0]
        return as_tensor(self.graph, value, self.first)._handle

    def scalar(self, role: str, detail: str, value: Any) -> Any:
        if role == "tensor":
            return self.tensor(value)
        if role == "size":
            return _size(self.graph, value)
        if role == "int":
            return int(value.__index__())
        if role == "float":
            return float(value)
        if role == "bool":
            return bool(value)
        if role == "dtype":
            return dtype_code(value)
        if role == "shape":
            return self.graph._shape(value)
        if role == "text":
            return self.hold(ffi.new("char[]", value.encode()))
        if role == "enum":
            return enum_value(detail, value)
        raise AssertionError(role)

    def sequence(self, kind: str, values: Any) -> Any:
        """An array of C; NULL for None."""
        if values is None:
            self.length = 0
            return ffi.NULL
        if isinstance(values, (int, float, Dim)):
            values = (values,)
        made: list[Any]
        if kind == "rlxvk_tensor":
            made = [self.tensor(value) for value in values]
        elif kind in ("float", "double"):
            made = [float(value) for value in values]
        else:
            made = [_size(self.graph, value) for value in values]
        self.length = len(made)
        return self.hold(ffi.new(f"{kind}[]", made))

    def struct(self, kind: str, members: Mapping[str, Any]) -> Any:
        """A struct with those members that are not None."""
        made = ffi.new(f"{kind} *")
        self.fill(made, members)
        return self.hold(made)

    def fill(self, made: Any, members: Mapping[str, Any]) -> None:
        set_size(made)
        for path, value in members.items():
            place = made
            *outer, name = path.split(".")
            for part in outer:
                place = getattr(place, part)
                set_size(place)
            if value is not None:
                self.member(place, name, value)

    def member(self, place: Any, name: str, value: Any) -> None:
        fields = dict(_type_of(place).fields)
        ctype = fields[name].type
        if f"has_{name}" in fields:
            setattr(place, f"has_{name}", True)
        if ctype.kind == "array":
            values = [value] * self.axes(ctype.length) if isinstance(value, (int, float)) else value
            for i, one in enumerate(values):
                getattr(place, name)[i] = one if isinstance(one, float) else _size(self.graph, one)
        elif ctype.kind == "pointer":
            self.pointed(place, name, ctype.item, value, fields)
        elif name_of(ctype) == "rlxvk_tensor":
            setattr(place, name, self.tensor(value))
        elif name_of(ctype) == "rlxvk_shape":
            setattr(place, name, self.graph._shape(value))
        elif ctype.kind == "enum":
            kind = name_of(ctype)
            is_dtype = kind == "rlxvk_dtype"
            setattr(place, name, dtype_code(value) if is_dtype else enum_value(kind, value))
        elif ctype.cname in ("float", "double"):
            setattr(place, name, float(value))
        elif ctype.cname == "_Bool":
            setattr(place, name, bool(value))
        else:
            setattr(place, name, _size(self.graph, value))

    def axes(self, most: int) -> int:
        """How many axes one number stands for in a window: those behind batch and channels."""
        rank = len(self.first.shape) if self.first is not None else most + 2
        return max(1, min(most, rank - 2))

    def pointed(self, place: Any, name: str, item: Any, value: Any, fields: Any) -> None:
        """A member that points to several values, and the count beside it: "steps" has step_count,
        "lhs_batch" batch_count."""
        if item.kind == "struct":
            made = self.hold(ffi.new(f"{item.cname}[]", len(value)))
            for one, members in zip(made, value):
                self.fill(ffi.addressof(one), members)
            self.length = len(value)
        else:
            made = self.sequence(item.cname, value)
        setattr(place, name, made)
        for count in (f"{name.rstrip('s')}_count", f"{name.split('_')[-1]}_count", "count"):
            if count in fields:
                setattr(place, count, self.length)
                return


def name_of(ctype: Any) -> str:
    """The name of a type of C, without "struct" or "enum"."""
    return str(ctype.cname).split(" ")[-1]


def _type_of(place: Any) -> Any:
    kind = ffi.typeof(place)
    return kind.item if kind.kind == "pointer" else kind


def build(name: str, plan: str, graph: Graph | None, values: Sequence[Any]) -> Any:
    """Calls a builder. `plan` says of what type each argument behind the graph is; `values` are
    those that Python gives, in their order."""
    first = next(_tensors_in(values), None)
    if graph is None:
        if first is None:
            raise TypeError(f"{name}: none of the operands is a rlxvk.Tensor, so there is no graph")
        graph = first._graph
    call = _Call(graph, first)
    given = iter(values)
    arguments, outs = [graph._handle.pointer], []
    for role, detail in _plan(plan):
        if role == "count":
            arguments.append(call.length)
        elif role == "out":
            outs.append(ffi.new("rlxvk_tensor *"))
            arguments.append(outs[-1])
        elif role == "tensors":
            arguments.append(call.sequence("rlxvk_tensor", list(next(given))))
        elif role == "array":
            arguments.append(call.sequence(detail, next(given)))
        elif role == "struct":
            arguments.append(call.struct(detail, next(given)))
        else:
            arguments.append(call.scalar(role, detail, next(given)))
    result = getattr(lib, name)(*arguments)
    graph._check()
    made = [out[0] for out in outs]
    if isinstance(result, ffi.CData) and name_of(ffi.typeof(result)) == "rlxvk_tensor":
        made.insert(0, result)
    tensors = [Tensor(graph, handle) for handle in made]
    return None if not tensors else tensors[0] if len(tensors) == 1 else tuple(tensors)


def as_tensor(graph: Graph, value: Any, like: Tensor | None = None) -> Tensor:
    """A tensor of the graph. A number takes the dtype of `like`, if that has such numbers."""
    if isinstance(value, Tensor):
        if value._graph is not graph:
            raise errors.DanglingError(
                "an operand is of another graph; the tensors of one call must be of one graph"
            )
        return value
    if isinstance(value, (bool, int, float, complex)) and like is not None:
        return graph._constant(value, _number_dtype(value, like._code))
    return graph.constant(value)


def _number_dtype(value: Any, code: int) -> int:
    kind = NUMPY[code].kind
    if isinstance(value, complex):
        return int(lib.RLXVK_C64)
    if isinstance(value, bool):
        return int(lib.RLXVK_BOOL)
    if kind == "f" or kind == "c" or (kind in "iu" and isinstance(value, int)):
        return int(lib.RLXVK_F32) if kind == "c" else code
    return int(lib.RLXVK_I32) if isinstance(value, int) else int(lib.RLXVK_F32)


from ._tensor import Tensor, TensorLike # noqa: E402  (Tensor and Graph need each other)
