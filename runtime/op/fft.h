/*
 * The transform's parts: its view of a tensor, the exact transform on the host, and the choice of
 * passes for a device.
 */
#ifndef RLXVK_FFT_H
#define RLXVK_FFT_H

#include "op/op.h"

/* ---- The exact transform (op/fft_exact.c) ---- */

typedef struct complex_value {
    double re, im;
} complex_value;

/* exp(-2 pi i numerator / denominator), correctly reduced. */
complex_value unit_root(uint64_t numerator, uint64_t denominator);
/* Forward, unscaled, in place; n >= 1. O(n log n) for every n. */
rlxvk_status fft_exact(complex_value *x, uint64_t n);
/* Whether every prime factor is at most `largest`. */
bool is_smooth(uint64_t n, uint64_t largest);
/* The least length >= n whose prime factors are at most 7. */
uint64_t next_smooth(uint64_t n);

/* ---- Lines of a tensor (op/fft.c) ---- */

/* [outer, length, inner] lines of complex elements; block: real parts, then imaginary parts. */
typedef struct fft_view {
    uint64_t outer, length, inner;
    bool block;
} fft_view;
fft_view fft_view_of(const node *n);
/* What every result is multiplied by. */
double fft_scale(const node *n);

/* ---- Passes (op/fft_select.c) ---- */

#define FFT_MOST_PASSES 3
#define FFT_MOST_STAGES 16
#define FFT_SMOOTH      13 /* largest prime that has a stage */

/* A transform of `length` points as `count` passes, each within a workgroup. */
typedef struct fft_split {
    uint64_t length, factors[FFT_MOST_PASSES];
    uint32_t count;
} fft_split;

/* How workgroups make transforms of n points. */
typedef struct fft_group {
    uint32_t n, level, stages;
    uint8_t radices[FFT_MOST_STAGES];
    uint32_t rows, threads, pitch, points, pad;
    bool single;
} fft_group;

/* False when no workgroup of this device holds n points. across: rows are wanted side by side, for
 * neighbouring threads to touch neighbouring memory. */
bool fft_group_choose(const device_profile *p, uint64_t n, uint64_t lines, bool across,
                      fft_group *out);
/* False when `length` is not smooth or needs more than three passes. */
bool fft_split_choose(const device_profile *p, uint64_t length, fft_split *out);

rlxvk_status fft_lower(lowering *l, uint32_t id); /* op/fft_lower.c */
/* Test hook: what scratch the lines in flight may take, unless one line takes more (64 MiB). */
extern uint64_t fft_scratch_bytes;

#endif
