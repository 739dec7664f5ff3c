/* A graph of a model under construction. Shared by the files that make graphs. */
#ifndef RLXVK_LLAMA_BUILDER_H
#define RLXVK_LLAMA_BUILDER_H

#include "model/llama_internal.h"

typedef struct builder {
    rlxvk_graph *graph;
    const llama *model;
    const llama_config *config;
    llama_rows shape;
    int64_t sequences; /* that the graph runs */
    int64_t rows;      /* of all sequences together */
    rlxvk_tensor embedding, position, last;
    rlxvk_tensor cosines[2], sines[2]; /* for blocks that see all keys; for blocks with a window */
} builder;

/* Sends rows x [n, width] through the experts that `scores` [n, experts] chooses. */
rlxvk_tensor llama_experts(builder *b, const llama_block *block, rlxvk_tensor x,
                           rlxvk_tensor scores);

#endif
