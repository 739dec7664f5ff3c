/*
 * Batch regions: a concat on axis 0 becomes one node that writes all parts in one dispatch. Its
 * operands must be regions or single ops of one input each, and all must have the same program and
 * shapes. The pass runs after regions were made.
 *
 * A large concat stays, because more dispatches cost it nothing. Also, each part can run as soon as
 * its input exists, and then frees the input's memory.
 *
 * Each part must be private, hold words, and not be prepared or forced to the host. No tensor may
 * be written in place between a part and the concat.
 */
#include "op/elementwise/region.h"
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

#include <string.h>

#define MOST_ELEMENTS (UINT64_C(1) << 22)

/* The program of a part as a region; false if the node has none. */
static bool program_of(const pass *p, uint32_t id, region_attributes *out)
{
    const node *n = &p->nodes[id];
    if (n->input_count != 1 || n->dtype == RLXVK_C64)
        return false;
    if (n->op == OP_elementwise_region) {
        *out = *(const region_attributes *)n->attributes;
        return true;
    }
    *out = (region_attributes){.shape = n->shape, .step_count = 1};
    return region_step_of(n, &out->steps[0]);
}

static bool same_program(const region_attributes *a, const region_attributes *b)
{
    return a->step_count == b->step_count && a->scalar_mask == b->scalar_mask &&
           a->modulus[0] == b->modulus[0] && a->prologue == b->prologue &&
           memcmp(a->steps, b->steps, a->step_count * sizeof *a->steps) == 0;
}

/* Whether part i has the same program and shapes as part 0. */
static bool joins_batch(const pass *p, const node *concat, uint32_t i,
                        const region_attributes *first)
{
    const rewrite_options *options = p->context;
    uint32_t id = concat->inputs[i];
    const node *n = &p->nodes[id], *lead = fuse_operand(p, concat, 0);
    rlxvk_graph before = {.nodes = {.items = (node *)p->nodes, .count = p->count}};
    region_attributes mine;
    if (!program_of(p, id, &mine) || !same_program(&mine, first))
        return rewrite_miss(p, "%%%u and %%%u are different programs", concat->inputs[0], id);
    if (!shape_equal(&n->shape, &lead->shape) ||
        !shape_equal(&fuse_operand(p, n, 0)->shape, &fuse_operand(p, lead, 0)->shape))
        return rewrite_miss(p, "%%%u and %%%u differ in shape", concat->inputs[0], id);
    if (op_node_storage(&before, n->inputs[0]) != STORAGE_WORD)
        return rewrite_miss(p, "what %%%u reads is no words", id);
    if (n->prepare != concat->prepare)
        return rewrite_miss(p, "%%%u is computed when params are set", id);
    if (options->on_host && options->on_host[n->op])
        return rewrite_miss(p, "%%%u is to run on the host", id);
    return rewrite_expect_private(p, id) && fuse_no_write_since(p, id, fuse_id(p, concat));
}

static bool may_batch(const pass *p, const node *concat, const region_attributes *first)
{
    const rewrite_options *options = p->context;
    bool joins = true;
    for (uint32_t i = 0; i < concat->input_count && joins; i++)
        joins = joins_batch(p, concat, i, first);
    if (!joins)
        return false;
    if (shape_numel(&concat->shape) > MOST_ELEMENTS)
        return rewrite_miss(p, "%llu elements, of which each part is better written early",
                            (unsigned long long)shape_numel(&concat->shape));
    return region_fits(region_batch_size_of(first->steps, first->step_count), options->profile) ||
           rewrite_miss(p, "the device has no kernel, or compiles it slowly");
}

/* Whether node `id` joins such parts, and the attributes of the node that replaces it. */
static bool match_batch(const pass *p, uint32_t id, region_attributes *a)
{
    const rewrite_options *options = p->context;
    const node *n = &p->nodes[id];
    if (n->op != OP_concat || ((const axis_attributes *)n->attributes)->axis != 0 ||
        n->input_count < 2 || !options->profile || !program_of(p, n->inputs[0], a) ||
        !program_of(p, n->inputs[1], &(region_attributes){0}) || !may_batch(p, n, a))
        return false;
    a->shape = n->shape;
    return true;
}

bool fuse_match_batch_region(const pass *p, uint32_t id, fusion *out)
{
    region_attributes a;
    (void)out;
    return match_batch(p, id, &a);
}

uint32_t fuse_batch_region(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    region_attributes a;
    if (!match_batch(p, id, &a))
        return NODE_NONE;
    uint32_t *inputs = arena_allocate(&p->graph->memory, n->input_count * sizeof *inputs), made;
    if (!inputs) {
        graph_fail(p->graph, status_fail_memory("batch region"));
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = p->map[fuse_operand(p, n, i)->inputs[0]];
    made = op_append(p->graph, OP_batch_elementwise_region, inputs, n->input_count, &a, n->name);
    if (made != NODE_NONE)
        p->graph->nodes.items[made].prepare = n->prepare;
    return made;
}
