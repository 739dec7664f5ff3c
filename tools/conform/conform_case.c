/* The preparation of a case, common to all checks: contents of its leaves, its graph, and its
 * compile options. */
#include "conform/conform.h"
#include "op/op.h"

rlxvk_status conform_fill(const case_spec *spec, const conform_case *given, uint64_t seed,
                          void *contents[CASE_MAX_INPUTS])
{
    for (size_t i = 0; i < spec->input_count; i++) {
        const case_input *leaf = &spec->inputs[i];
        if (given->golden) {
            contents[i] = given->golden->contents[i].data;
            continue;
        }
        contents[i] = memory_zeroed(case_length(leaf) + 1, case_is_raw(leaf) ? 1 : 4);
        if (!contents[i])
            return status_fail_memory("case");
        rlxvk_status status = case_fill(spec, i, seed, given->number, contents[i]);
        if (status != RLXVK_OK)
            return status;
    }
    return RLXVK_OK;
}

static rlxvk_tensor make_leaf(rlxvk_graph *g, const case_input *leaf)
{
    return (case_is_param(leaf) ? rlxvk_param : rlxvk_input)(g, leaf->name, leaf->dtype,
                                                             leaf->shape);
}

rlxvk_status conform_build(const case_spec *spec, rlxvk_graph **out,
                           rlxvk_tensor leaves[CASE_MAX_INPUTS], rlxvk_tensor *out_result)
{
    const case_family *family = case_find_family(spec->row);
    const int64_t scratch = case_integer(spec, "scratch", 0);
    rlxvk_tensor operands[CASE_MAX_INPUTS];
    rlxvk_status status = rlxvk_graph_create(out);
    if (status != RLXVK_OK)
        return status;
    if (!family)
        return status_fail(RLXVK_E_UNKNOWN_OP, "no case family builds row '%s'", spec->row);
    for (size_t i = 0; i < spec->input_count; i++) {
        operands[i] = leaves[i] = make_leaf(*out, &spec->inputs[i]);
        if (scratch >> i & 1)
            operands[i] = rlxvk_copy(*out, leaves[i]);
    }
    *out_result = family->build(*out, spec, operands);
    return RLXVK_OK;
}

enum { MOST_SHIFTED = 1 << 20 }; /* elements; larger tensors might exceed the device's limits */

static bool may_shift(const rlxvk_shape *shape)
{
    return shape->rank > 0 && shape_numel(shape) <= MOST_SHIFTED;
}

/* Finds the leaves that do not become part of a larger tensor: params, scalars, large leaves, and
 * leaves that are written in place, because a view cannot be. */
static rlxvk_status find_whole(const case_spec *spec, bool whole[CASE_MAX_INPUTS])
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result;
    rlxvk_status status = conform_build(spec, &g, leaves, &result);
    for (size_t k = 0; k < spec->input_count && status == RLXVK_OK; k++) {
        whole[k] = case_is_param(&spec->inputs[k]) || !may_shift(&spec->inputs[k].shape);
        for (uint32_t id = 0; id < g->nodes.count; id++) {
            const node *n = graph_node(g, id);
            for (uint32_t i = 0; i < n->input_count; i++)
                whole[k] |= (node_writes(n) >> i & 1) && n->inputs[i] == leaves[k].id - 1;
        }
    }
    rlxvk_graph_destroy(g);
    return status;
}

static rlxvk_tensor shift_result(rlxvk_graph *g, rlxvk_tensor y, int64_t rows)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, y);
    if (rlxvk_graph_status(g) != RLXVK_OK || !may_shift(&shape) ||
        rlxvk_tensor_dtype(g, y) != RLXVK_F32)
        return y;
    shape.dims[0] = rows;
    return rlxvk_concat(g, (rlxvk_tensor[]){rlxvk_full(g, shape, 0), y}, 2, 0);
}

rlxvk_status conform_build_shifted(case_spec *spec, uint64_t number, rlxvk_graph **out,
                                   rlxvk_tensor leaves[CASE_MAX_INPUTS], rlxvk_tensor *out_result,
                                   rlxvk_tensor *out_whole)
{
    const case_family *family = case_find_family(spec->row);
    const case_spec plain = *spec;
    const int64_t rows = 1 + (int64_t)(number % 4);
    rlxvk_tensor views[CASE_MAX_INPUTS];
    bool whole[CASE_MAX_INPUTS] = {false};
    rlxvk_status status;
    TRY(find_whole(spec, whole));
    TRY(rlxvk_graph_create(out));
    for (size_t i = 0; i < spec->input_count; i++) {
        spec->inputs[i].shape.dims[0] += whole[i] ? 0 : rows;
        views[i] = leaves[i] = make_leaf(*out, &spec->inputs[i]);
        if (!whole[i])
            views[i] = rlxvk_narrow(*out, leaves[i], 0, rows, plain.inputs[i].shape.dims[0]);
    }
    *out_result = family->build(*out, &plain, views);
    *out_whole = shift_result(*out, *out_result, rows);
error:
    return status;
}

rlxvk_status conform_compile_options(const case_spec *spec, const conform_setup *setup,
                                     option_variants *room, rlxvk_compile_options *options)
{
    options->force_host = setup->force_host ? RLXVK_ON : RLXVK_DEFAULT;
    options->precision = case_precision(spec, setup->precision);
    options->timeout_ns = setup->timeout_ns;
    return option_set_variants(case_word(spec, "variant", setup->variant), room, options);
}

uint32_t conform_source(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset)
{
    *out_offset = 0;
    for (;;) {
        const node *n = graph_node(g, id);
        const op_family *family = node_row(n)->family;
        uint64_t step = 0;
        if (!family->views.view || family->memory.writes || !family->views.view(g, n, &step))
            return id;
        *out_offset += n->dtype == RLXVK_C64 ? 2 * step : step;
        id = n->inputs[0];
    }
}
