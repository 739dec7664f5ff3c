/* See ops_gradient.h. */
#include "cli/ops_gradient.h"
#include "conform/conform.h"
#include "op/op.h"

#include <rlxvk_train.h>

#include <string.h>

/* Whether the gradient is the zeros that a tensor gets if no gradient flows into it. */
static bool is_zeros(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    for (; n->input_count; n = graph_node(g, n->inputs[0]))
        if (n->op != OP_expand && n->op != OP_reshape && n->op != OP_cast)
            return false;
    for (size_t i = 0; n->data && i < n->data_size; i++)
        if (((const char *)n->data)[i])
            return false;
    return n->op == OP_constant;
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return true;
    return false;
}

static bool flows_into(const case_spec *spec, size_t leaf)
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result, gradient = RLXVK_NONE;
    bool flows = false;
    if (conform_build(spec, &g, leaves, &result) == RLXVK_OK && g->status == RLXVK_OK &&
        graph_node(g, result.id - 1)->input_count) { /* not a leaf that was written in place */
        rlxvk_tensor seed =
            rlxvk_input(g, "seed", rlxvk_tensor_dtype(g, result), rlxvk_tensor_shape(g, result));
        rlxvk_grad(g, result, seed, &leaves[leaf], 1, &gradient);
        flows = g->status == RLXVK_OK && !is_zeros(g, gradient.id - 1);
    }
    rlxvk_graph_destroy(g);
    return flows;
}

rlxvk_status ops_gradient_names(const char *line, text *names)
{
    case_spec spec;
    rlxvk_status status;
    TRY(case_parse(line, &spec));
    for (size_t i = 0; i < spec.input_count; i++) {
        const case_input *leaf = &spec.inputs[i];
        if ((leaf->dtype == RLXVK_F32 || leaf->dtype == RLXVK_C64) && shape_numel(&leaf->shape) &&
            !has_word(names->buffer, leaf->name) && flows_into(&spec, i))
            text_append(names, "%s%s", names->length ? " " : "", leaf->name);
    }
error:
    return status;
}
