#version 450
/*
 * One pass of a complex transform: ROWS transforms of N points a workgroup, LANES threads each, as
 * Stockham stages whose butterflies lie in registers and change places through shared memory.
 * Stage with `ns` = product of the earlier radices: butterfly b takes x[b + r N/R] times
 * w^(r (b mod ns)), and its output r goes to (b div ns) ns R + (b mod ns) + r ns. A thread has
 * butterflies lane, lane + LANES, .. of every stage. Everything but batch and addresses is
 * specialized.
 *
 * The tensor is [outer, position, inner]. A pass that is the whole transform has SPAN = INNER rows
 * an outer index, row q at position `at`: element q + at SPAN. Of two passes, N0 N1 points, the
 * first has rows q = (n1, inner), reads element q + n0 SPAN, multiplies result k0 by
 * w^(k0 n1) = base[b, n1] * step[r, n1] and writes scratch; the second has rows q = (k0, inner),
 * reads point n1 of them from scratch, and its result k1 is element q + k1 SPAN. In scratch BLOCK
 * rows stand side by side: q div BLOCK, point, q mod BLOCK. The first of three passes has all its
 * results k0 of a column side by side: columns of a transform by two, with INNER times N0 lines.
 *
 * The inverse transform is the forward one with real and imaginary parts exchanged at both ends.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/spectral.h"
#define UNROLL [[unroll]]
#include "spectral/fft_butterfly.glsl"
#include "spectral/fft_composite.glsl"
#include "spectral/fft_real.glsl"

layout(constant_id = 1) const uint N = 16;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint LANES = 1;
layout(constant_id = 4) const uint RADICES = 15; /* 5 bits each, less one; 0 ends the list */
layout(constant_id = 5) const uint SPAN = 1;
layout(constant_id = 6) const uint INNER = 1;
layout(constant_id = 7) const uint FLAGS = 0;
layout(constant_id = 8) const uint GAPS = 0;   /* of exchanges, 5 bits each */
layout(constant_id = 9) const uint PLACES = 1; /* of shared numbers */
layout(constant_id = 10) const uint BLOCK = 1;

