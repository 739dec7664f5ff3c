"""Threads, lifetimes, and what other processes see."""
from __future__ import annotations

import copy
import gc
import itertools
import pickle
import threading
import weakref

import numpy as np
import pytest
import rlxvk
from onnx_file import identity, model, net, node
from rlxvk._library import _alive


def run_threads(*jobs):
    """Runs each job on a thread of its own; what they raise is raised here."""
    raised = []

    def guarded(job):
        try:
            job()
        except BaseException as problem: # for the main thread
            raised.append(problem)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def caller(m, reference, seed):
    def job():
        rng = np.random.default_rng(seed)
        for _ in range(60):
            x = rng.normal(size=(int(rng.integers(1, 5)), 5)).astype(np.float32)
            np.testing.assert_allclose(m(x)[0], reference(x), rtol=1e-5, atol=1e-5)

    return job


def test_two_threads_call_one_model():
    content, reference = net()
    m = rlxvk.load(content)
    run_threads(caller(m, reference, 1), caller(m, reference, 2))


def test_two_threads_call_two_models():
    content, reference = net()
    run_threads(*(caller(rlxvk.load(content), reference, seed) for seed in (1, 2)))


def test_two_threads_make_the_default_context(python):
    program = """
import threading
from rlxvk._device import context_of
found = []
threads = [threading.Thread(target=lambda: found.append(context_of(None))) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(len(set(map(id, found))))
"""
    assert python(program) == "1\n"


def test_objects_go_in_any_order():
    x = np.ones((1, 5), np.float32)
    for order in itertools.permutations(range(3)):
        context = rlxvk.Context()
        m = rlxvk.load(net()[0], device=context)
        objects = [context, m, m(x)]
        handles = [weakref.ref(context._handle), weakref.ref(m._handle)]
        handles += [weakref.ref(c.executable.handle) for c in m._compiled.values()]
        del context, m
        for i in order:
            objects[i] = None
        gc.collect()
        assert [h() for h in handles] == [None] * 3


def test_a_dropped_model_leaves_nothing():
    gc.collect()
    before = len(_alive)
    m = rlxvk.load(identity("float32"))
    for n in range(1, 12):
        m(np.zeros(n, np.float32))
    assert len(_alive) == before + 1 + 8 # the model and its executables
    del m
    gc.collect()
    assert len(_alive) == before


def test_bytes_live_as_long_as_the_model():
    content, reference = net()
    source = bytearray(content)
    m = rlxvk.load(source)
    source[:] = b"\0" * len(source)
    x = np.ones((2, 5), np.float32)
    np.testing.assert_allclose(m(x)[0], reference(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("end", [
    "",
    "sys.exit(0)",
    "del context, m",
    "del m, context",
    "m.itself = m", # a circle, which only the garbage collector finds
    "sys.modules.clear()",
    "rlxvk.kept = m",
    # A thread that runs the model while Python ends.
    "threading.Thread(target=lambda: [m(x) for _ in iter(int, 1)], daemon=True).start(); "
    "time.sleep(0.2)",
])
def test_the_program_ends_well(python, end):
    program = f"""
import sys, threading, time, numpy, rlxvk, onnx_file
context = rlxvk.Context()
m = rlxvk.load(onnx_file.net()[0], device=context)
x = numpy.ones((2, 5), numpy.float32)
m(x)
print(rlxvk.load(onnx_file.net()[0])(x)[0].shape, flush=True)
{end}
"""
    assert python(program) == "(2, 3)\n"


def test_what_belongs_to_the_process_is_not_pickled():
    m = rlxvk.load(identity("float32"))
    for thing in (m, rlxvk.Context()):
        for act in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied.*make it again"):
                act(thing)
    out = m(np.ones(2, np.float32))
    again = pickle.loads(pickle.dumps(out))
    assert again.names == out.names and (again["y"] == out["y"]).all()
    info, device = m.inputs[0], rlxvk.devices()[0]
    assert pickle.loads(pickle.dumps((info, device))) == (info, device)


def test_a_child_after_fork(python):
    # Objects of the parent are useless in the child, and destroying them there does no harm.
    program = """
import os, numpy, rlxvk, onnx_file
m = rlxvk.load(onnx_file.net()[0])
x = numpy.ones((2, 5), numpy.float32)
m(x)
child = os.fork()
if child == 0:
    try:
        m(x)
    except rlxvk.errors.DeviceLostError:
        os._exit(3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), m(x)[0].shape)
"""
    assert python(program) == "3 (2, 3)\n"


def test_other_threads_go_on_during_a_call():
    # A product of this size takes some 0.1 s on a CPU. Another thread counts meanwhile.
    n = 640
    m = rlxvk.load(model([node("MatMul", "x x", "y")], [("x", "float32", (n, n))],
                         [("y", "float32", (n, n))]))
    x = np.ones((n, n), np.float32)
    m(x)
    steps, stop = [0], threading.Event()

    def count():
        while not stop.wait(0.001):
            steps[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    with m._handle.lock:
        before = steps[0]
        m(x)
        during = steps[0] - before
    stop.set()
    thread.join()
    assert during >= 3
