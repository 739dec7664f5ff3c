"""Element types of the library as those of NumPy, and conversions that lose nothing."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import errors
from ._library import ffi, lib, text

Array = np.ndarray[Any, Any]

# The type in which a tensor of a dtype goes through NumPy. NumPy has no bfloat16: such values are
# float32 there, and the library takes and gives them as f32 words.
NUMPY: dict[int, np.dtype[Any]] = {
    lib.RLXVK_F32: np.dtype(np.float32),
    lib.RLXVK_F16: np.dtype(np.float16),
    lib.RLXVK_BF16: np.dtype(np.float32),
    lib.RLXVK_F64: np.dtype(np.float64),
    lib.RLXVK_I8: np.dtype(np.int8),
    lib.RLXVK_I16: np.dtype(np.int16),
    lib.RLXVK_I32: np.dtype(np.int32),
    lib.RLXVK_I64: np.dtype(np.int64),
    lib.RLXVK_U8: np.dtype(np.uint8),
    lib.RLXVK_U32: np.dtype(np.uint32),
    lib.RLXVK_BOOL: np.dtype(np.bool_),
    lib.RLXVK_C64: np.dtype(np.complex64),
}

# The device holds these integers as f32 words, which are exact up to 2^24.
_WIDE = (lib.RLXVK_I32, lib.RLXVK_I64, lib.RLXVK_U32)
_EXACT = 1 << 24

# How refusals name a kind of NumPy's types.
_KINDS = {"b": "booleans", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers"}


def dtype_name(dtype: int) -> str:
    """The library's name: "F32", "BOOL"."""
    return text(lib.rlxvk_dtype_name(dtype))


def shape_text(shape: tuple[Any, ...]) -> str:
    """As Python writes a tuple, but with names of dims bare: (batch, 3)."""
    inside = ", ".join("?" if dim is None else str(dim) for dim in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def host_array(value: Any, dtype: int, name: str) -> Array:
    """The value of input `name` as a contiguous array in the host type of `dtype`.

    Nothing is copied if it is one already. Integers and booleans become integers or floats that
    hold them exactly, and floats become wider floats. Python's own numbers become any floats.
    Tensors of other libraries come by DLPack.
    Other conversions are a DtypeError, and numbers that do not fit are a RangeError.
    """
    target = NUMPY[dtype]
    if isinstance(value, np.ndarray) and value.dtype == target:
        # ascontiguousarray makes a row of a scalar.
        fits = value.flags.c_contiguous and value.flags.aligned
        array = value if fits and type(value) is np.ndarray else _contiguous(value, target)
    else:
        array = _converted(value, target, dtype, name)
    if dtype in _WIDE:
        _check_exact(array, name)
    elif dtype == lib.RLXVK_BF16:
        array = _rounded_to_bf16(array)
    return array


def _contiguous(value: Any, target: np.dtype[Any]) -> Array:
    return np.array(value, dtype=target, order="C", copy=True, subok=False)


def _converted(value: Any, target: np.dtype[Any], dtype: int, name: str) -> Array:
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        value = np.from_dlpack(value) # tensors of other libraries, in host memory
    own = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")
    try:
        given = np.asarray(value)
    except ValueError as problem:
        raise errors.ShapeError(f"input '{name}' is no array: {problem}") from None
    if given.dtype.kind not in "biufc" and given.dtype.name != "bfloat16":
        raise errors.DtypeError(
            f"input '{name}' has elements of {given.dtype}; it takes {target} ({dtype_name(dtype)})"
        )
    if np.can_cast(given.dtype, target, "safe"):
        return _contiguous(given, target)
    wanted = target.kind
    if given.dtype.kind in "iu" and wanted in "iufc":
        return _exact_integers(given, target, name)
    if not own and given.dtype.kind + wanted in ("ff", "fc", "cc"):
        return _contiguous(given, target)
    raise errors.DtypeError(
        f"input '{name}' takes {target} ({dtype_name(dtype)}), and {given.dtype} cannot become "
        f"that without loss; if rounding is right here, give it array.astype(numpy.{target})"
    )


def _exact_integers(given: Array, target: np.dtype[Any], name: str) -> Array:
    """Integers in another type, if it has each of them."""
    with np.errstate(over="ignore"):
        array = _contiguous(given, target)
    if target.kind in "iu":
        limits = np.iinfo(target)
        bad = (given < limits.min) | (given > limits.max)
    else:
        back = array.real.astype(np.float64)
        # Floats that hold an integer beyond 2^53 are not compared.
        bad = (np.abs(back) > 2.0**53) | (back != given.astype(np.float64))
    if bad.any():
        raise errors.RangeError(
            f"input '{name}' has the integer {given[bad].flat[0]}, which {target} does not have"
        )
    return array


def _check_exact(array: Array, name: str) -> None:
    if array.size and (array.max() > _EXACT or array.min() < -_EXACT):
        worst = array.max() if array.max() > _EXACT else array.min()
        raise errors.RangeError(
            f"input '{name}' has the integer {worst}; integers above 2^24 in magnitude are not "
            "exact on the device"
        )


def _rounded_to_bf16(array: Array) -> Array:
    """Floats as bfloat16 has them: to nearest, ties to even. Infinities and NaN stay."""
    words = array.view(np.uint32)
    if not (words & 0xFFFF).any():
        return array
    odd = (words >> 16) & 1
    rounded = ((words + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isfinite(array), rounded, array)


def pointer(array: Array) -> Any:
    """The address of a contiguous array, which must outlive its use."""
    return ffi.from_buffer(array)
