/*
 * The reference of attention_step: it rotates rows, writes them, then computes attention over the
 * new contents of the caches. Rotated rows have rope's tolerance. In F16 caches they are rounded.
 * If the tolerance allows both neighbours, either is accepted.
 */
#include "op/attention/attention_step.h"

#include <math.h>

typedef struct step_reference {
    const attention_step_attributes *attributes;
    const rlxvk_attention_step_options *o;
    attention_geometry a;
    const host_tensor *in;
    float *q, *keys, *values; /* q is rotated; the caches have their new contents */
    float *key_errors;
    int64_t *first, *entry;
} step_reference;

/* Head h of new row `token` of q, k or v. */
static const float *new_head(const step_reference *r, enum attention_step_operand i, int64_t token,
                             int64_t h)
{
    return r->in[i].words + token * r->in[i].node->shape.dims[2] +
           attention_step_column(r->attributes, i) + h * r->a.width;
}

/* Column d of a head, rotated by row `token` of the tables. *out_terms is the sum of |terms|, or 0
 * if the column is not rotated. */
static double rotated(const step_reference *r, const float *head, int64_t token, int64_t d,
                      double *out_terms)
{
    int64_t middle = r->o->n_rot / 2;
    *out_terms = 0;
    if (d >= r->o->n_rot)
        return head[d];
    bool neighbours = r->o->style == RLXVK_ROPE_GPTJ;
    int64_t pair = neighbours ? d / 2 : d % middle;
    bool second = neighbours ? d % 2 : d >= middle;
    int64_t a = neighbours ? 2 * pair : pair, b = neighbours ? 2 * pair + 1 : pair + middle;
    int64_t at = token * r->in[STEP_COS].node->shape.dims[1] + pair;
    double c = r->in[STEP_COS].words[at], s = r->in[STEP_SIN].words[at];
    *out_terms =
        second ? fabs(head[b] * c) + fabs(head[a] * s) : fabs(head[a] * c) + fabs(head[b] * s);
    return second ? head[b] * c + head[a] * s : head[a] * c - head[b] * s;
}

static void rotate_queries(step_reference *r)
{
    int64_t heads = r->a.batch * r->a.queries * r->a.heads, width = r->a.width;
    double terms;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t d = 0; d < width; d++)
            r->q[h * width + d] =
                (float)rotated(r, new_head(r, STEP_Q, h / r->a.heads, h % r->a.heads),
                               h / r->a.heads, d, &terms);
}

/* The value as a cache of this dtype stores it. */
static double held(rlxvk_dtype dtype, double x)
{
    float word = (float)x;
    dtype_round(dtype, &word, 1);
    return dtype == RLXVK_F16 ? word : x;
}

/* Writes new row `token` into the caches. The call's results begin at word `out`. */
static void write_row(step_reference *r, const host_call *call, int64_t out, int64_t token,
                      int64_t row)
{
    int64_t entry = r->entry[token / r->a.queries], width = r->a.width;
    rlxvk_dtype dtype = (rlxvk_dtype)r->in[STEP_KEYS].node->dtype;
    int64_t cache = r->a.entries * r->a.kv_heads * r->a.keys * width;
    for (int64_t h = 0; h < r->a.kv_heads; h++)
        for (int64_t d = 0; d < width; d++) {
            int64_t to = ((entry * r->a.kv_heads + h) * r->a.keys + row) * width + d;
            double terms, k = rotated(r, new_head(r, STEP_K, token, h), token, d, &terms);
            double error = terms > 0 ? 1e-7 + ldexp(8 + 4 * sqrt(2.0), -24) * terms : 0;
            call->out[out + to] = held(dtype, k);
            call->out[out + cache + to] = held(dtype, new_head(r, STEP_V, token, h)[d]);
            if (dtype == RLXVK_F16) {
                error = held(dtype, k + error) - held(dtype, k - error);
                r->key_errors[to] = (float)error;
            }
            if (call->bound && terms > 0)
                call->bound[out + to] = error;
        }
}

