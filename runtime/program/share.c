/*
 * Shares memory between executables. We decide which leaves are shared before the plan is made, so
 * that the plan gives them no slots. The executable is told whose memory it is when it is created.
 * Params are shared if they are alike. An input that the caller names must have the same dtype and
 * shape.
 */
#include "program/share.h"
#include "program/name.h"

#define CALL "compile option shared_inputs"

static bool are_alike(const program *p, uint32_t mine, const program *theirs, uint32_t other)
{
    const node *n = graph_node(p->graph, mine), *o = graph_node(theirs->graph, other);
    return o->dtype == n->dtype && shape_equal(&o->shape, &n->shape) &&
           program_held(theirs, other) == program_held(p, mine);
}

static rlxvk_dtype declared(const program *p, const program_leaf *leaf)
{
    return (rlxvk_dtype)graph_node(p->source, leaf->source)->dtype;
}

rlxvk_dtype share_held_as(const void *sharer, const node *param, rlxvk_dtype otherwise)
{
    const program *p = sharer;
    const program_leaf *leaf = p ? program_find_param(p, param->name) : NULL;
    if (!leaf || leaf->node == NODE_NONE || declared(p, leaf) != (rlxvk_dtype)param->dtype ||
        !shape_equal(&graph_node(p->graph, leaf->node)->shape, &param->shape))
        return otherwise;
    return program_held_dtype(p, leaf->node);
}

bool share_may_join(const void *sharer, const char *const *names, uint32_t count)
{
    const program *p = sharer;
    uint32_t found = 0, whole = NODE_NONE;
    uint64_t end = 0;
    bool in_order = true;
    for (uint32_t i = 0; p && i < count; i++) {
        const program_leaf *leaf = program_find_param(p, names[i]);
        if (!leaf || leaf->node == NODE_NONE)
            continue;
        const value *v = &p->schedule.values.items[leaf->node];
        whole = found++ ? whole : v->root;
        in_order = in_order && v->root == whole && v->offset == end;
        end += shape_numel(&graph_node(p->graph, leaf->node)->shape);
    }
    return found == 0 ||
           (found == count && in_order && end == shape_numel(&graph_node(p->graph, whole)->shape));
}

/* Marks shared params. If a param lies in a value that joins several, all of them are shared or
 * none. */
static void match_params(const program *p, const program *theirs, bool *shared)
{
    for (size_t i = 0; i < 2 * p->param_count; i++) {
        const program_leaf *mine = &p->params[i % p->param_count];
        const program_leaf *other = program_find_param(theirs, mine->name);
        if (mine->node == NODE_NONE)
            continue;
        bool alike = other && other->node != NODE_NONE &&
                     declared(p, mine) == declared(theirs, other) &&
                     are_alike(p, mine->node, theirs, other->node);
        bool *flag = &shared[p->schedule.values.items[mine->node].root];
        *flag = i < p->param_count ? *flag || alike : *flag && alike;
    }
}

/* Compares two inputs of one name in the graphs as built. E_DTYPE or E_SHAPE if they differ. */
static rlxvk_status check_input(const program *p, const program_leaf *mine, const program *theirs,
                                const program_leaf *other)
{
    const node *n = graph_node(p->source, mine->source);
    const node *o = graph_node(theirs->source, other->source);
    char shapes[2][SHAPE_TEXT];
    if (o->dtype != n->dtype)
        return status_fail(RLXVK_E_DTYPE, CALL ": input '%s' is %s here and %s in share_with",
                           mine->name, rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                           rlxvk_dtype_name((rlxvk_dtype)o->dtype));
    if (!shape_equal(&o->shape, &n->shape))
        return status_fail(RLXVK_E_SHAPE, CALL ": input '%s' is %s here and %s in share_with",
                           mine->name, shape_text(&n->shape, shapes[0]),
                           shape_text(&o->shape, shapes[1]));
    return RLXVK_OK;
}

static rlxvk_status match_input(const program *p, const program *theirs, const char *name,
                                bool *shared)
{
    const program_leaf *mine = program_find_input(p, name);
    const program_leaf *other = program_find_input(theirs, name);
    rlxvk_status status;
    if (!mine)
        return name_unknown(p->source, CALL, "input", name);
    if (!other)
        return status_fail_within(name_unknown(theirs->source, CALL, "input", name), "share_with");
    TRY(check_input(p, mine, theirs, other));
    if (mine->node == NODE_NONE) /* needs no memory at all */
        return RLXVK_OK;
    if (other->node == NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           CALL ": input '%s' has no memory in share_with: no output depends on it "
                                "there; share with an executable that uses it",
                           name);
    shared[mine->node] = are_alike(p, mine->node, theirs, other->node);
error:
    return status;
}

rlxvk_status share_match(const program *p, const program *theirs, const rlxvk_compile_options *o,
                         bool *shared)
{
    rlxvk_status status = RLXVK_OK;
    match_params(p, theirs, shared);
    for (size_t i = 0; i < o->shared_input_count; i++)
        TRY(match_input(p, theirs, o->shared_inputs[i], shared));
error:
    return status;
}
