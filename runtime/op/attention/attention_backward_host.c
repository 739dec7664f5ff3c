/*
 * The reference of attention_backward. It computes each row of weights in double precision, and
 * adds its gradients key by key.
 *
 * A score plus its bias is rounded to f32, because f32 kernels do so. This matters if biases are
 * large.
 *
 * The bound follows f32 through the same steps. Here u = 2^-24, and the error of a sum of n
 * products is u (8 + 4 sqrt n) times the sum of their sizes:
 *   score         the error of its product
 *   log-sum-exp   the bound that attention promises
 *   weight        the sum of both, and the error of exp2
 *   delta         the errors of the weights in its mean
 *   dz            all of these
 *
 * If a score, dp or delta of a row is not moderate, any result is accepted.
 */
#include "op/attention/attention.h"

#include <math.h>

#define UNIT     0x1p-24
#define MODERATE 1e30

typedef struct pair {
    bool allowed;
    double score, score_error, slope, slope_error;
    double size;        /* of the score without its bias */
    double dp, dp_size; /* dy . v, and the sum of |terms| */
    double p, p_error;  /* p_error is relative */
} pair;

typedef struct reference {
    const rlxvk_attention_options *o;
    attention_geometry a;
    const float *q, *k, *v, *dy, *mask, *dlse;
    pair *pairs; /* of one row */
    double *out, *bound;
    int64_t dk, dv, dbias; /* where they begin; dbias is -1 if it is not wanted */
} reference;

typedef struct row {
    int64_t b, h, i;
    int64_t q, k; /* words before the row; before row 0 of its kv head */
    double maximum, log_total, delta, delta_error;
    bool moderate;
} row;

static double sum_error(double terms)
{
    return UNIT * (8 + 4 * sqrt(terms));
}

static int64_t mask_place(const reference *r, const row *at, int64_t j)
{
    const attention_geometry *a = &r->a;
    return at->b * a->mask_batch + at->h * a->mask_head + at->i * a->mask_query + j * a->mask_key;
}

static bool is_allowed(const reference *r, const row *at, int64_t j)
{
    const rlxvk_attention_options *o = r->o;
    int64_t last = at->i + MAX(0, r->a.keys - r->a.queries);
    if (o->mask == RLXVK_MASK_CUSTOM)
        return !(r->mask[mask_place(r, at, j)] < 0.5f);
    if (o->mask == RLXVK_MASK_BIAS)
        return r->mask[mask_place(r, at, j)] != -INFINITY;
    if (o->mask == RLXVK_MASK_CAUSAL)
        return j <= last;
    if (o->mask == RLXVK_MASK_SLIDING)
        return j <= last && j > last - o->window;
    return true;
}

/* ---- One row ---- */

/* The sum is rounded to f32. If both ends of the score's interval round to the same sum, it has no
 * error. */
static void add_bias(pair *x, double bias)
{
    double low = (float)(x->score - x->score_error + bias);
    double high = (float)(x->score + x->score_error + bias);
    x->score = (float)(x->score + bias);
    x->score_error = fmax(fabs(high - x->score), fabs(x->score - low));
}

static void find_score(const reference *r, const row *at, int64_t j, pair *x)
{
    const float *q = r->q + at->q, *k = r->k + at->k + j * r->a.kv.seq;
    const float *dy = r->dy + at->q, *v = r->v + at->k + j * r->a.kv.seq;
    double sum = 0, size = 0, scale = r->o->score_scale, cap = r->o->softcap;
    *x = (pair){.allowed = true, .slope = 1};
    for (int64_t d = 0; d < r->a.width; d++) {
        sum += (double)q[d] * k[d];
        size += fabs((double)q[d] * k[d]);
        x->dp += (double)dy[d] * v[d];
        x->dp_size += fabs((double)dy[d] * v[d]);
    }
    x->score = scale * sum;
    x->size = isnan(x->score) ? INFINITY : fabs(scale) * size;
    x->score_error = sum_error((double)r->a.width) * fabs(scale) * size;
    if (cap > 0) { /* f32's tanh is accurate to 1e-6 */
        double t = tanh(x->score / cap);
        x->slope = 1 - t * t;
        x->slope_error = 2 * fabs(t) * (x->score_error / cap + 1e-6) + 4 * UNIT;
        x->score = cap * t;
        x->score_error += 1e-6 * cap;
    }
    x->score_error += 4 * UNIT * fabs(x->score);
    if (r->o->mask == RLXVK_MASK_BIAS)
        add_bias(x, r->mask[mask_place(r, at, j)]);
}

/* The scores of a row and their log-sum-exp; -INFINITY if no key is left. */
static void find_scores(reference *r, row *at)
{
    double maximum = -INFINITY, total = 0;
    for (int64_t j = 0; j < r->a.keys; j++) {
        r->pairs[j] = (pair){0};
        if (!is_allowed(r, at, j))
            continue;
        find_score(r, at, j, &r->pairs[j]);
        maximum = fmax(maximum, r->pairs[j].score);
        at->moderate =
            at->moderate && r->pairs[j].size < MODERATE && r->pairs[j].dp_size < MODERATE;
    }
    for (int64_t j = 0; j < r->a.keys; j++)
        if (r->pairs[j].allowed && r->pairs[j].score != -INFINITY)
            total += exp(r->pairs[j].score - maximum);
    at->maximum = total == 0 ? -INFINITY : isnan(total) ? NAN : maximum;
    at->log_total = log(total);
}

