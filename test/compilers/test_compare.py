#!/usr/bin/env python3
"""Tests compare.py with planted regressions. The last line is "N passed, N failed"."""
import copy
import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout

sys.dont_write_bytecode = True
import compare  # noqa: E402


def pipeline(kernel, constants, **figures):
    return dict({"kernel": kernel, "constants": constants, "case": "softmax axis=1 in=x:f32:3x5", "variant": "rows=shared",
                 "precision": "f32", "chosen": True, "seconds": 0.1}, **figures)


REPORT = {
    "device": "A GPU", "driver": "radv Mesa 1.2.3", "seconds": 7.0,
    "pipelines": [
        pipeline("softmax", [256, 1], registers=40, spills=0, scalar_spills=0, scratch_bytes=0),
        pipeline("softmax", [256, 2], registers=100, spills=5, scalar_spills=2, scratch_bytes=640),
        pipeline("copy", [64], spills=0),
    ],
    "failures": [dict(pipeline("sort", [1]), error="vkCreateComputePipelines")],
}


def run(mode, table, report):
    """Exit status and output of the program, and the table that it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.txt")
        if table is not None:
            with open(path, "w") as file:
                file.write(table)
        if report is not None:
            with open(os.path.join(folder, "gpu.json"), "w") as file:
                json.dump(report, file)
        output = io.StringIO()
        with redirect_stdout(output):
            status = compare.main(mode, path, folder, "gpu")
        left = open(path).read() if os.path.exists(path) else None
    return status, output.getvalue(), left


TABLE = run("update", None, REPORT)[2]


def expect(change, passed, failed, *sentences, table=TABLE):
    report = copy.deepcopy(REPORT)
    change(report)
    status, output, _ = run("compare", table, report)
    wanted = "%d passed, %d failed" % (passed, failed)
    assert output.splitlines()[-1] == wanted, "%s, not %s" % (output.splitlines()[-1], wanted)
    assert status == (failed != 0)
    for sentence in sentences:
        assert sentence in output, "no '%s' in:\n%s" % (sentence, output)


def test_the_table_has_what_is_needed():
    assert TABLE.splitlines()[1:] == [
        "device gpu radv Mesa 1.2.3", "copy -", "softmax 100", " %s 5 640 2" % compare.hash_of(REPORT["pipelines"][1]), "sort -",
        " %s failed" % compare.hash_of(REPORT["failures"][0])], TABLE
    assert compare.write_table(compare.read_table(TABLE)) == TABLE


def test_nothing_has_changed():
    expect(lambda r: None, 4, 0)


def test_less_is_no_failure():
    def change(r):
        r["pipelines"][1].update(registers=20, spills=0, scalar_spills=0, scratch_bytes=0)
        r["failures"].clear()
    expect(change, 3, 0)


def test_new_spills():
    expect(lambda r: r["pipelines"][0].update(spills=1), 3, 1, "1 spills, not 0: softmax<256,1> rows=shared f32: softmax axis=1")


def test_more_spills():
    expect(lambda r: r["pipelines"][1].update(spills=6), 3, 1, "6 spills, not 5: softmax<256,2>")


def test_scalar_spills_have_some_slack():
    expect(lambda r: r["pipelines"][1].update(scalar_spills=18), 4, 0)
    expect(lambda r: r["pipelines"][1].update(scalar_spills=19), 3, 1, "19 scalar spills, not 2: softmax<256,2>")
    expect(lambda r: r["pipelines"][0].update(scalar_spills=17), 3, 1, "17 scalar spills, not 0: softmax<256,1>")


def test_more_scratch():
    expect(lambda r: r["pipelines"][1].update(scratch_bytes=656), 3, 1, "656 bytes of scratch memory, not 640")


def test_other_constants_may_not_spill():
    expect(lambda r: r["pipelines"][1].update(constants=[256, 3]), 3, 1, "5 spills, not 0, 640 bytes of scratch memory, not 0: softmax<256,3>")


def test_few_registers_never_fail():
    table = TABLE.replace("softmax 100", "softmax 20")
    for few, turnip in ((32, False), (8, True)):
        def change(r, registers):
            r["pipelines"][0].update(registers=8)
            r["pipelines"][1].update(registers=registers)
        limits = table.replace("radv", "turnip").replace("softmax 20", "softmax 4") if turnip else table
        report_driver = (lambda r: r.update(driver="turnip Mesa 1.2.3")) if turnip else (lambda r: None)
        expect(lambda r: (report_driver(r), change(r, few)), 4, 0, table=limits)
        expect(lambda r: (report_driver(r), change(r, few + 1)), 3, 1, "%d registers" % (few + 1), table=limits)


def test_registers_have_some_slack():
    expect(lambda r: r["pipelines"][0].update(registers=110), 4, 0)
    expect(lambda r: r["pipelines"][0].update(registers=111), 3, 1, "111 registers; its kernel has at most 100")


def test_a_new_kernel_may_not_spill():
    expect(lambda r: r["pipelines"].append(pipeline("new", [1], registers=200)), 5, 0)
    expect(lambda r: r["pipelines"].append(pipeline("new", [1], registers=200, spills=2)), 4, 1, "2 spills, not 0: new<1>")


def test_a_new_failure():
    failure = dict(pipeline("copy", [64]), error="the reason")
    expect(lambda r: r["failures"].append(failure), 4, 1, "cannot be made: copy<64> rows=shared f32: softmax", "the reason")


def test_another_version_fails_only_what_cannot_be_made():
    def change(r):
        r["driver"] = "radv Mesa 1.2.4"
        r["pipelines"][0].update(spills=1)
    expect(change, 4, 0, "1 pipelines are worse than the table says, but that is of radv Mesa 1.2.3")

    def fail(r):
        change(r)
        r["failures"].append(dict(pipeline("copy", [64]), error="the reason"))
    expect(fail, 4, 1, "cannot be made: copy<64>")


def test_no_section_and_no_report():
    expect(lambda r: None, 0, 1, "the table has no section of it", table="")
    status, output, _ = run("compare", TABLE, None)
    assert status and output.splitlines()[-1] == "0 passed, 1 failed", output


def test_update_keeps_other_sections():
    others = TABLE.replace("device gpu", "device other")
    left = run("update", others, REPORT)[2]
    assert compare.read_table(left).keys() == {"gpu", "other"}, left


def main():
    passed = failed = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                passed += 1
            except AssertionError as error:
                print("FAILED %s: %s" % (name, error))
                failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
