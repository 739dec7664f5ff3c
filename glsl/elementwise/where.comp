#version 450
/* y[i] = condition[..] != 0 ? a[..] : b[..], copied as words, so that all bits are kept. If an
 * operand is complex, y has two words per element, and a real operand has imaginary part 0. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "elementwise/elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer selector { uint condition[]; };
layout(set = 0, binding = 1) readonly buffer chosen { uint a[]; };
layout(set = 0, binding = 2) readonly buffer otherwise { uint b[]; };
layout(set = 0, binding = 3) writeonly buffer target { uint y[]; };

uvec2 pair_a(uint at)
{
    return (PAIRS & 2u) != 0u ? uvec2(a[2 * at], a[2 * at + 1]) : uvec2(a[at], 0u);
}
uvec2 pair_b(uint at)
{
    return (PAIRS & 4u) != 0u ? uvec2(b[2 * at], b[2 * at + 1]) : uvec2(b[at], 0u);
}

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    bvec4 first = notEqual(uvec4(LOAD_FOUR(condition, at.a)) & 0x7fffffffu, uvec4(0));
    if (PAIRS == 0u) {
        uvec4 p = uvec4(LOAD_FOUR(a, at.b)), q = uvec4(LOAD_FOUR(b, at.c));
        uvec4 v = mix(q, p, first);
        STORE_FOUR(y, args.target_offset, i, args.numel, v)
        return;
    }
    for (uint k = 0; k < 4 && i[k] < args.numel; k++) {
        uvec2 word = first[k] ? pair_a(at.b[k]) : pair_b(at.c[k]);
        uint to = 2 * (args.target_offset + i[k]);
        y[to] = word.x;
        y[to + 1] = word.y;
    }
}
