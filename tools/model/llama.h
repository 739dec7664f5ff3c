/*
 * A llama-architecture model of a GGUF file on one device: rotary attention with grouped heads over
 * a resident key/value cache, gated feed-forward blocks, RMS norms.
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

/* Zero means the default. */
typedef struct llama_options {
    uint64_t capacity;                    /* most tokens of a sequence; the model's context */
    const rlxvk_sample_options *sampling; /* how tokens are chosen; NULL: greedy */
    uint64_t seed;                        /* of random numbers, drawn anew at every position */
    rlxvk_precision precision;            /* of matrix products */
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
/* Back to an empty sequence. */
void llama_rewind(llama *m);

typedef struct llama_report {
    uint32_t chunk_dispatches, decode_dispatches; /* GPU dispatches of the last chunk; of a step */
    uint32_t graphs;                              /* compiled so far */
    uint32_t host_ops;                            /* steps on the host, all graphs */
    uint64_t decode_runs, decode_submissions;     /* so far */
    uint64_t device_bytes;                        /* weights, cache, scratch */
    double compile_seconds; /* plans, pipelines, command buffers of the graphs so far */
} llama_report;
void llama_usage(const llama *m, llama_report *out);

#endif
