/*
 * The ways of packed products, and the divisions of those for few rows and by tiles. Software
 * drivers, to which shared memory is slow, have rows of their own. The last row of each setting has
 * no conditions.
 */
#include "op/packed/dequant_select.h"

enum {
    IF_CROWDS = CHOICE_OWN,         /* only with LEAST_THREADS for (nearly) each compute unit */
    IF_ONE_ROUND = CHOICE_OWN << 1, /* only with at most a workgroup for each compute unit */
    IF_HALF_FILLS = CHOICE_OWN << 2 /* only with a workgroup for every second one */
};
#define LEAST_THREADS 512

#define UNIT_BYTES    128 /* of x */
#define LEAST_CHUNK   8
#define MOST_STAGED   256 /* units, of all rows */
#define MOST_LEVELS   16
#define TILE_STEP     32                  /* along K, a unit */
#define TILE_PADDING  16                  /* vectors (glsl/lib/tile.glsl) */
#define MOST_UNPACKED (UINT64_C(1) << 29) /* bytes of decoded weights held at once */

/* Of many rows, each weight would be unpacked on the way for every tile above another: that takes
 * as long as a pass before the product, and longer in Q6_K and Q8_0. */
/* clang-format off */
static const dequant_class classes[] = {
    /* {name, settings}, form, least and most rows */
    {{"matrix",   ON_HARDWARE}, DEQUANT_FORM_MATRIX,    8, 256},
    {{"unpacked", ON_HARDWARE}, DEQUANT_FORM_UNPACKED, 33, UINT32_MAX},
    {{"tiled",    ON_HARDWARE}, DEQUANT_FORM_TILED,    33, UINT32_MAX},
    {{"vector",   ON_ALL},      DEQUANT_FORM_VECTOR,    1, UINT32_MAX},
};
/* clang-format on */

const char *dequant_name(dequant_form form)
{
    size_t i = 0;
    while (i + 1 < ARRAY_COUNT(classes) && classes[i].form != form)
        i++;
    return classes[i].row.name;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_class *c = row;
    const dequant_shape *s = problem;
    uint64_t bytes = s->weights * sizeof(float);
    bool room = !s->elements && bytes <= MIN(MOST_UNPACKED, profile->max_binding_bytes);
    return (choice_fit){.can = (c->form != DEQUANT_FORM_MATRIX || s->units) &&
                               (c->form != DEQUANT_FORM_UNPACKED || room),
                        .suits = s->rows >= c->least_rows && s->rows <= c->most_rows};
}

const choice_table dequant_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const dequant_class *dequant_select(const dequant_shape *shape, const device_profile *profile,
                                    size_t forced)
{
    return choice_select(&dequant_choice, shape, profile, forced);
}

/* ---- dequant_vector ---- */

/*
 * A CPU runs the invocations of a workgroup as vector lanes and pays for barriers and for every
 * lane's load: teams of one, and several columns to a load of x (more would double the time to
 * compile the kernel). A GPU wants neighbours to read neighbouring bytes, many of them in flight,
 * and x from shared memory, shared by as many outputs as a workgroup can make; and small teams
 * where there are outputs enough, since each ends with a sum over the team. With integers, Q4_K and
 * Q5_K take 0.6 to 0.85 of the time; formats whose blocks do not lie at words spend theirs on loads
 * and gain nothing. Bringing x takes a workgroup a third of its time: a second round of workgroups
 * is avoided where there are few outputs. Several rows share what they can in shared memory, where
 * there are columns for large workgroups: each brings all of x. The last row of each setting has no
 * conditions.
 */
/* clang-format off */
#define BY_BYTES (NEEDS_SHUFFLES | NEEDS_BYTE_PRODUCTS | IF_QUICK_BYTES)
static const dequant_vector_class vector_classes[] = {
    /* {name, settings, conditions}, lookup, integers, threads, team, columns, rows, chunk */
    {{"alone",       ON_SOFTWARE, 0},                    false, false,  16,  1, 4, 4,   0},
    {{"integer_512", ON_HARDWARE, BY_BYTES | IF_FILLS | IF_ONE_ROUND},
                                                         false, true,  512, 32, 2, 1, 128},
    {{"integer_8",   ON_HARDWARE, BY_BYTES | IF_FILLS},  false, true,  512,  8, 2, 1, 128},
    {{"integer_16",  ON_HARDWARE, BY_BYTES | IF_HALF_FILLS},
                                                         false, true,  512, 16, 2, 1, 128},
    {{"integer_256", ON_HARDWARE, BY_BYTES | IF_FILLS},  false, true,  256, 32, 2, 1,  64},
    {{"staged_8",    ON_HARDWARE, IF_FILLS | IF_CROWDS}, true,  false, 256,  8, 4, 1, 128},
    {{"staged_16",   ON_HARDWARE, IF_FILLS | IF_CROWDS}, true,  false, 256, 16, 4, 1, 128},
    {{"staged_32",   ON_HARDWARE, IF_FILLS | IF_CROWDS}, true,  false, 256, 32, 4, 1, 128},
    {{"staged_512",  ON_HARDWARE, IF_FILLS},             true,  false, 512, 64, 4, 1, 256},
    {{"staged_256",  ON_HARDWARE, IF_FILLS},             true,  false, 256, 64, 4, 1, 128},
    {{"staged_128",  ON_HARDWARE, 0},                    true,  false, 128, 32, 2, 1,  64},
    {{"shared_512",  ON_HARDWARE, IF_FILLS},             true,  false, 512, 32, 2, 8, 256},
    {{"shared_four", ON_HARDWARE, IF_FILLS},             true,  false, 256, 32, 4, 8, 256},
    {{"direct_four", ON_HARDWARE, 0},                    true,  false, 128, 32, 4, 8,   0},
    {{"direct_two",  ON_HARDWARE, 0},                    true,  false, 128, 32, 2, 8,   0},
};
/* clang-format on */

