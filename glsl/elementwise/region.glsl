/*
 * An elementwise region: a straight-line program over single elements. Its steps are specialization
 * constants, so that the driver compiles the program's own operations and nothing else. A kernel
 * that includes this says how many steps and inputs it takes, REGION_LENGTH (8 or 32) and
 * REGION_WIDTH (7 or 16), and of which ops, REGION_LEVEL: what a driver must read before it can
 * forget it grows with all three.
 *
 * Specialization constants: 1 how many steps, REGION_WIDE where an invocation takes 4 elements in a
 * row, and REGION_BATCH where the program runs on each input in turn; 2 inputs of one element and,
 * from bit 16 on, inputs that repeat every modulus[k] elements; 3 the inputs there are and, from
 * bit 16 on, those of half the output's resolution; from 4 on the steps.
 *
 * y may be an input that is read one to one.
 */
#include "args/elementwise.h"
#include "elementwise/activation.glsl"
#include "elementwise/arithmetic.glsl"
#include "elementwise/convert.glsl"
#include "lib/four.glsl"

#define EACH_OF_7(X)  X(0) X(1) X(2) X(3) X(4) X(5) X(6)
#define EACH_OF_8(X)  EACH_OF_7(X) X(7)
#define EACH_OF_16(X) EACH_OF_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define EACH_OF_32(X)                                                                              \
    EACH_OF_16(X) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28)    \
    X(29) X(30) X(31)

#if REGION_WIDTH == 7
#define EACH_INPUT EACH_OF_7
#else
#define EACH_INPUT EACH_OF_16
#endif
#if REGION_LENGTH == 8
#define EACH_STEP EACH_OF_8
#else
#define EACH_STEP EACH_OF_32
#endif

layout(constant_id = 1) const uint FORM = 0;
layout(constant_id = 2) const uint REPEATED = 0;
layout(constant_id = 3) const uint PRESENT = 0;
#define DECLARE_STEP(k) layout(constant_id = 4 + k) const uint STEP_##k = 0;
EACH_STEP(DECLARE_STEP)

layout(push_constant) uniform block { region_args args; };
/* The same memory by words and by fours. */
#define DECLARE_INPUT(k)                                                                           \
    layout(set = 0, binding = k) readonly buffer words_##k { float x_##k[]; };                     \
    layout(set = 0, binding = k) readonly buffer fours_##k { vec4 x4_##k[]; };
EACH_INPUT(DECLARE_INPUT)
layout(set = 0, binding = REGION_WIDTH) writeonly buffer target1 { float y[]; };
layout(set = 0, binding = REGION_WIDTH) writeonly buffer target4 { vec4 y4[]; };

#define HAS(set, k) (((set) >> (k) & 1u) != 0u)

/* Where output elements i find input k. The constants are told apart here, so that each call leaves
 * one form. */
uvec4 locate(uint k, bool single, bool repeats, bool halved, uvec4 i)
{
    uint offset = args.offsets[k >> 1] >> ((k & 1u) << 4) & 0xffffu;
    if (single)
        i = uvec4(0);
    if (repeats)
        i %= args.modulus[k];
    if (halved) { /* rows of all images follow each other, an even number of each image */
        uvec4 row = i / args.columns;
        i = (row >> 1) * (args.columns >> 1) + (i - row * args.columns >> 1);
    }
    return i + offset;
}

/*
 * A step of operands a, b, c. Which function it calls is decided here and not in one, so that
 * drivers that specialize before they inline never look at the others.
 */
#define KIND(k) (STEP_##k & 7u)
#define OP(k)   (STEP_##k >> REGION_OP_SHIFT & REGION_OP_MASK)
#define VALUE(k, nth) (STEP_##k >> REGION_##nth##_SHIFT & REGION_OPERAND_MASK)
#define LIGHT_STEP(k)                                                                              \
    if (KIND(k) == REGION_ACTIVATION)                                                              \
        v = light_activation(OP(k), a);                                                            \
    if (KIND(k) == REGION_BINARY)                                                                  \
        v = light_combine(OP(k), a, b);                                                            \
    if (KIND(k) == REGION_COMPARE)                                                                 \
        v = holds(OP(k), a, b) ? 1.0 : 0.0;                                                        \
    if (KIND(k) == REGION_WHERE)                                                                   \
        v = magnitude_bits(a) != 0u ? b : c;
