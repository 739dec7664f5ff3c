/*
 * Shared by the matrix-product kernels: y[batch] = activation(op(a[batch]) op(b[batch]) + bias).
 *
 * a is [M, K], or [K, M] with TRANSPOSE_A. b is [K, N], or [N, K] with TRANSPOSE_B. Both are dense
 * within a matrix, and the batch strides are arguments. An operand is stored as 32-bit words, or as
 * packed F16 or BF16, two to a word, which is widened exactly when it is read.
 *
 * Element indices stay below 2^31, so that an index inside a tensor never wraps. An index outside a
 * tensor is never used for an access.
 */
#include "args/elementwise.h"
#include "args/matmul.h"
#include "elementwise/activation.glsl"

layout(constant_id = 1) const uint TRANSPOSE_A = 0;
layout(constant_id = 2) const uint TRANSPOSE_B = 0;
layout(constant_id = 3) const uint A_STORAGE = MATMUL_WORDS;
layout(constant_id = 4) const uint B_STORAGE = MATMUL_WORDS;
layout(constant_id = 5) const uint VECTORS = 0;
layout(constant_id = 6) const uint BIAS = MATMUL_NO_BIAS;
layout(constant_id = 7) const uint ACTIVATION = UNARY_NONE;
/* Register block: rows and columns of y that an invocation computes. */
layout(constant_id = 8) const uint REG_M = 1;
layout(constant_id = 9) const uint REG_N = 1;

#ifndef MATMUL_ARGS /* defined if the arguments are part of a larger push constant block */
layout(push_constant) uniform block { matmul_args args; };
#endif

/*
 * The number of tile rows of y to compute. `all` is the number for the full product, and `each` is
 * the number of workgroups per tile row. A dispatch without batches may launch fewer, if only some
 * rows are in use.
 */
uint launched_rows(uint all, uint each)
{
    uint launched = gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_NumWorkGroups.z;
    return args.batch_count > 1 ? all : min(all, launched / each);
}

/* Three views of each operand: one, two or four words per access. */
layout(set = 0, binding = 0) readonly buffer a_view { uint a_words[]; };
layout(set = 0, binding = 0) readonly buffer a_view2 { uvec2 a_pairs[]; };
layout(set = 0, binding = 0) readonly buffer a_view4 { uvec4 a_quads[]; };
layout(set = 0, binding = 1) readonly buffer b_view { uint b_words[]; };
layout(set = 0, binding = 1) readonly buffer b_view2 { uvec2 b_pairs[]; };
layout(set = 0, binding = 1) readonly buffer b_view4 { uvec4 b_quads[]; };
layout(set = 0, binding = 2) readonly buffer bias_view { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer y_view { float y[]; };
layout(set = 0, binding = 3) writeonly buffer y_view4 { vec4 y_quads[]; };

float half_element(uint word, uint index, uint storage)
{
    uint bits = (index & 1u) != 0u ? word >> 16 : word & 0xffffu;
    return storage == MATMUL_F16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
}

vec4 half_quad(uvec2 words, uint storage)
{
    if (storage == MATMUL_F16)
        return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    return uintBitsToFloat(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16,
                                 words.y & 0xffff0000u));
}

/*
 * Defines two functions for an operand that is declared as name_words, name_pairs and name_quads.
 * read_name(i) reads one element. read_name4(i, count) reads elements i .. i + 3. Only the first
 * `count` of these exist, and the rest are 0.
 */
#define OPERAND_READER(name, storage, quads)                                                       \
    float read_##name(uint i)                                                                      \
    {                                                                                              \
        return storage == MATMUL_WORDS ? uintBitsToFloat(name##_words[i])                          \
                                       : half_element(name##_words[i >> 1], i, storage);           \
    }                                                                                              \
    vec4 read_##name##4(uint i, uint count)                                                        \
    {                                                                                              \
        if (quads) {                                                                               \
            if (count == 0u)                                                                       \
                return vec4(0.0);                                                                  \
            return storage == MATMUL_WORDS ? uintBitsToFloat(name##_quads[i >> 2])                 \
                                           : half_quad(name##_pairs[i >> 2], storage);             \
        }                                                                                          \
        return vec4(count > 0u ? read_##name(i) : 0.0, count > 1u ? read_##name(i + 1u) : 0.0,     \
                    count > 2u ? read_##name(i + 2u) : 0.0,                                        \
                    count > 3u ? read_##name(i + 3u) : 0.0);                                       \
    }

OPERAND_READER(a, A_STORAGE, (VECTORS & MATMUL_VECTOR_A) != 0u)
OPERAND_READER(b, B_STORAGE, (VECTORS & MATMUL_VECTOR_B) != 0u)

/* Writes the first `count` of four neighbours in a row of y. */
void write_quad(uint index, uint count, vec4 v)
{
    if ((VECTORS & MATMUL_VECTOR_Y) != 0) {
        if (count != 0)
            y_quads[index >> 2] = v;
        return;
    }
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (i < count)
            y[index + i] = v[i];
}

/* How many of x .. x + 3 are below the limit. */
uint quad_count(uint x, uint limit)
{
    return x < limit ? min(limit - x, 4u) : 0u;
}

/* First element of the matrices of a and b in this batch. */
uvec2 batch_offsets(uint batch)
{
    uvec2 offsets = uvec2(args.a_offset, args.b_offset);
    if (args.batch_count == 1u)
        return offsets;
    for (uint axis = 0u; axis < 5u; axis++) {
        uint coordinate = batch % args.batch_dims[axis];
        batch /= args.batch_dims[axis];
        offsets += coordinate * uvec2(args.a_batch_strides[axis], args.b_batch_strides[axis]);
    }
    return offsets + batch * uvec2(args.a_batch_strides[5], args.b_batch_strides[5]);
}

float add_bias(float sum, uint row, uint column)
{
    if (BIAS == MATMUL_NO_BIAS)
        return sum;
    return sum + bias[args.bias_offset + (BIAS == MATMUL_BIAS_ROW ? row : column)];
}

float epilogue(float sum, uint row, uint column)
{
    sum = add_bias(sum, row, column);
    return ACTIVATION == UNARY_NONE ? sum : activation(ACTIVATION, sum);
}
