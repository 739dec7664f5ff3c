#!/usr/bin/env python3
"""Makes golden data for the tests of rlxvk generate: small random models of every architecture, with their results.

    golden_models.py [FOLDER [NAME...]]        (default: test/data/models, all)

Needs PyTorch, transformers and numpy. Transformers makes each model from a configuration with a few thousand weights. The
weights are random values that the file's types hold exactly. The model runs in double precision and is written as NAME.gguf.
The file has the names and the order of rows that are usual for its architecture. NAME.json has the results:

    ids          a prompt                        last_logits  the logits after it
    sums         of the logits at each position of the prompt
    greedy       24 tokens that follow it        margin       of each: the best logit minus the second best

If a model cannot be made, the reason is printed, the others are still made, and the exit status is 1.
"""
import json
import math
import os
import re
import struct
import sys
import traceback

import numpy as np
import torch
import transformers

VOCABULARY, CONTEXT, PROMPT, NEW_TOKENS = 96, 64, 40, 24
WIDTH, FFN, HEADS, KV_HEADS, HEAD, BLOCKS = 64, 96, 4, 2, 16, 2
EPSILON = 1e-5
NEWER = int(transformers.__version__.split(".")[0]) >= 5  # configures rotation in another way


# ---- GGUF ----

F32, F16 = 0, 1
TYPE_U32, TYPE_F32, TYPE_BOOL, TYPE_STRING, TYPE_ARRAY, TYPE_I32 = 4, 6, 7, 8, 9, 5
ALIGNMENT = 32


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_scalar(value):
    """The type and bytes of a value, which is a bool, int (u32), float (f32) or str."""
    if isinstance(value, bool):
        return TYPE_BOOL, struct.pack("<B", value)
    if isinstance(value, int):
        return TYPE_U32, struct.pack("<I", value)
    if isinstance(value, float):
        return TYPE_F32, struct.pack("<f", value)
    return TYPE_STRING, gguf_string(value)


def gguf_value(value):
    if not isinstance(value, list):
        kind, data = gguf_scalar(value)
        return struct.pack("<I", kind) + data
    items = [gguf_scalar(item) for item in value]
    return struct.pack("<IIQ", TYPE_ARRAY, items[0][0], len(items)) + b"".join(data for _, data in items)


