/* y[i] = RESULT(a[..], b[..]) for real operands. The includer defines RESULT. y may be a or b if
 * that operand is read densely. */
#include "elementwise/elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    vec4 p = vec4(LOAD_FOUR(a, at.a)), q = vec4(LOAD_FOUR(b, at.b));
    for (uint k = 0; k < 4; k++)
        p[k] = RESULT(p[k], q[k]);
    STORE_FOUR(y, args.target_offset, i, args.numel, p)
}
