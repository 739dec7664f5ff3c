/*
 * main() of softmax and of cross entropy, for rows that fit the registers of their lanes: QUADS
 * (constant 1) times four elements each. A row is read once. If rows are LONG (constant 3), the
 * elements that do not fit are read first. They are read again if they are to be written.
 *
 * A lane computes exponentials in blocks, relative to the maximum of each block, while its other
 * quads are still loading. The row's maximum is known later and then scales the exponentials and
 * their sums. Long rows use only one block, because registers are scarce.
 *
 * The includer declares the constants, load_quad, and load_beside (reads other values that a row
 * needs). With ROW_VALUES it also defines row_terms, terms_of and store_quad. store_quad takes e =
 * exp(x - m), or x if KEEPS_X. Without ROW_VALUES it defines finish_row.
 */
#ifndef KEEPS_X
#define KEEPS_X false
#endif
const uint BLOCK_QUADS = LONG ? HELD : 4u;
const uint BLOCKS = (HELD + BLOCK_QUADS - 1u) / BLOCK_QUADS;

ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(float, sum_of_lanes, scratch_of_sum, row_add)

/* If the maximum is not finite, 0 is used instead. Then -Inf gives exponentials of 0, and for other
 * maxima the values do not matter. */
float block_origin(float top)
{
    return is_plain(top) ? top : 0.0;
}

/* A quad that does not fit the registers. */
vec4 load_rest(row_work w, uint quad)
{
    uvec4 r = row_rest(w, quad);
    return load_quad(w, r, rest_live(r, w.end));
}

void main()
{
    row_work w = row_formed(row_whole(), args.x_offset);
    vec4 v[HELD];
    vec2 rest = vec2(-INFINITY, 0.0);
#ifdef ROW_SPANS
    if (SPAN)
        span_load();
#endif
    if (LONG) { /* while all registers are free */
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            largest most = largest(-INFINITY, 0u);
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                v[k] = load_rest(w, first + k);
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                take_largest(most, v[k]);
            vec2 block = vec2(largest_value(most), 0.0);
            if (is_plain(block.x)) {
                [[unroll]] for (uint k = 0u; k < QUADS; k++)
                    block.y += sum_of(decay(v[k] - block.x));
            }
            rest = join_statistics(rest, block);
        }
    }
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        v[k] = load_quad(w, r, row_live(r, w.end));
    }
    vec2 beside = load_beside(w);
    float tops[BLOCKS], sums[BLOCKS], m = rest.x;
    [[unroll]] for (uint b = 0u; b < BLOCKS; b++) {
        largest most = largest(-INFINITY, 0u);
        [[unroll]] for (uint i = 0u; i < BLOCK_QUADS; i++)
            if (BLOCK_QUADS * b + i < HELD)
                take_largest(most, v[BLOCK_QUADS * b + i]);
        tops[b] = largest_value(most);
        sums[b] = 0.0;
        m = row_larger(m, tops[b]);
        [[unroll]] for (uint i = 0u; i < BLOCK_QUADS; i++) {
            uint k = BLOCK_QUADS * b + i;
            if (k < HELD) {
                vec4 e = decay(v[k] - block_origin(tops[b]));
                sums[b] += sum_of(e);
                if (!KEEPS_X)
                    v[k] = e;
            }
        }
    }
    m = largest_of_lanes(m, w.lane);
    float s = LONG ? rest.y * decay(rest.x - m) : 0.0;
    [[unroll]] for (uint b = 0u; b < BLOCKS; b++) {
        tops[b] = decay(tops[b] - m);
        s += sums[b] * tops[b];
    }
    s = sum_of_lanes(s, w.lane);

#ifdef ROW_VALUES
    row_terms terms = terms_of(m, s, beside);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        store_quad(w, terms, r, row_live(r, w.end), KEEPS_X ? v[k] : v[k] * tops[k / BLOCK_QUADS]);
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                v[k] = load_rest(w, first + k);
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                store_quad(w, terms, r, rest_live(r, w.end), KEEPS_X ? v[k] : decay(v[k] - m));
            }
        }
    }
#else
    finish_row(w, m, s, beside);
#endif
#ifdef ROW_SPANS
    if (SPAN)
        span_store();
#endif
}
