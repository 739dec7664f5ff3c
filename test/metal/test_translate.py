#!/usr/bin/env python3
"""Tests translate.py with planted modules and a planted SPIRV-Cross. The last line is "N passed, N failed"."""
import io
import os
import struct
import sys
import tempfile
from contextlib import redirect_stdout

sys.dont_write_bytecode = True
import translate  # noqa: E402

KEEPS_NAN = [16, 1, 4461]


def module(*added, keeps_nan=True):
    words = [0x07230203, 0x00010500, 0, 100, 0]
    for w in ([KEEPS_NAN] if keeps_nan else []) + list(added):
        words += [len(w) << 16 | w[0], *w[1:]]
    return struct.pack("<%dI" % len(words), *words)


def source(buffers=1, shared="", added=""):
    arguments = ", ".join("device _1& _%d [[buffer(%d)]]" % (10 + i, i) for i in range(buffers))
    return "struct _98\n{\n    float4 _m0;\n    float _m1;\n    packed_float3 _m2[2];\n};\n\nkernel void main0(%s)\n{\n%s%s}\n" % (
        arguments, shared, added)


def run(words, text=None, complaint=None):
    """Exit status and output of the program for a module that the planted SPIRV-Cross turns into this text."""
    with tempfile.TemporaryDirectory() as folder:
        tool = os.path.join(folder, "tool.sh")
        with open(tool, "w") as file:
            if complaint:
                file.write("echo 'SPIRV-Cross threw an exception: %s' >&2\nexit 1\n" % complaint)
            else:
                file.write("cat <<'END'\n%s\nEND\n" % text)
        with open(os.path.join(folder, "a.spv"), "wb") as file:
            file.write(words)
        with open(os.path.join(folder, "modules.txt"), "w") as file:
            file.write("a.spv softmax<64,1> softmax in=x:f32:3\n" if words else "FAILED softmax<64,1> softmax in=x:f32:3: too large\n")
        translate.COMMAND = ["sh", tool]
        out = io.StringIO()
        with redirect_stdout(out):
            status = translate.main(folder)
        return int(status), out.getvalue()


THREADGROUP = "    threadgroup %s;\n"
DOT = [17, 6019]
# Module, what SPIRV-Cross makes of it, and what the program must say; None: nothing.
CASES = [
    (module(), dict(text=source()), None),
    (module([17, 1]), dict(text=source(buffers=31)), None),
    (module(), dict(text=source(buffers=32)), "32 buffers with the push constants; Metal has 31"),
    (module([17, 12]), dict(text=source()), "it declares 64-bit atomics"),
    (module([17, 4464]), dict(text=source()), "it declares control of denormals"),
    (module([71, 5, 1, 3]), dict(text=source()), "it leaves constant 3 to the driver"),
    (module([71, 5, 2, 3]), dict(text=source()), None),
    (module([68, 1, 2, 3, 0]), dict(text=source()), "the length of a buffer"),
    (module([224, 2, 2, 264], [225, 1, 72], [1]), dict(text=source()), None),
    (module([225, 1, 72], [224, 2, 2, 264]), dict(text=source()), None),
    (module([224, 2, 2, 264], [1], [225, 1, 72]), dict(text=source()), "a memory barrier without a barrier beside it"),
    (module(keeps_nan=False), dict(text=source()), "compiles it with fast math"),
    (module([0]).replace(struct.pack("<I", 1 << 16), bytes(4)), dict(text=source()), "no module"),
    (module(), dict(text=source(added="    atomic_ulong x;\n")), "Metal's source has 'atomic_ulong'"),
    (module(), dict(complaint="No such thing."), "SPIRV-Cross: No such thing."),
    (module(), dict(complaint=translate.OLD_SENTENCE), translate.OLD_SENTENCE),
    (module(DOT), dict(complaint="No such thing."), "SPIRV-Cross: No such thing."),
    (module(), dict(text=source(shared=THREADGROUP % "float _5[8192]")), None),
    (module(), dict(text=source(shared=THREADGROUP % "float _5[8192]" + THREADGROUP % "uint _6")), "32772 bytes of threadgroup memory"),
    (module(), dict(text=source(shared=THREADGROUP % "float4 _5[2][1025]")), "32800 bytes"),
    (module(), dict(text=source(shared=THREADGROUP % "spvUnsafeArray<spvUnsafeArray<float, 4097>, 2> _5")), "32776 bytes"),
    (module(), dict(text=source(shared=THREADGROUP % "float3 _5[2049]")), "32784 bytes"),
    (module(), dict(text=source(shared=THREADGROUP % "_98 _5[683]")), "32784 bytes"),
    (module(), dict(text=source(shared=THREADGROUP % "short _4" + THREADGROUP % "float _5[8192]")), "32772 bytes"),
    (module(), dict(text=source(shared=THREADGROUP % "_99 _5[683]")), "an unknown type '_99'"),
    (b"", dict(text=source()), "beyond the device's limits: softmax in=x:f32:3: too large"),
]


def main():
    passed = failed = 0
    for words, cross, wanted in CASES:
        status, said = run(words, **cross)
        good = status == (wanted is not None)
        good &= ("FAILED softmax<64,1>: " in said and wanted in said and "0 passed, 1 failed" in said) if wanted else said == "1 passed, 0 failed\n"
        passed, failed = passed + good, failed + (not good)
        if not good:
            print("FAILED: wanted %s, got status %d and\n%s" % (wanted, status, said))
    status, said = run(module(DOT), complaint=translate.OLD_SENTENCE)
    good = status == 1 and "1 modules with products" in said and "0 passed, 0 failed" in said
    print("%d passed, %d failed" % (passed + good, failed + (not good)))
    return failed != 0 or not good


if __name__ == "__main__":
    sys.exit(main())
