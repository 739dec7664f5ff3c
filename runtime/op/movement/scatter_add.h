/* Adds rows of updates by index, for three families: scatter_add and the backward ops of gather and
 * take_along_axis. */
#ifndef RLXVK_SCATTER_ADD_H
#define RLXVK_SCATTER_ADD_H

#include "op/movement/radix_sort.h"
#include "op/movement/scatter_add_choice.h"

#define SCATTER_LONGEST_AXIS (1 << 24) /* indices are exact f32 integers */

/* y [outer, rows, columns] = 0, then y[o, index(u)] += source[o, u] for u = 0, 1, ... If `clamped`,
 * an index outside means the nearest row and NaN means row 0. Otherwise such updates are dropped.
 * Columns are words. */
typedef struct scatter_work {
    uint64_t outer, rows, columns, updates;
    bool clamped;
    operand source, index, y;
    const scatter_class *class;
} scatter_work;

/* The updates of each row r: positions[starts[r]] .. positions[starts[r + 1] - 1], ascending. After
 * the last row comes one for dropped updates. */
typedef struct scatter_runs {
    operand positions, starts;
} scatter_runs;
rlxvk_status scatter_add_find_runs(lowering *l, operand index, uint64_t rows, uint64_t updates,
                                   bool clamped, scatter_runs *out);

/* Converts offsets of a scatter's operands to words, if they count pairs. */
void scatter_add_count_words(scatter_work *w);
/* Lowers a node with the operands source and index. `w` has the sizes and `clamped`. */
rlxvk_status scatter_add_lower_node(lowering *l, uint32_t id, scatter_work w);
/* The same, if the keys are row numbers already, all below `rows`. `index` is not read. */
rlxvk_status scatter_add_emit_keyed(lowering *l, scatter_work *w, operand keys);

#endif
