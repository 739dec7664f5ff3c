#version 450
/*
 * Convolution as an implicit matrix product (tile.glsl): M channels of a group times N positions,
 * summed over K = channel * taps + tap. For each row of a step, STEP invocations compute one step
 * ahead where it is in w, in the window and in x. So the other invocations do not count taps. If w
 * was permuted so that a step is one tap of STEP channels, these values are the same for all rows.
 *
 * In the forward pass, the weights of a channel lie along K and are read as quads. For windows of
 * one cell, x is read as quads, too; for the gradients of their weights, x is read as quads along
 * K.
 *
 * A tap outside x counts as 0 here, but 0 times an infinite weight is NaN. So if a tile contains a
 * weight that is not finite, it is summed again, one element at a time, without those taps.
 *
 * The grid has tiles of channels, tiles of positions, phases, groups and splits of K, folded into
 * one index. With splits, y is [splits, y].
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "conv/conv.glsl"
#define TILE_CONSTANT 6
#include "lib/tile.glsl"

layout(constant_id = 10) const uint QUADS = 0;  /* bits of CONV_QUADS_... */
layout(constant_id = 11) const uint SOURCE = 0; /* CONV_X_... */

const uint SHARE_W = TILE_M * STEP / 4 / THREADS; /* quads along K that an invocation loads */
const uint SHARE_X = TILE_N * STEP / THREADS;     /* elements of one column (or, as quads, four);
                                                   * THREADS is a multiple of TILE_N */
const uint LINES_X = SOURCE == CONV_X_QUADS ? THREADS * 4 / TILE_N : THREADS / TILE_N;

/* For each row of K: the position of its tap in the window (with BITS, the bits of the tap in z),
 * then its offset in x including the plane. */
shared ivec4 row_place[STEP];
shared uint row_weight[STEP]; /* from the channel's first weight on */
shared uint unusual;

uvec3 split_tap(uint at)
{
    uint line = at / max(tap_count.z, 1), plane = 0;
    if (DEPTH != 0)
        plane = line / max(tap_count.y, 1);
    return uvec3(plane, line - plane * tap_count.y, at - line * tap_count.z);
}

/* The channel and tap of row k of K. */
uint split_row(uint k, out uvec3 tap)
{
    uint taps = max(volume(tap_count), 1), unit = SOURCE == CONV_X_TAPS ? STEP : 1, at = k / unit;
    uint channel = at / taps;
    tap = split_tap(at - channel * taps);
    return channel * unit + k % unit;
}

/* Registers of an invocation: quads of w and of x, and the row values of the next step. */
vec4 next_w[SHARE_W];
vec4 next_x[SHARE_X / 4];
ivec4 next_place;
uint next_weight;
uint row_channel, hop_channels; /* of the next row; and the step from there */
uvec3 row_tap, hop;
uint w_at[SHARE_W]; /* first weight of a channel */
uint last;          /* end of K, of this split */
uint exponents;     /* largest exponent bits seen in w */
uint x_along[SHARE_X / 4]; /* quads along K: first element of a column */
int x_at;           /* start of the column's window in the first plane of x, perhaps outside */
ivec3 origin;
uint outside;       /* bits of the taps outside x: one for each coordinate of each axis */

/* The bits of one tap. */
int tap_bits(uvec3 tap)
{
    uint bits = 1u << tap.z | 1u << (tap_count.z + tap.y);
    return int(DEPTH != 0 ? bits | 1u << (tap_count.z + tap_count.y + tap.x) : bits);
}

uint outside_bits()
{
    uvec3 size = in_size();
    uint bits = 1u << 31;
    [[unroll]] for (uint axis = DEPTH != 0 ? 0 : 1; axis < 3; axis++) {
        uint first = axis == 2 ? 0 : axis == 1 ? tap_count.z : tap_count.z + tap_count.y;
        [[dont_unroll]] for (uint t = 0; t < tap_count[axis]; t++)
            if (uint(origin[axis] + int(t) * shift[axis]) >= size[axis])
                bits |= 1u << (first + t);
    }
    return bits;
}

