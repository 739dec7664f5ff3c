/*
 * Reference of linear_attention_backward. It goes head by head and column by column: first forward
 * through the states before all steps, then back. Beside each column of M, or G, it keeps the
 * length of the error vector that rounding to f32 may have caused. A step multiplies this vector by
 * (I - beta k k^T) A with the decays A. Its norm is at most max(A) max(1, |1 - beta |k|^2|), and
 * max(A) without the delta rule. The step then adds roundings of its own. A sum of K terms in any
 * order has 8 + 4 sqrt K roundings of their magnitudes. If something may overflow in f32, it has no
 * bound.
 */
#include "op/sequence/linear_attention.h"

#define UNIT     0x1p-24 /* half an ulp of 1 */
#define TINY     1e-30   /* products that count as 0 */
#define MODERATE 1e36

typedef struct reference {
    const host_tensor *in;
    const float *dy, *final, *before; /* final, before: NULL if missing */
    linear_attention_sizes sizes;
    bool plain; /* without the delta rule */
    double scale;
    double *out, *error, *size_of;         /* size_of: magnitudes of terms */
    uint64_t first[SEQUENCE_OPERANDS + 1]; /* of the results */
    double *states, *errors;               /* of a column, before each step and at the end */
    double *gradient, *decayed;            /* of a column */
    double gradient_error;
    bool moderate; /* no overflow in the head so far */
} reference;

/* One column of one head at one step. */
typedef struct step {
    uint64_t token, j;
    const float *k;
    double decay, decay_error, beta, key_length; /* decay: the largest */
    double spread;                               /* the norm, without the decay */
    double e_error, d_error, found_error;        /* found_error: the part of e's own sum */
    double e, d;
    double length, length_error; /* of the decayed column */
} step;

static double sum_factor(double terms)
{
    return UNIT * (8 + 4 * sqrt(terms));
}

static void add_term(reference *r, uint64_t place, double value, double error, double size)
{
    r->out[place] += value;
    r->size_of[place] += size;
    r->error[place] += r->moderate && size < MODERATE ? error + 4 * UNIT * size : INFINITY;
}

static void check_moderate(reference *r, double length)
{
    r->moderate = r->moderate && length < MODERATE;
}

/* The logarithms of a token's decays: one for each row of the state, or one for all. */
static const float *logarithms(const reference *r, uint64_t token)
{
    return r->in[3].words + (r->sizes.by_key ? token * r->sizes.key_width : token);
}

static double largest_logarithm(const reference *r, uint64_t token)
{
    const float *g = logarithms(r, token);
    double largest = fabs(g[0]);
    for (uint64_t i = 1; i < r->sizes.key_width && r->sizes.by_key; i++)
        largest = fmax(largest, fabs(g[i]));
    return largest;
}

/* Begins a step with column j of the state before it: computes the decayed column, e and d. */
static step begin_step(reference *r, uint64_t token, uint64_t j, const double *m, double m_error)
{
    uint64_t n = r->sizes.key_width;
    double squares = 0, length = 0, found = 0, found_size = 0;
    step s = {.token = token,
              .j = j,
              .k = r->in[1].words + token * n,
              .beta = r->in[4].words[token]};
    const float *g = logarithms(r, token);
    double factor = exp(g[0]);
    for (uint64_t i = 0; i < n; i++) {
        if (r->sizes.by_key)
            factor = exp(g[i]);
        double decayed = factor * m[i];
        r->decayed[i] = decayed;
        s.decay = fmax(s.decay, factor);
        length += decayed * decayed;
        squares += (double)s.k[i] * s.k[i];
        found += decayed * s.k[i];
        found_size += fabs(decayed * s.k[i]);
    }
    s.key_length = sqrt(squares);
    s.spread = r->plain ? 1 : fmax(1, fabs(1 - s.beta * squares));
    s.decay_error = UNIT * (8 + 2 * largest_logarithm(r, token));
    s.length = sqrt(length);
    s.length_error = s.decay * m_error + s.decay_error * s.length + TINY;
    double v = r->in[2].words[token * r->sizes.value_width + j];
    if (r->plain)
        found = found_size = 0;
    s.e = v - found;
    s.d = s.beta * s.e;
    s.found_error = sum_factor((double)n) * found_size + UNIT * (fabs(v) + fabs(found)) + TINY;
    s.e_error = (r->plain ? 0 : s.key_length * s.length_error) + s.found_error;
    s.d_error = fabs(s.beta) * s.e_error + UNIT * fabs(s.d);
    check_moderate(r, s.length + found_size + fabs(s.d));
    return s;
}

