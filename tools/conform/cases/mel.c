/*
 * Cases of averaged power, of mel spectra and of signals:
 *   welch_power    segments, n_fft, unfolded
 *   welch_peaks    k, segments
 *   log_mel, log_mel_slopes, log_mel_backward   scope (a number); bank=1: the filters are a mel
 *                                               filterbank of mels=n filters for n_fft=n; hop: the
 *                                               input is a signal
 *   upfirdn, resample      up, down; in=x[;taps]
 *   mfcc                   count, lifter; in=x
 *   overlap_add, istft     length, hop, n_fft, center, samples, window (a name, or an input)
 *
 * shift=1 drops the first row of x by a view.
 */
#include "conform/cases/cases.h"

#include <string.h>

static const char *const rows[] = {"welch_power",      "welch_peaks", "log_mel", "log_mel_slopes",
                                   "log_mel_backward", "overlap_add", "istft",   "upfirdn",
                                   "resample",         "mfcc",        NULL};
#define FIRST_OF_SIGNALS 5

/* The spectra of a signal, with a Hann window. */
static rlxvk_tensor spectra_of(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x)
{
    int64_t n = case_integer(s, "n_fft", 400);
    rlxvk_stft_options o = {.length = n, .hop = case_integer(s, "hop", 1)};
    return rlxvk_stft(g, x, rlxvk_signal_hann(g, n, true), &o);
}

static rlxvk_tensor filters_of(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_mel_options o = {.rate = 16000,
                           .n_fft = case_integer(s, "n_fft", 400),
                           .n_mels = case_integer(s, "mels", 80)};
    return case_integer(s, "bank", 0) ? rlxvk_signal_mel_filterbank(g, &o)
                                      : case_tensor(s, inputs, "filters");
}

static rlxvk_tensor build_signal(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    rlxvk_tensor window = case_tensor(s, inputs, "window");
    rlxvk_istft_options o = {.length = case_integer(s, "length", 8),
                             .hop = case_integer(s, "hop", 2),
                             .n_fft = case_integer(s, "n_fft", 0),
                             .center = case_integer(s, "center", 0) != 0,
                             .samples = case_integer(s, "samples", 0)};
    const char *name = case_word(s, "window", "");
    int64_t up = case_integer(s, "up", 1), down = case_integer(s, "down", 1);
    if (strcmp(s->row, "upfirdn") == 0)
        return rlxvk_upfirdn(g, x, case_tensor(s, inputs, "taps"), up, down);
    if (strcmp(s->row, "resample") == 0)
        return rlxvk_resample(g, x, up, down);
    if (strcmp(s->row, "mfcc") == 0)
        return rlxvk_mfcc(g, x, case_integer(s, "count", 13), case_real(s, "lifter", 0));
    if (strcmp(name, "hamming") == 0)
        window = rlxvk_signal_hamming(g, o.length, true);
    if (strcmp(name, "blackman") == 0)
        window = rlxvk_signal_blackman(g, o.length, false);
    if (strcmp(name, "kaiser") == 0)
        window = rlxvk_signal_kaiser(g, o.length, 8.6, false);
    return strcmp(s->row, "istft") ? rlxvk_overlap_add(g, x, window, o.hop)
                                   : rlxvk_istft(g, x, window, &o);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    rlxvk_tensor dy = case_tensor(s, inputs, "dy");
    rlxvk_log_mel_scope scope = (rlxvk_log_mel_scope)case_integer(s, "scope", 0);
    rlxvk_welch_options o = {.n_segments = case_integer(s, "segments", 0),
                             .n_fft = case_integer(s, "n_fft", 0),
                             .unfolded = case_integer(s, "unfolded", 0) != 0};
    for (size_t i = FIRST_OF_SIGNALS; rows[i]; i++)
        if (strcmp(s->row, rows[i]) == 0)
            return build_signal(g, s, inputs);
    if (case_integer(s, "hop", 0))
        x = spectra_of(g, s, x);
    if (strcmp(s->row, "welch_power") == 0)
        return rlxvk_welch_power(g, x, s->pair_count ? &o : NULL);
    if (strcmp(s->row, "welch_peaks") == 0)
        return rlxvk_welch_peaks(g, x, case_integer(s, "k", 1), case_integer(s, "segments", 1));
    if (strcmp(s->row, "log_mel_slopes") == 0)
        return rlxvk_log_mel_slopes(g, x, filters_of(g, s, inputs), dy, scope);
    if (strcmp(s->row, "log_mel_backward") == 0)
        return rlxvk_log_mel_backward(g, x, filters_of(g, s, inputs), dy, scope);
    return rlxvk_log_mel(g, x, filters_of(g, s, inputs), scope);
}

