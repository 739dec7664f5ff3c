/*
 * Cases of Welch's average of a signal. Keys: length, hop, n_fft, unfolded, scale; window=hann, or
 * an input `window`; shift=1 drops the first row of x by a view. Golden vectors and timings have
 * other keys: nperseg, overlap, fs, scaling, with a Hann window.
 */
#include "base/numeric.h"
#include "conform/cases/cases.h"

#include <rlxvk_ops_signal.h>

#include <math.h>
#include <string.h>

static const char *const rows[] = {"welch", NULL};

#define LONGEST_WINDOW 4096

static rlxvk_tensor build_psd(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x)
{
    float window[LONGEST_WINDOW];
    int64_t n = case_integer(s, "nperseg", 256);
    rlxvk_welch_frame_options o = {.length = n, .hop = n - case_integer(s, "overlap", n / 2)};
    bool density = strcmp(case_word(s, "scaling", "density"), "density") == 0;
    size_t count = n <= LONGEST_WINDOW ? (size_t)n : 0;
    for (size_t i = 0; i < count; i++)
        window[i] = (float)(0.5 - 0.5 * numeric_cos(6.283185307179586 * (double)i / (double)n));
    o.scale = rlxvk_signal_welch_scale(window, count, case_real(s, "fs", 1), density);
    return rlxvk_welch(g, x, rlxvk_signal_hann(g, n, true), &o);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    rlxvk_tensor window = case_tensor(s, inputs, "window");
    rlxvk_welch_frame_options o = {.length = case_integer(s, "length", 8),
                                   .hop = case_integer(s, "hop", 4),
                                   .n_fft = case_integer(s, "n_fft", 0),
                                   .unfolded = case_integer(s, "unfolded", 0) != 0,
                                   .scale = case_real(s, "scale", 0)};
    if (case_integer(s, "nperseg", 0))
        return build_psd(g, s, x);
    if (strcmp(case_word(s, "window", ""), "hann") == 0)
        window = rlxvk_signal_hann(g, o.length, true);
    return rlxvk_welch(g, x, window, &o);
}

static const char *const signals[] = {
    "length=1 hop=1 in=x:f32:1",
    "length=1 hop=1 in=x:f32:5",
    "length=1 hop=3 n_fft=2 in=x:f32:5",
    "length=2 hop=1 in=x:f32:9",
    "length=3 hop=2 in=x:f32:2x9",
    "in=x:f32:8",
    "in=x:f32:11",
    "in=x:f32:12",
    "in=x:f32:16",
    "in=x:f32:0x16",
    "hop=8 in=x:f32:40",
    "hop=11 in=x:f32:50",
    "hop=2147483647 in=x:f32:50",
    "unfolded=1 in=x:f32:3x40",
    "length=7 unfolded=1 scale=0.25 in=x:f32:3x40",
    "scale=-2 in=x:f32:3x40",
    "n_fft=9 in=x:f32:3x41",
    "length=5 hop=1 n_fft=16 in=x:f32:2x40;window:f32:5",
    "length=100 hop=50 n_fft=128 in=x:f32:2x700:unit;window:f32:100:positive",
    "in=x:f32:3x40;window:f32:8:positive",
    "in=x:f32:3x40;window:f32:8:zero",
    "in=x:f32:40:zero",
    "shift=1 in=x:f32:4x41;window:f32:8",
    "in=x:f32:1x2x1x1x2x1x2x21;window:f32:8",
    "window=hann in=x:f32:5000:outliers",
    "length=16 hop=1 window=hann in=x:f32:3000",
    "length=11 hop=3 window=hann in=x:f32:7x1201:unit",
    "length=13 hop=13 in=x:f32:65x169",
    "length=30 hop=7 in=x:f32:2x9000:constant:0.37",
    "length=64 hop=32 window=hann in=x:f32:20000:unit",
    "length=120 hop=60 window=hann in=x:f32:3x5000:unit",
    "length=256 hop=128 window=hann in=x:f32:2x3000:unit",
    "length=400 hop=160 window=hann in=x:f32:4000:unit",
    "length=1024 hop=512 window=hann in=x:f32:2x20000:unit",
    "length=2048 hop=1024 window=hann in=x:f32:9000:unit",
    "length=2197 hop=1000 in=x:f32:9001:unit",
    "length=3000 hop=1500 n_fft=4096 window=hann in=x:f32:12000:unit",
    "variant=welch=short length=24 hop=9 window=hann in=x:f32:4x900",
    "variant=welch=middle length=96 hop=48 window=hann in=x:f32:4x900",
    "variant=welch=long length=512 hop=256 window=hann in=x:f32:2x9000:unit",
    "variant=welch=even length=512 hop=256 window=hann in=x:f32:2x9000:unit",
    "variant=welch=dense length=512 hop=256 window=hann in=x:f32:2x9000:unit",
    "variant=welch=dense length=1155 hop=512 window=hann in=x:f32:9000:unit",
    "variant=welch=dense length=4096 hop=2048 window=hann in=x:f32:17000:unit",
    "within=1e-6 length=17 hop=5 window=hann in=x:f32:2x300",
    "within=1e-6 length=30 hop=15 n_fft=38 scale=3 unfolded=1 in=x:f32:300",
    "within=1e-6 length=17 hop=3 in=x:f32:1x2x1x1x2x1x2x30;window:f32:17",
    "within=1e-6 length=6000 hop=3000 in=x:f32:13000",
    "expect=E_ATTR length=0 in=x:f32:40",
    "expect=E_ATTR length=-1 in=x:f32:40",
    "expect=E_ATTR hop=0 in=x:f32:40",
    "expect=E_ATTR hop=2147483648 in=x:f32:40",
    "expect=E_ATTR n_fft=7 in=x:f32:40",
    "expect=E_ATTR n_fft=2147483648 in=x:f32:40",
    "expect=E_ATTR scale=1e39 in=x:f32:40",
    "expect=E_SHAPE in=x:f32:7",
    "expect=E_SHAPE in=x:f32:scalar",
    "expect=E_SHAPE in=x:f32:40;window:f32:7",
    "expect=E_SHAPE in=x:f32:40;window:f32:1x8",
    "expect=E_SHAPE length=17 in=x:f32:16",
    "expect=E_SHAPE length=17 in=x:f32:40;window:f32:16",
    "expect=E_SHAPE length=17 in=x:f32:40;window:f32:1x17",
    "expect=E_DTYPE in=x:i32:40",
    "expect=E_DTYPE in=x:f32:40;window:i32:8",
    "expect=E_DTYPE length=17 in=x:i32:40",
};

static void generate(case_list *list)
{
    case_add_all(list, "welch", signals, COUNT(signals));
}

const case_family welch_cases = {rows, build, generate};
