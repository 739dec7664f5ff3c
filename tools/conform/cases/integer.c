/*
 * Cases of quantize, dequantize, qmatmul and qconv2d. If an 8-bit operand is given as f32, it is
 * cast to I8 first, so that it is computed and held as words. If it is given as i8, it is raw
 * bytes.
 *
 *   scales=0.5,1 zero_points=3,-4   one of each, or as many as the axis is long
 *   count=N                         N generated scales and zero points instead
 *   axis=A                          if absent: one scale for the whole tensor
 *   even=1 unsigned=1               halves to even; codes 0..255
 *   zp=X,W,OUT mult=M               of the integer products
 *   shift=N                         operands x and w begin with N rows that a view leaves out
 */
#include "base/base.h"
#include "conform/cases/cases.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SCALES = 512 };

/* ---- Builders ---- */

static size_t read_scales(const case_spec *s, float *scales, int32_t *zero_points)
{
    size_t made = (size_t)case_integer(s, "count", 0), count = 0;
    for (size_t i = 0; i < made && i < MOST_SCALES; i++) {
        scales[i] = 0.01f * (float)(1 + i % 50);
        zero_points[i] = (int32_t)(i * 37 % 256) - 128;
    }
    if (made)
        return made;
    const char *word = case_word(s, "scales", "");
    for (char *end; *word && count < MOST_SCALES; word = end + (*end == ','))
        scales[count++] = (float)text_to_real(word, &end);
    case_integers(s, "zero_points", zero_points, MOST_SCALES);
    return count;
}

/* The operand as I8, however it is held. */
static rlxvk_tensor integer_operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                                    const char *name)
{
    rlxvk_tensor t = case_tensor(s, inputs, name);
    int64_t shift = case_integer(s, "shift", 0);
    if (t.id && rlxvk_tensor_dtype(g, t) == RLXVK_F32)
        t = rlxvk_cast(g, t, RLXVK_I8);
    if (t.id && shift)
        t = rlxvk_narrow(g, t, 0, shift, rlxvk_tensor_shape(g, t).dims[0] - shift);
    return t;
}

static rlxvk_tensor build_quantize(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    float scales[MOST_SCALES];
    int32_t zero_points[MOST_SCALES] = {0};
    rlxvk_quantize_options options = {.scales = scales,
                                      .zero_points = zero_points,
                                      .count = read_scales(s, scales, zero_points),
                                      .per_axis = *case_word(s, "axis", ""),
                                      .axis = (int32_t)case_integer(s, "axis", 0)};
    options.struct_size = RLXVK_SIZE_OF(rlxvk_quantize_options);
    options.rounding = case_integer(s, "even", 0) ? RLXVK_QUANTIZE_EVEN : RLXVK_QUANTIZE_AWAY;
    options.code = case_integer(s, "unsigned", 0) ? RLXVK_U8 : (rlxvk_dtype)0;
    if (!*case_word(s, "zero_points", "") && !case_integer(s, "count", 0))
        options.zero_points = NULL;
    if (strcmp(s->row, "quantize") == 0)
        return rlxvk_quantize(g, case_tensor(s, inputs, "x"), &options);
    return rlxvk_dequantize(g, integer_operand(g, s, inputs, "x"), &options);
}

static void read_pair(const case_spec *s, const char *key, int64_t out[2])
{
    int32_t values[2] = {0};
    case_integers(s, key, values, 2);
    out[0] = values[0];
    out[1] = values[1];
}

static rlxvk_tensor build_product(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int32_t points[3] = {0};
    case_integers(s, "zp", points, 3);
    rlxvk_qconv2d_options options = {.requantize = {points[0], points[1], points[2],
                                                    (float)case_real(s, "mult", 0.01)},
                                     .groups = case_integer(s, "groups", 0)};
    rlxvk_tensor x = integer_operand(g, s, inputs, "x"), w = integer_operand(g, s, inputs, "w");
    rlxvk_tensor bias = case_tensor(s, inputs, "bias");
    if (strcmp(s->row, "qmatmul") == 0)
        return rlxvk_qmatmul(g, x, w, bias, &options.requantize);
    read_pair(s, "kernel", options.kernel);
    read_pair(s, "stride", options.stride);
    read_pair(s, "padding", options.padding);
    read_pair(s, "dilation", options.dilation);
    return rlxvk_qconv2d(g, x, w, bias, &options);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    bool scales = strstr(s->row, "quantize") != NULL;
    return scales ? build_quantize(g, s, inputs) : build_product(g, s, inputs);
}

