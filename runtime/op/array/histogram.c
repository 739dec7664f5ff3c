/*
 * histogram and bincount count how many elements fall into each bin. They count integers with
 * atomics; the result is the same in any order. Counts are exact up to 2^24, the limit of f32. If
 * the distance of an element from `low` rounds to that of the next bin, it may be counted there. If
 * bincount has weights, it is a scatter_add, which adds in a fixed order.
 */
#include "args/array.h"
#include "constants/array.h"
#include "op/array/histogram_choice.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_ops_array.h>

#include <math.h>

typedef struct histogram_attributes {
    int64_t bins;
    float low, high;
} histogram_attributes;

#define MOST_BINS (1 << 24) /* indices are exact f32 integers */

/* ---- Building ---- */

rlxvk_tensor rlxvk_histogram(rlxvk_graph *g, rlxvk_tensor x, int64_t bins, float low, float high)
{
    histogram_attributes a = {bins, low, high};
    return op_build(g, OP_histogram, &x, 1, &a);
}

rlxvk_tensor rlxvk_bincount(rlxvk_graph *g, rlxvk_tensor indices, rlxvk_tensor weights,
                            int64_t length)
{
    histogram_attributes a = {length, 0, 0};
    rlxvk_tensor operands[] = {indices, weights};
    if (weights.id == 0)
        return op_build(g, OP_bincount, &indices, 1, &a);
    if (!composite_begin(g, "bincount", operands, 2))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_shape shape = rlxvk_tensor_shape(g, indices), other = rlxvk_tensor_shape(g, weights);
    char texts[2][SHAPE_TEXT];
    if (!shape_equal(&shape, &other)) {
        composite_fail(g, "bincount", RLXVK_E_SHAPE, "weights %s of indices %s; one for each",
                       shape_text(&other, texts[0]), shape_text(&shape, texts[1]));
        return RLXVK_NONE;
    }
    for (int i = 0; i < 2 && shape.rank != 1; i++)
        operands[i] = rlxvk_reshape(g, operands[i], RLXVK_SHAPE(shape.rank ? -1 : 1));
    return composite_end(g, "bincount", start,
                         rlxvk_scatter_add(g, operands[1], operands[0], length));
}

static rlxvk_status histogram_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const histogram_attributes *a = attributes;
    (void)g;
    if (a->bins < (node_code(n) == HISTOGRAM_RANGE ? 1 : 0))
        return op_fail(n, RLXVK_E_ATTR, "%lld bins; takes 1 and more", (long long)a->bins);
    if (a->bins > MOST_BINS)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "%lld bins; 2^24 at most", (long long)a->bins);
    if (node_code(n) == HISTOGRAM_RANGE &&
        !(isfinite(a->low) && isfinite(a->high) && a->low < a->high &&
          isfinite((double)a->bins / (a->high - a->low)) && isfinite(a->high - a->low) &&
          isnormal((float)((double)a->bins / ((double)a->high - a->low)))))
        return op_fail(n, RLXVK_E_ATTR,
                       "bins from %g to %g; both finite, the second larger, their distance no less "
                       "than f32 tells apart",
                       (double)a->low, (double)a->high);
    n->shape = RLXVK_SHAPE(a->bins);
    n->dtype = RLXVK_F32;
    return RLXVK_OK;
}

static uint32_t histogram_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    histogram_attributes *a = attributes;
    out[0] = &a->bins;
    return 1;
}

/* ---- Lower ---- */

typedef struct histogram_work {
    const histogram_way *way;
    histogram_division division;
    histogram_problem problem;
    bool indices;
    struct histogram_args args;
} histogram_work;

static rlxvk_status emit_stage(lowering *l, const histogram_work *w, uint32_t stage,
                               const operand *operands)
{
    dispatch d = {.kernel = KERNEL_HISTOGRAM, .variant = w->way->row.name};
    uint32_t size = l->profile->workgroup_size;
    bool counts = stage == HISTOGRAM_COUNT;
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {HISTOGRAM_STAGE, stage}, {HISTOGRAM_INDICES, w->indices},
                  {HISTOGRAM_PLACE, w->way->place},
                  {HISTOGRAM_WORDS, counts ? w->division.words : 1},
                  {HISTOGRAM_SETS, w->division.sets}, {HISTOGRAM_QUADS, w->problem.width == 4});
    lower_groups(l, &d, counts ? w->division.groups : groups_for(w->problem.bins, size));
    return lower_emit(l, &d, &w->args, sizeof w->args, operands, 3);
}

