/*
 * The ways of packed products, and the divisions of the one for few rows. NATIVE: hardware. CPU:
 * software drivers, to which shared memory is slow. TILED and SCALAR: RLXVK_MATMUL. The last row of
 * each setting has no conditions.
 */
#include "op/packed/dequant_select.h"

enum setting { NATIVE = 1, CPU = 2, TILED = 4, SCALAR = 8 };

/* Only where there are (nearly) as many workgroups as compute units; LEAST_THREADS for each; only
 * where hardware multiplies packed bytes. */
enum condition { FILLS = 1, CROWDS = 2, QUICK = 4 };
#define LEAST_THREADS 512

#define UNIT_BYTES    128 /* of x */
#define LEAST_CHUNK   8
#define MOST_LEVELS   16
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

/* ---- dequant_vector ---- */

/*
 * A CPU runs the invocations of a workgroup as vector lanes and pays for barriers and for every
 * lane's load: teams of one, and several columns to a load of x (more would double the time to
 * compile the kernel). A GPU wants neighbours to read neighbouring bytes, many of them in flight,
 * and x from shared memory, shared by as many outputs as a workgroup can make; and small teams
 * where there are outputs enough, since each ends with a sum over the team. With integers, Q4_K and
 * Q5_K take 0.6 to 0.85 of the time; formats whose blocks do not lie at words spend theirs on loads
 * and gain nothing. The last row of each setting has no conditions.
 */
/* clang-format off */
const dequant_vector_class dequant_vector_classes[] = {
    /* name, settings, lookup, integers, threads, team, columns, rows, chunk, conditions */
    {"alone",       CPU,    false, false,   16,  1, 4, 4,   0, 0},
    {"integer_8",   NATIVE, false, true,   256,  8, 2, 1,  64, FILLS | QUICK},
    {"integer_512", NATIVE, false, true,   512, 32, 2, 1, 128, FILLS | QUICK},
    {"integer_256", NATIVE, false, true,   256, 32, 2, 1,  64, FILLS | QUICK},
    {"staged_8",    NATIVE, true,  false,  256,  8, 4, 1, 128, FILLS | CROWDS},
    {"staged_16",   NATIVE, true,  false,  256, 16, 4, 1, 128, FILLS | CROWDS},
    {"staged_32",   NATIVE, true,  false,  256, 32, 4, 1, 128, FILLS | CROWDS},
    {"staged_512",  NATIVE, true,  false,  512, 64, 4, 1, 256, FILLS},
    {"staged_256",  NATIVE, true,  false,  256, 64, 4, 1, 128, FILLS},
    {"staged_128",  NATIVE, true,  false,  128, 32, 2, 1,  64, 0},
    {"direct_four", NATIVE, true,  false,  128, 32, 4, 8,   0, 0},
    {"direct_two",  NATIVE, true,  false,  128, 32, 2, 8,   0, 0},
};
/* clang-format on */
const size_t dequant_vector_class_count = ARRAY_COUNT(dequant_vector_classes);

uint64_t dequant_vector_groups(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    uint64_t columns = (uint64_t)c->threads / c->team * c->columns;
    return divide_up(s->n, columns) * divide_up(s->m, c->rows);
}

uint64_t dequant_vector_shared_bytes(const dequant_vector_class *c)
{
    uint64_t stage = c->chunk ? (UNIT_BYTES / 16) * (c->chunk + 1u) : 1, totals = 2 * c->chunk + 2;
    uint64_t sums = (uint64_t)c->rows * c->columns * c->threads;
    if (c->integers) /* spans of two chunks, with 16 bytes of factors each */
        return (DEQUANT_SPAN * UNIT_BYTES + 16) * (2 * c->chunk / DEQUANT_SPAN + 1u);
    return 16 * stage + sizeof(float) * (totals + sums + MOST_LEVELS);
}

/* Not more invocations, rows and shared memory than the shape has use for. Teams of the rows with
 * integers are within a subgroup. */
static dequant_vector_class fit(dequant_vector_class c, const dequant_vector_shape *s,
                                const device_profile *profile)
{
    uint32_t step = c.integers ? DEQUANT_SPAN : 1;
    while (c.rows > 1 && (s->experts || c.rows / 2 >= s->m))
        c.rows /= 2;
    while (c.team > 1 &&
           (c.team / 2u * step >= s->units || (c.integers && c.team > profile->subgroup_size)))
        c.team /= 2;
    while (c.chunk > LEAST_CHUNK && c.chunk / 2u >= MAX(s->units, c.team * step))
        c.chunk /= 2;
    return c;
}

static bool can_use_integers(const dequant_vector_class *c, const dequant_vector_shape *s,
                             const device_profile *profile)
{
    return s->integers && profile->byte_products && profile->subgroup_shuffle &&
           c->threads <= profile->max_shuffle_invocations &&
           c->threads % profile->subgroup_size == 0;
}

static bool vector_is_able(const dequant_vector_class *c, const dequant_vector_shape *s,
                           const device_profile *profile)
{
    dequant_vector_class fitted = fit(*c, s, profile);
    return (!c->integers || can_use_integers(c, s, profile)) &&
           c->threads <= profile->max_workgroup_invocations &&
           dequant_vector_shared_bytes(&fitted) <= profile->shared_memory_bytes;
}

static bool vector_suits(const dequant_vector_class *c, const dequant_vector_shape *s,
                         const device_profile *profile)
{
    bool cpu = profile->kind == RLXVK_DEVICE_CPU, single = s->m <= 1 || s->experts;
    dequant_vector_class fitted = fit(*c, s, profile);
    uint64_t groups = dequant_vector_groups(&fitted, s), threads = groups * fitted.threads;
    if (!(c->settings & (cpu ? CPU : NATIVE)) || !vector_is_able(c, s, profile))
        return false;
    if (!cpu && single != (c->rows == 1))
        return false;
    return (!(c->conditions & QUICK) || profile->quick_byte_products) &&
           (!(c->conditions & FILLS) || profile_filled(profile, groups)) &&
           (!(c->conditions & CROWDS) || profile_filled(profile, threads / LEAST_THREADS));
}

dequant_vector_class dequant_vector_select(const dequant_vector_shape *shape,
                                           const device_profile *profile, size_t forced)
{
    size_t i = 0;
    if (forced < dequant_vector_class_count &&
        vector_is_able(&dequant_vector_classes[forced], shape, profile))
        return fit(dequant_vector_classes[forced], shape, profile);
    while (i + 1 < dequant_vector_class_count &&
           !vector_suits(&dequant_vector_classes[i], shape, profile))
        i++;
    return fit(dequant_vector_classes[i], shape, profile);
}
