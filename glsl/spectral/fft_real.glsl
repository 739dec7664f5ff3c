/*
 * Real lines of n = 2h points as transforms of h pairs z[k] = x[2k] + i x[2k+1], with spectrum Z. E
 * and O are the spectra of the even and the odd points, and w = exp(-2 pi i k / n).
 *
 * E[k] = (Z[k] + conj Z[h-k]) / 2, O[k] = -i (Z[k] - conj Z[h-k]) / 2, X[k] = E[k] + w O[k].
 */

/* X[k], from Z[k] and Z[h - k] */
vec2 bin_of_pairs(vec2 a, vec2 b, vec2 w)
{
    vec2 odd = complex_product(vec2(a.x - b.x, a.y + b.y), w);
    return 0.5 * (vec2(a.x + b.x, a.y - b.y) + times_minus_i(odd));
}

/* 2 Z[k], from X[k] and X[h - k] */
vec2 pair_of_bins(vec2 a, vec2 b, vec2 w)
{
    vec2 odd = complex_product(vec2(a.x - b.x, a.y + b.y), vec2(w.x, -w.y));
    return vec2(a.x + b.x, a.y - b.y) - times_minus_i(odd);
}
