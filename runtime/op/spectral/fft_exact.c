/*
 * The discrete Fourier transform in double precision, for references and tables. It decimates in
 * time by the smallest prime factor. A prime length is summed directly. Above DIRECT_LIMIT it
 * becomes a convolution whose length is a power of two (Bluestein): X[k] = c[k] sum over n of (x[n]
 * c[n]) conj c[k - n], with c[n] = exp(-pi i n^2 / N).
 */
#include "op/spectral/fft.h"
#include "base/numeric.h"

#include <math.h>
#include <string.h>

#define DIRECT_LIMIT 61

complex_value fft_unit_root(uint64_t numerator, uint64_t denominator)
{
    uint64_t eighths = 8 * (numerator % denominator);
    uint64_t octant = eighths / denominator, rest = eighths % denominator;
    /* The angle within an octant is measured from the nearer axis, so that symmetric points are
     * exactly symmetric. */
    uint64_t inside = octant & 1 ? denominator - rest : rest;
    double angle = acos(-1.0) / 4 * (double)inside / (double)denominator;
    double c = numeric_cos(angle), s = numeric_sin(angle);
    const complex_value points[] = {{c, -s}, {s, -c}, {-s, -c}, {-c, -s},
                                    {-c, s}, {-s, c}, {s, c},   {c, s}};
    return points[octant];
}

bool fft_is_smooth(uint64_t n, uint64_t largest)
{
    for (uint64_t p = 2; p <= largest && n > 1; p++)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

/* The least `odd` * 2^e, e >= 0, that is >= n; UINT64_MAX if it does not fit. */
static uint64_t doubled_to(uint64_t odd, uint64_t n)
{
    while (odd < n)
        if (!size_multiply(odd, 2, &odd))
            return UINT64_MAX;
    return odd;
}

/* Tries all odd smooth lengths below n, and the first of n or more. */
uint64_t fft_next_smooth(uint64_t n)
{
    uint64_t best = UINT64_MAX; /* 3 * 5 * 17 * ..., not smooth */
    bool seven = true, five, three;
    for (uint64_t p7 = 1; seven; seven = p7 < n && size_multiply(p7, 7, &p7)) {
        five = true;
        for (uint64_t p5 = p7; five; five = p5 < n && size_multiply(p5, 5, &p5)) {
            three = true;
            for (uint64_t p3 = p5; three; three = p3 < n && size_multiply(p3, 3, &p3))
                best = MIN(best, doubled_to(p3, n));
        }
    }
    return best == UINT64_MAX ? 0 : best;
}

static complex_value product(complex_value a, complex_value b)
{
    return (complex_value){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static uint64_t smallest_factor(uint64_t n)
{
    for (uint64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static void sum_directly(complex_value *x, uint64_t n)
{
    complex_value roots[DIRECT_LIMIT], in[DIRECT_LIMIT];
    for (uint64_t i = 0; i < n; i++)
        roots[i] = fft_unit_root(i, n);
    memcpy(in, x, n * sizeof *x);
    for (uint64_t k = 0; k < n; k++) {
        x[k] = (complex_value){0, 0};
        for (uint64_t i = 0; i < n; i++) {
            complex_value term = product(in[i], roots[i * k % n]);
            x[k].re += term.re;
            x[k].im += term.im;
        }
    }
}

static complex_value chirp(uint64_t i, uint64_t n)
{
    return fft_unit_root(i * i % (2 * n), 2 * n);
}

static complex_value conjugate(complex_value a)
{
    return (complex_value){a.re, -a.im};
}

static rlxvk_status convolve(complex_value *x, uint64_t n)
{
    uint64_t m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    complex_value *a = memory_zeroed(m, sizeof *a), *b = memory_zeroed(m, sizeof *b);
    rlxvk_status status;
    TRY(a && b ? RLXVK_OK : status_fail_memory("transform"));
    for (uint64_t i = 0; i < n; i++) {
        a[i] = product(x[i], chirp(i, n));
        b[i] = b[(m - i) % m] = conjugate(chirp(i, n));
    }
    TRY(fft_exact(a, m));
    TRY(fft_exact(b, m));
    for (uint64_t i = 0; i < m; i++)
        a[i] = conjugate(product(a[i], b[i]));
    TRY(fft_exact(a, m));
    for (uint64_t k = 0; k < n; k++) {
        complex_value sum = {a[k].re / (double)m, -a[k].im / (double)m};
        x[k] = product(sum, chirp(k, n));
    }
error:
    memory_free(a);
    memory_free(b);
    return status;
}

static rlxvk_status transform_prime(complex_value *x, uint64_t n)
{
    if (n > DIRECT_LIMIT)
        return convolve(x, n);
    sum_directly(x, n);
    return RLXVK_OK;
}

typedef struct recursion {
    const complex_value *roots; /* of the whole length */
    uint64_t length;
    complex_value *column; /* as long as the largest prime factor */
} recursion;

/* out[0 .. n) = transform of in[0], in[stride], ..., with stride = length / n. */
static rlxvk_status recurse(const recursion *r, const complex_value *in, uint64_t n,
                            complex_value *out)
{
    uint64_t p = smallest_factor(n), m = n / p, stride = r->length / n;
    rlxvk_status status = RLXVK_OK;
    if (n == 1)
        out[0] = in[0];
    for (uint64_t q = 0; q < p && n > 1; q++)
        TRY(recurse(r, in + q * stride, m, out + q * m));
    for (uint64_t k = 0; k < m && n > 1; k++) {
        for (uint64_t q = 0; q < p; q++)
            r->column[q] = product(out[q * m + k], r->roots[q * k * stride % r->length]);
        TRY(transform_prime(r->column, p));
        for (uint64_t q = 0; q < p; q++)
            out[q * m + k] = r->column[q];
    }
error:
    return status;
}

rlxvk_status fft_exact(complex_value *x, uint64_t n)
{
    complex_value *memory = memory_allocate(3 * n * sizeof *memory);
    if (!memory)
        return status_fail_memory("transform");
    complex_value *roots = memory + n;
    recursion r = {roots, n, memory + 2 * n};
    memcpy(memory, x, n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        roots[i] = fft_unit_root(i, n);
    rlxvk_status status = recurse(&r, memory, n, x);
    memory_free(memory);
    return status;
}
