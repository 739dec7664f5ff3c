#version 450
/* The exponents of rows and columns, and the scaled matrix. One workgroup takes one matrix.
 * Elements that are not finite become 0, because nothing is computed with them. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/det.glsl"

layout(push_constant) uniform block { det_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float a[]; };
layout(set = 0, binding = 1) coherent buffer exponent_view { int exponents[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float factors[]; };

const uint LANES = gl_WorkGroupSize.x;
shared uint infinite[LANES];

bool is_finite(float v)
{
    return magnitude_bits(v) < INFINITY_BITS;
}

/* Whether this lane's rows are finite. */
bool scan_rows(uint from, uint base)
{
    bool finite = true;
    for (uint row = gl_LocalInvocationID.x; row < args.n; row += LANES) {
        int largest = NO_EXPONENT;
        for (uint c = 0u; c < args.n; c++) {
            float v = a[from + row * args.n + c];
            finite = finite && is_finite(v);
            largest = max(largest, exponent_of(v));
        }
        exponents[base + row] = scale_exponent(largest);
    }
    return finite;
}

void scan_columns(uint from, uint base)
{
    for (uint c = gl_LocalInvocationID.x; c < args.n; c += LANES) {
        int largest = NO_EXPONENT;
        for (uint row = 0u; row < args.n; row++) {
            int exponent = exponent_of(a[from + row * args.n + c]);
            if (exponent != NO_EXPONENT)
                largest = max(largest, exponent - exponents[base + row]);
        }
        exponents[base + args.n + c] = scale_exponent(largest);
    }
}

void main()
{
    uint matrix = group_index(), lane = gl_LocalInvocationID.x;
    if (matrix >= args.batch)
        return;
    uint count = args.n * args.n, from = args.a_offset + matrix * count;
    uint base = exponent_base(args.n, matrix);
    infinite[lane] = scan_rows(from, base) ? 0u : 1u;
    memoryBarrierBuffer();
    barrier();
    if (lane == 0u) {
        uint any = 0u;
        for (uint k = 0u; k < LANES; k++)
            any |= infinite[k];
        exponents[base + 2u * args.n] = int(any);
    }
    scan_columns(from, base);
    memoryBarrierBuffer();
    barrier();
    for (uint i = lane; i < count; i += LANES) {
        uint row = i / args.n, c = i - row * args.n;
        float v = a[from + i];
        int exponent = -exponents[base + row] - exponents[base + args.n + c];
        factors[matrix * count + i] = is_finite(v) ? scaled(v, exponent) : 0.0;
    }
}
