/*
 * An elementwise region: a straight-line program for single elements (see region_steps.glsl). A
 * kernel that includes this also defines REGION_WIDTH, its number of inputs (7 or 16).
 *
 * Specialization constants besides those of the program:
 *
 * - 2: bits 0 to 15 are the inputs of one element. Bits from 16 on are the inputs that repeat every
 *   modulus[k] elements.
 * - 3: bits 0 to 15 are the inputs that exist. Bits from 16 on are the inputs with half the
 *   output's resolution.
 *
 * y may be an input that is read one to one.
 */
#include "elementwise/region_steps.glsl"
#include "lib/four.glsl"

#if REGION_WIDTH == 7
#define EACH_INPUT EACH_OF_7
#else
#define EACH_INPUT EACH_OF_16
#endif

layout(constant_id = 2) const uint REPEATED = 0;
layout(constant_id = 3) const uint PRESENT = 0;

layout(push_constant) uniform block { region_args args; };
/* Views of the same memory as words and as vec4. */
#define DECLARE_INPUT(k)                                                                           \
    layout(set = 0, binding = k) readonly buffer words_##k { float x_##k[]; };                     \
    layout(set = 0, binding = k) readonly buffer fours_##k { vec4 x4_##k[]; };
EACH_INPUT(DECLARE_INPUT)
layout(set = 0, binding = REGION_WIDTH) writeonly buffer target1 { float y[]; };
layout(set = 0, binding = REGION_WIDTH) writeonly buffer target4 { vec4 y4[]; };

#define HAS(set, k) (((set) >> (k) & 1u) != 0u)

/* The elements of input k for output elements i. The flags are constant in each call, so that only
 * one form remains. */
uvec4 locate(uint k, bool single, bool repeats, bool halved, uvec4 i)
{
    uint offset = args.offsets[k >> 1] >> ((k & 1u) << 4) & 0xffffu;
    if (single)
        i = uvec4(0);
    if (repeats)
        i %= args.modulus[k];
    if (halved) { /* rows of all images follow each other; each image has an even number */
        uvec4 row = i / args.columns;
        i = (row >> 1) * (args.columns >> 1) + (i - row * args.columns >> 1);
    }
    return i + offset;
}

void main()
{
    bool wide = (FORM & REGION_WIDE) != 0;
    uvec4 i = wide ? global_index() * 4 + uvec4(0, 1, 2, 3) : four_elements();
    uvec4 from = min(i, uvec4(args.numel - 1));
    if (wide && i.x >= args.numel)
        return;
#define LOAD_INPUT(k)                                                                              \
    vec4 input_##k = vec4(0);                                                                      \
    if (HAS(PRESENT, k)) {                                                                         \
        uvec4 at = locate(k, HAS(REPEATED, k), HAS(REPEATED, 16 + k), HAS(PRESENT, 16 + k), from); \
        if (HAS(REPEATED, k))                                                                      \
            input_##k = vec4(x_##k[at.x]);                                                         \
        else if (wide && !HAS(PRESENT, 16 + k))                                                    \
            input_##k = x4_##k[at.x >> 2];                                                         \
        else                                                                                       \
            input_##k = vec4(LOAD_FOUR(x_##k, at));                                                \
    }
    EACH_INPUT(LOAD_INPUT)

    vec4 result;
    for (uint e = 0; e < 4; e++) {
        float value[REGION_VALUES_OF_STEPS + REGION_LENGTH];
#define TAKE_INPUT(k) value[k] = input_##k[e];
        EACH_INPUT(TAKE_INPUT)
        EACH_STEP(TAKE_STEP)
        result[e] = value[LAST_VALUE];
    }
    if (wide) {
        y4[args.target_offset + i.x >> 2] = result;
        return;
    }
    STORE_FOUR(y, args.target_offset, i, args.numel, result)
}
