/* The tensors of a model by role, and the graphs over them. Shared by the llama files. */
#ifndef RLXVK_LLAMA_INTERNAL_H
#define RLXVK_LLAMA_INTERNAL_H

#include "model/language/llama.h"
#include "model/name_map.h"

#include <rlxvk_ops.h>

enum { LINEAR_PARTS = 3 };

/* y = x W^T + b with W as one param. W stacks up to three matrices that have the same type and row
 * length, so that one product computes all of them. */
typedef struct linear {
    const char *name, *bias_name;
    const gguf_tensor *parts[LINEAR_PARTS];
    const gguf_tensor *biases[LINEAR_PARTS]; /* NULL: zeros, or this product has no biases */
    uint32_t part_count;
    uint32_t
        roles; /* those it computes, of query, key, value or gate, up: one a part, or all in one */
    uint32_t type;           /* of gguf_type.h */
    int64_t inputs, outputs; /* columns; rows of all parts together */
    bool has_bias;
} linear;

/* Query, key and value (or gate and up) in this order, in as few products as their types allow. */
typedef struct linear_group {
    linear items[LINEAR_PARTS];
    uint32_t count;
} linear_group;

/* The matrices of one role, of all experts, stacked. */
typedef struct expert_matrices {
    const gguf_tensor *tensor;
    int64_t inputs, outputs;
} expert_matrices;

typedef struct llama_block {
    const gguf_tensor *attention_norm, *ffn_norm;
    const gguf_tensor *query_norm, *key_norm, *after_attention, *after_ffn; /* NULL: none */
    linear_group query_key_value, gate_up; /* gate_up and down: only in dense models */
    linear attention_output, down;
    linear router; /* the members from here on: only in models with experts */
    expert_matrices expert_gate, expert_up, expert_down;
    linear_group shared_gate_up;
    linear shared_down, shared_router; /* if the model has a shared expert */
} llama_block;

typedef struct llama_weights {
    const gguf_tensor *embedding, *output_norm;
    const gguf_tensor *rope_divisors;          /* NULL: ones */
    const gguf_tensor *rope_long, *rope_short; /* replace them: beyond the original context; within
                                                  it */
    linear output;
    llama_block *blocks;
} llama_weights;

/* Chunks have 8, 16, .. 2048 rows, but not more than the cache. Chunks longer than 512 are used
 * only if their temporaries are small compared with the model (plan_chunks). A chunk with much
 * padding becomes two, if half of it has LEAST_HALF rows. */
enum {
    CHUNK_LENGTHS = 9,
    MODEST_LENGTHS = 7,
    SMALLEST_CHUNK = 8,
    LEAST_HALF = 256,
    LARGEST_CHUNK = SMALLEST_CHUNK << (CHUNK_LENGTHS - 1)
};

/* What a file tells. */
typedef struct llama_net {
    llama_config config;
    llama_weights weights; /* points into the file */
    uint64_t file_bytes;   /* of all tensors together */
    int64_t capacity;      /* most tokens of a sequence */
    bool by_length;        /* the length of a sequence selects short or long divisors */
} llama_net;

struct llama {
    llama_net net;
    rlxvk_context *context;
    int64_t *positions; /* of each sequence: its length so far */
    int64_t *before;    /* the positions before a call that may fail */
    bool *stretched;    /* of each sequence: it uses the long divisors */
    uint32_t *history;  /* if by_length: tokens of each sequence, at a stride of `capacity` */
    int64_t sequences;
    uint32_t sequence; /* the selected one */
    int chunk_lengths; /* how many are in use, beginning with the smallest */
    rlxvk_language_options options;
    rlxvk_sample_options sampling;
    uint32_t run_rows; /* fixed cost of a run, as a number of rows: for example reading weights */
    uint64_t draws;    /* calls that drew random numbers since the last rewind; see llama_rewind */
    rlxvk_executable *decode;                /* the step; the first has weights and caches */
    rlxvk_executable *chunks[CHUNK_LENGTHS]; /* NULL: not used yet */
    rlxvk_executable *wide[CHUNK_LENGTHS];   /* graphs that run so many rows of every sequence */
    rlxvk_executable *last_chunk;            /* the one that ran last; NULL: none */
    float *tokens;       /* of a run, as f32: rows of a chunk, or of every sequence */
    float *numbers;      /* for each sequence: position, last row, chosen token, row of the table */
    llama_piece *pieces; /* for each sequence: the tokens that are still to run */
    uint64_t shared_bytes, shared_host_bytes; /* weights and caches; weights in host memory */
    double compile_seconds;
    uint64_t loaded_submissions; /* of the step, before its first run */
    arena memory;
};

