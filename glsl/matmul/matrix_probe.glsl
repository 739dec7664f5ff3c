/*
 * Tests whether the device keeps f32 accumulators, left ELEMENT operands and transposed right ones
 * as matrix_layout.glsl describes. It loads matrices whose elements are their own indices, and
 * checks the elements that each lane got. One subgroup; y[0] is 1 or 0. With IN_BF16, ELEMENT is
 * bfloat16_t.
 */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/narrow.glsl"

layout(constant_id = 1) const uint UNIT_M = 16;
layout(constant_id = 2) const uint UNIT_N = 16;
layout(constant_id = 3) const uint ROWS = 2;
layout(set = 0, binding = 0) buffer target { uint y[]; };
#include "matmul/matrix_layout.glsl"

shared uint words[UNIT_M * UNIT_N], pairs[UNIT_M * UNIT_N / 2];
shared uint others;

uint pack_pair(float low, float high)
{
#ifdef IN_BF16
    return bf16_pair(low, high);
#else
    return packHalf2x16(vec2(low, high));
#endif
}

void main()
{
    if (gl_LocalInvocationID.x == 0)
        others = 0;
    [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < UNIT_M * UNIT_N;
                         i += gl_WorkGroupSize.x)
        words[i] = floatBitsToUint(float(i));
    [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < UNIT_M * UNIT_N / 2;
                         i += gl_WorkGroupSize.x)
        pairs[i] = pack_pair(float(2 * i), float(2 * i + 1));
    barrier();
    coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator> sum;
    coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseA> left;
    coopMatLoad(sum, words, 0, UNIT_N, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(left, pairs, 0, UNIT_N / 2, gl_CooperativeMatrixLayoutRowMajor);
    coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseB> right;
    coopMatLoad(right, pairs, 0, UNIT_N / 2, gl_CooperativeMatrixLayoutColumnMajor);
    if (sum.length() != UNIT || left.length() != UNIT || right.length() != UNIT)
        others = 1;
    else
        [[unroll]] for (uint e = 0; e < UNIT; e++) {
            float index = float(row_of(e) * UNIT_N + column_of(e));
            if (sum[e] != index || float(left[e]) != index || float(right[e]) != index)
                others = 1;
        }
    barrier();
    if (gl_LocalInvocationID.x == 0)
        y[0] = others == 0 ? 1 : 0;
}
