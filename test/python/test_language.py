"""Language models: texts are those of the program rlxvk generate."""
from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import threading
import weakref

import numpy as np
import pytest
import rlxvk
from gguf_file import changed
from onnx_file import identity
from rlxvk._library import _alive

PROMPT = "The open() system call"
# Tokens of the bundled model, and of the tiny one, that become control words of a template.
BUNDLED = {47: "<|im_end|>", 300: "<|im_start|>"}
TINY = {94: "<|im_end|>", 95: "<|im_start|>"}


@pytest.fixture(scope="module")
def plain(root):
    """The bundled model."""
    return os.path.join(root, "test", "data", "docs-5m-q4_k_m.gguf")


@pytest.fixture(scope="module")
def tiny(root):
    """Random weights, but fast. Its context has 64 tokens."""
    return os.path.join(root, "test", "data", "models", "llama.gguf")


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


@pytest.fixture(scope="module")
def template(root):
    return content_of(os.path.join(root, "test", "data", "chat", "chatml.jinja")).decode()


@pytest.fixture(scope="module")
def talking(tiny, template, tmp_path_factory):
    """The tiny model with a chat template and a longer context."""
    path = tmp_path_factory.mktemp("models") / "chat.gguf"
    path.write_bytes(changed(content_of(tiny), template, TINY, context_length=512))
    return str(path)


@pytest.fixture(scope="module")
def model(talking):
    return rlxvk.load(talking)


def generate(path, *options, **more):
    """What the program prints, without its last line."""
    program = os.path.join(os.environ["BUILD"], "bin", "rlxvk")
    done = subprocess.run([program, "generate", path, *options], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, timeout=120, **more)
    return done.stdout


def told(path, *options):
    return json.loads(generate(path, *options, "--json"))


def test_a_gguf_file_is_a_language_model(plain, model):
    assert isinstance(model, rlxvk.LanguageModel) and isinstance(model, rlxvk.Model)
    assert (model.vocabulary, model.capacity, model.template) == (96, 512, "ChatML")
    m = rlxvk.load(content_of(plain), capacity=64, cache="f16")
    assert m.capacity == 64 and m.template is None
    assert m.generate(PROMPT, 5, temperature=0) == rlxvk.load(plain).generate(PROMPT, 5,
                                                                              temperature=0)
    assert not isinstance(rlxvk.load(identity("float32")), rlxvk.LanguageModel)
    assert type(rlxvk.load(memoryview(identity("float32")))) is rlxvk.Model


@pytest.mark.parametrize("options, sampling", [
    (["--greedy"], {"temperature": 0}),
    ([], {}),
    (["--seed", "7"], {"seed": 7}),
    (["--temperature", "2", "--top-k", "0", "--top-p", "1", "--seed", "18446744073709551615"],
     {"temperature": 2, "top_k": 0, "top_p": 1, "seed": 2**64 - 1}),
    (["--temperature", "1.5", "--top-k", "5", "--top-p", "0.5"],
     {"temperature": 1.5, "top_k": 5, "top_p": 0.5})])
def test_texts_are_those_of_the_program(tiny, options, sampling):
    m = rlxvk.load(tiny)
    wanted = told(tiny, "-p", "a b", "--tokens", "40", *options)
    for _ in range(2): # again: from a new start
        assert m.generate("a b", 40, **sampling) == wanted["text"]
    assert "".join(m.stream("a b", 40, **sampling)) == wanted["text"]
    assert m.encode("a b") == wanted["prompt_ids"] and len(wanted["ids"]) > 30
    assert m.decode(wanted["ids"]) == wanted["text"]


def test_the_bundled_model_says_what_the_program_says(plain):
    wanted = told(plain, "-p", PROMPT, "--tokens", "20", "--seed", "3")
    assert rlxvk.load(plain).generate(PROMPT, 20, seed=3) == wanted["text"]


def test_sampling_changes_from_text_to_text(tiny):
    m, ways = rlxvk.load(tiny), ({"temperature": 0}, {"seed": 3}, {"seed": 4}, {"top_k": 3})
    alone = [rlxvk.load(tiny).generate("a b", 20, **way) for way in ways]
    assert len(set(alone)) == 4
    for i in (0, 1, 2, 3, 1, 0):
        assert m.generate("a b", 20, **ways[i]) == alone[i]


def test_a_word_keeps_the_space_before_it(tiny):
    # The tokenizer puts a space before a text, and drops it when it decodes one.
    m = rlxvk.load(tiny)
    assert m.decode(m.encode(" b")) == " b"
    # Words of an answer keep it, although it is decoded token by token.
    text = m.generate("a b", 30, temperature=1)
    assert " " in text.strip() and text == told(
        tiny, "-p", "a b", "--tokens", "30", "--temperature", "1")["text"]


