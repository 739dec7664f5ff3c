/* SwiGLU, silu(gate) * up, if gate and up are the two halves of a tensor's last axis. Models that
 * compute both with one matmul have this pattern. */
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

static bool half_of(const pass *p, const node *n, int64_t *start)
{
    const narrow_attributes *a = n->attributes;
    const node *whole = fuse_operand(p, n, 0);
    bool last = a->axis + 1 == (int32_t)n->shape.rank;
    *start = a->start;
    if (!last || whole->shape.dims[a->axis] != 2 * a->length ||
        (a->start != 0 && a->start != a->length))
        return rewrite_miss(p, "narrow %%%u is not a half of the last axis", fuse_id(p, n));
    return rewrite_expect_private(p, fuse_id(p, n));
}

static bool match_halves(const pass *p, const node *n, const node *silu, const node *up, fusion *f)
{
    const node *gate = fuse_operand(p, silu, 0);
    int64_t up_start, gate_start;
    if (up->op != OP_narrow || gate->op != OP_narrow || up->inputs[0] != gate->inputs[0] ||
        !rewrite_expect_private(p, fuse_id(p, silu)) || !half_of(p, up, &up_start) ||
        !half_of(p, gate, &gate_start))
        return false;
    if (up_start == gate_start || !fuse_same_type(up, n))
        return rewrite_miss(p, "narrows %%%u and %%%u are not the two halves of %%%u",
                            fuse_id(p, up), fuse_id(p, gate), up->inputs[0]);
    *f = (fusion){.op = OP_fused_swiglu,
                  .first = MIN(fuse_id(p, up), fuse_id(p, gate)),
                  .inputs = {up->inputs[0]},
                  .count = 1};
    f->attributes.swiglu.gate_first = gate_start == 0;
    return true;
}

bool fuse_match_swiglu(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id];
    for (uint32_t i = 0; i < 2 && n->op == OP_mul; i++)
        if (fuse_operand(p, n, i)->op == OP_silu &&
            match_halves(p, n, fuse_operand(p, n, i), fuse_operand(p, n, 1 - i), f))
            return fuse_no_write_since(p, f->first, id);
    return false;
}

uint32_t fuse_swiglu(pass *p, uint32_t id)
{
    return fuse_replace(p, id, fuse_match_swiglu);
}