/* ---- Cases ---- */

static const char *const quantize_rests[] = {
    "scales=0.5 zero_points=3 in=x:f32:scalar",
    "scales=0.5 zero_points=3 axis=-1 in=x:f32:scalar",
    "scales=0.5 zero_points=3 in=x:f32:1",
    "scales=0.5 zero_points=3 in=x:f32:0",
    "scales=0.02 in=x:f32:1023",
    "scales=2 in=x:f32:501:integers", /* ties */
    "scales=2 zero_points=-128 in=x:f32:501:integers",
    "scales=2 zero_points=127 in=x:f32:501:integers",
    "even=1 scales=2 in=x:f32:501:integers", /* ties */
    "even=1 scales=2 zero_points=-128 in=x:f32:501:integers",
    "even=1 unsigned=1 scales=2 zero_points=128 in=x:f32:501:integers",
    "even=1 unsigned=1 scales=0.3 zero_points=255 in=x:f32:700:range:-80:10",
    "even=1 scales=0.1 in=x:f32:999:range:-13:13",
    "even=1 scales=0.0078431377 zero_points=-1 in=x:f32:4097:range:-1:1",
    "even=1 scales=1 in=x:f32:37:constant:0.49999997",
    "even=1 scales=1 in=x:f32:37:constant:0.5",
    "even=1 scales=1 in=x:f32:37:constant:-0.50000006",
    "even=1 scales=3 in=x:f32:37:constant:1.5000001", /* the nearest f32 of the quotient is 1/2 */
    "even=1 scales=1e30 zero_points=5 in=x:f32:999:large",
    "even=1 scales=1e-30 zero_points=5 in=x:f32:999:large",
    "even=1 scales=0.01 zero_points=-7 in=x:f32:999:special",
    "even=1 count=7 axis=1 in=x:f32:3x7x11",
    "unsigned=1 scales=0.5 zero_points=200 in=x:f32:501:integers",
    "even=1 scales=1e-31 in=x:f32:4 expect=E_ATTR",
    "even=1 unsigned=1 scales=1 zero_points=-1 in=x:f32:4 expect=E_ATTR",
    "scales=1 in=x:f32:37:constant:0.49999997",
    "scales=1 in=x:f32:37:constant:-0.49999997",
    "scales=1 in=x:f32:37:constant:126.49999",
    "scales=1 in=x:f32:37:constant:8388609",
    "scales=1 zero_points=-128 in=x:f32:700:range:250:260",
    "scales=1 zero_points=127 in=x:f32:700:range:-260:-250",
    "scales=0.01 zero_points=-7 in=x:f32:999:special",
    "scales=0.01 zero_points=-7 in=x:f32:999:large",
    "scales=1e30 zero_points=5 in=x:f32:999:large",
    "scales=1e-30 zero_points=5 in=x:f32:999:large",
    "scales=0.03 zero_points=1 in=x:f32:1x2x1x3x1x2x1x5",
    "count=3 axis=1 in=x:f32:2x3x5",
    "count=3 axis=-2 in=x:f32:2x3x5",
    "count=2 axis=0 in=x:f32:2x3x5:special",
    "count=5 axis=2 in=x:f32:2x3x5",
    "count=1 axis=2 in=x:f32:2x3x5",
    "count=1 axis=1 in=x:f32:7x1x9",
    "count=5 axis=7 in=x:f32:1x2x1x3x1x2x1x5",
    "count=3 axis=3 in=x:f32:1x2x1x3x1x2x1x5",
    "count=300 axis=0 in=x:f32:300x7",
    "count=301 axis=1 in=x:f32:3x301:range:-9:9",
    "count=4 axis=1 in=x:f32:0x4",
    "count=1 axis=0 in=x:f32:0x4",
    "count=64 axis=1 in=x:f32:2x64x33x35",
    "expect=E_ATTR scales=0 in=x:f32:4",
    "expect=E_ATTR scales=-1 in=x:f32:4",
    "expect=E_ATTR scales=inf in=x:f32:4",
    "expect=E_ATTR scales=nan in=x:f32:4",
    "expect=E_ATTR in=x:f32:4",
    "expect=E_ATTR scales=1,2 in=x:f32:2",
    "expect=E_ATTR scales=1,2 axis=0 in=x:f32:4",
    "expect=E_ATTR scales=1 zero_points=128 in=x:f32:4",
    "expect=E_ATTR scales=1 zero_points=-129 in=x:f32:4",
    "expect=E_AXIS scales=1 axis=1 in=x:f32:4",
    "expect=E_AXIS scales=1 axis=-2 in=x:f32:4",
    "expect=E_DTYPE scales=1 in=x:i32:4",
    "expect=E_DTYPE scales=1 in=x:i8:4",
};