def test_turns_are_those_of_the_program(talking, model):
    options = ["--chat", "--system", "Be brief.", "--tokens", "40", "--seed", "5"]
    wanted = told(talking, "-p", "What?", *options)
    text = model.generate("What?", 40, chat=True, system="Be brief.", seed=5)
    assert text == wanted["text"]
    assert len(model._turn("What?", "Be brief.")) > len(model._turn("What?", None))


def test_conversations_are_those_of_the_program(talking, model):
    lines = ["What?", "And then?", "A file"]
    options = ["--interactive", "--chat", "--system", "Be brief.", "--tokens", "30"]
    out = generate(talking, *options, input="\n".join(lines).encode())
    chat = model.chat(system="Be brief.")
    texts = [chat.reply(line, 30) for line in lines]
    assert out.decode(errors="replace").startswith("\n".join(texts) + "\n")


def test_another_text_does_not_change_a_conversation(model):
    lines = ["What?", "And then?", "A file"]
    chats = [model.chat(temperature=0) for _ in range(2)]
    whole = [chats[0].reply(line, 8) for line in lines]
    for line, wanted in zip(lines, whole):
        assert chats[1].reply(line, 8) == wanted # runs what was said once more
        model.generate("x", 2)


def test_texts_end(tiny, tmp_path):
    ids = told(tiny, "-p", "a b", "--greedy", "--tokens", "12")["ids"]
    end = ids[6]
    path = tmp_path / "ends.gguf"
    path.write_bytes(changed(content_of(tiny), eos_token_id=end))
    m = rlxvk.load(path)
    before = ids[: ids.index(end)]
    assert before and m.encode(m.generate("a b", None, temperature=0), False) == before
    assert m.generate("a b", 12, temperature=0) == generate(
        path, "-p", "a b", "--greedy").decode().splitlines()[0]


def test_a_reply_may_be_cut(model):
    chats = [model.chat(temperature=0) for _ in range(2)]
    pieces = chats[0].stream("read")
    first = next(pieces)
    pieces.close()
    assert chats[1].reply("read", 1) == first
    assert chats[0].reply("more", 4) == chats[1].reply("more", 4)
    # A turn that does not fit is no part of the conversation.
    with pytest.raises(rlxvk.errors.RangeError, match="larger capacity"):
        chats[0].reply("x" * 3000)
    assert chats[0].reply("and", 4) == chats[1].reply("and", 4)


def test_a_stream_has_whole_characters(tiny, monkeypatch):
    m = rlxvk.load(tiny)
    word = "Größe 😀"
    letters = [bytes([byte]) for byte in word.encode() + b"\xf0\x9f"]
    monkeypatch.setattr("rlxvk._language._Text._generate", lambda *_: enumerate(letters))
    assert list(m.stream("x")) == [*word, "\ufffd"]
    assert m.generate("x") == word + "\ufffd"


def test_bytes_at_random_become_text(plain):
    m = rlxvk.load(plain)
    text = m.generate("x", 12, temperature=50, top_k=0, top_p=1)
    wanted = generate(plain, "-p", "x", "--tokens", "12", "--temperature", "50", "--top-k", "0",
                      "--top-p", "1")
    assert text == wanted.decode(errors="replace")[: len(text)] and "\ufffd" in text


def test_a_stream_comes_piece_by_piece(tiny):
    m = rlxvk.load(tiny)
    whole = m.generate("a b", 12, temperature=0)
    pieces = m.stream("a b", 12, temperature=0)
    first = [next(pieces), next(pieces)]
    assert whole.startswith("".join(first)) and "".join(first) != whole
    assert "".join(first + list(pieces)) == whole
    assert list(pieces) == []


def test_another_text_ends_a_stream(tiny):
    m = rlxvk.load(tiny)
    old = m.stream("a b", 12, temperature=0)
    next(old)
    new = m.stream("a b", 3, temperature=0)
    next(old) # the new one has not begun
    next(new)
    with pytest.raises(rlxvk.errors.OrderError, match="another text of this model has begun"):
        next(old)
    assert len(list(new)) <= 2


def test_the_capacity_ends_a_text(tiny):
    m = rlxvk.load(tiny, capacity=30)
    count = len(m.encode("a b"))
    wanted = told(tiny, "-p", "a b", "--greedy", "--tokens", str(30 - count))["text"]
    assert m.generate("a b", None, temperature=0) == wanted
    assert m.generate("a b", 500, temperature=0) == wanted
    with pytest.raises(rlxvk.errors.RangeError, match="room for 30 of its 30.*larger capacity"):
        m.generate("x" * 40)
    assert m.generate("a b", None, temperature=0) == wanted


