/*
 * The attention reference. It computes all scores of a row in double precision, then one maximum
 * and one sum. Tolerance: 1e-6 + 5e-5 times the largest |v| of the keys that the row sees. The
 * tolerance of lse follows from the rounding of the scores.
 */
#include "op/attention/attention.h"

#include <float.h>
#include <math.h>

typedef struct row {
    int64_t b, h, i;
    double score_bound; /* of the error of any score */
    double magnitude;   /* the largest sum of |scale q k| */
    double key_bound;   /* of any score's error because of errors in keys */
    bool overflows;     /* a score of finite operands overflows f32 */
} row;

static bool in_band(const attention_reference *r, const row *at, int64_t j)
{
    const rlxvk_attention_options *o = r->o;
    int64_t last = at->i + (r->first ? r->first[at->b] : MAX(0, r->a.keys - r->a.queries));
    if (o->mask == RLXVK_MASK_CAUSAL)
        return j <= last;
    if (o->mask == RLXVK_MASK_SLIDING)
        return j <= last && j > last - o->window;
    return true;
}

static float mask_value(const attention_reference *r, const row *at, int64_t j)
{
    const attention_geometry *a = &r->a;
    return r->mask[at->b * a->mask_batch + at->h * a->mask_head + at->i * a->mask_query +
                   j * a->mask_key];
}

static bool allowed(const attention_reference *r, const row *at, int64_t j)
{
    if (r->o->mask == RLXVK_MASK_CUSTOM)
        return !(mask_value(r, at, j) < 0.5f);
    if (r->o->mask == RLXVK_MASK_BIAS)
        return mask_value(r, at, j) != -INFINITY;
    return in_band(r, at, j);
}

static const float *key_row(const attention_reference *r, const float *tensor, const row *at,
                            int64_t j)
{
    int64_t kv_head = at->h * r->a.kv_heads / r->a.heads;
    int64_t entry = r->entry ? r->entry[at->b] : at->b;
    return tensor + entry * r->a.kv.batch + kv_head * r->a.kv.head + j * r->a.kv.seq;
}

static double score(const attention_reference *r, row *at, int64_t j)
{
    const float *q = r->q + at->b * r->a.q.batch + at->h * r->a.q.head + at->i * r->a.q.seq;
    const float *k = key_row(r, r->k, at, j);
    double sum = 0, magnitude = 0, finite = 0, scale = r->o->score_scale, cap = r->o->softcap;
    for (int64_t d = 0; d < r->a.width; d++) {
        double term = (double)q[d] * k[d];
        sum += term;
        magnitude += fabs(term);
        finite += isfinite(term) ? fabs(term) : 0;
    }
    if (r->k_errors) {
        const float *errors = key_row(r, r->k_errors, at, j);
        double error = 0;
        for (int64_t d = 0; d < r->a.width; d++)
            error += fabs((double)q[d] * errors[d]);
        at->key_bound = fmax(at->key_bound, fabs(scale) * error);
    }
    double z = scale * sum;
    if (finite * fmax(1, fabs(scale)) > FLT_MAX)
        at->overflows = true;
    at->magnitude = fmax(at->magnitude, fabs(scale) * magnitude);
    if (isfinite(z))
        at->score_bound = fmax(at->score_bound, ldexp(8 + 4 * sqrt((double)r->a.width), -24) *
                                                    fabs(scale) * magnitude);
    if (cap > 0)
        z = cap * tanh(z / cap);
    /* Kernels compute the sum in f32. If the bias is large, its rounding is much larger than the
     * error of the score. */
    return r->o->mask == RLXVK_MASK_BIAS ? (float)(z + mask_value(r, at, j)) : z;
}

/* Fills the scores. Returns the largest; NaN is ignored. */
static double fill_scores(attention_reference *r, row *at)
{
    double maximum = -INFINITY;
    for (int64_t j = 0; j < r->a.keys; j++) {
        r->scores[j] = allowed(r, at, j) ? score(r, at, j) : -INFINITY;
        maximum = fmax(maximum, r->scores[j]);
    }
    return maximum;
}

