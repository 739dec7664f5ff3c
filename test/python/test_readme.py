"""The examples of the README, word for word."""
from __future__ import annotations

import os
import re
import shutil

import numpy as np
import rlxvk
from onnx_file import net


def programs(root: str) -> list[str]:
    with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)


def test_the_graph_of_the_readme(root, python):
    """All logits begin at 0. A step of Adam moves weights by its rate, so logits by 1e-3."""
    losses, shape = python(programs(root)[1]).strip("[").split("] ")
    losses = [float(loss) for loss in losses.split(", ")]
    assert losses[0] == round(np.log(10), 4) and losses[0] > losses[1] > losses[2] > 2.295
    assert shape == "(784, 10)\n"


def test_the_example_of_the_readme(root, python, tmp_path, monkeypatch):
    program, _ = programs(root)
    (tmp_path / "net.onnx").write_bytes(net()[0])
    shutil.copy(os.path.join(root, "test", "data", "models", "llama.gguf"), tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    m, language = rlxvk.load("net.onnx"), rlxvk.load("model.gguf")
    texts = [language.generate("Once upon a time", 60, temperature=0),
             language.generate("Once upon a time", seed=7)]
    assert "x: float32 (batch, 5)" in repr(m) and all(texts)
    assert m(np.ones((2, 5), np.float32))[0].shape == (2, 3)
    assert python(program, folder=tmp_path) == f"{m}\n(2, 3)\n{texts[0]}\n{texts[1]}"
