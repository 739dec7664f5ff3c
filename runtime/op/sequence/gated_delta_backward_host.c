/*
 * Reference of gated_delta_backward. It goes head by head and column by column: first forward
 * through the states before all steps, then back. Beside each column of M, or G, it keeps the
 * length of the error vector that rounding to f32 may have caused. A step multiplies this vector by
 * A (I - beta k k^T) with the decay A. This matrix is symmetric, and its norm is A max(1, |1 - beta
 * |k|^2|). The step then adds roundings of its own. A sum of K terms in any order has 8 + 4 sqrt K
 * roundings of their magnitudes. If something may overflow in f32, it has no bound.
 */
#include "op/sequence/gated_delta.h"
#include "op/sequence/sequence_backward.h"

#include <math.h>

#define UNIT     0x1p-24 /* half an ulp of 1 */
#define TINY     1e-30   /* products that count as 0 */
#define MODERATE 1e36

typedef struct reference {
    const host_tensor *in;
    const float *dy, *final, *before; /* final, before: NULL if missing */
    uint64_t steps, heads, size;
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
    const float *q, *k;
    double decay, decay_error, beta, key_length, spread; /* spread: the norm, without the decay */
    double found_error, d_error;                         /* of e and of d */
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

/* Begins a step with column j of the state before it: computes the decayed column, e and d. */
static step begin_step(reference *r, uint64_t token, uint64_t j, const double *m, double m_error)
{
    uint64_t n = r->size;
    double g = r->in[3].words[token], squares = 0, length = 0, found = 0, found_size = 0;
    step s = {.token = token,
              .j = j,
              .q = r->in[0].words + token * n,
              .k = r->in[1].words + token * n,
              .decay = exp(g),
              .beta = r->in[4].words[token]};
    for (uint64_t i = 0; i < n; i++) {
        double decayed = s.decay * m[i];
        r->decayed[i] = decayed;
        length += decayed * decayed;
        squares += (double)s.k[i] * s.k[i];
        found += decayed * s.k[i];
        found_size += fabs(decayed * s.k[i]);
    }
    s.key_length = sqrt(squares);
    s.spread = fmax(1, fabs(1 - s.beta * squares));
    s.decay_error = UNIT * (8 + 2 * fabs(g));
    s.length = sqrt(length);
    s.length_error = s.decay * m_error + s.decay_error * s.length + TINY;
    double v = r->in[2].words[token * n + j];
    s.e = v - found;
    s.d = s.beta * s.e;
    s.found_error = sum_factor((double)n) * found_size + UNIT * (fabs(v) + fabs(found)) + TINY;
    s.d_error = fabs(s.beta) * (s.key_length * s.length_error + s.found_error) + UNIT * fabs(s.d);
    check_moderate(r, s.length + found_size + fabs(s.d));
    return s;
}

static void walk_forward(reference *r, uint64_t token, uint64_t j)
{
    uint64_t n = r->size;
    for (uint64_t t = 0; t < r->steps; t++, token += r->heads) {
        double *next = r->states + (t + 1) * n;
        step s = begin_step(r, token, j, r->states + t * n, r->errors[t]);
        for (uint64_t i = 0; i < n; i++)
            next[i] = r->decayed[i] + s.k[i] * s.d;
        r->errors[t + 1] = s.spread * s.length_error +
                           s.key_length * (fabs(s.beta) * s.found_error + 4 * UNIT * fabs(s.d)) +
                           2 * UNIT * s.length + TINY;
    }
}

/* Adds the column's parts of dk, dbeta and dg, and dv. G becomes the gradient before the step. */
static void hand_on(reference *r, const step *s, double dd, double own_error, double dd_size)
{
    uint64_t n = r->size;
    double g1_error = r->gradient_error, dd_error = s->key_length * g1_error + own_error;
    double dv = s->beta * dd, dv_error = fabs(s->beta) * dd_error + UNIT * fabs(dv);
    double length = 0, length2 = 0, products = 0, product_size = 0;
    double e_error = s->key_length * s->length_error + s->found_error;
    add_term(r, r->first[2] + s->token * n + s->j, dv, dv_error, 0);
    add_term(r, r->first[4] + s->token, dd * s->e, dd_error * fabs(s->e) + fabs(dd) * e_error,
             dd_size * fabs(s->e));
    for (uint64_t i = 0; i < n; i++) {
        double g1 = r->gradient[i], old = r->decayed[i], g2 = g1 - s->k[i] * dv;
        add_term(r, r->first[1] + s->token * n + i, g1 * s->d - old * dv,
                 fabs(s->d) * g1_error + (fabs(g1) + g1_error) * s->d_error +
                     fabs(dv) * s->length_error + (fabs(old) + s->length_error) * dv_error,
                 fabs(g1 * s->d) + fabs(old * dv));
        length += g1 * g1;
        length2 += g2 * g2;
        products += g2 * old;
        product_size += fabs(g2 * old);
        r->gradient[i] = s->decay * g2;
    }
    length = sqrt(length), length2 = sqrt(length2);
    double error = s->spread * g1_error +
                   s->key_length * (fabs(s->beta) * own_error + 4 * UNIT * fabs(dv)) +
                   2 * UNIT * length + TINY;
    add_term(r, r->first[3] + s->token, products,
             error * (s->length + s->length_error) + length2 * s->length_error, product_size);
    r->gradient_error = s->decay * error + s->decay_error * s->decay * length2 + TINY;
    check_moderate(r, length + length2 + fabs(dv));
}

static void step_back(reference *r, const step *s, double state_error)
{
    uint64_t n = r->size;
    double dy = r->dy[s->token * n + s->j] / sqrt((double)n), dd = 0, dd_size = 0, lengths = 0;
    for (uint64_t i = 0; i < n; i++) {
        double m = r->decayed[i] + s->k[i] * s->d, before = r->gradient[i];
        add_term(r, r->first[0] + s->token * n + i, m * dy, fabs(dy) * state_error, fabs(m * dy));
        r->gradient[i] += s->q[i] * dy;
        lengths += before * before + 9 * (s->q[i] * dy) * (s->q[i] * dy);
        dd += r->gradient[i] * s->k[i];
        dd_size += fabs(r->gradient[i] * s->k[i]);
    }
    r->gradient_error += 2 * UNIT * sqrt(lengths) + TINY;
    check_moderate(r, sqrt(lengths) + dd_size);
    hand_on(r, s, dd, sum_factor((double)n) * dd_size + TINY, dd_size);
}

static void walk_column(reference *r, uint64_t pair, uint64_t j)
{
    uint64_t n = r->size;
    uint64_t token = pair / r->heads * r->steps * r->heads + pair % r->heads;
    r->gradient_error = 0;
    r->errors[0] = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = (pair * n + i) * n + j;
        r->states[i] = r->before ? r->before[at] : 0;
        r->gradient[i] = r->final ? r->final[at] : 0;
    }
    walk_forward(r, token, j);
    for (uint64_t t = r->steps; t-- > 0;) {
        step s = begin_step(r, token + t * r->heads, j, r->states + t * n, r->errors[t]);
        step_back(r, &s, r->errors[t + 1]);
    }
    for (uint64_t i = 0; i < n && r->before; i++)
        add_term(r, r->first[5] + (pair * n + i) * n + j, r->gradient[i], r->gradient_error, 0);
}

