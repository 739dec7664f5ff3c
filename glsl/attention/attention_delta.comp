#version 450
/*
 * For every row, copies the log-sum-exp, which the forward pass stored behind y. Then stores delta
 * = dy . y for all rows, minus the gradient of the log-sum-exp, if there is one. If PEAKS, it also
 * stores the largest size of each row's dy and delta. LANES invocations share a row; their sums are
 * reduced in a tree.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"
#include "args/attention_backward.h"

layout(constant_id = 1) const uint LANES = 16; /* a power of two */
layout(constant_id = 2) const uint ROWS = 4;   /* the local size / LANES */
layout(constant_id = 3) const bool PEAKS = false;
layout(push_constant) uniform block
{
    attention_delta_args args;
};
layout(set = 0, binding = 0) readonly buffer upstream
{
    float dy[];
};
layout(set = 0, binding = 1) readonly buffer source
{
    float y[];
};
layout(set = 0, binding = 2) writeonly buffer target
{
    float stats[];
};

shared float sums[LANES * ROWS];
shared float peaks[PEAKS ? LANES * ROWS : 1];

void main()
{
    uint lane = gl_LocalInvocationID.x, column = lane % LANES;
    uint row = group_index() * ROWS + lane / LANES;
    uint known = min(row, args.rows - 1u), head = known / args.queries;
    uint at = head / args.heads * args.batch_stride + head % args.heads * args.head_stride +
              known % args.queries * args.seq_stride;
    float sum = 0.0, peak = 0.0;
    for (uint d = column; d < args.width; d += LANES) {
        float x = dy[args.dy_offset + at + d];
        sum = fma(x, y[args.y_offset + at + d], sum);
        peak = max(peak, abs(x));
    }
    sums[lane] = sum;
    if (PEAKS)
        peaks[lane] = peak;
    [[unroll]] for (uint half_lanes = LANES / 2u; half_lanes > 0u; half_lanes /= 2u)
    {
        barrier();
        if (column < half_lanes) {
            sums[lane] += sums[lane + half_lanes];
            if (PEAKS)
                peaks[lane] = max(peaks[lane], peaks[lane + half_lanes]);
        }
    }
    if (column != 0u || row >= args.rows)
        return;
    float less = args.dlse_offset == ATTENTION_NO_LSE ? 0.0 : dy[args.dlse_offset + row];
    stats[args.stats_offset + row] = y[args.lse_offset + row];
    stats[args.stats_offset + args.rows + row] = sums[lane] - less;
    if (PEAKS)
        stats[args.stats_offset + 2u * args.rows + row] = max(peaks[lane], abs(sums[lane] - less));
}
