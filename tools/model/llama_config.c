/*
 * A model's hyperparameters from GGUF metadata. What a key says is either understood or refused: a
 * model is never run with a feature left out.
 */
#include "model/llama_internal.h"

#include <math.h>
#include <stdio.h>

enum { KEY_LENGTH = 96, LARGEST_HEAD = 256 };
#define LARGEST_COUNT (1 << 30)

typedef struct reader {
    const gguf_file *file;
    llama_config *config;
} reader;

static const gguf_pair *find_key(const reader *r, const char *name, char key[KEY_LENGTH])
{
    snprintf(key, KEY_LENGTH, "llama.%s", name);
    return gguf_find(r->file, key);
}

/* A count, given once or as an array of equal counts, one a block. */
static rlxvk_status read_count(const reader *r, const char *name, int64_t otherwise, int64_t *out)
{
    char key[KEY_LENGTH];
    const gguf_pair *pair = find_key(r, name, key);
    uint64_t first, other;
    if (!pair && otherwise < 0)
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: key '%s' is missing", key);
    *out = otherwise;
    if (!pair)
        return RLXVK_OK;
    if (!gguf_element_u64(pair, 0, &first) || first > LARGEST_COUNT)
        return status_fail(RLXVK_E_RANGE, "llama: key '%s' is no integer from 0 to %d", key,
                           LARGEST_COUNT);
    for (uint64_t i = 1; i < pair->count; i++)
        if (!gguf_element_u64(pair, i, &other) || other != first)
            return status_fail(
                RLXVK_E_UNSUPPORTED,
                "llama: key '%s' differs between block 0 and block %llu; all blocks must be "
                "alike",
                key, (unsigned long long)i);
    *out = (int64_t)first;
    return RLXVK_OK;
}

static rlxvk_status read_positive(const reader *r, const char *name, int64_t otherwise,
                                  int64_t *out)
{
    rlxvk_status status;
    TRY(read_count(r, name, otherwise, out));
    if (*out == 0)
        return status_fail(RLXVK_E_RANGE, "llama: key 'llama.%s' is 0", name);
error:
    return status;
}

static rlxvk_status read_real(const reader *r, const char *name, double otherwise, double *out)
{
    char key[KEY_LENGTH];
    *out = otherwise;
    if (!find_key(r, name, key)) {
        if (isnan(otherwise))
            return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: key '%s' is missing", key);
        return RLXVK_OK;
    }
    if (!gguf_get_f64(r->file, key, out) || !isfinite(*out) || *out <= 0)
        return status_fail(RLXVK_E_RANGE, "llama: key '%s' is no positive number", key);
    return RLXVK_OK;
}

/* A string key that must be absent or hold one of the words. */
static rlxvk_status check_word(const gguf_file *file, const char *key, const char *const *words,
                               gguf_string *out)
{
    *out = (gguf_string){"", 0};
    if (!gguf_find(file, key))
        return RLXVK_OK;
    if (gguf_get_string(file, key, out))
        for (size_t i = 0; words[i]; i++)
            if (gguf_string_is(*out, words[i]))
                return RLXVK_OK;
    return status_fail(RLXVK_E_UNSUPPORTED, "llama: '%s' is '%.*s'; only '%s' is supported", key,
                       (int)MIN(out->length, 40), out->data, words[0]);
}

static rlxvk_status check_architecture(const gguf_file *file)
{
    gguf_string name;
    if (!gguf_get_string(file, "general.architecture", &name))
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: key 'general.architecture' is missing");
    if (!gguf_string_is(name, "llama"))
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "llama: the model's architecture is '%.*s'; only 'llama' is supported",
                           (int)MIN(name.length, 40), name.data);
    return RLXVK_OK;
}

static rlxvk_status check_features(const reader *r)
{
    static const char *const layouts[] = {"reference", NULL};
    gguf_string word;
    int64_t experts;
    rlxvk_status status;
    TRY(check_word(r->file, "llama.tensor_data_layout", layouts, &word));
    TRY(read_count(r, "expert_count", 0, &experts));
    if (experts > 0)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "llama: a mixture of %lld experts; only dense models run",
                           (long long)experts);
error:
    return status;
}

