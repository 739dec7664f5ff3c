#!/usr/bin/env python3
"""Golden cases that no framework at hand computes alike, in Python's doubles from their definitions.

Writes the arrays beside this file and prints the lines of cases.txt.
"""

import math
import os
import random
import struct
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))


def save(name, values, shape, kind):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': %s, }" % (kind, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(os.path.join(HERE, name + ".npy"), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%d%s" % (len(values), kind[0] == "f" and ("f" if kind == "f4" else "d")), *values))


def f32(values):
    return [struct.unpack("f", struct.pack("f", v))[0] for v in values]


def case(name, attributes, inputs, output):
    """inputs: (operand, values, shape); output: the same."""
    parts = []
    for operand, values, shape in inputs:
        save("%s.%s" % (name, operand), values, shape, "f4")
        parts.append("%s:%s.%s.npy" % (operand, name, operand))
    operand, values, shape = output
    save("%s.%s" % (name, operand), values, shape, "f8")
    op = name.split(".")[0]
    text = "%s op=%s %s in=%s out=%s:%s.%s.npy"
    print(" ".join((text % (name, op, attributes, ";".join(parts), operand, name, operand)).split()))


# ---- Fake quantization ----


def away(v):
    return math.copysign(math.floor(abs(v) + 0.5), v)