static void find_weights(reference *r, row *at)
{
    double most = 0, mean_size = 0;
    for (int64_t j = 0; j < r->a.keys; j++)
        most = fmax(most, r->pairs[j].score_error);
    double lse = at->maximum + at->log_total; /* with a bias, stored as two parts if it is large */
    bool apart = r->o->mask == RLXVK_MASK_BIAS && fabs(lse) >= 1024;
    double lse_size = apart ? fabs(at->log_total) : fabs(lse);
    double lse_error = 1e-6 + 4e-6 * lse_size + most;
    at->delta = r->dlse ? -(double)r->dlse[(at->b * r->a.heads + at->h) * r->a.queries + at->i] : 0;
    at->delta_error = 4 * UNIT * fabs(at->delta);
    for (int64_t j = 0; j < r->a.keys; j++) {
        pair *x = &r->pairs[j];
        if (!x->allowed || x->score == -INFINITY)
            continue;
        double d = x->score - at->maximum - at->log_total;
        x->p = exp(d);
        double error = x->score_error + lse_error + 4 * UNIT * lse_size + (6 + 6 * fabs(d)) * UNIT;
        x->p_error = d + error < -100 ? 0 : expm1(error); /* a negligible weight */
        at->moderate = at->moderate && x->p_error < MODERATE;
        at->delta += x->p * x->dp;
        at->delta_error += 2 * x->p_error * x->p * x->dp_size;
        mean_size += x->p * x->dp_size;
    }
    at->delta_error += (sum_error((double)r->a.width) + sum_error((double)r->a.keys)) * mean_size;
    at->moderate = at->moderate && fabs(at->delta) < MODERATE;
}

/* If a row is not moderate, the elements that it adds to accept any value (host_leave_open). */
static void add(const reference *r, const row *at, int64_t place, double value, double error)
{
    if (r->bound && !at->moderate) {
        r->bound[place] = INFINITY;
        return;
    }
    r->out[place] += value;
    if (r->bound)
        r->bound[place] += error;
}

static void hand_out(const reference *r, const row *at, int64_t j)
{
    const pair *x = &r->pairs[j];
    const attention_geometry *a = &r->a;
    double scale = r->o->score_scale, difference = x->dp - at->delta;
    double dp_error = sum_error((double)a->width) * x->dp_size;
    double ds = x->p * difference, ds_error;
    ds_error = x->p * ((1 + x->p_error) * (dp_error + at->delta_error +
                                           4 * UNIT * (fabs(x->dp) + fabs(at->delta))) +
                       x->p_error * fabs(difference));
    double dz = ds * x->slope, dz_error = ds_error * (x->slope + x->slope_error) +
                                          fabs(ds) * x->slope_error + 4 * UNIT * fabs(dz);
    double keys = sum_error((double)a->keys);
    double rows = sum_error((double)(a->queries * (a->heads / a->kv_heads)));
    for (int64_t d = 0; d < a->width; d++) {
        int64_t key = at->k + j * a->kv.seq + d;
        double k = r->k[key], q = r->q[at->q + d], dy = r->dy[at->q + d];
        add(r, at, at->q + d, scale * dz * k, fabs(scale * k) * (dz_error + keys * fabs(dz)));
        add(r, at, r->dk + key, scale * dz * q, fabs(scale * q) * (dz_error + rows * fabs(dz)));
        add(r, at, r->dv + key, x->p * dy, fabs(x->p * dy) * (x->p_error + rows));
    }
    if (r->dbias >= 0)
        add(r, at, r->dbias + mask_place(r, at, j), ds,
            ds_error + sum_error((double)(a->batch * a->heads * a->queries * a->keys)) * fabs(ds));
}

static void run_row(reference *r, int64_t b, int64_t h, int64_t i)
{
    const attention_geometry *a = &r->a;
    row at = {.b = b, .h = h, .i = i, .moderate = true};
    at.q = b * a->q.batch + h * a->q.head + i * a->q.seq;
    at.k = b * a->kv.batch + h * a->kv_heads / a->heads * a->kv.head;
    find_scores(r, &at);
    if (at.maximum == -INFINITY && (at.moderate || !r->bound)) /* no key is left */
        return;
    find_weights(r, &at);
    for (int64_t j = 0; j < a->keys; j++)
        if (r->pairs[j].allowed)
            hand_out(r, &at, j);
}

rlxvk_status attention_backward_host(const host_call *call)
{
    const host_tensor *in = call->inputs;
    const attention_backward_attributes *attributes = call->node->attributes;
    uint32_t mask = attention_backward_mask(attributes);
    bool masked = call->node->input_count > mask;
    int64_t q = (int64_t)shape_numel(&in[0].node->shape);
    int64_t k = (int64_t)shape_numel(&in[1].node->shape);
    reference r = {.o = &attributes->options,
                   .q = in[0].words,
                   .k = in[1].words,
                   .v = in[2].words,
                   .dy = in[3].words,
                   .mask = masked ? in[mask].words : NULL,
                   .dlse = attributes->with_lse ? in[3].words + q : NULL,
                   .out = call->out,
                   .bound = call->bound,
                   .dk = q,
                   .dv = q + k,
                   .dbias = attributes->with_bias ? q + 2 * k : -1};
    uint64_t count = shape_numel(&call->node->shape);
    r.a = attention_geometry_of(r.o, &in[0].node->shape, &in[1].node->shape,
                                masked ? &in[mask].node->shape : NULL);
    r.pairs = memory_zeroed((size_t)MAX(r.a.keys, 1), sizeof *r.pairs);
    if (!r.pairs)
        return status_fail_memory("attention weights");
    for (uint64_t i = 0; i < count && r.bound; i++)
        r.bound[i] = 1e-7;
    for (int64_t b = 0; b < r.a.batch && q && k; b++)
        for (int64_t h = 0; h < r.a.heads; h++)
            for (int64_t i = 0; i < r.a.queries; i++)
                run_row(&r, b, h, i);
    memory_free(r.pairs);
    return RLXVK_OK;
}
