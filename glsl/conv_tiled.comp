#version 450
/*
 * Convolution as an implicit matrix product: M channels of a group times N positions, summed over
 * K = channel * taps + tap. A workgroup makes a TILE_M x TILE_N tile, an invocation REG_M x REG_N
 * of it in registers, in interleaved quads. Steps of 16 along K: what a step's rows mean (where in
 * w, how far into the window, which plane of x) is worked out by 16 invocations one step ahead, so
 * that no other divides; the next step's elements are read while this one is multiplied.
 *
 * A tap outside x counts as 0 here, and 0 times an infinite weight is NaN: a tile that met a weight
 * that is not finite is summed again, one element at a time, skipping those taps. Grid: tiles of
 * channels, tiles of positions, phases, groups, splits of K, folded; with splits y is [splits, y].
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "conv.glsl"

layout(constant_id = 6) const uint TILE_M = 64;
layout(constant_id = 7) const uint TILE_N = 64;
layout(constant_id = 8) const uint QUADS = 0; /* y may be written four at a time */

const uint STEP = 16;
const uint THREADS_M = TILE_M / REG_M, THREADS_N = TILE_N / REG_N;
const uint THREADS = THREADS_M * THREADS_N; /* a multiple of TILE_N and of STEP */
const uint LOADS_W = TILE_M * STEP / THREADS, LOADS_X = TILE_N * STEP / THREADS;
const uint PITCH_W = TILE_M / 4 + 1, PITCH_X = TILE_N / 4 + 1;
const uint PARTS_M = REG_M / 4, PARTS_N = REG_N / 4;

shared vec4 tile_w[STEP * PITCH_W];
shared vec4 tile_x[STEP * PITCH_X];
shared ivec4 row_place[STEP]; /* shift into the window, then the plane's first cell */
shared uint row_weight[STEP]; /* from the channel's first weight */
shared uint unusual;

/* Channel and tap of row k of K. */
uint split_row(uint k, out uvec3 tap)
{
    uint taps = max(volume(tap_count), 1), channel = k / taps, at = k - channel * taps;
    uint line = at / max(tap_count.z, 1), plane = 0;
    if (DEPTH != 0)
        plane = line / max(tap_count.y, 1);
    tap = uvec3(plane, line - plane * tap_count.y, at - line * tap_count.z);
    return channel;
}

/* What rows k0 .. k0 + 15 of K mean. */
void place_rows(uint k0)
{
    uint row = gl_LocalInvocationID.x;
    if (row >= STEP)
        return;
    uvec3 tap;
    uint channel = split_row(k0 + row, tap);
    row_place[row] = ivec4(ivec3(tap) * shift, channel * volume(in_size()));
    row_weight[row] = channel * w_c_stride() + tap_weight(tap);
}

/* What an invocation carries: rows of w that lie THREADS / STEP apart, at row_w of the step; a
 * column of x at rows that lie THREADS / TILE_N apart. */
float next_w[LOADS_W], next_x[LOADS_X];
uint row_w, row_x, w_at, x_at, rows_w; /* rows_w: how many rows of w there are from the first one */
ivec3 origin;
bool column_real;

void fetch(uint rows)
{
    [[unroll]] for (uint i = 0; i < LOADS_W; i++) {
        uint m = i * (THREADS / STEP);
        bool real = row_w < rows && m < rows_w;
        next_w[i] = real ? w[w_at + m * w_m_stride() + row_weight[row_w]] : 0.0;
    }
    [[unroll]] for (uint i = 0; i < LOADS_X; i++) {
        uint row = row_x + i * (THREADS / TILE_N), cell;
        ivec4 place = row_place[row];
        bool real = source_cell(origin + place.xyz, cell) && column_real && row < rows;
        next_x[i] = real ? x[x_at + uint(place.w) + cell] : 0.0;
    }
}