static const char *const powers[] = {
    "in=x:f32:2",
    "in=x:f32:10",
    "in=x:f32:3x8",
    "in=x:f32:3x10",
    "in=x:f32:0x8",
    "segments=3 in=x:f32:0x8",
    "segments=2 in=x:f32:4x8",
    "segments=2 in=x:f32:4x10",
    "segments=5 n_fft=8 in=x:f32:2x5x10",
    "segments=5 n_fft=9 in=x:f32:2x5x10",
    "segments=5 n_fft=9 in=x:f32:2x5x18",
    "segments=2 n_fft=1 in=x:f32:4x2",
    "segments=2 n_fft=2 in=x:f32:4x4",
    "segments=3 n_fft=3 in=x:f32:6x4",
    "unfolded=1 n_fft=16 in=x:f32:7x18",
    "unfolded=1 segments=7 n_fft=16 in=x:f32:7x32",
    "unfolded=1 segments=65 n_fft=16 in=x:f32:130x18",
    "segments=64 in=x:f32:128x16",
    "segments=65 in=x:f32:130x12",
    "segments=600 n_fft=30 in=x:f32:600x32",
    "segments=129 n_fft=6 in=x:f32:2x1x129x8",
    "segments=1000 in=x:f32:1000x2",
    "segments=2 in=x:f32:2x1x2x1x1x2x4x6",
    "shift=1 segments=2 n_fft=6 in=x:f32:5x8",
    "segments=3 in=x:f32:300x34:unit",
    "segments=3 in=x:f32:300x34:special",
    "segments=2 in=x:f32:20x34:large",
    "segments=2 in=x:f32:20x34:zero",
    "segments=100 in=x:f32:200x34:outliers",
    "expect=E_SHAPE in=x:f32:scalar",
    "expect=E_SHAPE in=x:f32:3x0",
    "expect=E_SHAPE in=x:f32:3x7",
    "expect=E_SHAPE segments=2 in=x:f32:3x8",
    "expect=E_SHAPE segments=2 in=x:f32:8",
    "expect=E_SHAPE n_fft=8 in=x:f32:3x8",
    "expect=E_ATTR segments=-1 in=x:f32:3x8",
    "expect=E_ATTR n_fft=-2 in=x:f32:3x8",
    "expect=E_DTYPE in=x:i32:3x8",
};

static const char *const peaks[] = {
    "k=1 segments=1 within=1e-6 in=x:f32:1x2",
    "k=3 segments=1 within=1e-6 in=x:f32:2x2",
    "k=2 segments=2 within=1e-6 in=x:f32:2x8",
    "k=3 segments=2 within=1e-6 in=x:f32:6x8",
    "k=5 segments=2 within=1e-6 in=x:f32:6x8",
    "k=4 segments=3 within=1e-6 in=x:f32:9x10",
    "k=64 segments=4 within=1e-6 in=x:f32:8x256",
    "k=20 segments=1 within=1e-6 in=x:f32:3x2050",
    "k=2 segments=2 within=1e-6 in=x:f32:4x8:zero",
    "k=2 segments=2 within=1e-6 in=x:f32:4x8:one",
    "k=2 segments=2 within=1e-6 in=x:f32:0x8",
    "k=17 segments=70 within=1e-6 in=x:f32:140x62",
    "expect=E_ATTR k=0 in=x:f32:4x8",
    "expect=E_ATTR k=1 segments=0 in=x:f32:4x8",
    "expect=E_TOO_LARGE k=1073741824 in=x:f32:4x8",
    "expect=E_SHAPE k=1 in=x:f32:4x7",
    "expect=E_SHAPE k=1 segments=3 in=x:f32:4x8",
    "expect=E_SHAPE k=1 in=x:f32:2x4x8",
    "expect=E_DTYPE k=1 in=x:i32:4x8",
};

