#!/usr/bin/env python3
"""Compares the variants of products, convolutions and attention on GPUs of AMD that are not here, by the word of Mesa's compiler.

    test/compilers/estimate.py shapes               prints the shapes as case lines, for `rlxvk bench --shapes`
    test/compilers/estimate.py table FOLDER NAME... [--all]

FOLDER has, of each device, NAME-chosen.json and NAME-each.json, which `rlxvk bench --pipelines --statistics --shapes` printed without and
with --each-variant, and NAME.asm, the programs that RADV_DEBUG=shaders,shaderstats printed: `test/compilers.sh estimate` makes them.

The compiler gives the cycles that a subgroup takes alone (latency), and those that it takes of its SIMD (inverse throughput). It takes a
loop to run 8 times, a loop in it 4 times, a uniform branch half the time. Here, loops with multiply-adds run as often as the shape's
multiply-adds ask for, with those that tiles waste. The two figures grow with the instructions that are run. Workgroups are spread over the
compute units. A time is at least that of the shape's bytes at full bandwidth, and each dispatch adds a fixed time.

What it does not know: misses of caches, conflicts of banks, loads at strides, and waits at barriers. It also takes a loop that runs only
if a sum is NaN for one that always runs: conv_strips has two. So a ratio is a question to ask of a device, and no answer. Variants of one
kernel are compared best.
"""
import collections
import json
import math
import os
import re
import sys

DISPATCH = 3e-6  # seconds between two dispatches

# Compute units, SIMDs and multiply-adds a cycle of one, cycles and bytes a second: RX 7900 XTX, RX 6800, Radeon Pro VII.
DEVICES = {"navi31": (96, 2, 128, 2.3e9, 960e9), "navi21": (60, 2, 64, 2.1e9, 512e9), "vega20": (60, 4, 64, 1.7e9, 1024e9)}


# ---- Shapes ----

# A label, a case line, its multiply-adds, the bytes of its operands and its result, and the rows and columns that tiles cover.
Shape = collections.namedtuple("Shape", "label line multiplies bytes rows columns")

def product(m, n, k, batch=1, transposed=False):
    head = "%dx" % batch if batch > 1 else ""
    b = (n, k) if transposed else (k, n)
    line = "matmul transpose_b=%d in=a:f32:%s%dx%d;b:f32:%s%dx%d" % (transposed, head, m, k, head, *b)
    return Shape("matmul %s%dx%dx%d%s" % (head, m, n, k, " bT" if transposed else ""), line, batch * m * n * k,
                 4 * batch * (m * k + k * n + m * n), m, n)


