/*
 * rlxvk bench --tune: finds the fastest row of each kernel kind's table, on a grid of shapes. A
 * point of the tuning file is a shape and its fastest row. It is "table" if the table's own choice
 * is as good, because small differences are noise, and the table also covers the shapes between the
 * points.
 *
 * Contents are random, because multipliers draw less power on zeros and run faster. Every row is
 * warmed up, because an idle device lowers its clocks.
 */
#include "bench/bench.h"
#include "program/context.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

#define SAME     1.03 /* a time counts as good if it is at most 1.03 times the best */
#define WARM_UP  0.05 /* seconds */
#define SECONDS  0.04
#define HOPELESS 2.0 /* if a time is this many times the best so far, measuring stops */

enum { LINE = 256, PROFILE = 1 << 20 };

typedef struct tuner {
    rlxvk_context *context;
    const kernel_kind *kind;
    text profile;
    rlxvk_status status; /* the first error */
} tuner;

/* ---- One shape ---- */

static bool is_skipped(rlxvk_status status)
{
    return status == RLXVK_E_UNSUPPORTED || status == RLXVK_E_TOO_LARGE ||
           status == RLXVK_E_OUT_OF_DEVICE_MEMORY || status == RLXVK_E_OUT_OF_HOST_MEMORY;
}

/* False if this row, or the case, is not possible here. */
static bool measure(tuner *t, const char *line, rlxvk_precision precision, const char *row,
                    double limit, bench_result *out)
{
    char choice[96];
    bench_setup setup = {.context = t->context,
                         .precision = precision,
                         .variant = row ? choice : "",
                         .kind = t->kind->name,
                         .warm_up = WARM_UP,
                         .seconds = SECONDS,
                         .limit = limit,
                         .only_named = row != NULL};
    snprintf(choice, sizeof choice, "%s=%s", t->kind->name, row ? row : "");
    rlxvk_status status = bench_run(&setup, line, out);
    if (status != RLXVK_OK && !is_skipped(status))
        t->status = status_fail_within(status, "%s %s: ", choice, line);
    return status == RLXVK_OK && out->query.kind && (!row || out->named);
}

static rlxvk_status write_profile(const tuner *t)
{
    char path[4096];
    return pipeline_cache_write_text(t->context->device, NULL, TUNING_ENDING, t->profile.buffer,
                                     path, sizeof path);
}

static void tune_line(tuner *t, const char *line, rlxvk_precision precision)
{
    bench_result table, result;
    const char *row, *best = TUNING_TABLE;
    double least;
    print_progress(line);
    if (t->status != RLXVK_OK || !measure(t, line, precision, NULL, 0, &table))
        return;
    least = table.microseconds;
    for (size_t i = 0; (row = choice_row_name(t->kind, i)) && t->status == RLXVK_OK; i++) {
        if (row == table.variant || !measure(t, line, precision, row, HOPELESS * least, &result) ||
            result.microseconds >= least)
            continue;
        least = result.microseconds;
        best = row;
    }
    if (table.microseconds <= SAME * least)
        best = TUNING_TABLE;
    tuning_write(&table.query, best, least, &t->profile);
    if (t->status == RLXVK_OK)
        t->status = write_profile(t);
    print_progress(NULL);
    printf("%-60s %-20s %10.1f us; table: %s %.1f us\n", line, best, least,
           table.variant ? table.variant : "none", table.microseconds);
    fflush(stdout);
}

/* ---- Grids ---- */

typedef struct product_shape {
    unsigned m, n, k, batch;
    bool a_transposed; /* also with transposed a */
} product_shape;

static const product_shape gpu_products[] = {
    {1, 4096, 4096, 1, false},    {1, 4096, 14336, 1, false},   {1, 14336, 4096, 1, false},
    {1, 128256, 2048, 1, false},  {4, 4096, 4096, 1, false},    {16, 4096, 4096, 1, false},
    {64, 4096, 4096, 1, false},   {128, 4096, 4096, 1, false},  {512, 4096, 4096, 1, false},
    {512, 14336, 4096, 1, false}, {512, 4096, 14336, 1, false}, {128, 128, 128, 1, true},
    {256, 256, 256, 1, true},     {512, 512, 512, 1, true},     {1024, 1024, 1024, 1, true},
    {2048, 2048, 2048, 1, true},  {4096, 4096, 4096, 1, true},  {64, 64, 65536, 1, true},
    {256, 256, 16384, 1, true},   {4096, 64, 1024, 1, false},   {64, 64, 64, 256, true},
    {128, 128, 64, 64, true},     {512, 64, 512, 32, false},    {512, 512, 64, 32, false},
};
static const product_shape cpu_products[] = {
    {1, 512, 512, 1, false}, {1, 2048, 512, 1, false}, {16, 512, 512, 1, false},
    {64, 64, 64, 1, true},   {256, 256, 256, 1, true}, {32, 32, 32, 16, false},
};