/* Dims of the spectrum, of the filters, and of the result for dy. */
static const char *const mels[][3] = {
    {"x:f32:2", "filters:f32:1x1", "1"},
    {"x:f32:8", "filters:f32:3x3:positive", "3"},
    {"x:f32:2x16", "filters:f32:3x5:positive", "2x3"},
    {"x:f32:2x10", "filters:f32:3x5:positive", "2x3"},
    {"x:f32:2x18", "filters:f32:4x5:positive", "2x4"},
    {"x:f32:2x3x10", "filters:f32:4x5:bool", "2x3x4"},
    {"x:f32:0x10", "filters:f32:4x5", "0x4"},
    {"x:f32:5x34", "filters:f32:200x17:positive", "5x200"},
    {"x:f32:3x2x1x5x34", "filters:f32:9x17:positive", "3x2x1x5x9"},
    {"x:f32:3x2060", "filters:f32:5x1030:positive", "3x5"},
    {"x:f32:2x4200", "filters:f32:130x2100:unit", "2x130"},
    {"x:f32:6x10:zero", "filters:f32:4x5:positive", "6x4"},
    {"x:f32:6x10", "filters:f32:4x5:zero", "6x4"},
    {"x:f32:6x10:range:-1e-6:1e-6", "filters:f32:4x5:positive", "6x4"},
    {"x:f32:40x10:special", "filters:f32:4x5:positive", "40x4"},
    {"x:f32:8x64:range:-1e5:1e5", "filters:f32:7x17:positive", "8x7"},
};

static const char *const banks[][2] = {
    {"bank=1 n_fft=400 mels=80", "x:f32:7x402"},
    {"bank=1 n_fft=512 mels=23", "x:f32:2x3x1024"},
    {"bank=1 n_fft=101 mels=12", "x:f32:4x102:outliers"},
};

static const char *const overlaps[] = {
    "hop=1 in=x:f32:1x1",
    "hop=1 in=x:f32:5x1",
    "hop=3 in=x:f32:5x1",
    "hop=1 in=x:f32:1x7",
    "hop=2 in=x:f32:5x7",
    "hop=7 in=x:f32:5x7",
    "hop=9 in=x:f32:5x7",
    "hop=1 in=x:f32:40x30",
    "hop=3 in=x:f32:2x3x5x8",
    "hop=3 in=x:f32:0x5x8",
    "hop=2 shift=1 in=x:f32:3x5x7",
    "hop=2 in=x:f32:5x8:special",
    "hop=100 in=x:f32:20x400",
    "hop=2 in=x:f32:1x2x1x1x2x1x5x7",
    "hop=1 in=x:f32:1x1;window:f32:1:positive",
    "hop=2 in=x:f32:5x7;window:f32:7:positive",
    "hop=9 in=x:f32:5x7;window:f32:7:positive",
    "hop=1 in=x:f32:40x30;window:f32:30:unit",
    "hop=3 in=x:f32:2x3x5x8;window:f32:8:positive",
    "hop=3 in=x:f32:2x3x5x8;window:f32:8:zero",
    "hop=8 in=x:f32:5x8;window:f32:8:bool",
    "hop=4 length=16 window=hamming in=x:f32:9x16",
    "hop=5 length=16 window=blackman in=x:f32:9x16",
    "hop=5 length=17 window=kaiser in=x:f32:9x17",
    "hop=160 length=400 window=hamming in=x:f32:12x400",
    "expect=E_ATTR hop=0 in=x:f32:5x7",
    "expect=E_ATTR hop=2147483648 in=x:f32:5x7",
    "expect=E_TOO_LARGE hop=2147483647 in=x:f32:5x7",
    "expect=E_SHAPE hop=1 in=x:f32:7",
    "expect=E_SHAPE hop=1 in=x:f32:0x7",
    "expect=E_SHAPE hop=1 in=x:f32:3x0",
    "expect=E_SHAPE hop=1 in=x:f32:3x7;window:f32:6",
    "expect=E_DTYPE hop=1 in=x:i32:3x7",
};

