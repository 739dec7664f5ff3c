/*
 * Shared by the convolution kernels: y[b, g, m, o] = sum over channels c of the group and taps t of
 * w[g, m, c, t] x[b, g, c, source(o, t)], followed by an epilogue.
 *
 * There are always three spatial axes, slowest first. If DEPTH is 0, the first one has size 1
 * everywhere.
 *   conv        source = o stride - padding + t dilation
 *   TRANSPOSED  source = (o + padding - t dilation) / stride, if the division is exact
 *
 * A transposed convolution is split into phases. All cells o = o' stride + phase of a phase use the
 * same taps t = first + j step, at source = o' + base + j shift. So each phase is a dense
 * convolution. An axis has min(stride, out) phases.
 *
 * A source outside x is skipped, whatever its weight. A position n is (b, o'). Coordinates fit int,
 * and indices are below 2^31.
 *
 * SWAPPED: the gradient of w is also a convolution, of x by dy, with channels and images swapped.
 * Its "channels" c are the images, and its "images" b are the channels of a group. Its "w" is dy
 * [c, g, m, t], whose cells t are the taps. Its y is [g, m, b, o], and o are the taps of the
 * kernel.
 */
#extension GL_EXT_control_flow_attributes : require
#include "args/conv.h"

layout(constant_id = 3) const uint SWAPPED = 0;
/* The register block of an invocation: channels and positions of y. */
layout(constant_id = 4) const uint REG_M = 1;
layout(constant_id = 5) const uint REG_N = 1;

layout(push_constant) uniform block { conv_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 0) readonly restrict buffer source4 { vec4 x_quads[]; };
layout(set = 0, binding = 1) readonly restrict buffer filters { float w[]; };
layout(set = 0, binding = 1) readonly restrict buffer filters4 { vec4 w_quads[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { vec4 y_quads[]; };
#define EPILOGUE_BINDING 3
#include "conv/epilogue.glsl"

#include "conv/positions.glsl"

uint phase_count()
{
    return TRANSPOSED != 0 ? volume(min(triple(args.stride), out_size())) : 1;
}

/* ---- The phase of an invocation ---- */

uvec3 tap_first, tap_step, tap_count;
ivec3 shift;

/* Finds the taps of one axis that contribute to cells of this phase: those whose distance is a
 * multiple of the stride. */
void find_taps(uint axis)
{
    uint stride = args.stride[axis], kernel = args.kernel[axis];
    uint dilation = args.dilation[axis] % stride, reach = phase[axis] + args.padding[axis];
    uint rest = reach % stride, found = 0;
    [[dont_unroll]] for (uint t = 0; t < kernel && found < 2; t++) {
        if (rest == 0) {
            if (found == 0)
                tap_first[axis] = t;
            else
                tap_step[axis] = t - tap_first[axis];
            found++;
        }
        rest = rest >= dilation ? rest - dilation : rest + stride - dilation;
    }
    tap_count[axis] = found < 2 ? found : (kernel - 1 - tap_first[axis]) / tap_step[axis] + 1;
    base[axis] = (int(reach) - int(tap_first[axis] * args.dilation[axis])) / int(stride);
    shift[axis] = -int(tap_step[axis] * args.dilation[axis] / stride);
}

void enter_phase(uint index)
{
    phase = tap_first = uvec3(0);
    tap_step = uvec3(1);
    tap_count = triple(args.kernel);
    base = -ivec3(triple(args.padding));
    shift = ivec3(triple(args.dilation));
    if (DEPTH == 0)
        base.x = 0;
    if (TRANSPOSED == 0)
        return;
    uvec3 phases = min(triple(args.stride), out_size());
    phase = uvec3(index / phases.z / phases.y, index / phases.z % phases.y, index % phases.z);
    tap_step = uvec3(0);
    if (DEPTH != 0)
        find_taps(0);
    find_taps(1);
    find_taps(2);
}

/* The index of the weight of tap j of the phase, from the first weight of its channel. */
uint tap_weight(uvec3 j)
{
    return linear(tap_first + j * tap_step, triple(args.kernel));
}

/* ---- Positions ---- */

/* The cell of x at these coordinates. Returns false if they are outside x. */
bool source_cell(ivec3 at, out uint cell)
{
    uvec3 place = uvec3(at), size = in_size();
    cell = linear(place, size);
    return place.z < size.z && place.y < size.y && (DEPTH == 0 || place.x < size.x);
}

uint image_count()
{
    return args.positions / volume(grid_size());
}

/* The first elements of x, w and y for channel m of the group, and their strides. */
uint x_start(uint image, uint group)
{
    uint plane = SWAPPED != 0 ? group * image_count() + image
                              : (image * args.groups + group) * args.channels;
    return args.x_offset + plane * volume(in_size());
}
uint x_c_stride()
{
    return volume(in_size()) * (SWAPPED != 0 ? args.groups * image_count() : 1);
}
uint w_m_stride()
{
    return volume(triple(args.kernel)) * (TRANSPOSED != 0 || SWAPPED != 0 ? 1 : args.channels);
}
uint w_c_stride()
{
    uint planes = TRANSPOSED != 0 ? args.m : SWAPPED != 0 ? args.groups * args.m : 1;
    return volume(triple(args.kernel)) * planes;
}
uint w_start(uint group, uint m)
{
    uint planes = args.m * (SWAPPED != 0 ? 1 : args.channels);
    return args.w_offset + group * planes * volume(triple(args.kernel)) + m * w_m_stride();
}
uint y_start(uint image, uint group)
{
    uint plane = SWAPPED != 0 ? group * args.m * image_count() + image
                              : (image * args.groups + group) * args.m;
    return args.y_offset + plane * volume(out_size());
}
uint y_m_stride()
{
    return volume(out_size()) * (SWAPPED != 0 ? image_count() : 1);
}

vec2 terms_of(uint group, uint m)
{
    return channel_terms(group * args.m + m, args.groups * args.m);
}
