/*
 * The parts of the transform: its view of a tensor, the exact transform on the host, and the choice
 * of passes for a device.
 */
#ifndef RLXVK_FFT_H
#define RLXVK_FFT_H

#include "op/op.h"

typedef struct fft_attributes {
    int32_t axis;
    bool inverse;
    rlxvk_fft_norm norm;
} fft_attributes;

typedef struct fft_real_attributes {
    int64_t length; /* of the real lines; even */
    rlxvk_fft_norm norm;
} fft_real_attributes;

/* ---- The exact transform (fft_exact.c) ---- */

typedef struct complex_value {
    double re, im;
} complex_value;

/* exp(-2 pi i numerator / denominator). The angle is reduced exactly. */
complex_value fft_unit_root(uint64_t numerator, uint64_t denominator);
/* Computes the forward transform in place, without scaling. n >= 1. O(n log n) for every n. */
rlxvk_status fft_exact(complex_value *x, uint64_t n);
/* Are all prime factors at most `largest`? */
bool fft_is_smooth(uint64_t n, uint64_t largest);
/* The least length >= n whose prime factors are at most 7; 0 if it does not fit. */
uint64_t fft_next_smooth(uint64_t n);

/* ---- Lines of a tensor (fft_view.c) ---- */

/* [outer, length, inner] lines of complex elements. block: real parts, then imaginary parts. */
typedef struct fft_view {
    uint64_t outer, length, inner;
    bool block;
} fft_view;
fft_view fft_view_of(const node *n);
/* The factor of every result. */
double fft_scale(const node *n);
/* The largest error of an element, as a multiple of the row's root mean square. */
double fft_relative_bound(uint64_t length);
rlxvk_status fft_check_norm(const node *n, rlxvk_fft_norm norm); /* E_ATTR if unknown */
const char *fft_norm_name(rlxvk_fft_norm norm);

/* ---- Passes (fft_choice.c) ---- */

#define FFT_MOST_PASSES 3
#define FFT_MOST_STAGES 16
#define FFT_SMOOTH      13 /* largest prime that has a stage */

/* A transform of `length` points as `count` passes. Each fits a workgroup. */
typedef struct fft_split {
    uint64_t length, factors[FFT_MOST_PASSES];
    uint32_t count;
} fft_split;

/* How a workgroup computes transforms of n points in shared memory. */
typedef struct fft_group {
    uint32_t n, known, stages;
    uint8_t radices[FFT_MOST_STAGES];
    uint32_t rows, threads, pitch, points, pad;
    bool single;
} fft_group;

/* False if no workgroup of this device holds n points. across: rows should be side by side, so that
 * neighbouring threads use neighbouring memory. */
bool fft_group_choose(const device_profile *p, uint64_t n, uint64_t lines, bool across,
                      fft_group *out);
/* False if `length` is not smooth or needs more than three passes. */
bool fft_split_choose(const device_profile *p, uint64_t length, fft_split *out);

/* How a workgroup computes transforms of n points in registers (glsl/spectral/fft_tile.glsl). */
#define FFT_TILE_STAGES 5

typedef struct fft_tile {
    const char *name; /* of its class */
    uint32_t n, stages;
    uint8_t radices[FFT_TILE_STAGES];
    uint32_t rows, lanes, places;
    uint8_t gaps[FFT_TILE_STAGES - 1]; /* between groups of exchanged results */
    bool along;                        /* neighbouring threads take neighbouring points, not rows */
} fft_tile;

typedef struct fft_class {
    choice_row row;
    bool along, binary; /* binary: only for powers of two */
    uint32_t longest, least_span, held, threads, least_rows;
    bool dense; /* without gaps, for the least shared memory */
} fft_class;

/* The tile that a caller needs. span: rows that lie side by side. */
typedef struct fft_tile_problem {
    uint64_t n, span;
    bool along;
} fft_tile_problem;

/* Chooses from a table of classes (fft_choice.c). fit tells whether a class suits. choose makes the
 * tile of the chosen class, or returns false if no class suits. The row `forced` wins if it can
 * take the problem; VARIANT_NONE means no such row. */
choice_fit fft_tile_fit(const void *row, const void *problem, const device_profile *profile);
bool fft_tile_choose(const choice_table *table, const device_profile *p,
                     const fft_tile_problem *problem, size_t forced, fft_tile *out);
/* Completes a tile whose n and along are set (fft_tile.c). False if the class cannot make it. */
bool fft_tile_shape(const fft_class *c, const device_profile *p, fft_tile *t);
/* The radices and gaps as kernel constants, with 5 bits for each stage. KERNEL is the prefix of the
 * constants' names. */