static void find_place(step_reference *r, int64_t b)
{
    const float *at = r->in[STEP_POSITION].words + (r->a.placed ? 2 * b : b);
    double first = floor((double)at[0] + 0.5), entry = (double)b;
    if (r->a.placed)
        entry = floor((double)at[1] + 0.5);
    bool idle = !(first >= 0 && entry >= 0 && entry < (double)r->a.entries);
    r->first[b] = idle ? ATTENTION_IDLE : (int64_t)fmin(first, 0x1p40);
    r->entry[b] = idle ? 0 : (int64_t)entry;
}

static void write_rows(step_reference *r, const host_call *call, int64_t out)
{
    const attention_geometry *a = &r->a;
    for (int64_t b = 0; b < a->batch; b++) {
        find_place(r, b);
        for (int64_t i = 0; i < a->queries; i++)
            if (r->first[b] >= 0 && r->first[b] + i < a->keys)
                write_row(r, call, out, b * a->queries + i, r->first[b] + i);
    }
}

static rlxvk_status run(step_reference *r, const host_call *call)
{
    const attention_geometry *a = &r->a;
    const rlxvk_attention_options options = {.mask = r->o->window ? RLXVK_MASK_SLIDING
                                                                  : RLXVK_MASK_CAUSAL,
                                             .window = r->o->window,
                                             .score_scale = r->o->score_scale,
                                             .softcap = r->o->softcap};
    int64_t results = a->batch * a->queries * a->heads * a->width;
    int64_t cache = a->entries * a->kv_heads * a->keys * a->width;
    for (int64_t e = 0; e < cache; e++) {
        call->out[results + e] = r->in[STEP_KEYS].words[e];
        call->out[results + cache + e] = r->in[STEP_VALUES].words[e];
    }
    rotate_queries(r);
    write_rows(r, call, results);
    for (int64_t e = 0; e < cache; e++) {
        r->keys[e] = (float)call->out[results + e];
        r->values[e] = (float)call->out[results + cache + e];
    }
    attention_reference reference = {.o = &options,
                                     .a = *a,
                                     .q = r->q,
                                     .k = r->keys,
                                     .v = r->values,
                                     .first = r->first,
                                     .entry = r->entry,
                                     .k_errors = r->key_errors};
    return attention_run_reference(call, &reference);
}

rlxvk_status attention_step_host(const host_call *call)
{
    const node *n = call->node;
    const attention_step_attributes *attributes = n->attributes;
    step_reference r = {.attributes = attributes, .o = &attributes->options, .in = call->inputs};
    uint64_t cache = shape_numel(&call->inputs[STEP_KEYS].node->shape);
    rlxvk_status status;
    r.a = attention_step_geometry(n, &call->inputs[STEP_KEYS].node->shape,
                                  &call->inputs[STEP_POSITION].node->shape);
    r.q = memory_zeroed(shape_numel(&n->shape) + 1, sizeof *r.q);
    r.keys = memory_zeroed(cache + 1, sizeof *r.keys);
    r.values = memory_zeroed(cache + 1, sizeof *r.values);
    r.key_errors = memory_zeroed(cache + 1, sizeof *r.key_errors);
    r.first = memory_zeroed((size_t)r.a.batch + 1, sizeof *r.first);
    r.entry = memory_zeroed((size_t)r.a.batch + 1, sizeof *r.entry);
    bool made = r.q && r.keys && r.values && r.key_errors && r.first && r.entry;
    TRY(made ? RLXVK_OK : status_fail_memory("attention step"));
    TRY(run(&r, call));
error:
    memory_free(r.q);
    memory_free(r.keys);
    memory_free(r.values);
    memory_free(r.key_errors);
    memory_free(r.first);
    memory_free(r.entry);
    return status;
}
