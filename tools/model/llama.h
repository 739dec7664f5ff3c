/*
 * A language model of a GGUF file on one device: the llama architecture and its relatives, which
 * share rotary attention with grouped heads over a resident key/value cache, gated feed-forward
 * layers, or experts of them, and RMS norms.
 *
 * Prompts run in chunks of a few fixed lengths, every further token by itself. The graph of a chunk
 * is compiled when one of its length is first run; all share weights and cache. A token's run
 * uploads its id and position and reads back the next token, chosen on the device, or the logits
 * where they are asked for.
 */
#ifndef RLXVK_LLAMA_H
#define RLXVK_LLAMA_H

#include "model/gguf.h"

#include <rlxvk_ops.h>

/* One kind of models: what sets it apart from the others. Names are of tensors in a block; NULL:
 * there is none of this role. */
typedef struct llama_architecture {
    const char *name;                        /* general.architecture, and in front of its keys */
    const char *query_norm, *key_norm;       /* over each head */
    const char *after_attention, *after_ffn; /* norms of what a half of a block adds */
    const char *joined_attention;            /* query, key and value in one matrix */
    const char *joined_ffn;                  /* gate and up */
    bool neighbours; /* elements 2i and 2i + 1 of a head rotate together, not those of its halves */
    bool gelu;       /* of the gate, the tanh form; else silu */
    bool embedding_root; /* embeddings times the root of the width */
    bool scaled;         /* has keys for the scales of embedding, residual, attention and logits */
    bool experts;        /* may have them */
    bool shared_expert;  /* ... and one for all tokens, by a gate of its own */
    bool even_shares;    /* the chosen experts' shares add up to 1 */
    int64_t window;      /* without key; 0: none */
    int64_t window_period; /* of so many blocks the last sees all; 0: all have the window */
    int64_t wide_blocks; /* models of so many scale scores by width / heads, not by the head size */
    double local_base;   /* of rotation in blocks with a window; 0: as in the others */
    double attention_cap, logit_cap; /* without keys; 0: none */
} llama_architecture;

/* How rotation is stretched. */
typedef enum llama_rope_scaling { LLAMA_ROPE_LINEAR, LLAMA_ROPE_YARN } llama_rope_scaling;

/* The metadata of a model, checked: all counts are positive, heads are a multiple of kv_heads. */
typedef struct llama_config {
    const llama_architecture *architecture;
    int64_t blocks, context; /* layers; longest sequence */
    int64_t width, ffn;      /* of the residual stream; of the feed-forward layer */
    int64_t heads, kv_heads, head_dim;
    int64_t rotated;    /* leading elements of a head that rotate, even */
    int64_t vocabulary; /* rows of the embedding */
    int64_t window;     /* keys a query sees, itself included; 0: all */
    int64_t window_period;
    int64_t experts, chosen, expert_ffn; /* 0: a dense model; experts of a token */
    int64_t shared_ffn;                  /* of the shared expert; 0: there is none */
    bool even_shares;                    /* the chosen experts' shares add up to 1 */
    double epsilon;
    double rope_base, rope_local_base; /* the latter 0: as the first */
    llama_rope_scaling rope_scaling;
    double rope_factor;          /* of the longest wavelengths, at least */
    double rope_amplitude;       /* of sines and cosines */
    double yarn_fast, yarn_slow; /* turns in the original context between which yarn goes over */
    int64_t original_context;
    double embedding_scale, residual_scale, logit_scale; /* 1: none */
    double attention_scale;                              /* of scores; 0: by the head size */
    double attention_cap, logit_cap;                     /* 0: none */
} llama_config;

/* E_UNSUPPORTED: another architecture, or a feature of it that there is no code for;
 * E_UNKNOWN_NAME: a key or the embedding is missing; E_RANGE: a value outside its bounds. */
RLXVK_MUST_CHECK rlxvk_status llama_read_config(const gguf_file *file, llama_config *out);

typedef struct llama llama;

/* Zero means the default. */
typedef struct llama_options {
    uint32_t sequences;                   /* at once, each of its own length; 1 */
    uint64_t capacity;                    /* most tokens of a sequence; the model's context */
    const rlxvk_sample_options *sampling; /* how tokens are chosen; NULL: greedy */
    uint64_t seed;                        /* of random numbers, drawn anew at every position */
    rlxvk_precision precision;            /* of matrix products */
    rlxvk_dtype cache;                    /* of keys and values: F32, or F16 */
    /* Longrope (Phi 3, Phi 4 mini): every sequence has the short divisors until it is longer than
     * the original context, as in transformers; then all of it is run again with the long ones.
     * False: the long ones from the first token on if the capacity exceeds the original context. */
    bool stretch_by_length;
    /* Called now and then while weights are uploaded; may be NULL. */
    void (*progress)(uint64_t done_bytes, uint64_t total_bytes);
} llama_options;

