/* The families that have a choice of kernels, and the reading of "family=row,family=row". */
#include "op/attention/attention_select.h"
#include "op/conv/conv_select.h"
#include "op/packed/dequant_select.h"
#include "op/matmul/matrix_select.h"
#include "op/op.h"
#include "op/elementwise/region.h"
#include "op/rows/rows_select.h"
#include "op/choice/tuning.h"

#include <string.h>

/* clang-format off */
#define ROWS(family)                                                                               \
    static const char *family##_row(size_t index)                                                  \
    {                                                                                              \
        return index < family##_class_count ? family##_classes[index].name : NULL;                 \
    }
/* clang-format on */

ROWS(matmul)
ROWS(conv)
ROWS(matrix)
ROWS(dequant)
ROWS(dequant_vector)
ROWS(attention)
ROWS(region)
ROWS(rows)

#define ON_MATRIX_UNITS                                                                            \
    (1u << RLXVK_PRECISION_F16 | 1u << RLXVK_PRECISION_BF16 | 1u << RLXVK_PRECISION_SPLIT)

const variant_family variant_families[] = {
    {"matmul", matmul_row, "matmul,fused_matmul_bias_act"},
    {"conv", conv_row, "conv,conv_transpose2d"},
    {"matrix", matrix_row, "matmul,fused_matmul_bias_act,dequant_matmul", ON_MATRIX_UNITS},
    {"dequant", dequant_row, "dequant_matmul"},
    {"dequant_vector", dequant_vector_row, "dequant_matmul,dequant_grouped_matmul"},
    {"attention", attention_row, "attention"},
    {"region", region_row, "elementwise_region"},
    {"rows", rows_row,
     "softmax,layer_norm,rms_norm,reduce_sum,reduce_max,argmax,cumsum,fused_residual_ln"},
};
const size_t variant_family_count = ARRAY_COUNT(variant_families);

/* One "family=row" of a list. */
typedef struct choice {
    const char *family, *row;
    size_t family_length, row_length;
} choice;

/* Reads the item at *cursor and moves past it; false at the end. Without "=", the row is empty. */
static bool next_choice(const char **cursor, choice *out)
{
    const char *item = *cursor + strspn(*cursor, ", ");
    size_t length = strcspn(item, ", "), name = strcspn(item, "=, ");
    *out = (choice){item, item + name + (name < length), name, length - MIN(name + 1, length)};
    *cursor = item + length;
    return length > 0;
}

static bool is_word(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && strncmp(name, word, length) == 0;
}

static size_t find_row(const variant_family *f, const char *row, size_t length)
{
    for (size_t i = 0; f->row(i); i++)
        if (is_word(f->row(i), row, length))
            return i;
    return VARIANT_NONE;
}

static const variant_family *find_family(const char *name, size_t length)
{
    for (size_t i = 0; i < variant_family_count; i++)
        if (is_word(variant_families[i].name, name, length))
            return &variant_families[i];
    return NULL;
}

size_t variant_forced(const char *choices, const char *family)
{
    choice c;
    size_t row = VARIANT_NONE;
    while (choices && next_choice(&choices, &c)) {
        const variant_family *f = find_family(c.family, c.family_length);
        if (f && strcmp(f->name, family) == 0)
            row = find_row(f, c.row, c.row_length);
    }
    return row;
}

/* A switch that rules out kernels (RLXVK_MATMUL) also rules out what was measured without it. */
static size_t find_measured(lowering *l, const variant_family *f, const char *tag,
                            const uint64_t *dims)
{
    variant_query q = {.family = f};
    if (!tag)
        return VARIANT_NONE;
    strncat(q.tag, tag, sizeof q.tag - 1);
    memcpy(q.dims, dims, sizeof q.dims);
    (void)VECTOR_PUSH(&l->queries, q); /* only to be looked at */
    return l->tuning && l->matmul == MATMUL_AUTO ? tuning_find(l->tuning, &q) : VARIANT_NONE;
}

size_t variant_choose(lowering *l, const char *family, const char *tag,
                      const uint64_t dims[VARIANT_DIMS])
{
    const variant_family *f = find_family(family, strlen(family));
    size_t named = variant_forced(l->variants, family), measured = find_measured(l, f, tag, dims);
    size_t row = named != VARIANT_NONE ? named : measured;
    l->choice = (variant_choice){0};
    if (row != VARIANT_NONE)
        l->choice = (variant_choice){f->row(row),
                                     named != VARIANT_NONE ? VARIANT_BY_NAME : VARIANT_BY_TUNING};
    return row;
}

bool variant_is_named(const char *choices, const char *row)
{
    for (size_t i = 0; choices && *choices && row && i < variant_family_count; i++) {
        size_t named = variant_forced(choices, variant_families[i].name);
        if (named != VARIANT_NONE && variant_families[i].row(named) == row)
            return true;
    }
    return false;
}

bool variant_reaches(const variant_family *family, const char *op)
{
    const char *item = family->ops;
    while (item && !is_word(op, item, strcspn(item, ",")))
        item = strchr(item, ',') ? strchr(item, ',') + 1 : NULL;
    return item || !family->ops;
}

static rlxvk_status fail_choice(const char *what, const choice *c, const variant_family *family)
{
    char names[512] = "";
    text t = {names, sizeof names, 0};
    for (size_t i = 0; !family && i < variant_family_count; i++)
        text_append(&t, "%s%s", i ? ", " : "", variant_families[i].name);
    for (size_t i = 0; family && family->row(i); i++)
        text_append(&t, "%s%s", i ? ", " : "", family->row(i));
    if (!family)
        return status_fail(RLXVK_E_ATTR,
                           "%s: no kernel family '%.*s'; families with variants are %s", what,
                           (int)MIN(c->family_length, 100), c->family, names);
    return status_fail(RLXVK_E_ATTR, "%s: %s has no variant '%.*s'; it has %s", what, family->name,
                       (int)MIN(c->row_length, 100), c->row, names);
}

rlxvk_status variant_check(const char *choices, const char *what)
{
    choice c;
    while (choices && next_choice(&choices, &c)) {
        const variant_family *f = find_family(c.family, c.family_length);
        if (!f || find_row(f, c.row, c.row_length) == VARIANT_NONE)
            return fail_choice(what, &c, f);
    }
    return RLXVK_OK;
}
