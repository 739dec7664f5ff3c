#version 450
/*
 * One pass of a complex FFT, as a tile of rows (see fft_tile.glsl). Everything except batch and
 * addresses is specialized.
 *
 * The tensor is [outer, position, inner]. Its element (position p, inner i) has index p INNER + i.
 *
 * - One pass: the whole transform. Each outer index has SPAN = INNER rows. Point `at` of row q is
 *   element q + at SPAN.
 * - Two passes, N0 N1 points: the rows of the first are q = (n1, inner), and it reads element q +
 *   n0 SPAN. It multiplies result k0 by w^(k0 n1) = base[b, n1] * step[r, n1] and writes it to
 *   scratch. The rows of the second are q = (k0, inner). It reads their point n1 from scratch, and
 *   its result k1 is element q + k1 SPAN.
 * - Three passes: the first writes all results k0 of a column side by side. These are the columns
 *   of a transform by two passes, with INNER times N0 lines.
 *
 * In scratch, BLOCK rows are interleaved: the order is q div BLOCK, point, q mod BLOCK. The inverse
 * transform is the forward one with real and imaginary parts exchanged at both ends.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/spectral.h"

layout(constant_id = 7) const uint SPAN = 1;
layout(constant_id = 8) const uint INNER = 1;
layout(constant_id = 9) const uint FLAGS = 0;
layout(constant_id = 10) const uint BLOCK = 1;

layout(push_constant) uniform block { fft_register_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { float x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { vec2 x2[]; };
layout(set = 0, binding = 1) restrict readonly buffer stages { vec2 twiddles[]; };
layout(set = 0, binding = 2) restrict readonly buffer factors { vec2 table[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target1 { float y1[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target2 { vec2 y2[]; };

const bool ALONG = (FLAGS & FFT_ALONG) != 0;
const uint DEPTH = SPAN / INNER; /* distance of positions; with two passes, points of the other */

#include "spectral/fft_tile.glsl"
#include "spectral/fft_real.glsl"

uint outer, q, depth; /* indices of the row; depth = q div INNER */
bool busy;

/* ---- Ends ---- */

/* Both parts, exchanged for the inverse. */
vec2 read_parts(uint index)
{
    vec2 value = (FLAGS & FFT_IN_PAIRS) != 0 ? x2[index]
                                             : vec2(x1[index], x1[index + args.in_imaginary]);
    return (FLAGS & FFT_IN_SWAP) != 0 ? value.yx : value;
}

/* The bins' parts are exchanged, and so are those of the result. The first and the last bin are
 * real. */
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

/* Writes results b + r ns of butterfly j, times base[b, depth] * step[r, depth]. */
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
    transform_row();
    if ((FLAGS & FFT_STORE_BINS) != 0)
        store_bins();
    else
        store_points();
}