def test_texts_become_tokens_and_texts(plain, template):
    m = rlxvk.load(changed(content_of(plain), template, BUNDLED))
    for word in ("", "a", "Größe 😀 \n", "\0"):
        ids = m.encode(word)
        assert m.decode(ids) == word and ids[0] == 1 and m.encode(word, begins=False) == ids[1:]
    assert m.encode("<|im_end|>", begins=False) == [47]
    assert m.decode(np.array([47, 100, 319, 2**32 - 1])) == m.decode([100, 319])
    assert m.decode([0xF0 + 3]) == "\ufffd"
    with pytest.raises(rlxvk.errors.RangeError, match="a token is -1"):
        m.decode([-1])


def test_texts_that_are_refused(root, plain, model):
    m = rlxvk.load(plain)
    errors = rlxvk.errors
    with pytest.raises(errors.UnknownNameError, match="no chat template"):
        m.generate("x", chat=True)
    with pytest.raises(errors.AttrError, match="chat=True"):
        m.generate("x", system="Be brief.")
    for options, kind, words in [
        ({"tokens": 0}, errors.RangeError, "tokens is 0"),
        ({"temperature": -1}, errors.AttrError, "temperature is -1"),
        ({"temperature": float("nan")}, errors.AttrError, "temperature is nan"),
        ({"top_p": 1.5}, errors.AttrError, "top_p is 1.5"),
        ({"top_k": -1}, errors.RangeError, "top_k is -1"),
        ({"seed": 2**64}, errors.RangeError, "seed is 18446744073709551616"),
        ({"heat": 1}, TypeError, "heat"),
    ]:
        with pytest.raises(kind, match=words):
            m.generate("x", **options)
        with pytest.raises(kind, match=words):
            m.stream("x", **options) # at once
    with pytest.raises(errors.RangeError, match="exceeds the model's context of 2048"):
        rlxvk.load(plain, capacity=2049).generate("x")
    with pytest.raises(errors.RangeError, match="capacity is 0"):
        rlxvk.load(plain, capacity=0)
    with pytest.raises(errors.AttrError, match="no cache of 'f64'; there are: f32, f16"):
        rlxvk.load(plain, cache="f64")
    for name in {"capacity": 64}, {"cache": "f16"}:
        with pytest.raises(errors.AttrError, match="of language models"):
            rlxvk.load(identity("float32"), **name)
    with pytest.warns(UserWarning, match="put in front once more"):
        m.generate("<s>x", 1)
    assert isinstance(model.generate("x", 1), str)


def test_logits_and_texts_agree(tiny):
    m = rlxvk.load(tiny)
    ids = m.encode("a b")
    logits, = m([ids])
    best = int(np.argmax(logits[0, -1]))
    assert m.generate("a b", 1, temperature=0) == m.decode([best])


def test_two_threads_generate(tiny):
    m = rlxvk.load(tiny)
    wanted = [m.generate("a b", 10, seed=seed) for seed in range(4)]
    found = {}

    def job(seeds):
        for seed in seeds:
            found[seed] = m.generate("a b", 10, seed=seed)

    threads = [threading.Thread(target=job, args=(seeds,)) for seeds in ((0, 1), (2, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == wanted


def test_objects_go_in_any_order(tiny):
    for order in (0, 1, 2), (2, 1, 0), (1, 0, 2):
        gc.collect()
        context = rlxvk.Context()
        m = rlxvk.load(tiny, device=context, capacity=64)
        pieces = m.stream("x", 8)
        next(pieces)
        handles = [weakref.ref(h) for h in (context._handle, m._handle, m._words, m._language)]
        objects = [context, m, pieces]
        del context, m, pieces
        for i in order:
            objects[i] = None
        gc.collect()
        assert [h() for h in handles] == [None] * 4


def test_a_model_in_a_circle(tiny):
    gc.collect()
    before = len(_alive)
    context = rlxvk.Context()
    m = rlxvk.load(tiny, device=context, capacity=64)
    m.generate("x", 2)
    m.itself, m.context = m, context
    del m, context
    gc.collect()
    assert len(_alive) == before


@pytest.mark.parametrize("end", [
    "",
    "del m",
    "pieces = m.stream('x'); next(pieces)",
    "threading.Thread(target=lambda: [m.generate('x', 9) for _ in iter(int, 1)], "
    "daemon=True).start(); time.sleep(0.2)",
])
def test_the_program_ends_well(tiny, python, end):
    program = f"""
import threading, time, rlxvk
m = rlxvk.load({tiny!r}, capacity=64)
print(len(m.generate('x', 2)), flush=True)
{end}
"""
    assert python(program) == "2\n"


def test_what_belongs_to_the_process_is_not_pickled(model):
    for thing in (model, model.chat()):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            pickle.dumps(thing)
