/*
 * The classes of row kernels. On software and translated drivers the threads of a workgroup run one
 * after the other. The last row has no conditions but the baseline's.
 */
#include "op/rows/rows_select.h"

/* What rows.glsl joins in shared memory (ROW_THREADS), and the smallest subgroups that are worth
 * shuffling. */
#define MOST_SUBGROUPS 256
#define LEAST_SUBGROUP 4

/* clang-format off */
static const row_class classes[] = {
    /* {name, settings, conditions}, subgroups, quads, threads, times */
    {{"subgroup_quads", ON_NATIVE, NEEDS_SHUFFLES}, true,  true,  256, 4},
    {{"subgroup_words", ON_NATIVE, NEEDS_SHUFFLES}, true,  false, 256, 4},
    {{"shared_quads",   ON_NATIVE, 0},              false, true,    0, 4},
    {{"shared_words",   ON_ALL,    0},              false, false,   0, 0},
};
/* clang-format on */
const row_class *const rows_plain = &classes[ARRAY_COUNT(classes) - 1];

static choice_fit fit(const void *row, const void *problem, const device_profile *p)
{
    const row_class *c = row;
    const row_shape *s = problem;
    uint32_t threads = c->threads ? c->threads : p->workgroup_size, size = p->subgroup_size;
    bool whole = !c->quads || (s->whole && s->inner == 1);
    bool joins = !c->subgroups ||
                 (s->inner == 1 && size >= LEAST_SUBGROUP && threads / size <= MOST_SUBGROUPS);
    return (choice_fit){.can = whole && joins, .suits = true, .threads = threads};
}

const choice_table rows_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const row_class *rows_select(const row_shape *shape, const device_profile *profile, size_t forced)
{
    return choice_select(&rows_choice, shape, profile, forced);
}