/* Linear scaling, by its present or its old key. */
static rlxvk_status read_rope(const reader *r)
{
    static const char *const scalings[] = {"linear", "none", NULL};
    llama_config *c = r->config;
    gguf_string scaling;
    rlxvk_status status;
    TRY(read_real(r, "rope.freq_base", 10000, &c->rope_base));
    TRY(read_real(r, "rope.scale_linear", 1, &c->rope_factor));
    TRY(check_word(r->file, "llama.rope.scaling.type", scalings, &scaling));
    if (gguf_string_is(scaling, "linear"))
        TRY(read_real(r, "rope.scaling.factor", c->rope_factor, &c->rope_factor));
    TRY(read_positive(r, "rope.dimension_count", c->head_dim, &c->rotated));
    if (c->rotated % 2 || c->rotated > c->head_dim)
        return status_fail(
            RLXVK_E_RANGE,
            "llama: llama.rope.dimension_count is %lld; must be even, at most the head "
            "size %lld",
            (long long)c->rotated, (long long)c->head_dim);
error:
    return status;
}

static rlxvk_status read_heads(const reader *r)
{
    llama_config *c = r->config;
    int64_t value_length;
    rlxvk_status status;
    TRY(read_positive(r, "attention.head_count", -1, &c->heads));
    TRY(read_positive(r, "attention.head_count_kv", c->heads, &c->kv_heads));
    TRY(read_positive(r, "attention.key_length", c->width / c->heads, &c->head_dim));
    TRY(read_positive(r, "attention.value_length", c->head_dim, &value_length));
    if (c->heads % c->kv_heads)
        return status_fail(RLXVK_E_RANGE, "llama: %lld key/value heads do not divide %lld heads",
                           (long long)c->kv_heads, (long long)c->heads);
    if (value_length != c->head_dim || c->head_dim % 2 || c->head_dim > LARGEST_HEAD)
        return status_fail(
            RLXVK_E_UNSUPPORTED,
            "llama: heads of %lld keys and %lld values; both must be the same even number, "
            "at most %d",
            (long long)c->head_dim, (long long)value_length, LARGEST_HEAD);
error:
    return status;
}

/* The vocabulary is what the embedding has rows for; the metadata must agree where they say. */
static rlxvk_status read_vocabulary(const reader *r)
{
    const gguf_tensor *embedding = gguf_find_tensor(r->file, "token_embd.weight");
    const gguf_pair *tokens = gguf_find(r->file, "tokenizer.ggml.tokens");
    rlxvk_status status;
    if (!embedding)
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: tensor 'token_embd.weight' is missing");
    int64_t rows = (int64_t)embedding->dims[1];
    TRY(read_positive(r, "vocab_size", tokens ? (int64_t)tokens->count : rows,
                      &r->config->vocabulary));
    if (r->config->vocabulary != rows)
        return status_fail(
            RLXVK_E_SHAPE,
            "llama: tensor 'token_embd.weight' has %lld rows, the vocabulary %lld tokens",
            (long long)rows, (long long)r->config->vocabulary);
error:
    return status;
}

rlxvk_status llama_read_config(const gguf_file *file, llama_config *out)
{
    reader r = {file, out};
    rlxvk_status status;
    *out = (llama_config){0};
    TRY(check_architecture(file));
    TRY(check_features(&r));
    TRY(read_positive(&r, "block_count", -1, &out->blocks));
    TRY(read_positive(&r, "context_length", -1, &out->context));
    TRY(read_positive(&r, "embedding_length", -1, &out->width));
    TRY(read_positive(&r, "feed_forward_length", -1, &out->ffn));
    TRY(read_heads(&r));
    TRY(read_rope(&r));
    TRY(read_real(&r, "attention.layer_norm_rms_epsilon", NAN, &out->epsilon));
    TRY(read_count(&r, "attention.sliding_window", 0, &out->window));
    TRY(read_vocabulary(&r));
    if ((uint64_t)out->blocks > file->tensor_count)
        return status_fail(RLXVK_E_RANGE,
                           "llama: llama.block_count is %lld, but there are %llu tensors",
                           (long long)out->blocks, (unsigned long long)file->tensor_count);
error:
    return status;
}
