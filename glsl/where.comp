#version 450
/* y[i] = condition[..] != 0 ? a[..] : b[..], as words: the chosen bits survive. With pairs y has two words an element;
 * a real operand beside a complex one has imaginary part 0. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

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
    for (uint k = 0; k < 4; k++) {
        uint i = element(k);
        if (i >= args.numel)
            continue;
        uvec3 at = locate(i);
        bool first = (condition[at.x] & 0x7fffffffu) != 0u;
        uint to = args.target_offset + i;
        if (PAIRS == 0u) {
            y[to] = first ? a[at.y] : b[at.z];
        } else {
            uvec2 word = first ? pair_a(at.y) : pair_b(at.z);
            y[2 * to] = word.x;
            y[2 * to + 1] = word.y;
        }
    }
}
