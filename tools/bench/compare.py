#!/usr/bin/env python3
"""Times rlxvk beside PyTorch on one GPU, in one run, and prints the tables of tools/bench/PERFORMANCE.md.

    tools/bench/compare.py [--program build/bin/rlxvk] [--skip-torch] [--edges | --domain | --training | --inference | --precision P]

Needs python3; PyTorch with CUDA for the second column (cuBLAS, cuDNN, cuFFT; exact f32, no TF32). Every row names a case of
`rlxvk bench`, or several whose times add, and their time, bytes and operations are used; PyTorch does the same work on
operands that no cache holds. With --training, a second table has the whole steps of `rlxvk bench --training` (compare_nets.py);
with --inference, the only table has the whole runs of `rlxvk bench --inference`. With --precision f16 or bf16, the rows are the
work of matrix units, of f32 operands if the row does not say otherwise; PyTorch gets operands that are 16 bits wide already.
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


def operands(torch, *shapes, dtype="float32"):
    """Makes so many sets of random operands that the caches cannot hold them."""
    dtype = getattr(torch, dtype)
    size = sum(torch.Size(s).numel() for s in shapes) * torch.empty(0, dtype=dtype).element_size()
    count = max(1, min(32, WORKING_SET // max(size, 1)))
    return [[torch.rand(*s, device="cuda").sub_(0.5).to(dtype) for s in shapes] for _ in range(count)]


def time_us(torch, function, sets, runs=RUNS):
    """Median time of one call. Two events enclose several calls, so that the device is never idle."""
    burst = max(len(sets), 4)
    for i in range(3 * burst):
        function(*sets[i % len(sets)])
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(burst * 100000)  # cycles; the host gets ahead, because calls of autograd are slow to start
        begin.record()
        for i in range(burst):
            function(*sets[i % len(sets)])
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / burst)
    return statistics.median(times)


def rows(function, *shapes, dtype="float32"):
    return lambda t, f: time_us(t, lambda *x: function(t, f, *x), operands(t, *shapes, dtype=dtype))


def square(n, dtype="float32"):
    return rows(lambda t, f, a, b: a @ b, (n, n), (n, n), dtype=dtype)


def attention(heads, kv_heads, queries, keys, width, causal, dtype="float32"):
    def run(t, f):
        pairs = operands(t, (1, kv_heads, keys, width), (1, kv_heads, keys, width), dtype=dtype)
        query = operands(t, (1, heads, queries, width), dtype=dtype)
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


def gradient(function, *shapes, whole=False, dtype="float32"):
    """Times autograd of a function, on operands of these shapes. If `whole`, the forward pass counts, too."""
    def run(t, f):
        sets = []
        for leaves in operands(t, *shapes, dtype=dtype):
            y = function(t, f, *[x.requires_grad_() for x in leaves])
            sets.append([leaves, None if whole else y, t.rand_like(y)])
        def call(leaves, y, dy):
            y = function(t, f, *leaves) if y is None else y
            return t.autograd.grad(y, leaves, dy, retain_graph=not whole)
        return time_us(t, call, sets)
    return run


NORM = lambda n: lambda t, f, x: f.layer_norm(x, (n,))
RMS = lambda n: lambda t, f, x: f.rms_norm(x, (n,))
# (title, label of the bench case or a tuple of labels, unit, function for PyTorch or None)
ROWS = [
    ("copy of 64M elements", "copy 67108864", "TB/s", rows(lambda t, f, x: x.clone(), (1 << 26,))),
    ("add of 64M elements", "add 67108864", "TB/s", rows(lambda t, f, a, b: a + b, (1 << 26,), (1 << 26,))),
    *[(f"f32 matmul {n}", f"matmul f32 {n}", "TFLOP/s", square(n)) for n in (1024, 2048, 4096, 8192)],
    ("split matmul 4096", "matmul split 4096", "TFLOP/s", None),
    *[(f"f16 matmul {n}", f"matmul f16 {n}", "TFLOP/s", square(n, "float16")) for n in (4096, 8192)],
    ("bf16 matmul 4096", "matmul bf16 4096", "TFLOP/s", square(4096, "bfloat16")),
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


# Shapes at the limits for which the kernels' variants were chosen.
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


def lstm_and_gradient(batch, steps, hidden):
    def run(t, f):
        layer = t.nn.LSTM(hidden, hidden, batch_first=True, device="cuda")
        sets = [[x.requires_grad_(), dy] for x, dy in operands(t, (batch, steps, hidden), (batch, steps, hidden))]
        return time_us(t, lambda x, dy: t.autograd.grad(layer(x)[0], [x, *layer.parameters()], dy), sets)
    return run


def adamw(count):
    def run(t, f):
        p = t.nn.Parameter(t.rand(count, device="cuda"))
        p.grad = t.rand(count, device="cuda")
        return time_us(t, t.optim.AdamW([p], fused=True).step, [[]])
    return run


def cross_entropy(timed, lines, classes):
    def run(t, f):
        labels = t.randint(classes, (lines,), device="cuda")
        return timed(lambda t, f, x: f.cross_entropy(x, labels, reduction="none"), (lines, classes))(t, f)
    return run


NORM_PARTS = lambda norm, shape: tuple(f"{norm}_backward_{part} {shape}" for part in ("input", "parameters"))
CONV = ((32, 256, 56, 56), (256, 256, 3, 3))
TRAINING_ROWS = [
    *[(f"causal attention and its gradient {'x'.join(map(str, shape))}",
       f"attention and gradient causal {'x'.join(map(str, shape))}", "TFLOP/s",
       gradient(lambda t, f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), *[shape] * 3, whole=True))
      for shape in ((1, 32, 2048, 128), (8, 12, 1024, 64))],
    ("gradient of layer norm 4096x4096", NORM_PARTS("layer_norm", "4096x4096"), "TB/s",
     gradient(lambda t, f, x, w, b: f.layer_norm(x, (4096,), w, b), (4096, 4096), (4096,), (4096,))),
    ("gradient of rms norm 32768x1024", NORM_PARTS("rms_norm", "32768x1024"), "TB/s",
     gradient(lambda t, f, x, w: f.rms_norm(x, (1024,), w, 1e-5), (32768, 1024), (1024,))),
    ("gradient of group norm 8x512x64x64, 32 groups", "group_norm gradient 8x512x64x64, 32 groups", "TB/s",
     gradient(lambda t, f, x, w, b: f.group_norm(x, 32, w, b), (8, 512, 64, 64), (512,), (512,))),
    ("gradient of softmax 4096x4096", "softmax_backward 4096x4096", "TB/s",
     gradient(lambda t, f, x: t.softmax(x, -1), (4096, 4096))),
    ("gradient of gelu of 64M", "activation_backward gelu 67108864", "TB/s", gradient(lambda t, f, x: f.gelu(x), (1 << 26,))),
    ("cross entropy 4096x32000", "cross entropy 4096x32000", "TB/s", cross_entropy(rows, 4096, 32000)),
    ("its gradient", "cross entropy backward 4096x32000", "TB/s", cross_entropy(gradient, 4096, 32000)),
    ("gradient of conv 3x3 32x256x56x56 -> 256 by its input", "conv_backward_input 3x3 32x256x56x56 -> 256", "TFLOP/s",
     rows(lambda t, f, dy, w: t.nn.grad.conv2d_input(CONV[0], w, dy, padding=1), *CONV)),
    ("by its weight", "conv_backward_weight 3x3 32x256x56x56 -> 256", "TFLOP/s",
     rows(lambda t, f, x, dy: t.nn.grad.conv2d_weight(x, CONV[1], dy, padding=1), CONV[0], CONV[0])),
    ("gradient of max pool 3x3/2 32x64x112x112", "pool_max_backward 3x3/2 32x64x112x112", "TB/s",
     gradient(lambda t, f, x: f.max_pool2d(x, 3, 2, 1), (32, 64, 112, 112))),
    ("gradient of an embedding, 65,536 ids of 32000x1024", "gather_backward 65536 rows of 1024 to 32000", "TB/s",
     gradient(lambda t, f, w: f.embedding(t.randint(32000, (65536,), device="cuda"), w), (32000, 1024))),
    ("lstm, 512 steps, 1024 hidden, batch 1", "lstm 512 steps, 1024 hidden, batch 1", "TB/s", lstm(1, 512, 1024)),
    ("the same and its gradient", "lstm and gradient 512 steps, 1024 hidden, batch 1", "TB/s", lstm_and_gradient(1, 512, 1024)),
    ("AdamW on 100M values", "adamw 100000000", "TB/s", adamw(100000000)),
]


def nearest(points, width, k, lines=10000):
    """The k nearest neighbours of every point. The matrix of distances is computed `lines` rows at a time to save memory."""
    def run(t, f):
        def call(x):
            return [t.cdist(part, x, compute_mode="use_mm_for_euclid_dist").topk(k, largest=False) for part in x.split(lines)]
        return time_us(t, call, operands(t, (points, width)), runs=5)
    return run


def spectrum(samples, n_fft, hop, function):
    """Times function(f, spectra) with the STFT of a signal, [n_fft / 2 + 1, frames]. If it is None, times the inverse STFT."""
    def run(t, f):
        window = t.hann_window(n_fft, device="cuda")
        forward = lambda x: t.stft(x, n_fft, hop, window=window, center=function is None, return_complex=True)
        sets = operands(t, (samples,))
        if function is None:
            back = lambda x: t.istft(x, n_fft, hop, window=window)
            return time_us(t, back, [[forward(x)] for (x,) in sets])
        return time_us(t, lambda x: function(t, forward(x)), sets)
    return run


def log_mel(mels, n_fft):
    def call(t, spectra):
        filters = call.filters.setdefault(t, t.rand(mels, n_fft // 2 + 1, device="cuda"))
        return (filters @ spectra.abs().square()).clamp_min(1e-10).log10()
    call.filters = {}
    return call


def turned(t, f, x):
    """A grid over the image, rotated by 15 degrees, as the fill `turned` of rlxvk's cases."""
    theta = t.tensor([[0.966, -0.259, 0], [0.259, 0.966, 0]], device="cuda").expand(x.shape[0], 2, 3)
    return f.affine_grid(theta, x.shape, align_corners=False)


