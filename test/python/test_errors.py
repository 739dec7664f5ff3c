"""Exceptions, and how the library is found."""
from __future__ import annotations

import builtins
import os
import re
import shutil
import subprocess

import pytest
import rlxvk
from rlxvk import _library, errors
from rlxvk._library import ffi, lib


def test_each_status_has_an_exception(root):
    with open(os.path.join(root, "include", "rlxvk.h"), encoding="utf-8") as file:
        table = dict(re.findall(r"X\((E_[A-Z_]+), (\d+),", file.read()))
    assert len(table) > 30
    found = {kind.status: number for number, kind in errors.BY_NUMBER.items()}
    assert found == {name: int(number) for name, number in table.items()}
    for number, kind in errors.BY_NUMBER.items():
        words = kind.status[2:].title().replace("_", "")
        assert kind.__name__ == words + "Error" and issubclass(kind, rlxvk.Error)
        meaning = ffi.string(lib.rlxvk_status_text(number)).decode()
        assert kind.__doc__.lower() == meaning.lower() + "."
        assert getattr(errors, kind.__name__) is kind and kind.__name__ in errors.__all__


def test_exceptions_of_the_language_catch_those_of_the_same_name():
    assert issubclass(errors.IndexError, builtins.IndexError)
    assert issubclass(errors.TimeoutError, builtins.TimeoutError)
    assert not issubclass(errors.ShapeError, builtins.ValueError)


def test_a_failed_call_has_the_sentence_of_the_library():
    shape = ffi.new("rlxvk_shape *")
    shape.rank, shape.dims[0] = 1, -1
    count = ffi.new("uint64_t *")
    with pytest.raises(errors.ShapeError, match="-1") as caught:
        _library.check(lib.rlxvk_shape_elements(shape[0], count))
    assert caught.value.status == "E_SHAPE"
    with pytest.raises(rlxvk.Error):
        _library.check(9999) # a status of a later library
    shape.dims[0] = 3
    _library.check(lib.rlxvk_shape_elements(shape[0], count))
    assert count[0] == 3


def test_declarations_have_all_public_calls(root):
    names = set()
    for header in os.listdir(os.path.join(root, "include")):
        if header.endswith(".h"):
            with open(os.path.join(root, "include", header), encoding="utf-8") as file:
                names |= set(re.findall(r"^(?!typedef)\w.*?\b(rlxvk_\w+)\(", file.read(), re.M))
    # C++ templates are the only functions that only a header has.
    names -= {"rlxvk_shape_make", "rlxvk_struct_sized"}
    assert [n for n in names if not hasattr(lib, n)] == []
    assert len(names) > 300 and lib.RLXVK_NO_SUBMISSION_BOUND == 2**64 - 1
    assert lib.RLXVK_SLICE_FIRST == -(2**63) and lib.RLXVK_MAX_RANK == 8


def test_another_version_is_refused(tmp_path, python):
    for version, fits in ("0.3.99", True), ("0.2.0", False), ("0.4.0", False), ("1.3.0", False):
        path = tmp_path / f"{version}.so"
        program = f'const char *rlxvk_version(void) {{ return "{version}"; }}'
        program += 'const char *rlxvk_precision_name(int p) { return "f32"; }'
        program += 'const char *rlxvk_dtype_name(int p) { return "F32"; }'
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", path, "-"], input=program,
                       text=True, check=True)
        code = "import rlxvk; print(rlxvk.__version__)"
        if fits:
            assert python(code, RLXVK_LIBRARY=str(path)) == version + "\n"
        else:
            told = python(code, fails=True, RLXVK_LIBRARY=str(path))
            assert f"has version {version}" in told and "was made for version 0.3.0" in told


@pytest.mark.parametrize("found, declared, fits", [
    ("1.2.0", (1, 2, 3), True), ("1.3.0", (1, 2, 0), True), ("1.1.0", (1, 2, 0), False),
    ("2.2.0", (1, 2, 0), False), ("0.3.0", (0, 3, 0), True), ("0.4.0", (0, 3, 0), False),
    ("strange", (0, 3, 0), False)])
def test_versions_that_fit(found, declared, fits):
    assert _library._fits(found, declared) == fits


def test_the_library_is_found(tmp_path, python):
    code = "import rlxvk; rlxvk.Context(); print(rlxvk.__version__)"
    folder = os.path.dirname(rlxvk.__file__)
    library = os.path.join(folder, "librlxvk.so")
    assert python(code) == "0.3.0\n"
    assert python(code, RLXVK_LIBRARY=library) == "0.3.0\n"
    told = python(code, fails=True, RLXVK_LIBRARY="/nowhere/librlxvk.so")
    assert "let RLXVK_LIBRARY be its path" in told and "/nowhere/librlxvk.so" in told
    # Without one beside the package, it is the system's.
    copy = tmp_path / "rlxvk"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    assert "librlxvk.so.0" in python(code, fails=True, PYTHONPATH=str(tmp_path))
    (tmp_path / "lib").mkdir()
    shutil.copy(library, tmp_path / "lib" / "librlxvk.so.0")
    paths = {"PYTHONPATH": str(tmp_path), "LD_LIBRARY_PATH": str(tmp_path / "lib")}
    assert python(code, **paths) == "0.3.0\n"
