#!/usr/bin/env python3
"""Compares the statistics of pipelines with a table, or writes the table: see test/compilers.sh.

    test/compilers/compare.py compare|update TABLE FOLDER NAME...

FOLDER/NAME.json is a report of `rlxvk bench --pipelines --statistics --json`. The table has a section of each name:

    device NAME DRIVER
    KERNEL REGISTERS                  the most that a pipeline of the kernel has; "-": the driver does not tell
     HASH SPILLS SCRATCH SCALAR       a pipeline that spills or needs scratch memory; HASH is of its constants
     HASH failed                      a pipeline that the driver cannot make

A pipeline fails if it has more spills or scratch bytes than its line says (none: 0), or over 10 % more registers than its kernel's.
With few registers as many subgroups run, so numbers up to 32 (Adreno: 8, of four words) never fail. Scalar spills mostly stay in
registers, so only 16 more of them fail.
If the drivers are of another version than the section, only pipelines that cannot be made fail; differences are counted.
"""
import json
import os
import sys
import zlib

SLACK = 1.1
SCALAR_SLACK = 16
FEW_REGISTERS = {"turnip": 8}


def hash_of(pipeline):
    return "%08x" % zlib.crc32(",".join(map(str, pipeline["constants"])).encode())


def trouble_of(pipeline):
    """Spills, bytes of scratch memory, scalar spills."""
    return tuple(int(pipeline.get(key, 0)) for key in ("spills", "scratch_bytes", "scalar_spills"))


def read_table(text):
    """The sections by name: {"driver", "registers": {kernel: number or None}, "pipelines": {(kernel, hash): trouble or None}}."""
    sections = {}
    section = kernel = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        if words[0] == "device":
            section = sections[words[1]] = {"driver": " ".join(words[2:]), "registers": {}, "pipelines": {}}
        elif line[0] == " ":
            section["pipelines"][kernel, words[0]] = None if words[1] == "failed" else tuple(map(int, words[1:]))
        else:
            kernel = words[0]
            section["registers"][kernel] = None if words[1] == "-" else int(words[1])
    return sections


def section_of(report):
    """The section that a report would have."""
    section = {"driver": report["driver"], "registers": {}, "pipelines": {}}
    for p in report["pipelines"]:
        most = section["registers"].get(p["kernel"])
        registers = int(p["registers"]) if "registers" in p else None
        section["registers"][p["kernel"]] = max((n for n in (most, registers) if n is not None), default=None)
        if any(trouble_of(p)):
            section["pipelines"][p["kernel"], hash_of(p)] = trouble_of(p)
    for p in report["failures"]:
        section["registers"].setdefault(p["kernel"], None)
        section["pipelines"][p["kernel"], hash_of(p)] = None
    return section


def write_table(sections):
    lines = ["# Written by test/compilers.sh update. test/compilers/compare.py says what the lines mean."]
    for name in sorted(sections):
        section = sections[name]
        lines.append("device %s %s" % (name, section["driver"]))
        for kernel in sorted(section["registers"]):
            registers = section["registers"][kernel]
            lines.append("%s %s" % (kernel, "-" if registers is None else registers))
            for key in sorted(key for key in section["pipelines"] if key[0] == kernel):
                values = section["pipelines"][key]
                lines.append(" %s %s" % (key[1], "failed" if values is None else "%d %d %d" % values))
    return "\n".join(lines) + "\n"


def describe(pipeline):
    constants = ",".join(map(str, pipeline["constants"]))
    extra = "".join(" %s" % pipeline[key] for key in ("variant", "precision") if key in pipeline)
    return "%s<%s>%s: %s" % (pipeline["kernel"], constants, extra, pipeline["case"])


def problems_of(pipeline, section):
    """What is worse than in the table, in words."""
    spills, scratch, scalar = trouble_of(pipeline)
    limits = section["pipelines"].get((pipeline["kernel"], hash_of(pipeline))) or (0, 0, 0)
    registers = section["registers"].get(pipeline["kernel"])
    found = []
    if spills > limits[0]:
        found.append("%d spills, not %d" % (spills, limits[0]))
    if scratch > limits[1]:
        found.append("%d bytes of scratch memory, not %d" % (scratch, limits[1]))
    if scalar > limits[2] + SCALAR_SLACK:
        found.append("%d scalar spills, not %d" % (scalar, limits[2]))
    few = FEW_REGISTERS.get(section["driver"].split()[0], 32)
    if registers is not None and pipeline.get("registers", 0) > max(SLACK * registers, few):
        found.append("%d registers; its kernel has at most %d" % (pipeline["registers"], registers))
    return found


def compare(report, section):
    """Regressions and failures, each as a sentence: (those of pipelines that were made, those of pipelines that were not)."""
    worse, failed = [], []
    for p in report["pipelines"]:
        found = problems_of(p, section)
        if found:
            worse.append("%s: %s" % (", ".join(found), describe(p)))
    for p in report["failures"]:
        if section["pipelines"].get((p["kernel"], hash_of(p)), 0) is not None:
            failed.append("cannot be made: %s: %s" % (describe(p), p["error"]))
    return worse, failed


def summary(name, report):
    pipelines = report["pipelines"]
    spilling = [p for p in pipelines if trouble_of(p)[0]]
    chosen = sum(1 for p in spilling if p["chosen"])
    scratch = sum(1 for p in pipelines if trouble_of(p)[1] and not trouble_of(p)[0])
    slowest = max((p["seconds"] for p in pipelines), default=0)
    made = sum(p["seconds"] for p in pipelines)
    return ("%-16s %5d pipelines, %d left out, %d failed, %3d spill (%d chosen by table), %d others need scratch memory, "
            "slowest %.2f s, %.0f s of a processor, %.0f s (%s)" % (
                name, len(pipelines), report.get("left_out", 0), len(report["failures"]), len(spilling), chosen, scratch,
                slowest, made, report["seconds"], report["driver"]))


def judge(name, report, sections):
    """Prints the device's line and its regressions. Returns how many pipelines passed and failed."""
    print(summary(name, report))
    section = sections.get(name)
    if section is None:
        print("FAILED %s: the table has no section of it: test/compilers.sh update %s" % (name, name))
        return 0, 1
    worse, failed = compare(report, section)
    if worse and section["driver"] != report["driver"]:
        print("%s: %d pipelines are worse than the table says, but that is of %s" % (name, len(worse), section["driver"]))
        worse = []
    for sentence in worse + failed:
        print("FAILED %s: %s" % (name, sentence))
    count = len(report["pipelines"]) + len(report["failures"])
    return count - len(worse) - len(failed), len(worse) + len(failed)


def main(mode, path, folder, *names):
    sections = {}
    if os.path.exists(path):
        with open(path) as file:
            sections = read_table(file.read())
    passed = failed = 0
    for name in names:
        try:
            with open(os.path.join(folder, name + ".json")) as file:
                report = json.load(file)
        except (OSError, ValueError) as error:
            print("FAILED %s: no report: %s" % (name, error))
            failed += 1
            continue
        if mode == "update":
            sections[name] = section_of(report)
        good, bad = judge(name, report, sections)
        passed, failed = passed + good, failed + bad
    if mode == "update":
        with open(path, "w") as file:
            file.write(write_table(sections))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[1] not in ("compare", "update"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
