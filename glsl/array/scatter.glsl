/* The target of an update. Declare `args` and index[] before you include this. */
#include "lib/index.glsl"
#include "array/scatter_modes.glsl"

/* The row that index i selects, or ~0 if there is none. */
uint row_of(uint i)
{
    uint row = 0u;
    for (uint k = 0u; k < args.components; k++) {
        uint c = checked_index(index[args.index_offset + i * args.components + k], args.dims[k]);
        if (c == 0xffffffffu)
            return c;
        row = row * args.dims[k] + c;
    }
    return row;
}

/* The element of y for element e of the updates, or ~0 if there is none. ND: one index selects a
 * whole row. */
uint target_of(uint e, bool nd)
{
    uint line = e / args.inner, t = e - line * args.inner, row = row_of(nd ? line : e);
    if (row == 0xffffffffu)
        return row;
    return ((nd ? 0u : line / args.updates * args.rows) + row) * args.inner + t;
}
