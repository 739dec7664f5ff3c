/*
 * Elementwise regions: which nodes join and which must not, kernels for each size and device, and
 * how regions are taken apart. Random programs must give the same bits joined or not, on device and
 * host.
 */
#include "args/elementwise.h"
#include "op/evaluation.h"
#include "op/elementwise/region.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const device_profile minimal = {.storage_buffers_per_stage = 8};
static const device_profile roomy = {.storage_buffers_per_stage = 32};
static const device_profile software = {.storage_buffers_per_stage = 32, .portable = true};

/* A rewritten copy of the graph, with regions. */
static rlxvk_graph *joined(const rlxvk_graph *g, const device_profile *profile, const bool *on_host)
{
    rlxvk_graph *copy = NULL;
    rewrite_options options = {true, true, profile, on_host};
    expect_ok(rlxvk_graph_status(g));
    expect_ok(graph_clone(g, &copy));
    expect_ok(rewrite_graph(copy, &options));
    return copy;
}

/* Returns the numbers of steps of the regions in order, for example "3+2". Also checks values on
 * the host and destroys g. */
static const char *regions_of(rlxvk_graph *g, const device_profile *profile)
{
    static char buffer[256];
    text t = {buffer, sizeof buffer, 0};
    rlxvk_graph *after = joined(g, profile, NULL);
    size_t count, n;
    float *wanted = evaluate_seeded(g, 3, true, &count);
    float *got = evaluate_seeded(after, 3, true, &n);
    assert_int_equal(count, n);
    assert_memory_equal(wanted, got, count * sizeof *got);
    buffer[0] = 0;
    for (uint32_t id = 0; id < after->nodes.count; id++) {
        const node *region = graph_node(after, id);
        if (region->op == OP_elementwise_region)
            text_append(&t, "%s%u", t.length ? "+" : "",
                        ((const region_attributes *)region->attributes)->step_count);
    }
    free(wanted);
    free(got);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
    return buffer;
}

#define SHAPE RLXVK_SHAPE(2, 3, 4)

static rlxvk_tensor repeat(rlxvk_graph *g, rlxvk_tensor x, int times)
{
    for (int i = 0; i < times; i++)
        x = rlxvk_neg(g, x);
    return x;
}

/* ---- Marking ---- */

