#!/usr/bin/env python3
"""Writes a large ONNX model of random weights, to measure loading: random_onnx.py OUT.onnx [MEGABYTES [external]].

The model is a chain of matrix products with 2048 x 2048 weights in f32, 16.8 MB each; 500 MB without a number. With
`external`, the weights are in OUT.onnx.data. It needs only Python."""
import random, struct, sys

SIZE = 2048
FLOAT, EXTERNAL = 1, 1


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(index, content):
    if isinstance(content, int):
        return number(index << 3) + number(content)
    content = content.encode() if isinstance(content, str) else content
    return number(index << 3 | 2) + number(len(content)) + content


def value(name, rows):
    dims = b"".join(field(1, field(1, size)) for size in (rows, SIZE))
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


def weight(index):
    """Numbers of about 0.02 in magnitude. Each weight is a rotation of the same ones, because making them takes long."""
    at = 4 * (index * 7919 % (SIZE * SIZE))
    return BLOCK[at:] + BLOCK[:at]


def main():
    path = sys.argv[1]
    layers = max(1, round(float(sys.argv[2] if len(sys.argv) > 2 else 500) * 1e6 / (4 * SIZE * SIZE)))
    external = sys.argv[3:] == ["external"]
    names = [f"w{i}" for i in range(layers)]
    graph = field(2, "chain") + field(11, value("x", 1)) + field(12, value(f"x{layers}", 1))
    for i in range(layers):
        node = field(1, f"x{i}" if i else "x") + field(1, names[i]) + field(2, f"x{i + 1}") + field(4, "MatMul")
        graph += field(1, node)
    heads = []
    for i in range(layers):
        head = field(1, SIZE) + field(1, SIZE) + field(2, FLOAT) + field(8, names[i])
        if external:
            pairs = {"location": path.split("/")[-1] + ".data", "offset": str(i * len(BLOCK)), "length": str(len(BLOCK))}
            head += b"".join(field(13, field(1, k) + field(2, v)) for k, v in pairs.items()) + field(14, EXTERNAL)
            graph += field(5, head)
        else:
            heads.append(head + number(9 << 3 | 2) + number(len(BLOCK)))
    tensors = sum(len(number(5 << 3 | 2) + number(len(h) + len(BLOCK))) + len(h) + len(BLOCK) for h in heads)
    with open(path, "wb") as out: # piece by piece: the whole does not fit every memory
        out.write(field(1, 8) + field(8, field(1, "") + field(2, 17)))
        out.write(number(7 << 3 | 2) + number(len(graph) + tensors) + graph)
        for i, head in enumerate(heads):
            out.write(number(5 << 3 | 2) + number(len(head) + len(BLOCK)) + head)
            out.write(weight(i))
    if external:
        with open(path + ".data", "wb") as out:
            for i in range(layers):
                out.write(weight(i))


random.seed(1)
LITTLE = [random.uniform(-0.04, 0.04) for _ in range(65521)] # a prime, so that rows differ
BLOCK = (struct.pack("<65521f", *LITTLE) * (SIZE * SIZE // 65521 + 1))[: 4 * SIZE * SIZE]
main()
