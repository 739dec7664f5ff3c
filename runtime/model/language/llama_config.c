/*
 * Reads a model's hyperparameters from GGUF metadata. Each key is either supported or refused, so
 * that no model runs without one of its features.
 */
#include "model/language/llama_internal.h"

#include <math.h>
#include <stdio.h>

enum { KEY_LENGTH = 96, LARGEST_HEAD = 512 };
#define LARGEST_COUNT (1 << 30)

typedef struct reader {
    const gguf_file *file;
    llama_config *config;
} reader;

static const gguf_pair *find_key(const reader *r, const char *name, char key[KEY_LENGTH])
{
    snprintf(key, KEY_LENGTH, "%s.%s", r->config->architecture->name, name);
    return gguf_find(r->file, key);
}

/* Reads a count. It may be a single value, or an array with an equal count for each block. */
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
        return status_fail(RLXVK_E_RANGE, "llama: key '%s.%s' is 0", r->config->architecture->name,
                           name);
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

/* Reads a string key. It may be absent or one of the words. The result is the word's index, or 0 if
 * the key is absent. */
static rlxvk_status read_word(const reader *r, const char *name, const char *const *words,
                              uint32_t *out)
{
    char key[KEY_LENGTH];
    gguf_string word = {"", 0};
    *out = 0;
    if (!find_key(r, name, key))
        return RLXVK_OK;
    if (gguf_get_string(r->file, key, &word))
        for (; words[*out]; (*out)++)
            if (gguf_string_is(word, words[*out]))
                return RLXVK_OK;
    return status_fail(RLXVK_E_UNSUPPORTED, "llama: '%s' is '%.*s'; only '%s' is supported", key,
                       (int)MIN(word.length, 40), word.data, words[0]);
}

/* Refuses features that relatives of these architectures have, but that are not implemented. */
static rlxvk_status check_features(const reader *r)
{
    static const char *const layouts[] = {"reference", NULL};
    static const struct {
        const char *name;
        double harmless; /* accepted besides 0 */
    } refused[] = {
        {"rope.dimension_sections", 0},      {"expert_gating_func", 1},
        {"expert_weights_scale", 1},         {"leading_dense_block_count", 0},
        {"interleave_moe_layer_step", 1},    {"expert_group_count", 1},
        {"attention.temperature_length", 0}, {"attention.clamp_kqv", 0},
        {"attention.max_alibi_bias", 0},     {"rope.scaling.yarn_log_multiplier", 0},
        {"attention.shared_kv_layers", 0},
    };
    char key[KEY_LENGTH];
    uint32_t layout;
    rlxvk_status status;
    TRY(read_word(r, "tensor_data_layout", layouts, &layout));
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        const gguf_pair *pair = find_key(r, refused[i].name, key);
        double value = NAN;
        if (pair &&
            (!gguf_get_f64(r->file, key, &value) || (value != 0 && value != refused[i].harmless)))
            return status_fail(RLXVK_E_UNSUPPORTED, "llama: key '%s' asks for what does not run",
                               key);
    }
error:
    return status;
}

static rlxvk_status read_experts(const reader *r)
{
    llama_config *c = r->config;
    const llama_architecture *a = c->architecture;
    char key[KEY_LENGTH];
    rlxvk_status status;
    TRY(read_count(r, "expert_count", 0, &c->experts));
    if (c->experts == 0)
        return RLXVK_OK;
    if (!a->experts)
        return status_fail(RLXVK_E_UNSUPPORTED, "llama: %lld experts; %s models are dense",
                           (long long)c->experts, a->name);
    TRY(read_positive(r, "expert_used_count", -1, &c->chosen));
    TRY(read_positive(r, "expert_feed_forward_length", c->ffn, &c->expert_ffn));
    c->even_shares = a->even_shares;
    if (find_key(r, "expert_weights_norm", key) && !gguf_get_bool(r->file, key, &c->even_shares))
        return status_fail(RLXVK_E_RANGE, "llama: key '%s' is no truth value", key);
    if (a->shared_expert)
        TRY(read_count(r, "expert_shared_feed_forward_length", 0, &c->shared_ffn));
    if (c->chosen > c->experts)
        return status_fail(RLXVK_E_RANGE, "llama: %lld of %lld experts are to be chosen",
                           (long long)c->chosen, (long long)c->experts);
error:
    return status;
}

static rlxvk_status read_scales(const reader *r)
{
    llama_config *c = r->config;
    const llama_architecture *a = c->architecture;
    rlxvk_status status;
    c->embedding_scale = a->embedding_root ? sqrt((double)c->width) : 1;
    c->residual_scale = c->logit_scale = 1;
    if (a->wide_blocks == c->blocks)
        c->attention_scale = 1 / sqrt((double)c->width / (double)c->heads);
    TRY(read_real(r, "attn_logit_softcapping", a->attention_cap, &c->attention_cap));
    TRY(read_real(r, "final_logit_softcapping", a->logit_cap, &c->logit_cap));
    if (!a->scaled)
        return RLXVK_OK;
    TRY(read_real(r, "embedding_scale", 1, &c->embedding_scale));
    TRY(read_real(r, "residual_scale", 1, &c->residual_scale));
    TRY(read_real(r, "logit_scale", 1, &c->logit_scale));
    TRY(read_real(r, "attention.scale", 0, &c->attention_scale));
error:
    return status;
}

