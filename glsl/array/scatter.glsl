/* What the scattering kernels share: where an update goes, and how two values become one. `args`
 * and index[] are declared before, and MODE. */
#include "lib/index.glsl"

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

float apply(uint mode, float a, float b)
{
    if (mode == SCATTER_ADD)
        return a + b;
    if (mode == SCATTER_MUL)
        return a * b;
    if (mode == SCATTER_MAX)
        return a > b || is_nan(a) ? a : b;
    if (mode == SCATTER_MIN)
        return a < b || is_nan(a) ? a : b;
    return b;
}

/* Of a maximum or a minimum: a number that is the larger the sooner the value wins, NaN above all.
 */
uint rank_of(uint mode, uint bits)
{
    uint magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0xffffffffu;
    uint ascending = bits != magnitude ? ~bits : bits | 0x80000000u;
    return mode == SCATTER_MAX ? ascending : ~ascending;
}
uint bits_of(uint mode, uint rank)
{
    if (rank == 0xffffffffu)
        return 0x7fc00000u;
    uint ascending = mode == SCATTER_MAX ? rank : ~rank;
    return (ascending & 0x80000000u) != 0u ? ascending ^ 0x80000000u : ~ascending;
}
