/*
 * batch_elementwise_region applies one region to each of several tensors of the same shape and
 * joins the results along axis 0. It does the work of a concat of regions with one input each, in
 * as few dispatches as the device has bindings for. The attributes are those of a region, with the
 * shape of the whole result. A slice, 1 / count of axis 0, is the result of one input.
 *
 * The kernels (glsl/elementwise/region_batch.glsl) bind all inputs, at most 64 and at most as many
 * as a stage of the device can bind. If there are more, they take another dispatch. Each input is
 * read one to one, so the result does not depend on how many inputs share a dispatch.
 *
 * The reference computes one slice after the other as a region.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/bucket.h"
#include "op/elementwise/elementwise.h"
#include "op/elementwise/region.h"
#include "op/families.h"

enum { SOFTWARE_SLICE = 256, SOFTWARE_INPUTS = 7 };

rlxvk_tensor rlxvk_batch_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs,
                                            size_t count, const rlxvk_region *region)
{
    return region_build(g, OP_batch_elementwise_region, inputs, count, region);
}

/* ---- Infer ---- */

/* A node for the region that computes slice `i` of batch n. Its attributes are written to `a`. */
static node slice_of(const node *n, uint32_t i, region_attributes *a)
{
    node slice = *n;
    *a = *(const region_attributes *)n->attributes;
    if (a->shape.rank > 0)
        a->shape.dims[0] /= n->input_count;
    slice.attributes = a;
    slice.shape = a->shape;
    slice.inputs = &n->inputs[i];
    slice.input_count = 1;
    return slice;
}

static rlxvk_status batch_region_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *whole = &((const region_attributes *)attributes)->shape;
    rlxvk_status status = RLXVK_OK;
    char shape[SHAPE_TEXT], first[SHAPE_TEXT];
    if (whole->rank > RLXVK_MAX_RANK || (whole->rank > 0 && whole->dims[0] % n->input_count) ||
        (whole->rank == 0 && n->input_count != 1))
        return op_fail(n, RLXVK_E_ATTR, "%u inputs do not share axis 0 of a result of shape %s",
                       n->input_count, shape_text(whole, shape));
    for (uint32_t i = 0; i < n->input_count; i++) {
        region_attributes a;
        node slice = slice_of(n, i, &a);
        if (!shape_equal(input_shape(g, n, i), input_shape(g, n, 0)))
            return op_fail(n, RLXVK_E_SHAPE, "input %u is %s, input 0 is %s", i,
                           shape_text(input_shape(g, n, i), shape),
                           shape_text(input_shape(g, n, 0), first));
        TRY(region_infer(g, &slice, &a));
        if (i > 0 && slice.dtype != n->dtype)
            return op_fail(n, RLXVK_E_DTYPE, "input %u makes %s, input 0 makes %s", i,
                           rlxvk_dtype_name((rlxvk_dtype)slice.dtype),
                           rlxvk_dtype_name((rlxvk_dtype)n->dtype));
        n->dtype = slice.dtype;
    }
    n->shape = *whole;
error:
    return status;
}

/* ---- Lower ---- */

static uint32_t reading_of(const region_attributes *a)
{
    if (region_is_single(a, 0))
        return REGION_SINGLE;
    return (a->modulus[0] ? REGION_REPEATS : 0) | (region_is_prologue(a, 0) ? REGION_HALVED : 0);
}

/* Emits one dispatch, which computes the slices of inputs [first, first + count) of node `id`. `a`
 * has the attributes of a slice. */