static const char *const inverses[] = {
    "length=8 hop=2 in=x:f32:5x10",
    "length=8 hop=8 in=x:f32:5x10",
    "length=7 hop=3 in=x:f32:5x8",
    "length=6 hop=3 n_fft=8 in=x:f32:5x10",
    "length=8 hop=4 window=hamming in=x:f32:5x10",
    "length=16 hop=4 window=hamming center=1 in=x:f32:2x7x18",
    "length=16 hop=4 window=kaiser center=1 samples=20 in=x:f32:7x18",
    "length=16 hop=4 window=hamming center=1 samples=90 in=x:f32:7x18",
    "length=16 hop=4 window=hamming samples=90 in=x:f32:7x18",
    "length=1 hop=1 in=x:f32:3x2",
    "length=400 hop=160 window=hamming in=x:f32:8x402",
    "expect=E_ATTR length=0 in=x:f32:5x10",
    "expect=E_ATTR hop=0 in=x:f32:5x10",
    "expect=E_ATTR length=9 n_fft=8 in=x:f32:5x10",
    "expect=E_ATTR samples=-1 in=x:f32:5x10",
    "expect=E_SHAPE length=8 in=x:f32:5x8",
    "expect=E_SHAPE length=8 in=x:f32:10",
    "expect=E_SHAPE length=8 center=1 in=x:f32:1x10",
};

static const char *const rates[] = {
    "in=x:f32:9;taps:f32:4",
    "up=2 in=x:f32:9;taps:f32:1",
    "up=2 in=x:f32:2x9;taps:f32:5",
    "down=2 in=x:f32:2x9;taps:f32:5",
    "up=3 down=2 in=x:f32:2x3x40;taps:f32:31",
    "up=2 down=3 in=x:f32:2x3x40;taps:f32:31",
    "up=5 down=7 in=x:f32:40;taps:f32:3",
    "up=7 down=5 in=x:f32:1;taps:f32:3",
    "up=4 down=4 in=x:f32:30;taps:f32:9",
    "up=160 down=147 in=x:f32:300:unit;taps:f32:801:unit",
    "down=50 in=x:f32:3x700;taps:f32:90",
    "up=50 in=x:f32:3x20;taps:f32:90",
    "shift=1 up=3 down=2 in=x:f32:3x10;taps:f32:7",
    "up=2 in=x:f32:0x9;taps:f32:5",
    "in=x:f32:9:special;taps:f32:4",
    "up=3 in=x:f32:9;taps:f32:4:zero",
    "down=4150 in=x:f32:17000:positive;taps:f32:16600:positive",
    "expect=E_ATTR up=0 in=x:f32:9;taps:f32:4",
    "expect=E_ATTR down=-1 in=x:f32:9;taps:f32:4",
    "expect=E_SHAPE in=x:f32:3x0;taps:f32:4",
    "expect=E_SHAPE in=x:f32:9;taps:f32:0",
    "expect=E_SHAPE in=x:f32:9;taps:f32:2x2",
    "expect=E_SHAPE in=x:f32:scalar;taps:f32:2",
    "expect=E_DTYPE in=x:i32:9:index:3;taps:f32:2",
    "expect=E_TOO_LARGE up=2000000000 in=x:f32:9;taps:f32:4",
};