layout(push_constant) uniform block { fft_register_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { float x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { vec2 x2[]; };
layout(set = 0, binding = 1) restrict readonly buffer stages { vec2 twiddles[]; };
layout(set = 0, binding = 2) restrict readonly buffer factors { vec2 table[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target1 { float y1[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target2 { vec2 y2[]; };

const bool ALONG = (FLAGS & FFT_ALONG) != 0;
const uint R0 = (RADICES & 31u) + 1u, R1 = (RADICES >> 5 & 31u) + 1u;
const uint R2 = (RADICES >> 10 & 31u) + 1u, R3 = (RADICES >> 15 & 31u) + 1u;
const uint R4 = (RADICES >> 20 & 31u) + 1u;
/* Radices that a pipeline has no use for are left out before functions are put into each other. */
const uint KNOWN = 1u << (R0 - 1) | 1u << (R1 - 1) | 1u << (R2 - 1) | 1u << (R3 - 1) |
                   1u << (R4 - 1);
const uint R_LAST = R4 > 1 ? R4 : R3 > 1 ? R3 : R2 > 1 ? R2 : R1 > 1 ? R1 : R0;
const uint PITCH = PLACES / ROWS;
const uint DEPTH = SPAN / INNER; /* positions apart; of two passes, points of the other */

shared float work[PLACES];

/* Butterfly by butterfly. Loops over it have no jumps, nor functions early returns: drivers would
 * leave them rolled up, and v in memory. */
vec2 v[32];
uint lane, row;       /* of this thread, in the workgroup */
uint outer, q, depth; /* which row of all; q div INNER */
bool busy;

/* Butterflies of a thread, and whether none of them lies beyond the end. */
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

/* Results of the stage that had ns points done. They stand in groups of ns radix, a gap apart, so
 * that those of a thread are equally far apart, and so are its points of the next stage. part: 0
 * the real ones, 1 the imaginary ones. */
void put(uint radix, uint ns, uint gap, uint part)
{
    [[unroll]] for (uint j = 0; j < rounds(radix); j++) {
        uint b = lane + j * LANES, first = b / ns * (ns * radix + gap) + b % ns;
        if (whole(radix) || b < N / radix)
            [[unroll]] for (uint r = 0; r < radix; r++)
                work[place(first + r * ns)] = v[j * radix + r][part];
    }
}

/* Points of the stage that comes. */
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

/* Half of the loads, for one product more and half an ulp. */
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

/* From the stage of `radix` that had ns points done to the next. */
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

/* ---- Ends ---- */

/* Both parts; exchanged for the inverse. */
vec2 read_parts(uint index)
{
    vec2 value = (FLAGS & FFT_IN_PAIRS) != 0 ? x2[index]
                                             : vec2(x1[index], x1[index + args.in_imaginary]);
    return (FLAGS & FFT_IN_SWAP) != 0 ? value.yx : value;
}

/* Bins come exchanged, and so leaves the pair. Those at the ends are real. */
vec2 read_bins(uint index, uint position)
{
    vec2 a = read_parts(index).yx, b = read_parts(index + args.load_limit - 2 * position).yx;
    if (position == 0)
        a.y = b.y = 0;
    return pair_of_bins(a, b, table[position]).yx;
}

vec2 read_point(uint base, uint at)
{
    uint index = base + at * SPAN, position = depth + at * DEPTH;
    vec2 value = vec2(0);
    if ((FLAGS & FFT_FROM_SCRATCH) != 0) {
        value = x2[base + at * BLOCK];
    } else if ((FLAGS & FFT_LOAD_LIMIT) == 0 || position < args.load_limit) {
        value = (FLAGS & FFT_LOAD_BINS) != 0 ? read_bins(index, position) : read_parts(index);
        if ((FLAGS & FFT_LOAD_TABLE) != 0)
            value = complex_product(value, table[args.load_table + position]);
    }
    return value;
}

void load_points()
{
    uint base = args.in_offset + outer * args.in_outer;
    base += (FLAGS & FFT_FROM_SCRATCH) != 0 ? q / BLOCK * (N * BLOCK) + q % BLOCK : q;
    [[unroll]] for (uint j = 0; j < rounds(R0); j++) {
        uint b = lane + j * LANES;
        b = whole(R0) ? b : min(b, N / R0 - 1);
        [[unroll]] for (uint r = 0; r < R0; r++)
            v[j * R0 + r] = read_point(base, b + r * (N / R0));
    }
}

void write_parts(uint index, vec2 value)
{
    if ((FLAGS & FFT_SCALE) != 0)
        value *= args.scale;
    value = (FLAGS & FFT_OUT_SWAP) != 0 ? value.yx : value;
    if ((FLAGS & FFT_OUT_PAIRS) != 0) {
        y2[index] = value;
    } else {
        y1[index] = value.x;
        y1[index + args.out_imaginary] = value.y;
    }
}

void write_point(uint base, uint at, vec2 value)
{
    uint position = depth + at * DEPTH;
    if ((FLAGS & FFT_STORE_LIMIT) == 0 || position < args.store_limit) {
        if ((FLAGS & FFT_STORE_TABLE) != 0)
            value = complex_product(value, table[args.store_table + position]);
        write_parts(base + at * SPAN, value);
    }
}

/* Result k of this row is point `depth` of row (k, q mod INNER) of the next pass. */
uint scratch_place(uint k)
{
    uint next = k * INNER + q % INNER;
    return next / BLOCK * (DEPTH * BLOCK) + depth * BLOCK + next % BLOCK;
}

/* Results b + r ns of butterfly j, times base[b, depth] * step[r, depth]. */
void write_scratch(uint base, uint b, uint j)
{
    const uint ns = N / R_LAST;
    uint first = base + scratch_place(b);
    vec2 w[16];
    w[0] = table[args.store_table + b * DEPTH + depth];
    [[unroll]] for (uint r = 0; r < R_LAST; r++) {
        uint index = first + r * (ns * INNER * DEPTH);
        if (ns * INNER % BLOCK != 0)
            index = base + scratch_place(b + r * ns);
        if (r > 0 && (r < 4 || r % 4 == 0))
            w[r] = table[args.step_table + r * DEPTH + depth];
        if (r > 0 && r % 4 == 0)
            w[r] = complex_product(w[r], w[0]);
        vec2 both = r % 4 == 0 ? w[r] : complex_product(w[r & ~3u], w[r & 3u]);
        y2[index] = complex_product(v[j * R_LAST + r], both);
    }
}

void store_butterfly(uint base, uint b, uint j)
{
    if ((FLAGS & FFT_TO_SCRATCH) != 0)
        write_scratch(base, b, j);
    else
        [[unroll]] for (uint r = 0; r < R_LAST; r++)
            write_point(base + q, b + r * (N / R_LAST), v[j * R_LAST + r]);
}

void store_points()
{
    uint base = args.out_offset + outer * args.out_outer;
    [[unroll]] for (uint j = 0; j < rounds(R_LAST); j++) {
        uint b = lane + j * LANES;
        if (busy && (whole(R_LAST) || b < N / R_LAST))
            store_butterfly(base, b, j);
    }
}

/* ---- Half the spectrum of a real line ---- */

const uint FOLDS = (N / 2 + 1 + LANES - 1) / LANES; /* pairs of bins k, N - k of a thread */

void get_mirrored(uint part)
{
    [[unroll]] for (uint j = 0; j < FOLDS; j++) {
        uint k = min(lane + j * LANES, N / 2);
        v[2 * j][part] = work[place(k)];
        v[2 * j + 1][part] = work[place(k == 0 ? 0 : N - k)];
    }
}

void store_bins()
{
    uint base = args.out_offset + outer * args.out_outer;
    if (R1 > 1)
        barrier();
    put(R_LAST, N / R_LAST, 0, 0);
    barrier();
    get_mirrored(0);
    barrier();
    put(R_LAST, N / R_LAST, 0, 1);
    barrier();
    get_mirrored(1);
    [[unroll]] for (uint j = 0; j < FOLDS; j++) {
        uint k = lane + j * LANES;
        if (busy && k <= N / 2) {
            vec2 w = table[k], a = v[2 * j], b = v[2 * j + 1];
            write_parts(base + k, bin_of_pairs(a, b, w));
            write_parts(base + N - k, bin_of_pairs(b, a, vec2(-w.x, w.y)));
        }
    }
}

void main()
{
    uint thread = gl_LocalInvocationID.x;
    row = ALONG ? thread / LANES : thread % ROWS;
    lane = ALONG ? thread % LANES : thread / ROWS;
    uint index = group_index() * ROWS + row;
    busy = index < args.lines;
    index = min(index, args.lines - 1);
    outer = index / SPAN;
    q = index % SPAN;
    depth = q / INNER;

    load_points();
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
    if ((FLAGS & FFT_STORE_BINS) != 0)
        store_bins();
    else
        store_points();
}