uint64_t dequant_vector_groups(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    uint64_t columns = (uint64_t)c->threads / c->team * c->columns;
    return divide_up(s->n, columns) * divide_up(s->m, c->rows);
}

uint64_t dequant_vector_shared_bytes(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    uint64_t places = UNIT_BYTES / 16 + 2, step = c->chunk + 2u; /* of a row: vectors and sums */
    uint64_t squares = sizeof(float) * (s->normalized ? c->threads : 1);
    uint64_t stage = c->chunk ? 16 * c->rows * places * step : 16;
    uint64_t sums = c->team > 1 ? sizeof(float) * c->rows * c->columns * c->threads : 0;
    if (c->integers) /* spans of two chunks, with 16 bytes of factors each */
        return (DEQUANT_SPAN * UNIT_BYTES + 16) * (2 * c->chunk / DEQUANT_SPAN + 1u) + squares;
    return MAX(stage, sums) + sizeof(float) * MOST_LEVELS + squares;
}

/* Not more invocations, rows and shared memory than the shape has use for. Teams of the rows with
 * integers are within a subgroup. */
static dequant_vector_class sized(dequant_vector_class c, const dequant_vector_shape *s,
                                  const device_profile *profile)
{
    uint32_t step = c.integers ? DEQUANT_SPAN : 1;
    bool single = s->experts || s->m <= 1;
    c.rows = single ? 1 : (uint16_t)divide_up(s->m, divide_up(s->m, c.rows));
    while (c.chunk > LEAST_CHUNK && c.rows * c.chunk > MOST_STAGED)
        c.chunk /= 2;
    while (c.team > 1 &&
           (c.team / 2u * step >= s->units || (c.integers && c.team > profile->subgroup_size)))
        c.team /= 2;
    while (c.chunk > LEAST_CHUNK && c.chunk / 2u >= MAX(s->units, c.team * step))
        c.chunk /= 2;
    return c;
}

/* Rows of one row of x are for that alone, except where a processor has no other. */
static bool vector_suits(const dequant_vector_class *c, const dequant_vector_shape *s,
                         uint64_t groups, const device_profile *profile)
{
    bool single = s->m <= 1 || s->experts;
    uint32_t conditions = c->row.conditions;
    return (profile_is_software(profile) || single == (c->rows == 1)) &&
           (!(conditions & IF_CROWDS) ||
            profile_filled(profile, groups * c->threads / LEAST_THREADS)) &&
           (!(conditions & IF_ONE_ROUND) || groups <= profile->compute_units) &&
           (!(conditions & IF_HALF_FILLS) || groups * 2 >= profile->compute_units);
}

static choice_fit vector_fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_vector_class *c = row;
    const dequant_vector_shape *s = problem;
    dequant_vector_class fitted = sized(*c, s, profile);
    uint64_t groups = dequant_vector_groups(&fitted, s);
    bool integers = s->integers && c->threads <= profile->max_shuffle_invocations;
    return (choice_fit){.can = !c->integers || integers,
                        .suits = vector_suits(c, s, groups, profile),
                        .threads = c->threads,
                        .shared_bytes = dequant_vector_shared_bytes(&fitted, s),
                        .groups = groups};
}

const choice_table dequant_vector_choice = {CHOICE_ROWS(vector_classes), .fit = vector_fit,
                                            .last_takes_all = true};

dequant_vector_class dequant_vector_select(const dequant_vector_shape *shape,
                                           const device_profile *profile, size_t forced)
{
    const dequant_vector_class *c = choice_select(&dequant_vector_choice, shape, profile, forced);
    return sized(*c, shape, profile);
}

/* ---- dequant_tile ---- */

/*
 * The rows of an expert that spill over into a second tile cost nearly as much as a whole one, so
 * a tile holds an average expert's rows and twice their root more where it can; of those that are
 * not there, whole patches are skipped. The last row has no conditions.
 */
/* clang-format off */
static const dequant_tile_class tile_classes[] = {
    /* {name, settings}, rows, columns, registers, least and most rows of x */
    {{"tiled_16x64",   ON_NATIVE},  16,  64, 4,  4,   0,  10},
    {{"tiled_64x64",   ON_NATIVE},  64,  64, 4,  8,  24,  53},
    {{"tiled_160x128", ON_NATIVE}, 160, 128, 4, 16, 113, 142},
    {{"tiled_128x128", ON_NATIVE}, 128, 128, 4, 16,  54, UINT64_MAX},
    {{"tiled_32x64",   ON_ALL},     32,  64, 4,  4,   0, UINT64_MAX},
};
/* clang-format on */

uint32_t dequant_tile_threads(const dequant_tile_class *c)
{
    return (uint32_t)c->rows / c->register_rows * (c->columns / c->register_columns);
}

static choice_fit tile_fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_tile_class *c = row;
    uint64_t rows = *(const uint64_t *)problem;
    uint64_t vectors = (c->rows + c->columns) / 4u * TILE_STEP + TILE_PADDING;
    (void)profile;
    return (choice_fit){.can = true,
                        .suits = rows >= c->least_rows && rows <= c->most_rows,
                        .threads = dequant_tile_threads(c),
                        .shared_bytes = 16 * vectors};
}

const choice_table dequant_tile_choice = {CHOICE_ROWS(tile_classes), .fit = tile_fit,
                                          .last_takes_all = true};

const dequant_tile_class *dequant_tile_select(uint64_t rows, const device_profile *profile,
                                              size_t forced)
{
    return choice_select(&dequant_tile_choice, &rows, profile, forced);
}
