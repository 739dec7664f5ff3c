"""Models: results, sizes, what a model tells of itself, and refusals."""
from __future__ import annotations

import numpy as np
import pytest
import rlxvk
from onnx_file import identity, model, net, node, outside
from rlxvk._library import lib, listed


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


def test_results_are_those_of_numpy(tmp_path):
    content, reference = net()
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    x = values(4, 5)
    for source in (path, str(path), content, bytearray(content), memoryview(content)):
        y, = rlxvk.load(source)(x)
        assert y.dtype == np.float32 and y.shape == (4, 3)
        np.testing.assert_allclose(y, reference(x), rtol=1e-5, atol=1e-5)


def test_outputs_by_order_and_name():
    nodes = [node("Add", "a b", "sum"), node("Sub", "a b", "less")]
    shape = ("float32", (2,))
    outputs = [("sum", *shape), ("less", *shape)]
    m = rlxvk.load(model(nodes, [("a", *shape), ("b", *shape)], outputs))
    a, b = values(2), values(2)[::-1]
    for out in (m(a, b), m(a, b=b), m(b=b, a=a)):
        assert isinstance(out, tuple) and out.names == ("sum", "less")
        assert (out[0] == a + b).all() and (out["sum"] == a + b).all()
        assert (out["less"] == a - b).all() and len(out) == 2
    assert "sum=array" in repr(out)
    with pytest.raises(KeyError, match="no output 'z'; there are: sum, less"):
        out["z"]


def test_outputs_are_new_arrays_in_each_call():
    m = rlxvk.load(net()[0])
    first, = m(values(2, 5))
    kept = first.copy()
    m(np.zeros((2, 5), np.float32))
    assert (first == kept).all()


def test_what_a_model_tells():
    m = rlxvk.load(net()[0])
    assert m.inputs == (rlxvk.TensorInfo("x", np.dtype("float32"), ("batch", 5), "FLOAT"),)
    assert [info.shape for info in m.outputs] == [("batch", 3)]
    assert "x: float32 (batch, 5)" in repr(m) and "y: float32 (batch, 3)" in repr(m)
    assert m.problems() == [] and m.executables == ()
    assert rlxvk.load(net()[0], bind={"batch": 2}).inputs[0].shape == (2, 5)
    unknown = rlxvk.load(model([node("Relu", "x", "y")], [("x", "float32", (2,))],
                               [("y", "float32", None)]))
    assert unknown.outputs[0].shape is None and "y: float32 ?" in repr(unknown)


def params_shared(m: rlxvk.Model) -> list[bool]:
    latest = list(m._compiled.values())[-1].executable.handle.pointer
    infos = listed("rlxvk_tensor_info", lib.rlxvk_executable_params, latest)
    return [info.shared for info in infos]


def test_sizes_share_the_weights():
    content, reference = net()
    m = rlxvk.load(content)
    m(values(2, 5))
    assert params_shared(m) == [False] * 3
    np.testing.assert_allclose(m(values(3, 5))[0], reference(values(3, 5)), rtol=1e-5, atol=1e-5)
    assert params_shared(m) == [True] * 3
    assert m.executables == ({"batch": 2}, {"batch": 3})
    m(values(2, 5))
    assert m.executables == ({"batch": 3}, {"batch": 2})


def test_eight_executables_are_kept():
    content, reference = net()
    m = rlxvk.load(content)
    for batch in (1, 2, 3, 4, 5, 6, 7, 8, 1, 9):
        y, = m(values(batch, 5))
        np.testing.assert_allclose(y, reference(values(batch, 5)), rtol=1e-5, atol=1e-5)
    assert [sizes["batch"] for sizes in m.executables] == [3, 4, 5, 6, 7, 8, 1, 9]


def test_compile_prepares_sizes():
    m = rlxvk.load(net()[0])
    m.compile(batch=4)
    assert m.executables == ({"batch": 4},)
    before = list(m._compiled.values())
    m.compile(batch=4)
    m(values(4, 5))
    assert list(m._compiled.values()) == before
    with pytest.raises(rlxvk.errors.UnknownNameError, match="no input has a dim 'bath'.*batch"):
        m.compile(bath=4)
    with pytest.raises(rlxvk.errors.UnboundSymbolError, match="no size: batch"):
        m.compile()
    with pytest.raises(rlxvk.errors.RangeError, match="-1"):
        m.compile(batch=-1)


def test_bound_dims_are_fixed():
    m = rlxvk.load(net()[0], bind={"batch": 2})
    assert m(values(2, 5))[0].shape == (2, 3)
    with pytest.raises(rlxvk.errors.ShapeError, match=r"\(3, 5\).*\(2, 5\).*axis 0 must be 2"):
        m(values(3, 5))
    with pytest.raises(rlxvk.errors.UnknownNameError, match="'bach'"):
        rlxvk.load(net()[0], bind={"bach": 2})(values(2, 5))


def test_inner_values_as_outputs():
    m = rlxvk.load(net()[0], outputs=["hidden", "y"])
    hidden, y = m(values(2, 5))
    assert hidden.shape == (2, 7) and hidden.min() == 0 and y.shape == (2, 3)
    assert [info.name for info in m.outputs] == ["hidden", "y"]
    with pytest.raises(rlxvk.errors.UnknownNameError, match="hiden"):
        rlxvk.load(net()[0], outputs=["hiden"])(values(2, 5))


