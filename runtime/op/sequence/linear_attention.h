/* Linear attention: what the forward and the backward op share, and the reference of the backward
 * op. */
#ifndef RLXVK_LINEAR_ATTENTION_H
#define RLXVK_LINEAR_ATTENTION_H

#include "op/sequence/sequence.h"
#include "op/sequence/sequence_backward.h"

#include <rlxvk_ops_domain.h>

#include <math.h>

#define LINEAR_ATTENTION_MOST_BACKWARD 512 /* key width of the backward op */

/* What both ops have beside what they carry. */
typedef struct linear_attention_rule {
    bool plain;  /* d = beta v: what the state has for the key is not taken off */
    float scale; /* of y; 0: 1 / sqrt(n) */
} linear_attention_rule;

typedef struct linear_attention_attributes {
    carry_attributes carried; /* must be first */
    linear_attention_rule rule;
} linear_attention_attributes;

typedef struct linear_attention_backward_attributes {
    backward_attributes carried; /* must be first */
    linear_attention_rule rule;
} linear_attention_backward_attributes;

typedef struct linear_attention_sizes {
    uint64_t batch, steps, heads;
    uint64_t queries; /* of each head of k and v */
    uint64_t key_width, value_width;
    bool by_key; /* the decay has one number for each row of the state */
} linear_attention_sizes;

static inline linear_attention_sizes linear_attention_sizes_of(const rlxvk_shape *q,
                                                               const rlxvk_shape *k,
                                                               const rlxvk_shape *v,
                                                               const rlxvk_shape *decay)
{
    uint64_t heads = (uint64_t)k->dims[2];
    return (linear_attention_sizes){.batch = (uint64_t)q->dims[0],
                                    .steps = (uint64_t)q->dims[1],
                                    .heads = heads,
                                    .queries = heads ? (uint64_t)q->dims[2] / heads : 1,
                                    .key_width = (uint64_t)q->dims[3],
                                    .value_width = (uint64_t)v->dims[3],
                                    .by_key = decay->rank == 4};
}

static inline linear_attention_sizes linear_attention_node_sizes(const rlxvk_graph *g,
                                                                 const node *n)
{
    return linear_attention_sizes_of(input_shape(g, n, 0), input_shape(g, n, 1),
                                     input_shape(g, n, 2), input_shape(g, n, 3));
}

/* The same of the operands of a host function. */
static inline linear_attention_sizes linear_attention_host_sizes(const host_call *call)
{
    const host_tensor *in = call->inputs;
    return linear_attention_sizes_of(&in[0].node->shape, &in[1].node->shape, &in[2].node->shape,
                                     &in[3].node->shape);
}

static inline double linear_attention_scale(const linear_attention_rule *rule, uint64_t key_width)
{
    return rule->scale != 0 ? (double)rule->scale : 1 / sqrt((double)key_width);
}

/* Checks the first five operands, which are the same for both ops. Returns the shapes of the result
 * and of the state. */
rlxvk_status linear_attention_check(const rlxvk_graph *g, const node *n,
                                    const linear_attention_rule *rule, uint32_t most_width,
                                    rlxvk_shape *out_result, rlxvk_shape *out_state);
/* The last two of the five operands, made if they are missing: a decay of 0, a beta of 1. */
rlxvk_tensor linear_attention_gate(rlxvk_graph *g, rlxvk_tensor given, rlxvk_tensor k, float value);
/* Reads options. False: the graph has failed. */
bool linear_attention_options(rlxvk_graph *g, const char *row,
                              const rlxvk_linear_attention_options *given, rlxvk_tensor beta,
                              rlxvk_linear_attention_options *out, linear_attention_rule *rule);
void linear_attention_describe_rule(const linear_attention_rule *rule, text *out);
rlxvk_status linear_attention_backward_host(const host_call *call);

#endif