static const char *const dequantize_rests[] = {
    "scales=0.5 zero_points=3 in=x:i8:scalar",
    "scales=0.5 zero_points=3 in=x:f32:scalar:range:-100:100",
    "scales=0.5 zero_points=3 in=x:i8:1",
    "scales=0.5 zero_points=3 in=x:i8:0",
    "scales=0.02 in=x:i8:1023",
    "scales=0.02 in=x:f32:1023:range:-150:150",
    "scales=0.1 zero_points=-128 in=x:i8:257:iota",
    "scales=0.1 zero_points=127 in=x:i8:257:iota",
    "scales=1e30 zero_points=127 in=x:i8:257:iota",
    "scales=3e37 zero_points=127 in=x:i8:257:iota", /* overflows to infinity */
    "scales=1e-30 zero_points=-3 in=x:i8:257:iota",
    "scales=0.03 zero_points=1 in=x:i8:1x2x1x3x1x2x1x5",
    "count=3 axis=1 in=x:i8:2x3x5",
    "count=3 axis=-2 in=x:f32:2x3x5:range:-130:130",
    "count=2 axis=0 in=x:i8:2x3x5",
    "count=5 axis=2 in=x:i8:2x3x5",
    "count=1 axis=2 in=x:i8:2x3x5",
    "count=5 axis=7 in=x:i8:1x2x1x3x1x2x1x5",
    "count=300 axis=0 in=x:i8:300x7",
    "count=301 axis=1 in=x:f32:3x301:range:-128:127",
    "count=4 axis=1 in=x:i8:0x4",
    "shift=1 count=4 axis=1 in=x:i8:5x4",
    "shift=2 count=6 axis=1 in=x:i8:7x6",
    "shift=1 count=3 axis=1 in=x:f32:7x3:range:-128:127",
    "count=64 axis=1 in=x:i8:2x64x33x35",
    "expect=E_ATTR scales=0 in=x:i8:4",
    "expect=E_ATTR scales=1,2 in=x:i8:2",
    "expect=E_ATTR scales=1,2 axis=0 in=x:i8:4",
    "expect=E_ATTR scales=1 zero_points=128 in=x:i8:4",
    "expect=E_AXIS scales=1 axis=1 in=x:i8:4",
    "expect=E_DTYPE scales=1 in=x:i32:4",
    "expect=E_DTYPE scales=1 in=x:u8:4",
};

