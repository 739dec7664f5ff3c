/* Adding rows of updates up by index, on behalf of the families that do: scatter_add and the
 * backward ops of gather and take_along_axis. */
#ifndef RLXVK_SCATTER_ADD_H
#define RLXVK_SCATTER_ADD_H

#include "op/movement/radix_sort.h"
#include "op/movement/scatter_add_select.h"

#define SCATTER_LONGEST_AXIS (1 << 24) /* indices are exact f32 integers */

/* y [outer, rows, columns] = 0, then y[o, index(u)] += source[o, u] for u = 0, 1, ..; `clamped`: an
 * index outside names the nearest row, NaN row 0, else none. Columns are words. */
typedef struct scatter_work {
    uint64_t outer, rows, columns, updates;
    bool clamped;
    operand source, index, y;
    const scatter_class *class;
} scatter_work;

/* The updates of each row: those at positions[start(r)] .. positions[start(r + 1) - 1], ascending,
 * start(r) = starts[r]. Rows are followed by one of what an index outside drops. */
typedef struct scatter_runs {
    operand positions, starts;
} scatter_runs;
rlxvk_status scatter_add_find_runs(lowering *l, operand index, uint64_t rows, uint64_t updates,
                                   bool clamped, scatter_runs *out);

/* The offsets of a scatter's operands in words, where they count pairs. */
void scatter_add_count_words(scatter_work *w);
rlxvk_status scatter_add_emit(lowering *l, scatter_work *w);
/* The same by keys that are row numbers already, all below `rows`; `index` is not read. */
rlxvk_status scatter_add_emit_keyed(lowering *l, scatter_work *w, operand keys);

#endif