uint32_t fft_tile_radices(const fft_tile *t);
uint32_t fft_tile_gaps(const fft_tile *t);
#define FFT_TILE_CONSTANTS(KERNEL, t)                                                              \
    {KERNEL##_N, (t)->n}, {KERNEL##_ROWS, (t)->rows}, {KERNEL##_LANES, (t)->lanes},                \
        {KERNEL##_RADICES, fft_tile_radices(t)}, {KERNEL##_GAPS, fft_tile_gaps(t)},                \
    {                                                                                              \
        KERNEL##_PLACES, (t)->places                                                               \
    }

/* A transform of `length` points in one, two or three tiles. */
typedef struct fft_plan {
    uint64_t length;
    uint32_t count, block; /* block: rows side by side in scratch */
    fft_tile tiles[FFT_MOST_PASSES];
} fft_plan;
typedef struct fft_problem {
    uint64_t length, inner;
    uint32_t most; /* passes; with three, the last one has no table and no limit */
} fft_problem;
/* False (and count 0) if groups must compute the transform. */
bool fft_plan_choose(const device_profile *p, const fft_problem *problem, size_t forced,
                     fft_plan *out);

/* ---- Tables of twiddles (fft_table.c) ---- */

typedef struct fft_table {
    float *pairs; /* owned */
    uint64_t count, capacity;
} fft_table;

rlxvk_status fft_table_create(uint64_t capacity, fft_table *out);
void fft_table_push(fft_table *t, complex_value v);
/* Makes the table a constant of the lowering. */
rlxvk_status fft_table_finish(lowering *l, fft_table *t, operand *out);
/* The twiddles of all stages. Twiddle (r, low) of a stage is at r * ns + low, if ns points are done
 * before the stage. */
rlxvk_status fft_stage_table(lowering *l, uint32_t n, const uint8_t *radices, uint32_t stages,
                             operand *out);
/* w^e for e < span, as low[e mod 2^bits] * high[e div 2^bits]. `bits` makes both tables about
 * equally long. The push functions return the index of the first entry. */
uint32_t fft_split_bits(uint64_t span);
uint64_t fft_split_entries(uint64_t span);
uint32_t fft_push_split(fft_table *t, uint64_t span);
/* w(i k, span) at i * columns + k. */
uint32_t fft_push_grid(fft_table *t, uint64_t rows, uint64_t columns, uint64_t span);

/* Twiddles between the passes of a plan: their number, and the indices of base and step. */
uint64_t fft_plan_entries(const fft_plan *plan);
void fft_push_plan(fft_table *t, const fft_plan *plan, uint32_t out[][2]);

/* ---- Lowering (fft_lower.c) ---- */

/* How lines lie in memory, as word addresses. `imaginary` is the distance from a real part to its
 * imaginary part. */
typedef struct fft_port {
    operand at;
    uint64_t offset, outer, inner, axis;
    int32_t imaginary;
    bool pairs; /* both parts are neighbours and aligned */
} fft_port;

/* One end of a transform: a port, and a table of factors. For bins, `limit` is the transform's
 * length h, and the factors begin with exp(-2 pi i k / 2h), k = 0 .. h. */
typedef struct fft_end {
    fft_port port;
    uint32_t limit;      /* positions from here on are zeros, or are dropped */
    bool multiply, bins; /* bins: half the spectrum of real lines (glsl/spectral/fft_real.glsl) */
    uint32_t table;
} fft_end;

/* One transform of all lines, by `plan`, or by `split` if plan.count is 0. */
typedef struct fft_transform {
    lowering *l;
    fft_plan plan;
    fft_split split;
    uint64_t outer, inner;
    operand factors;
    uint32_t twiddles[FFT_MOST_PASSES][2]; /* in `factors`, by pass; with a plan: base, step */
    fft_end load, store;
    fft_port scratch[2]; /* between passes */
    float scale;
} fft_transform;
rlxvk_status fft_group_emit(const fft_transform *t);    /* fft_group.c */
rlxvk_status fft_register_emit(const fft_transform *t); /* fft_register.c */
/* The span of the twiddles that follow a pass; 0 after the last. */
uint64_t fft_split_span(const fft_split *s, uint32_t pass);
/* Pairs of scratch between the passes of a plan, for `inner` lines side by side. */
uint64_t fft_plan_scratch(const fft_plan *plan, uint64_t inner);

/* Transforms of all lines of a view. from_bins: `in` has half the spectra of real lines that are
 * twice as long, and `out` gets these lines (only inverse). to_bins is the other direction. */
typedef struct fft_request {
    fft_view view;
    bool inverse, from_bins, to_bins;
    float scale;
    uint32_t limit; /* positions of `in` from here on are zeros */
    fft_port in, out;
} fft_request;
rlxvk_status fft_lower_request(lowering *l, const fft_request *r);

rlxvk_status fft_lower(lowering *l, uint32_t id);
/* Test hook: the most scratch for the lines in flight (128 MiB). One line may take more. */
extern uint64_t fft_scratch_bytes;
/* Test hook: may tiles be used (true)? */
extern bool fft_tiles;

#endif