def sampled(grid_of, size, by=None):
    """Times grid_sample of images, or its gradient with respect to "x" or "grid"."""
    def run(t, f):
        sets = []
        for (x,) in operands(t, size):
            grid = grid_of(t, f, x).contiguous()
            leaf = {"x": x, "grid": grid}.get(by)
            if by:
                leaf.requires_grad_()
            y = f.grid_sample(x, grid, align_corners=False)
            sets.append([x, grid, y, t.rand_like(y), leaf])
        if not by:
            return time_us(t, lambda x, grid, *_: f.grid_sample(x, grid, align_corners=False), sets)
        return time_us(t, lambda x, grid, y, dy, leaf: t.autograd.grad(y, leaf, dy, retain_graph=True), sets)
    return run


def indexed(function, shape, count, limit):
    """Times function(t, x, indices, updates). Indices have shape `count` and are below `limit`; updates have the shape of x."""
    def run(t, f):
        index = t.randint(limit, count, device="cuda")
        return time_us(t, lambda x, u: function(t, x, index, u), operands(t, shape, shape))
    return run


ANYWHERE = lambda t, f, x: t.rand(x.shape[0], *x.shape[2:], 2, device="cuda") * 2 - 1
SCALED = lambda size, **how: lambda t, f, x: f.interpolate(x, size, **how)
IMAGES, SQUARE = (8, 64, 256, 256), (4096, 4096)
DOMAIN_ROWS = [
    ("splats, 1M to 1920x1080", "gaussian_splat_render 1M 1920x1080", "TB/s", None),
    ("gradient of splats, 1M to 1920x1080, the picture again", "gaussian_splat_render_backward 1M 1920x1080", "TB/s", None),
    ("15 nearest of 100,000 points of 128", "knn 15 of 100000x128", "TB/s", nearest(100000, 128, 15)),
    ("log-mel of 60 s at 16 kHz", "log_mel of 60 s at 16 kHz", "TB/s", spectrum(960000, 400, 160, log_mel(80, 400))),
    ("Welch's average of 2^24 samples by 1024", "welch of 16777216 by 1024", "TB/s",
     spectrum(1 << 24, 1024, 512, lambda t, x: x.abs().square().mean(-1))),
    ("istft of 2^24 samples by 1024", "istft of 32767 frames of 1024 by 512", "TB/s", spectrum(1 << 24, 1024, 512, None)),
    ("resampling 2^23 samples to 160 of 147", "resample 160 of 147, 8388608", "TB/s", None),
    ("sort of 16.8M", "sort 16777216", "TB/s", rows(lambda t, f, x: t.sort(x), (1 << 24,))),
    ("argsort of 16.8M", "argsort 16777216", "TB/s", rows(lambda t, f, x: t.argsort(x), (1 << 24,))),
    ("sort of rows, 4096x4096", "sort 4096x4096", "TB/s", rows(lambda t, f, x: t.sort(x, -1), SQUARE)),
    ("argsort of rows, 4096x4096", "argsort 4096x4096", "TB/s", rows(lambda t, f, x: t.argsort(x, -1), SQUARE)),
    ("sort of rows, 262144x64", "sort 262144x64", "TB/s", rows(lambda t, f, x: t.sort(x, -1), (262144, 64))),
    ("grid_sample, turned, 8x64x256x256", "grid_sample bilinear 8x64x256x256, turned", "TB/s", sampled(turned, IMAGES)),
    ("grid_sample, anywhere", "grid_sample bilinear 8x64x256x256", "TB/s", sampled(ANYWHERE, IMAGES)),
    ("its gradient by x, turned", "grid_sample_backward_input bilinear 8x64x256x256, turned", "TB/s",
     sampled(turned, IMAGES, "x")),
    ("its gradient by x, anywhere", "grid_sample_backward_input bilinear 8x64x256x256", "TB/s",
     sampled(ANYWHERE, IMAGES, "x")),
    ("its gradient by the grid, turned", "grid_sample_backward_grid bilinear 8x64x256x256, turned", "TB/s",
     sampled(turned, IMAGES, "grid")),
    ("resize linear 8x64x256x256 to 512", "resize linear 8x64x256x256 to 512x512", "TB/s",
     rows(SCALED(512, mode="bilinear"), IMAGES)),
    ("resize cubic 8x64x256x256 to 512", "resize cubic 8x64x256x256 to 512x512", "TB/s", rows(SCALED(512, mode="bicubic"), IMAGES)),
    ("resize nearest 8x64x256x256 to 512", "resize nearest 8x64x256x256 to 512x512", "TB/s", rows(SCALED(512), IMAGES)),
    ("resize linear 8x64x512x512 to 256", "resize linear 8x64x512x512 to 256x256", "TB/s",
     rows(SCALED(256, mode="bilinear"), (8, 64, 512, 512))),
    ("gradient of resize linear 256 to 512", "resize_backward linear 8x64x512x512 to 256x256", "TB/s",
     gradient(SCALED(512, mode="bilinear"), IMAGES)),
    ("pad, mirrored, 4096x4096", "pad reflect 4096x4096", "TB/s",
     rows(lambda t, f, x: f.pad(x[None], (1, 1, 1, 1), mode="reflect"), SQUARE)),
    ("pad, constant, 4096x4096", "pad constant 4096x4096", "TB/s", rows(lambda t, f, x: f.pad(x, (1, 1, 1, 1)), SQUARE)),
    ("roll of columns, 4096x4096", "roll columns 4096x4096", "TB/s", rows(lambda t, f, x: x.roll(5, 1), SQUARE)),
    ("tile 2048x2048 by 2x2", "tile 2048x2048 by 2x2", "TB/s", rows(lambda t, f, x: x.repeat(2, 2), (2048, 2048))),
    ("slice of columns, 4096x4095 of 4096", "slice columns 4096x4096", "TB/s",
     rows(lambda t, f, x: x[:, 1:].contiguous(), SQUARE)),
    *[(f"scatter{' sums' if add else ''} in {name}, 4096x4096", f"scatter{' sums' if add else ''} in {name} 4096x4096", "TB/s",
       indexed(lambda t, x, i, u, axis=axis, add=add: x.scatter_add(axis, i, u) if add else x.scatter(axis, i, u),
               SQUARE, SQUARE, 4096)) for add in (False, True) for name, axis in (("rows", 1), ("columns", 0))],
    *[(f"scatter_nd{' sums' if add else ''} of whole rows, 4096x4096", f"scatter_nd{' sums of' if add else ''} rows 4096x4096", "TB/s",
       indexed(lambda t, x, i, u, add=add: x.index_put((i,), u, accumulate=add), SQUARE, (4096,), 4096)) for add in (False, True)],
    ("gather_nd of rows, 4096x4096", "gather_nd rows 4096x4096", "TB/s", indexed(lambda t, x, i, u: x[i], SQUARE, (4096,), 4096)),
    ("histogram of 64M to 256", "histogram 67108864 to 256", "TB/s",
     rows(lambda t, f, x: t.histc(x, 256, -3, 3), (1 << 26,))),
    ("bincount of 16.8M to 65,536", "bincount 16777216 to 65536", "TB/s",
     indexed(lambda t, x, i, u: t.bincount(i, minlength=65536), (1,), (1 << 24,), 65536)),
    ("one_hot, 65,536 of 1024", "one_hot 65536 of 1024", "TB/s",
     lambda t, f: time_us(t, lambda i: f.one_hot(i, 1024), [[t.randint(1024, (65536,), device="cuda")]])),
    ("topk 50 of 512x32000", "topk 50 of 512x32000", "TB/s", rows(lambda t, f, x: t.topk(x, 50), (512, 32000))),
]


