"""Measures the nets of tools/bench/bench_nets.c in PyTorch. For compare.py --training it measures time and memory of whole
training steps, for compare.py --inference the time of whole runs.

Architectures, batches, losses, clipping and optimizers are those of tools/bench/bench_training.c, in eager mode. A step goes
from a batch on the device to the loss on the host. Precisions other than f32 use autocast without a scaled loss. In that
case, convolutions have channels last, because PyTorch recommends it.
"""
import functools
import statistics
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 12  # timed steps, after two that are not
RUNS = 30  # timed runs, after five that are not
DTYPES = {"f32": None, "f16": torch.float16, "bf16": torch.bfloat16}


def attend(q, k, v, causal=True):
    """q: [batch, context, heads, size]; k and v may have fewer heads. Returns [batch, context, heads * size]."""
    k, v = (x.repeat_interleave(q.shape[2] // x.shape[2], 2) for x in (k, v))
    y = functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=causal)
    return y.transpose(1, 2).flatten(2)


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.output(attend(*self.all(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)))
        return x + self.down(functional.gelu(self.up(self.norm(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, tokens=50257, context=1024, width=768, heads=12, blocks=12):
        super().__init__()
        self.embedding, self.places = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, run):
        x = self.embedding(x) + self.places.weight
        for block in self.blocks:
            x = run(block, x)
        return functional.linear(self.norm(x), self.embedding.weight)


class ByteBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, ffn, context):
        super().__init__()
        self.size = width // heads
        linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
        self.attention_norm, self.norm = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query, self.key, self.value = (linear(width, n * self.size) for n in (heads, kv_heads, kv_heads))
        self.output = linear(width, width)
        self.gate, self.up, self.down = linear(width, ffn), linear(width, ffn), linear(ffn, width)
        frequencies = 10000.0 ** (-2 * torch.arange(self.size // 2) / self.size)
        angles = torch.arange(context)[:, None, None] * frequencies
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def rotate(self, x):
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * self.cosines - b * self.sines, a * self.sines + b * self.cosines), -1).flatten(-2)

    def forward(self, x):
        h = self.attention_norm(x)
        q, k, v = (part(h).unflatten(-1, (-1, self.size)) for part in (self.query, self.key, self.value))
        x = x + self.output(attend(self.rotate(q), self.rotate(k), v))
        h = self.norm(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class ByteModel(nn.Module):
    def __init__(self, vocabulary=320, context=512, width=256, heads=4, kv_heads=2, ffn=768, blocks=6):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(ByteBlock(width, heads, kv_heads, ffn, context) for _ in range(blocks))
        self.norm, self.output = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x, run):
        x = self.embedding(x)
        for block in self.blocks:
            x = run(block, x)
        return self.output(self.norm(x))


def conv_norm(inputs, outputs, kernel, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = conv_norm(inputs, outputs, 3, stride), conv_norm(outputs, outputs, 3, 1)
        self.side = conv_norm(inputs, outputs, 1, stride) if stride != 1 else nn.Identity()

    def forward(self, x):
        y = self.second(functional.relu(self.first(x), inplace=True))
        return functional.relu(y + self.side(x), inplace=True)


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = conv_norm(3, 64, 7, 2)
        self.blocks = nn.ModuleList(Residual(max(64, 32 << stage) if not block else 64 << stage, 64 << stage,
                                             2 if stage and not block else 1)
                                    for stage in range(4) for block in range(2))
        self.output = nn.Linear(512, classes)

    def forward(self, x, run):
        x = functional.max_pool2d(functional.relu(self.stem(x), inplace=True), 3, 2, 1)
        for block in self.blocks:
            x = run(block, x)
        return self.output(x.mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.down, self.middle = conv_norm(inputs, width, 1, 1), conv_norm(width, width, 3, stride)
        self.up = conv_norm(width, 4 * width, 1, 1)
        self.side = conv_norm(inputs, 4 * width, 1, stride) if inputs != 4 * width else nn.Identity()

    def forward(self, x):
        y = functional.relu(self.down(x), inplace=True)
        y = self.up(functional.relu(self.middle(y), inplace=True))
        return functional.relu(y + self.side(x), inplace=True)


class ResNet50(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = conv_norm(3, 64, 7, 2)
        blocks, inputs = [], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for block in range(count):
                blocks.append(Bottleneck(inputs, 64 << stage, 2 if stage and not block else 1))
                inputs = 256 << stage
        self.blocks, self.output = nn.Sequential(*blocks), nn.Linear(2048, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.stem(x), inplace=True), 3, 2, 1)
        return self.output(self.blocks(x).mean((2, 3)))


class BertBlock(Gpt2Block):
    """The same parts, but norms come after the sums, and every token attends to all others."""

    def forward(self, x):
        y = attend(*self.all(x).unflatten(-1, (3, self.heads, -1)).unbind(2), causal=False)
        x = self.attention_norm(x + self.output(y))
        return self.norm(x + self.down(functional.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary=30522, context=128, width=768, heads=12, blocks=12):
        super().__init__()
        self.embedding, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.norm, self.pool = nn.LayerNorm(width), nn.Linear(width, width)
        self.blocks = nn.Sequential(*(BertBlock(width, heads) for _ in range(blocks)))

    def forward(self, x):
        return self.pool(self.blocks(self.norm(self.embedding(x) + self.places.weight))[:, 0]).tanh()


def tokens(batch, context):
    return torch.randint(319, (batch, context)), torch.randint(319, (batch, context))


# The names of `rlxvk bench --training`, each with its net and batch.
NETS = {"gpt2 124M": (Gpt2, lambda: tokens(8, 1024)),
        "byte model": (ByteModel, lambda: tokens(16, 512)),
        "resnet18": (ResNet18, lambda: (torch.rand(64, 3, 224, 224) * 2 - 1, torch.randint(999, (64,))))}


# The names of `rlxvk bench --inference`, each with its net and batch.
TRAINED = {"resnet50": (ResNet50, lambda: torch.rand(32, 3, 224, 224) * 2 - 1),
           "bert base": (Bert, lambda: torch.randint(3000, (32, 128)))}


def build(name, precision):
    """Makes a net, its optimizer and a batch, on the device."""
    make, batch = NETS[name]
    net, (x, y) = make().cuda(), batch()
    for p in net.parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=0.02)
    if x.dim() == 4:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=True)
        if precision != "f32":
            net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    else:
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)
    return net, optimizer, x.cuda(), y.flatten().cuda()


def measure(name, precision, recompute):
    """Milliseconds of a step, and the peak of allocated bytes during the timed steps."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    net, optimizer, x, y = build(name, precision)
    kept = lambda block, h: block(h)
    run = functools.partial(checkpoint, use_reentrant=False, preserve_rng_state=False) if recompute else kept

    def step():
        with torch.autocast("cuda", DTYPES[precision], enabled=precision != "f32"):
            loss = functional.cross_entropy(net(x, run).flatten(0, -2), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    times = []
    for turn in range(2 + STEPS):
        torch.cuda.synchronize()
        if turn == 2:  # until here cuDNN tries its algorithms
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[2:]), torch.cuda.max_memory_allocated() - before


def time_runs(net, x):
    """Milliseconds of a run on the device."""
    times = []
    for _ in range(5 + RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        net(x)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[5:])


def time_layouts(net, x, prepare=lambda net: net):
    """Milliseconds of a run on the device. Images have the faster one of both layouts."""
    with torch.inference_mode():
        times = [time_runs(prepare(net), x)]
        if x.dim() == 4:
            net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
            times.append(time_runs(prepare(net), x))
    return min(times)


def measure_runs(name):
    """Milliseconds of a run in f32."""
    torch.cuda.empty_cache()
    make, batch = TRAINED[name]
    return time_layouts(make().cuda().eval(), batch().cuda())
