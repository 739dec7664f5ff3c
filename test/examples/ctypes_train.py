"""Uses the library from Python, with only the standard library. Learns a line from points, and saves and loads it.

Run it as `python3 ctypes_train.py [librlxvk.so.0]`. The exit status is 0 if the line is right.
"""
import ctypes as c
import os
import sys

library = c.CDLL(sys.argv[1] if len(sys.argv) > 1 else "librlxvk.so.0")
F32, POINTS, STEPS, PATH = 0, 64, 200, b"line.safetensors"


class Shape(c.Structure):
    _fields_ = [("rank", c.c_uint32), ("dims", c.c_int64 * 8)]


class Tensor(c.Structure):
    _fields_ = [("id", c.c_uint32), ("graph", c.c_uint32)]


# The members from `length` to `struct_size`, with the order and types of rlxvk.h. Members that are not set are 0.
DATA = [("length", c.c_size_t), ("dtype", c.c_int), ("f32_words", c.c_bool), ("struct_size", c.c_size_t)]


class RunInput(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p)] + DATA


class RunOutput(c.Structure):
    _fields_ = [("index", c.c_size_t), ("buffer", c.c_void_p)] + DATA


class SgdOptions(c.Structure):
    _fields_ = [("learning_rate", c.c_float), ("momentum", c.c_float), ("weight_decay", c.c_float),
                ("nesterov", c.c_bool), ("struct_size", c.c_size_t)]


def shape(*dims):
    return Shape(len(dims), (c.c_int64 * 8)(*dims))


def call(name, *arguments, result=c.c_int):
    """Calls rlxvk_NAME. If it returns an error, raises the library's message."""
    function = getattr(library, "rlxvk_" + name)
    function.restype = result
    value = function(*(c.c_size_t(a) if isinstance(a, int) else a for a in arguments))
    if result is c.c_int and value:
        raise RuntimeError(call("last_error", result=c.c_char_p).decode())
    return value


def op(name, *arguments):
    return call(name, *arguments, result=Tensor)


def build(graph):
    """Fits y by x w + b. Each run is one training step; its output is the loss."""
    x = op("input", graph, b"x", c.c_int(F32), shape(POINTS, 1))
    y = op("input", graph, b"y", c.c_int(F32), shape(POINTS, 1))
    params = (Tensor * 2)(op("state", graph, b"w", c.c_int(F32), shape(1, 1)), op("state", graph, b"b", c.c_int(F32), shape(1)))
    error = op("sub", graph, op("add", graph, op("matmul", graph, x, params[0]), params[1]), y)
    axes, gradients = (c.c_int32 * 2)(0, 1), (Tensor * 2)()
    loss = op("reduce_mean", graph, op("mul", graph, error, error), axes, 2, c.c_bool(False))
    call("grad", graph, loss, Tensor(), params, 2, gradients, result=None)
    call("sgd_all", graph, params, gradients, 2, c.byref(SgdOptions(learning_rate=0.2)), None)
    call("graph_output", graph, loss, result=None)


def main():
    context, graph, executable = c.c_void_p(), c.c_void_p(), c.c_void_p()
    xs = (c.c_float * POINTS)(*(i / POINTS for i in range(POINTS)))
    ys = (c.c_float * POINTS)(*(3 * x - 1 for x in xs))
    found, w, b = c.c_float(), c.c_float(), c.c_float()
    call("context_create", None, c.byref(context))
    call("graph_create", c.byref(graph))
    build(graph)
    call("compile", context, graph, None, c.byref(executable))
    inputs = (RunInput * 2)(RunInput(b"x", c.addressof(xs), POINTS), RunInput(b"y", c.addressof(ys), POINTS))
    output = RunOutput(0, c.addressof(found), 1)
    for _ in range(STEPS * 5):
        call("run", executable, inputs, 2, c.byref(output), 1)
    call("save_params", executable, PATH, None)
    for name, value in (b"w", w), (b"b", b):
        call("clear_param", executable, name)
        call("load_params", executable, PATH, None)
        call("read_param", executable, name, c.byref(value), 1)
    os.remove(PATH)
    for kind, thing in ("executable", executable), ("graph", graph), ("context", context):
        call(kind + "_destroy", thing, result=None)
    print(f"y = {w.value:.3f} x {b.value:+.3f}, loss {found.value:.2e}")
    return 0 if abs(w.value - 3) < 0.02 and abs(b.value + 1) < 0.02 else 1


sys.exit(main())