RESHAPE = model(
    [node("Reshape", "x shape", "y")],
    [("x", "float32", (6,)), ("shape", "int64", (2,))],
    [("y", "float32", None)],
)


def test_values_that_decide_sizes():
    x = np.arange(6, dtype=np.float32)
    m = rlxvk.load(RESHAPE)
    for shape in ((2, 3), (3, 2), (2, 3), (6, 1)):
        y, = m(x, np.array(shape))
        assert y.shape == shape and (y.ravel() == x).all()
    assert len(m.executables) == 3
    m = rlxvk.load(RESHAPE, values={"shape": [3, 2]})
    assert [info.name for info in m.inputs] == ["x"] and m(x)[0].shape == (3, 2)
    with pytest.raises(rlxvk.errors.UnknownNameError, match="no input 'size'; it has: x, shape"):
        rlxvk.load(RESHAPE, values={"size": [3, 2]})
    with pytest.raises(rlxvk.errors.DtypeError, match="value of input 'shape'"):
        rlxvk.load(RESHAPE, values={"shape": ["a"]})(x)


def test_sizes_that_data_decide():
    nonzero = model([node("NonZero", "x", "y")], [("x", "float32", ("n", 3))],
                    [("y", "int64", None)])
    m = rlxvk.load(nonzero)
    for x in (np.eye(3), np.zeros((2, 3)), np.ones((1, 3))):
        y, = m(x.astype(np.float32))
        assert (y == np.array(np.nonzero(x))).all() and y.dtype == np.int64
        assert y.shape == (2, np.count_nonzero(x))
    with pytest.raises(rlxvk.errors.UnsupportedError, match="leave `outputs` out"):
        rlxvk.load(nonzero, outputs=["y"])(np.eye(3, dtype=np.float32))


def test_precision_is_checked():
    assert rlxvk.load(net()[0], precision="f16")(values(2, 5))[0].shape == (2, 3)
    with pytest.raises(rlxvk.errors.AttrError, match="'f17'; there are: f32, f16, bf16"):
        rlxvk.load(net()[0], precision="f17")


def test_calls_that_do_not_fit():
    two = model([node("Add", "a b", "y")], [("a", "float32", ("n", 2)), ("b", "float32", ("n", 2))],
                [("y", "float32", None)])
    m = rlxvk.load(two)
    x = values(3, 2)
    with pytest.raises(rlxvk.errors.MissingInputError, match=r"'b' is missing.* float32 \(n, 2\)"):
        m(x)
    with pytest.raises(rlxvk.errors.UnknownNameError, match="no input 'c'; it has: a, b"):
        m(x, c=x)
    with pytest.raises(rlxvk.errors.UnknownNameError, match="2 inputs, and the call gives 3"):
        m(x, x, x)
    with pytest.raises(rlxvk.errors.DupNameError, match="'a' is given twice"):
        m(x, a=x)
    with pytest.raises(rlxvk.errors.ShapeError, match=r"'a' has shape \(6,\), of rank 1.*\(n, 2\)"):
        m(x.ravel(), x)
    with pytest.raises(rlxvk.errors.ShapeError, match=r"'b' has shape \(2, 3\).*axis 1 must be 2"):
        m(values(2, 2), values(2, 3))
    with pytest.raises(rlxvk.errors.BindConflictError, match="'n' is 3 by axis 0 of input 'a'"):
        m(x, values(2, 2))
    assert (m(x, x)[0] == x + x).all() # none of that has spoiled it


def test_models_that_cannot_run():
    with pytest.raises(rlxvk.errors.FileError, match="no_such.onnx"):
        rlxvk.load("no_such.onnx")
    with pytest.raises(rlxvk.errors.FileError):
        rlxvk.load(b"this is no model")
    with pytest.raises(TypeError, match="a path or bytes, not int"):
        rlxvk.load(7)
    strange = [node("Strange", "x", "y"), node("Odd", "x", "z")]
    m = rlxvk.load(model(strange, [("x", "float32", (2,))],
                         [("y", "float32", None), ("z", "float32", None)]))
    found = m.problems()
    assert [(p.status, p.op, p.node) for p in found] == [
        ("E_UNSUPPORTED", "Strange", "y"), ("E_UNSUPPORTED", "Odd", "z")]
    assert "Strange 'y': " in str(found[0])
    with pytest.raises(rlxvk.errors.UnsupportedError, match=r"Strange.*\(and 1 more problem: mod"):
        m(np.zeros(2, np.float32))


def test_an_input_may_have_any_name():
    m = rlxvk.load(model([node("Neg", "self", "y")], [("self", "float32", (2,))],
                         [("y", "float32", None)]))
    assert (m(self=values(2))[0] == -values(2)).all()


def test_weights_in_a_folder(tmp_path):
    weight = values(2)
    (tmp_path / "w.bin").write_bytes(weight.tobytes())
    content = model([node("Add", "x w", "y")], [("x", "float32", (2,))], [("y", "float32", (2,))],
                    {"w": outside("w", weight, "w.bin")})
    m = rlxvk.load(content, folder=tmp_path)
    assert (m(values(2))[0] == values(2) + weight).all()
    with pytest.raises(rlxvk.errors.FileError):
        rlxvk.load(content)(values(2))


def test_no_elements():
    y, = rlxvk.load(identity("float32", ("n", 2)))(np.zeros((0, 2), np.float32))
    assert y.shape == (0, 2)
