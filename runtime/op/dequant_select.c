/*
 * The ways of packed products. NATIVE: hardware. CPU: software drivers, to which shared memory is
 * slow. TILED and SCALAR: RLXVK_MATMUL. The last row of each setting has no conditions.
 */
#include "op/dequant_select.h"

enum setting { NATIVE = 1, CPU = 2, TILED = 4, SCALAR = 8 };

#define MOST_UNPACKED (UINT64_C(1) << 29) /* bytes of decoded weights held at once */

/* clang-format off */
const dequant_class dequant_classes[] = {
    /* name, form, settings, least rows */
    {"unpacked", DEQUANT_FORM_UNPACKED, NATIVE,                33},
    {"tiled",    DEQUANT_FORM_TILED,    NATIVE | TILED,        33},
    {"vector",   DEQUANT_FORM_VECTOR,   NATIVE | CPU | SCALAR,  1},
};
/* clang-format on */
const size_t dequant_class_count = ARRAY_COUNT(dequant_classes);

const char *dequant_name(dequant_form form)
{
    size_t i = 0;
    while (i + 1 < dequant_class_count && dequant_classes[i].form != form)
        i++;
    return dequant_classes[i].name;
}

static bool is_able(const dequant_class *c, uint64_t weights, const device_profile *profile)
{
    uint64_t bytes = weights * sizeof(float);
    return c->form != DEQUANT_FORM_UNPACKED ||
           bytes <= MIN(MOST_UNPACKED, profile->max_binding_bytes);
}

const dequant_class *dequant_select(uint64_t rows, uint64_t weights, const device_profile *profile,
                                    unsigned choice, size_t forced)
{
    unsigned setting = choice == MATMUL_TILED              ? TILED
                       : choice == MATMUL_SCALAR           ? SCALAR
                       : profile->kind == RLXVK_DEVICE_CPU ? CPU
                                                           : NATIVE;
    size_t i = 0;
    if (forced < dequant_class_count && is_able(&dequant_classes[forced], weights, profile))
        return &dequant_classes[forced];
    while (i + 1 < dequant_class_count &&
           (!(dequant_classes[i].settings & setting) ||
            (setting == NATIVE && rows < dequant_classes[i].least_rows) ||
            !is_able(&dequant_classes[i], weights, profile)))
        i++;
    return &dequant_classes[i];
}
