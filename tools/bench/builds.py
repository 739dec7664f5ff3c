#!/usr/bin/env python3
"""Compares builds whose kernels went through different SPIR-V optimizers, row by row.

    tools/bench/builds.py build [NAME=SPIRV_OPT]...      into build/builds/NAME; an empty SPIRV_OPT is no optimizer
    tools/bench/builds.py compare [PROGRAM]... [-- BENCH_OPTION...]

Without names, `build` makes `none` and `system` (the spirv-opt on PATH). `compare` times `rlxvk bench` of each program
(build/builds/*/bin/rlxvk), twice in turn, and prints the better time of each, over the best of all; the last lines say how
far each build is behind, at most and in the geometric mean. Needs make for the first, python3 alone for the second.
"""
import glob
import json
import math
import os
import shutil
import subprocess
import sys


def build(arguments):
    builds = dict(a.split("=", 1) for a in arguments) or {"none": "", "system": shutil.which("spirv-opt") or ""}
    for name, optimizer in builds.items():
        subprocess.run(["make", f"-j{os.cpu_count()}", f"BASE=build/builds/{name}", f"OPTIMIZE={optimizer}",
                        f"build/builds/{name}/bin/rlxvk"], check=True)


def bench(program, options):
    out = subprocess.run([program, "bench", "--json", *options], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {row["case"]: row["us"] for row in json.loads(out)}


def compare(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    programs = arguments[:split] or sorted(glob.glob("build/builds/*/bin/rlxvk"))
    best = {}
    for _ in range(2):
        for program in programs:
            for case, us in bench(program, arguments[split + 1:]).items():
                times = best.setdefault(case, {})
                times[program] = min(us, times.get(program, us))
    ratios = {program: [] for program in programs}
    print(" ".join(f"{program[-24:]:>24}" for program in programs))
    for case, times in best.items():
        fastest = min(times.values())
        for program, us in times.items():
            ratios[program].append((us / fastest, case))
        print(" ".join(f"{us:15.1f} us {us / fastest:5.3f}" for us in times.values()), "", case)
    for program, list_of in ratios.items():
        mean = math.exp(sum(math.log(ratio) for ratio, _ in list_of) / len(list_of))
        over = sum(ratio > 1.02 for ratio, _ in list_of)
        print(f"{program}: {mean:.3f} of the best in the mean, at most {max(list_of)[0]:.3f} ({max(list_of)[1]}), "
              f"{over} of {len(list_of)} rows over 1.02")


if __name__ == "__main__":
    commands = {"build": build, "compare": compare}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](sys.argv[2:])
