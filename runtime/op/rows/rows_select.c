/*
 * The classes of row kernels. NATIVE: hardware; PORTABLE: software and translated drivers, where
 * the threads of a workgroup run one after the other. The last row has no conditions but the
 * baseline's.
 */
#include "op/rows/rows_select.h"

enum setting { NATIVE = 1, PORTABLE = 2 };

/* What rows.glsl joins in shared memory (ROW_THREADS), and the smallest subgroups that are worth
 * shuffling. */
#define MOST_SUBGROUPS 256
#define LEAST_SUBGROUP 4

/* clang-format off */
#define BOTH (NATIVE | PORTABLE)
const row_class rows_classes[] = {
    /* name, settings, subgroups, quads, threads, times */
    {"subgroup_quads", NATIVE, true,  true,  256, 4},
    {"subgroup_words", NATIVE, true,  false, 256, 4},
    {"shared_quads",   NATIVE, false, true,    0, 4},
    {"shared_words",   BOTH,   false, false,   0, 0},
};
/* clang-format on */
const size_t rows_class_count = ARRAY_COUNT(rows_classes);

/* Whether it can; `settings` says whether it should. */
static bool is_able(const row_class *c, const row_shape *s, const device_profile *p)
{
    uint32_t threads = c->threads ? c->threads : p->workgroup_size, size = p->subgroup_size;
    if (threads > p->max_workgroup_invocations || (c->quads && !(s->whole && s->inner == 1)))
        return false;
    return !c->subgroups || (p->subgroup_shuffle && s->inner == 1 && size >= LEAST_SUBGROUP &&
                             threads % size == 0 && threads / size <= MOST_SUBGROUPS);
}

const row_class *rows_select(const row_shape *shape, const device_profile *profile, size_t forced)
{
    bool portable = profile->portable || profile->kind == RLXVK_DEVICE_CPU;
    unsigned setting = portable ? PORTABLE : NATIVE;
    size_t i = 0;
    if (forced < rows_class_count && is_able(&rows_classes[forced], shape, profile))
        return &rows_classes[forced];
    while (i + 1 < rows_class_count &&
           (!(rows_classes[i].settings & setting) || !is_able(&rows_classes[i], shape, profile)))
        i++;
    return &rows_classes[i];
}