static void joins_chains(void **state)
{
    (void)state;
    static const struct {
        int length;
        const char *regions;
    } cases[] = {{1, ""},    {2, "2"},     {31, "31"},     {32, "32"},
                 {33, "32"}, {34, "32+2"}, {70, "32+32+6"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_graph_output(g, repeat(g, input(g, "x", SHAPE), cases[i].length));
        assert_string_equal(regions_of(g, &minimal), cases[i].regions);
    }
}

static void joins_every_kind(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", SHAPE), row = input(g, "row", RLXVK_SHAPE(4));
    rlxvk_tensor s = input(g, "s", RLXVK_SHAPE(1));
    rlxvk_tensor a = rlxvk_fma(g, x, row, s);                     /* two steps */
    rlxvk_tensor b = rlxvk_where(g, rlxvk_lt(g, x, row), a, s);   /* two */
    rlxvk_tensor c = rlxvk_cast(g, rlxvk_round(g, b), RLXVK_I32); /* two */
    rlxvk_tensor y = rlxvk_cast(g, rlxvk_relu(g, c), RLXVK_F32);  /* two, one of them a view */
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    rlxvk_graph *after = joined(g, &minimal, NULL);
    const node *n = graph_node(after, after->outputs.items[0]);
    const region_attributes *r = n->attributes;
    assert_int_equal(n->op, OP_elementwise_region);
    assert_string_equal(n->name, "y");
    assert_int_equal(n->dtype, RLXVK_F32);
    assert_int_equal(n->input_count, 3);
    assert_int_equal(r->step_count, 8);
    rlxvk_graph_destroy(after);
    assert_string_equal(regions_of(g, &minimal), "8");
}

/* Conditions under which two nodes must not join. */
enum guard {
    NO_GUARD,
    OUTPUT,
    TWO_READERS,
    READ_TWICE,
    COLUMN,
    WIDENED,
    SMALLER_TAIL,
    WRITE_BETWEEN,
    WRITE_BEFORE,
    PAIRS,
    RAW,
    VIEW_BETWEEN,
    GUARDS
};
static const char *const guard_regions[GUARDS] = {
    [NO_GUARD] = "2",     [OUTPUT] = "",   [TWO_READERS] = "",   [READ_TWICE] = "",
    [COLUMN] = "",        [WIDENED] = "2", [SMALLER_TAIL] = "2", [WRITE_BETWEEN] = "",
    [WRITE_BEFORE] = "2", [PAIRS] = "",    [RAW] = "",           [VIEW_BETWEEN] = "",
};

static void write_cache(rlxvk_graph *g)
{
    rlxvk_write_rows(g, input(g, "cache", RLXVK_SHAPE(1, 4, 4)),
                     input(g, "rows", RLXVK_SHAPE(1, 1, 4)), input(g, "at", RLXVK_SHAPE(1)));
}

static rlxvk_graph *build_guard(enum guard guard)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", SHAPE), y;
    if (guard == WRITE_BEFORE)
        write_cache(g);
    if (guard == PAIRS)
        x = rlxvk_cast(g, x, RLXVK_C64);
    if (guard == RAW)
        x = rlxvk_cast(g, rlxvk_param(g, "u", RLXVK_U8, SHAPE), RLXVK_F32);
    if (guard == WIDENED)
        x = input(g, "small", RLXVK_SHAPE(4));
    rlxvk_tensor a = guard == RAW ? x : rlxvk_neg(g, x);
    if (guard == WRITE_BETWEEN)
        write_cache(g);
    if (guard == VIEW_BETWEEN)
        a = rlxvk_reshape(g, a, RLXVK_SHAPE(6, 4));
    if (guard == READ_TWICE)
        y = rlxvk_mul(g, a, a);
    else if (guard == COLUMN)
        y = rlxvk_add(g, a, input(g, "column", RLXVK_SHAPE(3, 1)));
    else if (guard == WIDENED)
        y = rlxvk_add(g, a, input(g, "large", SHAPE));
    else if (guard == SMALLER_TAIL)
        y = rlxvk_add(g, a, input(g, "row", RLXVK_SHAPE(1, 1, 4)));
    else
        y = rlxvk_neg(g, a);
    rlxvk_graph_output(g, guard == PAIRS ? rlxvk_cast(g, y, RLXVK_F32) : y);
    if (guard == OUTPUT)
        rlxvk_graph_output(g, a);
    if (guard == TWO_READERS)
        rlxvk_graph_output(g, rlxvk_transpose(g, a, (const int32_t[]){2, 1, 0}, 3));
    return g;
}

static void guards(void **state)
{
    (void)state;
    for (int guard = 0; guard < GUARDS; guard++) {
        if (guard == RAW) /* raw bytes: the host reference has no values here */
            continue;
        const char *got = regions_of(build_guard((enum guard)guard), &minimal);
        if (strcmp(got, guard_regions[guard]) != 0)
            print_error("guard %d: '%s', wanted '%s'\n", guard, got, guard_regions[guard]);
        assert_string_equal(got, guard_regions[guard]);
    }
    rlxvk_graph *g = build_guard(RAW), *after = joined(g, &minimal, NULL);
    assert_int_equal(count_op(after, OP_elementwise_region), 0);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

/* Trees of nodes join. Shared operands are read once. If a node does not fit, it stays outside. */
static void joins_trees(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", SHAPE), y = input(g, "y", SHAPE);
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_mul(g, x, y), rlxvk_sub(g, rlxvk_neg(g, x), y)));
    rlxvk_graph *after = joined(g, &minimal, NULL);
    assert_int_equal(graph_node(after, after->outputs.items[0])->input_count, 2);
    rlxvk_graph_destroy(after);
    assert_string_equal(regions_of(g, &minimal), "4");

    g = new_graph(); /* nine inputs: seven fit the minimal device */
    rlxvk_tensor sum = input(g, "a", SHAPE);
    for (char name[] = "b"; name[0] < 'j'; name[0]++)
        sum = rlxvk_add(g, sum, input(g, name, SHAPE));
    rlxvk_graph_output(g, sum);
    assert_string_equal(regions_of(g, &minimal), "6+2");

    g = new_graph();
    sum = input(g, "a", SHAPE);
    for (char name[] = "b"; name[0] < 'j'; name[0]++)
        sum = rlxvk_add(g, sum, input(g, name, SHAPE));
    rlxvk_graph_output(g, sum);
    assert_string_equal(regions_of(g, &roomy), "8");
}

