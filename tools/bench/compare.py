#!/usr/bin/env python3
"""Times rlxvk beside PyTorch on one GPU, in one run, and prints the README's performance table.

    tools/bench/compare.py [--program build/bin/rlxvk] [--skip-torch] [--edges]

Needs python3; PyTorch with CUDA for the second column (cuBLAS, cuDNN, cuFFT; exact f32, no TF32). Every row names a case of
`rlxvk bench`, whose time, bytes and operations are used; PyTorch does the same work on operands that no cache holds.
"""
import argparse
import json
import re
import statistics
import subprocess

WORKING_SET = 256 << 20
RUNS = 25


def load_torch():
    try:
        import torch
        import torch.nn.functional as functional
    except ImportError:
        return None, None
    if not torch.cuda.is_available():
        return None, None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch, functional


def operands(torch, *shapes, dtype=None):
    """As many sets of random operands as exceed the caches."""
    dtype = dtype or torch.float32
    size = sum(torch.Size(s).numel() for s in shapes) * torch.empty(0, dtype=dtype).element_size()
    count = max(1, min(32, WORKING_SET // max(size, 1)))
    return [[torch.rand(*s, device="cuda").sub_(0.5).to(dtype) for s in shapes] for _ in range(count)]


def time_us(torch, function, sets):
    """Median time of one call, several calls between two events so that the device is never idle."""
    burst = max(len(sets), 4)
    for i in range(3 * burst):
        function(*sets[i % len(sets)])
    times = []
    for _ in range(RUNS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for i in range(burst):
            function(*sets[i % len(sets)])
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / burst)
    return statistics.median(times)


def square(n, dtype="float32"):
    return lambda t, f: time_us(t, t.matmul, operands(t, (n, n), (n, n), dtype=getattr(t, dtype)))


def rows(function, *shapes):
    return lambda t, f: time_us(t, lambda *x: function(t, f, *x), operands(t, *shapes))


def attention(heads, kv_heads, queries, keys, width, causal, dtype="float32"):
    def run(t, f):
        kind = getattr(t, dtype)
        pairs = operands(t, (1, kv_heads, keys, width), (1, kv_heads, keys, width), dtype=kind)
        query = operands(t, (1, heads, queries, width), dtype=kind)
        sets = [[query[i % len(query)][0], k, v] for i, (k, v) in enumerate(pairs)]
        call = lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                              enable_gqa=heads != kv_heads)
        return time_us(t, call, sets)
    return run


def transform(lines, length):
    def run(t, f):
        sets = [[t.view_as_complex(x)] for (x,) in operands(t, (lines, length, 2))]
        return time_us(t, t.fft.fft, sets)
    return run


NORM = lambda n: lambda t, f, x: f.layer_norm(x, (n,))
RMS = lambda n: lambda t, f, x: f.rms_norm(x, (n,))
# (title, label of the bench case, unit, PyTorch or None)
ROWS = [
    ("copy of 64M elements", "copy 67108864", "TB/s", rows(lambda t, f, x: x.clone(), (1 << 26,))),
    ("add of 64M elements", "add 67108864", "TB/s", rows(lambda t, f, a, b: a + b, (1 << 26,), (1 << 26,))),
    *[(f"f32 matmul {n}", f"matmul f32 {n}", "TFLOP/s", square(n)) for n in (1024, 2048, 4096, 8192)],
    ("split matmul 4096", "matmul split 4096", "TFLOP/s", None),
    *[(f"f16 matmul {n}", f"matmul f16 {n}", "TFLOP/s", square(n, "float16")) for n in (4096, 8192)],
    ("bf16 matmul 4096", "matmul bf16 4096", "TFLOP/s", square(4096, "bfloat16")),
    ("q4_K x 512 columns, 4096x14336, f16", "dequant q4_K 512x4096x14336 in f16", "TFLOP/s", None),
    ("q8_0 x 512 columns, 4096x14336, f16", "dequant q8_0 512x4096x14336 in f16", "TFLOP/s", None),
    ("q4_K x 512 columns, 4096x14336, f32", "dequant_matmul q4_K 512x4096x14336", "TFLOP/s", None),
    ("matrix-vector 4096x14336 f32", "matvec f32 4096x14336", "TB/s",
     rows(lambda t, f, w, x: t.mv(w, x), (4096, 14336), (14336,))),
    ("matrix-vector 4096x14336 f16", "matvec f16 4096x14336", "TB/s", None),
    *[(f"matrix-vector 4096x14336 {q}", f"dequant_matmul {q} 1x4096x14336", "TB/s", None)
      for q in ("q4_K", "q6_K", "q8_0", "q4_0", "q5_K")],
    ("matrix-vector 128256x4096 f32", "matvec f32 128256x4096", "TB/s",
     rows(lambda t, f, w, x: t.mv(w, x), (128256, 4096), (4096,))),
    ("matrix-vector 128256x4096 q4_K", "dequant_matmul q4_K 1x128256x4096", "TB/s", None),
    *[(f"{name} {m}x{n}", f"{label} {m}x{n}", "TB/s", rows(function(n), (m, n)))
      for m, n in ((4096, 4096), (32768, 1024))
      for name, label, function in (("softmax", "softmax", lambda n: lambda t, f, x: t.softmax(x, -1)),
                                    ("layer norm", "layer_norm", NORM), ("rms norm", "rms_norm", RMS),
                                    ("row sum", "reduce_sum", lambda n: lambda t, f, x: x.sum(-1)))],
    ("argmax 512x32000", "argmax 512x32000", "TB/s", rows(lambda t, f, x: x.argmax(-1), (512, 32000))),
    ("cumsum of 2,000,000", "cumsum 2000000", "TB/s", rows(lambda t, f, x: x.cumsum(0), (2000000,))),
    ("causal attention f32 1x32x2048x128", "attention causal 1x32x2048x128", "TFLOP/s",
     attention(32, 32, 2048, 2048, 128, True)),
    ("causal attention f16 1x32x2048x128", "attention f16 causal 1x32x2048x128", "TFLOP/s",
     attention(32, 32, 2048, 2048, 128, True, "float16")),
    ("decode attention, 32 heads (8 kv), 32,768 keys x 128", "attention decode 32 heads (8 kv) 32768x128", "TB/s",
     attention(32, 8, 1, 32768, 128, False)),
    ("conv 3x3 32x256x56x56 -> 256 f32", "conv 3x3 32x256x56x56 -> 256", "TFLOP/s",
     rows(lambda t, f, x, w: f.conv2d(x, w, padding=1), (32, 256, 56, 56), (256, 256, 3, 3))),
    *[(f"FFT of 16.8M points at {n}", f"fft {(1 << 24) // n} lines of {n}", "TB/s", transform((1 << 24) // n, n))
      for n in (1024, 65536, 1048576)],
]

PRODUCT = lambda m, n, k: (f"f32 product {m}x{n}x{k}", f"matmul f32 {m}x{n}x{k}", "TFLOP/s",
                           rows(lambda t, f, a, b: a @ b, (m, k), (k, n)))


def lstm(batch, steps, hidden):
    def run(t, f):
        layer = t.nn.LSTM(hidden, hidden, batch_first=True, device="cuda")
        with t.no_grad():
            return time_us(t, layer, operands(t, (batch, steps, hidden)))
    return run


def scatter_add(count, bins):
    def run(t, f):
        index = t.randint(bins, (count,), device="cuda")
        return time_us(t, lambda x: t.zeros(bins, device="cuda").index_add_(0, index, x), operands(t, (count,)))
    return run


# Shapes at the edges of what the kernels' variants were chosen for.
EDGE_ROWS = [
    ("rng_normal of 64M", "rng_normal 67108864", "TB/s", lambda t, f: time_us(
        t, lambda x: t.randn(1 << 26, device="cuda"), [[None]])),
    ("gelu of 50M", "gelu 52428800", "TB/s", rows(lambda t, f, x: f.gelu(x), (52428800,))),
    *[(f"concat on the last axis, 8192x{a} and x{b}", f"concat 8192x{a} and 8192x{b}", "TB/s",
       rows(lambda t, f, x, y: t.cat((x, y), 1), (8192, a), (8192, b))) for a, b in ((512, 400), (513, 401))],
    *[(f"softmax {m}x{n}", f"softmax {m}x{n}", "TB/s", rows(lambda t, f, x: t.softmax(x, -1), (m, n)))
      for m, n in ((1000, 50257), (300000, 33))],
    *[PRODUCT(*shape) for shape in ((17, 4096, 11008), (17, 11008, 4096), (33, 4096, 4096), (64, 4096, 4096),
                                    (100, 4096, 4096), (128, 4096, 4096), (128, 128, 65536))],
    ("conv 1x1 64x1024x14x14 -> 256", "conv 1x1 64x1024x14x14 -> 256", "TFLOP/s",
     rows(lambda t, f, x, w: f.conv2d(x, w), (64, 1024, 14, 14), (256, 1024, 1, 1))),
    ("conv 3x3x3 4x32x16x56x56 -> 64", "conv 3x3x3 4x32x16x56x56 -> 64", "TFLOP/s",
     rows(lambda t, f, x, w: f.conv3d(x, w, padding=1), (4, 32, 16, 56, 56), (64, 32, 3, 3, 3))),
    ("depthwise 7x7 16x384x28x28", "conv depthwise 7x7 16x384x28x28", "TFLOP/s",
     rows(lambda t, f, x, w: f.conv2d(x, w, padding=3, groups=384), (16, 384, 28, 28), (384, 1, 7, 7))),
    ("attention 8x16x512x64", "attention 8x16x512x64", "TFLOP/s",
     rows(lambda t, f, q, k, v: f.scaled_dot_product_attention(q, k, v), *[(8, 16, 512, 64)] * 3)),
    ("FFT 100,000 lines of 100", "fft 100000 lines of 100", "TB/s", transform(100000, 100)),
    ("FFT 3,000 lines of 3,000", "fft 3000 lines of 3000", "TB/s", transform(3000, 3000)),
    ("FFT of one line of 16.8M", "fft 16777216", "TB/s", transform(1, 1 << 24)),
    ("lstm 128 steps, 512 hidden, batch 64", "lstm 128 steps, 512 hidden, batch 64", "TB/s", lstm(64, 128, 512)),
    ("scatter_add of 1,000,000 to 10", "scatter_add 1000000 to 10", "TB/s", scatter_add(1000000, 10)),
    ("layer_norm2d 8x256x64x64", "layer_norm2d 8x256x64x64", "TB/s", None),
    ("group norm 8x512x64x64, 32 groups", "group_norm 8x512x64x64, 32 groups", "TB/s",
     rows(lambda t, f, x: f.group_norm(x, 32), (8, 512, 64, 64))),
    *[(f"{q} x 4 rows, 4096x14336", f"dequant_matmul {q} 4x4096x14336", "TB/s", None) for q in ("q4_K", "q6_K", "q8_0")],
    ("q4_K experts, 1024 rows, 4096x14336", "dequant_grouped_matmul q4_K 1024x4096x14336", "TFLOP/s", None),
]


def bench(program, table):
    labels = "|".join("^" + re.escape(label).replace("\\ ", " ") + "$" for _, label, _, _ in table)
    out = subprocess.run([program, "bench", "--json", "--filter", labels], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {row["case"]: row for row in json.loads(out)}


def text_us(us):
    return f"{us / 1e3:.2f} ms" if us >= 1e3 else f"{us:.0f} us" if us >= 100 else f"{us:.1f} us"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/rlxvk")
    parser.add_argument("--skip-torch", action="store_true")
    parser.add_argument("--edges", action="store_true", help="the shapes no variant was chosen for, instead")
    arguments = parser.parse_args()
    torch, functional = (None, None) if arguments.skip_torch else load_torch()
    table = EDGE_ROWS if arguments.edges else ROWS
    results = bench(arguments.program, table)
    print("| work | time | rate | of ceiling | PyTorch | of PyTorch's speed |\n|---|---|---|---|---|---|")
    for title, label, unit, function in table:
        row = results.get(label)
        if not row:
            print(f"| {title} | not run | | | | |")
            continue
        rate = row["gflops" if unit == "TFLOP/s" else "gbps"] / 1e3
        peer = function(torch, functional) if torch and function else None
        if torch:
            torch.cuda.empty_cache()
        beside = (text_us(peer), f"{100 * peer / row['us']:.0f} %") if peer else ("", "")
        print(f"| {title} | {text_us(row['us'])} | {rate:.3g} {unit} | {100 * row['ceiling']:.0f} % | {beside[0]} | {beside[1]} |", flush=True)


if __name__ == "__main__":
    main()