def channels(shape, axis):
    """The channel of each element."""
    inner = math.prod(shape[axis + 1 :]) if axis is not None else 1
    count = shape[axis] if axis is not None else 1
    return [i // inner % count for i in range(math.prod(shape))], count


def batch_scales(x, where, count, most):
    largest = [0.0] * count
    for v, c in zip(x, where):
        largest[c] = max(largest[c], abs(v))
    return [max(v / most, 1e-12) for v in largest]


def rounded(x, where, scales, most):
    return [max(-most, min(most, away(v / scales[c]))) * scales[c] for v, c in zip(x, where)]


def estimate(ste, v, s, most):
    if ste == "clipped":
        return 1.0 if abs(v) <= most * s else 0.0
    if ste == "tanh":
        return 1 - math.tanh(v / s) ** 2
    return max(0.0, 1 - abs(v / (most * s))) if ste == "hard_tanh" else 1.0


def fake_quantize():
    random.seed(11)
    spec = f32([-1.4, 0.3, 0.7, 2.1])
    case("fake_quantize.0", "bits=4", [("x", spec, [4])], ("y", [-1.5, 0.3, 0.6, 2.1], [4]))
    learned = [("x", f32([0.4, -2, 0.9]), [3]), ("scale", [0.5], [1])]
    dy = [("dy", [1, 2, 3], [3])]
    case("fake_quantize_lsq.0", "bits=2", learned, ("y", [0.5, -0.5, 0.5], [3]))
    case("fake_quantize_lsq_backward_x.0", "bits=2", learned + dy, ("dx", [1, 0, 0], [3]))
    case("fake_quantize_lsq_backward_scale.0", "bits=2", learned + dy, ("ds", [1.2], [1]))
    shape = [4, 6, 5]
    for number, (bits, axis) in enumerate([(8, 1), (3, 0), (5, 2), (4, None)]):
        most = 2 ** (bits - 1) - 1
        attributes = "bits=%d" % bits + (" axis=%d" % axis if axis is not None else "")
        where, count = channels(shape, axis)
        x = f32([random.gauss(0, 1.5) for _ in where])
        dy = f32([random.gauss(0, 1) for _ in where])
        scale = f32([random.uniform(0.02, 0.4) for _ in range(count)])
        found = batch_scales(x, where, count, most)
        case("fake_quantize.%d" % (1 + number), attributes, [("x", x, shape)],
             ("y", rounded(x, where, found, most), shape))
        averaged = [0.75 * a + 0.25 * b for a, b in zip(scale, found)]
        operands = [("x", x, shape), ("scale", scale, [count])]
        case("fake_quantize.%d" % (5 + number), attributes + " mode=ema decay=0.75", operands,
             ("y", rounded(x, where, averaged, most), shape))
        case("fake_quantize.%d" % (9 + number), attributes + " mode=ema decay=0.75 result=state",
             operands, ("state", averaged, [count]))
        for index, ste in enumerate(["identity", "clipped", "tanh", "hard_tanh"]):
            case("fake_quantize_backward.%d" % (4 * number + index),
                 attributes + " mode=fixed ste=" + ste,
                 [("x", x, shape), ("dy", dy, shape), ("scale", scale, [count])],
                 ("dx", [d * estimate(ste, v, scale[c], most) for v, d, c in zip(x, dy, where)], shape))
        sums = [0.0] * count
        for v, d, c in zip(x, dy, where):
            z = v / scale[c]
            sums[c] += d * (away(z) - z if abs(z) <= most else math.copysign(most, z))
        case("fake_quantize_lsq_backward_scale.%d" % (1 + number), attributes,
             operands + [("dy", dy, shape)], ("ds", sums, [count]))


# ---- Batch norm in training ----


def batch_norm():
    random.seed(12)
    for number, (shape, eps, momentum) in enumerate(
        [([6, 3], 1e-5, 0.1), ([2, 4, 5], 1e-3, 0.25), ([3, 2, 4, 4], 1e-5, 1.0)]
    ):
        where, count = channels(shape, 1)
        x = f32([random.gauss(0.5, 2) for _ in where])
        dy = f32([random.gauss(0, 1) for _ in where])
        gamma, beta, means, variances = (
            f32([random.uniform(0.3, 2) for _ in range(count)]) for _ in range(4)
        )
        attributes = "eps=%g momentum=%g" % (eps, momentum)
        y, dx, parameters = [0.0] * len(x), [0.0] * len(x), [0.0] * (2 * count)
        statistics, new_means, new_variances = [0.0] * (3 * count), [], []
        for c in range(count):
            mine = [i for i in range(len(x)) if where[i] == c]
            n = len(mine)
            mean = math.fsum(x[i] for i in mine) / n
            variance = math.fsum((x[i] - mean) ** 2 for i in mine) / n
            s = 1 / math.sqrt(variance + f32([eps])[0])
            normal = {i: (x[i] - mean) * s for i in mine}
            product = math.fsum(dy[i] * normal[i] for i in mine)
            total = math.fsum(dy[i] for i in mine)
            statistics[c], statistics[2 * count + c] = mean, s
            parameters[c], parameters[count + c] = product, total
            m = f32([momentum])[0]
            new_means.append((1 - m) * means[c] + m * mean)
            new_variances.append((1 - m) * variances[c] + m * variance * n / (n - 1))
            for i in mine:
                y[i] = normal[i] * gamma[c] + beta[c]
                dx[i] = s * gamma[c] * (dy[i] - total / n - normal[i] * product / n)
        vectors = [("gamma", gamma, [count]), ("beta", beta, [count])]
        averages = [("mean", means, [count]), ("variance", variances, [count])]
        operands = [("x", x, shape)]
        case("batch_norm_training.%d" % number, attributes, operands + vectors + averages,
             ("y", y, shape))
        for k, (result, values) in enumerate([("mean", new_means), ("variance", new_variances)]):
            case("batch_norm_statistics.%d" % (3 * number + k), attributes + " result=" + result,
                 operands + averages, ("new_" + result, values, [count]))
        case("batch_norm_statistics.%d" % (3 * number + 2), attributes, operands,
             ("y", statistics, [3, count]))
        operands.append(("dy", dy, shape))
        case("batch_norm_backward_parameters.%d" % number, attributes, operands,
             ("y", parameters, [2, count]))
        case("batch_norm_backward_input.%d" % number, attributes, operands + vectors[:1],
             ("dx", dx, shape))


# ---- Linear attention ----


def attention_by_pairs(q, k, v, g, beta, first, scale):
    """One head and batch row without a recurrence: every step reads all changes before it.

    q [steps][queries][n], k [steps][n], v [steps][m], g [steps][n], beta [steps] or None, first
    [n][m]. Returns y [steps][queries][m] and the last state.
    """
    n, m = len(first), len(first[0])
    logs = [[math.fsum(g[u][i] for u in range(t + 1)) for i in range(n)] for t in range(len(k))]
    changes, y = [], []

    def read(x, t, to):
        """The state at time t, seen through x: of the first state, and of `to` changes."""
        out = []
        for j in range(m):
            terms = [x[i] * math.exp(logs[t][i]) * first[i][j] for i in range(n)]
            for s in range(to):
                seen = math.fsum(x[i] * math.exp(logs[t][i] - logs[s][i]) * k[s][i] for i in range(n))
                terms.append(seen * changes[s][j])
            out.append(math.fsum(terms))
        return out

    for t in range(len(k)):
        before = read(k[t], t, t) if beta else [0.0] * m
        strength = beta[t] if beta else 1.0
        changes.append([strength * (v[t][j] - before[j]) for j in range(m)])
        y.append([[scale * value for value in read(x, t, t + 1)] for x in q[t]])
    unit = [[float(i == row) for i in range(n)] for row in range(n)]
    return y, [read(row, len(k) - 1, len(k)) for row in unit]


def linear_attention():
    random.seed(13)
    rules = [("", ""), ("head", "beta"), ("key", ""), ("key", "beta"), ("", "beta"), ("head", "")]
    for number, (decays, delta) in enumerate(rules):
        b, steps, h, queries, n, m = 2, 6, 2, 1 + number % 3, 4, 3 + number % 2
        carried, scale = number % 2 == 1, [0.0, 0.75][number // 3]

        def draw(low, high, *shape):
            return f32([random.uniform(low, high) for _ in range(math.prod(shape))])

        q, k = draw(-1, 1, b, steps, h * queries, n), draw(-0.5, 0.5, b, steps, h, n)
        v, first = draw(-1, 1, b, steps, h, m), draw(-1, 1, b, h, n, m)
        g = draw(-1, 0, b, steps, h, *([n] if decays == "key" else []))
        beta = draw(0, 1, b, steps, h)
        y, last = [0.0] * (b * steps * h * queries * m), []
        for row, head in [(row, head) for row in range(b) for head in range(h)]:
            at = [(row * steps + t) * h + head for t in range(steps)]
            logs = {"": [[0.0] * n] * steps, "head": [[g[i]] * n for i in at if decays == "head"],
                    "key": [g[i * n : (i + 1) * n] for i in at]}[decays]
            state = (row * h + head) * n
            made, final = attention_by_pairs(
                [[q[(i * queries + u) * n : (i * queries + u + 1) * n] for u in range(queries)] for i in at],
                [k[i * n : (i + 1) * n] for i in at],
                [v[i * m : (i + 1) * m] for i in at],
                logs,
                [beta[i] for i in at] if delta else None,
                [first[(state + i) * m : (state + i + 1) * m] if carried else [0.0] * m for i in range(n)],
                scale or 1 / math.sqrt(n),
            )
            for t, i in enumerate(at):
                for u in range(queries):
                    y[(i * queries + u) * m : (i * queries + u + 1) * m] = made[t][u]
            last += [value for line in final for value in line]
        inputs = [("q", q, [b, steps, h * queries, n]), ("k", k, [b, steps, h, n]), ("v", v, [b, steps, h, m])]
        if decays:
            inputs.append(("g", g, [b, steps, h] + ([n] if decays == "key" else [])))
        if delta:
            inputs.append(("beta", beta, [b, steps, h]))
        if carried:
            inputs.append(("state", first, [b, h, n, m]))
        attributes = "scale=%g" % scale if scale else ""
        case("linear_attention.%d" % number, attributes, inputs, ("y", y, [b, steps, h * queries, m]))
        if carried:
            case("linear_attention.%d" % (6 + number // 2), attributes + " show=state", inputs,
                 ("last", last, [b, h, n, m]))


# ---- Inverses ----


def exact_inverse(a, n):
    """Of a matrix of floats, in fractions."""
    rows = [[Fraction(v) for v in a[i * n : (i + 1) * n]] + [Fraction(int(i == k)) for k in range(n)] for i in range(n)]
    for k in range(n):
        at = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                rows[i] = [v - rows[i][k] * w for v, w in zip(rows[i], rows[k])]
    return [float(v) for row in rows for v in row[n:]]


def inverse():
    random.seed(14)
    for number, (batch, n) in enumerate([(3, 2), (2, 3), (2, 5), (1, 12)]):
        a = f32([random.uniform(-1, 1) + 2 * (i % (n + 1) == 0) for _ in range(batch) for i in range(n * n)])
        y = [v for b in range(batch) for v in exact_inverse(a[b * n * n : (b + 1) * n * n], n)]
        case("inverse.%d" % number, "", [("a", a, [batch, n, n])], ("y", y, [batch, n, n]))


if __name__ == "__main__":
    fake_quantize()
    batch_norm()
    linear_attention()
    inverse()
