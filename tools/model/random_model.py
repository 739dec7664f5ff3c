#!/usr/bin/env python3
"""Writes a llama with random weights as GGUF, for timing. Its text has no meaning, but it is as fast as a real model.

usage: random_model.py OUT.gguf [--type q4_k_m|q8_0|f16] [--blocks 32] [--width 4096] [--heads 32] [--kv-heads 8]
                       [--ffn 14336] [--vocabulary 128256] [--context 8192] [--seed 1]

The defaults have the shape of an 8B model. Needs only Python. q4_k_m mixes types in the usual way: Q6_K for the output,
and for values and down projections in half of the blocks; Q4_K for everything else.
"""
import argparse
import random
import struct

F32, F16, Q8_0, Q4_K, Q6_K = 0, 1, 8, 12, 14
BLOCK = {F32: (1, 4), F16: (1, 2), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}  # elements, bytes
ALIGNMENT = 32
CHUNK_BLOCKS = 4096  # random blocks that are made; longer tensors repeat them, from a random one on


def half(value):
    return struct.pack("<e", value)


def random_block(random_bytes, kind):
    """One block, with weights of about 0.02."""
    if kind == F32:
        return struct.pack("<f", 1)
    if kind == F16:
        return half(random.gauss(0, 0.02))
    if kind == Q8_0:
        return half(0.0003) + random_bytes(32)
    if kind == Q4_K:
        return half(0.0002) + half(0.0015) + bytes([63 & b for b in random_bytes(12)]) + random_bytes(128)
    return random_bytes(192) + bytes([1 + (b & 7) for b in random_bytes(16)]) + half(0.0002)


class Source:
    """Random blocks of each type, made once."""

    def __init__(self):
        self.chunks = {}

    def write(self, out, kind, elements):
        per_block, size = BLOCK[kind]
        if kind not in self.chunks:
            count = CHUNK_BLOCKS * (256 // per_block)
            self.chunks[kind] = b"".join(random_block(random.randbytes, kind) for _ in range(count))
        chunk, left = self.chunks[kind], elements // per_block * size
        start = random.randrange(len(chunk) // size) * size
        while left:
            piece = memoryview(chunk)[start : start + left]
            out.write(piece)
            left -= len(piece)
            start = 0


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, value):
    if isinstance(value, str):
        return string(key) + struct.pack("<I", 8) + string(value)
    if isinstance(value, float):
        return string(key) + struct.pack("<If", 6, value)
    return string(key) + struct.pack("<II", 4, value)


def array(key, kind, values, pack):
    return string(key) + struct.pack("<IIQ", 9, kind, len(values)) + b"".join(map(pack, values))


def metadata(o):
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    tokens += ["token%d" % i for i in range(len(tokens), o.vocabulary)]
    return [
        pair("general.architecture", "llama"),
        pair("general.name", "random weights"),
        pair("llama.context_length", o.context),
        pair("llama.embedding_length", o.width),
        pair("llama.block_count", o.blocks),
        pair("llama.feed_forward_length", o.ffn),
        pair("llama.attention.head_count", o.heads),
        pair("llama.attention.head_count_kv", o.kv_heads),
        pair("llama.attention.layer_norm_rms_epsilon", 1e-5),
        pair("llama.rope.freq_base", 500000.0),
        pair("tokenizer.ggml.model", "llama"),
        pair("tokenizer.ggml.bos_token_id", 1),
        pair("tokenizer.ggml.eos_token_id", 2),
        pair("tokenizer.ggml.unknown_token_id", 0),
        array("tokenizer.ggml.tokens", 8, tokens, string),
        array("tokenizer.ggml.scores", 6, [-float(i) for i in range(len(tokens))], lambda s: struct.pack("<f", s)),
        array("tokenizer.ggml.token_type", 5, [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259),
              lambda k: struct.pack("<i", k)),
    ]


def tensors(o):
    """Name, type, dims (rows last)."""
    common, better = {"q4_k_m": (Q4_K, Q6_K), "q8_0": (Q8_0, Q8_0), "f16": (F16, F16)}[o.type]
    head = o.width // o.heads
    yield "token_embd.weight", common, (o.width, o.vocabulary)
    for i in range(o.blocks):
        eighth = o.blocks // 8
        many = better if i < eighth or i >= 7 * eighth or (i - eighth) % 3 == 2 else common
        name = "blk.%d." % i
        yield name + "attn_norm.weight", F32, (o.width,)
        yield name + "attn_q.weight", common, (o.width, o.width)
        yield name + "attn_k.weight", common, (o.width, o.kv_heads * head)
        yield name + "attn_v.weight", many, (o.width, o.kv_heads * head)
        yield name + "attn_output.weight", common, (o.width, o.width)
        yield name + "ffn_norm.weight", F32, (o.width,)
        yield name + "ffn_gate.weight", common, (o.width, o.ffn)
        yield name + "ffn_up.weight", common, (o.width, o.ffn)
        yield name + "ffn_down.weight", many, (o.ffn, o.width)
    yield "output_norm.weight", F32, (o.width,)
    yield "output.weight", better, (o.width, o.vocabulary)


def elements(dims):
    count = 1
    for d in dims:
        count *= d
    return count


def main():
    parser = argparse.ArgumentParser(description="Writes a llama of random weights as GGUF, for timing.")
    parser.add_argument("out")
    parser.add_argument("--type", choices=("q4_k_m", "q8_0", "f16"), default="q4_k_m")
    sizes = {"blocks": 32, "width": 4096, "heads": 32, "kv-heads": 8, "ffn": 14336, "vocabulary": 128256,
             "context": 8192, "seed": 1}
    for name, value in sizes.items():
        parser.add_argument("--" + name, type=int, default=value)
    o = parser.parse_args()
    random.seed(o.seed)
    pairs, listed, offset = metadata(o), list(tensors(o)), 0
    header = struct.pack("<IIQQ", 0x46554747, 3, len(listed), len(pairs)) + b"".join(pairs)
    for name, kind, dims in listed:
        header += string(name) + struct.pack("<I", len(dims)) + struct.pack("<%dQ" % len(dims), *dims)
        header += struct.pack("<IQ", kind, offset)
        per_block, size = BLOCK[kind]
        offset += -(-(elements(dims) // per_block * size) // ALIGNMENT) * ALIGNMENT
    source = Source()
    with open(o.out, "wb") as out:
        out.write(header)
        for _, kind, dims in listed:
            out.write(bytes(-out.tell() % ALIGNMENT))
            source.write(out, kind, elements(dims))


if __name__ == "__main__":
    main()