static const char *const qmatmul_rests[] = {
    "in=x:i8:1x1;w:i8:1x1",
    "mult=0.5 in=x:i8:9x1:range:-9:9;w:i8:1x11:one", /* ties */
    "mult=0.5 zp=1,-1,0 in=x:f32:9x3:range:-4:4;w:f32:3x11:range:-4:4",
    "zp=3,-5,7 in=x:i8:0x5;w:i8:5x3;bias:i32:3:integers",
    "zp=3,-5,7 in=x:i8:4x5;w:i8:5x0;bias:i32:0",
    "zp=3,-5,7 mult=3 in=x:i8:4x0;w:i8:0x3;bias:i32:3:integers",
    "zp=3,-5,7 in=x:i8:4x0;w:i8:0x3",
    "zp=-128,127,-128 mult=1e-4 in=x:i8:33x65;w:i8:65x31;bias:i32:31:range:-9000:9000",
    "zp=127,-128,127 mult=1e-4 in=x:f32:33x65:range:-128:127;w:i8:65x33",
    "zp=127,-128,127 mult=1e-4 in=x:i8:8x64;w:f32:64x32:range:-128:127",
    "zp=0,0,1 mult=1e-3 in=x:f32:7x31:range:-128:127;w:f32:31x29:range:-128:127",
    "zp=1,2,3 mult=1e-4 in=x:i8:2x3x5x7;w:i8:7x9;bias:i32:9:integers",
    "zp=1,2,3 mult=1e-4 in=x:i8:1x2x1x3x1x2x5x7;w:i8:7x9",
    "zp=1,2,3 mult=1e-4 shift=4 in=x:i8:9x12;w:i8:16x10",
    "zp=1,2,3 mult=1e-4 shift=1 in=x:f32:9x12:range:-99:99;w:f32:13x10:range:-99:99",
    "zp=1,2,3 mult=1e30 in=x:i8:9x12;w:i8:12x10",
    "zp=1,2,3 mult=3e38 in=x:i8:9x12;w:i8:12x10",
    "zp=1,2,3 mult=1e-30 in=x:i8:9x12;w:i8:12x10",
    "zp=0,0,0 mult=1e-8 in=x:i8:9x12;w:i8:12x10;bias:i32:10:constant:2147483648",
    "zp=0,0,0 mult=1e-8 in=x:i8:9x12;w:i8:12x10;bias:i32:10:constant:-2147483648",
    "zp=0,0,0 mult=1e-8 in=x:i8:9x12;w:i8:12x10;bias:i32:10:range:-2e9:2e9",
    /* Sums beyond 2^31, and several slices. */
    "zp=127,127,0 mult=1e-8 in=x:i8:2x40000:constant:-128;w:i8:40000x3:constant:-128",
    "zp=127,-128,9 mult=1e-8 in=x:i8:2x40000:constant:-128;w:i8:40000x3:constant:127",
    "zp=127,127,-90 mult=2e-8 in=x:i8:9x70001:constant:-128;w:i8:70001x2:constant:-127",
    "zp=100,-90,0 mult=3e-8 in=x:i8:3x33000;w:i8:33000x5;bias:i32:5:range:-2e9:2e9",
    "zp=-100,90,0 mult=4e-8 in=x:f32:9x32769:range:90:127;w:i8:32769x2:range:-120:-90",
    "zp=1,2,3 mult=2e-4 in=x:i8:130x257;w:i8:257x97;bias:i32:97:range:-50000:50000",
    "zp=1,2,3 mult=2e-4 in=x:i8:1x512;w:i8:512x300",
    "expect=E_ATTR zp=128,0,0 in=x:i8:2x3;w:i8:3x4",
    "expect=E_ATTR zp=0,-129,0 in=x:i8:2x3;w:i8:3x4",
    "expect=E_ATTR zp=0,0,200 in=x:i8:2x3;w:i8:3x4",
    "expect=E_ATTR mult=0 in=x:i8:2x3;w:i8:3x4",
    "expect=E_ATTR mult=-1 in=x:i8:2x3;w:i8:3x4",
    "expect=E_ATTR mult=inf in=x:i8:2x3;w:i8:3x4",
    "expect=E_ATTR mult=nan in=x:i8:2x3;w:i8:3x4",
    "expect=E_SHAPE in=x:i8:2x3;w:i8:4x3",
    "expect=E_SHAPE in=x:i8:3;w:i8:3x4",
    "expect=E_SHAPE in=x:i8:2x3;w:i8:1x3x4",
    "expect=E_SHAPE in=x:i8:2x3;w:i8:3x4;bias:i32:3",
    "expect=E_SHAPE in=x:i8:2x3;w:i8:3x4;bias:i32:1x4",
    "expect=E_DTYPE in=x:i8:2x3;w:i8:3x4;bias:f32:4",
    "expect=E_DTYPE in=x:u8:2x3;w:i8:3x4",
    "expect=E_DTYPE in=x:i8:2x3;w:i32:3x4",
    "expect=E_ARITY in=x:i8:2x3",
};

