#version 450
/*
 * Welch's average of real signals: the power of their frames' spectra, summed by a tile of rows
 * (see fft_tile.glsl). Two frames A and B, times the window, are the real and imaginary parts of
 * one transform. Its spectrum Z has |A[k]|^2 + |B[k]|^2 = (|Z[k]|^2 + |Z[N - k]|^2) / 2. Therefore
 * a row sums |Z[k]|^2 over its pairs of frames, in order and in registers, and adds mirror images
 * at the end. A signal's pairs are cut into `pieces` rows. Frames beyond the last one are zeros.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/spectral.h"

layout(constant_id = 7) const bool WINDOWED = false;
layout(constant_id = 8) const bool PADDED = false; /* frames are shorter than N */

layout(push_constant) uniform block { welch_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer weighting { float window[]; };
layout(set = 0, binding = 2) restrict readonly buffer stages { vec2 twiddles[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

const bool ALONG = true;

#include "spectral/fft_tile.glsl"

float weights[32], sums[32]; /* in the order of v: of points, of bins */

/* Sample `at` of a frame, or 0 if there is none. It is selected and not multiplied by 0, because
 * the value read in its place may be infinite or NaN. */
float read_sample(uint start, uint frame, uint at)
{
    uint last = args.frames - 1, inside = PADDED ? min(at, args.extent - 1) : at;
    float value = x[start + min(frame, last) * args.hop + inside];
    bool there = frame <= last && (!PADDED || at < args.extent);
    return there ? value : 0.0;
}

/* The point that is input r of butterfly j in the first stage. */
uint point_of(uint j, uint r)
{
    uint b = lane + j * LANES;
    b = whole(R0) ? b : min(b, N / R0 - 1);
    return b + r * (N / R0);
}

void begin()
{
    [[unroll]] for (uint j = 0; j < rounds(R0); j++)
        [[unroll]] for (uint r = 0; r < R0; r++) {
            uint at = PADDED ? min(point_of(j, r), args.extent - 1) : point_of(j, r);
            weights[j * R0 + r] = WINDOWED ? window[args.window_offset + at] : 1.0;
        }
    [[unroll]] for (uint i = 0; i < rounds(R_LAST) * R_LAST; i++)
        sums[i] = 0.0;
}

void load_pair(uint start, uint frame)
{
    [[unroll]] for (uint j = 0; j < rounds(R0); j++)
        [[unroll]] for (uint r = 0; r < R0; r++) {
            uint at = point_of(j, r);
            vec2 pair = vec2(read_sample(start, frame, at), read_sample(start, frame + 1, at));
            v[j * R0 + r] = pair * weights[j * R0 + r];
        }
}

void add_power()
{
    [[unroll]] for (uint i = 0; i < rounds(R_LAST) * R_LAST; i++)
        sums[i] += dot(v[i], v[i]);
}

/* Stores bins 0 .. N / 2. A bin with a mirror image includes its power, too. */
void store_sums(uint line, bool busy)
{
    [[unroll]] for (uint i = 0; i < rounds(R_LAST) * R_LAST; i++)
        v[i].x = sums[i];
    if (R1 > 1)
        barrier();
    put(R_LAST, N / R_LAST, 0, 0);
    barrier();
    for (uint k = lane; k <= N / 2 && busy; k += LANES) {
        float both = work[place(k)] + work[place(k == 0 ? 0 : N - k)];
        float fold = k == 0 || 2 * k == N ? 1.0 : args.fold;
        y[args.y_offset + line * (N / 2 + 1) + k] = both * args.scale * fold;
    }
}

void main()
{
    row = gl_LocalInvocationID.x / LANES;
    lane = gl_LocalInvocationID.x % LANES;
    uint line = group_index() * ROWS + row;
    bool busy = line < args.lines;
    line = min(line, args.lines - 1);
    uint start = args.x_offset + line / args.pieces * args.samples;
    uint frame = line % args.pieces * 2 * args.pairs;
    begin();
    for (uint i = 0; i < args.pairs; i++) {
        if (R1 > 1)
            barrier();
        load_pair(start, frame + 2 * i);
        transform_row();
        add_power();
    }
    store_sums(line, busy);
}
