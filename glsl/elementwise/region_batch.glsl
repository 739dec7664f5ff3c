/*
 * A batch region: one program with one input (see region_steps.glsl), applied to each of up to 64
 * inputs. Every input gives `slice` elements of the output, one input after the other.
 *
 * Specialization constants besides those of the program: 2 says how inputs are read (REGION_SINGLE
 * ..), 3 is BINDINGS, the number of bound buffers. The output is binding 0 and the inputs follow.
 * Therefore code and buffers of missing inputs are removed from the module.
 */
#include "elementwise/region_steps.glsl"
#include "lib/four.glsl"

#define EACH_OF_64(X)                                                                              \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)                                                        \
    X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)                                                  \
    X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)                                                \
    X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)                                                \
    X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39)                                                \
    X(40) X(41) X(42) X(43) X(44) X(45) X(46) X(47)                                                \
    X(48) X(49) X(50) X(51) X(52) X(53) X(54) X(55)                                                \
    X(56) X(57) X(58) X(59) X(60) X(61) X(62) X(63)

layout(constant_id = 2) const uint READ = 0;
layout(constant_id = 3) const uint BINDINGS = 1;

layout(push_constant) uniform block { region_batch_args args; };
/* Views of the same memory as words and as vec4. */
layout(set = 0, binding = 0) writeonly buffer target1 { float y[]; };
layout(set = 0, binding = 0) writeonly buffer target4 { vec4 y4[]; };
#define DECLARE_INPUT(k)                                                                           \
    layout(set = 0, binding = 1 + k) readonly buffer words_##k { float x_##k[]; };                 \
    layout(set = 0, binding = 1 + k) readonly buffer fours_##k { vec4 x4_##k[]; };
EACH_OF_64(DECLARE_INPUT)

/* A binary tree finds the input in six comparisons. Constants remove the branches beyond the last
 * input. */
#define TREE_2(TAKE, a, b)                                                                         \
    if (b + 1 < BINDINGS && input_index >= b) {                                                    \
        TAKE(b)                                                                                    \
    } else {                                                                                       \
        TAKE(a)                                                                                    \
    }
#define TREE_4(TAKE, a, b, c, d)                                                                   \
    if (c + 1 < BINDINGS && input_index >= c) {                                                    \
        TREE_2(TAKE, c, d)                                                                         \
    } else {                                                                                       \
        TREE_2(TAKE, a, b)                                                                         \
    }
#define TREE_8(TAKE, a, b, c, d, e, f, g, h)                                                       \
    if (e + 1 < BINDINGS && input_index >= e) {                                                    \
        TREE_4(TAKE, e, f, g, h)                                                                   \
    } else {                                                                                       \
        TREE_4(TAKE, a, b, c, d)                                                                   \
    }
#define TREE_16(TAKE, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                              \
    if (i + 1 < BINDINGS && input_index >= i) {                                                    \
        TREE_8(TAKE, i, j, k, l, m, n, o, p)                                                       \
    } else {                                                                                       \
        TREE_8(TAKE, a, b, c, d, e, f, g, h)                                                       \
    }
#define TREE_64(TAKE)                                                                              \
    if (32 + 1 < BINDINGS && input_index >= 32) {                                                  \
        if (48 + 1 < BINDINGS && input_index >= 48) {                                              \
            TREE_16(TAKE, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63)          \
        } else {                                                                                   \
            TREE_16(TAKE, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47)          \
        }                                                                                          \
    } else {                                                                                       \
        if (16 + 1 < BINDINGS && input_index >= 16) {                                              \
            TREE_16(TAKE, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)          \
        } else {                                                                                   \
            TREE_16(TAKE, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                    \
        }                                                                                          \
    }

/* Element `at` of an input, or four elements from there. OFFSET is the number of elements before
 * the input that only align its binding. */
#define OFFSET(k) (args.offsets[k >> 2] >> ((k & 3) << 3) & 0xffu)
#define TAKE_WORD(k) x = x_##k[at + OFFSET(k)];
#define TAKE_FOUR(k) x = x4_##k[at + OFFSET(k) >> 2];
float word_of(uint input_index, uint at)
{
    float x;
    TREE_64(TAKE_WORD)
    return x;
}
vec4 four_of(uint input_index, uint at)
{
    vec4 x;
    TREE_64(TAKE_FOUR)
    return x;
}

/* The indices of elements i of a slice in its input. */
uvec4 locate(uvec4 i)
{
    if ((READ & REGION_SINGLE) != 0)
        return uvec4(0);
    if ((READ & REGION_REPEATS) != 0)
        i %= args.modulus;
    if ((READ & REGION_HALVED) != 0) { /* rows follow each other; each image has an even number */
        uvec4 row = i / args.columns;
        i = (row >> 1) * (args.columns >> 1) + (i - row * args.columns >> 1);
    }
    return i;
}

void main()
{
    bool wide = (FORM & REGION_WIDE) != 0;
    uvec4 i = wide ? global_index() * 4 + uvec4(0, 1, 2, 3) : four_elements();
    if (wide && i.x >= args.numel)
        return;
    uvec4 from = min(i, uvec4(args.numel - 1)), input_index = from / args.slice;
    uvec4 at = locate(from - input_index * args.slice);
    vec4 x;
    if (wide && (READ & (REGION_SINGLE | REGION_HALVED)) == 0)
        x = four_of(input_index.x, at.x);
    else
        for (uint e = 0; e < 4; e++)
            x[e] = word_of(input_index[e], at[e]);

    vec4 result;
    for (uint e = 0; e < 4; e++) {
        float value[REGION_VALUES_OF_STEPS + REGION_LENGTH];
        value[0] = x[e];
        EACH_STEP(TAKE_STEP)
        result[e] = value[LAST_VALUE];
    }
    if (wide) {
        y4[args.target_offset + i.x >> 2] = result;
        return;
    }
    STORE_FOUR(y, args.target_offset, i, args.numel, result)
}