/* Computes the values of row k. Rows past the end are placed outside every window. */
void place_row(uint k)
{
    ivec3 at = ivec3(row_tap) * shift, size = ivec3(in_size());
    int plane = int(row_channel * x_c_stride());
    next_place = ivec4(at, plane + (at.x * size.y + at.y) * size.z + at.z);
    next_weight = row_channel * w_c_stride() + tap_weight(row_tap);
    if (SOURCE == CONV_X_BITS)
        next_place.z = k < last ? tap_bits(row_tap) : int(1u << 31);
    else if (k >= last)
        next_place.z = 1 << 30;
}

/* Advances by one step. This is an addition of numbers whose digits count the taps along the
 * axes. */
void advance_row()
{
    row_tap += hop;
    row_channel += hop_channels;
    if (row_tap.z >= tap_count.z) {
        row_tap.z -= tap_count.z;
        row_tap.y++;
    }
    if (row_tap.y >= tap_count.y) {
        row_tap.y -= tap_count.y;
        row_tap.x++;
    }
    if (row_tap.x >= tap_count.x) {
        row_tap.x -= tap_count.x;
        row_channel += SOURCE == CONV_X_TAPS ? STEP : 1;
    }
}

void store_row()
{
    if (gl_LocalInvocationID.x < STEP) {
        row_place[gl_LocalInvocationID.x] = next_place;
        row_weight[gl_LocalInvocationID.x] = next_weight;
    }
}

/* The channel and the row of K, within the tile, of the i-th quad of w. */
uvec2 place_w(uint i)
{
    uint lane = gl_LocalInvocationID.x;
    return uvec2(lane / (STEP / 4) + i * (THREADS / (STEP / 4)), lane % (STEP / 4) * 4);
}

vec4 fetch_w(uint i, uint k0)
{
    uint row = place_w(i).y, k = k0 + row;
    if ((QUADS & CONV_QUADS_W) != 0)
        return k < last ? w_quads[(w_at[i] + (SWAPPED != 0 ? row_weight[row] : k)) >> 2]
                        : vec4(0.0);
    vec4 v = vec4(0.0);
    [[unroll]] for (uint c = 0; c < 4; c++)
        if (k + c < last)
            v[c] = w[w_at[i] + (TRANSPOSED != 0 || SWAPPED != 0 ? row_weight[row + c] : k + c)];
    return v;
}

/* The column of x in the tile that the invocation loads (or its first one), and the first row of
 * K. */
uvec2 place_x()
{
    uint across = THREADS / LINES_X, lane = gl_LocalInvocationID.x;
    return uvec2(lane % across * (TILE_N / across), lane / across);
}

float fetch_x(uint line)
{
    ivec4 place = row_place[line];
    if (SOURCE == CONV_X_BITS)
        return (uint(place.z) & outside) == 0 ? x[x_at + place.w] : 0.0;
    uvec3 at = uvec3(origin + place.xyz), size = in_size();
    bool real = at.z < size.z && at.y < size.y && (DEPTH == 0 || at.x < size.x);
    return real ? x[x_at + place.w] : 0.0;
}

void fetch_quads(uint k)
{
    uint line = k + place_x().y, plane = volume(in_size());
    [[unroll]] for (uint i = 0; i < SHARE_X / 4; i++) {
        uint row = line + i * LINES_X;
        next_x[i] = row < last ? x_quads[(uint(x_at) + row * plane) >> 2] : vec4(0.0);
    }
}

/* Loads one tap of STEP channels, and advances to the next tap. */
void fetch_tap()
{
    uvec3 at = uvec3(origin + ivec3(row_tap) * shift), size = in_size();
    bool real = at.z < size.z && at.y < size.y && (DEPTH == 0 || at.x < size.x);
    ivec3 way = ivec3(row_tap) * shift;
    int plane = int(volume(size)), from = x_at + int(row_channel + place_x().y) * plane;
    from += (way.x * int(size.y) + way.y) * int(size.z) + way.z;
    [[unroll]] for (uint i = 0; i < SHARE_X; i++)
        next_x[i / 4][i % 4] = real ? x[from + int(i * LINES_X) * plane] : 0.0;
    advance_row();
}

void fetch_along(uint k)
{
    [[unroll]] for (uint i = 0; i < SHARE_X / 4; i++) {
        uint row = place_w(i).y;
        next_x[i] = k + row < last ? x_quads[(x_along[i] + uint(row_place[row].w)) >> 2]
                                   : vec4(0.0);
    }
}