def write_gguf(path, keys, tensors):
    """keys: name to value. tensors: name to numpy array of f16 or f32, with a contiguous last axis."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        head += gguf_string(key) + gguf_value(value)
    payload = b""
    for name, array in tensors.items():
        payload += bytes(-len(payload) % ALIGNMENT)
        kind = {np.dtype("float32"): F32, np.dtype("float16"): F16}[array.dtype]
        dims = array.shape[::-1]
        head += gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(payload))
        payload += np.ascontiguousarray(array).tobytes()
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT) + payload)


# ---- Weights ----

# Names after "layers.N." in transformers, and after "blk.N." in a file.
NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
}
GEMMA_NAMES = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
# Parts of one expert, which transformers calls layers.N.<folder>.experts.E.<part>.weight.
EXPERT_PARTS = {"w1": "gate", "w3": "up", "w2": "down", "gate_proj": "gate", "up_proj": "up", "down_proj": "down"}


def is_norm(name):
    return "norm" in name


def is_kept_f32(name, shape):
    return len(shape) == 1 or re.search(r"(mlp|block_sparse_moe)\.(gate|shared_expert_gate)\.weight$", name)


def random_values(generator, name, shape, gemma):
    """Random values as the file holds them. Attention scores are spread widely, so that one key too many or too few shows."""
    noise = generator.standard_normal(shape)
    if is_norm(name):
        values = 1 + 0.2 * noise
    elif name.endswith("bias"):
        values = 0.3 * noise
    elif "embed_tokens" in name:
        values = noise * (1 / math.sqrt(shape[1]) if gemma else 0.5)  # because gemma scales them up
    else:
        sharp = re.search(r"[qk]_proj|qkv_proj|\.gate\.weight$", name)
        values = noise * (1.8 if sharp else 1.2) / math.sqrt(shape[-1])
    return values.astype(np.float32 if is_kept_f32(name, shape) else np.float16)


def interleave(array, heads):
    """Reorders the rows of each head. Row pairs that rotate together lie in two halves before, and side by side afterwards."""
    shape = array.shape
    return array.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


class Export:
    """Converts parameters from transformers' names to the file's. `neighbours`: files have the rows of q and k interleaved."""

    def __init__(self, neighbours, gemma, config):
        self.neighbours, self.gemma, self.config = neighbours, gemma, config
        self.tensors, self.experts = {}, {}

    def fill(self, model, generator):
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                stored = random_values(generator, name, tuple(parameter.shape), self.gemma)
                values = stored.astype(np.float64)
                if self.gemma and is_norm(name):
                    values = values - 1  # because transformers adds 1
                parameter.copy_(torch.from_numpy(values))
                self.add(name, stored)
        for name, slabs in self.experts.items():
            self.tensors[name] = np.stack([slabs[e] for e in sorted(slabs)])

    def add(self, name, array):
        ends = {"embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight"}
        inner = re.search(r"layers\.(\d+)\.(.+)$", name)
        if inner:
            self.add_inner(int(inner[1]), inner[2], array)
        elif name.endswith("model.norm.weight"):
            self.tensors["output_norm.weight"] = array
        else:
            key = next((ends[end] for end in ends if name.endswith(end)), None)
            if key is None:
                raise ValueError(f"no name in a file is known for parameter {name} {array.shape}")
            self.tensors[key] = array

    def add_inner(self, block, name, array):
        if ".experts." in name:
            self.add_expert(block, name, array)
            return
        stem, _, suffix = name.rpartition(".")
        known = {**NAMES, **(GEMMA_NAMES if self.gemma else {})}
        if stem not in known or suffix not in ("weight", "bias"):
            raise ValueError(f"no name in a file is known for parameter layers.{block}.{name} {array.shape}")
        if self.neighbours and stem.endswith(("q_proj", "k_proj")):
            heads = self.config.num_attention_heads if "q_proj" in stem else self.config.num_key_value_heads
            array = interleave(array, heads)
        if known[stem] == "ffn_gate_inp_shexp":
            array = array.reshape(-1)
        self.tensors[f"blk.{block}.{known[stem]}.{suffix}"] = array

    def add_expert(self, block, name, array):
        single = re.search(r"experts\.(\d+)\.(\w+)\.weight$", name)
        if single:
            key = f"blk.{block}.ffn_{EXPERT_PARTS[single[2]]}_exps.weight"
            self.experts.setdefault(key, {})[int(single[1])] = array
            return
        width = self.config.hidden_size
        if name.endswith("gate_up_proj"):
            if array.shape[2] != width:
                array = array.swapaxes(1, 2)
            half = array.shape[1] // 2
            self.tensors[f"blk.{block}.ffn_gate_exps.weight"] = array[:, :half]
            self.tensors[f"blk.{block}.ffn_up_exps.weight"] = array[:, half:]
        elif name.endswith("down_proj"):
            if array.shape[1] != width:
                array = array.swapaxes(1, 2)
            self.tensors[f"blk.{block}.ffn_down_exps.weight"] = array
        else:
            raise ValueError(f"no name in a file is known for parameter layers.{block}.{name} {array.shape}")


# ---- Architectures ----


def rotation(base, scaling=None):
    """The arguments of a configuration that set the rotation."""
    if NEWER:
        return {"rope_parameters": {"rope_type": "default", **(scaling or {}), "rope_theta": base}}
    return {"rope_theta": base, **({"rope_scaling": scaling} if scaling else {})}


def common(**changes):
    values = {
        "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": FFN, "num_hidden_layers": BLOCKS,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPSILON, "tie_word_embeddings": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "attention_dropout": 0.0,
    }
    return {**values, **changes}


def keys_of(config, **changes):
    """The keys that files of every architecture have, without the prefix of the architecture."""
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return {
        "context_length": CONTEXT,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "attention.key_length": head,
        "attention.value_length": head,
        "rope.dimension_count": head,
        "vocab_size": VOCABULARY,
        **changes,
    }


class Model:
    """One golden model. `divisors` of the frequencies: one for each pair, or one for all; None: not checked."""

    def __init__(self, architecture, config, keys, divisors=1.0, base=1e4, neighbours=False, gemma=False, extra=None):
        self.architecture, self.config, self.keys = architecture, config, keys
        self.divisors, self.base, self.neighbours, self.gemma = divisors, base, neighbours, gemma
        self.extra = extra or {}  # further tensors


def llama(scaling=None, keys=None, divisors=1.0, extra=None, base=1e4):
    config = transformers.LlamaConfig(**common(**rotation(base, scaling)))
    return Model("llama", config, keys_of(config, **{"rope.freq_base": base, **(keys or {})}), divisors, base,
                 neighbours=True, extra=extra)


def llama_linear():
    return llama({"rope_type": "linear", "factor": 4.0}, {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, 4.0)


def llama_yarn():
    """Slow pairs are interpolated, fast ones are not, those between partly. `ramp` goes from 0 (fast) to 1 (slow)."""
    base, factor, original, fast, slow = 20.0, 4.0, CONTEXT // 4, 32.0, 1.0

    def pair_of(turns):
        return HEAD * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair_of(fast)), 0), min(math.ceil(pair_of(slow)), HEAD - 1)
    ramp = np.clip((np.arange(HEAD // 2) - low) / (high - low), 0, 1)
    return llama({"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original},
                 {"rope.scaling.type": "yarn", "rope.scaling.factor": factor,
                  "rope.scaling.original_context_length": original}, 1 / (ramp / factor + 1 - ramp), base=base)


def llama_3():
    """The divisors depend on the wavelength. Files hold them as a tensor."""
    base, factor, low, high, original = 500.0, 8.0, 1.0, 4.0, 32
    divisors = []
    for i in range(HEAD // 2):
        turns = original * base ** (-2 * i / HEAD) / (2 * math.pi)
        smooth = min(max((turns - low) / (high - low), 0), 1)
        divisors.append(1 / ((1 - smooth) / factor + smooth))
    divisors = np.array(divisors, np.float32)
    return llama({"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                  "original_max_position_embeddings": original}, None, divisors, {"rope_freqs.weight": divisors}, base)


def mistral():
    config = transformers.MistralConfig(**common(sliding_window=8, head_dim=HEAD, **rotation(1e4)))
    return Model("llama", config, keys_of(config, **{"attention.sliding_window": 8}), neighbours=True)


def qwen2():
    config = transformers.Qwen2Config(**common(use_sliding_window=False, tie_word_embeddings=True, **rotation(1e5)))
    return Model("qwen2", config, keys_of(config, **{"rope.freq_base": 1e5}), base=1e5)


def qwen3():
    config = transformers.Qwen3Config(**common(head_dim=24, use_sliding_window=False, **rotation(1e5)))
    return Model("qwen3", config, keys_of(config, **{"rope.freq_base": 1e5}), base=1e5)


def gemma2():
    config = transformers.Gemma2Config(**common(
        num_hidden_layers=3, head_dim=24, query_pre_attn_scalar=24, sliding_window=8, attn_logit_softcapping=4.0,
        final_logit_softcapping=3.0, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"], **rotation(1e4)))
    return Model("gemma2", config, keys_of(config, **{
        "attention.sliding_window": 8, "attn_logit_softcapping": 4.0, "final_logit_softcapping": 3.0}), gemma=True)


def gemma3():
    blocks = 7
    scaling = {"rope_type": "linear", "factor": 8.0}
    if NEWER:
        turning = {"rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                                       "full_attention": {**scaling, "rope_theta": 1e6}}}
    else:
        turning = {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": scaling}
    config = transformers.Gemma3TextConfig(**common(
        num_hidden_layers=blocks, hidden_size=48, intermediate_size=64, num_attention_heads=2, num_key_value_heads=1,
        head_dim=16, query_pre_attn_scalar=16, sliding_window=8, hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True,
        layer_types=["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(blocks)], **turning))
    return Model("gemma3", config, keys_of(config, **{
        "attention.sliding_window": 8, "rope.freq_base": 1e6, "rope.scaling.type": "linear",
        "rope.scaling.factor": 8.0}), 8.0, 1e6, gemma=True)


def phi3():
    config = transformers.Phi3Config(**common(sliding_window=12, resid_pdrop=0.0, embd_pdrop=0.0, **rotation(1e4)))
    return Model("phi3", config, keys_of(config, **{"attention.sliding_window": 12}))


def phi3_long():
    """The prompt is longer than the original context, so the long factors apply."""
    original, half = 32, HEAD // 2
    short = [1.0 + 0.1 * i for i in range(half)]
    long = [1.0 + 0.5 * i for i in range(half)]
    scaling = {"short_factor": short, "long_factor": long}
    scaling.update({"rope_type": "longrope", "original_max_position_embeddings": original} if NEWER
                   else {"type": "longrope"})  # accepts only these three keys
    config = transformers.Phi3Config(**common(
        sliding_window=None, original_max_position_embeddings=original, resid_pdrop=0.0, embd_pdrop=0.0,
        **rotation(1e4, scaling)))
    ratio = CONTEXT / original
    return Model("phi3", config, keys_of(config, **{
        "rope.scaling.original_context_length": original,
        "rope.scaling.attn_factor": math.sqrt(1 + math.log(ratio) / math.log(original))}), None,
        extra={"rope_factors_short.weight": np.array(short, np.float32),
               "rope_factors_long.weight": np.array(long, np.float32)})


def granite():
    config = transformers.GraniteConfig(**common(
        embedding_multiplier=6.0, residual_multiplier=0.4, attention_multiplier=0.15, logits_scaling=2.5,
        **rotation(1e4)))
    return Model("granite", config, keys_of(config, **{
        "embedding_scale": 6.0, "residual_scale": 0.4, "attention.scale": 0.15, "logit_scale": 2.5}), neighbours=True)


EXPERTS, CHOSEN, EXPERT_FFN = 5, 2, 48


def mixtral():
    config = transformers.MixtralConfig(**common(
        num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN, intermediate_size=EXPERT_FFN, sliding_window=None,
        router_jitter_noise=0.0, **rotation(1e4)))
    return Model("llama", config, keys_of(config, **{
        "expert_count": EXPERTS, "expert_used_count": CHOSEN}), neighbours=True)


def qwen2moe():
    config = transformers.Qwen2MoeConfig(**common(
        num_experts=EXPERTS, num_experts_per_tok=CHOSEN, moe_intermediate_size=EXPERT_FFN,
        shared_expert_intermediate_size=40, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[],
        use_sliding_window=False, **rotation(1e4)))
    return Model("qwen2moe", config, keys_of(config, **{
        "expert_count": EXPERTS, "expert_used_count": CHOSEN, "expert_feed_forward_length": EXPERT_FFN,
        "expert_shared_feed_forward_length": 40}))


def qwen3moe():
    config = transformers.Qwen3MoeConfig(**common(
        head_dim=24, num_experts=EXPERTS, num_experts_per_tok=CHOSEN, moe_intermediate_size=EXPERT_FFN,
        norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], use_sliding_window=False, **rotation(1e4)))
    return Model("qwen3moe", config, keys_of(config, **{
        "expert_count": EXPERTS, "expert_used_count": CHOSEN, "expert_feed_forward_length": EXPERT_FFN}))


MODELS = {
    "llama": llama, "llama-linear": llama_linear, "llama-yarn": llama_yarn, "llama-3": llama_3, "mistral": mistral,
    "qwen2": qwen2, "qwen3": qwen3, "gemma2": gemma2, "gemma3": gemma3, "phi3": phi3, "phi3-long": phi3_long,
    "granite": granite, "mixtral": mixtral, "qwen2moe": qwen2moe, "qwen3moe": qwen3moe,
}


# ---- Running ----


def check_rotation(made, model):
    """Checks that transformers rotates as the keys of the file say."""
    rotary = next((m for n, m in model.named_modules() if n.endswith("rotary_emb")), None)
    found = getattr(rotary, "inv_freq", getattr(rotary, "full_attention_inv_freq", None))
    if made.divisors is None:
        return
    if found is None:
        print("  no rotary frequencies are found in the model: not checked")
        return
    found = found.double().numpy()
    pairs = len(found)
    want = made.base ** (-np.arange(pairs) / pairs) / np.asarray(made.divisors, np.float64)
    if not np.allclose(found, want, rtol=1e-5):
        raise ValueError(f"the model rotates by {found}, and the file would say {want}")


def build(made, name):
    """Makes the model with its weights, and the tensors of its file."""
    for attribute in ("_attn_implementation", "_experts_implementation"):
        try:
            setattr(made.config, attribute, "eager")
        except Exception:  # some releases lack it, or do not allow setting it
            pass
    model = transformers.AutoModelForCausalLM.from_config(made.config, attn_implementation="eager")
    model = model.double().eval()
    check_rotation(made, model)
    export = Export(made.neighbours, made.gemma, made.config)
    export.fill(model, np.random.default_rng(sum(map(ord, name))))
    if made.config.tie_word_embeddings and hasattr(model, "tie_weights"):
        model.tie_weights()
    if made.config.tie_word_embeddings:
        export.tensors.pop("output.weight", None)
    return model, {**export.tensors, **made.extra}


def logits_of(model, ids):
    """The logits, [positions, vocabulary]. If a release lacks double precision for a step, they are single precision."""
    with torch.no_grad():
        tokens = torch.tensor([ids])
        try:
            out = model(input_ids=tokens, use_cache=False).logits
        except RuntimeError as error:
            if next(model.parameters()).dtype != torch.float64:
                raise
            print(f"  in single precision, as double fails: {str(error).splitlines()[0]}")
            out = model.float()(input_ids=tokens, use_cache=False).logits
    return out[0].double().numpy()


def tokenizer_keys():
    """Makes a token for each of 92 characters, so that rlxvk generate can run the file."""
    tokens = ["<unk>", "<s>", "</s>", "\u2581"] + [chr(33 + i) for i in range(VOCABULARY - 4)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [-float(i) for i in range(VOCABULARY)],
        "tokenizer.ggml.token_type": [2, 3, 3] + [1] * (VOCABULARY - 3),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
    }


def run(model, name):
    generator = np.random.default_rng(1000 + sum(map(ord, name)))
    ids = [1] + [int(i) for i in generator.integers(3, VOCABULARY, PROMPT - 1)]
    logits = logits_of(model, ids)
    if not np.all(np.isfinite(logits)):
        raise ValueError("logits are not finite")
    greedy, margin, sequence, last = [], [], list(ids), logits[-1]
    for _ in range(NEW_TOKENS):
        order = np.argsort(-last, kind="stable")
        greedy.append(int(order[0]))
        margin.append(float(last[order[0]] - last[order[1]]))
        sequence.append(greedy[-1])
        last = logits_of(model, sequence)[-1]
    return {"ids": ids, "last_logits": [float(x) for x in logits[-1]], "sums": [float(x) for x in logits.sum(1)],
            "greedy": greedy, "margin": margin}


def make(name, folder):
    made = MODELS[name]()
    model, tensors = build(made, name)
    results = run(model, name)
    results["made_by"] = f"transformers {transformers.__version__}, torch {torch.__version__}, " \
                         f"{str(next(model.parameters()).dtype).rpartition('.')[2]}"
    keys = {"general.architecture": made.architecture, "general.name": name}
    keys.update({f"{made.architecture}.{key}": value for key, value in made.keys.items()})
    keys.update(tokenizer_keys())
    path = os.path.join(folder, name)
    write_gguf(path + ".gguf", keys, tensors)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(results, file)
        file.write("\n")
    size = os.path.getsize(path + ".gguf")
    print(f"{name}: {len(tensors)} tensors, {size // 1024} KiB, logits {min(results['last_logits']):.2f} to "
          f"{max(results['last_logits']):.2f}, smallest margin {min(results['margin']):.4f}, {results['made_by']}")
    if size > 1 << 20:
        raise ValueError(f"{path}.gguf is above 1 MiB")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "test/data/models"
    names = sys.argv[2:] or list(MODELS)
    failed = []
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    for name in names:
        try:
            make(name, folder)
        except Exception:
            failed.append(name)
            print(f"{name}: NOT MADE\n{traceback.format_exc()}")
    print(f"{len(names) - len(failed)} made, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