/* Reads which blocks have a window: all but the last one of each period. The key is the period, or
 * an array with a bool for each block. */
static rlxvk_status read_period(const reader *r)
{
    llama_config *c = r->config;
    char key[KEY_LENGTH];
    const gguf_pair *pair = find_key(r, "attention.sliding_window_pattern", key);
    c->window_period = c->architecture->window_period;
    if (!pair)
        return RLXVK_OK;
    if (!pair->is_array)
        return read_count(r, "attention.sliding_window_pattern", 0, &c->window_period);
    uint64_t first = 0;
    bool local = false;
    while (gguf_element_bool(pair, first, &local) && local)
        first++;
    c->window_period = first < pair->count ? (int64_t)first + 1 : 0;
    for (uint64_t i = 0; i < pair->count; i++)
        if (!gguf_element_bool(pair, i, &local) ||
            local != (first == pair->count || i % (first + 1) < first))
            return status_fail(RLXVK_E_UNSUPPORTED, "llama: key '%s' has no period from block 0 on",
                               key);
    return RLXVK_OK;
}

static rlxvk_status read_window(const reader *r)
{
    llama_config *c = r->config;
    rlxvk_status status;
    TRY(read_count(r, "attention.sliding_window", c->architecture->window, &c->window));
    TRY(read_period(r));
    if (c->window)
        TRY(read_real(r, "rope.freq_base_swa", c->architecture->local_base, &c->rope_local_base));
error:
    return status;
}

static rlxvk_status read_yarn(const reader *r)
{
    llama_config *c = r->config;
    double part;
    rlxvk_status status;
    TRY(read_real(r, "rope.scaling.yarn_ext_factor", 1, &part));
    TRY(read_real(r, "rope.scaling.yarn_beta_fast", 32, &c->yarn_fast));
    TRY(read_real(r, "rope.scaling.yarn_beta_slow", 1, &c->yarn_slow));
    if (part != 1)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "llama: rope.scaling.yarn_ext_factor is %g; only 1 is supported", part);
    c->rope_amplitude *= 1 + 0.1 * log(c->rope_factor);
error:
    return status;
}

/* Reads how rotation is stretched. For linear stretching there is a present key and an old one. The
 * divisors of longrope are tensors. */
static rlxvk_status read_rope(const reader *r)
{
    static const char *const words[] = {"none", "linear", "yarn", "longrope", NULL};
    llama_config *c = r->config;
    uint32_t word;
    rlxvk_status status;
    TRY(read_real(r, "rope.freq_base", 10000, &c->rope_base));
    TRY(read_real(r, "rope.scale_linear", 1, &c->rope_factor));
    TRY(read_word(r, "rope.scaling.type", words, &word));
    if (word == 1 || word == 2)
        TRY(read_real(r, "rope.scaling.factor", c->rope_factor, &c->rope_factor));
    c->rope_scaling = word == 2 ? LLAMA_ROPE_YARN : LLAMA_ROPE_LINEAR;
    TRY(read_positive(r, "rope.scaling.original_context_length", c->context, &c->original_context));
    TRY(read_real(r, "rope.scaling.attn_factor", 1, &c->rope_amplitude));
    if (c->rope_scaling == LLAMA_ROPE_YARN)
        TRY(read_yarn(r));
    TRY(read_positive(r, "rope.dimension_count", c->head_dim, &c->rotated));
    if (c->rotated % 2 || c->rotated > c->head_dim)
        return status_fail(
            RLXVK_E_RANGE,
            "llama: rope.dimension_count is %lld; must be even, at most the head size %lld",
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

/* The vocabulary is the number of the embedding's rows. If the metadata give it, they must agree.
 */
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
    TRY(llama_find_architecture(file, &out->architecture));
    TRY(check_features(&r));
    TRY(read_positive(&r, "block_count", -1, &out->blocks));
    TRY(read_positive(&r, "context_length", -1, &out->context));
    TRY(read_positive(&r, "embedding_length", -1, &out->width));
    TRY(read_positive(&r, "feed_forward_length", -1, &out->ffn));
    TRY(read_experts(&r));
    TRY(read_heads(&r));
    TRY(read_rope(&r));
    TRY(read_window(&r));
    TRY(read_scales(&r));
    TRY(read_real(&r, "attention.layer_norm_rms_epsilon", NAN, &out->epsilon));
    TRY(read_vocabulary(&r));
    if ((uint64_t)out->blocks > file->tensor_count)
        return status_fail(RLXVK_E_RANGE, "llama: block_count is %lld, but there are %llu tensors",
                           (long long)out->blocks, (unsigned long long)file->tensor_count);
error:
    return status;
}