static void walk_forward(reference *r, uint64_t token, uint64_t j)
{
    uint64_t n = r->sizes.key_width;
    for (uint64_t t = 0; t < r->sizes.steps; t++, token += r->sizes.heads) {
        double *next = r->states + (t + 1) * n;
        step s = begin_step(r, token, j, r->states + t * n, r->errors[t]);
        for (uint64_t i = 0; i < n; i++)
            next[i] = r->decayed[i] + s.k[i] * s.d;
        r->errors[t + 1] = s.spread * s.length_error +
                           s.key_length * (fabs(s.beta) * s.found_error + 4 * UNIT * fabs(s.d)) +
                           2 * UNIT * s.length + TINY;
    }
}

/* Adds the column's part of dg, and lets G decay. `error` and `length` are those of G. */
static void hand_on_decays(reference *r, const step *s, double error, double length)
{
    uint64_t n = r->sizes.key_width;
    const float *logs = logarithms(r, s->token);
    double products = 0, product_size = 0, decay = exp(logs[0]);
    for (uint64_t i = 0; i < n; i++) {
        double g = r->gradient[i], old = r->decayed[i];
        if (r->sizes.by_key)
            add_term(r, r->first[3] + s->token * n + i, g * old,
                     error * (fabs(old) + s->length_error) + fabs(g) * s->length_error,
                     fabs(g * old));
        products += g * old;
        product_size += fabs(g * old);
        if (r->sizes.by_key)
            decay = exp(logs[i]);
        r->gradient[i] = decay * g;
    }
    if (!r->sizes.by_key)
        add_term(r, r->first[3] + s->token, products,
                 error * (s->length + s->length_error) + length * s->length_error, product_size);
}

/* Adds the column's parts of dk, dbeta and dg, and dv. G becomes the gradient before the step. */
static void hand_on(reference *r, const step *s, double dd, double own_error, double dd_size)
{
    uint64_t n = r->sizes.key_width;
    double taken = r->plain ? 0 : 1; /* dk and G lose a part with dv */
    double g1_error = r->gradient_error, dd_error = s->key_length * g1_error + own_error;
    double dv = s->beta * dd, dv_error = fabs(s->beta) * dd_error + UNIT * fabs(dv);
    double length = 0, length2 = 0;
    add_term(r, r->first[2] + s->token * r->sizes.value_width + s->j, dv, dv_error, 0);
    add_term(r, r->first[4] + s->token, dd * s->e, dd_error * fabs(s->e) + fabs(dd) * s->e_error,
             dd_size * fabs(s->e));
    for (uint64_t i = 0; i < n; i++) {
        double g1 = r->gradient[i], old = taken * r->decayed[i], g2 = g1 - taken * s->k[i] * dv;
        add_term(r, r->first[1] + s->token * n + i, g1 * s->d - old * dv,
                 fabs(s->d) * g1_error + (fabs(g1) + g1_error) * s->d_error +
                     fabs(taken * dv) * s->length_error +
                     (fabs(old) + taken * s->length_error) * dv_error,
                 fabs(g1 * s->d) + fabs(old * dv));
        length += g1 * g1;
        length2 += g2 * g2;
        r->gradient[i] = g2;
    }
    length = sqrt(length), length2 = sqrt(length2);
    double error = s->spread * g1_error +
                   s->key_length * taken * (fabs(s->beta) * own_error + 4 * UNIT * fabs(dv)) +
                   2 * UNIT * length + TINY;
    hand_on_decays(r, s, error, length2);
    r->gradient_error = s->decay * error + s->decay_error * s->decay * length2 + TINY;
    check_moderate(r, length + length2 + fabs(dv));
}

static void step_back(reference *r, const step *s, double state_error)
{
    uint64_t n = r->sizes.key_width, queries = r->sizes.queries, first = s->token * queries;
    double dd = 0, dd_size = 0, lengths = 0;
    for (uint64_t i = 0; i < n; i++) {
        double m = r->decayed[i] + s->k[i] * s->d, before = r->gradient[i], given = 0;
        for (uint64_t which = first; which < first + queries; which++) {
            double dy = r->scale * r->dy[which * r->sizes.value_width + s->j];
            double part = dy * r->in[0].words[which * n + i];
            add_term(r, r->first[0] + which * n + i, m * dy, fabs(dy) * state_error, fabs(m * dy));
            r->gradient[i] += part;
            given += fabs(part);
        }
        before *= (double)queries, given *= (double)queries + 2;
        lengths += before * before + given * given;
        dd += r->gradient[i] * s->k[i];
        dd_size += fabs(r->gradient[i] * s->k[i]);
    }
    r->gradient_error += 2 * UNIT * sqrt(lengths) + TINY;
    check_moderate(r, sqrt(lengths) + dd_size);
    hand_on(r, s, dd, sum_factor((double)n) * dd_size + TINY, dd_size);
}

