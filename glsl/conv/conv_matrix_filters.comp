#version 450
/*
 * Packs the weights of a convolution for conv_matrix: rows of octets of channels, in the order that
 * `filters` lists. If SCATTERED, it lists single elements. Channels that are not real count as 0.
 * An invocation packs one octet.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "args/conv_matrix.h"
#include "lib/narrow.glsl"

layout(constant_id = 1) const uint TO = MATRIX_F16;
layout(constant_id = 2) const bool SCATTERED = false;

layout(push_constant) uniform block { conv_matrix_filters_args args; };
layout(set = 0, binding = 0) readonly restrict buffer w_view { float w[]; };
layout(set = 0, binding = 1) readonly restrict buffer filter_view { uvec2 filters[]; };
layout(set = 0, binding = 2) writeonly restrict buffer packed_view { uvec4 packed[]; };

uint pack_pair(float low, float high)
{
    return TO == MATRIX_BF16 ? bf16_pair(low, high) : f16_pair(low, high);
}

void main()
{
    uint index = global_index(), octet = index % args.k_octets, row = index / args.k_octets;
    if (row >= args.rows)
        return;
    uint group = row / args.m, m = row - group * args.m;
    uint first = args.w_offset + group * args.group_step + m * args.row_step;
    float v[8];
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uvec2 at = filters[SCATTERED ? octet * 8 + i : octet];
        uint channel = SCATTERED ? 0 : i;
        v[i] = channel < at.y ? w[first + at.x + channel * args.channel_step] : 0.0;
    }
    packed[(group * args.w_rows + m) * args.k_octets + octet] =
        uvec4(pack_pair(v[0], v[1]), pack_pair(v[2], v[3]), pack_pair(v[4], v[5]),
              pack_pair(v[6], v[7]));
}
