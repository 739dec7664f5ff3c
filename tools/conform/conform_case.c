/* What every way of checking a case begins with: its leaves' contents, its graph, and what
 * that is to be compiled with. */
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

rlxvk_status conform_build(const case_spec *spec, rlxvk_graph **out,
                           rlxvk_tensor leaves[CASE_MAX_INPUTS], rlxvk_tensor *out_result)
{
    const case_family *family = case_find_family(spec->row);
    rlxvk_status status = rlxvk_graph_create(out);
    if (status != RLXVK_OK)
        return status;
    if (!family)
        return status_fail(RLXVK_E_UNKNOWN_OP, "no case family builds row '%s'", spec->row);
    for (size_t i = 0; i < spec->input_count; i++) {
        const case_input *leaf = &spec->inputs[i];
        leaves[i] = (case_is_param(leaf) ? rlxvk_param : rlxvk_input)(*out, leaf->name, leaf->dtype,
                                                                      leaf->shape);
    }
    *out_result = family->build(*out, spec, leaves);
    return RLXVK_OK;
}

rlxvk_status conform_compile_options(const case_spec *spec, const conform_setup *setup,
                                     option_variants *room, rlxvk_compile_options *options)
{
    options->force_host = setup->force_host ? RLXVK_ON : RLXVK_DEFAULT;
    options->precision = case_precision(spec, setup->precision);
    return option_set_variants(case_word(spec, "variant", setup->variant), room, options);
}

uint32_t conform_source(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset)
{
    *out_offset = 0;
    for (;;) {
        const node *n = graph_node(g, id);
        const op_family *family = node_row(n)->family;
        uint64_t step = 0;
        if (!family->view || family->writes || !family->view(g, n, &step))
            return id;
        *out_offset += n->dtype == RLXVK_C64 ? 2 * step : step;
        id = n->inputs[0];
    }
}
