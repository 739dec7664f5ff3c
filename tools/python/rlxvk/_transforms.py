"""Gradients, and graphs inside graphs: loops, branches and calls."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import errors
from ._build import Graph, as_tensor
from ._function import with_outputs
from ._library import Handle, ffi, lib, new
from ._tensor import Tensor, TensorLike


def grad(loss: Tensor, wrt: Sequence[Tensor], seed: TensorLike = None) -> list[Tensor]:
    """The gradients of `loss` with respect to each tensor of `wrt`, in their shapes.

    `seed` is the gradient of a further value with respect to the loss, in its shape. None means 1,
    for a loss of one element. Gradients are tensors like all others. Take them before the first
    step of an optimizer.

    Raises ShapeError for a loss of several elements without a seed, DtypeError for integers in
    `wrt`, OrderError if a gradient would read what was overwritten, UnsupportedError for an op
    without a gradient; rlxvk_train.h says which these are.
    """
    graph = loss._graph
    made = ffi.new("rlxvk_tensor[]", len(wrt))
    first = as_tensor(graph, seed, loss)._handle if seed is not None else _none()
    lib.rlxvk_grad(graph._handle.pointer, loss._handle, first, _handles(wrt), len(wrt), made)
    graph._check()
    return _tensors(graph, made)


class Body:
    """A graph inside a graph, with its outputs: what a loop repeats, or a branch computes.

    Its inputs are those of the graph, in the order of their calls.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Tensor]) -> None:
        self.graph = graph
        self.outputs = tuple(outputs)
        self._copy: Handle = with_outputs(graph, outputs)


def call(
    body: Body, inputs: Sequence[TensorLike], graph: Graph | None = None
) -> tuple[Tensor, ...]:
    """Computes the outputs of a body for other inputs: its ops are copied into the graph."""
    graph = _graph_of(inputs, graph)
    made = ffi.new("rlxvk_tensor[]", len(body.outputs))
    given = [as_tensor(graph, one) for one in inputs]
    lib.rlxvk_call(
        graph._handle.pointer, body._copy.pointer, _handles(given), len(given), made, len(made)
    )
    graph._check()
    return tuple(_tensors(graph, made))


def cond(predicate: Tensor, then: Body, otherwise: Body, captures: Sequence[TensorLike]) -> Tensor:
    """The output of `then` where the predicate is not 0, and that of `otherwise` elsewhere.

    Both get the `captures` as inputs, and have one output, of one shape and dtype. Both are
    computed, but a NaN of the one that is not chosen never shows (rlxvk_if).
    """
    graph = predicate._graph
    given = [as_tensor(graph, one) for one in captures]
    return graph._made(
        lib.rlxvk_if(
            graph._handle.pointer,
            predicate._handle,
            then._copy.pointer,
            otherwise._copy.pointer,
            _handles(given),
            len(given),
        )
    )


def while_loop(
    condition: Body, body: Body, carried: Sequence[TensorLike], most: int
) -> tuple[Tensor, ...]:
    """Repeats a body while every element of the condition's output is not 0, at most `most` times.

    Both get the carried values as inputs; the body's outputs are the next ones, of the same shapes.
    The result is the last values; for no round, the first (rlxvk_while).
    """
    graph = _graph_of(carried, None)
    given = [as_tensor(graph, one) for one in carried]
    made = ffi.new("rlxvk_tensor[]", len(given))
    lib.rlxvk_while(
        graph._handle.pointer,
        condition._copy.pointer,
        body._copy.pointer,
        most,
        _handles(given),
        len(given),
        made,
    )
    graph._check()
    return tuple(_tensors(graph, made))


def scan(
    body: Body,
    values: Sequence[TensorLike],
    length: int,
    *,
    broadcast: int = 0,
    trajectory: bool = False,
    checkpoints: int = 0,
) -> Tensor:
    """Repeats a body `length` times, and gives the last carried value (rlxvk_scan).

    `values` are the first carried value, then `broadcast` values that every round gets whole, then
    sequences, of which each round gets a row. The body has one output: the next carried value. With
    `trajectory` the result has that of every round, or of `checkpoints` rounds at equal distances.
    """
    graph = _graph_of(values, None)
    given = [as_tensor(graph, one) for one in values]
    options = new(
        "rlxvk_scan_options",
        length=length,
        broadcast_count=broadcast,
        save_trajectory=trajectory,
        checkpoints=checkpoints,
    )
    return graph._made(
        lib.rlxvk_scan(
            graph._handle.pointer, body._copy.pointer, _handles(given), len(given), options
        )
    )


def _none() -> Any:
    return ffi.new("rlxvk_tensor *")[0]


def _tensors(graph: Graph, made: Any) -> list[Tensor]:
    """Those of an array. Its items are copied, because they live no longer than the array."""
    return [Tensor(graph, ffi.new("rlxvk_tensor *", one)[0]) for one in made]


def _handles(tensors: Sequence[Tensor]) -> Any:
    for one in tensors:
        if not isinstance(one, Tensor):
            raise TypeError(f"{one!r} is no rlxvk.Tensor")
    return ffi.new("rlxvk_tensor[]", [one._handle for one in tensors])


def _graph_of(values: Sequence[Any], graph: Graph | None) -> Graph:
    for value in values:
        if isinstance(value, Tensor):
            return value._graph
    if graph is None:
        raise errors.DanglingError("none of the values is a tensor, so there is no graph")
    return graph


