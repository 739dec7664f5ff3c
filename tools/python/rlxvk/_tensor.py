"""Tensors: the values of a graph, with operators and methods of NumPy and PyTorch."""
from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import errors
from ._arrays import NUMPY, Array, dtype_name
from ._library import lib

if TYPE_CHECKING:
    from ._build import Dim, DimLike, DTypeLike, Graph, ShapeLike

TensorLike = Any # a Tensor, a number, or what numpy.asarray takes
Axes = Union[int, Sequence[int], None]


class Tensor:
    """A value that a graph computes.

    Operators and methods append nodes to the graph; nothing is computed before `compile` and a
    call. Numbers and arrays may stand in for operands: they become constants. Shapes broadcast as
    NumPy's. `==` compares elements, as in NumPy.
    """

    __slots__ = ("_graph", "_handle")
    __array_ufunc__ = None # so that array + tensor is the tensor's

    def __init__(self, graph: Graph, handle: Any) -> None:
        self._graph = graph
        self._handle = handle

    # ---- What it is ----

    @property
    def graph(self) -> Graph:
        """The graph that computes it."""
        return self._graph

    @property
    def shape(self) -> tuple[DimLike, ...]:
        """Its sizes: numbers, and Dims where a size is known only when the graph runs."""
        shape = lib.rlxvk_tensor_shape(self._graph._handle.pointer, self._handle)
        return tuple(self._graph._dim(code) for code in shape.dims[0 : shape.rank])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def _code(self) -> int:
        return int(lib.rlxvk_tensor_dtype(self._graph._handle.pointer, self._handle))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its arrays in NumPy; bfloat16 is float32 there."""
        return NUMPY[self._code]

    @property
    def dtype_name(self) -> str:
        """The library's name of its type: "f32", "bf16"."""
        return dtype_name(self._code).lower()

    def named(self, name: str) -> Tensor:
        """Gives it a name for errors, profiles and drawings, and returns it."""
        lib.rlxvk_graph_set_name(self._graph._handle.pointer, self._handle, name.encode())
        self._graph._check()
        return self

    def __repr__(self) -> str:
        return f"<rlxvk.Tensor {self.dtype_name} {self.shape}>"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "a tensor has no value before its graph runs; choose by rlxvk.ops.where, or by "
            "rlxvk.cond"
        )

    def __len__(self) -> int:
        size = self.shape[0] if self.ndim else None
        if not isinstance(size, int):
            raise TypeError(f"a tensor of shape {self.shape} has no length that is known now")
        return size

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("a tensor has no values before its graph runs: compile it and call that")

    # ---- Operators ----

    def __add__(self, other: TensorLike) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: TensorLike) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: TensorLike) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: TensorLike) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: TensorLike) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: TensorLike) -> Tensor:
        return ops.mul(other, self)

    def __truediv__(self, other: TensorLike) -> Tensor:
        return _quotient(self, other)

    def __rtruediv__(self, other: TensorLike) -> Tensor:
        return _quotient(other, self)

    def __floordiv__(self, other: TensorLike) -> Tensor:
        return ops.floor(_quotient(self, other))

    def __rfloordiv__(self, other: TensorLike) -> Tensor:
        return ops.floor(_quotient(other, self))

    def __mod__(self, other: TensorLike) -> Tensor:
        return ops.mod(self, other)

    def __rmod__(self, other: TensorLike) -> Tensor:
        return ops.mod(other, self)

    def __pow__(self, other: TensorLike) -> Tensor:
        return ops.mul(self, self) if _is_two(other) else ops.pow(self, other)

    def __rpow__(self, other: TensorLike) -> Tensor:
        return ops.pow(other, self)

    def __matmul__(self, other: TensorLike) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        return ops.matmul(other, self)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return ops.abs(self)

    def __and__(self, other: TensorLike) -> Tensor:
        return ops.bitwise_and(self, other)

    def __rand__(self, other: TensorLike) -> Tensor:
        return ops.bitwise_and(other, self)

    def __or__(self, other: TensorLike) -> Tensor:
        return ops.bitwise_or(self, other)

    def __ror__(self, other: TensorLike) -> Tensor:
        return ops.bitwise_or(other, self)

    def __xor__(self, other: TensorLike) -> Tensor:
        return ops.bitwise_xor(self, other)

    def __rxor__(self, other: TensorLike) -> Tensor:
        return ops.bitwise_xor(other, self)

    def __lshift__(self, other: TensorLike) -> Tensor:
        return ops.shift_left(self, other)

    def __rshift__(self, other: TensorLike) -> Tensor:
        return ops.shift_right(self, other)

    def __invert__(self) -> Tensor:
        if self._code == lib.RLXVK_BOOL: # as NumPy: not
            return ops.eq(self, False)
        return ops.bitwise_not(self)

    def __eq__(self, other: object) -> Tensor: # type: ignore[override]
        return ops.eq(self, other)

    def __ne__(self, other: object) -> Tensor: # type: ignore[override]
        return ops.ne(self, other)

    def __lt__(self, other: TensorLike) -> Tensor:
        return ops.lt(self, other)

    def __le__(self, other: TensorLike) -> Tensor:
        return ops.le(self, other)

    def __gt__(self, other: TensorLike) -> Tensor:
        return ops.gt(self, other)

    def __ge__(self, other: TensorLike) -> Tensor:
        return ops.ge(self, other)

    # ---- Parts ----

    def __getitem__(self, key: Any) -> Tensor:
        """Part of it, as in NumPy: numbers, slices, `...`, None for a new axis, and one tensor or
        array of indices. The order of axes is NumPy's."""
        keys = list(key) if isinstance(key, tuple) else [key]
        keys = _without_ellipsis(keys, self.ndim)
        result = self
        axis = 0
        gathered = False
        starts: list[int] = []
        stops: list[int] = []
        steps: list[int] = []
        for one in (k for k in keys if k is not None):
            start, stop, step = _range(one, axis, self, starts)
            starts.append(start)
            stops.append(stop)
            steps.append(step)
            axis += 1
        if any(
            (start, stop, step) != (_FIRST, _LAST, 1)
            for start, stop, step in zip(starts, stops, steps)
        ):
            result = ops.slice(result, starts, stops, steps)
        axis = 0
        for one in keys:
            if one is None:
                result = result.expand_dims(axis)
                axis += 1
            elif isinstance(one, builtins.slice):
                result = _narrowed(result, one, axis)
                axis += 1
            elif _is_index(one):
                result = result.squeeze(axis)
            else:
                if gathered:
                    raise errors.UnsupportedError(
                        "a tensor is indexed by one array or tensor of indices; for several, use "
                        "rlxvk.ops.gather_nd"
                    )
                gathered = True
                indices = result._graph_tensor(one)
                result = ops.gather(result, indices, axis)
                axis += indices.ndim
        return result

    def _graph_tensor(self, value: Any) -> Tensor:
        return value if isinstance(value, Tensor) else self._graph.constant(np.asarray(value))

    # ---- Shapes ----

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; one dim may be -1."""
        return ops.reshape(self, _dims(shape))

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """Joins the axes from `start` to `end` to one."""
        rank = self.ndim
        start, end = start % max(rank, 1), end % max(rank, 1)
        dims = self.shape
        joined: DimLike = 1
        for dim in dims[start : end + 1]:
            joined = dim * joined
        return self.reshape(dims[:start] + (joined,) + dims[end + 1 :])

    def transpose(self, *axes: Any) -> Tensor:
        """Permutes the axes; without arguments it reverses their order. With two numbers it swaps
        these two axes if there are more, as in PyTorch."""
        order = _dims(axes)
        rank = self.ndim
        if not order:
            order = tuple(reversed(range(rank)))
        elif len(order) == 2 and rank != 2:
            return self.swapaxes(*order)
        return ops.transpose(self, [axis % rank for axis in order])

    def permute(self, *axes: Any) -> Tensor:
        """Permutes the axes."""
        rank = self.ndim
        return ops.transpose(self, [axis % rank for axis in _dims(axes)])

    def swapaxes(self, first: int, second: int) -> Tensor:
        """Swaps two axes."""
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return ops.transpose(self, order)

    @property
    def T(self) -> Tensor: # noqa: N802
        """With the order of axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Tensor: # noqa: N802
        """With the last two axes swapped."""
        return self.swapaxes(-1, -2)

    def squeeze(self, axis: Axes = None) -> Tensor:
        """Without axes of size 1: without all of them, or without these."""
        shape = self.shape
        if axis is None:
            drop = [i for i, dim in enumerate(shape) if dim == 1]
        else:
            drop = [a % len(shape) for a in _axes(axis, len(shape))]
        for a in drop:
            if shape[a] != 1:
                raise errors.ShapeError(f"axis {a} of {shape} has not the size 1")
        return ops.reshape(self, tuple(d for i, d in enumerate(shape) if i not in drop))

    def expand_dims(self, axis: int) -> Tensor:
        """With a new axis of size 1."""
        shape = list(self.shape)
        shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 1)
        return ops.reshape(self, tuple(shape))

    unsqueeze = expand_dims

    def broadcast_to(self, *shape: Any) -> Tensor:
        """Repeats axes of size 1; -1 keeps a size."""
        return ops.expand(self, _dims(shape))

    expand = broadcast_to

    def astype(self, dtype: DTypeLike) -> Tensor:
        """In another dtype."""
        return ops.cast(self, dtype)

    # ---- Reductions ----

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The sum over all axes, or over these."""
        return ops.reduce_sum(self, _axes(axis, self.ndim), keepdims)

    def mean(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The mean over all axes, or over these."""
        return ops.reduce_mean(self, _axes(axis, self.ndim), keepdims)

    def max(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The largest element of all, or along these axes."""
        return ops.reduce_max(self, _axes(axis, self.ndim), keepdims)

    def min(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The smallest element of all, or along these axes."""
        return ops.reduce_min(self, _axes(axis, self.ndim), keepdims)

    def prod(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The product over all axes, or over these."""
        return ops.reduce_prod(self, _axes(axis, self.ndim), keepdims)

    def var(self, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
        """The variance: the sum of squared distances to the mean, divided by n - ddof."""
        axes = _axes(axis, self.ndim)
        distance = self - self.mean(axes, keepdims=True)
        squares = (distance * distance).sum(axes, keepdims)
        if ddof == 0:
            return (distance * distance).mean(axes, keepdims)
        count = 1
        for a in axes:
            size = self.shape[a]
            if not isinstance(size, int):
                raise errors.UnsupportedError("var with ddof needs sizes that are known now")
            count *= size
        return squares / float(count - ddof)

    def std(self, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
        """The square root of the variance."""
        return self.var(axis, ddof, keepdims).sqrt()

    def any(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """Whether an element is not 0."""
        return (self != 0).max(axis, keepdims)

    def all(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """Whether no element is 0."""
        return (self != 0).min(axis, keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The index of the largest element along an axis, or of all in order."""
        return ops.argmax(*_or_flat(self, axis), keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The index of the smallest element along an axis, or of all in order."""
        return ops.argmin(*_or_flat(self, axis), keepdims)

    def cumsum(self, axis: int | None = None) -> Tensor:
        """Running sums along an axis, or through all elements."""
        return ops.cumsum(*_or_flat(self, axis))

    def sort(self, axis: int = -1) -> Tensor:
        """Sorted along an axis; NaN comes last."""
        return ops.sort(self, axis)

    def argsort(self, axis: int = -1) -> Tensor:
        """The indices that sort along an axis."""
        return ops.argsort(self, axis)

    # ---- Elements ----

    def exp(self) -> Tensor:
        """e to the power of each element."""
        return ops.exp(self)

    def log(self) -> Tensor:
        """The natural logarithm."""
        return ops.log(self)

    def sqrt(self) -> Tensor:
        """The square root."""
        return ops.sqrt(self)

    def rsqrt(self) -> Tensor:
        """1 divided by the square root."""
        return ops.rsqrt(self)

    def abs(self) -> Tensor:
        """The magnitude."""
        return ops.abs(self)

    def sin(self) -> Tensor:
        """The sine."""
        return ops.sin(self)

    def cos(self) -> Tensor:
        """The cosine."""
        return ops.cos(self)

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
        return ops.tanh(self)

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
        return ops.sigmoid(self)

    def relu(self) -> Tensor:
        """max(x, 0)."""
        return ops.relu(self)

    def gelu(self) -> Tensor:
        """x / 2 (1 + erf(x / sqrt 2))."""
        return ops.gelu(self)

    def silu(self) -> Tensor:
        """x sigmoid(x)."""
        return ops.silu(self)

    def floor(self) -> Tensor:
        """The largest integer not above each element."""
        return ops.floor(self)

    def ceil(self) -> Tensor:
        """The smallest integer not below each element."""
        return ops.ceil(self)

    def round(self) -> Tensor:
        """To the nearest integer; halves to even."""
        return ops.round(self)

    def clip(self, low: TensorLike = None, high: TensorLike = None) -> Tensor:
        """Limited to low .. high; None: no limit."""
        result = self
        if low is not None:
            result = ops.max(result, low)
        if high is not None:
            result = ops.min(result, high)
        return result

    clamp = clip

    def softmax(self, axis: int = -1) -> Tensor:
        """exp(x) divided by its sum along an axis."""
        return ops.softmax(self, axis)

    def log_softmax(self, axis: int = -1) -> Tensor:
        """The logarithm of softmax."""
        return ops.log_softmax(self, axis)

    def detach(self) -> Tensor:
        """The same, but no gradient flows through it."""
        return ops.stop_gradient(self)


# ---- Arguments ----

# RLXVK_SLICE_FIRST and RLXVK_SLICE_LAST
_FIRST, _LAST = -(2**63), 2**63 - 1


def _is_two(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 2


def _quotient(a: TensorLike, b: TensorLike) -> Tensor:
    """a / b; of integers it is a float, as in NumPy."""
    if isinstance(a, Tensor) and NUMPY[a._code].kind in "iub":
        a = a.astype("f32")
    if isinstance(b, Tensor) and NUMPY[b._code].kind in "iub":
        b = b.astype("f32")
    return ops.div(a, b)


def _dims(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The dims of f(2, 3) or f((2, 3))."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        return tuple(given[0])
    return given


def _axes(axis: Axes, rank: int) -> list[int]:
    if axis is None:
        return list(range(rank))
    return [axis] if isinstance(axis, int) else list(axis)


def _or_flat(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    return (x.flatten(), 0) if axis is None else (x, axis)


def _is_index(key: Any) -> bool:
    return hasattr(key, "__index__") and not isinstance(key, (Tensor, np.ndarray))


def _without_ellipsis(keys: list[Any], rank: int) -> list[Any]:
    """With a slice for each axis that `...`, or the end of the key, stands for."""
    taken = builtins.sum(1 for k in keys if k is not None and k is not Ellipsis)
    if taken > rank:
        raise errors.AxisError(f"{taken} indices for a tensor of {rank} axes")
    rest = [builtins.slice(None)] * (rank - taken)
    for place, one in enumerate(keys):
        if one is Ellipsis:
            return keys[:place] + rest + keys[place + 1 :]
    return keys + rest


def _range(key: Any, axis: int, x: Tensor, before: list[int]) -> tuple[int, int, int]:
    """Start, stop and step along one axis; an index takes one element."""
    if isinstance(key, builtins.slice):
        step = 1 if key.step is None else int(key.step.__index__())
        if _has_dim(key): # _narrowed takes the part
            return _FIRST, _LAST, 1
        first, last = (_FIRST, _LAST) if step > 0 else (_LAST, _FIRST)
        start = first if key.start is None else int(key.start.__index__())
        stop = last if key.stop is None else int(key.stop.__index__())
        return start, stop, step
    if _is_index(key):
        index = int(key.__index__())
        size = x.shape[axis]
        if isinstance(size, int) and not -size <= index < size:
            raise errors.IndexError(f"index {index} is outside axis {axis} of {x.shape}")
        return index, (index + 1 if index != -1 else _LAST), 1
    return _FIRST, _LAST, 1


def _has_dim(key: builtins.slice) -> bool:
    return any(hasattr(end, "_code") for end in (key.start, key.stop))


def _narrowed(x: Tensor, key: Any, axis: int) -> Tensor:
    """The part of a slice whose ends are Dims."""
    if not _has_dim(key):
        return x
    if key.step not in (None, 1):
        raise errors.UnsupportedError("a slice whose ends are dims has the step 1")
    start = 0 if key.start is None else key.start
    stop = x.shape[axis] if key.stop is None else key.stop
    length: Dim | int = stop - start
    return ops.narrow(x, axis, start=start, length=length)


from . import ops # noqa: E402  (ops and Tensor need each other)
