/* The rules of row graphs for special domains. row_graph.c has the common ones. */
#ifndef RLXVK_ROW_RULES_H
#define RLXVK_ROW_RULES_H

#include <rlxvk_ops.h>

#include <stdint.h>

/* A rule takes x and y [rows, ROW_GRAPH_WIDTH] and i [rows] with indices. Its result has x's
 * shape. */
typedef rlxvk_tensor (*row_rule)(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor y, rlxvk_tensor i);

typedef struct row_rules {
    const row_rule *items;
    uint32_t count;
} row_rules;

row_rules row_rules_of_indices(void);   /* row_rules_index.c: gather, scatter, images */
row_rules row_rules_of_gradients(void); /* row_rules_train.c: gradients, losses, optimizers */
row_rules row_rules_of_signals(void);   /* row_rules_signal.c: sequences, spectra, integers */
row_rules row_rules_of_shapes(void);    /* row_rules_shape.c: the other common ops */

/* ---- Helpers of the rules, in row_graph.c ---- */

/* A new param. */
rlxvk_tensor row_param(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape);
/* New F32 numbers between -most and most, for example for indices. */
rlxvk_tensor row_numbers(rlxvk_graph *g, float most, rlxvk_shape shape);
int64_t row_count(rlxvk_graph *g, rlxvk_tensor x);
/* x as [rows, dims..], and back to [rows, ROW_GRAPH_WIDTH]. */
rlxvk_tensor row_image(rlxvk_graph *g, rlxvk_tensor x); /* [rows, 2, 4, 4] */
rlxvk_tensor row_back(rlxvk_graph *g, rlxvk_tensor x);
/* Swaps axes 0 and 1. */
rlxvk_tensor row_turned(rlxvk_graph *g, rlxvk_tensor x);
/* Some columns of x; and `part` [rows, n], filled up with columns of x. */
rlxvk_tensor row_columns(rlxvk_graph *g, rlxvk_tensor x, int64_t first, int64_t count);
rlxvk_tensor row_filled(rlxvk_graph *g, rlxvk_tensor part, rlxvk_tensor x);

#define ROW_RULE(name)                                                                             \
    static rlxvk_tensor name(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor y, rlxvk_tensor i)
#define ROW_UNUSED(...) (void)sizeof((rlxvk_tensor[]){__VA_ARGS__})
#define ROW_PARAM(...)  row_param(g, RLXVK_F32, RLXVK_SHAPE(__VA_ARGS__))

#endif
