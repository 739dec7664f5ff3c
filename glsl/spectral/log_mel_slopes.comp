#version 450
/*
 * Derivatives of log_mel's result by the sums of its bands. One workgroup takes a row of sums that
 * share a floor.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"
#include "lib/math.glsl"
#include "spectral/log_mel.glsl"

#define HELD 1024u
#define RUN  (gl_WorkGroupSize.x << 14)

layout(push_constant) uniform block { log_mel_slopes_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float sums[]; };
layout(set = 0, binding = 1) restrict readonly buffer gradient { float dy[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

shared float held[HELD];
shared uint places[HELD];

/* The largest sum of the row, and the index of the first element that has it. Sums below SMALLEST
 * count as SMALLEST. */
void find_largest(uint start, out float largest, out uint place)
{
    uint t = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    largest = 0.0;
    place = args.extent;
    for (uint outer = 0u; outer < args.extent; outer += RUN)
        for (uint i = outer + t; i < min(args.extent, outer + RUN); i += size) {
            float sum = sums[start + i];
            sum = is_nan(sum) || sum < SMALLEST ? SMALLEST : sum;
            place = sum > largest ? i : place;
            largest = max(sum, largest);
        }
    held[t] = largest;
    places[t] = place;
    barrier();
    for (uint half_size = size / 2u; half_size > 0u; half_size /= 2u) {
        if (t < half_size) {
            float other = held[t + half_size];
            uint other_place = places[t + half_size];
            if (other > held[t] || (other == held[t] && other_place < places[t])) {
                held[t] = other;
                places[t] = other_place;
            }
        }
        barrier();
    }
    largest = held[0];
    place = places[0];
    barrier();
}

float sum_of_all(float part)
{
    uint t = gl_LocalInvocationID.x;
    held[t] = part;
    barrier();
    for (uint half_size = gl_WorkGroupSize.x / 2u; half_size > 0u; half_size /= 2u) {
        if (t < half_size)
            held[t] += held[t + half_size];
        barrier();
    }
    return held[0];
}

void main()
{
    uint row = group_index(), t = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    if (row >= args.rows)
        return;
    uint start = row * args.extent, place;
    float largest, lost = 0.0;
    find_largest(start, largest, place);
    float floor_value = log_mel_value(largest) - 8.0;
    for (uint outer = 0u; outer < args.extent; outer += RUN)
        for (uint i = outer + t; i < min(args.extent, outer + RUN); i += size)
            if (log_mel_value(sums[start + i]) < floor_value)
                lost += dy[args.dy_offset + start + i];
    lost = sum_of_all(lost);
    for (uint outer = 0u; outer < args.extent; outer += RUN)
        for (uint i = outer + t; i < min(args.extent, outer + RUN); i += size) {
            float sum = sums[start + i], g = i == place ? lost : 0.0;
            if (!(log_mel_value(sum) < floor_value))
                g += dy[args.dy_offset + start + i];
            bool counts = !is_nan(sum) && sum > SMALLEST;
            y[args.y_offset + start + i] = counts ? g * (0.25 * LOG10_OF_E) / sum : 0.0;
        }
}
