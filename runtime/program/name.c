/* Says why there is no leaf with a name. */
#include "program/name.h"
#include "op/random/random.h"

#include <string.h>

#define NAMES_LISTED 8 /* in an error */

static void list_names(const rlxvk_graph *source, const char *row, text *out)
{
    size_t listed = 0;
    for (uint32_t id = 0; id < source->nodes.count && listed <= NAMES_LISTED; id++) {
        const node *n = graph_node(source, id);
        if (strcmp(node_row(n)->name, row) != 0 || op_is_own_input(n))
            continue;
        text_append(out, listed ? ", " : "; there are ");
        text_append(out, listed < NAMES_LISTED ? "'%.60s'" : "more", n->name);
        listed++;
    }
}

rlxvk_status name_unknown(const rlxvk_graph *source, const char *call, const char *row,
                          const char *name)
{
    char names[NAMES_LISTED * 64 + 32] = "";
    if (!name)
        return status_require(name, call, "name");
    if (op_find_param(source, name) != NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "%s: '%s' is a param, not an input; set it with rlxvk_set_param", call,
                           name);
    if (program_input_of(source, name) != NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "%s: '%s' is an input, not a param; give it to rlxvk_run, or keep it on "
                           "the device with rlxvk_bind_handle",
                           call, name);
    list_names(source, row, &(text){.buffer = names, .size = sizeof names});
    return status_fail(RLXVK_E_UNKNOWN_NAME, "%s: the graph has no %s named '%s'%s", call, row,
                       name, names);
}