static const char *const resampled[] = {
    "up=3 down=2 in=x:f32:2x50",
    "up=2 down=3 in=x:f32:2x50",
    "up=6 down=4 in=x:f32:50",
    "up=4 down=4 in=x:f32:50",
    "up=160 down=147 in=x:f32:2x200:unit",
    "up=1 down=3 in=x:f32:90",
    "up=3 down=1 in=x:f32:1",
    "up=1 down=100 in=x:f32:7",
    "expect=E_ATTR up=0 in=x:f32:9",
    "expect=E_ATTR down=0 in=x:f32:9",
    "expect=E_TOO_LARGE up=1048577 in=x:f32:9",
    "expect=E_SHAPE up=2 in=x:f32:0",
};

static const char *const cepstra[] = {
    "in=x:f32:5x40",
    "count=40 in=x:f32:2x3x40",
    "count=13 lifter=22 in=x:f32:7x80",
    "count=1 in=x:f32:1",
    "count=1 in=x:f32:5x1",
    "count=3 lifter=0.5 in=x:f32:9",
    "expect=E_ATTR count=0 in=x:f32:5x40",
    "expect=E_ATTR count=41 in=x:f32:5x40",
    "expect=E_ATTR lifter=-1 in=x:f32:5x40",
    "expect=E_SHAPE in=x:f32:5x0",
    "expect=E_SHAPE in=x:f32:scalar",
    "expect=E_TOO_LARGE count=5000 in=x:f32:1x5000",
};

static void generate(case_list *list)
{
    case_add_all(list, "upfirdn", rates, COUNT(rates));
    case_add_all(list, "resample", resampled, COUNT(resampled));
    case_add_all(list, "mfcc within=1e-6", cepstra, COUNT(cepstra));
    case_add_all(list, "welch_power", powers, COUNT(powers));
    case_add_all(list, "overlap_add", overlaps, COUNT(overlaps));
    case_add_all(list, "istft within=2e-5", inverses, COUNT(inverses));
    case_add_all(list, "welch_peaks", peaks, COUNT(peaks));
    for (size_t i = 0; i < COUNT(mels); i++)
        for (int scope = 0; scope < 2; scope++) {
            case_add(list, "log_mel scope=%d in=%s;%s", scope, mels[i][0], mels[i][1]);
            case_add(list, "log_mel_slopes scope=%d in=%s;%s;dy:f32:%s", scope, mels[i][0],
                     mels[i][1], mels[i][2]);
            if (i < 9)
                case_add(list, "log_mel_backward within=1e-5 scope=%d in=%s;%s;dy:f32:%s", scope,
                         mels[i][0], mels[i][1], mels[i][2]);
        }
    for (size_t i = 0; i < COUNT(banks); i++)
        for (int scope = 0; scope < 2; scope++)
            case_add(list, "log_mel scope=%d %s in=%s", scope, banks[i][0], banks[i][1]);
    case_add(list, "log_mel shift=1 in=x:f32:4x10;filters:f32:4x5:positive");
    case_add(list, "log_mel expect=E_SHAPE in=x:f32:scalar;filters:f32:4x5");
    case_add(list, "log_mel within=1e-4 bank=1 hop=160 in=x:f32:2000");
    case_add(list, "log_mel expect=E_SHAPE in=x:f32:3x10;filters:f32:4x4");
    case_add(list, "log_mel expect=E_SHAPE in=x:f32:3x9;filters:f32:4x5");
    case_add(list, "log_mel expect=E_SHAPE in=x:f32:3x10;filters:f32:5");
    case_add(list, "log_mel expect=E_SHAPE in=x:f32:3x10;filters:f32:0x5");
    case_add(list, "log_mel expect=E_ATTR scope=2 in=x:f32:3x10;filters:f32:4x5");
    case_add(list, "log_mel expect=E_DTYPE in=x:i32:3x10;filters:f32:4x5");
    case_add(list, "log_mel_slopes expect=E_SHAPE in=x:f32:3x10;filters:f32:4x5;dy:f32:3x5");
    case_add(list, "log_mel_backward expect=E_SHAPE in=x:f32:3x10;filters:f32:4x5;dy:f32:4");
}

const case_family mel_cases = {rows, build, generate};
