"""Reads and writes arrays in .safetensors and .npz files with only the standard library of Python.

params_file.py read FILE                            prints a line for each array: its name and bytes in hexadecimal
params_file.py write FILE [--compressed|--fortran]  reads the same lines from standard input
"""
import ast
import io
import json
import math
import struct
import sys
import zipfile

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "U8": 1, "U32": 4, "BOOL": 1, "C64": 8}
NUMPY = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "|u1", "U32": "<u4",
         "BOOL": "|b1", "C64": "<c8"}


def read_safetensors(data):
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0, "the elements are not aligned"
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    elements, end = data[8 + length :], 0
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        assert begin == end and stop <= len(elements), "gaps, or beyond the end"
        assert begin % SIZES[entry["dtype"]] == 0, "not aligned"
        end = stop
        yield name, entry["dtype"], entry["shape"], elements[begin:stop]
    assert end == len(elements), "more than the tensors"


def read_npy(data):
    assert data[:8] == b"\x93NUMPY\x01\x00"
    (length,) = struct.unpack("<H", data[8:10])
    assert (10 + length) % 64 == 0 and data[9 + length : 10 + length] == b"\n"
    header = ast.literal_eval(data[10 : 10 + length].decode("latin1"))
    assert sorted(header) == ["descr", "fortran_order", "shape"] and header["fortran_order"] is False
    (dtype,) = (d for d, descr in NUMPY.items() if descr == header["descr"])
    return dtype, list(header["shape"]), data[10 + length :]


def read_npz(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.filename.endswith(".npy") and info.compress_type == zipfile.ZIP_STORED
            yield (info.filename[:-4], *read_npy(archive.read(info)))


def write_safetensors(arrays):
    header, elements = {"__metadata__": {"made by": "a \"test\"\n\u00e9"}}, b""
    for name, dtype, shape, data in arrays:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(elements), len(elements) + len(data)]}
        elements += data
    text = json.dumps(header, indent=1).encode() + b"   "
    return struct.pack("<Q", len(text)) + text + elements


def write_npz(arrays, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, dtype, shape, data in arrays:
            text = repr({"descr": NUMPY[dtype], "fortran_order": "--fortran" in sys.argv, "shape": tuple(shape)}).encode() + b"\n"
            with archive.open(name + ".npy", "w", force_zip64=len(data) % 2 == 0) as member:
                member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)
    return out.getvalue()


def main():
    path = sys.argv[2]
    if sys.argv[1] == "read":
        with open(path, "rb") as file:
            data = file.read()
        arrays = read_npz(data) if path.endswith(".npz") else read_safetensors(data)
        for name, dtype, shape, elements in sorted(arrays, key=lambda a: a[0].encode()):
            assert len(elements) == math.prod(shape) * SIZES[dtype]
            print(name.encode().hex(), dtype, "x".join(map(str, shape)) or "scalar", elements.hex() or "-")
        return
    arrays = []
    for line in sys.stdin:
        name, dtype, shape, elements = line.split()
        arrays.append((bytes.fromhex(name).decode(), dtype, [] if shape == "scalar" else [int(d) for d in shape.split("x")],
                       b"" if elements == "-" else bytes.fromhex(elements)))
    method = zipfile.ZIP_DEFLATED if "--compressed" in sys.argv else zipfile.ZIP_STORED
    with open(path, "wb") as file:
        file.write(write_npz(arrays, method) if path.endswith(".npz") else write_safetensors(arrays))


main()
