/*
 * The f32 operand x of packed products. Four elements are read at a time, with one access if the
 * offset is aligned.
 */
layout(set = 0, binding = 1) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 1) readonly restrict buffer source_vectors { vec4 x4[]; };

vec4 load_x(uint element)
{
    if (X_ALIGNED)
        return x4[element >> 2];
    return vec4(x[element], x[element + 1], x[element + 2], x[element + 3]);
}