/*
 * Compiles the step and uploads the weights. Context and file must outlive the model. `options` may
 * be NULL. E_RANGE: a capacity above the model's context; E_TOO_LARGE: weights and cache exceed the
 * device's memory; E_UNKNOWN_NAME, E_SHAPE: a tensor is missing or has other dims than the metadata
 * say; E_UNSUPPORTED: as llama_read_config, or tensors of types that no kernel reads (listed); else
 * as rlxvk_compile.
 */
RLXVK_MUST_CHECK rlxvk_status llama_load(rlxvk_context *context, const gguf_file *file,
                                         const llama_options *options, llama **out);
void llama_destroy(llama *m); /* takes NULL */

const llama_config *llama_configuration(const llama *m);

/* What a run reads back; NULL members are not read. */
typedef struct llama_result {
    float *logits;   /* `vocabulary` values, of the last position */
    uint32_t *token; /* the next one, chosen on the device */
} llama_result;

/* Appends tokens to the sequence, as many as the cache holds, one or more; the result is the last
 * one's. E_RANGE: the cache is full, or no token; E_INDEX_OOB: an id outside the vocabulary; else
 * as rlxvk_compile and rlxvk_run. */
RLXVK_MUST_CHECK rlxvk_status llama_extend(llama *m, const uint32_t *ids, size_t count,
                                           llama_result result);
/* Compiles what extending by `count` tokens needs and has not been used yet. As llama_extend. */
RLXVK_MUST_CHECK rlxvk_status llama_prepare(llama *m, size_t count);
/* llama_extend by one token. */
RLXVK_MUST_CHECK rlxvk_status llama_decode(llama *m, uint32_t id, llama_result result);
/* How many more tokens the cache holds. */
uint64_t llama_room(const llama *m);
/* The sequence that the calls above and below are about, from 0 on; 0 at first. */
void llama_select(llama *m, uint32_t sequence);
/* Back to an empty sequence. */
void llama_rewind(llama *m);

/* Tokens of one sequence. */
typedef struct llama_piece {
    const uint32_t *ids;
    size_t count;
} llama_piece;

/*
 * llama_extend of every sequence s by pieces[s], which may be empty, with tokens[s], unless
 * `tokens` is NULL, the one that follows; an empty piece leaves it as it is. Sequences run at once,
 * padded to the length of one graph, or one by one, whichever takes less.
 */
RLXVK_MUST_CHECK rlxvk_status llama_extend_each(llama *m, const llama_piece *pieces,
                                                uint32_t *tokens);
/* Compiles what that needs. */
RLXVK_MUST_CHECK rlxvk_status llama_prepare_each(llama *m, const llama_piece *pieces);

#define LLAMA_IDLE UINT32_MAX
/* A step: appends ids[s] to every sequence s at once, but where it is LLAMA_IDLE. `logits`, of
 * every sequence a row, and `tokens` may be NULL; idle sequences' are of no meaning, their tokens
 * left as they are. Errors as llama_extend. */
RLXVK_MUST_CHECK rlxvk_status llama_step(llama *m, const uint32_t *ids, float *logits,
                                         uint32_t *tokens);

typedef struct llama_report {
    uint32_t chunk_dispatches, decode_dispatches; /* GPU dispatches of the last chunk; of a step */
    uint32_t graphs;                              /* compiled so far */
    uint32_t longest_chunk;                       /* rows in which a long prompt runs */
    uint32_t host_ops;                            /* steps on the host, all graphs */
    uint64_t decode_runs, decode_submissions;     /* so far */
    uint64_t device_bytes;                        /* all parts but staging */
    uint64_t weight_bytes, cache_bytes;           /* what the steps and chunks share */
    uint64_t prepared_bytes;                      /* what each makes of the weights and keeps */
    uint64_t state_bytes, scratch_bytes;          /* of each graph: inputs, results; within a run */
    uint64_t staging_bytes; /* for what crosses between host and device: not all in its memory */
    double compile_seconds; /* plans, pipelines, command buffers of the graphs so far */
} llama_report;
void llama_usage(const llama *m, llama_report *out);

#endif
