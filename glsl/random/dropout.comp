#version 450
/*
 * y = scale x if the element's word of the Philox stream says keep, else 0. It is a select and not
 * a product, so that dropped elements may have any value. An invocation takes two blocks of four
 * elements, one workgroup size apart. y may be x.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/random.h"
#include "lib/index.glsl"
#include "random/philox.glsl"

layout(constant_id = 1) const bool COUNTED = false; /* the step is in the state, not an operand */
layout(constant_id = 2) const bool VECTORS = false; /* x and y begin at multiples of four */
layout(push_constant) uniform block { dropout_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer steps { uint step_words[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { vec4 y4[]; };

uvec2 load_step()
{
    if (COUNTED)
        return uvec2(step_words[args.step_offset + 2u], step_words[args.step_offset + 3u]);
    float v = uintBitsToFloat(step_words[args.step_offset]);
    return uvec2(is_nan(v) ? 0u : uint(nearest_integer(clamp(v, 0.0, 4294967040.0))), 0u);
}

float kept(float v, uint word)
{
    return word >> 8 >= args.threshold ? v * args.scale : 0.0;
}

void drop_quad(uint quad, uvec4 words)
{
    uint first = 4u * quad;
    if (VECTORS && first + 4u <= args.numel) {
        vec4 v = x4[args.x_offset / 4u + quad];
        for (uint k = 0u; k < 4u; k++)
            v[k] = kept(v[k], words[k]);
        y4[args.y_offset / 4u + quad] = v;
        return;
    }
    for (uint k = 0u; k < 4u && first + k < args.numel; k++)
        y[args.y_offset + first + k] = kept(x[args.x_offset + first + k], words[k]);
}

void main()
{
    uint apart = gl_WorkGroupSize.x, quads = (args.numel + 3u) / 4u;
    uint quad = 2u * group_index() * apart + gl_LocalInvocationID.x;
    if (quad >= quads)
        return;
    uvec2 step = load_step();
    uvec4 a = uvec4(quad, 0u, step), b = uvec4(quad + apart, 0u, step);
    philox_two(a, b, uvec2(args.key_low, args.key_high));
    drop_quad(quad, a);
    if (quad + apart < quads)
        drop_quad(quad + apart, b);
}
