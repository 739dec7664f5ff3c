/* Notes pivots. The includer declares order[]. */

/* No row and no column is used yet. All lanes must call it. */
void begin_order(uint matrix)
{
    for (uint i = gl_LocalInvocationID.x; i < 2u * args.n; i += gl_WorkGroupSize.x)
        order[order_base(matrix) + 2u * args.n + i] = UNUSED;
}

void note_pivot(uint matrix, uint step, uint element)
{
    uint base = order_base(matrix), row = element / args.n, column = element - row * args.n;
    order[base + step] = row;
    order[base + args.n + step] = column;
    order[base + 2u * args.n + row] = step;
    order[base + 3u * args.n + column] = step;
}
