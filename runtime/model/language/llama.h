/*
 * Runs a language model from a GGUF file on one device. It knows the llama architecture and its
 * relatives. All of them have rotary attention with grouped heads over a KV cache that stays on the
 * device. They also share gated feed-forward layers (or mixtures of experts) and RMS norms.
 *
 * A prompt runs in chunks of a few fixed lengths; then each further token runs as a step. The graph
 * of a chunk length is compiled when it is first needed. All graphs share weights and cache. A step
 * uploads a token's id and position. It reads back only the next token, which the device has
 * chosen, or the logits if the caller asks for them.
 */
#ifndef RLXVK_LLAMA_H
#define RLXVK_LLAMA_H

#include "model/language/gguf.h"

#include <rlxvk_language.h>

/* A model architecture: how it differs from the others. Names are those of tensors in a block.
 * NULL: it has no such tensor. */
typedef struct llama_architecture {
    const char *name;                        /* general.architecture; also the prefix of its keys */
    const char *query_norm, *key_norm;       /* norms over each head */
    const char *after_attention, *after_ffn; /* norms of the terms that each half of a block adds */
    const char *joined_attention;            /* query, key and value in one matrix */
    const char *joined_ffn;                  /* gate and up in one matrix */
    bool neighbours;     /* elements 2i and 2i + 1 of a head rotate together; else i and half + i */
    bool gelu;           /* the gate's activation is gelu (tanh form); otherwise silu */
    bool embedding_root; /* embeddings are multiplied by sqrt(width) */
    bool scaled;         /* has keys that scale embedding, residual, attention and logits */
    bool experts;        /* may have experts */
    bool shared_expert;  /* ... and one expert for all tokens, with its own gate */
    bool even_shares;    /* the shares of the chosen experts are divided by their sum */
    int64_t window;      /* if no key gives it; 0: none */
    int64_t window_period; /* in each period, the last block sees all keys; 0: all have the
                              window */
    int64_t wide_blocks;   /* models with so many blocks scale scores by width / heads, not by head
                              size */
    double local_base;     /* base of rotation in blocks with a window; 0: as in other blocks */
    double attention_cap, logit_cap; /* if no key gives them; 0: none */
} llama_architecture;

/* How rotation is stretched for contexts that are longer than in training. */
typedef enum llama_rope_scaling { LLAMA_ROPE_LINEAR, LLAMA_ROPE_YARN } llama_rope_scaling;

/* The checked metadata of a model. All counts are positive, and heads is a multiple of kv_heads. */
typedef struct llama_config {
    const llama_architecture *architecture;
    int64_t blocks, context; /* layers; the longest sequence */
    int64_t width, ffn;      /* width of the residual stream; of the feed-forward layer */
    int64_t heads, kv_heads, head_dim;
    int64_t rotated;    /* the first elements of a head, which rotate; an even number */
    int64_t vocabulary; /* number of tokens: rows of the embedding */
    int64_t window;     /* keys that a query sees, including its own; 0: all */
    int64_t window_period;
    int64_t experts, chosen, expert_ffn; /* experts 0: a dense model; chosen: experts that each
                                            token uses */
    int64_t shared_ffn;                  /* width of the shared expert; 0: there is none */
    bool even_shares;                    /* the chosen experts' shares add up to 1 */
    double epsilon;
    double rope_base, rope_local_base; /* local base 0: same as rope_base */
    llama_rope_scaling rope_scaling;
    double rope_factor;          /* stretches the rotation: see llama_rope.c */
    double rope_amplitude;       /* multiplies sines and cosines */
    double yarn_fast, yarn_slow; /* turns in the original context between which yarn blends */
    int64_t original_context;
    double embedding_scale, residual_scale, logit_scale; /* 1: none */
    double attention_scale;                              /* of scores; 0: from the head size */
    double attention_cap, logit_cap;                     /* 0: none */
} llama_config;

/* Reads and checks the metadata.
 *   E_UNSUPPORTED    another architecture, or a feature that is not implemented
 *   E_UNKNOWN_NAME   a key or the embedding is missing
 *   E_SHAPE          the embedding's rows are not the vocabulary
 *   E_RANGE          a value is out of range */
