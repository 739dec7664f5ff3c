/* Finds leaves by the caller's names. The library's own inputs, for example the random state,
 * cannot be found. */
#include "exec/leaf.h"
#include "program/name.h"

input_state *leaf_find_input(rlxvk_executable *e, const char *name)
{
    const program_leaf *leaf = e && e->program ? program_find_input(e->program, name) : NULL;
    return leaf ? &e->inputs[leaf - e->program->inputs] : NULL;
}

param_state *leaf_find_param(rlxvk_executable *e, const char *name)
{
    const program_leaf *leaf = e && e->program ? program_find_param(e->program, name) : NULL;
    return leaf ? &e->params[leaf - e->program->params] : NULL;
}

rlxvk_status leaf_live_input(rlxvk_executable *e, const char *call, const char *name,
                             input_state **out)
{
    rlxvk_status status;
    TRY(executable_require(e, call));
    *out = leaf_find_input(e, name);
    if (!*out)
        TRY(name_unknown(e->program->source, call, "input", name));
error:
    return status;
}
