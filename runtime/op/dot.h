/* A graph in the DOT language of Graphviz. */
#ifndef RLXVK_DOT_H
#define RLXVK_DOT_H

#include "op/op.h"

/* Additions of a caller that knows more of the graph, for example its plan. All may be NULL. */
typedef struct dot_style {
    const char *title;
    /* Appends lines, each after a newline, to the label of a node that is not a leaf. */
    void (*describe)(const void *user, uint32_t id, text *label);
    /* More attributes of such a node, in DOT: ", color=red". */
    const char *(*attributes)(const void *user, uint32_t id);
    const void *user;
} dot_style;

void dot_write(const rlxvk_graph *g, const dot_style *style, text_output *out);

#endif