#if REGION_LEVEL >= REGION_COMMON
#define COMMON_STEP(k)                                                                             \
    if (KIND(k) == REGION_CAST)                                                                    \
        v = convert(OP(k), a);                                                                     \
    if (KIND(k) == REGION_CURVE)                                                                   \
        v = curve_activation(OP(k), a);                                                            \
    if (KIND(k) == REGION_ROOT && OP(k) < REGION_OP_BINARY)                                        \
        v = root_activation(OP(k), a);                                                             \
    if (KIND(k) == REGION_ROOT && OP(k) == REGION_OP_BINARY)                                       \
        v = divide(a, b);                                                                          \
    if (KIND(k) == REGION_ROOT && OP(k) == REGION_OP_QUOTIENT)                                     \
        v = gradient_quotient(a, b);
#else
#define COMMON_STEP(k)
#endif
#if REGION_LEVEL == REGION_ALL
#define RARE_STEP(k)                                                                               \
    if (KIND(k) == REGION_ANGLE && OP(k) != REGION_OP_BINARY)                                      \
        v = angle_activation(OP(k), a);                                                            \
    if (KIND(k) == REGION_ANGLE && OP(k) == REGION_OP_BINARY)                                      \
        v = power(a, b);
#else
#define RARE_STEP(k)
#endif

void main()
{
    bool wide = (FORM & REGION_WIDE) != 0, batch = (FORM & REGION_BATCH) != 0;
    uvec4 i = wide ? global_index() * 4 + uvec4(0, 1, 2, 3) : four_elements();
    uvec4 from = min(i, uvec4(args.numel - 1));
    if (wide && i.x >= args.numel)
        return;
    uvec4 lot = uvec4(0); /* of a batch: the inputs that are read */
    if (batch) {
        lot = from / args.slice;
        from -= lot * args.slice;
    }
#define LOAD_INPUT(k)                                                                              \
    vec4 input_##k = vec4(0);                                                                      \
    if (HAS(PRESENT, k) && (!batch || any(equal(lot, uvec4(k))))) {                                \
        uvec4 at = locate(k, HAS(REPEATED, k), HAS(REPEATED, 16 + k), HAS(PRESENT, 16 + k), from); \
        if (HAS(REPEATED, k))                                                                      \
            input_##k = vec4(x_##k[at.x]);                                                         \
        else if (wide && !HAS(PRESENT, 16 + k))                                                    \
            input_##k = x4_##k[at.x >> 2];                                                         \
        else                                                                                       \
            input_##k = vec4(LOAD_FOUR(x_##k, at));                                                \
    }
    EACH_INPUT(LOAD_INPUT)
#define TAKE_LOT(k) input_0 = mix(input_0, input_##k, equal(lot, uvec4(k)));
    if (batch) {
        EACH_INPUT(TAKE_LOT)
    }

    vec4 result;
    for (uint e = 0; e < 4; e++) {
        float value[REGION_VALUES_OF_STEPS + REGION_LENGTH];
#define TAKE_INPUT(k) value[k] = input_##k[e];
        EACH_INPUT(TAKE_INPUT)
#define TAKE_STEP(k)                                                                               \
    if ((FORM & 0xffu) > k) {                                                                      \
        float a = value[VALUE(k, FIRST)], v = a;                                                   \
        float b = value[VALUE(k, SECOND)];                                                         \
        float c = value[VALUE(k, THIRD)];                                                          \
        LIGHT_STEP(k) COMMON_STEP(k) RARE_STEP(k)                                                  \
        value[REGION_VALUES_OF_STEPS + k] = v;                                                     \
    }
        EACH_STEP(TAKE_STEP)
        result[e] = value[REGION_VALUES_OF_STEPS - 1 + (FORM & 0xffu)];
    }
    if (wide) {
        y4[args.target_offset + i.x >> 2] = result;
        return;
    }
    STORE_FOUR(y, args.target_offset, i, args.numel, result)
}