def precision_rows(precision):
    """The work of matrix units; the cases without a precision of their own run in this one."""
    dtype = {"f16": "float16", "bf16": "bfloat16"}[precision]
    half = lambda function, *shapes: rows(function, *shapes, dtype=dtype)
    product = lambda m, n, k: half(lambda t, f, a, b: a @ b, (m, k), (k, n))
    packed = lambda m, n, k: half(lambda t, f, a, b: a @ b.mT, (m, k), (n, k))
    image, filters = CONV
    return [
        *[(f"product {n}, operands of 16 bits", f"matmul {precision} {n}", "TFLOP/s", square(n, dtype)) for n in (4096, 8192)],
        *[(f"product {m}x{n}x{k}", f"matmul {precision} {m}x{n}x{k}, f32 operands", "TFLOP/s", product(m, n, k))
          for m, n, k in ((512, 14336, 4096), (512, 4096, 14336), (1500, 5120, 1280), (16384, 1024, 1024), (2048, 32000, 2048),
                          (32, 4096, 4096), (631, 4096, 4096))],
        *[(f"{q} weights x {m} columns, {n}x{k}", f"dequant {q} {m}x{n}x{k} in {precision}", "TFLOP/s", packed(m, n, k))
          for q, m, n, k in (*[(q, 512, 4096, 14336) for q in ("q4_K", "q8_0", "q6_K", "q4_0", "iq4_xs", "q2_K", "iq2_s")],
                             ("q4_K", 4096, 28672, 4096), ("q6_K", 4096, 4096, 14336))
          if precision == "f16" or (q, m) == ("q4_K", 512)],
        *[(f"attention {label}", f"attention {label}", "TFLOP/s", attention(*shape, dtype))
          for label, shape in (("causal 1x32x2048x128", (32, 32, 2048, 2048, 128, True)),
                               ("causal 1x32x4096x128 (8 kv)", (32, 8, 4096, 4096, 128, True)),
                               ("1x192x197x64", (192, 192, 197, 197, 64, False)),
                               ("1x16x4096x80", (16, 16, 4096, 4096, 80, False)))],
        *[(f"attention and its gradient, causal {'x'.join(map(str, shape))}",
           f"attention and gradient causal {'x'.join(map(str, shape))}", "TFLOP/s",
           gradient(lambda t, f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), *[shape] * 3, whole=True,
                    dtype=dtype))
          for shape in ((1, 32, 2048, 128), (8, 12, 1024, 64))],
        ("conv 3x3 32x256x56x56 -> 256", "conv 3x3 32x256x56x56 -> 256", "TFLOP/s",
         half(lambda t, f, x, w: f.conv2d(x, w, padding=1), image, filters)),
        ("its gradient by the input", "conv_backward_input 3x3 32x256x56x56 -> 256", "TFLOP/s",
         half(lambda t, f, dy, w: t.nn.grad.conv2d_input(image, w, dy, padding=1), image, filters)),
        ("by the weight", "conv_backward_weight 3x3 32x256x56x56 -> 256", "TFLOP/s",
         half(lambda t, f, x, dy: t.nn.grad.conv2d_weight(x, filters, dy, padding=1), image, image)),
        ("conv 1x1 64x1024x14x14 -> 256", "conv 1x1 64x1024x14x14 -> 256", "TFLOP/s",
         half(lambda t, f, x, w: f.conv2d(x, w), (64, 1024, 14, 14), (256, 1024, 1, 1))),
    ]