void fetch(uint k)
{
    [[unroll]] for (uint i = 0; i < SHARE_W; i++)
        next_w[i] = fetch_w(i, k);
    if (SOURCE == CONV_X_QUADS) {
        fetch_quads(k);
        return;
    }
    if (SOURCE == CONV_X_TAPS) {
        fetch_tap();
        return;
    }
    uint line = place_x().y;
    if (SOURCE == CONV_X_ALONG)
        fetch_along(k);
    else
        [[unroll]] for (uint i = 0; i < SHARE_X; i++)
            next_x[i / 4][i % 4] = fetch_x(line + i * LINES_X);
    if (gl_LocalInvocationID.x < STEP) {
        advance_row();
        place_row(k + STEP + gl_LocalInvocationID.x);
    }
}

void store()
{
    uvec2 at_x = place_x();
    [[unroll]] for (uint i = 0; i < SHARE_W; i++) {
        uvec2 at = place_w(i);
        uvec4 e = floatBitsToUint(next_w[i]) & 0x7f800000u;
        exponents = max(exponents, max(max(e.x, e.y), max(e.z, e.w)));
        store_along_a(at.x, at.y, next_w[i]);
    }
    if (SOURCE == CONV_X_QUADS) {
        [[unroll]] for (uint i = 0; i < SHARE_X / 4; i++)
            store_across_b(at_x.x, at_x.y + i * LINES_X, next_x[i]);
        return;
    }
    if (SOURCE == CONV_X_ALONG)
        [[unroll]] for (uint i = 0; i < SHARE_X / 4; i++)
            store_along_b(place_w(i).x, place_w(i).y, next_x[i]);
    else
        [[unroll]] for (uint i = 0; i < SHARE_X; i++)
            store_one_b(at_x.x, at_x.y + i * LINES_X, next_x[i / 4][i % 4]);
    if (SOURCE != CONV_X_TAPS)
        store_row();
}

/* Channels and positions past the last one repeat it. Four positions are all inside or all
 * outside. */
void start(uint group, uint m0, uint n0, uint k0)
{
    uvec3 place;
    uint n = min(n0 + place_x().x, args.positions - (SOURCE == CONV_X_QUADS ? 4 : 1));
    uint x_first = x_start(locate(n, place), group);
    ivec3 size = ivec3(in_size());
    origin = window_origin(place);
    x_at = int(x_first) + (origin.x * size.y + origin.y) * size.z + origin.z;
    [[unroll]] for (uint i = 0; i < SHARE_W; i++)
        w_at[i] = w_start(group, min(m0 + place_w(i).x, args.m - 1));
    exponents = 0;
    if (SOURCE == CONV_X_QUADS)
        return;
    if (SOURCE == CONV_X_ALONG)
        [[unroll]] for (uint i = 0; i < SHARE_X / 4; i++)
            x_along[i] = x_start(locate(min(n0 + place_w(i).x, args.positions - 1), place), group);
    if (SOURCE == CONV_X_BITS)
        outside = outside_bits();
    hop_channels = split_row(STEP, hop);
    row_channel = split_row(SOURCE == CONV_X_TAPS ? k0 : k0 + gl_LocalInvocationID.x, row_tap);
    if (SOURCE == CONV_X_TAPS)
        return;
    place_row(k0 + gl_LocalInvocationID.x);
    store_row();
}

/* Computes one element of y tap by tap. */
float careful_sum(uint group, uint m, uint n, uint k_begin, uint k_end)
{
    uvec3 place;
    uint x_first = x_start(locate(n, place), group), w_first = w_start(group, m);
    ivec3 window = window_origin(place);
    float sum = 0.0;
    [[dont_unroll]] for (uint k = k_begin; k < k_end; k++) {
        uvec3 tap;
        uint channel = split_row(k, tap), cell;
        if (source_cell(window + ivec3(tap) * shift, cell))
            sum = fma(w[w_first + (TRANSPOSED != 0 || SWAPPED != 0
                                       ? channel * w_c_stride() + tap_weight(tap)
                                       : k)],
                      x[x_first + channel * x_c_stride() + cell], sum);
    }
    return sum;
}

/* The index of position n in y, from the start of a channel's part. Returns false if it is outside
 * y. */