/* Every size around the edges of a tile, in turn. */
static void generate_tiles(case_list *list)
{
    static const int sizes[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 67};
    for (size_t i = 0; i < COUNT(sizes); i++)
        case_add(list,
                 "qmatmul zp=%d,-17,%d mult=5e-4 in=x:i8:%dx%d;w:i8:%dx%d;bias:i32:%d:integers",
                 11 - (int)i, (int)i, sizes[i], sizes[(i * 3 + 1) % 10], sizes[(i * 3 + 1) % 10],
                 sizes[(i * 7 + 2) % 10], sizes[(i * 7 + 2) % 10]);
    /* Different sums near 2^24 and 2^25, which f32 rounds to the nearest, ties to even. The
     * multiplier brings them close to a tie, so that a difference of one f32 step shows. */
    static const struct {
        int depth, columns;
        const char *multiplier;
    } sums[] = {{258, 800, "2.98023206e-8"},  {258, 800, "2.98023224e-8"},
                {258, 800, "2.98023188e-8"},  {516, 1600, "1.49011603e-8"},
                {516, 1600, "1.49011585e-8"}, {516, 1600, "1.49011612e-8"},
                {516, 1600, "1.49011567e-8"}};
    for (size_t i = 0; i < COUNT(sums); i++)
        case_add(list,
                 "qmatmul zp=-128,-128,0 mult=%s in=x:i8:1x%d:constant:127;"
                 "w:i8:%dx%d:constant:127;bias:i32:%d:iota",
                 sums[i].multiplier, sums[i].depth, sums[i].depth, sums[i].columns,
                 sums[i].columns);
}

