/*
 * Members share memory if they can. Other params and handles are copied, and only if
 * they changed. If an input has another length in the next member, it counts as never given.
 */
#include "exec/carry.h"
#include "exec/copy.h"

static const rlxvk_shape *shape_of(const rlxvk_executable *e, const program_leaf *leaf)
{
    return &graph_node(e->program->source, leaf->source)->shape;
}

rlxvk_status carry_check(const rlxvk_executable *from, const rlxvk_executable *to)
{
    char before[SHAPE_TEXT], now[SHAPE_TEXT];
    for (size_t i = 0; i < from->program->input_count; i++) {
        const input_state *a = &from->inputs[i], *b = &to->inputs[i];
        const rlxvk_shape *x = shape_of(from, a->leaf), *y = shape_of(to, b->leaf);
        if ((a->bound || a->resident) && !shape_equal(x, y))
            return status_fail(RLXVK_E_HANDLE_SHAPE,
                               "input '%s' is a handle of %s and would be %s; unbind it, and bind "
                               "it again afterwards",
                               a->leaf->name, shape_text(x, before), shape_text(y, now));
    }
    return RLXVK_OK;
}

static rlxvk_status carry_input(rlxvk_executable *from, rlxvk_executable *to, size_t i)
{
    input_state *a = &from->inputs[i], *b = &to->inputs[i];
    bool handle = a->bound || a->resident;
    memory_free(b->mirror);
    b->mirror = a->mirror;
    input_take_handle(b, a);
    a->mirror = NULL;
    a->bound = a->resident = false;
    if (a->content == b->content || executable_is_own(from, i))
        return RLXVK_OK;
    b->content->written = handle;
    b->content->fingerprint_valid = false;
    return b->resident ? copy_leaf(to, from, a->leaf->node, b->leaf->node) : RLXVK_OK;
}

static rlxvk_status carry_param(rlxvk_executable *from, rlxvk_executable *to, size_t i)
{
    param_state *a = &from->params[i], *b = &to->params[i];
    rlxvk_status status = RLXVK_OK;
    bool known = a->content->version == b->content->version && !a->leaf->in_place;
    if (a->content == b->content || !a->content->written || known ||
        !shape_equal(shape_of(from, a->leaf), shape_of(to, b->leaf)))
        return RLXVK_OK;
    TRY(copy_param(to, from, i));
    b->content->written = true;
    b->content->version = a->content->version;
error:
    return status;
}

rlxvk_status carry_state(rlxvk_executable *from, rlxvk_executable *to)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->program->param_count; i++)
        TRY(carry_param(from, to, i));
    for (size_t i = 0; i < from->program->input_count; i++)
        TRY(carry_input(from, to, i));
    to->rng = from->rng;
error:
    return status;
}
