#!/usr/bin/env python3
"""Translates SPIR-V modules to Metal's language with SPIRV-Cross, and looks for what MoltenVK cannot take: see test/metal.sh.

    test/metal/translate.py FOLDER

FOLDER is what `rlxvk bench --pipelines --modules` wrote. A failure names the kernel with its constants, the case, and the reason. The last
line is "N passed, N failed".
"""
import collections
import concurrent.futures
import os
import re
import struct
import subprocess
import sys

COMMAND = ["spirv-cross", "--msl", "--msl-version", "20300"]
MOST_BUFFERS = 31  # of a kernel, with its push constants, if there are no argument buffers
MOST_SHARED = 32768  # bytes of threadgroup memory

# What a module may not declare or contain, because MoltenVK or GPUs of Apple lack it.
CAPABILITIES = {10: "float64", 12: "64-bit atomics", 4464: "control of denormals", 4465: "control of denormals",
                4467: "control of rounding", 4468: "control of rounding", 5116: "bfloat16", 6022: "cooperative matrices"}
OP_EXECUTION_MODE, OP_CAPABILITY, OP_ARRAY_LENGTH, OP_DECORATE = 16, 17, 68, 71
OP_CONTROL_BARRIER, OP_MEMORY_BARRIER = 224, 225
SPEC_ID = 1
SIGNED_ZERO_INF_NAN_PRESERVE = 4461
DOT_PRODUCT = 6019
# SPIRV-Cross before 2024 says this of products of packed bytes. MoltenVK has a newer one.
OLD_SENTENCE = "Cannot resolve expression type."

SCALARS = {"bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "int": 4, "uint": 4, "float": 4, "long": 8, "ulong": 8}


class Problem(Exception):
    pass


# ---- SPIR-V ----

def instructions(module):
    """The instructions of a module, as lists of words."""
    words = struct.unpack("<%dI" % (len(module) // 4), module)
    at = 5
    while at < len(words):
        length = words[at] >> 16
        if length == 0:
            raise Problem("no module")
        yield [words[at] & 0xFFFF, *words[at + 1:at + length]]
        at += length


def check_barriers(opcodes):
    """SPIRV-Cross makes a barrier of all invocations from a memory barrier. So it must stand where all pass: beside another barrier."""
    for i, opcode in enumerate(opcodes):
        if opcode == OP_MEMORY_BARRIER and OP_CONTROL_BARRIER not in opcodes[i - 1:i + 2]:
            raise Problem("a memory barrier without a barrier beside it")


def check_module(module):
    """Returns the capabilities."""
    found = set()
    keeps_nan = False
    opcodes = []
    for w in instructions(module):
        opcodes.append(w[0])
        if w[0] == OP_CAPABILITY:
            found.add(w[1])
            if w[1] in CAPABILITIES:
                raise Problem("it declares %s" % CAPABILITIES[w[1]])
        elif w[0] == OP_DECORATE and w[2] == SPEC_ID:
            raise Problem("it leaves constant %d to the driver" % w[3])
        elif w[0] == OP_ARRAY_LENGTH:
            raise Problem("it reads the length of a buffer, for which MoltenVK needs one more buffer")
        elif w[0] == OP_EXECUTION_MODE and w[2] == SIGNED_ZERO_INF_NAN_PRESERVE:
            keeps_nan = True
    check_barriers(opcodes)
    if not keeps_nan:
        raise Problem("it does not ask to keep NaN, so MoltenVK compiles it with fast math")
    return found


# ---- Metal's language ----

def layout_of(name, structs):
    """Size and alignment of a type."""
    array = re.fullmatch(r"spvUnsafeArray<(.*), (\d+)>", name)
    if array:
        size, alignment = layout_of(array[1], structs)
        return size * int(array[2]), alignment
    vector = re.fullmatch(r"(packed_)?([a-z]+)([234])", name)
    if vector and vector[2] in SCALARS:
        scalar = SCALARS[vector[2]]
        if vector[1]:
            return scalar * int(vector[3]), scalar
        size = scalar * (4 if vector[3] == "3" else int(vector[3]))
        return size, size
    if name in SCALARS:
        return SCALARS[name], SCALARS[name]
    if name not in structs:
        raise Problem("threadgroup memory of an unknown type '%s'" % name)
    end, most = 0, 1
    for member, lengths in structs[name]:
        size, alignment = layout_of(member, structs)
        for length in lengths:
            size *= length
        end = -(-end // alignment) * alignment + size
        most = max(most, alignment)
    return -(-end // most) * most, most


DECLARATION = r"([\w<>, ]+?) \w+((?:\[\d+\])*);"


def lengths_of(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def shared_bytes(source):
    structs = {}
    for name, body in re.findall(r"^struct (\w+)\n\{\n(.*?)^\};", source, re.M | re.S):
        structs[name] = [(kind, lengths_of(n)) for kind, n in re.findall(r"^ *" + DECLARATION, body, re.M)]
    end = 0
    for kind, lengths in re.findall(r"^ +threadgroup " + DECLARATION, source, re.M):
        size, alignment = layout_of(kind, structs)
        for length in lengths_of(lengths):
            size *= length
        end = -(-end // alignment) * alignment + size
    return end


def check_source(source):
    buffers = len(set(re.findall(r"\[\[buffer\((\d+)\)\]\]", source)))
    if buffers > MOST_BUFFERS:
        raise Problem("%d buffers with the push constants; Metal has %d" % (buffers, MOST_BUFFERS))
    wide = re.search(r"atomic_u?long|\bdouble\b", source)
    if wide:
        raise Problem("Metal's source has '%s'" % wide[0])
    shared = shared_bytes(source)
    if shared > MOST_SHARED:
        raise Problem("%d bytes of threadgroup memory; Apple's GPUs have %d" % (shared, MOST_SHARED))


# ---- All modules ----

def translate(path):
    """None if all is well, "old" if SPIRV-Cross is too old for it, or a sentence."""
    try:
        with open(path, "rb") as file:
            capabilities = check_module(file.read())
        done = subprocess.run(COMMAND + [path], capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            lines = (done.stderr + done.stdout).strip().splitlines() or ["status %d" % done.returncode]
            sentence = re.sub("^SPIRV-Cross threw an exception: ", "", lines[-1])
            if DOT_PRODUCT in capabilities and sentence == OLD_SENTENCE:
                return "old"
            raise Problem("SPIRV-Cross: %s" % sentence)
        check_source(done.stdout)
        return None
    except (OSError, Problem) as problem:
        return str(problem)


def main(folder):
    results = collections.Counter()
    with open(os.path.join(folder, "modules.txt")) as file:
        lines = [line.rstrip("\n").split(" ", 2) for line in file]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        paths = [os.path.join(folder, line[0]) for line in lines if line[0] != "FAILED"]
        verdicts = threads.map(translate, paths)
        for name, kernel, case in lines:
            verdict = "beyond the device's limits" if name == "FAILED" else next(verdicts)
            results["old" if verdict == "old" else "failed" if verdict else "passed"] += 1
            if verdict and verdict != "old":
                print("FAILED %s: %s: %s" % (kernel, verdict, case))
    if results["old"]:
        print("%d modules with products of packed bytes: this SPIRV-Cross is too old for them" % results["old"])
    print("%d passed, %d failed" % (results["passed"], results["failed"]))
    return results["failed"] != 0 or results["passed"] == 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