typedef struct conv_grid {
    const char *op, *attributes, *x, *w;
} conv_grid;

static const conv_grid gpu_convs[] = {
    {"conv", "padding=1,1", "32x64x56x56", "64x64x3x3"},
    {"conv", "padding=1,1", "32x128x28x28", "128x128x3x3"},
    {"conv", "padding=1,1", "32x256x14x14", "256x256x3x3"},
    {"conv", "padding=1,1", "32x512x7x7", "512x512x3x3"},
    {"conv", "padding=1,1", "32x256x56x56", "256x256x3x3"},
    {"conv", "padding=1,1", "1x64x56x56", "64x64x3x3"},
    {"conv", "padding=1,1", "1x128x28x28", "128x128x3x3"},
    {"conv", "padding=1,1", "1x256x14x14", "256x256x3x3"},
    {"conv", "padding=1,1", "1x512x7x7", "512x512x3x3"},
    {"conv", "padding=1,1", "1x320x64x64", "320x320x3x3"},
    {"conv", "", "32x64x56x56", "256x64x1x1"},
    {"conv", "", "32x256x56x56", "64x256x1x1"},
    {"conv", "", "32x512x28x28", "128x512x1x1"},
    {"conv", "", "32x1024x14x14", "256x1024x1x1"},
    {"conv", "", "1x256x56x56", "64x256x1x1"},
    {"conv", "", "1x1024x14x14", "256x1024x1x1"},
    {"conv", "stride=2,2 padding=3,3", "32x3x224x224", "64x3x7x7"},
    {"conv", "stride=2,2 padding=3,3", "1x3x224x224", "64x3x7x7"},
    {"conv", "padding=1,1", "1x128x512x512", "3x128x3x3"},
    {"conv", "padding=1,1 groups=256", "32x256x56x56", "256x1x3x3"},
    {"conv", "padding=1,1 groups=256", "1x256x56x56", "256x1x3x3"},
    {"conv", "padding=1,1 groups=32", "32x256x28x28", "256x8x3x3"},
    {"conv_transpose2d", "stride=2,2 padding=1,1", "8x256x32x32", "256x128x4x4"},
    {"conv_transpose2d", "stride=2,2 padding=1,1", "1x512x16x16", "512x256x4x4"},
};
static const conv_grid cpu_convs[] = {
    {"conv", "padding=1,1", "1x32x28x28", "32x32x3x3"},
    {"conv", "", "1x64x28x28", "64x64x1x1"},
    {"conv", "padding=1,1 groups=64", "1x64x28x28", "64x1x3x3"},
};

static const struct {
    const char *format;
    unsigned row_bytes; /* in a row of 4096 weights */
} packed_formats[] = {
    {"q4_0", 2304}, {"q8_0", 4352}, {"q4_k", 2304}, {"q5_k", 2816}, {"q6_k", 3360}};
static const unsigned gpu_rows[] = {1, 4, 16, 32, 64, 128, 512}, cpu_rows[] = {1, 16, 64};

static void tune_product(tuner *t, const product_shape *s, rlxvk_precision precision)
{
    for (unsigned tag = 0; tag < 4 && t->status == RLXVK_OK; tag++) {
        unsigned ta = tag >> 1, tb = tag & 1;
        char line[LINE], batch[16] = "";
        if (ta && (tb || !s->a_transposed || t->kind->precisions))
            continue;
        if (s->batch > 1)
            snprintf(batch, sizeof batch, "%ux", s->batch);
        snprintf(line, sizeof line,
                 "matmul transpose_a=%u transpose_b=%u in=a:f32:%s%ux%u;b:f32:%s%ux%u", ta, tb,
                 batch, ta ? s->k : s->m, ta ? s->m : s->k, batch, tb ? s->n : s->k,
                 tb ? s->k : s->n);
        tune_line(t, line, precision);
    }
}

