/* The includer declares factors[] and order[]. */

/* A pivot that others are eliminated with. Without one, its inverse is 0. */
struct pivot_place {
    uint row, column;
    float inverse;
};

pivot_place pivot_of_step(uint matrix, uint step)
{
    uint base = order_base(matrix);
    pivot_place p = pivot_place(order[base + step], order[base + args.n + step], 0.0);
    p.inverse = inverse_of(factors[(matrix * args.n + p.row) * args.n + p.column]);
    return p;
}

/* Eliminates rows first .. end of a column, if they are not used yet. Returns the best element of
 * these and `own`. At the first step, `order` is not read. */
uvec2 eliminate(uint matrix, uint column, uint first, uint end, bool first_step, pivot_place p,
                uvec2 own)
{
    uint base = order_base(matrix) + 2u * args.n, from = matrix * args.n * args.n;
    if (column >= args.n || (!first_step && order[base + args.n + column] != UNUSED))
        return own;
    float u = factors[from + p.row * args.n + column] * p.inverse;
    for (uint row = first; row < end; row++) {
        if (!first_step && order[base + row] != UNUSED)
            continue;
        uint at = from + row * args.n;
        float v = factors[at + column];
        if (p.inverse != 0.0) {
            v = fma(-factors[at + p.column], u, v);
            factors[at + column] = v;
        }
        own = better(own, uvec2(magnitude_bits(v), row * args.n + column));
    }
    return own;
}