/* Other fusions come first. If a norm also returns its sum, the region leaves the sum to it. */
static void leaves_other_fusions(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 4)), w = param(g, "w", RLXVK_SHAPE(4, 4));
    rlxvk_tensor m = rlxvk_add(g, rlxvk_matmul(g, x, w), param(g, "b", RLXVK_SHAPE(4)));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_tanh(g, rlxvk_relu(g, m))));
    rlxvk_graph *after = joined(g, &minimal, NULL);
    assert_int_equal(count_op(after, OP_fused_matmul_bias_act), 1);
    assert_int_equal(count_op(after, OP_elementwise_region), 1);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);

    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(2, 4));
    rlxvk_tensor s = rlxvk_add(g, rlxvk_neg(g, x), input(g, "r", RLXVK_SHAPE(2, 4)));
    rlxvk_graph_output(g, build_norm(g, true, s, -1));
    rlxvk_graph_output(g, rlxvk_relu(g, rlxvk_abs(g, s)));
    pair_list pairs = {0};
    after = joined(g, &minimal, NULL);
    expect_ok(rewrite_find_norm_pairs(after, &pairs));
    assert_int_equal(pairs.count, 1);
    assert_int_equal(count_op(after, OP_elementwise_region), 1);
    VECTOR_FREE(&pairs);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void leaves_rows_forced_to_the_host(void **state)
{
    (void)state;
    bool on_host[OP_COUNT] = {[OP_abs] = true};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = repeat(g, input(g, "x", SHAPE), 3);
    rlxvk_graph_output(g, repeat(g, rlxvk_abs(g, x), 2));
    rlxvk_graph *after = joined(g, &minimal, on_host);
    assert_int_equal(count_op(after, OP_abs), 1);
    assert_int_equal(count_op(after, OP_elementwise_region), 2);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void resizes_become_prologues(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* private; an output too; two of them; after a write */
        rlxvk_graph *g = new_graph();
        rlxvk_tensor small = input(g, "small", RLXVK_SHAPE(1, 2, 3, 4));
        rlxvk_tensor skip = input(g, "skip", RLXVK_SHAPE(1, 2, 6, 8));
        rlxvk_tensor large = rlxvk_resize_nearest2x(g, small);
        if (kind == 3)
            write_cache(g);
        rlxvk_tensor other = kind == 2 ? rlxvk_resize_nearest2x(g, small) : skip;
        rlxvk_graph_output(g, rlxvk_relu(g, rlxvk_add(g, large, other)));
        if (kind == 1)
            rlxvk_graph_output(g, large);
        rlxvk_graph *after = joined(g, &minimal, NULL);
        assert_int_equal(count_op(after, OP_resize_nearest2x), kind > 0);
        rlxvk_graph_destroy(after);
        assert_string_equal(regions_of(g, &minimal), "2");
    }
    rlxvk_graph *g = new_graph(); /* one op on a resized image */
    rlxvk_tensor large = rlxvk_resize_nearest2x(g, input(g, "small", RLXVK_SHAPE(1, 2, 3, 4)));
    rlxvk_graph_output(g, rlxvk_neg(g, large));
    assert_string_equal(regions_of(g, &minimal), "1");
}

/* ---- Kernels ---- */

static const char *chosen(uint32_t level, uint32_t steps, uint32_t inputs,
                          const device_profile *profile, size_t forced)
{
    const region_class *c = region_choose((region_size){level, steps, inputs}, profile, forced);
    return c ? c->row.name : "none";
}

static void selects_kernels(void **state)
{
    const device_profile poor = {.storage_buffers_per_stage = 4};
    (void)state;
    assert_string_equal(chosen(REGION_LIGHT, 8, 7, &minimal, VARIANT_NONE), "light_short");
    assert_string_equal(chosen(REGION_LIGHT, 9, 7, &minimal, VARIANT_NONE), "light_long");
    assert_string_equal(chosen(REGION_LIGHT, 2, 8, &roomy, VARIANT_NONE), "common_wide");
    assert_string_equal(chosen(REGION_COMMON, 1, 1, &minimal, VARIANT_NONE), "common_short");
    assert_string_equal(chosen(REGION_COMMON, 32, 7, &minimal, VARIANT_NONE), "common_long");
    assert_string_equal(chosen(REGION_ALL, 8, 7, &minimal, VARIANT_NONE), "all_short");
    assert_string_equal(chosen(REGION_ALL, 9, 7, &roomy, VARIANT_NONE), "all_long");
    assert_string_equal(chosen(REGION_COMMON, 1, 8, &minimal, VARIANT_NONE), "none");
    assert_string_equal(chosen(REGION_LIGHT, 1, 1, &poor, VARIANT_NONE), "none");
    assert_string_equal(chosen(REGION_LIGHT, 2, 2, &roomy, 6), "all_long");
    assert_string_equal(chosen(REGION_ALL, 2, 2, &roomy, 0), "all_short");
    assert_true(region_fits((region_size){REGION_ALL, 32, 7}, &roomy));
    assert_false(region_fits((region_size){REGION_ALL, 9, 7}, &software));
    assert_false(region_fits((region_size){REGION_COMMON, 2, 8}, &minimal));
}

