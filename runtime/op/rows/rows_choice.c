/*
 * The classes of row kernels. On software and translated drivers the threads of a workgroup run one
 * after the other. The last row has only the baseline's conditions.
 */
#include "args/rows.h"
#include "op/rows/rows_choice.h"

#define LONGEST_HELD    8192 /* elements that a workgroup of 256 holds */
#define LONGEST_SPAN    31   /* elements; longer rows have enough quads */
#define SHORTEST_RAGGED 8    /* elements; shorter rows may have no quad */

/* Subgroups that rows.glsl can join in shared memory (ROW_THREADS), and the smallest subgroup size
 * that is worth shuffles. */
#define MOST_SUBGROUPS 256
#define LEAST_SUBGROUP 4
#define SCRATCH_BYTES  2048 /* of the kernels that copy */

/* clang-format off */
static const row_class classes[] = {
    /* {name, settings, conditions}, form, threads, times, held, trait */
    {{"stream_quads",    ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_QUADS,   256,  8,  4, ROW_FLOWS},
    {{"stream_ragged",   ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_RAGGED,  256,  8,  4, ROW_FLOWS},
    {{"long_quads",      ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_QUADS,  1024,  8,  8, ROW_REREAD},
    {{"long_ragged",     ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_RAGGED, 1024,  8,  8, ROW_REREAD},
    {{"summed_quads",    ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_QUADS,   256,  4,  4, ROW_SUMMED},
    {{"subgroup_quads",  ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_QUADS,   256,  4,  8, 0},
    {{"subgroup_span",   ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_SPAN,    256,  4,  8, 0},
    {{"subgroup_ragged", ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_RAGGED,  256,  4,  8, 0},
    {{"subgroup_words",  ON_NATIVE, NEEDS_SHUFFLES}, ROW_FORM_WORDS,   256,  4,  8, 0},
    {{"columns",         ON_NATIVE, 0},              ROW_FORM_COLUMNS, 256,  0,  0, 0},
    {{"shared_quads",    ON_NATIVE, 0},              ROW_FORM_QUADS,     0,  4,  8, 0},
    {{"shared_words",    ON_ALL,    0},              ROW_FORM_WORDS,     0,  0,  8, 0},
};
/* clang-format on */
const row_class *const rows_plain = &classes[ARRAY_COUNT(classes) - 1];

static bool has_form(const row_class *c, const row_shape *s)
{
    switch (c->form) {
    case ROW_FORM_QUADS:
        return s->inner == 1 && s->traits & ROW_WHOLE;
    case ROW_FORM_RAGGED:
        return s->inner == 1 && s->traits & ROW_ALIKE && s->length >= SHORTEST_RAGGED;
    case ROW_FORM_SPAN:
        return s->inner == 1 && s->traits & ROW_COPIED && s->length <= ROW_SPAN_WORDS;
    case ROW_FORM_COLUMNS:
        return s->traits & ROW_PARTED && s->length <= ROW_MOST_COLUMN;
    default:
        return true;
    }
}

/* Long rows. There must be enough of them for workgroups that take one or several each. */
static bool suits_trait(const row_class *c, const row_shape *s, uint32_t compute_units)
{
    switch (c->trait) {
    case ROW_REREAD:
        return s->length > LONGEST_HELD &&
               (s->length <= 4 * LONGEST_HELD || 2 * s->rows >= compute_units);
    case ROW_FLOWS:
        return s->length > LONGEST_HELD && s->rows >= 4ull * compute_units;
    default:
        return true;
    }
}

static choice_fit fit(const void *row, const void *problem, const device_profile *p)
{
    const row_class *c = row;
    const row_shape *s = problem;
    uint32_t threads = c->threads ? c->threads : p->workgroup_size, size = p->subgroup_size;
    bool joins = !row_class_shuffles(c) ||
                 (s->inner == 1 && size >= LEAST_SUBGROUP && threads / size <= MOST_SUBGROUPS);
    choice_fit f = {.can = joins && has_form(c, s), .suits = true, .threads = threads};
    if (c->form == ROW_FORM_SPAN) {
        f.shared_bytes = 4 * ROW_SPAN_WORDS + SCRATCH_BYTES;
        f.suits = s->length <= LONGEST_SPAN;
    }
    if (c->trait) {
        bool fits = s->length <= 4ull * c->held * c->threads;
        f.can = f.can && s->traits & c->trait && (fits || c->trait != ROW_SUMMED);
        f.suits = suits_trait(c, s, p->compute_units);
    }
    return f;
}

const choice_table rows_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const row_class *rows_choose(const row_shape *shape, const device_profile *profile, size_t forced)
{
    return choice_select(&rows_choice, shape, profile, forced);
}