static rlxvk_status emit(lowering *l, uint32_t id, const region_class *c,
                         const region_attributes *a, uint32_t first, uint32_t count)
{
    operand operands[1 + REGION_BATCH_INPUTS] = {lower_write(l, id)};
    uint64_t slice = shape_numel(&a->shape), numel = count * slice;
    dispatch d = {.kernel = (uint16_t)c->kernel, .variant = c->row.name};
    lower_narrow(l, &operands[0], first * slice, numel);
    struct region_batch_args args = {
        .numel = (u32)numel,
        .target_offset = operands[0].offset,
        .columns = (u32)(a->shape.rank == 4 ? a->shape.dims[3] : 0),
        .slice = (u32)slice,
        .modulus = a->modulus[0],
    };
    bool wide = slice % 4 == 0 && operands[0].offset % 4 == 0;
    for (uint32_t i = 0; i < count; i++) {
        operands[1 + i] = lower_input(l, id, first + i);
        args.offsets[i / 4] |= operands[1 + i].offset << i % 4 * 8;
        wide = wide && region_reads_wide(a, 0, operands[1 + i].offset);
    }
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {REGION_STEPS_FORM, a->step_count | (wide ? REGION_WIDE : 0)},
                  {REGION_BATCH_READ, reading_of(a)}, {REGION_BATCH_BINDINGS, 1 + count});
    region_set_steps(a, &d);
    lower_groups(l, &d, groups_for(numel, elementwise_lot(d.constants[LOCAL_SIZE])));
    return lower_emit(l, &d, &args, sizeof args, operands, 1 + count);
}

/* Most inputs of a dispatch. On software drivers large slices use fewer, because these drivers run
 * the reads of all inputs for every element and then mask them. */
static uint32_t most_inputs(const device_profile *profile, uint64_t slice)
{
    bool few = profile_is_software(profile) && slice > SOFTWARE_SLICE;
    return MIN(few ? SOFTWARE_INPUTS : REGION_BATCH_INPUTS, profile->storage_buffers_per_stage - 1);
}

static rlxvk_status batch_region_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    region_attributes a;
    rlxvk_status status = RLXVK_OK;
    slice_of(n, 0, &a);
    const region_class *c = region_choose(region_batch_size_of(a.steps, a.step_count), l->profile,
                                          variant_choose(l, CHOICE_region, NULL, NULL));
    if (!c)
        return region_fail_kernel(l, n, 1);
    uint32_t most = most_inputs(l->profile, shape_numel(&a.shape));
    for (uint32_t first = 0; first < n->input_count; first += most)
        TRY(emit(l, id, c, &a, first, MIN(most, n->input_count - first)));
error:
    return status;
}

static rlxvk_status batch_region_host(const host_call *call)
{
    rlxvk_status status = RLXVK_OK;
    region_attributes a;
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        node slice = slice_of(call->node, i, &a);
        uint64_t first = i * shape_numel(&slice.shape);
        host_call one = {&slice, &call->inputs[i], call->out + first,
                         call->bound ? call->bound + first : NULL, call->precision};
        TRY(region_host(&one));
    }
error:
    return status;
}

/* ---- The family ---- */

static uint64_t batch_region_bucket(bucket_call *c)
{
    const region_attributes *a = c->node->attributes;
    if (a->prologue || a->scalar_mask || a->modulus[0])
        return bucket_refuse(c, "it does not read its inputs one to one");
    return bucket_rows(c, 1, ~0u);
}

static rlxvk_tensor batch_region_expand(rlxvk_graph *g, const node *n)
{
    rlxvk_tensor *parts = memory_zeroed(n->input_count, sizeof *parts), whole = RLXVK_NONE;
    region_attributes a;
    if (!parts) {
        graph_fail(g, status_fail_memory("batch region"));
        return RLXVK_NONE;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        node slice = slice_of(n, i, &a);
        parts[i] = tensor_of(g, region_emit_steps(g, &slice, slice.inputs));
    }
    whole = n->input_count > 1 ? rlxvk_concat(g, parts, n->input_count, 0) : parts[0];
    memory_free(parts);
    return whole;
}

const op_family batch_region_family = {
    .name = "batch_region",
    .attribute_size = sizeof(region_attributes),
    .infer = batch_region_infer,
    .sizes = region_sizes,
    .execution = {.lower = batch_region_lower, .host = batch_region_host},
    .rows = {.bucket = batch_region_bucket},
    .derivative = {.expand = batch_region_expand},
    .describe = region_describe,
};