RLXVK_MUST_CHECK rlxvk_status llama_read_config(const gguf_file *file, llama_config *out);

typedef struct llama llama;

/*
 * Compiles the step and uploads the weights. Context and file must outlive the model. `options` may
 * be NULL.
 *   E_RANGE          the capacity is above the model's context
 *   E_TOO_LARGE      weights and cache exceed the device's memory, without device_bytes
 *   E_UNKNOWN_NAME   a tensor is missing
 *   E_SHAPE          the dims of a tensor do not fit the metadata
 *   E_UNSUPPORTED    no kernel reads the types of some tensors (the text lists them)
 *   and the errors of llama_read_config and rlxvk_compile.
 */
RLXVK_MUST_CHECK rlxvk_status llama_load(rlxvk_context *context, const gguf_file *file,
                                         const rlxvk_language_options *options, llama **out);
/* Changes how tokens are chosen. Unless only the seed is another, it compiles the step again, and
 * chunks when they are next needed. Weights and caches stay. Errors as rlxvk_compile; then nothing
 * has changed. */
RLXVK_MUST_CHECK rlxvk_status llama_set_sampling(llama *m, const rlxvk_sample_options *sampling,
                                                 uint64_t seed);
void llama_destroy(llama *m); /* accepts NULL */

const llama_config *llama_configuration(const llama *m);

/* The results that a run reads back; NULL members are not read. */
typedef struct llama_result {
    float *logits;   /* `vocabulary` values, for the last position */
    uint32_t *token; /* the next token, chosen on the device */
} llama_result;

/* Appends one or more tokens to the selected sequence. The result is that of the last token.
 *   E_RANGE       count is 0, or the cache has no room for that many
 *   E_INDEX_OOB   an id is outside the vocabulary
 *   and the errors of rlxvk_compile and rlxvk_run. */
RLXVK_MUST_CHECK rlxvk_status llama_extend(llama *m, const uint32_t *ids, size_t count,
                                           llama_result result);
/* Compiles the graphs that extending by `count` tokens needs, if they are not compiled yet. Errors
 * as llama_extend. */
RLXVK_MUST_CHECK rlxvk_status llama_prepare(llama *m, size_t count);
/* Extends by one token. */
RLXVK_MUST_CHECK rlxvk_status llama_decode(llama *m, uint32_t id, llama_result result);
/* How many more tokens the cache holds. */
uint64_t llama_room(const llama *m);
/* Selects the sequence for llama_extend, llama_prepare, llama_decode, llama_room and llama_rewind.
 * At first it is 0. An index that is too large selects 0. */
void llama_select(llama *m, uint32_t sequence);
/* Empties the selected sequence. */
void llama_rewind(llama *m);

/* Tokens for one sequence. */
typedef struct llama_piece {
    const uint32_t *ids;
    size_t count;
} llama_piece;

/*
 * Extends every sequence s by pieces[s]. tokens[s] becomes the token that follows; `tokens` may be
 * NULL. If a piece is empty, its sequence and token stay. Sequences run together, padded to the
 * length of one graph, or one after the other, whichever is faster.
 */
RLXVK_MUST_CHECK rlxvk_status llama_extend_each(llama *m, const llama_piece *pieces,
                                                uint32_t *tokens);
/* Compiles the graphs that llama_extend_each needs for pieces of such lengths. */
RLXVK_MUST_CHECK rlxvk_status llama_prepare_each(llama *m, const llama_piece *pieces);

/* Runs one step: appends ids[s] to every sequence s at once, unless ids[s] is RLXVK_NO_TOKEN.
 * `logits` has a row for each sequence; it and `tokens` may be NULL. For idle sequences, logits
 * have no meaning, and tokens stay. Errors as llama_extend. */
RLXVK_MUST_CHECK rlxvk_status llama_step(llama *m, const uint32_t *ids, float *logits,
                                         uint32_t *tokens);

void llama_usage(const llama *m, rlxvk_language_report *out);

#endif
