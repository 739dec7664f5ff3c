/* Gradients of the norms, by the ops of norm_backward.c. Fused norms are differentiated as the ops
 * that they fuse. */
#include "args/rows.h"
#include "op/gradient.h"
#include "op/rows/norm.h"

#include <rlxvk_train.h>

static rlxvk_tensor input_gradient(const gradient_call *c, const norm_attributes *a,
                                   rlxvk_tensor gamma)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0);
    switch (node_code(&c->n)) {
    case NORM_RMS:
        return rlxvk_rms_norm_backward_input(g, x, gamma, c->dy, a->axis, a->eps);
    case NORM_LAYER_2D:
        return rlxvk_layer_norm2d_backward_input(g, x, gamma, c->dy, a->eps);
    case NORM_GROUP:
        return rlxvk_group_norm_backward_input(g, x, gamma, c->dy, a->num_groups, a->eps);
    default:
        return rlxvk_layer_norm_backward_input(g, x, gamma, c->dy, a->axis, a->eps);
    }
}

static rlxvk_tensor gamma_gradient(const gradient_call *c, const norm_attributes *a)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0);
    switch (node_code(&c->n)) {
    case NORM_RMS:
        return rlxvk_rms_norm_backward_gamma(g, x, c->dy, a->axis, a->eps);
    case NORM_LAYER_2D:
        return rlxvk_layer_norm2d_backward_gamma(g, x, c->dy, a->eps);
    case NORM_GROUP:
        return rlxvk_group_norm_backward_gamma(g, x, c->dy, a->num_groups, a->eps);
    default:
        return rlxvk_layer_norm_backward_gamma(g, x, c->dy, a->axis, a->eps);
    }
}

static rlxvk_tensor beta_gradient(const gradient_call *c, const norm_attributes *a)
{
    rlxvk_shape shape = gradient_shape(c, 0);
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = 0;
    for (uint32_t i = 0; i < shape.rank; i++)
        if ((int32_t)i != a->axis)
            axes[count++] = (int32_t)i;
    return count ? rlxvk_reduce_sum(c->graph, c->dy, axes, count, false) : c->dy;
}

static rlxvk_tensor both_gradients(const gradient_call *c, const norm_attributes *a)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0);
    switch (node_code(&c->n)) {
    case NORM_RMS:
        return rlxvk_rms_norm_backward_parameters(g, x, c->dy, a->axis, a->eps);
    case NORM_GROUP:
        return rlxvk_group_norm_backward_parameters(g, x, c->dy, a->num_groups, a->eps);
    default:
        return rlxvk_layer_norm_backward_parameters(g, x, c->dy, a->axis, a->eps);
    }
}

/* Gives the gradients of gamma and beta from one read of x and dy. Returns false unless both are
 * wanted and this norm has such an op. */
static bool give_parameters(gradient_call *c, const norm_attributes *a, const norm_roles *r)
{
    rlxvk_graph *g = c->graph;
    if (r->gamma == NODE_NONE || !gradient_wanted(c, r->gamma) || r->beta == NODE_NONE ||
        !gradient_wanted(c, r->beta) || node_code(&c->n) == NORM_LAYER_2D)
        return false;
    rlxvk_tensor both = both_gradients(c, a);
    uint32_t operands[] = {r->gamma, r->beta};
    for (uint32_t i = 0; i < 2; i++)
        gradient_give(c, operands[i],
                      rlxvk_reshape(g, rlxvk_narrow(g, both, 0, i, 1),
                                    gradient_shape(c, operands[i])));
    return true;
}

rlxvk_status norm_vjp(gradient_call *c)
{
    const norm_attributes *a = c->n.attributes;
    norm_roles r = norm_roles_of(&c->n, a);
    rlxvk_tensor gamma = r.gamma == NODE_NONE ? RLXVK_NONE : gradient_operand(c, r.gamma);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, input_gradient(c, a, gamma));
    if (give_parameters(c, a, &r))
        return RLXVK_OK;
    if (r.gamma != NODE_NONE && gradient_wanted(c, r.gamma))
        gradient_give(c, r.gamma,
                      rlxvk_reshape(c->graph, gamma_gradient(c, a), gradient_shape(c, r.gamma)));
    if (r.beta != NODE_NONE && gradient_wanted(c, r.beta))
        gradient_give(c, r.beta,
                      rlxvk_reshape(c->graph, beta_gradient(c, a), gradient_shape(c, r.beta)));
    return RLXVK_OK;
}

rlxvk_tensor norm_expand(rlxvk_graph *g, const node *n)
{
    const norm_attributes *a = n->attributes;
    norm_roles r = norm_roles_of(n, a);
    if (r.residual == NODE_NONE)
        return RLXVK_NONE;
    rlxvk_shape vector = RLXVK_SHAPE(n->shape.dims[a->axis]);
    rlxvk_tensor sum =
        rlxvk_add(g, tensor_of(g, n->inputs[0]), tensor_of(g, n->inputs[r.residual]));
    if (r.bias != NODE_NONE)
        sum = rlxvk_add(g, sum, rlxvk_reshape(g, tensor_of(g, n->inputs[r.bias]), vector));
    rlxvk_tensor gamma = r.gamma == NODE_NONE ? RLXVK_NONE : tensor_of(g, n->inputs[r.gamma]);
    rlxvk_tensor beta = r.beta == NODE_NONE ? RLXVK_NONE : tensor_of(g, n->inputs[r.beta]);
    return r.rms ? rlxvk_rms_norm(g, sum, gamma, beta, a->axis, a->eps)
                 : rlxvk_layer_norm(g, sum, gamma, beta, a->axis, a->eps);
}
