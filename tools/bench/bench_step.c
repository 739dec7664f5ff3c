/* The work of steps of executables, for their share of the ceilings. bench_run.c counts that of
 * cases by the same rules. */
#include "bench/bench.h"
#include "exec/executable.h"
#include "op/attention/attention.h"

#include <string.h>

static double size_of(const rlxvk_shape *s)
{
    return (double)shape_numel(s);
}

/* Every element of the result sums over the columns of a, which may be transposed. */
static double matmul_flops(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *a = input_shape(g, n, 0), *y = &n->shape;
    double matrix = a->rank < 2 ? 0 : (double)a->dims[a->rank - 1] * (double)a->dims[a->rank - 2];
    return y->rank < 2 || y->dims[y->rank - 2] == 0
               ? 0
               : 2 * size_of(y) * matrix / (double)y->dims[y->rank - 2];
}

/* Every row of x is multiplied by packed rows of its own length. */
static double packed_flops(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    return x->rank ? 2 * size_of(&n->shape) * (double)x->dims[x->rank - 1] : 0;
}

/* Every element of the result, or of x if it is transposed, meets a row of w. */
static double conv_flops(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *w = input_shape(g, n, 1);
    bool transposed = node_code(n) == CONV_TRANSPOSE;
    return w->dims[0] ? 2 * size_of(transposed ? input_shape(g, n, 0) : &n->shape) * size_of(w) /
                            (double)w->dims[0]
                      : 0;
}

/* Two products: of queries and keys, of weights and values. */
static double attention_flops(const rlxvk_graph *g, const node *n)
{
    const rlxvk_attention_options *o = &((const attention_attributes *)n->attributes)->options;
    const rlxvk_shape *q = input_shape(g, n, 0), *k = input_shape(g, n, 1);
    uint32_t axis =
        o->layout == RLXVK_LAYOUT_BHSD ? 2 : q->rank - 2 - (o->layout == RLXVK_LAYOUT_BSHD);
    double queries = (double)q->dims[axis], keys = (double)k->dims[axis];
    double seen = o->mask == RLXVK_MASK_CAUSAL ? MAX(keys - (queries - 1) / 2, 0) : keys;
    return 4 * size_of(q) * seen;
}

static double node_flops(const rlxvk_graph *g, const node *n)
{
    static const struct {
        const char *row;
        double (*flops)(const rlxvk_graph *, const node *);
    } rows[] = {
        {"matmul", matmul_flops},         {"fused_matmul_bias_act", matmul_flops},
        {"dequant_matmul", packed_flops}, {"projection", packed_flops},
        {"qmatmul", matmul_flops},        {"conv", conv_flops},
        {"fused_conv", conv_flops},       {"conv_transpose2d", conv_flops},
        {"qconv2d", conv_flops},          {"attention", attention_flops},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (strcmp(node_row(n)->name, rows[i].row) == 0)
            return rows[i].flops(g, n);
    return 0;
}

/* Bytes of a slot that several operands share count once. */
static bool is_repeated(const schedule *s, const step *at, uint32_t index, const operand *o)
{
    operand before;
    for (uint32_t i = 0; i < index && schedule_step_operand(s, at, i, &before); i++)
        if (before.value == o->value && before.first == o->first)
            return true;
    return false;
}

static double step_bytes(const schedule *s, const step *at)
{
    const node *n = graph_node(s->graph, at->node);
    bool gathers = strcmp(node_row(n)->name, "gather") == 0;
    double bytes = 0, most = gathers ? sizeof(float) * size_of(&n->shape) : 0;
    operand o;
    for (uint32_t i = 0; schedule_step_operand(s, at, i, &o); i++)
        if (!is_repeated(s, at, i, &o))
            bytes += gathers && i == 0 ? MIN((double)o.size, most) : (double)o.size;
    return bytes;
}

bench_work bench_step_work(const rlxvk_executable *executable, size_t step)
{
    const schedule *s = &executable->program->schedule;
    const struct step *at = &s->steps.items[step];
    bench_work work = {.bytes = step_bytes(s, at)};
    for (size_t i = 0; i < step; i++)
        if (s->steps.items[i].node == at->node)
            return work;
    work.flops = node_flops(s->graph, graph_node(s->graph, at->node));
    return work;
}
