#version 450
/*
 * Like matvec.comp, for one vector and b [N, K] in F16 or BF16, read 16 bytes at a time. The vector
 * stays in registers while the columns pass (see lib/teams.glsl). With PARTS, it is a projection.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/common.glsl"
#include "args/projection.h"
layout(push_constant) uniform block { matvec_args whole; };
layout(constant_id = 4) const uint B_STORAGE = MATMUL_F16;
layout(constant_id = 11) const uint PARTS = 0;   /* PROJECTION_ bits */
layout(constant_id = 12) const uint VECTORS = 1; /* uvec4 of a row per invocation */
layout(set = 0, binding = 0) readonly restrict buffer source { vec4 x4[]; };
layout(set = 0, binding = 1) readonly restrict buffer weights { uvec4 b4[]; };
layout(set = 0, binding = 2) readonly restrict buffer gammas { float gamma[]; };
layout(set = 0, binding = 2) readonly restrict buffer gamma_vectors { vec4 gamma4[]; };
layout(set = 0, binding = 3) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 4) readonly restrict buffer residuals { float residual[]; };
#include "lib/projection.glsl"
#include "lib/teams.glsl"

vec4 projected_x(uint element)
{
    return x4[whole.product.a_offset + element >> 2];
}

vec4 held[VECTORS][2];
uvec4 words[COLUMNS][VECTORS];

/* Index of the invocation's i-th vector. Neighbouring invocations have neighbouring vectors. */
uint vector_of(uint i)
{
    return i * TEAM + lane;
}
uint row_vectors()
{
    return whole.product.k / 8;
}

void load_words(uint batch, uint c)
{
    uint start = whole.product.b_offset / 8 + column_of(batch, c, whole.product.n) * row_vectors();
    [[unroll]] for (uint i = 0; i < VECTORS; i++)
        words[c][i] = vector_of(i) < row_vectors() ? b4[start + vector_of(i)] : uvec4(0);
}

void bring_x()
{
    [[unroll]] for (uint i = 0; i < VECTORS; i++) {
        [[unroll]] for (uint h = 0; h < 2; h++) {
            uint at = 2 * vector_of(i) + h;
            bool some = vector_of(i) < row_vectors();
            held[i][h] = some ? x4[whole.product.a_offset / 4 + at] : vec4(0);
            if (NORMALIZED && some) {
                if (team == 0)
                    add_squares(held[i][h]);
                held[i][h] *= load_gamma(whole.parts.gamma_offset + 4 * at, true);
            }
        }
    }
    if (NORMALIZED)
        put_squares(squares);
}

vec4 numbers(uvec2 w)
{
    if (B_STORAGE == MATMUL_F16)
        return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
}

float product(uvec4 w[VECTORS])
{
    vec4 sum = vec4(0);
    [[unroll]] for (uint i = 0; i < VECTORS; i++) {
        sum += held[i][0] * numbers(w[i].xy);
        sum += held[i][1] * numbers(w[i].zw);
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

uint place_output(uint column)
{
    return whole.product.y_offset + column;
}

void main()
{
    uint n = whole.product.n;
    if (find_team(n) > 0)
        return;
    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        load_words(min(batch_of(team, 0), batches - 1), c);
    bring_x();
    [[dont_unroll]] for (uint round = 0; round < ROUNDS; round++) {
        if (batch_of(team, round) >= batches)
            break;
        uint following = following_batch(round);
        float sum[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            sum[c] = product(words[c]);
            load_words(following, c);
        }
        put_partial(round, sum);
    }
    barrier();
    store_outputs(n, whole.product.k, whole.parts.residual_offset, whole.parts.epsilon);
}