static void takes_large_regions_apart(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_region_step steps[10];
    rlxvk_tensor x[10];
    rlxvk_region r = {SHAPE, steps, 10};
    for (uint32_t i = 0; i < 10; i++) {
        char name[] = {(char)('a' + i), 0};
        x[i] = input(g, name, i == 4 ? RLXVK_SHAPE(4) : SHAPE);
        steps[i] = (rlxvk_region_step){RLXVK_REGION_BINARY, RLXVK_BINARY_ADD,
                                       i ? RLXVK_REGION_STEP(i - 1) : RLXVK_REGION_INPUT(0),
                                       RLXVK_REGION_INPUT(i)};
    }
    r.modulus[4] = 4;
    rlxvk_graph_output(g, rlxvk_elementwise_region(g, x, 10, &r));
    assert_string_equal(regions_of(g, &minimal), "7+3");

    g = new_graph(); /* if a result is smaller than declared, it repeats */
    for (uint32_t i = 0; i < 10; i++) {
        char name[] = {(char)('a' + i), 0};
        x[i] = input(g, name, RLXVK_SHAPE(4));
        r.modulus[i] = 4;
    }
    rlxvk_tensor y = rlxvk_elementwise_region(g, x, 10, &r);
    rlxvk_graph_output(g, y);
    rlxvk_graph *after = joined(g, &minimal, NULL);
    assert_int_equal(count_op(after, OP_expand), 1);
    rlxvk_graph_destroy(after);
    regions_of(g, &minimal);
}

static rlxvk_tensor sines(rlxvk_graph *g, uint32_t count, uint32_t inputs)
{
    rlxvk_region_step steps[12];
    rlxvk_tensor x[] = {input(g, "a", SHAPE), input(g, "b", SHAPE)};
    rlxvk_region r = {inputs > 1 ? RLXVK_SHAPE(4, 3, 4) : SHAPE, steps, count};
    for (uint32_t i = 0; i < count; i++)
        steps[i] = (rlxvk_region_step){RLXVK_REGION_ACTIVATION, RLXVK_ACTIVATION_SIN,
                                       i ? RLXVK_REGION_STEP(i - 1) : RLXVK_REGION_INPUT(0)};
    return inputs > 1 ? rlxvk_batch_elementwise_region(g, x, inputs, &r)
                      : rlxvk_elementwise_region(g, x, 1, &r);
}

/* Where the compiler takes long for them, a region has few sines. */
static void takes_many_sines_apart(void **state)
{
    (void)state;
    device_profile slow = roomy;
    slow.loads_early = true;
    assert_true(region_fits((region_size){REGION_ALL, 5, 1, .angles = 5}, &roomy));
    assert_true(region_fits((region_size){REGION_ALL, 32, 1, .angles = 4}, &slow));
    assert_false(region_fits((region_size){REGION_ALL, 5, 1, .angles = 5}, &slow));
    for (uint32_t inputs = 1; inputs <= 2; inputs++) {
        rlxvk_graph *g = new_graph();
        rlxvk_graph_output(g, sines(g, 8, inputs));
        assert_string_equal(regions_of(g, &slow), "4+4"); /* of a batch, a batch follows */
        g = new_graph();
        rlxvk_graph_output(g, sines(g, 8, inputs));
        assert_string_equal(regions_of(g, &roomy), inputs > 1 ? "" : "8");
    }
}

/* ---- Random graphs ---- */

enum { POOL = 64 };

typedef struct maker {
    rlxvk_graph *g;
    random_source r;
    bool exact;
    rlxvk_tensor pool[POOL];
    uint32_t count, leaves;
    rlxvk_shape shape;
} maker;

