#version 450
/*
 * Norm of rows whose elements are `inner` quads apart. A thread holds HELD (constant 2) elements of
 * four neighbouring rows, as vec4, and `lanes` threads share these four rows. A workgroup takes
 * lane_stride such sets of four rows. It reads once and writes once. There is no residual and no
 * bias. y may be x.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint HELD = 1;
layout(set = 0, binding = 0) readonly buffer source { vec4 x4[]; };
layout(set = 0, binding = 1) readonly restrict buffer scales { float gamma[]; };
layout(set = 0, binding = 2) readonly restrict buffer shifts { float beta[]; };
layout(set = 0, binding = 3) writeonly buffer target { vec4 y4[]; };

#include "rows/norm_factor.glsl"

#define THREADS 256
#define PARTS   4u

shared vec4 scratch[THREADS];
shared uint unusual; /* whether any row may need a factor */

bool any_strange(vec4 part, float count)
{
    return norm_strange(part.x, count, args.eps) || norm_strange(part.y, count, args.eps) ||
           norm_strange(part.z, count, args.eps) || norm_strange(part.w, count, args.eps);
}

/*
 * The sum over the lanes of a column. First a few threads add up the values of all others. If v are
 * sums of squares, `count` is the number of elements of a row, and `unusual` is set if a row may
 * need a factor. Otherwise `count` is 0.
 */
vec4 sum_of_lanes(vec4 v, float count)
{
    uint t = gl_LocalInvocationID.x, apart = args.rows.lane_stride, few = PARTS * apart;
    barrier();
    scratch[t] = v;
    barrier();
    if (t < few) {
        for (uint i = t + few; i < gl_WorkGroupSize.x; i += few)
            v += scratch[i];
        scratch[t] = v;
        if (count > 0.0 && any_strange(v, count))
            atomicOr(unusual, 1u);
    }
    barrier();
    v = vec4(0.0);
    for (uint i = 0u; i < PARTS; i++)
        v += scratch[i * apart + (t & (apart - 1u))];
    return v;
}

/* A thread's work: its lane, the first elements of its rows in x4 and y4, and the rows' end. */
struct column_work {
    uint lane, from, to, end;
};

void store_quad(column_work w, uint r, vec4 result)
{
    if ((FLAGS & NORM_HAS_GAMMA) != 0u)
        result *= gamma[args.gamma_offset + r];
    if ((FLAGS & NORM_HAS_BETA) != 0u)
        result += beta[args.beta_offset + r];
    y4[w.to + r * args.rows.inner] = result;
}

vec4 scaled(vec4 v, vec4 factor)
{
    return vec4(norm_scaled(v.x, factor.x), norm_scaled(v.y, factor.y), norm_scaled(v.z, factor.z),
                norm_scaled(v.w, factor.w));
}

/* Elements r of the rows, times their factors, as deviations from pivot + offset. */
vec4 again_deviation(column_work w, uint r, vec4 factor, vec4 pivot, vec4 offset)
{
    return (scaled(x4[w.from + r * args.rows.inner], factor) - pivot) - offset;
}

/*
 * Handles rows whose squares do not fit f32 (see norm_factor.glsl). Loops read them again and hold
 * nothing in registers. Ordinary rows of the same workgroup take part, but keep their statistics.
 */
void norm_again(column_work w, vec4 pivot, vec4 offset, vec4 squares)
{
    float count = float(args.rows.extent);
    vec4 factor = vec4(1.0), mean = vec4(0.0), sum = vec4(0.0), scale;
    for (uint i = 0u; i < 4u && w.end > 0u; i++)
        factor[i] = norm_factor(squares[i] / count + args.eps, pivot[i]);
    bvec4 usual = equal(factor, vec4(1.0));
    pivot = scaled(pivot, factor);
    if ((FLAGS & NORM_IS_RMS) == 0u) {
        [[dont_unroll]] for (uint r = w.lane; r < w.end; r += args.rows.lanes)
            sum += again_deviation(w, r, factor, pivot, vec4(0.0));
        mean = sum_of_lanes(sum, 0.0) / count;
        offset = mix(mean, offset, usual);
    }
    sum = vec4(0.0);
    [[dont_unroll]] for (uint r = w.lane; r < w.end; r += args.rows.lanes) {
        vec4 d = again_deviation(w, r, factor, pivot, offset);
        sum += d * d;
    }
    squares = mix(sum_of_lanes(sum, 0.0), squares, usual);
    for (uint i = 0u; i < 4u; i++)
        scale[i] = norm_scale(squares[i] / count, norm_eps(args.eps, factor[i]));
    [[dont_unroll]] for (uint r = w.lane; r < w.end; r += args.rows.lanes)
        store_quad(w, r, again_deviation(w, r, factor, pivot, offset) * scale);
}

void main()
{
    uint columns = args.rows.lane_stride, t = gl_LocalInvocationID.x, lane = t / columns;
    uint o = group_index() * columns + (t & (columns - 1u)), outer = o / args.rows.inner;
    uint start = outer * args.rows.extent * args.rows.inner + o - outer * args.rows.inner;
    uint end = o < args.rows.outputs ? args.rows.extent : 0u;
    uint from = (args.x_offset >> 2) + start, to = (args.y_offset >> 2) + start;
    column_work w = {lane, from, to, end};
    float count = float(args.rows.extent);
    vec4 v[HELD], pivot = vec4(0.0), offset = vec4(0.0), sum = vec4(0.0), squares = vec4(0.0);
    if (t == 0u)
        unusual = 0u;
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uint r = lane + k * args.rows.lanes;
        v[k] = vec4(0.0);
        if (r < end)
            v[k] = x4[from + r * args.rows.inner];
    }
    if ((FLAGS & NORM_IS_RMS) == 0u) {
        if (end > 0u)
            pivot = x4[from];
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            if (lane + k * args.rows.lanes < end) {
                v[k] -= pivot;
                sum += v[k];
            }
        }
        offset = sum_of_lanes(sum, 0.0) / count;
        [[unroll]] for (uint k = 0u; k < HELD; k++)
            if (lane + k * args.rows.lanes < end)
                v[k] -= offset;
    }
    [[unroll]] for (uint k = 0u; k < HELD; k++)
        squares += v[k] * v[k];
    squares = sum_of_lanes(squares, count);
    if (unusual != 0u) {
        norm_again(w, pivot, offset, squares);
        return;
    }
    vec4 scale;
    for (uint i = 0u; i < 4u; i++)
        scale[i] = norm_scale(squares[i] / count, args.eps);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uint r = lane + k * args.rows.lanes;
        if (r < end)
            store_quad(w, r, v[k] * scale);
    }
}
