/*
 * The program of an elementwise region. Its steps are specialization constants, so that the driver
 * compiles only the program's own operations. A kernel that includes this defines REGION_LENGTH,
 * its number of steps (8 or 32), and REGION_LEVEL, its set of ops. Smaller values compile faster,
 * because a driver must read all code before it can remove the unused part.
 *
 * Specialization constants: 1 is the number of steps, plus REGION_WIDE if an invocation takes 4
 * consecutive elements. From 4 on they are the steps. The kernel has its own constants in between.
 */
#include "args/elementwise.h"
#include "elementwise/activation.glsl"
#include "elementwise/arithmetic.glsl"
#include "elementwise/convert.glsl"

#define EACH_OF_7(X)  X(0) X(1) X(2) X(3) X(4) X(5) X(6)
#define EACH_OF_8(X)  EACH_OF_7(X) X(7)
#define EACH_OF_16(X) EACH_OF_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define EACH_OF_32(X)                                                                              \
    EACH_OF_16(X) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28)    \
    X(29) X(30) X(31)

#if REGION_LENGTH == 8
#define EACH_STEP EACH_OF_8
#else
#define EACH_STEP EACH_OF_32
#endif

layout(constant_id = 1) const uint FORM = 0;
#define DECLARE_STEP(k) layout(constant_id = 4 + k) const uint STEP_##k = 0;
EACH_STEP(DECLARE_STEP)

/*
 * A step with operands a, b, c. The function is chosen in this macro, because drivers that
 * specialize before they inline then never look at the other functions.
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

/*
 * Runs step k on float value[REGION_VALUES_OF_STEPS + REGION_LENGTH], which starts with the inputs.
 */
#define TAKE_STEP(k)                                                                               \
    if ((FORM & 0xffu) > k) {                                                                      \
        float a = value[VALUE(k, FIRST)], v = a;                                                   \
        float b = value[VALUE(k, SECOND)];                                                         \
        float c = value[VALUE(k, THIRD)];                                                          \
        LIGHT_STEP(k) COMMON_STEP(k) RARE_STEP(k)                                                  \
        value[REGION_VALUES_OF_STEPS + k] = v;                                                     \
    }
#define LAST_VALUE (REGION_VALUES_OF_STEPS - 1 + (FORM & 0xffu))
