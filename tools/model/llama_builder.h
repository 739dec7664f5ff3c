/* Shared by the files that make graphs: a graph of a model under construction. */
#ifndef RLXVK_LLAMA_BUILDER_H
#define RLXVK_LLAMA_BUILDER_H

#include "model/llama_internal.h"

typedef struct builder {
    rlxvk_graph *graph;
    const llama *model;
    const llama_config *config;
    llama_rows shape;
    int64_t sequences; /* that have rows */
    int64_t rows;      /* in all */
    rlxvk_tensor embedding, position, last;
    rlxvk_tensor cosines[2], sines[2]; /* of blocks that see all, and of those with a window */
} builder;

/* What the experts that `scores` [n, experts] choose make of rows [n, width]. */
rlxvk_tensor llama_experts(builder *b, const llama_block *block, rlxvk_tensor x,
                           rlxvk_tensor scores);

#endif
