/* Reductions by channel of [outer, channels, inner]: which rows to reduce, and how to join their
 * results. */
#include "op/rows/rows.h"

/* Rows shorter than this are reduced side by side if there are more of them than they have
 * elements. */
#define SHORT_ROW 64

static bool is_taken_across(axis_view v)
{
    return v.inner == 1 || (v.inner < SHORT_ROW && v.outer > v.inner);
}

channel_rows channels_rows(axis_view v)
{
    if (is_taken_across(v))
        return (channel_rows){{1, v.outer, v.length * v.inner}, v.inner, true};
    return (channel_rows){{v.outer * v.length, v.inner, 1}, 1, false};
}

axis_view channels_results(axis_view v, const channel_rows *rows, row_chunks chunks)
{
    if (rows->across)
        return (axis_view){chunks.count, v.length, v.inner};
    return (axis_view){v.outer, v.length, chunks.count};
}

rlxvk_status channels_reduce(lowering *l, axis_view v, uint64_t count, uint32_t code, operand x,
                             operand y)
{
    channel_rows rows = channels_rows(v);
    axis_view first = rows.view, rest = {count, v.outer, v.length};
    operand part;
    rlxvk_status status;
    if (rows.across)
        rest = (axis_view){count * v.length, v.inner, 1};
    first.outer *= count;
    if (v.length == 0)
        return RLXVK_OK;
    if (v.outer * v.inner == 0)
        return reduce_rows(l, (axis_view){count * v.length, 0, 1}, code, 0, x, y);
    if (rest.length == 1)
        return reduce_rows(l, first, code, 0, x, y);
    if (first.length == 1)
        return reduce_rows(l, rest, code, 0, x, y);
    TRY(lower_temporary(l, 4 * rest.outer * rest.length * rest.inner, &part));
    TRY(reduce_rows(l, first, code, 0, x, part));
    TRY(reduce_rows(l, rest, code, 0, part, y));
error:
    return status;
}
