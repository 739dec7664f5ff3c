/*
 * Which way a product with packed weights goes: one table, in order of preference. Pure;
 * unit-tested on made-up profiles.
 */
#ifndef RLXVK_DEQUANT_SELECT_H
#define RLXVK_DEQUANT_SELECT_H

#include "base/profile.h"
#include "base/switches.h"
#include "op/variant.h"

typedef enum dequant_form {
    DEQUANT_FORM_UNPACKED, /* all weights decoded to a temporary, then a product of floats */
    DEQUANT_FORM_TILED,    /* decoded tile by tile into shared memory */
    DEQUANT_FORM_VECTOR    /* decoded in registers, once for each few rows of x */
} dequant_form;

typedef struct dequant_class {
    const char *name;
    uint8_t form, settings; /* enum dequant_form; where it may be used (dequant_select.c) */
    uint32_t least_rows;
} dequant_class;

extern const dequant_class dequant_classes[];
extern const size_t dequant_class_count;

/* The first row of a form. */
const char *dequant_name(dequant_form form);
/* `rows` of x times `weights` packed weights. `choice` is an enum matmul_choice; the row `forced`
 * (VARIANT_NONE: none) goes before, if it can. */
const dequant_class *dequant_select(uint64_t rows, uint64_t weights, const device_profile *profile,
                                    unsigned choice, size_t forced);

#endif
