/*
 * Reference of state_scan_backward. It goes channel by channel: forward through the states of all
 * steps, then back. Beside every number it keeps the sum of the magnitudes of its terms. It also
 * keeps the error that rounding to f32 may have caused, in any order of the segments. A sum of K
 * terms in any order has 8 + 4 sqrt K roundings of their magnitudes. If something may overflow in
 * f32, it has no bound.
 */
#include "args/sequence.h"
#include "op/sequence/sequence_backward.h"
#include "op/sequence/state_scan.h"
#include "op/sequence/state_scan_backward.h"

#include <math.h>

#define UNIT     0x1p-24 /* half an ulp of 1 */
#define TINY     1e-30   /* products that count as 0 */
#define MODERATE 1e36

typedef struct number {
    double value, size, error; /* size: sum of the magnitudes of its terms */
} number;

typedef struct reference {
    const host_tensor *in;
    const float *dy, *final, *before; /* final, before: NULL if missing */
    bool by_head, moderate;           /* moderate: no overflow in the channel so far */
    scan_geometry s;
    double *out, *error, *size;
    uint64_t first[SEQUENCE_OPERANDS + 1]; /* of the results */
    number *states;                        /* of a channel, before each step and at the end */
    number *gradient;
} reference;

/* One channel of one batch row at one step. */
typedef struct step {
    uint64_t row, place, delta, vector; /* of the channel; in x; in delta; in b and c */
    double duration, x, dy;
} step;

static step step_of(const reference *r, uint64_t row, uint64_t t)
{
    uint64_t channels = r->s.heads * r->s.width, channel = row % channels;
    uint64_t token = row / channels * r->s.steps + t, head = channel / r->s.width;
    step at = {.row = row,
               .place = token * channels + channel,
               .vector = (token * r->s.heads + head) * r->s.size};
    at.delta = r->by_head ? token * r->s.heads + head : at.place;
    at.duration = r->in[1].words[at.delta];
    at.x = r->in[0].words[at.place];
    at.dy = r->dy[at.place];
    return at;
}

static uint64_t rate_place(const reference *r, uint64_t row, uint64_t k)
{
    uint64_t channel = row % (r->s.heads * r->s.width);
    return r->by_head ? channel / r->s.width : channel * r->s.size + k;
}

/* A number times exp(duration a). */
static number decayed(const reference *r, const step *at, uint64_t k, number from)
{
    double exponent = at->duration * r->in[2].words[rate_place(r, at->row, k)];
    double kept = exp(exponent);
    return (number){.value = kept * from.value,
                    .size = kept * from.size,
                    .error = kept * from.error +
                             kept * from.size * UNIT * (6 + 2 * fabs(exponent)) + TINY};
}

static number added(number a, double term, double roundings)
{
    double size = a.size + fabs(term);
    return (number){a.value + term, size, a.error + roundings * UNIT * size + TINY};
}

static void check_moderate(reference *r, number a)
{
    r->moderate = r->moderate && a.size < MODERATE;
}

/* Adds a term to the sum at `place`: a number times exact factors. */
static void add_term(reference *r, uint64_t place, number a, double factor)
{
    double size = fabs(factor) * a.size;
    r->out[place] += factor * a.value;
    r->size[place] += size;
    r->error[place] +=
        r->moderate && size < MODERATE ? fabs(factor) * a.error + 4 * UNIT * size : INFINITY;
}

static number product(number a, number b)
{
    return (number){a.value * b.value, a.size * b.size,
                    a.error * b.size + (a.size + a.error) * b.error + UNIT * a.size * b.size};
}

static void walk_forward(reference *r, uint64_t row)
{
    for (uint64_t t = 0; t < r->s.steps; t++) {
        step at = step_of(r, row, t);
        for (uint64_t k = 0; k < r->s.size; k++) {
            number *now = &r->states[t * r->s.size + k];
            double term = at.duration * at.x * r->in[3].words[at.vector + k];
            now[r->s.size] = added(decayed(r, &at, k, *now), term, 3);
            check_moderate(r, now[r->s.size]);
        }
    }
}

