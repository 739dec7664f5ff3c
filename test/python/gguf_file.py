"""Changes the metadata of GGUF files, without any package of GGUF."""
from __future__ import annotations

import struct
from typing import Any

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
UINT32, STRING, ARRAY = 4, 8, 9
CONTROL = 3 # a kind of token
ALIGNMENT = 32


class Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def string(self) -> bytes:
        return self.take(self.number("Q"))

    def value(self, kind: int) -> Any:
        """An array is its kind and its items. Numbers stay bytes."""
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            return inner, [self.value(inner) for _ in range(count)]
        return self.take(SIZES[kind])


def string(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def value(kind: int, content: Any) -> bytes:
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        inner, items = content
        return struct.pack("<IQ", inner, len(items)) + b"".join(value(inner, i) for i in items)
    return bytes(content)


def changed(
    content: bytes,
    template: str | None = None,
    names: dict[int, str] | None = None,
    **numbers: int,
) -> bytes:
    """The same model with a chat template, with control tokens in place of others, or with other
    numbers, of which the last part of the key is given."""
    r = Reader(content)
    head, tensors, pairs = r.take(8), r.number("Q"), r.number("Q")
    entries = {}
    for _ in range(pairs):
        key, kind = r.string(), r.number("I")
        entries[key] = kind, r.value(kind)
    start = r.at
    for _ in range(tensors): # name, dims, type, offset
        r.string()
        r.take(8 * r.number("I") + 12)
    infos = content[start : r.at]
    data = content[-(-r.at // ALIGNMENT) * ALIGNMENT :]
    for i, name in (names or {}).items():
        entries[b"tokenizer.ggml.tokens"][1][1][i] = name.encode()
        entries[b"tokenizer.ggml.token_type"][1][1][i] = struct.pack("<i", CONTROL)
    if template is not None:
        entries[b"tokenizer.chat_template"] = STRING, template.encode()
    for name, number in numbers.items():
        key, = (key for key in entries if key.endswith(b"." + name.encode()))
        entries[key] = UINT32, struct.pack("<I", number)
    out = head + struct.pack("<QQ", tensors, len(entries))
    for key, (kind, content) in entries.items():
        out += string(key) + struct.pack("<I", kind) + value(kind, content)
    out += infos
    return out + bytes(-len(out) % ALIGNMENT) + data
