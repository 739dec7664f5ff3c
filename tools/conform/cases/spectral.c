/*
 * Cases of fft and of the complex elementwise ops.
 *   fft          shift=1 drops the first row of x by a view; scratch=1 computes x (by copy);
 *                norm=bad is not a norm
 *   rfft, irfft  n; shift=1 drops the first element
 *
 * Activations of complex operands have their lines here, too, but their builders are in
 * elementwise.c.
 */
#include "conform/cases/cases.h"

#include <string.h>

static const char *const rows[] = {"fft",         "rfft_block",
                                   "irfft_block", "complex_norm_sq",
                                   "conjugate",   "complex_norm_sq_backward",
                                   NULL};

static rlxvk_fft_norm norm_of(const case_spec *s)
{
    const char *word = case_word(s, "norm", "backward");
    if (strcmp(word, "bad") == 0)
        return (rlxvk_fft_norm)77;
    if (strcmp(word, "none") == 0)
        return RLXVK_FFT_NONE;
    return strcmp(word, "ortho") == 0 ? RLXVK_FFT_ORTHO : RLXVK_FFT_INVERSE;
}

static rlxvk_tensor build_fft(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x)
{
    bool inverse = case_integer(s, "inverse", 0) != 0;
    if (case_integer(s, "shift", 0))
        x = rlxvk_narrow(g, x, 0, 1, rlxvk_tensor_shape(g, x).dims[0] - 1);
    if (case_integer(s, "scratch", 0))
        x = rlxvk_copy(g, x);
    return rlxvk_fft_axis(g, x, (int32_t)case_integer(s, "axis", -1), inverse, norm_of(s));
}

static rlxvk_tensor build_real(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x)
{
    int64_t n = case_integer(s, "n", 0);
    if (case_integer(s, "shift", 0))
        x = rlxvk_narrow(g, x, 0, 1, rlxvk_tensor_shape(g, x).dims[0] - 1);
    return strcmp(s->row, "rfft_block") ? rlxvk_irfft_block(g, x, n, norm_of(s))
                                        : rlxvk_rfft_block(g, x, n, norm_of(s));
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strcmp(s->row, "fft") == 0)
        return build_fft(g, s, inputs[0]);
    if (strstr(s->row, "rfft_block"))
        return build_real(g, s, inputs[0]);
    if (strcmp(s->row, "conjugate") == 0)
        return rlxvk_conjugate(g, inputs[0]);
    if (strcmp(s->row, "complex_norm_sq") == 0)
        return rlxvk_complex_norm_sq(g, inputs[0]);
    return rlxvk_complex_norm_sq_backward(g, inputs[0], inputs[1]);
}

/* ---- Lines ---- */

static const int lengths[] = {1,   2,   3,   4,   5,   6,   7,    8,    9,    11,   13,   14,  15,
                              16,  17,  31,  32,  60,  64,  97,   100,  121,  128,  143,  169, 243,
                              255, 256, 257, 400, 512, 729, 1000, 1009, 1024, 1025, 1331, 2048};

static void generate_lengths(case_list *list)
{
    static const char *const norms[] = {"backward", "none", "ortho"};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        int n = lengths[i];
        case_add(list, "fft inverse=%zu norm=%s in=x:c64:3x%d", i % 2, norms[i % 3], n);
        case_add(list, "fft inverse=%zu norm=%s in=x:f32:2x%d:unit", (i + 1) % 2,
                 norms[(i + 1) % 3], 2 * n);
    }
}

static void generate_long(case_list *list)
{
    case_add(list, "fft in=x:c64:2x4093");
    case_add(list, "fft in=x:c64:1x4096");
    case_add(list, "fft in=x:c64:2x8192");
    case_add(list, "fft inverse=1 norm=none in=x:f32:2x12000");
    case_add(list, "fft inverse=1 norm=ortho in=x:c64:1x10007");
    case_add(list, "fft norm=ortho in=x:c64:1x28561");
    case_add(list, "fft inverse=1 in=x:c64:2x65536");
    case_add(list, "fft in=x:f32:131074:unit");
    case_add(list, "fft in=x:c64:130050x4");
    case_add(list, "fft inverse=1 in=x:c64:4000x17");
}