static void walk_column(reference *r, uint64_t pair, uint64_t j)
{
    uint64_t n = r->sizes.key_width, m = r->sizes.value_width, heads = r->sizes.heads;
    uint64_t token = pair / heads * r->sizes.steps * heads + pair % heads;
    r->gradient_error = 0;
    r->errors[0] = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = (pair * n + i) * m + j;
        r->states[i] = r->before ? r->before[at] : 0;
        r->gradient[i] = r->final ? r->final[at] : 0;
    }
    walk_forward(r, token, j);
    for (uint64_t t = r->sizes.steps; t-- > 0;) {
        step s = begin_step(r, token + t * heads, j, r->states + t * n, r->errors[t]);
        step_back(r, &s, r->errors[t + 1]);
    }
    for (uint64_t i = 0; i < n && r->before; i++)
        add_term(r, r->first[5] + (pair * n + i) * m + j, r->gradient[i], r->gradient_error, 0);
}

static void fill_bounds(const reference *r, const host_call *call, uint64_t count)
{
    double n = (double)r->sizes.key_width, m = (double)r->sizes.value_width;
    const double terms[] = {m, 2 * m, 1, r->sizes.by_key ? m : n * m, n * m, 1};
    for (uint64_t i = 0, result = 0; i < count; i++) {
        while (result < SEQUENCE_OPERANDS && i >= r->first[result + 1])
            result++;
        double error = r->error[i] + sum_factor(terms[result]) * r->size_of[i] + TINY;
        call->bound[i] = error;
        if (!isfinite(error))
            host_leave_open(call, i);
    }
}

static reference make_reference(const host_call *call)
{
    const host_tensor *in = call->inputs;
    const linear_attention_backward_attributes *a = call->node->attributes;
    const backward_attributes *c = &a->carried;
    reference r = {.in = in,
                   .dy = in[sequence_dy_operand(c)].words,
                   .final = c->final ? in[sequence_final_operand(c)].words : NULL,
                   .before = c->carry ? in[sequence_state_operand()].words : NULL,
                   .sizes = linear_attention_host_sizes(call),
                   .plain = a->rule.plain,
                   .out = call->out};
    r.scale = linear_attention_scale(&a->rule, r.sizes.key_width);
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS; i++)
        r.first[i + 1] = r.first[i] + shape_numel(&in[i].node->shape);
    return r;
}

rlxvk_status linear_attention_backward_host(const host_call *call)
{
    reference r = make_reference(call);
    uint64_t count = shape_numel(&call->node->shape), n = r.sizes.key_width;
    uint64_t heads = r.sizes.batch * r.sizes.heads;
    rlxvk_status status = RLXVK_OK;
    r.error = memory_zeroed(count + 1, sizeof *r.error);
    r.size_of = memory_zeroed(count + 1, sizeof *r.size_of);
    r.states = memory_zeroed((r.sizes.steps + 1) * n, sizeof *r.states);
    r.errors = memory_zeroed(r.sizes.steps + 1, sizeof *r.errors);
    r.gradient = memory_zeroed(n, sizeof *r.gradient);
    r.decayed = memory_zeroed(n, sizeof *r.decayed);
    if (!r.error || !r.size_of || !r.states || !r.errors || !r.gradient || !r.decayed)
        status = status_fail_memory("states on the host");
    for (uint64_t pair = 0; status == RLXVK_OK && pair < heads; pair++) {
        r.moderate = true;
        for (uint64_t j = 0; j < r.sizes.value_width; j++)
            walk_column(&r, pair, j);
    }
    if (status == RLXVK_OK && call->bound)
        fill_bounds(&r, call, count);
    memory_free(r.error);
    memory_free(r.size_of);
    memory_free(r.states);
    memory_free(r.errors);
    memory_free(r.gradient);
    memory_free(r.decayed);
    return status;
}
