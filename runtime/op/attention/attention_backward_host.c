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
 *
 * In precision F16 (attention_backward_matrix.glsl), operands of products have an error of 2^-11 of
 * themselves: q, k, v, dy, p and dz. So scores and dp have 2^-10 of their sizes, and products with
 * p and dz, too. In BF16 that is 2^-7. p also has an absolute error of 2^-25. dy and dz have one of
 * 2^-25 of the peak, the largest size of dy and delta of all queries that share a key. If q, k or v
 * do not fit the precision, or dy is not finite, any result is accepted. So it is if ds is beyond
 * half of the largest f16 times the peak.
 */
#include "op/attention/attention.h"

#include <math.h>

#define UNIT     0x1p-24
#define MODERATE 1e30
#define F16_STEP 0x1p-25 /* absolute error of an operand below 1 in f16 */

typedef struct pair {
    bool allowed;
    double score, score_error, slope, slope_error;
    double size;        /* of the score without its bias */
    double dp, dp_size; /* dy . v, and the sum of |terms| */
    double v_size;      /* the sum of |v| */
    double p, p_error;  /* p_error is relative */
} pair;

typedef struct reference {
    const rlxvk_attention_options *o;
    attention_geometry a;
    const float *q, *k, *v, *dy, *mask, *dlse;
    pair *pairs;     /* of one row */
    double *peaks;   /* in F16 and BF16, of each batch and kv head; else NULL */
    double rounding; /* the relative error of a product; 0 in other precisions */
    double most_ds;  /* in F16, beside the peak; more may become infinite */
    double *out, *bound;
    int64_t dk, dv, dbias; /* where they begin; dbias is -1 if it is not wanted */
} reference;

typedef struct row {
    int64_t b, h, i;
    int64_t q, k; /* words before the row; before row 0 of its kv head */
    double maximum, log_total, delta, delta_error;
    double peak; /* of the row's kv head; 0 if there are no peaks */
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
        x->v_size += fabs(v[d]);
    }
    x->score = scale * sum;
    x->size = isnan(x->score) ? INFINITY : fabs(scale) * size;
    x->score_error = (sum_error((double)r->a.width) + r->rounding) * fabs(scale) * size;
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
    double most = 0, mean_size = 0, dp_sizes = 0;
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
        dp_sizes += x->dp_size;
    }
    if (r->peaks) /* y was computed with p and v rounded */
        at->delta_error += r->rounding * mean_size + F16_STEP * dp_sizes;
    at->delta_error += (sum_error((double)r->a.width) + sum_error((double)r->a.keys)) * mean_size;
    at->moderate = at->moderate && fabs(at->delta) < MODERATE;
    for (int64_t j = 0; j < r->a.keys && at->peak > 0; j++) {
        double ds = r->pairs[j].p * (r->pairs[j].dp - at->delta);
        at->moderate = at->moderate && fabs(ds) / at->peak < r->most_ds;
    }
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
    double size = r->rounding, step = r->peaks ? F16_STEP : 0;
    double dp_error =
        (sum_error((double)a->width) + size) * x->dp_size + step * at->peak * x->v_size;
    double ds = x->p * difference, ds_error;
    ds_error = x->p * ((1 + x->p_error) * (dp_error + at->delta_error +
                                           4 * UNIT * (fabs(x->dp) + fabs(at->delta))) +
                       x->p_error * fabs(difference));
    double dz = ds * x->slope, dz_error = ds_error * (x->slope + x->slope_error) +
                                          fabs(ds) * x->slope_error + 4 * UNIT * fabs(dz) +
                                          step * at->peak;
    double keys = sum_error((double)a->keys);
    double rows = sum_error((double)(a->queries * (a->heads / a->kv_heads)));
    for (int64_t d = 0; d < a->width; d++) {
        int64_t key = at->k + j * a->kv.seq + d;
        double k = r->k[key], q = r->q[at->q + d], dy = r->dy[at->q + d];
        add(r, at, at->q + d, scale * dz * k,
            fabs(scale * k) * (dz_error + (keys + size) * fabs(dz)));
        add(r, at, r->dk + key, scale * dz * q,
            fabs(scale * q) * (dz_error + (rows + size) * fabs(dz)));
        add(r, at, r->dv + key, x->p * dy,
            fabs(x->p * dy) * (x->p_error + rows + size) + step * (fabs(dy) + x->p * at->peak));
    }
    if (r->dbias >= 0)
        add(r, at, r->dbias + mask_place(r, at, j), ds,
            ds_error + sum_error((double)(a->batch * a->heads * a->queries * a->keys)) * fabs(ds));
}