static void generate_axes(case_list *list)
{
    static const char *const shapes[][2] = {
        {"5x7x11", "0"},  {"5x7x11", "1"},   {"5x7x11", "-1"},          {"16x3x1", "0"},
        {"1024x3", "0"},  {"2x17x5", "1"},   {"2x2x2x2x3x2x2x2", "4"},  {"2x1x3", "1"},
        {"4096x5", "0"},  {"2x3000x3", "1"}, {"2x2x2x2x2x2x2x2", "0"},  {"3x1009x2", "1"},
        {"64x64x2", "0"}, {"3x12x130", "1"}, {"2x2x2x2x2x2x2x9", "-1"}, {"4099x3", "0"},
    };
    for (size_t i = 0; i < COUNT(shapes); i++)
        case_add(list, "fft axis=%s inverse=%zu norm=%s in=x:c64:%s", shapes[i][1], i / 2 % 2,
                 i % 3 ? "ortho" : "backward", shapes[i][0]);
    for (int n = 30; n <= 33; n++) {
        case_add(list, "fft shift=1 inverse=1 in=x:c64:3x%d", n);
        case_add(list, "fft shift=1 in=x:f32:3x%d", 2 * n);
        case_add(list, "fft scratch=1 axis=0 in=x:c64:%dx7", n);
    }
}

static void generate_fills(case_list *list)
{
    static const char *const fills[] = {"zero", "one", "integers", "offset", "iota", "large"};
    for (size_t i = 0; i < COUNT(fills); i++) {
        case_add(list, "fft in=x:c64:3x24:%s", fills[i]);
        case_add(list, "fft inverse=1 in=x:f32:3x46:%s", fills[i]);
    }
    case_add(list, "fft in=x:c64:0x8");
    case_add(list, "fft axis=1 in=x:c64:3x8x0");
    case_add(list, "fft in=x:f64:2x10");
    case_add(list, "fft expect=E_SHAPE in=x:c64:scalar");
    case_add(list, "fft expect=E_SHAPE in=x:c64:3x0");
    case_add(list, "fft expect=E_SHAPE in=x:f32:3x7");
    case_add(list, "fft expect=E_SHAPE in=x:f32:0");
    case_add(list, "fft expect=E_DTYPE in=x:i32:3x8");
    case_add(list, "fft axis=0 in=x:c64:6x8200"); /* rows far apart: fft_tile=across_far */
    case_add(list, "fft expect=E_DTYPE axis=0 in=x:f32:4x8");
    case_add(list, "fft expect=E_AXIS axis=2 in=x:c64:4x8");
    case_add(list, "fft expect=E_ATTR norm=bad in=x:c64:4x8");
}

static void generate_real(case_list *list)
{
    static const int points[] = {2,  4,  6,   8,   10,  12,  14,   16,   22,   26,   30,  32,
                                 34, 64, 120, 194, 200, 256, 1000, 1024, 2048, 2018, 4096};
    static const char *const norms[] = {"backward", "none", "ortho"};
    for (size_t i = 0; i < COUNT(points); i++) {
        int n = points[i];
        case_add(list, "rfft_block norm=%s in=x:f32:3x%d", norms[i % 3], n);
        case_add(list, "irfft_block n=%d norm=%s in=x:f32:3x%d", n, norms[i % 3], n + 2);
    }
    case_add(list, "rfft_block n=100 in=x:f32:3x60");
    case_add(list, "rfft_block n=100 in=x:f32:3x140");
    case_add(list, "rfft_block n=100 in=x:f32:3x61");
    case_add(list, "rfft_block n=100 in=x:f32:5x2x101:unit");
    case_add(list, "rfft_block n=74 in=x:f32:5x40:unit");
    case_add(list, "rfft_block shift=1 in=x:f32:31");
    case_add(list, "irfft_block shift=1 n=30 in=x:f32:33");
    case_add(list, "rfft_block in=x:f32:2x12000");
    case_add(list, "irfft_block n=12000 in=x:f32:2x12002");
    case_add(list, "rfft_block in=x:f32:65536");
    case_add(list, "irfft_block n=65536 in=x:f32:65538");
    case_add(list, "rfft_block in=x:f32:9006");
    case_add(list, "irfft_block n=9006 in=x:f32:9008");
    case_add(list, "rfft_block in=x:f64:2x8:zero");
    case_add(list, "rfft_block in=x:f32:0x8");
    case_add(list, "rfft_block expect=E_DTYPE in=x:i32:2x8");
    case_add(list, "irfft_block expect=E_DTYPE n=6 in=x:i32:2x8");
    case_add(list, "rfft_block expect=E_ATTR norm=bad in=x:f32:2x8");
    case_add(list, "rfft_block expect=E_SHAPE in=x:f32:scalar");
    case_add(list, "irfft_block expect=E_SHAPE n=8 in=x:f32:2x8");
}