static const char *const qconv2d_rests[] = {
    "in=x:i8:1x1x1x1;w:i8:1x1x1x1",
    "in=x:f32:1x1x1x1:one;w:f32:1x1x1x1:one;bias:i32:1:integers",
    "mult=0.5 in=x:i8:1x1x5x6:range:-9:9;w:i8:2x1x1x1:one", /* ties */
    "zp=3,-5,7 mult=1e-3 in=x:i8:2x3x7x9;w:i8:4x3x3x3;bias:i32:4:range:-3000:3000",
    "zp=3,-5,7 mult=1e-3 in=x:f32:2x3x7x9:range:-128:127;w:i8:4x3x3x3",
    "zp=3,-5,7 mult=1e-3 in=x:i8:2x3x7x9;w:f32:4x3x3x3:range:-128:127",
    "zp=3,-5,7 mult=1e-3 in=x:f32:2x3x7x9:range:-99:99;w:f32:4x3x2x5:range:-99:99;bias:i32:4",
    "zp=3,-5,7 mult=1e-3 padding=1,1 in=x:i8:2x3x7x9;w:i8:4x3x3x3;bias:i32:4:integers",
    "zp=-128,127,-1 mult=1e-3 padding=2,1 in=x:i8:2x3x7x9;w:i8:4x3x3x2",
    "zp=9,8,7 mult=1e-3 padding=5,4 in=x:i8:1x2x3x4;w:i8:3x2x2x3", /* wider than the kernel */
    "zp=9,8,7 mult=1e-3 padding=6,0 in=x:i8:1x2x3x4;w:i8:3x2x5x1;bias:i32:3:integers",
    "zp=9,8,7 mult=1e-3 stride=2,3 in=x:i8:2x3x11x13;w:i8:4x3x3x3",
    "zp=9,8,7 mult=1e-3 stride=3,1 padding=1,2 in=x:i8:2x3x11x13;w:i8:4x3x2x3",
    "zp=9,8,7 mult=1e-3 stride=100,100 in=x:i8:2x3x11x13;w:i8:4x3x3x3",
    "zp=9,8,7 mult=1e-3 stride=2147483647,1 in=x:i8:2x3x11x13;w:i8:4x3x3x3",
    "zp=9,8,7 mult=1e-3 dilation=2,3 in=x:i8:2x3x11x13;w:i8:4x3x3x3",
    "zp=9,8,7 mult=1e-3 dilation=3,2 padding=4,3 stride=2,2 in=x:i8:2x3x11x13;w:i8:4x3x3x3",
    "zp=9,8,7 mult=1e-3 dilation=2147483647,1 in=x:i8:2x3x11x13;w:i8:4x3x1x3",
    "zp=9,8,7 mult=1e-3 padding=1000000,0 stride=499999,1 in=x:i8:1x2x3x4;w:i8:3x2x2x3",
    "zp=1,2,3 mult=1e-3 kernel=3,2 groups=2 in=x:i8:2x4x7x5;w:i8:6x2x3x2;bias:i32:6:integers",
    "zp=1,2,3 mult=1e-3 groups=4 in=x:i8:2x4x7x5;w:i8:4x1x3x2;bias:i32:4:integers",
    "zp=1,2,3 mult=1e-3 groups=4 padding=1,1 in=x:i8:1x4x7x5;w:i8:12x1x3x3",
    "zp=1,2,3 mult=1e-3 groups=3 stride=2,1 dilation=1,2 in=x:i8:2x6x8x9;w:i8:3x2x2x3",
    "zp=1,2,3 mult=1e-3 in=x:i8:1x64x5x5;w:i8:10x64x1x1;bias:i32:10:integers",
    "zp=1,2,3 in=x:i8:0x3x4x4;w:i8:2x3x2x2",
    "zp=1,2,3 in=x:i8:2x3x4x4;w:i8:0x3x2x2",
    "zp=1,2,3 mult=1 in=x:i8:2x0x4x4;w:i8:5x0x2x2;bias:i32:5:integers",
    "zp=1,2,3 padding=1,1 mult=1 in=x:i8:2x3x0x4;w:i8:5x3x2x2;bias:i32:5:integers",
    "zp=1,2,3 mult=1e-3 shift=1 in=x:i8:3x2x6x5;w:i8:4x2x2x3",
    "zp=1,2,3 mult=1e-3 shift=1 in=x:f32:3x2x5x5:range:-99:99;w:f32:4x2x3x3:range:-99:99",
    "zp=0,0,0 mult=1e30 in=x:i8:1x2x5x5;w:i8:3x2x3x3",
    "zp=0,0,0 mult=1e-8 in=x:i8:1x2x5x5;w:i8:3x2x3x3;bias:i32:3:constant:2147483648",
    /* Sums beyond 2^31, and several slices. */
    "zp=127,127,0 mult=1e-8 in=x:i8:1x1x200x202:constant:-128;w:i8:2x1x200x201:constant:-128",
    "zp=127,-128,0 mult=1e-8 in=x:i8:1x1x1x40001:constant:-128;w:i8:2x1x1x40000:constant:127",
    "zp=99,-77,4 mult=1e-8 in=x:i8:1x8200x3x3;w:i8:2x8200x3x3;bias:i32:2:integers",
    "zp=1,2,3 mult=3e-4 padding=1,1 in=x:i8:2x8x40x41;w:i8:16x8x3x3;bias:i32:16:integers",
    "expect=E_ATTR zp=128,0,0 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_ATTR zp=0,0,-129 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_ATTR mult=0 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_ATTR stride=-1,1 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_ATTR padding=0,-1 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_ATTR dilation=1,-2 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_ATTR groups=-1 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_SHAPE kernel=2,3 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_SHAPE in=x:i8:1x1x3x3;w:i8:1x1x0x2",
    "expect=E_SHAPE in=x:i8:1x1x3x3;w:i8:1x1x4x2",
    "expect=E_SHAPE dilation=1,3 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_SHAPE in=x:i8:1x2x3x3;w:i8:1x1x2x2",
    "expect=E_SHAPE groups=2 in=x:i8:1x3x3x3;w:i8:2x1x2x2",
    "expect=E_SHAPE groups=2 in=x:i8:1x4x3x3;w:i8:3x2x2x2",
    "expect=E_SHAPE in=x:i8:1x3x3;w:i8:1x1x2x2",
    "expect=E_SHAPE in=x:i8:1x1x3x3;w:i8:1x2x2",
    "expect=E_SHAPE in=x:i8:1x1x3x3;w:i8:2x1x2x2;bias:i32:1",
    "expect=E_TOO_LARGE padding=2147483647,0 in=x:i8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_TOO_LARGE in=x:i8:0x1x9223372036854775807x1;w:i8:1x1x2x1",
    "expect=E_TOO_LARGE in=x:i8:1x1x3x3;w:i8:0x1x9223372036854775807x1",
    "expect=E_DTYPE in=x:i8:1x1x3x3;w:i8:1x1x2x2;bias:f32:1",
    "expect=E_DTYPE in=x:u8:1x1x3x3;w:i8:1x1x2x2",
    "expect=E_DTYPE in=x:i8:1x1x3x3;w:i32:1x1x2x2",
};

static void generate(case_list *list)
{
    case_add_all(list, "quantize", quantize_rests, COUNT(quantize_rests));
    case_add_all(list, "dequantize", dequantize_rests, COUNT(dequantize_rests));
    case_add_all(list, "qmatmul", qmatmul_rests, COUNT(qmatmul_rests));
    generate_tiles(list);
    case_add_all(list, "qconv2d", qconv2d_rests, COUNT(qconv2d_rests));
}

static const char *const rows[] = {"quantize", "dequantize", "qmatmul", "qconv2d", NULL};

const case_family integer_cases = {.rows = rows, .build = build, .generate = generate};