static void step_back(reference *r, const step *at, uint64_t k, number before, number after)
{
    double b = r->in[3].words[at->vector + k], c = r->in[4].words[at->vector + k];
    double rate = r->in[2].words[rate_place(r, at->row, k)];
    number *g = &r->gradient[k], kept = decayed(r, at, k, before);
    *g = added(*g, at->dy * c, 2);
    check_moderate(r, *g);
    number both = product(*g, kept);
    add_term(r, r->first[4] + at->vector + k, after, at->dy);
    add_term(r, r->first[0] + at->place, *g, at->duration * b);
    add_term(r, r->first[3] + at->vector + k, *g, at->duration * at->x);
    add_term(r, r->first[1] + at->delta, both, rate);
    add_term(r, r->first[1] + at->delta, *g, b * at->x);
    add_term(r, r->first[2] + rate_place(r, at->row, k), both, at->duration);
    *g = decayed(r, at, k, *g);
}

static void walk_channel(reference *r, uint64_t row)
{
    uint64_t size = r->s.size;
    r->moderate = true;
    for (uint64_t k = 0; k < size; k++) {
        double before = r->before ? r->before[row * size + k] : 0;
        double final = r->final ? r->final[row * size + k] : 0;
        r->states[k] = (number){before, fabs(before), 0};
        r->gradient[k] = (number){final, fabs(final), 0};
    }
    walk_forward(r, row);
    for (uint64_t t = r->s.steps; t-- > 0;) {
        step at = step_of(r, row, t);
        for (uint64_t k = 0; k < size; k++)
            step_back(r, &at, k, r->states[t * size + k], r->states[(t + 1) * size + k]);
    }
    for (uint64_t k = 0; k < size && r->before; k++)
        add_term(r, r->first[5] + row * size + k, r->gradient[k], 1);
}

/* How many terms a sum of result i has. */
static double terms_of(const reference *r, uint32_t i)
{
    double numbers = (double)r->s.size, width = (double)r->s.width;
    double tokens = (double)(r->s.batch * r->s.steps), all = r->by_head ? numbers * width : 1;
    const double terms[] = {numbers, 2 * (r->by_head ? all : numbers), tokens * all, width, width,
                            1};
    return terms[i];
}

static void fill_bounds(const reference *r, const host_call *call, uint64_t count)
{
    for (uint64_t i = 0, result = 0; i < count; i++) {
        while (result < SEQUENCE_OPERANDS && i >= r->first[result + 1])
            result++;
        double terms = terms_of(r, (uint32_t)result);
        double error = r->error[i] + UNIT * (8 + 4 * sqrt(terms)) * r->size[i] + TINY * terms;
        call->bound[i] = error;
        if (!isfinite(error))
            host_leave_open(call, i);
    }
}

static reference make_reference(const host_call *call)
{
    const host_tensor *in = call->inputs;
    const backward_attributes *a = call->node->attributes;
    reference r = {.in = in,
                   .dy = in[sequence_dy_operand(a)].words,
                   .final = a->final ? in[sequence_final_operand(a)].words : NULL,
                   .before = a->carry ? in[sequence_state_operand()].words : NULL,
                   .by_head = node_code(call->node) == STATE_SCAN_MAMBA2,
                   .s = state_scan_geometry(&in[0].node->shape, &in[3].node->shape),
                   .out = call->out};
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS; i++)
        r.first[i + 1] = r.first[i] + shape_numel(&in[i].node->shape);
    return r;
}

rlxvk_status state_scan_backward_host(const host_call *call)
{
    reference r = make_reference(call);
    uint64_t count = shape_numel(&call->node->shape), size = r.s.size;
    rlxvk_status status = RLXVK_OK;
    r.error = memory_zeroed(count + 1, sizeof *r.error);
    r.size = memory_zeroed(count + 1, sizeof *r.size);
    r.states = memory_zeroed((r.s.steps + 1) * size, sizeof *r.states);
    r.gradient = memory_zeroed(size, sizeof *r.gradient);
    if (!r.error || !r.size || !r.states || !r.gradient)
        status = status_fail_memory("states on the host");
    for (uint64_t row = 0; status == RLXVK_OK && row < r.s.batch * r.s.heads * r.s.width; row++)
        walk_channel(&r, row);
    if (status == RLXVK_OK && call->bound)
        fill_bounds(&r, call, count);
    memory_free(r.error);
    memory_free(r.size);
    memory_free(r.states);
    memory_free(r.gradient);
    return status;
}