static const char *const complex_inputs[] = {"c64:scalar",
                                             "c64:1",
                                             "c64:0",
                                             "c64:2x0x3",
                                             "c64:7",
                                             "c64:2x3x5",
                                             "c64:127",
                                             "c64:129",
                                             "c64:2x2x2x2x2x2x2x2",
                                             "c64:33x101",
                                             "c64:300:unit",
                                             "c64:64:zero",
                                             "c64:64:constant:-0.0",
                                             "c64:300:range:-20:20",
                                             "c64:300:integers",
                                             "c64:300:positive"};

static void generate_complex(case_list *list)
{
    static const char *const names[] = {"neg",      "exp", "log", "sqrt", "complex_norm_sq",
                                        "conjugate"};
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; k < COUNT(complex_inputs); k++)
            case_add(list, "%s in=x:%s", names[i], complex_inputs[k]);
    case_add(list, "neg in=x:c64:400:special");
    case_add(list, "conjugate in=x:c64:400:special");
    case_add(list, "complex_norm_sq in=x:c64:400:special");
    case_add(list, "complex_norm_sq in=x:c64:400:large");
    case_add(list, "sqrt in=x:c64:400:large");
    case_add(list, "log in=x:c64:400:large");
    case_add(list, "log in=x:c64:2000:range:0.6:0.8");
    case_add(list, "exp in=x:c64:2000:range:-85:85");
    case_add(list, "exp in=x:c64:2000:range:-300:300");
    case_add(list, "exp in=x:c64:400:large");
    case_add(list, "exp in=x:c64:20000:special");
    case_add(list, "log in=x:c64:20000:special");
    case_add(list, "sqrt in=x:c64:20000:special");
    case_add(list, "sqrt in=x:c64:64:constant:-1e-42");
    case_add(list, "sqrt in=x:c64:2000:range:-1e-20:1e-20");
    case_add(list, "gelu expect=E_DTYPE in=x:c64:4");
    case_add(list, "abs expect=E_DTYPE in=x:c64:4");
    case_add(list, "conjugate expect=E_DTYPE in=x:f32:4");
    case_add(list, "complex_norm_sq expect=E_DTYPE in=x:f32:4");
}

static void generate_backward(case_list *list)
{
    static const char *const dims[] = {"scalar", "1",   "0",   "7",      "2x3x5",
                                       "127",    "129", "1x1", "33x101", "2x2x2x2x2x2x2x2"};
    static const char *const fills[] = {"uniform", "integers", "large", "special"};
    for (size_t i = 0; i < COUNT(dims); i++)
        case_add(list, "complex_norm_sq_backward in=z:c64:%s;g:f32:%s", dims[i], dims[i]);
    for (size_t i = 0; i < COUNT(fills); i++)
        case_add(list, "complex_norm_sq_backward in=z:c64:500:%s;g:f32:500:unit", fills[i]);
    case_add(list, "complex_norm_sq_backward expect=E_SHAPE in=z:c64:4;g:f32:5");
    case_add(list, "complex_norm_sq_backward expect=E_DTYPE in=z:f32:4;g:f32:4");
    case_add(list, "complex_norm_sq_backward expect=E_DTYPE in=z:c64:4;g:c64:4");
}

static void generate(case_list *list)
{
    generate_lengths(list);
    generate_long(list);
    generate_axes(list);
    generate_fills(list);
    generate_real(list);
    generate_complex(list);
    generate_backward(list);
}

const case_family spectral_cases = {rows, build, generate};
