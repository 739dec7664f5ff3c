/* Shared by the llama files: the tensors of a model by role, and the graphs over them. */
#ifndef RLXVK_LLAMA_INTERNAL_H
#define RLXVK_LLAMA_INTERNAL_H

#include "model/llama.h"

#include <rlxvk_ops.h>

enum { LINEAR_PARTS = 3 };

/* y = x W^T + b as one param: up to three matrices of one type and row length, one below the other,
 * so that one product serves all. */
typedef struct linear {
    const char *name, *bias_name;
    const gguf_tensor *parts[LINEAR_PARTS];
    const gguf_tensor *biases[LINEAR_PARTS]; /* NULL: zeros, or none at all */
    uint32_t part_count;
    uint32_t
        roles; /* of a group's: query, key, value or gate, up; as many as parts, or all in one */
    uint32_t type;           /* of quant_format.h */
    int64_t inputs, outputs; /* columns; rows of all parts */
    bool has_bias;
} linear;

/* Query, key and value (or gate and up) in order, in as few products as their types allow. */
typedef struct linear_group {
    linear items[LINEAR_PARTS];
    uint32_t count;
} linear_group;

/* Matrices of one role of all experts, one below the other. */
typedef struct expert_matrices {
    const gguf_tensor *tensor;
    int64_t inputs, outputs;
} expert_matrices;

typedef struct llama_block {
    const gguf_tensor *attention_norm, *ffn_norm;
    const gguf_tensor *query_norm, *key_norm, *after_attention, *after_ffn; /* NULL: none */
    linear_group query_key_value, gate_up; /* the latter, and down, of dense models */
    linear attention_output, down;
    linear router; /* from here on of experts */
    expert_matrices expert_gate, expert_up, expert_down;
    linear_group shared_gate_up;
    linear shared_down, shared_router; /* where the model has a shared expert */
} llama_block;

typedef struct llama_weights {
    const gguf_tensor *embedding, *output_norm;
    const gguf_tensor *rope_divisors;          /* NULL: ones */
    const gguf_tensor *rope_long, *rope_short; /* instead, beyond the original context or in it */
    linear output;
    llama_block *blocks;
} llama_weights;

/* Chunks are 8, 16, .. 2048 rows long, no longer than the cache, and longer than 512 only where
 * what they compute is little beside the model (plan_chunks). */
enum {
    CHUNK_LENGTHS = 9,
    MODEST_LENGTHS = 7,
    SMALLEST_CHUNK = 8,
    LARGEST_CHUNK = SMALLEST_CHUNK << (CHUNK_LENGTHS - 1)
};

struct llama {
    llama_config config;
    llama_weights weights; /* points into the file */
    uint64_t file_bytes;   /* of all tensors */
    rlxvk_context *context;
    int64_t capacity;   /* most tokens of a sequence */
    int64_t *positions; /* of each sequence: its length */
    bool by_length;     /* a sequence's length chooses between short and long divisors */
    bool *stretched;    /* of each sequence: it has the long ones */
    uint32_t *history;  /* by_length: the tokens of each sequence, capacity apart */
    int64_t sequences;
    uint32_t sequence; /* the selected one */
    int chunk_lengths; /* that are in use, from the smallest on */
    llama_options options;
    rlxvk_sample_options sampling;
    uint32_t run_rows; /* that take as long as what goes with every run: reading the weights .. */
    uint64_t draws;    /* tokens chosen since position 0 */
    rlxvk_executable *decode;                /* a step; owns weights and caches */
    rlxvk_executable *chunks[CHUNK_LENGTHS]; /* NULL: not used yet */
    rlxvk_executable *wide[CHUNK_LENGTHS];   /* the same of every sequence's so many tokens */
    rlxvk_executable *last_chunk;            /* that ran; NULL: none */
    float *tokens;  /* of a run, as the device takes them: rows of a chunk, or of every sequence */
    float *numbers; /* of each sequence: position, last row, token chosen, row of the table */
    llama_piece *pieces; /* ... what is still to be run */
    double compile_seconds;
    uint64_t loaded_submissions; /* of the decode graph, before its first run */
    arena memory;
};

/* E_UNKNOWN_NAME, E_UNSUPPORTED. */
rlxvk_status llama_find_architecture(const gguf_file *file, const llama_architecture **out);
/* Whether a block's queries see a window of keys only. */
bool llama_is_local(const llama_config *c, int64_t block);
/* Whether blocks with a window, or without, are there and rotate in their own way. */
bool llama_has_table(const llama_config *c, bool local);
/* Rows of the rotary tables, and the one that position 0 of a stretched sequence has. */
int64_t llama_table_rows(const llama *m);
int64_t llama_stretch_offset(const llama *m);
/* Fills `count` rows from `first` on of the rotary table, [2, rows, rotated / 2], of the blocks
 * with a window or without, for positions from 0 on; `divisors` are one a pair, or NULL. */
void llama_fill_table(const llama *m, bool local, const float *divisors, int64_t first,
                      int64_t count, float *table);

/* Finds and checks every tensor; no param is made larger than `binding_limit` by joining. */
rlxvk_status llama_find_weights(const gguf_file *file, const llama_config *config,
                                uint64_t binding_limit, arena *memory, llama_weights *out);
/* Whether the product reads the type packed, as a U8 param of raw bytes; else *out_dtype is the
 * param's. */
bool llama_type_is_packed(uint32_t type, rlxvk_dtype *out_dtype);
/* Sets every param of an executable made from llama_build_graph. */
rlxvk_status llama_upload(const llama *m, rlxvk_executable *executable);

/* What a graph runs: so many tokens of one sequence, a chunk, or of every one: one of each is a
 * step. */
typedef struct llama_rows {
    int64_t length;
    bool every;
} llama_rows;

/*
 * Inputs: "tokens" [rows], sequence after sequence; "position": where every sequence's begin
 * [sequences], negative where one is idle, or a chunk's [1, 2], and its sequence; if lengths choose
 * the divisors "stretch" [sequences or 1], the row of the rotary tables for position 0; unless it
 * is a step "last" [sequences or 1], the rows whose logits count. Output 0: logits [sequences or 1,
 * vocabulary]; output 1: the tokens chosen by them.
 */
rlxvk_status llama_build_graph(const llama *m, llama_rows shape, rlxvk_graph **out);

/* Params [2, llama_table_rows, rotated / 2]: cosines, then sines. The second is of blocks with a
 * window, where they rotate in their own way. */
#define ROPE_TABLE       "rope.table"
#define LOCAL_ROPE_TABLE "rope.table.local"
#define CACHE_NAME       32
void llama_cache_name(char out[CACHE_NAME], bool values, int64_t block);

#endif
