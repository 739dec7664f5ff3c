#!/usr/bin/env python3
"""Makes the generated modules of the Python package from the public headers.

    bind.py OUT_FOLDER HEADER...

_declarations.py   every public type, constant and call, as cffi's out-of-line ABI mode reads them
errors.py          one exception for each status of rlxvk.h
ops.py             one function for each builder (builders.py)

The headers go through the C preprocessor: $CC, or gcc. Needs cffi.
"""
from __future__ import annotations

import builtins
import contextlib
import os
import re
import shlex
import subprocess
import sys
from typing import Any

from builders import ops_source

# Of the status table: X(E_SHAPE, 4, "shapes do not agree").
STATUS = re.compile(r'X\((E_[A-Z_]+), (\d+), "([^"]+)"\)')
MACRO = re.compile(r"#define\s+(RLXVK_\w+)\s+\S")


def preprocess(folder: str, source: str, *options: str) -> str:
    """The output of the preprocessor for a source that includes headers of `folder`."""
    command = shlex.split(os.environ.get("CC", "gcc"))
    command += ["-E", "-x", "c", *options, "-I", folder, "-"]
    done = subprocess.run(command, input=source, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def own_lines(text: str, folder: str) -> str:
    """Only the lines that come from the headers of `folder`, without attributes."""
    kept, own = [], False
    for line in text.splitlines():
        place = re.match(r'# \d+ "(.*?)"', line)
        if place:
            own = os.path.dirname(place.group(1)) == folder
        elif own and line.strip():
            kept.append(line)
    return re.sub(r"__attribute__\(\(.*?\)\)", "", "\n".join(kept))


def constants(folder: str, includes: str) -> list[str]:
    """Each macro of the headers that is an integer, as "#define NAME NUMBER"."""
    lines = preprocess(folder, includes, "-dM").splitlines()
    names = sorted(m.group(1) for m in map(MACRO.match, lines) if m)
    # The text of a macro may go over several lines. In quotes, its name stays.
    uses = "".join(f'"{name}" {name}\n' for name in names)
    expanded = preprocess(folder, includes + uses, "-P")
    found = []
    for name, value in re.findall(r'"(RLXVK_\w+)"([^";]*)', expanded):
        value = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]*\b", r"\1", value)
        if re.fullmatch(r"[-+*()\s0-9a-fA-Fx]+", value):
            found.append(f"#define {name} {eval(value.strip())}")
    return found


def error_classes(table: str) -> str:
    """The source of errors.py."""
    statuses = STATUS.findall(table)
    assert statuses, "rlxvk.h has no table of statuses"
    lines = [
        '"""The exceptions of the package, one for each status. bind.py wrote this."""',
        "from __future__ import annotations",
        "",
        "import builtins",
        "",
        "from ._error import Error",
    ]
    classes = []
    for name, number, meaning in statuses:
        title = "".join(word.title() for word in name[2:].split("_")) + "Error"
        # An exception of the language with the same name catches it, too.
        bases = "Error" + (f", builtins.{title}" if hasattr(builtins, title) else "")
        meaning = meaning[0].upper() + meaning[1:]
        lines += ["", "", f"class {title}({bases}):", f'    """{meaning}."""']
        lines += ["", f'    status = "{name}"']
        classes.append(f"    {number}: {title},")
    lines += ["", "", "BY_NUMBER: dict[int, type[Error]] = {", *classes, "}"]
    names = sorted(c.split(": ")[1].rstrip(",") for c in classes)
    lines += ["", '__all__ = ["Error", ' + ", ".join(f'"{n}"' for n in names) + "]", ""]
    return "\n".join(lines)


def declarations(folder: str, includes: str, out: str) -> Any:
    """Writes the module that cffi loads. Returns what knows the types."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef("\n".join(constants(folder, includes)))
    ffi.cdef(own_lines(preprocess(folder, includes), folder))
    ffi.set_source("rlxvk._declarations", None)
    with contextlib.redirect_stdout(None): # cffi says what it writes
        ffi.emit_python_code(out)
    return ffi


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main() -> None:
    out, headers = sys.argv[1], sys.argv[2:]
    folder = os.path.dirname(headers[0])
    includes = "".join(f"#include <{os.path.basename(header)}>\n" for header in headers)
    os.makedirs(out, exist_ok=True)
    ffi = declarations(folder, includes, os.path.join(out, "_declarations.py"))
    texts = {os.path.basename(header): read(header) for header in headers}
    write(os.path.join(out, "errors.py"), error_classes(texts["rlxvk.h"]))
    names = [name for name in sorted(texts) if name.startswith(("rlxvk_ops", "rlxvk_train"))]
    write(os.path.join(out, "ops.py"), ops_source(ffi, [texts[name] for name in names]))


if __name__ == "__main__":
    main()