static row row_at(const reference *r, int64_t b, int64_t h, int64_t i)
{
    const attention_geometry *a = &r->a;
    int64_t kv_head = h * a->kv_heads / a->heads;
    return (row){.b = b,
                 .h = h,
                 .i = i,
                 .q = b * a->q.batch + h * a->q.head + i * a->q.seq,
                 .k = b * a->kv.batch + kv_head * a->kv.head,
                 .peak = r->peaks ? r->peaks[b * a->kv_heads + kv_head] : 0,
                 .moderate = true};
}

static void find_peak(reference *r, int64_t b, int64_t h, int64_t i)
{
    const attention_geometry *a = &r->a;
    double *peak = &r->peaks[b * a->kv_heads + h * a->kv_heads / a->heads];
    row at = row_at(r, b, h, i);
    find_scores(r, &at);
    if (at.maximum != -INFINITY)
        find_weights(r, &at);
    *peak = fmax(*peak, fabs(at.delta));
    for (int64_t d = 0; d < a->width; d++)
        *peak = fmax(*peak, fabs(r->dy[at.q + d]));
}

static void run_row(reference *r, int64_t b, int64_t h, int64_t i)
{
    const attention_geometry *a = &r->a;
    row at = row_at(r, b, h, i);
    find_scores(r, &at);
    if (at.maximum == -INFINITY && (at.moderate || !r->bound)) /* no key is left */
        return;
    find_weights(r, &at);
    for (int64_t j = 0; j < a->keys; j++)
        if (r->pairs[j].allowed)
            hand_out(r, &at, j);
}

static void each_row(reference *r, void (*visit)(reference *r, int64_t b, int64_t h, int64_t i))
{
    for (int64_t b = 0; b < r->a.batch; b++)
        for (int64_t h = 0; h < r->a.heads; h++)
            for (int64_t i = 0; i < r->a.queries; i++)
                visit(r, b, h, i);
}

/* Finds the peaks, if the bound is for F16 or BF16. */
static rlxvk_status find_peaks(const host_call *call, reference *r, int64_t q, int64_t k)
{
    float most = attention_largest(call->precision);
    bool fit = attention_all_below(most, r->q, q) && attention_all_below(most, r->k, k) &&
               attention_all_below(most, r->v, k) && attention_all_below(INFINITY, r->dy, q);
    uint64_t count = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < count; i++)
        call->bound[i] = fit ? 1e-7 : INFINITY;
    r->peaks = memory_zeroed((size_t)MAX(r->a.batch * r->a.kv_heads, 1), sizeof *r->peaks);
    if (!r->peaks)
        return status_fail_memory("attention peaks");
    each_row(r, find_peak);
    return RLXVK_OK;
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
                   .dbias = attributes->with_bias ? q + 2 * k : -1,
                   .rounding = call->bound ? attention_rounding(call->precision) : 0,
                   .most_ds = attention_largest(call->precision) / 2};
    uint64_t count = shape_numel(&call->node->shape);
    r.a = attention_geometry_of(r.o, &in[0].node->shape, &in[1].node->shape,
                                masked ? &in[mask].node->shape : NULL);
    rlxvk_status status = RLXVK_OK;
    r.pairs = memory_zeroed((size_t)MAX(r.a.keys, 1), sizeof *r.pairs);
    TRY(r.pairs ? RLXVK_OK : status_fail_memory("attention weights"));
    for (uint64_t i = 0; i < count && r.bound; i++)
        r.bound[i] = 1e-7;
    if (r.rounding > 0 && q && k)
        TRY(find_peaks(call, &r, q, k));
    if (q && k)
        each_row(&r, run_row);
error:
    memory_free(r.pairs);
    memory_free(r.peaks);
    return status;
}