static rlxvk_tensor random_leaf(maker *m)
{
    rlxvk_shape s = m->shape;
    char name[16];
    uint32_t form = random_below(&m->r, 8);
    if (form < 2) { /* a suffix */
        uint32_t dropped = random_below(&m->r, s.rank + 1);
        memmove(s.dims, s.dims + dropped, (s.rank - dropped) * sizeof *s.dims);
        s.rank -= dropped;
    } else if (form == 2) { /* any broadcast */
        for (uint32_t i = 0; i < s.rank; i++)
            s.dims[i] = random_below(&m->r, 2) ? s.dims[i] : 1;
    } else if (form == 3)
        s = RLXVK_SHAPE(1);
    snprintf(name, sizeof name, "t%u", m->leaves++);
    return input(m->g, name, s);
}

static rlxvk_tensor pick(maker *m)
{
    if (m->count == 0 || random_below(&m->r, 5) == 0)
        return random_leaf(m);
    uint32_t back = random_below(&m->r, random_below(&m->r, 3) ? MIN(m->count, 3) : m->count);
    return m->pool[m->count - 1 - back];
}

static rlxvk_tensor bounded(maker *m, rlxvk_tensor x)
{
    float limits[] = {-16, 16};
    rlxvk_tensor low = floats(m->g, RLXVK_SHAPE(1), &limits[0]);
    rlxvk_tensor high = floats(m->g, RLXVK_SHAPE(1), &limits[1]);
    return rlxvk_min(m->g, rlxvk_max(m->g, x, low), high);
}

static rlxvk_tensor random_unary(maker *m, rlxvk_tensor x)
{
    static rlxvk_tensor (*const ops[])(rlxvk_graph *, rlxvk_tensor) = {
        rlxvk_relu,        rlxvk_neg,   rlxvk_abs,     rlxvk_round, rlxvk_gelu,
        rlxvk_gelu_approx, rlxvk_silu,  rlxvk_tanh,    rlxvk_exp,   rlxvk_log,
        rlxvk_sqrt,        rlxvk_rsqrt, rlxvk_sigmoid, rlxvk_atan,  rlxvk_sin};
    return ops[random_below(&m->r, m->exact ? 4 : (uint32_t)ARRAY_COUNT(ops))](m->g, x);
}

static rlxvk_tensor random_binary(maker *m, rlxvk_tensor x, rlxvk_tensor y)
{
    static rlxvk_tensor (*const ops[])(rlxvk_graph *, rlxvk_tensor,
                                       rlxvk_tensor) = {rlxvk_max, rlxvk_min, rlxvk_lt,  rlxvk_ge,
                                                        rlxvk_eq,  rlxvk_ne,  rlxvk_add, rlxvk_sub,
                                                        rlxvk_mul, rlxvk_div, rlxvk_pow};
    uint32_t which = random_below(&m->r, m->exact ? 9 : (uint32_t)ARRAY_COUNT(ops));
    rlxvk_tensor v = ops[which](m->g, x, y);
    return m->exact && which >= 6 ? bounded(m, v) : v;
}

static rlxvk_tensor random_node(maker *m)
{
    static const rlxvk_dtype dtypes[] = {RLXVK_I8,   RLXVK_F32, RLXVK_F16,
                                         RLXVK_BOOL, RLXVK_I32, RLXVK_BF16};
    rlxvk_tensor x = pick(m);
    switch (random_below(&m->r, 8)) {
    case 0:
    case 1:
        return random_unary(m, x);
    case 2:
        return rlxvk_where(m->g, pick(m), x, pick(m));
    case 3:
        if (m->exact) /* otherwise the host's fma rounds only once, unlike the region */
            return bounded(m, rlxvk_fma(m->g, x, pick(m), pick(m)));
        return rlxvk_sub(m->g, rlxvk_mul(m->g, x, pick(m)), pick(m));
    case 4:
        return rlxvk_cast(m->g, x, dtypes[random_below(&m->r, ARRAY_COUNT(dtypes))]);
    default:
        return random_binary(m, x, pick(m));
    }
}

