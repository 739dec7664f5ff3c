/*
 * The addresses of rows of the mask and of the result. Both are dense, with the axes that args.axes
 * says. Also includes attention.glsl, after declaring what it needs.
 */
#include "args/attention.h"

bool has_axis(uint axis)
{
    return (args.axes & axis) != 0u;
}

/* Elements of the mask for one query, one head and one batch. */
uint mask_keys = has_axis(ATTENTION_MASK_KEY) ? args.keys : 1u;
uint mask_queries = has_axis(ATTENTION_MASK_QUERY) ? mask_keys * args.queries : mask_keys;
uint mask_heads = has_axis(ATTENTION_MASK_HEAD) ? mask_queries * args.heads : mask_queries;

#define MASK_KEY   (has_axis(ATTENTION_MASK_KEY) ? 1u : 0u)
#define MASK_QUERY (has_axis(ATTENTION_MASK_QUERY) ? mask_keys : 0u)

uint mask_row(uint b, uint h)
{
    return args.mask_offset + (has_axis(ATTENTION_MASK_BATCH) ? b * mask_heads : 0u) +
           (has_axis(ATTENTION_MASK_HEAD) ? h * mask_queries : 0u);
}

/* The start of the result of query 0, and the stride between queries. */
uint result_row(uint b, uint h)
{
    uint row = has_axis(ATTENTION_ROWS_FIRST) ? h : h * args.queries;
    return args.y_offset + (b * args.heads * args.queries + row) * args.width;
}
uint result_step = has_axis(ATTENTION_ROWS_FIRST) ? args.heads * args.width : args.width;

#include "attention/attention.glsl"
#include "lib/index.glsl"

uint entry; /* the entry of k and v */

/* Sets `reach` and `entry` for batch b. With ATTENTION_POSITION, a batch is idle if its position is
 * negative or if it has no entry. */
void find_reach(uint b)
{
    const float most = 3e9; /* past every key; i + reach does not wrap */
    entry = b;
    if (MASK != ATTENTION_POSITION)
        return;
    bool placed = has_axis(ATTENTION_PLACED);
    uint at = args.mask_offset + (placed ? 2u * b : b);
    float first = nearest_integer(mask[at]);
    reach = is_nan(first) || first < 0.0 ? 0u : uint(first < most ? first : most) + 1u;
    if (!placed)
        return;
    float place = nearest_integer(mask[at + 1u]);
    bool exists = !is_nan(place) && place >= 0.0 && place < float(args.axes >> ATTENTION_ENTRIES);
    entry = exists ? uint(place) : 0u;
    if (!exists)
        reach = 0u;
}
