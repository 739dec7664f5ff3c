/*
 * A tile: ROWS transforms of N points in a workgroup, LANES threads each. They are Stockham stages
 * whose butterflies stay in registers and exchange points through shared memory. `ns` is the
 * product of the radices of earlier stages. Butterfly b of a stage takes x[b + r N/R] times w^(r (b
 * mod ns)). Its output r goes to (b div ns) ns R + (b mod ns) + r ns. A thread has butterflies
 * lane, lane + LANES, .. of every stage. Everything is specialized.
 *
 * The includer declares ALONG: whether neighbouring threads take neighbouring points instead of
 * rows. It also declares the stages' table of `twiddles` (fft_stage_table). It fills v with points
 * b + r N/R0, and transform_row replaces them by bins b + r N/R_LAST.
 */
#define UNROLL [[unroll]]
#include "spectral/fft_butterfly.glsl"
#include "spectral/fft_composite.glsl"

layout(constant_id = 1) const uint N = 16;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint LANES = 1;
layout(constant_id = 4) const uint RADICES = 15; /* 5 bits each, minus one; 0 ends the list */
layout(constant_id = 5) const uint GAPS = 0;     /* of exchanges, 5 bits each */
layout(constant_id = 6) const uint PLACES = 1;   /* of shared floats */

const uint R0 = (RADICES & 31u) + 1u, R1 = (RADICES >> 5 & 31u) + 1u;
const uint R2 = (RADICES >> 10 & 31u) + 1u, R3 = (RADICES >> 15 & 31u) + 1u;
const uint R4 = (RADICES >> 20 & 31u) + 1u;
/* Radices that a pipeline does not need are removed before functions are inlined. */
const uint KNOWN = 1u << (R0 - 1) | 1u << (R1 - 1) | 1u << (R2 - 1) | 1u << (R3 - 1) |
                   1u << (R4 - 1);
const uint R_LAST = R4 > 1 ? R4 : R3 > 1 ? R3 : R2 > 1 ? R2 : R1 > 1 ? R1 : R0;
const uint PITCH = PLACES / ROWS;

shared float work[PLACES];

/* One butterfly after the other. Loops over v have no jumps, and functions no early returns.
 * Otherwise drivers would not unroll them, and would keep v in memory. */
vec2 v[32];
uint lane, row; /* of this thread, in the workgroup */

/* Butterflies of a thread, and whether all of them exist. */
uint rounds(uint radix)
{
    return (N / radix + LANES - 1) / LANES;
}
bool whole(uint radix)
{
    return N / radix % LANES == 0;
}

#define TRANSFORM(R)                                                                               \
    if ((KNOWN >> (R - 1) & 1u) != 0 && radix == R)                                                \
        [[unroll]] for (uint j = 0; j < rounds(R); j++) {                                          \
            vec2 u[R];                                                                             \
            [[unroll]] for (uint r = 0; r < R; r++)                                                \
                u[r] = v[j * R + r];                                                               \
            transform##R(u);                                                                       \
            [[unroll]] for (uint r = 0; r < R; r++)                                                \
                v[j * R + r] = u[r];                                                               \
        }

void transform(uint radix)
{
    TRANSFORM(2)
    TRANSFORM(3)
    TRANSFORM(4)
    TRANSFORM(5)
    TRANSFORM(6)
    TRANSFORM(7)
    TRANSFORM(8)
    TRANSFORM(9)
    TRANSFORM(10)
    TRANSFORM(11)
    TRANSFORM(12)
    TRANSFORM(13)
    TRANSFORM(14)
    TRANSFORM(15)
    TRANSFORM(16)
}

/* ---- Shared memory ---- */

uint place(uint at)
{
    return ALONG ? at + row * PITCH : at * ROWS + row;
}

/*
 * Writes the results of the stage that had ns points done. They are in groups of ns radix, with a
 * gap between groups. Therefore a thread's results are equally spaced, and so are its points of the
 * next stage. part is 0 for the real parts and 1 for the imaginary ones.
 */
void put(uint radix, uint ns, uint gap, uint part)
{
    [[unroll]] for (uint j = 0; j < rounds(radix); j++) {
        uint b = lane + j * LANES, first = b / ns * (ns * radix + gap) + b % ns;
        if (whole(radix) || b < N / radix)
            [[unroll]] for (uint r = 0; r < radix; r++)
                work[place(first + r * ns)] = v[j * radix + r][part];
    }
}

/* Reads the points of the next stage. */
void get(uint radix, uint group, uint gap, uint part)
{
    uint step = N / radix / group * (group + gap);
    [[unroll]] for (uint j = 0; j < rounds(radix); j++) {
        uint b = lane + j * LANES;
        b = whole(radix) ? b : min(b, N / radix - 1);
        b += b / group * gap;
        [[unroll]] for (uint r = 0; r < radix; r++)
            v[j * radix + r][part] = work[place(b + r * step)];
    }
}

/* Computes most factors as a product of two. This halves the loads, and costs one more product and
 * half an ulp. */
void twiddle(uint radix, uint ns)
{
    [[unroll]] for (uint j = 0; j < rounds(radix); j++) {
        uint low = (lane + j * LANES) % ns;
        vec2 w[16];
        [[unroll]] for (uint r = 1; r < radix; r++) {
            if (r < 4 || r % 4 == 0)
                w[r] = twiddles[r * ns + low];
            else
                w[r] = complex_product(w[r & ~3u], w[r & 3u]);
            v[j * radix + r] = complex_product(v[j * radix + r], w[r]);
        }
    }
}

/* Goes from the stage of `radix`, which had ns points done, to the next one. */
void exchange(uint radix, uint ns, uint gap, uint next)
{
    if (ns > 1)
        barrier();
    put(radix, ns, gap, 0);
    barrier();
    get(next, ns * radix, gap, 0);
    barrier();
    put(radix, ns, gap, 1);
    barrier();
    get(next, ns * radix, gap, 1);
    twiddle(next, ns * radix);
}

void transform_row()
{
    transform(R0);
    if (R1 > 1) {
        exchange(R0, 1, GAPS & 31u, R1);
        transform(R1);
    }
    if (R2 > 1) {
        exchange(R1, R0, GAPS >> 5 & 31u, R2);
        transform(R2);
    }
    if (R3 > 1) {
        exchange(R2, R0 * R1, GAPS >> 10 & 31u, R3);
        transform(R3);
    }
    if (R4 > 1) {
        exchange(R3, R0 * R1 * R2, GAPS >> 15 & 31u, R4);
        transform(R4);
    }
}
