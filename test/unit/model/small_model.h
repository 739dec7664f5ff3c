/*
 * A small random model that has all optional parts, as a GGUF file in memory. Include it after
 * cmocka.h.
 */
#ifndef RLXVK_TEST_SMALL_MODEL_H
#define RLXVK_TEST_SMALL_MODEL_H

#include "unit/model/gguf_builder.h"
#include "model/language/llama_internal.h"
#include "op/packed/quant_format.h"
#include "support/harness.h"

enum {
    WIDTH = 32,
    HEADS = 4,
    KV_HEADS = 2,
    HEAD = 8,
    FFN = 32,
    WORDS = 32,
    BLOCKS = 2,
    EXPERTS = 3
};

typedef struct small_model {
    builder b;
    uint64_t payload;
    size_t tensors;
    uint32_t context;         /* 0 means 100 */
    bool tied, biased, mixed; /* mixed: keys are f16, so no product joins theirs */
    bool experts;             /* a mixture of experts; packed: their weights are Q8_0, not f32 */
    bool packed;
} small_model;

static void add_tensor(small_model *m, uint32_t type, uint64_t columns, uint64_t rows,
                       const char *format, int block)
{
    char name[64];
    bool slabs = strstr(format, "_exps");
    uint64_t dims[] = {columns, slabs ? rows / EXPERTS : rows, EXPERTS};
    snprintf(name, sizeof name, format, block);
    put_tensor(&m->b, name, type, m->payload, slabs ? 3 : rows == 1 ? 1 : 2, dims);
    m->payload = round_up(m->payload + quant_row_bytes(type, columns) * rows, 32);
    m->tensors++;
}

static void add_block_tensors(small_model *m, int block)
{
    uint32_t keys = m->mixed ? QUANT_F16 : QUANT_F32;
    add_tensor(m, QUANT_F32, WIDTH, 1, "blk.%d.attn_norm.weight", block);
    add_tensor(m, QUANT_F32, WIDTH, HEADS * HEAD, "blk.%d.attn_q.weight", block);
    add_tensor(m, keys, WIDTH, KV_HEADS * HEAD, "blk.%d.attn_k.weight", block);
    add_tensor(m, QUANT_F32, WIDTH, KV_HEADS * HEAD, "blk.%d.attn_v.weight", block);
    add_tensor(m, QUANT_F32, HEADS * HEAD, WIDTH, "blk.%d.attn_output.weight", block);
    add_tensor(m, QUANT_F32, WIDTH, 1, "blk.%d.ffn_norm.weight", block);
    if (m->experts) {
        uint32_t type = m->packed ? QUANT_Q8_0 : QUANT_F32;
        add_tensor(m, QUANT_F32, WIDTH, EXPERTS, "blk.%d.ffn_gate_inp.weight", block);
        add_tensor(m, type, WIDTH, EXPERTS * FFN, "blk.%d.ffn_gate_exps.weight", block);
        add_tensor(m, type, WIDTH, EXPERTS * FFN, "blk.%d.ffn_up_exps.weight", block);
        add_tensor(m, type, FFN, EXPERTS * WIDTH, "blk.%d.ffn_down_exps.weight", block);
    } else {
        add_tensor(m, QUANT_F32, WIDTH, FFN, "blk.%d.ffn_gate.weight", block);
        add_tensor(m, keys, WIDTH, FFN, "blk.%d.ffn_up.weight", block);
        add_tensor(m, QUANT_F32, FFN, WIDTH, "blk.%d.ffn_down.weight", block);
    }
    if (m->biased)
        add_tensor(m, QUANT_F32, KV_HEADS * HEAD, 1, "blk.%d.attn_k.bias", block);
}

static void add_keys(small_model *m)
{
    builder *b = &m->b;
    put_text(b, "general.architecture", "llama");
    put_u32(b, "llama.block_count", BLOCKS);
    put_u32(b, "llama.context_length", m->context ? m->context : 100);
    put_u32(b, "llama.embedding_length", WIDTH);
    put_u32(b, "llama.feed_forward_length", FFN);
    put_u32(b, "llama.attention.head_count", HEADS);
    put_array(b, "llama.attention.head_count_kv", GGUF_U32, BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        put(b, KV_HEADS, 4);
    put_key(b, "llama.attention.layer_norm_rms_epsilon", GGUF_F32);
    put(b, 0x3727c5ac, 4); /* 1e-5 */
    put_u32(b, "llama.attention.sliding_window", 5);
    put_u32(b, "llama.rope.dimension_count", 6);
    put_u32(b, "llama.expert_count", m->experts ? EXPERTS : 0);
    put_u32(b, "llama.expert_used_count", 2);
    put_text(b, "llama.rope.scaling.type", "linear");
    put_key(b, "llama.rope.scaling.factor", GGUF_F32);
    put(b, 0x40000000, 4); /* 2 */
}

/* Values in [-1, 1), scaled so that sums over a row stay near 1. Halves and bytes come from the
 * same words. Weights of experts are values that Q8_0 holds exactly. */
static void fill_payload(small_model *m, gguf_file *file)
{
    enum { BLOCK = 32 };
    uint32_t state = 12345;
    for (uint64_t i = 0; i < file->tensor_count; i++) {
        const gguf_tensor *t = &file->tensors[i];
        bool expert = strstr(t->name, "_exps");
        uint64_t part = expert ? BLOCK : 1;
        uint8_t *to = m->b.bytes + (t->data - m->b.bytes);
        for (uint64_t k = 0; k < t->numel; k += part) {
            float values[BLOCK];
            uint8_t bytes[BLOCK * sizeof(float)];
            for (uint64_t j = 0; j < part; j++) {
                state = state * 1664525 + 1013904223;
                values[j] = ((float)(state >> 8) / 8388608.0f - 1) * (t->rank == 1 ? 1.0f : 0.4f);
            }
            if (expert) {
                expect_ok(quant_encode_row(QUANT_Q8_0, values, part, bytes));
                expect_ok(quant_decode_row(QUANT_Q8_0, bytes, part, values));
            }
            expect_ok(quant_encode_row(t->type, values, part, bytes));
            memcpy(to + quant_row_bytes(t->type, k), bytes, quant_row_bytes(t->type, part));
        }
    }
}

static gguf_file *make_small_model(small_model *m)
{
    gguf_file *file = NULL;
    uint64_t tensors = 2 + !m->tied + 1 + BLOCKS * (9 + (uint64_t)m->biased + m->experts);
    put_header(&m->b, 3, tensors, 14);
    add_keys(m);
    add_tensor(m, QUANT_F32, WIDTH, WORDS, "token_embd.weight", 0);
    add_tensor(m, QUANT_F32, WIDTH, 1, "output_norm.weight", 0);
    add_tensor(m, QUANT_F32, 3, 1, "rope_freqs.weight", 0);
    if (!m->tied)
        add_tensor(m, QUANT_F32, WIDTH, WORDS, "output.weight", 0);
    for (int i = 0; i < BLOCKS; i++)
        add_block_tensors(m, i);
    assert_int_equal(m->tensors, tensors);
    put_data(&m->b, 32, m->payload);
    expect_ok(gguf_result(gguf_parse(m->b.bytes, m->b.length, NULL, &file)));
    fill_payload(m, file);
    return file;
}

static uint32_t best_of(const float *logits, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return (uint32_t)best;
}

#endif
