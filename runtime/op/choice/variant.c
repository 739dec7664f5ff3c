/* Variants that a caller names: reads "kind=row,kind=row", and ranks named before measured
 * rows. */
#include "op/choice/tuning.h"
#include "op/op.h"

#include <string.h>

/* One "kind=row" of a list. */
typedef struct named_row {
    const char *kind, *row;
    size_t kind_length, row_length;
} named_row;

/* Reads the item at *cursor and moves past it; false at the end. Without "=", the row is empty. */
static bool next_row(const char **cursor, named_row *out)
{
    const char *item = *cursor + strspn(*cursor, ", ");
    size_t length = strcspn(item, ", "), name = strcspn(item, "=, ");
    *out = (named_row){item, item + name + (name < length), name, length - MIN(name + 1, length)};
    *cursor = item + length;
    return length > 0;
}

static rlxvk_status fail_row(const char *what, const named_row *c, const kernel_kind *kind)
{
    char names[512] = "";
    text t = {names, sizeof names, 0};
    for (size_t i = 0; !kind && i < CHOICE_COUNT; i++)
        text_append(&t, "%s%s", i ? ", " : "", choice_kinds[i].name);
    for (size_t i = 0; kind && choice_row_name(kind, i); i++)
        text_append(&t, "%s%s", i ? ", " : "", choice_row_name(kind, i));
    if (!kind)
        return status_fail(RLXVK_E_ATTR, "%s: no kernel kind '%.*s'; kinds with variants are %s",
                           what, (int)MIN(c->kind_length, 100), c->kind, names);
    return status_fail(RLXVK_E_ATTR, "%s: %s has no variant '%.*s'; it has %s", what, kind->name,
                       (int)MIN(c->row_length, 100), c->row, names);
}

static rlxvk_status add_row(const named_row *c, const char *what, variant_set *set)
{
    const kernel_kind *f = choice_find_kind(c->kind, c->kind_length);
    size_t row = f ? choice_find_row(f, c->row, c->row_length) : VARIANT_NONE;
    if (row == VARIANT_NONE)
        return fail_row(what, c, f);
    set->rows[f - choice_kinds] = (uint8_t)(row + 1);
    return RLXVK_OK;
}

rlxvk_status variant_add(const rlxvk_variant *v, const char *what, variant_set *set)
{
    return add_row(&(named_row){v->kind, v->row, strlen(v->kind), strlen(v->row)}, what, set);
}

rlxvk_status variant_parse(const char *choices, const char *what, variant_set *out)
{
    variant_set set = {{0}};
    named_row c;
    rlxvk_status status = RLXVK_OK;
    while (choices && next_row(&choices, &c))
        TRY(add_row(&c, what, &set));
    *out = set;
error:
    return status;
}

size_t variant_named(const variant_set *set, choice_kind kind)
{
    return set->rows[kind] ? set->rows[kind] - 1u : VARIANT_NONE;
}

bool variant_is_named(const variant_set *set, const char *row)
{
    for (size_t i = 0; row && i < CHOICE_COUNT; i++)
        if (set->rows[i] && choice_row_name(&choice_kinds[i], set->rows[i] - 1u) == row)
            return true;
    return false;
}

/* Notes the query even if nothing was measured, because `rlxvk bench --tune` learns here which
 * queries a graph makes. */
static size_t find_measured(lowering *l, choice_kind kind, const char *tag, const uint64_t *dims)
{
    variant_query q = {.kind = &choice_kinds[kind]};
    if (!tag)
        return VARIANT_NONE;
    strncat(q.tag, tag, sizeof q.tag - 1);
    memcpy(q.dims, dims, sizeof q.dims);
    (void)VECTOR_PUSH(&l->queries, q); /* without memory it is only not listed */
    return l->tuning ? tuning_find(l->tuning, &q) : VARIANT_NONE;
}

/* Always sets l->choice, because the choice of an earlier dispatch of the node must not be noted
 * for this one. */
size_t variant_choose(lowering *l, choice_kind kind, const char *tag,
                      const uint64_t dims[VARIANT_DIMS])
{
    size_t named = variant_named(&l->variants, kind);
    size_t measured = find_measured(l, kind, tag, dims);
    size_t row = named != VARIANT_NONE ? named : measured;
    l->choice = (variant_choice){0};
    if (row != VARIANT_NONE)
        l->choice = (variant_choice){choice_row_name(&choice_kinds[kind], row),
                                     named != VARIANT_NONE ? VARIANT_BY_NAME : VARIANT_BY_TUNING};
    return row;
}
