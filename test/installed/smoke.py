"""The README's program through ctypes: `smoke.py LIBRARY VERSION`. The exit status is 0 if its result is right."""
import ctypes as c
import math
import sys

F32 = 0


class Shape(c.Structure):
    _fields_ = [("rank", c.c_uint32), ("dims", c.c_int64 * 8)]

    def __init__(self, *dims):
        super().__init__(len(dims), (c.c_int64 * 8)(*dims))


class Tensor(c.Structure):
    _fields_ = [("id", c.c_uint32), ("graph", c.c_uint32)]


DATA = [("length", c.c_size_t), ("dtype", c.c_int), ("f32_words", c.c_bool), ("struct_size", c.c_size_t)]


class RunInput(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p)] + DATA


class RunOutput(c.Structure):
    _fields_ = [("index", c.c_size_t), ("buffer", c.c_void_p)] + DATA


library = c.CDLL(sys.argv[1])


def call(name, result, *arguments):
    """Calls rlxvk_NAME. If it returns a status, the call must succeed."""
    function = getattr(library, "rlxvk_" + name)
    function.restype = result or c.c_int
    value = function(*arguments)
    if result is None and value != 0:
        sys.exit(call("last_error", c.c_char_p).decode())
    return value


def main():
    context, graph, executable = c.c_void_p(), c.c_void_p(), c.c_void_p()
    call("context_create", None, None, c.byref(context))
    call("graph_create", None, c.byref(graph))
    x = call("input", Tensor, graph, b"x", F32, Shape(1, 4))
    w = call("param", Tensor, graph, b"w", F32, Shape(4, 2))
    y = call("softmax", Tensor, graph, call("matmul", Tensor, graph, x, w), -1)
    library.rlxvk_graph_output(graph, y)
    call("compile", None, context, graph, None, c.byref(executable))
    weight = (c.c_float * 8)(1, 0, 0, 1, 1, 0, 0, 1)
    call("set_param", None, executable, b"w", weight, c.c_size_t(8))
    given, got = (c.c_float * 4)(1, 2, 3, 4), (c.c_float * 2)()
    run_input = RunInput(b"x", c.cast(given, c.c_void_p), 4, 0)
    run_output = RunOutput(0, c.cast(got, c.c_void_p), 2, 0)
    call("run", None, executable, c.byref(run_input), c.c_size_t(1), c.byref(run_output), c.c_size_t(1))
    for kind, thing in ("executable", executable), ("graph", graph), ("context", context):
        getattr(library, f"rlxvk_{kind}_destroy")(thing)
    print(*got)
    first = 1 / (1 + math.exp(2))  # of softmax(4, 6)
    right = math.isclose(got[0], first, abs_tol=1e-6) and math.isclose(got[1], 1 - first, abs_tol=1e-6)
    version = call("version", c.c_char_p).decode()
    sys.exit(not right or version != sys.argv[2])


main()
