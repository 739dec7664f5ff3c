/* A graph of a model under construction. Shared by the files that make graphs. */
#ifndef RLXVK_LLAMA_BUILDER_H
#define RLXVK_LLAMA_BUILDER_H

#include "model/language/llama_internal.h"

typedef struct builder {
    rlxvk_graph *graph;
    const llama_net *net;
    const llama_config *config;
    const llama *model; /* whose caches the graph uses; NULL: it runs whole sequences */
    llama_rows shape;   /* of a graph with caches */
    int64_t sequences;  /* that the graph runs; of whole ones perhaps a symbol, as the length is */
    int64_t length;     /* rows of a sequence */
    int64_t rows;       /* of all sequences together; -1: a symbol */
    rlxvk_rope_style rope_style;
    rlxvk_tensor embedding, position, last;
    rlxvk_tensor cosines[2], sines[2]; /* for blocks that see all keys; for blocks with a window */
} builder;

/* Sends rows x [n, width] through the experts that `scores` [n, experts] chooses. */
rlxvk_tensor llama_experts(builder *b, const llama_block *block, rlxvk_tensor x,
                           rlxvk_tensor scores);

#endif
