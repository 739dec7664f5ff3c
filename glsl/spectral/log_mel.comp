#version 450
/*
 * Mel bands of spectra, one workgroup per frame. An invocation takes a filter and adds up the
 * powers from its first to its last weight. For STAGE see args/spectral.h. LOG_MEL_FLOOR reads the
 * largest values as x, and finishes the values in y.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"
#include "lib/math.glsl"
#include "spectral/log_mel.glsl"

#define HELD 1024u

layout(constant_id = 1) const uint STAGE = LOG_MEL_WHOLE;
layout(push_constant) uniform block { log_mel_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer weights { float filters[]; };
layout(set = 0, binding = 2) restrict readonly buffer edges { uint bands[]; };
layout(set = 0, binding = 3) restrict buffer target { float y[]; };

shared float held[HELD]; /* powers of bins; then the largest values */

float finished(float value, float largest)
{
    return (max(value, largest - 8.0) + 4.0) * 0.25;
}

void hold_powers(uint start, uint first)
{
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < HELD && first + i < args.bins;
         i += gl_WorkGroupSize.x) {
        float re = x[start + first + i], im = x[start + args.width + first + i];
        held[i] = re * re + im * im;
    }
    barrier();
}

float band_sum(uint filter_start, uvec2 band, uint first)
{
    float sum = 0.0;
    for (uint f = max(band.x, first); f < min(band.y, first + HELD); f++)
        sum += filters[filter_start + f] * held[f - first];
    return sum;
}

float largest_of_all(float largest)
{
    uint t = gl_LocalInvocationID.x;
    barrier(); /* because others may still add up the powers stored there */
    held[t] = largest;
    barrier();
    for (uint half_size = gl_WorkGroupSize.x / 2u; half_size > 0u; half_size /= 2u) {
        if (t < half_size)
            held[t] = max(held[t], held[t + half_size]);
        barrier();
    }
    return held[0];
}

void make_frame(uint frame)
{
    uint t = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    uint start = args.x_offset + frame * 2u * args.width;
    uint to = args.y_offset + frame * args.mels;
    float largest = -10.0; /* the lower limit of all values */
    for (uint base = 0u; base < args.mels; base += size) {
        uint m = base + t;
        uvec2 band = m < args.mels ? uvec2(bands[2u * m], bands[2u * m + 1u]) : uvec2(0u);
        float sum = 0.0;
        for (uint first = 0u; first < args.bins; first += HELD) {
            if (base == 0u || args.bins > HELD)
                hold_powers(start, first);
            sum += band_sum(args.filters_offset + m * args.bins, band, first);
        }
        float value = STAGE == LOG_MEL_SUMS ? sum : log_mel_value(sum);
        if (m < args.mels) {
            y[to + m] = value;
            largest = max(largest, value);
        }
    }
    if (STAGE != LOG_MEL_WHOLE)
        return;
    largest = largest_of_all(largest);
    for (uint m = t; m < args.mels; m += size)
        y[to + m] = finished(y[to + m], largest);
}

void main()
{
    if (STAGE == LOG_MEL_FLOOR) {
        uint i = global_index(), at = args.y_offset + i;
        if (i < args.frames)
            y[at] = finished(y[at], x[args.x_offset + i / args.mels]);
        return;
    }
    uint frame = group_index();
    if (frame < args.frames)
        make_frame(frame);
}
