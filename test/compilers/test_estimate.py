#!/usr/bin/env python3
"""Tests estimate.py with planted programs and reports. The last line is "N passed, N failed"."""
import io
import json
import math
import os
import sys
import tempfile
from contextlib import redirect_stdout

sys.dont_write_bytecode = True
import estimate  # noqa: E402

# A loop, of which a branch leaves from its middle, with a loop inside; behind it a branch of some lanes.
NESTED = """BB0:
    s_mov_b32 s0, 0
BB1:
    v_fma_f32 v0, v1, v2, v3
    s_cbranch_scc0 BB4
BB2:
    v_fma_f32 v0, v1, v2, v3
    s_cbranch_scc1 BB2
BB3:
    s_branch BB1
BB4:
    s_cbranch_execz BB6
BB5:
    v_add_f32 v0, v0, v0
BB6:
    s_endpgm"""
# A loop that is entered in its middle, as the compiler lays loops out.
ROTATED = """BB0:
    s_branch BB2
BB1:
    v_fmac_f32_e32 v0, v1, v2
BB2:
    v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmac_f32 v3, v4, v5
    s_cbranch_scc0 BB1
BB3:
    s_endpgm"""


def lines_of(text):
    return [line.strip() for line in text.splitlines()]


def flows(text):
    blocks = estimate.blocks_of(lines_of(text))
    found, loops = estimate.flows_of(blocks)
    by_first = {block.instructions[0].split()[0]: flow for block, flow in zip(blocks, found) if block.instructions}
    return by_first, len(loops), found[-1] if blocks[-1].instructions else found[-2]


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def check_flows():
    first, loops, last = flows(NESTED)
    # The inner loop runs 8 times 4 times; what leaves the outer one is what entered it.
    good = loops == 2 and near(first["v_add_f32"], 0.75) and near(last, 1) and near(first["v_fma_f32"], 32)
    first, loops, last = flows(ROTATED)
    return good and loops == 1 and near(first["v_dual_fmac_f32"], 8) and near(first["v_fmac_f32_e32"], 8) and near(last, 1)


def check_growth():
    program = estimate.Program(lines_of(ROTATED))
    growth, rounds = program.growth(240)
    # 24 multiply-adds by the guess: twice each instruction of the loop, which are nearly all.
    return near(program.multiplies, 24) and near(rounds, 10) and 9 < growth < 10 and program.growth(24)[0] == 1


def check_multiplies():
    wanted = {"v_fma_f32 v0, v1, v2, v3": 1, "v_pk_fma_f16 v0, v1, v2, v3": 2, "v_dot4_i32_iu8 v0": 1, "v_mul_i32_i24_sdwa v0": 0.25,
              "v_add_f32 v0, v1, v2": 0, "v_mac_f32_e32 v0, v1, v2": 1}
    return all(estimate.multiplies_of(x) == n for x, n in wanted.items())


def check_tiles():
    shape = estimate.product(32, 100, 10)
    done = {"tiled_32x128": 1.28, "tiled_128x100_long": 4, "vector": 1, "direct_few": 1}
    rows = estimate.attention("", "none", 1, 1, 1, 64, 64)
    return all(near(estimate.done_by(row, shape), n * shape.multiplies) for row, n in done.items()) and \
        near(estimate.done_by("tile_32x64", rows), 32 * rows.multiplies)


def check_lines():
    return all(len(s.line) < 512 and s.multiplies > 0 and s.bytes > 0 for s in estimate.SHAPES) and len(estimate.SHAPES) >= 20


def dispatch(variant, lowering, constant):
    line = estimate.SHAPES[0].line
    return {"kernel": "matmul_tiled", "constants": [256, constant], "case": line, "precision": "f32", "variant": variant,
            "lowering": lowering, "groups": [1024, 1, 1], "prepares": False}


def pipeline(constant, throughput, number):
    return {"kernel": "matmul_tiled", "constants": [256, constant], "subgroup_size": 64, "inverse_throughput": throughput, "latency": 2 * throughput,
            "occupancy": 8, "registers": 64, "shared_bytes": 0, "statistics": {"Hash": number}}


def check_table():
    chosen = {"driver": "radv", "pipelines": [pipeline(0, 3000, 4123456790)], "dispatches": [dispatch("tiled_128x128", 1, 0)]}
    each = {"driver": "radv", "pipelines": [pipeline(1, 2000, 7)],
            "dispatches": [dispatch("matmul=tiled_64x64", 1, 1), dispatch("matmul=tiled_128x128", 2, 0)]}
    assembly = "".join("disasm:\n%s\nCompute Shader:\n*** SHADER STATS ***\nHash: %d\n" % (ROTATED, n) for n in (4123456789, 7))
    with tempfile.TemporaryDirectory() as folder:
        for kind, report in (("chosen", chosen), ("each", each)):
            with open(os.path.join(folder, "navi31-%s.json" % kind), "w") as file:
                json.dump(report, file)
        with open(os.path.join(folder, "navi31.asm"), "w") as file:
            file.write(assembly)
        out = io.StringIO()
        with redirect_stdout(out):
            estimate.main(["table", folder, "navi31"])
    rows = [line.split() for line in out.getvalue().splitlines()]
    return rows[2][2] == "tiled_128x128" and rows[2][4] == "tiled_64x64" and rows[2][6] == "1.50" and "cannot be lowered" in out.getvalue()


def main():
    checks = [check_flows, check_growth, check_multiplies, check_tiles, check_lines, check_table]
    failed = [check.__name__ for check in checks if not check()]
    for name in failed:
        print("FAILED %s" % name)
    print("%d passed, %d failed" % (len(checks) - len(failed), len(failed)))
    return len(failed) != 0


if __name__ == "__main__":
    sys.exit(main())
