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

bool is_used(uint matrix, uint row, uint column)
{
    uint base = order_base(matrix) + 2u * args.n;
    return order[base + row] != UNUSED || order[base + args.n + column] != UNUSED;
}

/* Eliminates an element, if its row and column are not used yet. Returns the better of it and
 * `own`. At the first step, `order` is not read. */
uvec2 eliminate(uint matrix, uint element, bool first_step, pivot_place p, uvec2 own)
{
    uint row = element / args.n, column = element - row * args.n;
    if (!first_step && is_used(matrix, row, column))
        return own;
    uint first = matrix * args.n * args.n;
    float v = factors[first + element];
    if (p.inverse != 0.0) {
        float multiplier = factors[first + row * args.n + p.column] * p.inverse;
        v = fma(-multiplier, factors[first + p.row * args.n + column], v);
        factors[first + element] = v;
    }
    return better(own, uvec2(magnitude_bits(v), element));
}