bool target_position(uint n, uint group, out uint at)
{
    bool real = n < args.positions;
    n = min(n, args.positions - 1);
    if (TRANSPOSED == 0) {
        uint cells = volume(out_size()), image = divide(n, cells, args.divide[0]);
        at = y_start(image, group) + n - image * cells;
        return real;
    }
    uvec3 place;
    uint cell, image = locate(n, place);
    real = target_cell(place, cell) && real;
    at = y_start(image, group) + cell;
    return real;
}

/* The channel and position of element i of the register block. */
uvec2 part_place(uvec2 first, uint i)
{
    uint row = i / REG_N, column = i % REG_N;
    return first + uvec2(row / 4 * (THREADS_M * 4) + row % 4,
                         column / 4 * (THREADS_N * 4) + column % 4);
}

void write_one(uint at, float value, vec2 terms)
{
    y[at] = finish(value, terms, at);
}

/* A loop that is not unrolled, because its code is long. */
void write_carefully(uint group, uvec2 first, uint k_begin, uint y_base)
{
    [[dont_unroll]] for (uint i = 0; i < REG_M * REG_N; i++) {
        uvec2 at = part_place(first, i);
        uint y_at;
        if (at.x < args.m && target_position(at.y, group, y_at))
            write_one(y_base + y_at + at.x * y_m_stride(),
                      careful_sum(group, at.x, at.y, k_begin, last), terms_of(group, at.x));
    }
}

/* Writes four positions of channel m. at: their indices from the start of the channel's part. */
void write_quad(uint group, uint m, uvec4 at, bvec4 real, vec4 value)
{
    if (m >= args.m)
        return;
    vec2 terms = terms_of(group, m);
    at += m * y_m_stride();
    if ((QUADS & CONV_QUADS_Y) != 0 && real.x)
        y_quads[at.x >> 2] = finish_quad(value, terms, at.x);
    else if ((QUADS & CONV_QUADS_Y) == 0)
        [[unroll]] for (uint e = 0; e < 4; e++)
            if (real[e])
                write_one(at[e], value[e], terms);
}

void write_sums(uint group, uvec2 first, uint y_base)
{
    [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
        uint n = part_place(first, j * 4).y;
        uvec4 at;
        bvec4 real;
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uint place;
            real[e] = target_position(n + e, group, place);
            at[e] = y_base + place;
        }
        /* A loop over a copy, because `sum` must stay in registers. */
        if (LONG_EPILOGUE) {
            vec4 copy[REG_M];
            [[unroll]] for (uint i = 0; i < REG_M; i++)
                copy[i] = sum[i * PARTS_N + j];
            [[dont_unroll]] for (uint i = 0; i < REG_M; i++)
                write_quad(group, part_place(first, i * REG_N).x, at, real, copy[i]);
        } else
            [[unroll]] for (uint i = 0; i < REG_M; i++)
                write_quad(group, part_place(first, i * REG_N).x, at, real,
                           sum[i * PARTS_N + j]);
    }
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M;
    uint tiles_n = (args.positions + TILE_N - 1) / TILE_N;
    uint index = group_index(), rest = index / tiles_m;
    uint m0 = index % tiles_m * TILE_M, n0 = rest % tiles_n * TILE_N;
    rest /= tiles_n;
    uint phases = phase_count(), phase_index = rest % phases;
    rest /= phases;
    uint group = rest % args.groups, split = rest / args.groups;
    if (split >= args.splits)
        return;
    enter_phase(phase_index);
    uint k_total = args.channels * volume(tap_count), k_begin = min(k_total, split * args.k_slice);
    last = min(k_total, k_begin + args.k_slice);
    start(group, m0, n0, k_begin);
    if (gl_LocalInvocationID.x == 0)
        unusual = 0;
    barrier();
    tile_product(k_begin, last);
    if (exponents == 0x7f800000u)
        unusual = 1;
    barrier();
    uint y_base = split * (image_count() * args.groups * args.m * volume(out_size()));
    uint first_m = m0 + tile_thread().x * 4, first_n = n0 + tile_thread().y * 4;
    if (unusual != 0)
        write_carefully(group, uvec2(first_m, first_n), k_begin, y_base);
    else
        write_sums(group, uvec2(first_m, first_n), y_base);
}
