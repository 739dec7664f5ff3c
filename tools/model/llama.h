/*
 * A llama-architecture model of a GGUF file on one device: rotary attention with grouped heads over
 * a resident key/value cache, gated feed-forward blocks, RMS norms.
 *
 * The prompt runs as one graph of all its rows, every further token as a graph of one row; both are
 * compiled by llama_load and share weights and cache. A token's run uploads its id and position and
 * reads back the next token, chosen on the device, or the logits where they are asked for.
 */
#ifndef RLXVK_LLAMA_H
#define RLXVK_LLAMA_H

#include "model/gguf.h"

#include <rlxvk_ops.h>

/* The metadata of a model, checked: all counts are positive, heads are a multiple of kv_heads. */
typedef struct llama_config {
    int64_t blocks, context; /* layers; longest sequence */
    int64_t width, ffn;      /* of the residual stream; of the feed-forward layer */
    int64_t heads, kv_heads, head_dim;
    int64_t rotated;    /* leading elements of a head that rotate, even */
    int64_t vocabulary; /* rows of the embedding */
    int64_t window;     /* keys a query sees, itself included; 0: all */
    double epsilon;
    double rope_base, rope_factor; /* positions are divided by the factor */
} llama_config;

/* E_UNSUPPORTED: another architecture, or a feature of it that there is no code for;
 * E_UNKNOWN_NAME: a key or the embedding is missing; E_RANGE: a value outside its bounds. */
RLXVK_MUST_CHECK rlxvk_status llama_read_config(const gguf_file *file, llama_config *out);

typedef struct llama llama;

/*
 * Compiles for prompts of exactly `prompt_length` tokens and up to `new_tokens` decode steps after
 * it, and uploads the weights; the file may be closed afterwards. Tokens are chosen by `sampling`
 * (NULL: greedy) with random numbers of `seed`, drawn anew at every position. The context must
 * outlive the model. E_RANGE: prompt and new tokens exceed the context length; E_UNKNOWN_NAME,
 * E_SHAPE: a tensor is missing or has other dims than the metadata say; E_UNSUPPORTED: as
 * llama_read_config, or tensors of types that no kernel reads (listed); else as rlxvk_compile.
 */
RLXVK_MUST_CHECK rlxvk_status llama_load(rlxvk_context *context, const gguf_file *file,
                                         uint64_t prompt_length, uint64_t new_tokens,
                                         const rlxvk_sample_options *sampling, uint64_t seed,
                                         llama **out);
void llama_destroy(llama *m); /* takes NULL */

const llama_config *llama_configuration(const llama *m);

/* What a run reads back; NULL members are not read. */
typedef struct llama_result {
    float *logits;   /* `vocabulary` values, of the last position */
    uint32_t *token; /* the next one, chosen on the device */
} llama_result;

/* Runs a prompt from position 0; may be called again for another one of the same length.
 * E_LENGTH: not prompt_length ids; E_INDEX_OOB: an id outside the vocabulary. */
RLXVK_MUST_CHECK rlxvk_status llama_prefill(llama *m, const uint32_t *ids, size_t count,
                                            llama_result result);
/* Appends one token to the sequence. E_RANGE: the cache is full; E_INDEX_OOB. */
RLXVK_MUST_CHECK rlxvk_status llama_decode(llama *m, uint32_t id, llama_result result);

typedef struct llama_report {
    uint32_t prefill_dispatches, decode_dispatches; /* GPU dispatches of a run */
    uint32_t host_ops;                              /* steps on the host, both graphs */
    uint64_t decode_runs, decode_submissions;       /* so far */
    uint64_t device_bytes;                          /* weights, cache, scratch */
    double compile_seconds; /* of llama_load: plans, pipelines, command buffers of both graphs */
} llama_report;
void llama_usage(const llama *m, llama_report *out);

#endif
