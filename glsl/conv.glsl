/*
 * Shared by the convolution kernels: y[b, g, m, o] = bias[g, m] + sum over channels c of the group
 * and taps t of w[g, m, c, t] x[b, g, c, source(o, t)].
 *
 * A position n is (b, o), o counting the output's cells. Spatial axes are always three, slowest
 * first; DEPTH 0 says that the first one is 1 everywhere. CONV: source = o stride - padding +
 * t dilation. TRANSPOSED: source = (o + padding - t dilation) / stride, where that divides. A
 * source outside x is skipped, whatever its weight. Coordinates stay inside int, indices below
 * 2^31.
 */
#extension GL_EXT_control_flow_attributes : require

layout(constant_id = 1) const uint DEPTH = 0;
layout(constant_id = 2) const uint TRANSPOSED = 0;
layout(constant_id = 3) const uint HAS_BIAS = 0;
/* Channels and positions of y that an invocation sums in registers. */
layout(constant_id = 4) const uint REG_M = 1;
layout(constant_id = 5) const uint REG_N = 1;

layout(push_constant) uniform block { conv_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 1) readonly restrict buffer filters { float w[]; };
layout(set = 0, binding = 2) readonly restrict buffer offsets { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };
layout(set = 0, binding = 3) writeonly buffer target4 { vec4 y_quads[]; };

ivec3 triple(uint v[3])
{
    return ivec3(v[0], v[1], v[2]);
}

uint cells(uint size[3])
{
    return (DEPTH != 0 ? size[0] : 1) * size[1] * size[2];
}

/* Where the window of the output's cell o starts in x (TRANSPOSED: o + padding). */
ivec3 window_origin(uint o)
{
    uint row = o / args.out_size[2], z = 0, y = row;
    if (DEPTH != 0) {
        z = row / args.out_size[1];
        y = row - z * args.out_size[1];
    }
    ivec3 at = ivec3(z, y, o - row * args.out_size[2]);
    if (TRANSPOSED != 0)
        return at + triple(args.padding);
    return at * triple(args.stride) - triple(args.padding);
}

/* How far into the window a tap lies. */
ivec3 tap_shift(uint tap)
{
    uint row = tap / args.kernel[2], z = 0, y = row;
    if (DEPTH != 0) {
        z = row / args.kernel[1];
        y = row - z * args.kernel[1];
    }
    return ivec3(z, y, tap - row * args.kernel[2]) * triple(args.dilation);
}

bool axis_source(int origin, int shift, int stride, uint size, out uint at)
{
    if (TRANSPOSED != 0) {
        uint t = uint(origin - shift);
        at = t / uint(stride);
        return origin >= shift && at * uint(stride) == t && at < size;
    }
    at = uint(origin + shift);
    return at < size;
}

/* The cell of x under the tap that lies `shift` into the window; false where there is none. */
bool tap_source(ivec3 origin, ivec3 shift, out uint cell)
{
    uint z = 0, y, x;
    bool inside = axis_source(origin.y, shift.y, int(args.stride[1]), args.in_size[1], y);
    inside = axis_source(origin.z, shift.z, int(args.stride[2]), args.in_size[2], x) && inside;
    if (DEPTH != 0)
        inside = axis_source(origin.x, shift.x, int(args.stride[0]), args.in_size[0], z) && inside;
    cell = (z * args.in_size[1] + y) * args.in_size[2] + x;
    return inside;
}

/* First element of x and of w that channel m of the group meets. */
uint x_start(uint image, uint group)
{
    return args.x_offset + (image * args.groups + group) * args.channels * cells(args.in_size);
}
uint w_start(uint group, uint m)
{
    return args.w_offset + group * args.m * args.channels * cells(args.kernel) +
           m * args.w_m_stride;
}

float bias_of(uint group, uint m)
{
    return HAS_BIAS != 0 ? bias[args.bias_offset + group * args.m + m] : 0.0;
}
