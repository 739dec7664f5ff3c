"""Models of the repository and of ONNX's node tests: the package agrees with others."""
from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
import rlxvk

NODES = "/usr/share/libonnx-testdata/data/node"


def test_a_language_model_as_rlxvk_run_has_it(root, tmp_path):
    path = os.path.join(root, "test", "data", "models", "qwen3.gguf")
    tokens = np.array([[5, 17, 40, 2, 9]], np.int32)
    np.save(tmp_path / "tokens.npy", tokens)
    program = os.path.join(os.environ["BUILD"], "bin", "rlxvk")
    subprocess.run([program, "run", path, "--input", f"tokens={tmp_path}/tokens.npy", "--output",
                    str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    m = rlxvk.load(path)
    assert [info.shape for info in m.inputs] == [("batch", "length")]
    logits, = m(tokens=tokens)
    assert logits.dtype == np.float32 and logits.shape[:2] == (1, 5)
    assert (logits == np.load(tmp_path / "output_0.npy")).all()


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_language_model_as_its_reference_has_it(root, name):
    path = os.path.join(root, "test", "data", "models", name)
    with open(path + ".json", encoding="utf-8") as file:
        golden = json.load(file)
    logits, = rlxvk.load(path + ".gguf", outputs=["logits"])([golden["ids"]])
    wanted = np.array(golden["last_logits"])
    assert np.abs(logits[0, -1] - wanted).max() < 1e-5 * np.abs(wanted).max()


def read_tensor(path):
    """A tensor of ONNX from a .pb file, by a reader of our own."""
    kinds = {1: "f4", 2: "u1", 3: "i1", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4"}
    with open(path, "rb") as file:
        content = file.read()
    at, dims, kind, raw = 0, [], 0, b""

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(content):
        tag = number()
        if tag & 7 == 0:
            value = number()
            if tag >> 3 == 1:
                dims.append(value)
            kind = value if tag >> 3 == 2 else kind
        else:
            length = number()
            raw = content[at : at + length] if tag >> 3 == 9 else raw
            at += length
    return np.frombuffer(raw, kinds[kind]).reshape(dims)


@pytest.mark.skipif(not os.path.isdir(NODES), reason="no package libonnx-testdata here")
@pytest.mark.parametrize("name", [
    "test_conv_with_strides_padding", "test_softmax_axis_1", "test_layer_normalization_4d_axis1",
    "test_gather_2d_indices", "test_reshape_negative_dim", "test_where_example", "test_slice",
    "test_split_equal_parts_1d", "test_nonzero_example", "test_argmax_default_axis_example",
    "test_gemm_all_attributes", "test_cast_FLOAT_to_FLOAT16", "test_lstm_defaults",
    "test_quantizelinear", "test_top_k", "test_unique_sorted_without_axis"])
def test_nodes_of_the_standard(name):
    m = rlxvk.load(f"{NODES}/{name}/model.onnx")
    data = f"{NODES}/{name}/test_data_set_0"
    outputs = m(*(read_tensor(f"{data}/input_{i}.pb") for i in range(len(m.inputs))))
    for i, got in enumerate(outputs):
        wanted = read_tensor(f"{data}/output_{i}.pb")
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)
