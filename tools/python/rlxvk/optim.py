"""Optimizers: each appends one step for a list of params to the graph.

    gradients = rlxvk.grad(loss, params)
    rlxvk.optim.adamw(params, gradients, lr=1e-3)
    step = rlxvk.compile(graph, [loss])

Every call of the compiled graph then does a step. Averages are params of their own, named after
the param ("w.first"). They are zeros at first, and `Function.params` reads and sets them like
others. A learning rate is a number, or a tensor of one element: an input, for example.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Union

from . import ops
from ._tensor import Tensor, TensorLike

Rate = Union[float, Tensor]
# What the library takes for 0 where 0 means the default.
_ZERO = 1e-40


def _given(value: float) -> float:
    return value or _ZERO


def _rate(lr: Rate) -> dict[str, Any]:
    if isinstance(lr, Tensor):
        return {"schedule": lr.reshape(1)}
    return {"learning_rate": _given(lr)}


def sgd(
    params: Sequence[Tensor],
    gradients: Sequence[Tensor],
    lr: Rate = 1e-3,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    gradient_scale: TensorLike = None,
) -> None:
    """Stochastic gradient descent. `gradient_scale` is a factor of the gradients, such as that of
    ops.gradient_clip."""
    ops.sgd_all(
        params,
        gradients,
        momentum=momentum,
        weight_decay=weight_decay,
        nesterov=nesterov,
        gradient_scale=gradient_scale,
        **_rate(lr),
    )


def adamw(
    params: Sequence[Tensor],
    gradients: Sequence[Tensor],
    lr: Rate = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    gradient_scale: TensorLike = None,
    name: str = "adamw.step",
) -> None:
    """AdamW with decoupled weight decay. The state `name` counts the steps, for the correction of
    the averages' bias."""
    graph = params[0].graph
    count = ops.accumulate(graph.state(name, (1,)), graph.constant([1.0]), 1.0)
    # 1 - beta^step
    corrections = [ops.neg(ops.expm1(count * math.log(_given(beta)))) for beta in betas]
    rate = lr.reshape(1) if isinstance(lr, Tensor) else graph.constant([lr])
    ops.adamw_all(
        params,
        gradients,
        beta1=_given(betas[0]),
        beta2=_given(betas[1]),
        eps=_given(eps),
        weight_decay=weight_decay,
        schedule=ops.concat([rate, *corrections], 0),
        gradient_scale=gradient_scale,
    )


def lion(
    params: Sequence[Tensor],
    gradients: Sequence[Tensor],
    lr: Rate = 1e-4,
    betas: tuple[float, float] = (0.9, 0.99),
    weight_decay: float = 0.0,
    gradient_scale: TensorLike = None,
) -> None:
    """Lion: steps by the sign of an average."""
    ops.lion_all(
        params,
        gradients,
        beta1=_given(betas[0]),
        beta2=_given(betas[1]),
        weight_decay=weight_decay,
        gradient_scale=gradient_scale,
        **_rate(lr),
    )
