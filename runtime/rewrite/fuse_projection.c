/*
 * Projections: a product of one row, with the RMS norm before it and the SwiGLU and the residual
 * behind it. A norm is fused into the products that read it only if it is fused into all, because
 * otherwise it must be computed anyway. The family decides which products can be projections
 * (projection_fits); lowering asks it, too.
 */
#include "op/packed/projection.h"
#include "op/packed/quant_format.h"
#include "rewrite/fuse.h"

/* ---- Projections for which the device has no kernel ---- */

uint32_t fuse_split_projection(pass *p, uint32_t id)
{
    const rewrite_options *options = p->context;
    node n = p->nodes[id];
    uint32_t inputs[5];
    if (n.op != OP_projection || !options->profile ||
        (options->on_host && options->on_host[OP_projection]) ||
        projection_is_native(&n, &fuse_operand(p, &n, 0)->shape, options->profile,
                             options->names_matvec))
        return NODE_NONE;
    for (uint32_t i = 0; i < n.input_count; i++)
        inputs[i] = p->map[n.inputs[i]];
    n.inputs = inputs;
    rlxvk_tensor y = projection_expand(p->graph, &n);
    return y.id ? y.id - 1 : NODE_NONE;
}

/* ---- Making projections ---- */

/* Whether the node is a product that can become a projection. */
static bool is_product(const pass *p, const node *n)
{
    const rewrite_options *options = p->context;
    const node *x = n->input_count ? fuse_operand(p, n, 0) : NULL;
    projection_shape s = {.packed = n->op == OP_dequant_matmul};
    if ((n->op != OP_dequant_matmul && n->op != OP_matmul) || n->dtype != RLXVK_F32 ||
        x->dtype != RLXVK_F32 || !options->profile)
        return false;
    const matmul_attributes *m = n->attributes;
    if (!s.packed && (m->transpose_a || !m->transpose_b || fuse_operand(p, n, 1)->shape.rank != 2))
        return false;
    s.rows = shape_product(&n->shape, 0, n->shape.rank - 1);
    s.n = (uint64_t)n->shape.dims[n->shape.rank - 1];
    s.k = (uint64_t)x->shape.dims[x->shape.rank - 1];
    s.format = s.packed ? ((const dequant_attributes *)n->attributes)->format : QUANT_F32;
    return projection_fits(&s, options->profile, options->names_matvec);
}

/* Whether the product's x is an RMS norm with only gamma that only products read. */
static bool takes_norm(const pass *p, const node *product)
{
    const node *norm = fuse_operand(p, product, 0);
    const norm_attributes *a = norm->attributes;
    uint32_t id = fuse_id(p, norm), uses = p->uses[id];
    if (norm->op != OP_rms_norm || !a->has_gamma || a->has_beta ||
        fuse_operand(p, norm, 1)->dtype != RLXVK_F32 || a->axis + 1 != (int32_t)norm->shape.rank)
        return false;
    if (!projection_takes_epsilon(a->eps))
        return rewrite_miss(p, "the eps of norm %%%u is too small for a product before it", id);
    for (uint32_t reader = id + 1; reader < p->count && uses; reader++)
        for (uint32_t i = 0; i < p->nodes[reader].input_count && uses; i++)
            if (p->nodes[reader].inputs[i] == id) {
                if (i != 0 || !is_product(p, &p->nodes[reader]))
                    return rewrite_miss(p, "%%%u reads the norm %%%u, too", reader, id);
                uses--;
            }
    return uses == 0 || rewrite_miss(p, "the norm %%%u is an output", id);
}

/* The node itself if it is a product, or the product below it if it is a SwiGLU; else NULL. */
static const node *product_behind(const pass *p, const node *n)
{
    const node *product = n->op == OP_fused_swiglu ? fuse_operand(p, n, 0) : n;
    if (!is_product(p, product) ||
        (product != n && !rewrite_expect_private(p, fuse_id(p, product))))
        return NULL;
    return product;
}

/* For a sum: the summand that is a product or the SwiGLU of one; the other is the residual. */
static const node *match_sum(const pass *p, const node *n, const node **product, uint32_t *residual)
{
    for (uint32_t i = 0; i < 2; i++) {
        const node *part = fuse_operand(p, n, i), *other = fuse_operand(p, n, 1 - i);
        *product = part == other || !fuse_same_type(part, n) || !fuse_same_type(other, n)
                       ? NULL
                       : product_behind(p, part);
        *residual = n->inputs[1 - i];
        if (*product && rewrite_expect_private(p, fuse_id(p, part)))
            return part;
    }
    return NULL;
}

static void describe(const pass *p, const node *product, const node *gate, fusion *f)
{
    projection_attributes *a = &f->attributes.projection;
    *a = (projection_attributes){.packed = product->op == OP_dequant_matmul};
    a->weights.format = QUANT_F32;
    if (a->packed)
        a->weights = *(const dequant_attributes *)product->attributes;
    if (gate)
        a->parts = ((const swiglu_attributes *)gate->attributes)->gate_first
                       ? PROJECTION_GATED | PROJECTION_GATE_FIRST
                       : PROJECTION_GATED;
    f->first = fuse_id(p, product);
    f->inputs[f->count++] = product->inputs[0];
    f->inputs[f->count++] = product->inputs[1];
}

static void add_norm(const pass *p, const node *norm, fusion *f)
{
    f->attributes.projection.parts |= PROJECTION_NORM;
    f->attributes.projection.epsilon = ((const norm_attributes *)norm->attributes)->eps;
    f->first = fuse_id(p, norm);
    f->inputs[0] = norm->inputs[0];
    f->inputs[f->count++] = norm->inputs[1];
}

bool fuse_match_projection(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id], *product = NULL, *part = n;
    uint32_t residual = NODE_NONE;
    if (n->op == OP_add)
        part = match_sum(p, n, &product, &residual);
    else
        product = product_behind(p, n);
    if (!part || !product)
        return false;
    bool norm = takes_norm(p, product), gate = part->op == OP_fused_swiglu;
    if (part == product && residual == NODE_NONE && !norm)
        return false;
    *f = (fusion){.op = OP_projection};
    describe(p, product, gate ? part : NULL, f);
    if (norm)
        add_norm(p, fuse_operand(p, product, 0), f);
    if (residual != NODE_NONE) {
        f->attributes.projection.parts |= PROJECTION_RESIDUAL;
        f->inputs[f->count++] = residual;
    }
    if (product->input_count > 2) /* the grid */
        f->inputs[f->count++] = product->inputs[2];
    return fuse_no_write_since(p, f->first, id);
}

uint32_t fuse_projection(pass *p, uint32_t id)
{
    return fuse_replace(p, id, fuse_match_projection);
}