def conv(x, w, attributes="padding=1,1", groups=1, stride=1):
    n, c, size = x
    m, kernel = w
    out = (size // stride) ** 2
    line = "conv %s%s in=x:f32:%dx%dx%dx%d:unit;w:f32:%dx%dx%dx%d:unit" % (
        attributes, " groups=%d" % groups if groups > 1 else "", n, c, size, size, m, c // groups, kernel, kernel)
    taps = c // groups * kernel * kernel
    return Shape("conv %dx%d %dx%dx%dx%d to %d%s" % (kernel, kernel, n, c, size, size, m, ", depthwise" if groups > 1 else ""), line,
                 n * m * out * taps, 4 * (n * c * size * size + m * taps + n * m * out), m // groups, n * out)


def attention(label, mask, heads, kv_heads, queries, keys, width):
    line = "attention layout=bhsd mask=%s in=q:f32:1x%dx%dx%d:unit;k:f32:1x%dx%dx%d:unit;v:f32:1x%dx%dx%d" % (
        mask, heads, queries, width, kv_heads, keys, width, kv_heads, keys, width)
    seen = queries * keys if mask == "none" else queries * (2 * keys - queries + 1) // 2
    return Shape("attention %s" % label, line, 2 * heads * seen * width, 4 * width * (2 * heads * queries + 2 * kv_heads * keys),
                 queries, 1)


def packed(form, row_bytes, rows):
    line = "dequant_matmul format=%s in=x:f32:%dx4096;w:u8:4096x%d:quant:%s" % (form, rows, row_bytes, form)
    return Shape("%s %dx4096x4096" % (form, rows), line, rows << 24, 4096 * row_bytes + 32768 * rows, rows, 4096)


SHAPES = [
    product(4096, 4096, 4096), product(512, 4096, 14336), product(128, 4096, 4096, 1, True), product(32, 4096, 4096),
    product(1, 4096, 4096), product(1, 4096, 4096, 1, True), product(64, 64, 65536), product(512, 512, 64, 32),
    conv((1, 64, 56), (64, 3)), conv((32, 64, 56), (64, 3)), conv((1, 512, 7), (512, 3)), conv((32, 256, 56), (64, 1), ""),
    conv((32, 3, 224), (64, 7), "stride=2,2 padding=3,3", 1, 2), conv((32, 256, 56), (256, 3), "padding=1,1", 256),
    attention("causal 32x2048x128", "causal", 32, 32, 2048, 2048, 128), attention("12x128x64", "none", 12, 12, 128, 128, 64),
    attention("decode 32 heads (8 kv) 4096x128", "none", 32, 8, 1, 4096, 128),
    packed("q4_k", 2304, 1), packed("q4_k", 2304, 8), packed("q4_k", 2304, 512),
    packed("q8_0", 4352, 1), packed("q8_0", 4352, 8), packed("q8_0", 4352, 512),
]


# Rows and columns of tiles whose names do not tell them. Those of attention cover rows only.
TILES = {"direct_few": (8, 2), "direct_block": (8, 4), "direct_single": (1, 4), "direct_depthwise": (1, 2), "tile_split": (32, 1),
         "tiled": (16, 64)}


def done_by(row, shape):
    """The multiply-adds that a row of a choice table does for a shape: tiles compute also what lies beyond the shape's end."""
    named = re.fullmatch(r"(tile|tiled|packed)_(\d+)x(\d+).*", row)
    rows, columns = TILES.get(row, (1, 1))
    if named:
        rows, columns = int(named[2]), 1 if named[1] == "tile" else int(named[3])
    whole = -(-shape.rows // rows) * rows * (-(-shape.columns // columns) * columns)
    return shape.multiplies * whole / (shape.rows * shape.columns)


# ---- Programs ----

Block = collections.namedtuple("Block", "instructions successors")  # successors: (block, share of the flow)


def read_programs(path):
    """The instructions of each program by its hash, of which JSON has 9 digits."""
    programs, lines = {}, []
    inside = False
    with open(path, errors="replace") as file:
        for line in file:
            if line.startswith("disasm:"):
                inside, lines = True, []
            elif line.startswith("*** SHADER STATS"):
                inside = False
            elif line.startswith("Hash: "):
                programs.setdefault("%.9g" % int(line[6:]), lines)
            elif inside and line.strip():
                lines.append(line.split(";")[0].strip())
    return programs


def blocks_of(lines):
    """Blocks in the order of the program, without shares of flow."""
    starts, blocks, current = {}, [], []
    for line in lines:
        if re.fullmatch(r"BB\d+:", line):
            if current or not blocks:
                blocks.append(current)
            current = []
            starts[line[:-1]] = len(blocks)
        else:
            current.append(line)
            if re.match(r"s_(cbranch|branch|endpgm)", line):
                blocks.append(current)
                current = []
    blocks.append(current)
    out = []
    for i, block in enumerate(blocks):
        last = block[-1].split() if block else [""]
        target = starts.get(last[-1], len(blocks) - 1) if len(last) > 1 else None
        if last[0] == "s_branch":
            successors = [(target, 1.0)]
        elif last[0].startswith("s_cbranch"):
            taken = 0.25 if "exec" in last[0] else 0.5
            successors = [(target, taken), (i + 1, 1 - taken)]
        elif last[0] == "s_endpgm":
            successors = []
        else:
            successors = [(i + 1, 1.0)]
        out.append(Block(block, [s for s in successors if s[0] < len(blocks)]))
    return out


def order_of(blocks):
    """The blocks in reverse postorder, and the edges back to a block on the way to their own."""
    order, back, state = [], [], {}
    stack = [(0, iter(blocks[0].successors))]
    state[0] = "open"
    while stack:
        block, rest = stack[-1]
        for successor, _ in rest:
            if state.get(successor) == "open":
                back.append((block, successor))
            elif successor not in state:
                state[successor] = "open"
                stack.append((successor, iter(blocks[successor].successors)))
                break
        else:
            state[block] = "done"
            order.append(block)
            stack.pop()
    return order[::-1], back


def loops_of(blocks, back):
    """The set of blocks of each loop by the block through which it is entered."""
    before = collections.defaultdict(set)
    for i, block in enumerate(blocks):
        for successor, _ in block.successors:
            before[successor].add(i)
    loops = {}
    for last, head in back:
        inside, pending = loops.setdefault(head, {head}), [last]
        while pending:
            block = pending.pop()
            if block not in inside:
                inside.add(block)
                pending += before[block]
    return loops


def flows_of(blocks):
    """How often each block is run, as the compiler guesses, and the loops."""
    order, back = order_of(blocks)
    loops = loops_of(blocks, back)
    exits = {head: sum(1 for i in inside for s, _ in blocks[i].successors if s not in inside) for head, inside in loops.items()}
    flows, entered = [1.0] + [0.0] * (len(blocks) - 1), {}
    for i in order:
        around = [head for head, inside in loops.items() if i in inside]
        if i in loops:
            entered[i] = flows[i]
            flows[i] *= {1: 8.0, 2: 4.0}.get(len(around), 2.0)
        # Of the loops that an edge leaves, the outermost is the largest. The flow into a loop leaves it, too.
        left = [[head for head in around if s not in loops[head]] for s, _ in blocks[i].successors]
        for (successor, share), heads in zip(blocks[i].successors, left):
            if heads:
                head = max(heads, key=lambda h: len(loops[h]))
                flows[successor] += entered[head] / exits[head]
            elif (i, successor) not in back:
                flows[successor] += flows[i] * (1.0 if any(left) else share)
    return flows, loops


SLOW = re.compile(r"v_(rcp|rsq|sqrt|exp|log|sin|cos|mul_lo_u32|mul_hi|mad_u64|mad_co_u64)")


def cost_of(instruction):
    name = instruction.split()[0]
    if name.startswith("v_"):
        return 4.0 if SLOW.match(name) else 1.0
    if name.startswith("ds_"):
        return 4.0 if "128" in name or "2" in name.split("_")[-1] else 2.0
    if name.startswith(("buffer_", "global_")):
        return 4.0
    return 0.25 if name.startswith("s_") and not name.startswith(("s_wait", "s_delay", "s_nop", "s_barrier")) else 0.0


def multiplies_of(instruction):
    """Multiply-adds of an invocation. Of products of bytes, four make one, because x has four digits."""
    if re.match(r"v_dot4", instruction):
        return 1
    if re.match(r"v_mul_i32_i24_sdwa", instruction):
        return 0.25
    if re.match(r"v_(pk_fma|dot2)", instruction):
        return 2
    return len(re.findall(r"v_(?:dual_)?(?:fma|fmac|mac|mad|fmaak|fmamk|madak|madmk|fma_mix)(?:_legacy)?_f(?:32|16)", instruction))


class Program:
    """Cost inside the loops with multiply-adds, cost elsewhere, and multiply-adds of these loops, as the compiler guesses."""

    def __init__(self, lines):
        blocks = blocks_of(lines)
        flows, loops = flows_of(blocks)
        counts = [sum(multiplies_of(x) for x in block.instructions) * flow for block, flow in zip(blocks, flows)]
        costs = [sum(cost_of(x) for x in block.instructions) * flow for block, flow in zip(blocks, flows)]
        within = [sum(counts[i] for i in inside) for inside in loops.values()]
        # A loop that only finishes the result has few multiply-adds.
        busy = set()
        for inside, count in zip(loops.values(), within):
            if count and count > 0.05 * max(within):
                busy |= inside
        self.inside = sum(costs[i] for i in busy)
        self.outside = sum(costs) - self.inside
        self.multiplies = sum(counts[i] for i in busy)
        self.loose = sum(counts) - self.multiplies

    def growth(self, wanted):
        """By what the figures grow if an invocation has so many multiply-adds, and how often the loops run by the guess."""
        if self.multiplies < 0.2 * (self.multiplies + self.loose) or not self.multiplies:
            return 1.0, 0.0
        rounds = max(wanted - self.loose, 0) / self.multiplies
        return (self.outside + rounds * self.inside) / (self.outside + self.inside), rounds


# ---- Times ----

def seconds_of(dispatch, pipeline, program, wanted, device):
    """Of one dispatch; `wanted`: all its multiply-adds, or None."""
    units, simds, _, clock, _ = DEVICES[device]
    threads, wave = dispatch["constants"][0], pipeline["subgroup_size"] or 64
    groups = math.prod(dispatch["groups"])
    growth = program.growth(wanted / (groups * threads))[0] if wanted else 1.0
    waves = math.ceil(math.ceil(groups / units) * math.ceil(threads / wave) / simds)
    share = min(threads, wave) / 64  # inverse throughput is of 64 invocations
    alone = pipeline["latency"] * math.ceil(waves / pipeline["occupancy"])
    return growth * max(waves * share * pipeline["inverse_throughput"], alone) / clock


def key_of(d):
    return d["kernel"], tuple(d["constants"])


def estimate(row, dispatches, pipelines, programs, shape, device):
    """Seconds, and the pipeline that has the multiply-adds."""
    work = [d for d in dispatches if not d["prepares"]]
    found = [(d, pipelines[key_of(d)]) for d in work]
    of = [programs["%.9g" % p["statistics"]["Hash"]] for _, p in found]
    main = max(range(len(work)), key=lambda i: (of[i].multiplies + of[i].loose) * math.prod(work[i]["groups"]) * work[i]["constants"][0])
    total = sum(seconds_of(d, p, of[i], done_by(row, shape) if i == main else None, device) for i, (d, p) in enumerate(found))
    bytes_time = shape.bytes / DEVICES[device][4]
    return max(total, bytes_time) + DISPATCH * len(work), found[main][1]


def lowerings_of(report):
    """The dispatches of each lowering in f32, in lists by case."""
    out = {}
    for d in report["dispatches"]:
        if d["precision"] == "f32":
            out.setdefault(d["case"], {}).setdefault(d["lowering"], []).append(d)
    return {case: list(lists.values()) for case, lists in out.items()}


def row_of(dispatches):
    """The row that was asked for; the chosen one without its kind."""
    rows = [d["variant"].split("=")[-1] for d in dispatches if "variant" in d]
    return rows[-1] if rows else "-"


def load(folder, device):
    reports = []
    for kind in ("chosen", "each"):
        with open(os.path.join(folder, "%s-%s.json" % (device, kind))) as file:
            reports.append(json.load(file))
    pipelines = {key_of(p): p for report in reports for p in report["pipelines"]}
    programs = {number: Program(lines) for number, lines in read_programs(os.path.join(folder, device + ".asm")).items()}
    return reports, pipelines, programs


def table(folder, devices, everything):
    for device in devices:
        (chosen, each), pipelines, programs = load(folder, device)
        print("%s (%s)\n%-40s %-18s %9s %-18s %9s %6s %9s %6s" % (
            device, chosen["driver"], "shape", "chosen", "us", "best", "us", "ratio", "bytes us", "peak"))
        of_chosen, of_each = lowerings_of(chosen), lowerings_of(each)
        for shape in SHAPES:
            if shape.line not in of_chosen:
                print("%-40s cannot be lowered" % shape.label)
                continue
            (dispatches,) = of_chosen[shape.line]
            row = row_of(dispatches)
            own = estimate(row, dispatches, pipelines, programs, shape, device)
            times = {row: own}
            for other in of_each.get(shape.line, []):
                # Weights that were unpacked before have other bytes.
                if not any(d["prepares"] and d["kernel"].startswith("dequant") for d in other):
                    times.setdefault(row_of(other), estimate(row_of(other), other, pipelines, programs, shape, device))
            best = min(times, key=lambda v: times[v][0])
            units, _, lanes, clock, bandwidth = DEVICES[device]
            print("%-40s %-18s %9.1f %-18s %9.1f %6.2f %9.1f %5.0f%%" % (
                shape.label, row, own[0] * 1e6, best, times[best][0] * 1e6, own[0] / times[best][0], shape.bytes / bandwidth * 1e6,
                100 * shape.multiplies / (units * lanes * clock * own[0])))
            for variant in sorted(times, key=lambda v: times[v][0]) if everything else []:
                p = times[variant][1]
                print("    %-22s %9.1f us  %-24s throughput %6d latency %6d occupancy %2d registers %3d shared %5d" % (
                    variant, times[variant][0] * 1e6, p["kernel"], p["inverse_throughput"], p["latency"], p["occupancy"], p["registers"],
                    p["shared_bytes"]))


def main(arguments):
    if arguments == ["shapes"]:
        print("\n".join(shape.line for shape in SHAPES))
        return 0
    names = [a for a in arguments[2:] if a != "--all"]
    if len(arguments) < 3 or arguments[0] != "table" or not names or any(n not in DEVICES for n in names):
        sys.exit(__doc__)
    table(arguments[1], names, "--all" in arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