/* One element of y, tap by tap. */
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
            sum = fma(w[w_first + channel * w_c_stride() + tap_weight(tap)],
                      x[x_first + channel * volume(in_size()) + cell], sum);
    }
    return sum;
}

/* Where position n of y lies, from the start of a channel's part; false outside. */
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
    uint k_end = min(k_total, k_begin + args.k_slice);
    uint lane = gl_LocalInvocationID.x, across = lane % THREADS_N, down = lane / THREADS_N;
    uint out_cells = volume(out_size());

    uint column = lane % TILE_N, m_w = lane / STEP;
    column_real = n0 + column < args.positions;
    uvec3 place;
    x_at = x_start(locate(column_real ? n0 + column : 0, place), group);
    origin = window_origin(place);
    row_x = lane / TILE_N;
    row_w = lane % STEP;
    w_at = w_start(group, m0 + m_w);
    rows_w = args.m - min(args.m, m0 + m_w);

    vec4 sum[REG_M * PARTS_N];
    bool usual = true;
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++)
        sum[i] = vec4(0.0);
    if (lane == 0)
        unusual = 0;
    place_rows(k_begin);
    barrier();
    fetch(k_end - k_begin);
    [[dont_unroll]] for (uint k0 = k_begin; k0 < k_end; k0 += STEP) {
        barrier();
        [[unroll]] for (uint i = 0; i < LOADS_W; i++) {
            uint m = m_w + i * (THREADS / STEP);
            usual = usual && (floatBitsToUint(next_w[i]) & 0x7f800000u) != 0x7f800000u;
            tile_w[row_w * PITCH_W + m / 4][m % 4] = next_w[i];
        }
        [[unroll]] for (uint i = 0; i < LOADS_X; i++) {
            uint row = row_x + i * (THREADS / TILE_N);
            tile_x[row * PITCH_X + column / 4][column % 4] = next_x[i];
        }
        place_rows(k0 + STEP);
        barrier();
        if (k0 + STEP < k_end)
            fetch(k_end - k0 - STEP);
        [[unroll]] for (uint k = 0; k < STEP; k++) {
            vec4 b[PARTS_N];
            [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                b[j] = tile_x[k * PITCH_X + j * THREADS_N + across];
            [[unroll]] for (uint i = 0; i < PARTS_M; i++) {
                vec4 a = tile_w[k * PITCH_W + i * THREADS_M + down];
                [[unroll]] for (uint r = 0; r < 4; r++)
                    [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                        sum[(i * 4 + r) * PARTS_N + j] =
                            fma(vec4(a[r]), b[j], sum[(i * 4 + r) * PARTS_N + j]);
            }
        }
    }
    if (!usual)
        unusual = 1;
    barrier();
    bool careful = unusual != 0;

    uint y_size = args.positions / volume(grid_size()) * args.groups * args.m * out_cells;
    uint first_m = m0 + down * 4, first_n = n0 + across * 4;
    [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
        uint n_quad = first_n + j * (THREADS_N * 4), y_at[4];
        bool real[4];
        [[unroll]] for (uint e = 0; e < 4; e++) {
            real[e] = target_position(n_quad + e, group, y_at[e]);
            y_at[e] += split * y_size;
        }
        [[unroll]] for (uint i = 0; i < REG_M; i++) {
            uint m = first_m + i / 4 * (THREADS_M * 4) + i % 4;
            if (m >= args.m || n_quad >= args.positions)
                continue;
            vec4 result = sum[i * PARTS_N + j];
            if (careful)
                [[dont_unroll]] for (uint e = 0; e < 4; e++)
                    result[e] = careful_sum(group, m, min(n_quad + e, args.positions - 1), k_begin,
                                            k_end);
            result += bias_of(group, m);
            if (QUADS != 0)
                y_quads[(y_at[0] + m * out_cells) >> 2] = result;
            else
                [[unroll]] for (uint e = 0; e < 4; e++)
                    if (real[e])
                        y[y_at[e] + m * out_cells] = result[e];
        }
    }
}
