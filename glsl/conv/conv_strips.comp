#version 450
/*
 * Depthwise convolution over one or two axes: a plane of y comes from one plane of x. An invocation
 * computes four neighbours in a row of y. It reads each cell of x that they need once, as vec4s if
 * x allows it. Neighbouring invocations find the shared cells in the cache. Shared memory holds the
 * weights of all planes that a workgroup touches, with rows padded to quads.
 *
 * Cells outside x count as 0 here, but 0 times an infinite weight is NaN. So if a sum is NaN, it is
 * computed again without those cells.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "lib/divide.glsl"

layout(constant_id = 1) const uint WEIGHTS = 1; /* quads of weights of a workgroup */
layout(constant_id = 2) const uint QUADS = 0;   /* bits of CONV_QUADS_... */
layout(constant_id = 3) const uint ACROSS = 3;  /* taps along a row */
layout(constant_id = 4) const uint DOWN = 0;    /* taps down the rows, if each gets its own code; 0:
                                                 * a loop over args.down taps */
layout(constant_id = 5) const uint STRIDE = 1;  /* along a row */
layout(constant_id = 6) const uint SHIFT = 0;   /* cells that quads start left of the taps */

layout(push_constant) uniform block { conv_strips_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 0) readonly restrict buffer source4 { vec4 x_quads[]; };
layout(set = 0, binding = 1) readonly restrict buffer filters { float w[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target4 { vec4 y_quads[]; };
#define EPILOGUE_BINDING 3
#include "conv/epilogue.glsl"

const bool QUADS_X = (QUADS & CONV_QUADS_X) != 0;
const uint CELLS = SHIFT + 3 * STRIDE + ACROSS; /* in a row of x */
const uint PARTS = (CELLS + 3) / 4, WIDE = (ACROSS + 3) / 4;

shared vec4 weights[WEIGHTS];

uint channel_of(uint plane)
{
    return plane - divide(plane, args.channels, args.divide[2]) * args.channels;
}

/* Loads the weights of `planes` planes, starting at plane `first`. */
void bring_weights(uint first, uint planes)
{
    uint count = planes * args.down * WIDE * 4;
    [[dont_unroll]] for (uint e = gl_LocalInvocationID.x; e < count; e += gl_WorkGroupSize.x) {
        uint line = e / (WIDE * 4), tap = e % (WIDE * 4), plane = line / args.down;
        uint row = line - plane * args.down, channel = channel_of(first + plane);
        if (tap < ACROSS)
            weights[e / 4][e % 4] =
                w[args.w_offset + (channel * args.down + row) * ACROSS + tap];
    }
}

/* Computes one element of y tap by tap. first: the first cell of its window. x_at: the start of the
 * plane of x. */
float careful_sum(ivec2 first, uint x_at, uint w_at)
{
    float sum = 0.0;
    [[dont_unroll]] for (uint t = 0; t < args.down * ACROSS; t++) {
        uvec2 at = uvec2(first + ivec2(t / ACROSS, t % ACROSS));
        if (at.x < args.in_size[0] && at.y < args.in_size[1])
            sum = fma(weights[w_at + t / ACROSS * WIDE + t % ACROSS / 4][t % ACROSS % 4],
                      x[x_at + at.x * args.in_size[1] + at.y], sum);
    }
    return sum;
}

float cells[PARTS * 4]; /* of the current row of x */

/* Reads a row, starting at `at`. Cells (or quads) whose bit in `real` is not set become 0. */
void read_row(int at, uint real)
{
    if (QUADS_X)
        [[unroll]] for (uint i = 0; i < PARTS; i++) {
            vec4 quad = (real >> i & 1) != 0 ? x_quads[(at >> 2) + int(i)] : vec4(0.0);
            [[unroll]] for (uint e = 0; e < 4; e++)
                cells[i * 4 + e] = quad[e];
        }
    else
        [[unroll]] for (uint i = 0; i < CELLS; i++)
            cells[i] = (real >> i & 1) != 0 ? x[at + int(i)] : 0.0;
}

/* A bit for each cell (or quad) of a row: is it inside x? */
uint real_cells(int column)
{
    uint real = 0, step = QUADS_X ? 4 : 1;
    [[unroll]] for (uint i = 0; i < (QUADS_X ? PARTS : CELLS); i++)
        if (uint(column + int(i * step)) < args.in_size[1])
            real |= 1u << i;
    return real;
}

vec4 sum;

/* Adds the products of a row of x, row `down` of the windows, to the sums. */
void add_row(uint down, uint w_at)
{
    vec4 weight[WIDE];
    [[unroll]] for (uint i = 0; i < WIDE; i++)
        weight[i] = weights[w_at + down * WIDE + i];
    [[unroll]] for (uint t = 0; t < ACROSS; t++)
        [[unroll]] for (uint e = 0; e < 4; e++)
            sum[e] = fma(weight[t / 4][t % 4], cells[SHIFT + e * STRIDE + t], sum[e]);
}

/* Sums a strip. x_at: start of the plane of x. first: the first cell of the windows. w_at: start of
 * the plane's weights. */
void sum_strip(uint x_at, ivec2 first, uint w_at)
{
    uint real = real_cells(first.y - int(SHIFT));
    int at = int(x_at) + first.y - int(SHIFT);
    sum = vec4(0.0);
    if (DOWN != 0)
        [[unroll]] for (uint down = 0; down < DOWN; down++) {
            uint row = uint(first.x + int(down));
            read_row(at + int(row * args.in_size[1]), row < args.in_size[0] ? real : 0);
            add_row(down, w_at);
        }
    else
        [[dont_unroll]] for (uint down = 0; down < args.down; down++) {
            uint row = uint(first.x + int(down));
            read_row(at + int(row * args.in_size[1]), row < args.in_size[0] ? real : 0);
            add_row(down, w_at);
        }
}

void main()
{
    uint strips = args.rows * args.strips, group = group_index() * gl_WorkGroupSize.x;
    uint first_plane = divide(min(group, args.count - 1), strips, args.divide[0]);
    uint final = min(group + gl_WorkGroupSize.x, args.count) - 1;
    bring_weights(first_plane, divide(final, strips, args.divide[0]) - first_plane + 1);
    barrier();
    uint index = group + gl_LocalInvocationID.x;
    if (index >= args.count)
        return;
    uint plane = divide(index, strips, args.divide[0]), within = index - plane * strips;
    uint row = divide(within, args.strips, args.divide[1]);
    uint column = (within - row * args.strips) * 4;
    uint w_at = (plane - first_plane) * args.down * WIDE;
    uint x_at = args.x_offset +
                divide(plane, args.m, args.divide[3]) * args.in_size[0] * args.in_size[1];
    ivec2 first = ivec2(row * args.stride, column * STRIDE) -
                  ivec2(args.padding[0], args.padding[1]);
    sum_strip(x_at, first, w_at);
    if (is_nan(sum.x + sum.y + sum.z + sum.w))
        [[dont_unroll]] for (uint e = 0; e < 4; e++) {
            float again = careful_sum(first + ivec2(0, e * STRIDE), x_at, w_at);
            sum = mix(sum, vec4(again), equal(uvec4(e), uvec4(0, 1, 2, 3)));
        }
    vec2 terms = channel_terms(channel_of(plane), args.channels);
    uint y_at = args.y_offset + (plane * args.rows + row) * args.columns + column;
    if ((QUADS & CONV_QUADS_Y) != 0)
        y_quads[y_at >> 2] = finish_quad(sum, terms, y_at);
    else
        [[unroll]] for (uint e = 0; e < 4; e++)
            if (column + e < args.columns)
                y[y_at + e] = finish(sum[e], terms, y_at + e);
}
