"""Element types: what goes through as it is, what is converted, and what is refused."""
from __future__ import annotations

import numpy as np
import pytest
import rlxvk
from onnx_file import identity, model, node
from rlxvk._arrays import host_array
from rlxvk._library import lib

SAMPLES = {
    "float32": [-1.5, 0, np.inf], "float16": [-1.5, 0, 65504], "float64": [-1.5, 0, 2.0**-20],
    "int8": [-128, 0, 127], "int16": [-32768, 0, 32767], "int32": [-(1 << 24), 0, 1 << 24],
    "int64": [-(1 << 24), 0, 1 << 24], "uint8": [0, 1, 255], "uint32": [0, 1, 1 << 24],
    "bool": [True, False, True],
}


@pytest.mark.parametrize("dtype", SAMPLES)
def test_each_type_goes_through(dtype):
    m = rlxvk.load(identity(dtype))
    x = np.array(SAMPLES[dtype], dtype)
    assert m.inputs[0].dtype == x.dtype and m.outputs[0].dtype == x.dtype
    y, = m(x)
    assert y.dtype == x.dtype and (y == x).all()


def test_types_that_become_others():
    # As rlxvk_model.h says.
    for dtype, other in ("uint16", "uint32"), ("uint64", "int64"):
        m = rlxvk.load(identity(dtype))
        assert m.inputs[0].dtype == np.dtype(other)
        y, = m(np.array([0, 1, 65535], dtype))
        assert y.dtype == np.dtype(other) and y.tolist() == [0, 1, 65535]


def test_bfloat16_is_float32_in_numpy():
    m = rlxvk.load(identity("bfloat16"))
    assert m.inputs[0].dtype == np.float32 and m.inputs[0].type == "BFLOAT16"
    # Halves to even: 1 + 2^-8 is between 1 and 1 + 2^-7; 1 + 3 2^-8 between 1 + 2^-7 and 1 + 2^-6.
    x = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -3e38, np.inf], np.float32)
    y, = m(x)
    assert y.dtype == np.float32
    assert y[:4].tolist() == [1, 1, 1 + 2**-6, 1 + 2**-7] and y[5] == np.inf
    assert abs(y[4] / -3e38 - 1) < 2**-8
    assert np.isnan(m(np.array([np.nan], np.float32))[0]).all()


def test_conversions_that_lose_nothing():
    def convert(value, dtype):
        return host_array(value, dtype, "x")

    for value, dtype, kind in [
        (np.array([1, 2]), lib.RLXVK_I32, "int32"),
        (np.array([1, 2], np.int32), lib.RLXVK_I64, "int64"),
        (np.array([1, 200]), lib.RLXVK_U8, "uint8"),
        (np.array([1, 2]), lib.RLXVK_F32, "float32"),
        (np.array([1, 2048], np.uint16), lib.RLXVK_F16, "float16"),
        (np.array([1, 2]), lib.RLXVK_C64, "complex64"),
        (np.array([True, False]), lib.RLXVK_F32, "float32"),
        (np.array([1.5], np.float16), lib.RLXVK_F32, "float32"),
        (np.array([1.5], np.float32), lib.RLXVK_F64, "float64"),
        (np.array([1.5], np.float32), lib.RLXVK_C64, "complex64"),
        (np.array([1.5, 2], ">f4"), lib.RLXVK_F32, "float32"),
        ([0.1, 2], lib.RLXVK_F32, "float32"),
        ([[1, 2], [3, 4]], lib.RLXVK_I32, "int32"),
        (1.5, lib.RLXVK_F16, "float16"),
        (True, lib.RLXVK_BOOL, "bool"),
        (memoryview(b"ab"), lib.RLXVK_U8, "uint8"),
    ]:
        array = convert(value, dtype)
        assert array.dtype == np.dtype(kind) and array.dtype.isnative, (value, dtype)
        assert (array == np.asarray(value).astype(kind)).all() and array.shape == np.shape(value)


def test_conversions_that_would_lose():
    f32, i32, flags = (rlxvk.load(identity(d)) for d in ("float32", "int32", "bool"))
    with pytest.raises(rlxvk.errors.DtypeError, match=r"'x' takes float32 .*float64.*astype\(nu"):
        f32(np.zeros(2))
    with pytest.raises(rlxvk.errors.DtypeError, match=r"'x' takes int32 \(I32\), and float32"):
        i32(np.zeros(2, np.float32))
    with pytest.raises(rlxvk.errors.DtypeError, match="'x' takes int32"):
        i32([1.0])
    with pytest.raises(rlxvk.errors.DtypeError, match="'x' takes bool"):
        flags(np.array([0, 1]))
    with pytest.raises(rlxvk.errors.DtypeError, match="elements of <U1; it takes float32"):
        f32(["a"])
    with pytest.raises(rlxvk.errors.ShapeError, match="'x' is no array"):
        f32([[1.0], [1.0, 2.0]])
    with pytest.raises(rlxvk.errors.RangeError, match="the integer 4294967296, which int32"):
        i32(np.array([1, 1 << 32]))
    with pytest.raises(rlxvk.errors.RangeError, match="the integer 16777217, which float32"):
        f32(np.array([1, (1 << 24) + 1]))
    with pytest.raises(rlxvk.errors.RangeError, match="the integer -16777217; integers above 2.24"):
        i32(np.array([0, -(1 << 24) - 1], np.int32))


def test_arrays_in_any_order():
    m = rlxvk.load(identity("float32", ("n", "m")))
    big = np.arange(48, dtype=np.float32).reshape(6, 8)
    shifted = np.frombuffer(b"x" + big.tobytes(), np.uint8)[1:].view(np.float32).reshape(6, 8)
    read_only = big.view()
    read_only.flags.writeable = False
    for x in (big, big.T, big[::2, 1:7:3], big[::-1], np.asfortranarray(big), shifted, read_only,
              np.broadcast_to(big[0], (3, 8)), np.ma.masked_array(big)):
        assert (m(x)[0] == np.asarray(x)).all()


def test_scalars():
    m = rlxvk.load(model([node("Neg", "x", "y")], [("x", "float32", ())], [("y", "float32", ())]))
    for x in (1.5, np.float32(1.5), np.array(1.5, np.float32)):
        assert m(x)[0].shape == () and m(x)[0] == -1.5


def test_a_fitting_array_is_not_copied():
    x = np.zeros((2, 3), np.float32)
    assert host_array(x, lib.RLXVK_F32, "x") is x
    assert host_array(x.T, lib.RLXVK_F32, "x").base is None
