/*
 * The f32 operand x of the packed products, read four elements at a time: one access where its
 * offset allows.
 */
layout(set = 0, binding = 1) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 1) readonly restrict buffer source_vectors { vec4 x4[]; };

vec4 load_x(uint element)
{
    if (X_ALIGNED)
        return x4[element >> 2];
    return vec4(x[element], x[element + 1], x[element + 2], x[element + 3]);
}