static bool has_precision(const tuner *t, int precision)
{
    return t->status == RLXVK_OK &&
           (t->kind->precisions ? t->kind->precisions : 1) >> precision & 1;
}

static void tune_products(tuner *t, bool cpu)
{
    size_t count = cpu ? ARRAY_COUNT(cpu_products) : ARRAY_COUNT(gpu_products);
    for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++)
        for (size_t i = 0; i < count && has_precision(t, p); i++)
            tune_product(t, cpu ? &cpu_products[i] : &gpu_products[i], (rlxvk_precision)p);
}

static void tune_conv(tuner *t, const conv_grid *c, rlxvk_precision precision)
{
    char line[LINE];
    snprintf(line, sizeof line, "%s %s in=x:f32:%s:unit;w:f32:%s:unit", c->op, c->attributes, c->x,
             c->w);
    tune_line(t, line, precision);
}

static void tune_convs(tuner *t, bool cpu)
{
    size_t count = cpu ? ARRAY_COUNT(cpu_convs) : ARRAY_COUNT(gpu_convs);
    for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++)
        for (size_t i = 0; i < count && has_precision(t, p); i++)
            tune_conv(t, cpu ? &cpu_convs[i] : &gpu_convs[i], (rlxvk_precision)p);
}

static void tune_format(tuner *t, size_t f, bool cpu, rlxvk_precision precision)
{
    size_t count = cpu ? ARRAY_COUNT(cpu_rows) : ARRAY_COUNT(gpu_rows);
    for (size_t i = 0; i < count; i++) {
        char line[LINE];
        const char *name = packed_formats[f].format;
        unsigned rows = cpu ? cpu_rows[i] : gpu_rows[i], columns = cpu ? 512 : 4096;
        snprintf(line, sizeof line, "dequant_matmul format=%s in=x:f32:%ux4096;w:u8:%ux%u:quant:%s",
                 name, rows, columns, packed_formats[f].row_bytes, name);
        tune_line(t, line, precision);
    }
}

static void tune_packed(tuner *t, bool cpu)
{
    for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++)
        for (size_t f = 0; f < ARRAY_COUNT(packed_formats) && has_precision(t, p); f++)
            tune_format(t, f, cpu, (rlxvk_precision)p);
}

/* ---- All ---- */

static const struct {
    choice_kind kind;
    void (*tune)(tuner *t, bool cpu);
} grids[] = {{CHOICE_matmul, tune_products},      {CHOICE_matrix, tune_products},
             {CHOICE_conv, tune_convs},           {CHOICE_conv_matrix, tune_convs},
             {CHOICE_matrix_packed, tune_packed}, {CHOICE_dequant, tune_packed}};

/* Keeps the file's entries of other kinds. */
static void keep_others(tuner *t, const char *kind)
{
    char *old = pipeline_cache_read_text(t->context->device, NULL, TUNING_ENDING);
    const char *line = old && strncmp(old, TUNING_HEADER, strlen(TUNING_HEADER)) == 0
                           ? old + strlen(TUNING_HEADER)
                           : "";
    for (size_t length; *line; line += length) {
        size_t name = strcspn(line, " \n");
        length = strcspn(line, "\n") + 1;
        if (line[length - 1] != '\n')
            break; /* a cut-off line */
        if (strlen(kind) != name || strncmp(line, kind, name) != 0)
            text_append(&t->profile, "%.*s", (int)length, line);
    }
    memory_free(old);
}

rlxvk_status bench_tune(rlxvk_context *context, const char *kind)
{
    tuner t = {.context = context, .profile = {memory_zeroed(PROFILE, 1), PROFILE, 0}};
    bool cpu = profile_is_software(&context->device->setup.profile), found = false;
    rlxvk_status status = RLXVK_OK;
    if (!t.profile.buffer)
        return status_fail_memory("profile");
    text_append(&t.profile, "%s", TUNING_HEADER);
    if (kind)
        keep_others(&t, kind);
    for (size_t i = 0; i < ARRAY_COUNT(grids); i++) {
        t.kind = &choice_kinds[grids[i].kind];
        if (kind && strcmp(kind, t.kind->name) != 0)
            continue;
        found = true;
        grids[i].tune(&t, cpu);
        TRY(t.status);
    }
    if (!found)
        TRY(status_fail(RLXVK_E_ATTR, "--kind '%s': there is no grid of shapes for it", kind));
error:
    print_progress(NULL);
    memory_free(t.profile.buffer);
    return status;
}
