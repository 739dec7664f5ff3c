/* Where an update goes. `args` and index[] are declared before. */
#include "lib/index.glsl"
#include "array/scatter_modes.glsl"

/* Of the index at i: the row it names; ~0: none. */
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

/* Of element e of the updates: its element of y; ~0: none. ND: an index for whole rows. */
uint target_of(uint e, bool nd)
{
    uint line = e / args.inner, t = e - line * args.inner, row = row_of(nd ? line : e);
    if (row == 0xffffffffu)
        return row;
    return ((nd ? 0u : line / args.updates * args.rows) + row) * args.inner + t;
}
