"""The wheel: what is in it, that it works where nothing else of the project is, and that it is
reproducible."""
from __future__ import annotations

import os
import re
import subprocess
import zipfile

import rlxvk

PROGRAM = """
import numpy as np
import rlxvk

g = rlxvk.Graph()
x, w = g.input("x", (None, 784)), g.param("w", (784, 10))
f = rlxvk.compile(g, [(x @ w).softmax(-1)], params={"w": np.zeros((784, 10), "f4")})
y, = f(x=np.ones((3, 784), "f4"))
print(rlxvk.__file__, y.shape, y.min() == y.max())
"""


def make(root: str, out: str) -> str:
    tool = os.path.join(root, "tools", "python", "wheel.sh")
    package = os.path.join(os.environ["BUILD"], "python")
    command = [tool, package, out, rlxvk.__version__]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_the_wheel(root, python, tmp_path):
    first, second = (make(root, str(tmp_path / name)) for name in ("first", "second"))
    name = os.path.basename(first)
    version = re.escape(rlxvk.__version__)
    assert re.fullmatch(rf"rlxvk-{version}-py3-none-manylinux_2_\d+_\w+\.whl", name)
    with open(first, "rb") as a, open(second, "rb") as b:
        assert a.read() == b.read()
    site = tmp_path / "site"
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
        wheel.extractall(site)
    assert {"rlxvk/librlxvk.so", "rlxvk/ops.py", "rlxvk/py.typed"} <= names
    assert not [n for n in names if "__pycache__" in n or n.endswith((".pyc", ".in"))]
    assert python(PROGRAM, folder=tmp_path, PYTHONPATH=str(site)) == (
        f"{site}/rlxvk/__init__.py (3, 10) True\n"
    )