def run_bench(program, *options):
    out = subprocess.run([program, "bench", "--json", *options], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def labels_of(row):
    return (row[1],) if isinstance(row[1], str) else row[1]


def bench(program, table, *options):
    labels = [label for row in table for label in labels_of(row)]
    cases = "|".join("^" + re.escape(label).replace("\\ ", " ") + "$" for label in labels)
    return {row["case"]: row for row in run_bench(program, "--filter", cases, *options)}


def added(parts):
    """Joins several rows into one. Its rates are those over the sum of their times."""
    if not all(parts):
        return None
    us = sum(part["us"] for part in parts)
    return {"us": us, **{key: sum(part[key] * part["us"] for part in parts) / us for key in ("gbps", "gflops", "ceiling")}}


def text_us(us):
    return f"{us / 1e3:.2f} ms" if us >= 1e3 else f"{us:.0f} us" if us >= 100 else f"{us:.1f} us"


def print_steps(program, torch):
    if torch:
        import compare_nets
    print("\n| training step | time | a second | memory | PyTorch | of PyTorch's speed | its memory |")
    print("|---|---|---|---|---|---|---|")
    for precision in ("f32", "f16", "bf16"):
        for step in run_bench(program, "--training", "--precision", precision):
            title = f"{step['net']}, {precision}{', recomputing' if step['recompute'] else ''}"
            beside = ("", "", "")
            if torch:
                ms, size = compare_nets.measure(step["net"], precision, step["recompute"])
                beside = (f"{ms:.1f} ms", f"{100 * ms / step['ms']:.0f} %", f"{size / 1e9:.2f} GB")
            print(f"| {title} | {step['ms']:.1f} ms | {step['items_per_second']:,.0f} {step['items']} | "
                  f"{step['bytes'] / 1e9:.2f} GB | {beside[0]} | {beside[1]} | {beside[2]} |", flush=True)


def print_runs(program, torch):
    if torch:
        import compare_nets
    print("| run, f32 | on the device | by the clock | a second | memory | PyTorch | of PyTorch's speed |\n|---|---|---|---|---|---|---|")
    for run in run_bench(program, "--inference"):
        beside = ("", "")
        if torch:
            ms = compare_nets.measure_runs(run["net"])
            beside = (f"{ms:.2f} ms", f"{100 * ms / run['ms']:.0f} %")
        print(f"| {run['net']} | {run['ms']:.2f} ms | {run['clock_ms']:.2f} ms | {run['items_per_second']:,.0f} {run['items']} | "
              f"{run['bytes'] / 1e9:.2f} GB | {beside[0]} | {beside[1]} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/rlxvk")
    parser.add_argument("--skip-torch", action="store_true")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--edges", action="store_true", help="the shapes no variant was chosen for, instead")
    other.add_argument("--domain", action="store_true", help="arrays, images, signals, neighbours, splats, instead")
    other.add_argument("--training", action="store_true", help="gradients and whole training steps, instead")
    other.add_argument("--inference", action="store_true", help="whole runs of nets, instead")
    other.add_argument("--precision", choices=("f16", "bf16"), help="the work of matrix units in this precision, instead")
    arguments = parser.parse_args()
    torch, functional = (None, None) if arguments.skip_torch else load_torch()
    if arguments.inference:
        print_runs(arguments.program, torch)
        return
    table = next((table for asked, table in ((arguments.edges, EDGE_ROWS), (arguments.domain, DOMAIN_ROWS),
                                             (arguments.training, TRAINING_ROWS)) if asked), ROWS)
    options = ["--precision", arguments.precision] if arguments.precision else []
    table = precision_rows(arguments.precision) if arguments.precision else table
    results = bench(arguments.program, table, *options)
    print("| work | time | rate | of ceiling | PyTorch | of PyTorch's speed |\n|---|---|---|---|---|---|")
    for entry in table:
        title, _, unit, function = entry
        row = added([results.get(label) for label in labels_of(entry)])
        if not row:
            print(f"| {title} | not run | | | | |")
            continue
        rate = row["gflops" if unit == "TFLOP/s" else "gbps"] / 1e3
        peer = function(torch, functional) if torch and function else None
        if torch:
            torch.cuda.empty_cache()
        beside = (text_us(peer), f"{100 * peer / row['us']:.0f} %") if peer else ("", "")
        print(f"| {title} | {text_us(row['us'])} | {rate:.3g} {unit} | {100 * row['ceiling']:.0f} % | {beside[0]} | {beside[1]} |", flush=True)
    if arguments.training:
        print_steps(arguments.program, torch)


if __name__ == "__main__":
    main()