/* Computes y = sum p v / sum p into y[width]. Returns the sum of p. */
static double weigh_values(const attention_reference *r, const row *at, double maximum, double *y,
                           double *out_largest)
{
    double total = 0;
    *out_largest = 0;
    for (int64_t j = 0; j < r->a.keys; j++) {
        if (r->scores[j] == -INFINITY)
            continue;
        const float *v = key_row(r, r->v, at, j);
        double p = exp(r->scores[j] - maximum);
        total += p;
        for (int64_t d = 0; d < r->a.width; d++) {
            y[d] += p * v[d];
            if (isfinite(v[d]))
                *out_largest = fmax(*out_largest, fabs(v[d]));
        }
    }
    for (int64_t d = 0; d < r->a.width; d++)
        y[d] = total == 0 ? 0 : y[d] / total;
    return total;
}

bool attention_all_below(float most, const float *words, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(words[i]) < most))
            return false;
    return true;
}

/* The error of the result if scores have this error. */
static double moved_by(double score, double largest)
{
    return 2 * expm1(2 * score) * largest;
}

/* Adds the error of precision F16 or BF16: scores have errors up to 2^-10 or 2^-7 of their
 * magnitude, and weights and values are rounded. If an operand does not fit, any result is
 * accepted. */
static void add_precision(const attention_reference *r, const host_call *call, const row *at,
                          double largest, int64_t place, int64_t lse)
{
    double size = attention_rounding(call->precision), score = size * at->magnitude;
    double extra = moved_by(score, largest) + 2 * size * largest;
    for (int64_t d = 0; d < r->a.width; d++)
        call->bound[place + d] += r->moderate ? extra : INFINITY;
    if (r->with_lse)
        call->bound[lse] += r->moderate ? score : INFINITY;
}

static void run_row(attention_reference *r, const host_call *call, row *at)
{
    const attention_geometry *a = &r->a;
    int64_t place = at->b * a->q.batch + at->h * a->q.head + at->i * a->q.seq;
    int64_t results = a->batch * a->heads * a->queries * a->width;
    int64_t lse = results + (at->b * a->heads + at->h) * a->queries + at->i;
    double largest, maximum = fill_scores(r, at);
    double total = weigh_values(r, at, maximum, call->out + place, &largest);
    for (int64_t d = 0; d < a->width && call->bound; d++)
        call->bound[place + d] = 1e-6 + 5e-5 * largest + moved_by(at->key_bound, largest);
    if (r->with_lse)
        call->out[lse] = total == 0 ? -INFINITY : maximum + log(total);
    if (r->with_lse && call->bound)
        call->bound[lse] = 1e-6 + 4e-6 * fabs(call->out[lse]) + at->score_bound;
    if (call->bound && attention_rounding(call->precision) > 0)
        add_precision(r, call, at, largest, place, lse);
    for (int64_t d = 0; d < a->width && at->overflows; d++)
        host_leave_open(call, (uint64_t)(place + d)); /* infinity minus infinity */
    if (at->overflows && r->with_lse)
        host_leave_open(call, (uint64_t)lse);
}

rlxvk_status attention_run_reference(const host_call *call, attention_reference *r)
{
    const attention_geometry *a = &r->a;
    int64_t keys = a->entries * a->kv_heads * a->keys * a->width;
    float most = attention_largest(call->precision);
    r->moderate = attention_all_below(most, r->q, a->batch * a->heads * a->queries * a->width) &&
                  attention_all_below(most, r->k, keys) && attention_all_below(most, r->v, keys);
    r->scores = memory_zeroed((size_t)MAX(a->keys, 1), sizeof *r->scores);
    if (!r->scores)
        return status_fail_memory("attention scores");
    for (row at = {0}; at.b < a->batch; at.b++)
        for (at.h = 0; at.h < a->heads; at.h++)
            for (at.i = 0; at.i < a->queries; at.i++) {
                at.score_bound = at.magnitude = at.key_bound = 0;
                at.overflows = false;
                run_row(r, call, &at);
            }
    memory_free(r->scores);
    return RLXVK_OK;
}

rlxvk_status attention_host(const host_call *call)
{
    const host_tensor *in = call->inputs;
    const attention_attributes *attributes = call->node->attributes;
    bool masked = call->node->input_count == 4;
    attention_reference r = {.o = &attributes->options,
                             .q = in[0].words,
                             .k = in[1].words,
                             .v = in[2].words,
                             .mask = masked ? in[3].words : NULL,
                             .with_lse = attributes->with_lse};
    r.a = attention_geometry_of(r.o, &in[0].node->shape, &in[1].node->shape,
                                masked ? &in[3].node->shape : NULL);
    return attention_run_reference(call, &r);
}
