/* Shared by the files that make graphs: a graph of a model under construction. */
#ifndef RLXVK_LLAMA_BUILDER_H
#define RLXVK_LLAMA_BUILDER_H

#include "model/llama_internal.h"

typedef struct builder {
    rlxvk_graph *graph;
    const llama *model;
    const llama_config *config;
    llama_kind kind;
    int64_t rows;
    rlxvk_status status; /* of what is not the graph's own */
    rlxvk_tensor embedding, position, last;
    rlxvk_tensor cache_row; /* [1], or of a step's rows each: where it is written */
    rlxvk_tensor sequence;  /* [1], of chunks with many sequences */
    /* Of blocks that see all, and of those with a window. */
    rlxvk_tensor mask[2], cosines[2], sines[2];
} builder;

/* A step's are inputs; else row r is at `position` + r: [rows], not beyond the cache. */
rlxvk_tensor llama_positions(builder *b);
/* [rows, stride]: 1 for the cache's rows up to each position, less those that have left the
 * window; 0: none leaves. */
rlxvk_tensor llama_mask(builder *b, rlxvk_tensor positions, int64_t window);
/* With the model's scale and cap. */
rlxvk_attention_options llama_attention_options(const builder *b, rlxvk_attention_layout layout,
                                                rlxvk_attention_mask mask);
/* Of query rows [n, heads * d] over a whole cache, keys and values, after its write. */
rlxvk_tensor llama_chunk_attention(builder *b, rlxvk_tensor query, const rlxvk_tensor cache[2],
                                   bool local);
/* The same for one row of each sequence. */
rlxvk_tensor llama_step_attention(builder *b, rlxvk_tensor query, const rlxvk_tensor cache[2],
                                  bool local);
/* Where positions are in caches of many sequences: of a chunk's first row, of all rows of a step.
 */
rlxvk_tensor llama_cache_row(builder *b, rlxvk_tensor positions);
/* A step's rows [sequences, kv heads * d] into the cache, each at its place; the cache afterwards.
 */
rlxvk_tensor llama_store_each(builder *b, rlxvk_tensor cache, rlxvk_tensor rows);
/* The selected sequence's part of a cache, [kv heads, stride, d]. */
rlxvk_tensor llama_own_cache(builder *b, rlxvk_tensor cache);
/* What the experts that `scores` [n, experts] choose make of rows [n, width]. */
rlxvk_tensor llama_experts(builder *b, const llama_block *block, rlxvk_tensor x,
                           rlxvk_tensor scores);
rlxvk_tensor llama_number(builder *b, double value); /* [1] */
/* 0, 1, 2, ... as a constant of `count` elements. */
rlxvk_tensor llama_counting(builder *b, rlxvk_shape shape, int64_t count);

#endif
