#version 450
/*
 * An invocation takes a bin of a region in CHANNELS channels. Neighbouring invocations take
 * neighbouring bins. MODE: ROI_AVERAGE adds samples, with 1 / samples in their weights, so that the
 * sum does not overflow. ROI_MAX takes the largest product of a cell and its weight. ROI_PEAKS does
 * too, but it writes the number of that cell and the weight, two words for each bin.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint CHANNELS = 1u;

#include "args/image.h"

layout(push_constant) uniform block { roi_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer places { float regions[]; };
layout(set = 0, binding = 2) restrict readonly buffer numbers { float images[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };

#include "image/roi.glsl"

/* Samples per loop iteration. An old software driver silently ends an invocation's loops after
 * 65,535 rounds. */
#define EACH 2u

uint bases[CHANNELS]; /* planes of x */
float results[CHANNELS];
uint peaks[CHANNELS];
float peak_weights[CHANNELS];
bool begun = false;

/* Takes the product of a cell and its weight. If the weight is 0, the cell is not read. */
void take(uint cell, float w)
{
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++) {
        float v = w == 0.0 ? 0.0 : w * x[bases[c] + cell];
        if (MODE == ROI_AVERAGE) {
            results[c] += v;
        } else if (!begun || (!is_nan(results[c]) && (is_nan(v) || v > results[c]))) {
            results[c] = v;
            peaks[c] = cell;
            peak_weights[c] = w;
        }
    }
    begun = true;
}

void take_sample(roi_cells down, roi_cells across, uint columns)
{
    [[unroll]] for (uint r = 0u; r < 2u; r++)
        [[unroll]] for (uint c = 0u; c < 2u; c++)
            take(down.cells[r] * columns + across.cells[c], down.weights[r] * across.weights[c]);
}

void take_samples(roi_axis across, roi_axis down, uint bin, uint line)
{
    for (uint i = 0u; i < down.samples; i++) {
        roi_cells d = roi_cells_at(down, line, i);
        if (MODE == ROI_AVERAGE)
            d.weights *= down.inverse;
        if (!d.inside && MODE == ROI_AVERAGE)
            continue;
        for (uint j = 0u; j < across.samples; j += EACH)
            [[unroll]] for (uint k = 0u; k < EACH; k++)
                if (j + k < across.samples) {
                    roi_cells a = roi_cells_at(across, bin, j + k);
                    if (MODE == ROI_AVERAGE)
                        a.weights *= across.inverse;
                    take_sample(d, a, across.size);
                }
    }
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = i / args.at.bins[0], bin = i - rest * args.at.bins[0];
    uint lines = rest / args.at.bins[1], line = rest - lines * args.at.bins[1];
    uint region = lines / args.blocks, first = (lines - region * args.blocks) * CHANNELS;
    uint image = roi_image(args.at, region), cells = args.at.size[0] * args.at.size[1];
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++) {
        uint channel = min(first + c, args.channels - 1u);
        bases[c] = args.x_offset + (image * args.channels + channel) * cells;
        results[c] = peak_weights[c] = 0.0;
        peaks[c] = 0u;
    }
    take_samples(roi_axis_at(args.at, region, 0u), roi_axis_at(args.at, region, 1u), bin, line);
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++) {
        uint plane = region * args.channels + first + c;
        uint at = (plane * args.at.bins[1] + line) * args.at.bins[0] + bin;
        if (first + c >= args.channels)
            continue;
        if (MODE == ROI_PEAKS) {
            y[2u * at] = peaks[c];
            y[2u * at + 1u] = floatBitsToUint(peak_weights[c]);
        } else {
            y[args.y_offset + at] = floatBitsToUint(results[c]);
        }
    }
}
