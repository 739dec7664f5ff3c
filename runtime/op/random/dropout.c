/*
 * dropout: y = x / (1 - rate) if a word of Philox4x32-10 says keep, else 0. Element i uses word i
 * mod 4 of block i div 4 of its seed and step, and nothing else. So all nodes with the same seed
 * and step drop the same elements, and the gradient of dropout is dropout. Operand 1 is the step:
 * one number, or the random state, which counts runs. If the rate is 0, the node is a view.
 */
#include "args/random.h"
#include "constants/random.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/random/random.h"

#include <rlxvk_train.h>

#include <math.h>

#define DROPOUT_DOMAIN 0x44524F50u  /* so that rng_uniform with this seed differs */
#define LARGEST_STEP   4294967040.0 /* an f32 below 2^32 */

typedef struct dropout_attributes {
    uint64_t seed;
    float rate;
    bool counted; /* the step is that of the random state */
} dropout_attributes;

rlxvk_tensor rlxvk_dropout(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_dropout_options *options,
                           rlxvk_tensor step)
{
    rlxvk_dropout_options o;
    if (!op_take(g, "dropout", SIZED(rlxvk_dropout_options), options, &o))
        return RLXVK_NONE;
    dropout_attributes a = {o.seed, o.rate, !step.id};
    if (a.counted && x.id)
        step = random_state(g);
    return op_build(g, OP_dropout, (rlxvk_tensor[]){x, step}, 2, &a);
}

static rlxvk_status dropout_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const dropout_attributes *a = attributes;
    char step[SHAPE_TEXT];
    if (!(a->rate >= 0 && a->rate < 1))
        return op_fail(n, RLXVK_E_ATTR, "rate is %g; takes 0 up to, not with, 1", (double)a->rate);
    if (!a->counted && shape_numel(input_shape(g, n, 1)) != 1)
        return op_fail(n, RLXVK_E_SHAPE, "step is %s; takes one number",
                       shape_text(input_shape(g, n, 1), step));
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static bool dropout_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g;
    *out_offset = 0;
    return ((const dropout_attributes *)n->attributes)->rate == 0;
}

/* The 24 random bits keep an element if U >= rate. This is the rate in units of 2^-24, rounded up;
 * f64 holds the product exactly. */
static uint32_t threshold_of(const dropout_attributes *a)
{
    return (uint32_t)ceil(ldexp(a->rate, 24));
}

static rlxvk_status dropout_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const dropout_attributes *a = n->attributes;
    operand o[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    struct dropout_args args = {.numel = (u32)shape_numel(&n->shape),
                                .x_offset = o[0].offset,
                                .step_offset = o[1].offset,
                                .y_offset = o[2].offset,
                                .key_low = (u32)a->seed,
                                .key_high = (u32)(a->seed >> 32) ^ DROPOUT_DOMAIN,
                                .threshold = threshold_of(a),
                                .scale = (float)(1 / (1 - (double)a->rate))};
    dispatch d = {.kernel = KERNEL_DROPOUT};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {DROPOUT_COUNTED, a->counted},
                  {DROPOUT_VECTORS, (args.x_offset | args.y_offset) % 4 == 0});
    lower_groups(l, &d, groups_for(divide_up(args.numel, 8), l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, o, ARRAY_COUNT(o));
}

/* ---- Host ---- */

static uint64_t host_step(const host_call *c)
{
    const dropout_attributes *a = c->node->attributes;
    double v;
    if (a->counted)
        return random_source_of(&c->inputs[1]).step;
    v = fmin(fmax(c->inputs[1].words[0], 0), LARGEST_STEP); /* NaN counts as 0 */
    return (uint64_t)floor(v + 0.5);
}

static rlxvk_status dropout_host(const host_call *c)
{
    const dropout_attributes *a = c->node->attributes;
    uint64_t numel = shape_numel(&c->node->shape), step = host_step(c);
    const uint32_t key[] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32) ^ DROPOUT_DOMAIN};
    for (uint64_t i = 0; i < numel; i++) {
        const uint32_t counter[] = {(uint32_t)(i / 4), 0, (uint32_t)step, (uint32_t)(step >> 32)};
        uint32_t words[4];
        random_philox(counter, key, words);
        bool keep = ldexp(words[i % 4] >> 8, -24) >= a->rate;
        c->out[i] = keep ? c->inputs[0].words[i] / (1 - (double)a->rate) : 0;
    }
    return RLXVK_OK;
}

static rlxvk_status dropout_vjp(gradient_call *c)
{
    const dropout_attributes *a = c->n.attributes;
    const rlxvk_dropout_options options = {a->rate, a->seed};
    gradient_give(c, 0,
                  rlxvk_dropout(c->graph, c->dy, &options,
                                a->counted ? RLXVK_NONE : gradient_operand(c, 1)));
    return RLXVK_OK;
}

static void dropout_describe(const node *n, text *out)
{
    const dropout_attributes *a = n->attributes;
    text_append(out, " rate=%g seed=%llu", (double)a->rate, (unsigned long long)a->seed);
}

const op_family dropout_family = {
    .name = "dropout",
    .attribute_size = sizeof(dropout_attributes),
    .infer = dropout_infer,
    .views = {.view = dropout_view},
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = dropout_lower, .host = dropout_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = dropout_vjp},
    .describe = dropout_describe,
};
