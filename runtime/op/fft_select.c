/*
 * Which passes a transform takes, and how a workgroup makes one: the radices of its stages, how
 * many rows share it, how many threads it has and how much shared memory. One buffer is enough
 * where every stage is one butterfly a thread (`single`): all is read before any of it is written.
 * Otherwise there are two.
 */
#include "op/fft.h"

#include <math.h>

#define POINT_BYTES 8

static uint32_t largest_power(uint64_t limit)
{
    uint32_t power = 1;
    while (2 * (uint64_t)power <= limit)
        power *= 2;
    return power;
}

static void push_radix(fft_group *g, uint32_t radix)
{
    g->radices[g->stages++] = (uint8_t)radix;
}

/* 2^bits as radices of at most 2^most, as equal as can be. */
static void push_powers(fft_group *g, uint32_t bits, uint32_t most)
{
    uint32_t stages = (uint32_t)divide_up(bits, most);
    for (uint32_t i = 0; i < stages; i++)
        push_radix(g, 1u << (bits / stages + (i < bits % stages)));
}

/* Software drivers compile for seconds: they share one pipeline and its one size of memory where
 * they can. */
static void choose_radices(const device_profile *p, uint64_t n, fft_group *g)
{
    static const uint32_t odd[] = {13, 11, 7, 5, 3};
    uint32_t bits = 0;
    for (; n % 2 == 0; n /= 2)
        bits++;
    if (!is_smooth(n, 7))
        g->level = FFT_LEVEL_13;
    else if (n > 1 || p->portable)
        g->level = FFT_LEVEL_7;
    push_powers(g, bits, g->level == FFT_LEVEL_2 ? 4 : 3);
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++)
        for (; n % odd[i] == 0; n /= odd[i])
            push_radix(g, odd[i]);
}

/* Butterflies of the stage that has most of them. */
static uint32_t butterflies(const fft_group *g)
{
    uint32_t smallest = g->n;
    for (uint32_t i = 0; i < g->stages; i++)
        smallest = MIN(smallest, g->radices[i]);
    return g->n / smallest;
}

/* Tries `rows` rows; pitch and pad are set where they fit. */
static bool fits(const device_profile *p, fft_group *g, uint32_t rows, bool single, uint32_t most)
{
    uint32_t threads = rows * butterflies(g), room = p->shared_memory_bytes / POINT_BYTES;
    if (single && threads > most)
        return false;
    g->single = single;
    g->rows = rows;
    g->threads = single ? MAX(largest_power(2 * (uint64_t)threads - 1), 64) : p->workgroup_size;
    /* A gap every 8 points, and between rows, spreads strides over the banks. */
    for (g->pad = p->portable ? 31 : 3;; g->pad = 31) {
        g->pitch = g->n + (g->n >> g->pad) + (g->pad < 31);
        uint32_t points = (single ? 1 : 2) * rows * g->pitch;
        uint32_t least = p->portable ? room : 1024;
        g->points = MIN(MAX(largest_power(2 * (uint64_t)points - 1), least), room);
        if (points <= room)
            return true;
        if (g->pad == 31)
            return false;
    }
}

bool fft_group_choose(const device_profile *p, uint64_t n, uint64_t lines, bool across,
                      fft_group *out)
{
    uint32_t most = largest_power(p->max_workgroup_invocations);
    if (n * POINT_BYTES > p->shared_memory_bytes || !is_smooth(n, FFT_SMOOTH))
        return false;
    *out = (fft_group){.n = (uint32_t)n};
    choose_radices(p, n, out);
    uint32_t rows = MAX(p->workgroup_size / butterflies(out), across ? 8 : 1);
    for (rows = (uint32_t)MIN(rows, MAX(lines, 1)); rows > 0; rows /= 2)
        if ((!p->portable && fits(p, out, rows, true, MIN(most, 512))) ||
            fits(p, out, rows, false, most) || fits(p, out, rows, true, most))
            return true;
    return false;
}

static bool holds(const device_profile *p, uint64_t n)
{
    fft_group g;
    return fft_group_choose(p, n, 1, false, &g);
}

/* The most equal pair of factors, the smaller first. */
static bool split_in_two(const device_profile *p, uint64_t length, uint64_t *out)
{
    uint64_t least = length * POINT_BYTES / p->shared_memory_bytes;
    for (uint64_t n = (uint64_t)sqrt((double)length); n > least && n > 1; n--)
        if (length % n == 0 && holds(p, n) && holds(p, length / n)) {
            out[0] = n;
            out[1] = length / n;
            return true;
        }
    return false;
}

static bool split_in_three(const device_profile *p, uint64_t length, uint64_t *out)
{
    for (uint64_t n = (uint64_t)cbrt((double)length) + 1; n > 1; n--)
        if (length % n == 0 && holds(p, n) && split_in_two(p, length / n, out + 1)) {
            out[0] = n;
            return true;
        }
    return false;
}

bool fft_split_choose(const device_profile *p, uint64_t length, fft_split *out)
{
    *out = (fft_split){.length = length, .factors = {length}, .count = 1};
    if (!is_smooth(length, FFT_SMOOTH))
        return false;
    if (holds(p, length))
        return true;
    out->count = 2;
    if (split_in_two(p, length, out->factors))
        return true;
    out->count = 3;
    return split_in_three(p, length, out->factors);
}
