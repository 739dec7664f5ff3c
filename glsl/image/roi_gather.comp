#version 450
/*
 * dx of a cell in CHANNELS channels. It goes through lines of bins, and adds the bins that have the
 * cell, in their order. PEAKS: a bin counts only if its peak is this cell. The sums begin with what
 * earlier dispatches wrote, except at the first line.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/divide.glsl"
#include "args/image.h"

layout(constant_id = 1) const uint PEAKS = 0u;
layout(constant_id = 2) const uint CHANNELS = 1u;

layout(push_constant) uniform block { roi_gather_args args; };
layout(set = 0, binding = 0) restrict readonly buffer weighing { uint tables[]; };
layout(set = 0, binding = 1) restrict readonly buffer found { uint peaks[]; };
layout(set = 0, binding = 2) restrict readonly buffer arrived { float dy[]; };
layout(set = 0, binding = 3) restrict buffer target { float dx[]; };

float sums[CHANNELS];

/* Adds a bin. `w` is its weight for this cell; `at` is its place in the first channel. */
void add_bin(uint at, uint plane_bins, uint channel, uint cell, float w)
{
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++) {
        uint place = at + min(c, args.channels - 1u - channel) * plane_bins;
        if (PEAKS == 0u)
            sums[c] += w * dy[args.dy_offset + place];
        else if (peaks[2u * place] == cell && peaks[2u * place + 1u] << 1 != 0u)
            sums[c] += uintBitsToFloat(peaks[2u * place + 1u]) * dy[args.dy_offset + place];
    }
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = divide(i, args.cells, args.divide[0]), cell = i - rest * args.cells;
    uint image = divide(rest, args.blocks, args.divide[1]);
    uint channel = (rest - image * args.blocks) * CHANNELS;
    uint row = cell / args.size[0], column = cell - row * args.size[0];
    uint down = args.bins[1] * args.size[1], plane_bins = args.bins[0] * args.bins[1];
    uint table_words = 1u + down + args.bins[0] * args.size[0];
    uint plane = image * args.channels + channel;
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++) {
        uint at = args.dx_offset + (plane + min(c, args.channels - 1u - channel)) * args.cells;
        sums[c] = 0.0;
        if (args.first != 0u)
            sums[c] = dx[at + cell];
    }
    uint region = args.first / args.bins[1], line = args.first - region * args.bins[1];
    for (uint k = args.first; k < args.end; k++) {
        uint table = region * table_words;
        float d = uintBitsToFloat(tables[table + 1u + line * args.size[1] + row]);
        if (tables[table] == image && d != 0.0) {
            uint weights = table + 1u + down + column;
            uint at = (region * args.channels + channel) * plane_bins + line * args.bins[0];
            for (uint b = 0u; b < args.bins[0]; b++) {
                float a = uintBitsToFloat(tables[weights + b * args.size[0]]);
                if (a != 0.0)
                    add_bin(at + b, plane_bins, channel, cell, d * a);
            }
        }
        line++;
        if (line == args.bins[1]) {
            line = 0u;
            region++;
        }
    }
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++)
        if (channel + c < args.channels)
            dx[args.dx_offset + (plane + c) * args.cells + cell] = sums[c];
}