static rlxvk_graph *random_program(uint64_t seed, bool exact)
{
    static const rlxvk_shape shapes[] = {{3, {4, 6, 8}},    {2, {33, 5}}, {1, {129}},
                                         {4, {2, 3, 4, 5}}, {0},          {2, {0, 3}},
                                         {3, {7, 1, 12}}};
    maker m = {.g = new_graph(), .r = {seed}, .exact = exact};
    m.shape = shapes[random_below(&m.r, ARRAY_COUNT(shapes))];
    uint32_t nodes = 4 + random_below(&m.r, 40);
    for (uint32_t i = 0; i < nodes; i++) {
        rlxvk_tensor made = random_node(&m);
        m.pool[m.count++] = made;
        if (random_below(&m.r, 12) == 0)
            rlxvk_graph_output(m.g, m.pool[m.count - 1]);
    }
    rlxvk_graph_output(m.g, m.pool[m.count - 1]);
    expect_ok(rlxvk_graph_status(m.g));
    return m.g;
}

static void expect_bits(const float *got, const float *wanted, size_t count, uint64_t seed,
                        const char *what)
{
    for (size_t i = 0; i < count; i++) {
        bool same = memcmp(&got[i], &wanted[i], 4) == 0 || got[i] == wanted[i] ||
                    (got[i] != got[i] && wanted[i] != wanted[i]);
        if (!same)
            print_error("seed %llu, %s: element %zu is %.9g, wanted %.9g\n",
                        (unsigned long long)seed, what, i, (double)got[i], (double)wanted[i]);
        assert_true(same);
    }
}

/* Joining must not change any bit on the host. */
static void random_programs_on_the_host(void **state)
{
    static const device_profile *const profiles[] = {&minimal, &roomy, &software};
    uint32_t regions = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        rlxvk_graph *g = random_program(seed, seed % 2);
        rlxvk_graph *after = joined(g, profiles[seed % 3], NULL);
        rlxvk_graph *again = joined(after, profiles[seed % 3], NULL);
        size_t count, n;
        float *wanted = evaluate_seeded(g, seed, seed % 2, &count);
        float *got = evaluate_seeded(after, seed, seed % 2, &n);
        assert_int_equal(count, n);
        expect_bits(got, wanted, count, seed, "host");
        assert_int_equal(again->nodes.count, after->nodes.count);
        regions += count_op(after, OP_elementwise_region);
        free(wanted);
        free(got);
        rlxvk_graph_destroy(again);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
    assert_true(regions > 300);
}

static float *run_joined(const rlxvk_graph *g, rlxvk_toggle regions, uint64_t seed, bool exact,
                         size_t *count)
{
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.regions = regions, .forbid_host = RLXVK_ON, .check_plan = RLXVK_ON};
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    float *values = run_seeded(e, g, seed, exact, count);
    rlxvk_executable_destroy(e);
    return values;
}

/* Nor on the device. If a program is exact, it also gives the host's bits. */
static void random_programs_on_the_device(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        bool exact = seed % 4;
        rlxvk_graph *g = random_program(seed, exact);
        size_t count;
        float *host = evaluate_seeded(g, seed, exact, &count);
        float *apart = run_joined(g, RLXVK_OFF, seed, exact, &count);
        float *together = run_joined(g, RLXVK_ON, seed, exact, &count);
        expect_bits(together, apart, count, seed, "joined");
        if (exact)
            expect_bits(together, host, count, seed, "device");
        free(host);
        free(apart);
        free(together);
        rlxvk_graph_destroy(g);
    }
}

/* One graph with many regions, all different. It is compiled twice. */
static void many_different_regions(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(64));
    for (uint32_t i = 0; i < 48; i++) {
        rlxvk_tensor y = x;
        for (uint32_t bit = 0; bit < 6; bit++)
            y = (i >> bit & 1 ? rlxvk_abs : rlxvk_neg)(g, y);
        rlxvk_graph_output(g, y);
    }
    for (int turn = 0; turn < 2; turn++) {
        size_t count;
        float *wanted = evaluate_seeded(g, 7, true, &count);
        float *got = run_joined(g, RLXVK_ON, 7, true, &count);
        expect_bits(got, wanted, count, 7, "many");
        free(wanted);
        free(got);
    }
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_chains),
        cmocka_unit_test(joins_every_kind),
        cmocka_unit_test(guards),
        cmocka_unit_test(joins_trees),
        cmocka_unit_test(leaves_other_fusions),
        cmocka_unit_test(leaves_rows_forced_to_the_host),
        cmocka_unit_test(resizes_become_prologues),
        cmocka_unit_test(selects_kernels),
        cmocka_unit_test(takes_large_regions_apart),
        cmocka_unit_test(takes_many_sines_apart),
        cmocka_unit_test(random_programs_on_the_host),
        cmocka_unit_test(random_programs_on_the_device),
        cmocka_unit_test(many_different_regions),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
