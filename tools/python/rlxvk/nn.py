"""Layers by the names and conventions of torch.nn.functional.

All ops of the library, by its own names, are in `rlxvk.ops`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from . import ops
from ._tensor import Tensor, TensorLike

Window = Union[int, Sequence[int]]


def linear(x: TensorLike, weight: TensorLike, bias: TensorLike = None) -> Tensor:
    """x weight^T + bias: x [.., K], weight [N, K], bias [N] -> [.., N]."""
    product = ops.matmul_with(x, weight, transpose_b=True)
    return product if bias is None else ops.add(product, bias)


def embedding(indices: TensorLike, weight: Tensor) -> Tensor:
    """Rows of a table: indices [..], weight [N, D] -> [.., D]."""
    return ops.gather(weight, indices, 0)


def conv1d(
    x: Tensor,
    weight: TensorLike,
    bias: TensorLike = None,
    stride: Window = 1,
    padding: Window = 0,
    dilation: Window = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution: x [B, C, L], weight [F, C / groups, K] -> [B, F, L']."""
    return _conv(x, weight, bias, 1, stride, padding, dilation, groups)


def conv2d(
    x: Tensor,
    weight: TensorLike,
    bias: TensorLike = None,
    stride: Window = 1,
    padding: Window = 0,
    dilation: Window = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution: x [B, C, H, W], weight [F, C / groups, KH, KW] -> [B, F, H', W']."""
    return _conv(x, weight, bias, 2, stride, padding, dilation, groups)


def conv3d(
    x: Tensor,
    weight: TensorLike,
    bias: TensorLike = None,
    stride: Window = 1,
    padding: Window = 0,
    dilation: Window = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution: x [B, C, D, H, W], weight [F, C / groups, KD, KH, KW] -> [B, F, D', H', W']."""
    return _conv(x, weight, bias, 3, stride, padding, dilation, groups)


def _conv(
    x: Tensor,
    weight: Any,
    bias: Any,
    axes: int,
    stride: Window,
    padding: Window,
    dilation: Window,
    groups: int,
) -> Tensor:
    kernel = weight.shape[-axes:]
    return ops.conv(
        x,
        weight,
        bias,
        kernel=kernel,
        stride=_window(stride, axes),
        padding=_window(padding, axes),
        dilation=_window(dilation, axes),
        groups=groups,
    )


def _window(value: Window, axes: int) -> tuple[int, ...]:
    return (value,) * axes if isinstance(value, int) else tuple(value)


def max_pool2d(
    x: Tensor, kernel: Window, stride: Window | None = None, padding: Window = 0
) -> Tensor:
    """The largest element of each window."""
    stride = kernel if stride is None else stride
    kernel, stride, padding = (_window(v, 2) for v in (kernel, stride, padding))
    return ops.pool_max(x, kernel=kernel, stride=stride, padding=padding)


def avg_pool2d(
    x: Tensor,
    kernel: Window,
    stride: Window | None = None,
    padding: Window = 0,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window."""
    stride = kernel if stride is None else stride
    kernel, stride, padding = (_window(v, 2) for v in (kernel, stride, padding))
    return ops.pool_mean(
        x, kernel=kernel, stride=stride, padding=padding, exclude_pad=not count_include_pad
    )


def layer_norm(
    x: Tensor, weight: TensorLike = None, bias: TensorLike = None, eps: float = 1e-5
) -> Tensor:
    """Normalized to mean 0 and variance 1 along the last axis, then times weight, plus bias."""
    return ops.layer_norm(x, weight, bias, -1, eps)


def rms_norm(x: Tensor, weight: TensorLike = None, eps: float = 1e-6) -> Tensor:
    """Divided by the root of the mean square along the last axis, then times weight."""
    return ops.rms_norm(x, weight, None, -1, eps)


def group_norm(
    x: Tensor, groups: int, weight: TensorLike = None, bias: TensorLike = None, eps: float = 1e-5
) -> Tensor:
    """Normalized over each group of channels: x [B, C, ..]."""
    return ops.group_norm(x, weight, bias, eps, num_groups=groups)


def batch_norm(
    x: Tensor,
    running_mean: TensorLike,
    running_var: TensorLike,
    weight: TensorLike = None,
    bias: TensorLike = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalized by given statistics of each channel: x [B, C, ..]. For training:
    ops.batch_norm_training."""
    return ops.batch_norm_inference(x, weight, bias, eps, mean=running_mean, var=running_var)


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: TensorLike = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(scale q k^T + mask) v: q [B, H, S, D], k and v [B, KH, T, D].

    The mask is added to the scores; scale is 1 / sqrt(D) by default. KH divides H: each kv head
    serves a group of heads.
    """
    kind = "bias" if mask is not None else "causal" if is_causal else None
    return ops.attention(
        q,
        k,
        v,
        mask,
        num_heads=q.shape[1],
        num_kv_heads=k.shape[1],
        head_dim=q.shape[3],
        mask_kind=kind,
        score_scale=scale,
        layout="bhsd",
    )


def cross_entropy(logits: Tensor, target: TensorLike, reduction: str = "mean") -> Tensor:
    """-ln softmax(logits)[target]: logits [.., C], target [..] of classes. `reduction` is "mean",
    "sum" or "none"."""
    return _reduced(ops.softmax_cross_entropy(logits, target), reduction)


def mse_loss(x: Tensor, target: TensorLike, reduction: str = "mean") -> Tensor:
    """(x - target)^2."""
    distance = ops.sub(x, target)
    return _reduced(ops.mul(distance, distance), reduction)


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')
    return loss.mean() if reduction == "mean" else loss.sum()


def dropout(x: Tensor, p: float = 0.5, seed: int = 0) -> Tensor:
    """Elements become 0 with probability p, and others x / (1 - p). Compile with `seed`, so that
    each call drops others."""
    return ops.dropout(x, rate=p, seed=seed)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """exp(x) divided by its sum along an axis."""
    return ops.softmax(x, dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    """The logarithm of softmax."""
    return ops.log_softmax(x, dim)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return ops.relu(x)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x / 2 (1 + erf(x / sqrt 2)); its form by tanh if `approximate` is "tanh"."""
    return ops.gelu_approx(x) if approximate == "tanh" else ops.gelu(x)


def silu(x: Tensor) -> Tensor:
    """x sigmoid(x)."""
    return ops.silu(x)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(x)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return ops.tanh(x)


def softplus(x: Tensor) -> Tensor:
    """ln(1 + e^x)."""
    return ops.softplus(x)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x above 0, else negative_slope x."""
    return ops.leaky_relu(x, negative_slope)