/* Finds the architecture by name.
 *   E_UNKNOWN_NAME   the file does not name one
 *   E_UNSUPPORTED    it is not known */
rlxvk_status llama_find_architecture(const gguf_file *file, const llama_architecture **out);
/* Whether queries in this block see only a window of keys. */
bool llama_is_local(const llama_config *c, int64_t block);
/* Whether the model needs this rotary table: that for blocks with a window (`local`), or that for
 * other blocks. */
bool llama_has_table(const llama_config *c, bool local);
/* llama_table_rows is the number of rows in a rotary table. llama_stretch_offset is the row that a
 * stretched sequence uses for position 0. */
int64_t llama_table_rows(const llama_net *net);
int64_t llama_stretch_offset(const llama_net *net);
/* Fills part of a rotary table, [2, rows, rotated / 2]: `count` rows from row `first` on, for
 * positions from 0 on. `local` selects the table for blocks with a window. `divisors` has one for
 * each pair, or is NULL. */
void llama_fill_table(const llama_net *net, bool local, const float *divisors, int64_t first,
                      int64_t count, float *table);

/* Reads the metadata, and finds and checks every tensor. Matrices are joined only if the param
 * stays within `binding_limit` bytes. */
rlxvk_status llama_find_weights(const gguf_file *file, const llama_config *config,
                                uint64_t binding_limit, arena *memory, llama_weights *out);
/* Whether products read this type packed, as a U8 param of raw bytes. If not, *out_dtype is the
 * param's dtype. */
bool llama_type_is_packed(uint32_t type, rlxvk_dtype *out_dtype);
/* Sets the params of an executable that come from the file: those in `wanted`, or all if it is
 * NULL. `options` may be NULL; of them, only the progress is used. */
rlxvk_status llama_upload(const llama_net *net, rlxvk_executable *executable,
                          const name_map *wanted, const rlxvk_language_options *options);

/* The tokens that a graph runs: `length` tokens of one sequence (a chunk), or of every sequence. A
 * step is one token of every sequence. */
typedef struct llama_rows {
    int64_t length;
    bool every;
} llama_rows;

/*
 * Builds a graph. Its inputs:
 *   tokens     [rows], sequence after sequence
 *   position   of a chunk: [1, 2], its first position and its sequence; otherwise [sequences], the
 *              first position of each, negative if the sequence is idle
 *   stretch    [sequences or 1], the row of the rotary tables for position 0; only if lengths
 *              select the divisors
 *   last       [sequences or 1], the rows whose logits are wanted; not in a step
 *
 * Output 0 is the logits [sequences or 1, vocabulary]; output 1 is the tokens chosen from them.
 */
rlxvk_status llama_build_graph(const llama *m, llama_rows shape, rlxvk_graph **out);
/* Builds a graph of whole sequences, without caches: tokens [batch, length], I32, to logits [batch,
 * length, vocabulary]. Both dims may be symbols. */
rlxvk_status llama_build_whole_graph(const llama_net *net, int64_t batch, int64_t length,
                                     rlxvk_graph **out);

/* Params [2, llama_table_rows, rotated / 2]: cosines, then sines. The local table is for blocks
 * with a window, if they rotate differently. */
#define ROPE_TABLE       "rope.table"
#define LOCAL_ROPE_TABLE "rope.table.local"
#define CACHE_NAME       32
void llama_cache_name(char out[CACHE_NAME], bool values, int64_t block);

#endif
