"""Writes small ONNX models, without any package of ONNX."""
from __future__ import annotations

import struct
from typing import Any

import numpy as np

# Numbers of element types in ONNX.
TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "bfloat16": 16,
}


def number(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(index: int, content: Any) -> bytes:
    if isinstance(content, int):
        return number(index << 3) + number(content)
    if isinstance(content, float):
        return number(index << 3 | 5) + struct.pack("<f", content)
    content = content.encode() if isinstance(content, str) else content
    return number(index << 3 | 2) + number(len(content)) + content


def tensor(name: str, array: np.ndarray) -> bytes:
    out = b"".join(field(1, size) for size in array.shape)
    return out + field(2, TYPES[array.dtype.name]) + field(8, name) + field(9, array.tobytes())


def outside(name: str, array: np.ndarray, file: str) -> bytes:
    """A tensor whose elements are in a file of their own."""
    out = b"".join(field(1, size) for size in array.shape)
    out += field(2, TYPES[array.dtype.name]) + field(8, name)
    return out + field(13, field(1, "location") + field(2, file)) + field(14, 1)


def attribute(name: str, value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return field(1, name) + field(5, tensor("", value)) + field(20, 4)
    if isinstance(value, (list, tuple)):
        return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)
    place, kind = {float: (2, 1), int: (3, 2), str: (4, 3)}[type(value)]
    return field(1, name) + field(place, value) + field(20, kind)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> bytes:
    """Names are separated by spaces. The first output names the node."""
    out = b"".join(field(1, name) for name in inputs.split())
    out += b"".join(field(2, name) for name in outputs.split())
    out += field(3, outputs.split()[0]) + field(4, op)
    return out + b"".join(field(5, attribute(n, v)) for n, v in attributes.items())


def value(name: str, dtype: str, dims: tuple[int | str, ...] | None) -> bytes:
    kind = field(1, TYPES[dtype])
    if dims is not None:
        kind += field(2, b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in dims))
    return field(1, name) + field(2, field(1, kind))


def model(
    nodes: list[bytes],
    inputs: list[tuple[str, str, tuple[int | str, ...]]],
    outputs: list[tuple[str, str, tuple[int | str, ...] | None]],
    weights: dict[str, np.ndarray | bytes] | None = None,
) -> bytes:
    """A weight is an array, or a tensor of ONNX as bytes."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph")
    for name, weight in (weights or {}).items():
        graph += field(5, weight if isinstance(weight, bytes) else tensor(name, weight))
    graph += b"".join(field(11, value(*v)) for v in inputs)
    graph += b"".join(field(12, value(*v)) for v in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def identity(dtype: str, dims: tuple[int | str, ...] = ("n",)) -> bytes:
    """y = x."""
    return model([node("Identity", "x", "y")], [("x", dtype, dims)], [("y", dtype, dims)])


def net() -> tuple[bytes, Any]:
    """y = relu(x a + b) c for x [batch, 5], and the same in NumPy, in double precision."""
    rng = np.random.default_rng(3)
    a, b, c = (rng.normal(size=s).astype(np.float32) for s in ((5, 7), (7,), (7, 3)))
    nodes = [
        node("MatMul", "x a", "xa"),
        node("Add", "xa b", "sum"),
        node("Relu", "sum", "hidden"),
        node("MatMul", "hidden c", "y"),
    ]
    content = model(
        nodes,
        [("x", "float32", ("batch", 5))],
        [("y", "float32", ("batch", 3))],
        {"a": a, "b": b, "c": c},
    )
    return content, lambda x: np.maximum(x.astype(float) @ a + b, 0) @ c.astype(float)