static rlxvk_status emit_stages(lowering *l, const histogram_work *w, operand x, operand y)
{
    operand counts;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * w->problem.bins, &counts));
    operand both = updating(counts), done = reading(counts);
    TRY(emit_stage(l, w, HISTOGRAM_START, (operand[]){x, counts, counts}));
    TRY(emit_stage(l, w, HISTOGRAM_COUNT, (operand[]){x, both, both}));
    TRY(emit_stage(l, w, HISTOGRAM_FINISH, (operand[]){done, done, y}));
error:
    return status;
}

static rlxvk_status histogram_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const histogram_attributes *a = n->attributes;
    operand x = lower_input(l, id, 0), y = lower_write(l, id);
    histogram_work w = {.problem = {.count = shape_numel(input_shape(l->graph, n, 0)),
                                    .bins = (uint64_t)a->bins,
                                    .width = x.offset % 4 == 0 ? 4 : 1},
                        .indices = node_code(n) == HISTOGRAM_INDEX};
    const histogram_division *d = &w.division;
    w.way =
        histogram_find_way(&w.problem, l->profile, variant_choose(l, CHOICE_histogram, NULL, NULL));
    w.division = histogram_divide(w.way, &w.problem, l->profile);
    w.args = (struct histogram_args){
        .count = (u32)w.problem.count,
        .bins = (u32)a->bins,
        .ranges = (u32)d->ranges,
        .range_bins = (u32)d->range_bins,
        .run = (u32)d->run,
        .groups = (u32)d->groups,
        .low = a->low,
        .high = a->high,
        .scale = w.indices ? 1 : (float)((double)a->bins / ((double)a->high - a->low)),
        .x_offset = x.offset,
        .y_offset = y.offset,
    };
    return emit_stages(l, &w, x, y);
}

/* ---- Host ---- */

static void host_range(const host_call *c, const histogram_attributes *a, double v)
{
    double flushed = flush_denormal(v);
    if (flushed != v && c->bound && flushed >= a->low && flushed <= a->high)
        c->bound[(size_t)MIN((flushed - a->low) * (double)a->bins / ((double)a->high - a->low),
                             (double)a->bins - 1)]++;
    if (!(v >= a->low && v <= a->high))
        return;
    double scale = (double)a->bins / ((double)a->high - a->low), at = (v - a->low) * scale;
    double slack = at * 0x1p-22 + 0x1p-24 * (fabs(v) + fabs((double)a->low)) * scale;
    int64_t bin = MIN((int64_t)at, a->bins - 1);
    c->out[bin]++;
    for (int side = 0; side < 2 && c->bound; side++) {
        int64_t other = MIN((int64_t)fmax(side ? at + slack : at - slack, 0), a->bins - 1);
        for (int64_t k = MIN(other, bin); other != bin && k <= MAX(other, bin); k++)
            c->bound[k]++;
    }
}

static rlxvk_status histogram_host(const host_call *c)
{
    const histogram_attributes *a = c->node->attributes;
    uint64_t count = shape_numel(&c->inputs[0].node->shape);
    for (int64_t k = 0; k < a->bins && c->bound; k++)
        c->bound[k] = 0;
    for (uint64_t i = 0; i < count; i++) {
        double v = c->inputs[0].words[i], at = floor(v + 0.5);
        if (node_code(c->node) == HISTOGRAM_RANGE)
            host_range(c, a, v);
        else if (at >= 0 && at < (double)a->bins)
            c->out[(size_t)at]++;
    }
    return RLXVK_OK;
}

static uint64_t histogram_bucket(bucket_call *c)
{
    return bucket_refuse(c, "it counts over the rows");
}

static void histogram_describe(const node *n, text *out)
{
    const histogram_attributes *a = n->attributes;
    text_append(out, " bins=%lld", (long long)a->bins);
    if (node_code(n) == HISTOGRAM_RANGE)
        text_append(out, " low=%g high=%g", (double)a->low, (double)a->high);
}

const op_family histogram_family = {
    .name = "histogram",
    .attribute_size = sizeof(histogram_attributes),
    .infer = histogram_infer,
    .sizes = histogram_sizes,
    .execution = {.lower = histogram_lower, .host = histogram_host},
    .rows = {.bucket = histogram_bucket},
    .describe = histogram_describe,
};