static void fill_bounds(const reference *r, const host_call *call, uint64_t count)
{
    double n = (double)r->size;
    const double terms[] = {n, 2 * n, 1, n * n, n * n, 1};
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
    const backward_attributes *a = call->node->attributes;
    const int64_t *dims = in[0].node->shape.dims;
    reference r = {.in = in,
                   .dy = in[sequence_dy_operand(a)].words,
                   .final = a->final ? in[sequence_final_operand(a)].words : NULL,
                   .before = a->carry ? in[sequence_state_operand()].words : NULL,
                   .steps = (uint64_t)dims[1],
                   .heads = (uint64_t)dims[2],
                   .size = (uint64_t)dims[3],
                   .out = call->out};
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS; i++)
        r.first[i + 1] = r.first[i] + shape_numel(&in[i].node->shape);
    return r;
}

rlxvk_status gated_delta_backward_host(const host_call *call)
{
    reference r = make_reference(call);
    uint64_t count = shape_numel(&call->node->shape), n = r.size;
    uint64_t heads = (uint64_t)call->inputs[0].node->shape.dims[0] * r.heads;
    rlxvk_status status = RLXVK_OK;
    r.error = memory_zeroed(count + 1, sizeof *r.error);
    r.size_of = memory_zeroed(count + 1, sizeof *r.size_of);
    r.states = memory_zeroed((r.steps + 1) * n, sizeof *r.states);
    r.errors = memory_zeroed(r.steps + 1, sizeof *r.errors);
    r.gradient = memory_zeroed(n, sizeof *r.gradient);
    r.decayed = memory_zeroed(n, sizeof *r.decayed);
    if (!r.error || !r.size_of || !r.states || !r.errors || !r.gradient || !r.decayed)
        status = status_fail_memory("states on the host");
    for (uint64_t pair = 0; status == RLXVK_OK && pair < heads; pair++) {
        r.moderate = true;
        for (uint64_t j = 0; j < n; j++)
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
