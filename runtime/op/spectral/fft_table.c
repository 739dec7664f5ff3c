/*
 * Tables of roots of unity, w(a, n) = exp(-2 pi i a / n). They hold the twiddles of stages and
 * those between passes. They are computed in double precision and rounded once.
 */
#include "op/spectral/fft.h"

rlxvk_status fft_table_create(uint64_t capacity, fft_table *out)
{
    *out = (fft_table){memory_allocate(capacity * 2 * sizeof(float)), 0, capacity};
    return out->pairs ? RLXVK_OK : status_fail_memory("twiddles");
}

void fft_table_push(fft_table *t, complex_value v)
{
    t->pairs[2 * t->count] = (float)v.re;
    t->pairs[2 * t->count++ + 1] = (float)v.im;
}

rlxvk_status fft_table_finish(lowering *l, fft_table *t, operand *out)
{
    return lower_constant(l, t->pairs, t->count * 2 * sizeof(float), out);
}

rlxvk_status fft_stage_table(lowering *l, uint32_t n, const uint8_t *radices, uint32_t stages,
                             operand *out)
{
    fft_table t = {0};
    uint64_t ns = 1;
    rlxvk_status status;
    TRY(fft_table_create(n, &t));
    fft_table_push(&t, (complex_value){1, 0});
    for (uint32_t i = 0; i < stages; ns *= radices[i++])
        for (uint64_t at = ns; at < ns * radices[i]; at++)
            fft_table_push(&t, fft_unit_root(at / ns * (at % ns), ns * radices[i]));
    TRY(fft_table_finish(l, &t, out));
error:
    memory_free(t.pairs);
    return status;
}

uint32_t fft_split_bits(uint64_t span)
{
    uint32_t bits = 0;
    while (1ull << (2 * bits) < span)
        bits++;
    return bits;
}

uint64_t fft_split_entries(uint64_t span)
{
    return (1ull << fft_split_bits(span)) + (span >> fft_split_bits(span)) + 1;
}

uint32_t fft_push_split(fft_table *t, uint64_t span)
{
    uint32_t first = (uint32_t)t->count, bits = fft_split_bits(span);
    for (uint64_t i = 0; i < 1ull << bits; i++)
        fft_table_push(t, fft_unit_root(i, span));
    for (uint64_t i = 0; i <= span >> bits; i++)
        fft_table_push(t, fft_unit_root(i << bits, span));
    return first;
}

uint32_t fft_push_grid(fft_table *t, uint64_t rows, uint64_t columns, uint64_t span)
{
    uint32_t first = (uint32_t)t->count;
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t k = 0; k < columns; k++)
            fft_table_push(t, fft_unit_root(i * k, span));
    return first;
}
