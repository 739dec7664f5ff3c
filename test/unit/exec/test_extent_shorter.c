/*
 * The promise RLXVK_EXTENT_SHORTER: under an active extent, a graph gives the same results as if it
 * were compiled for that number of rows. They match within the tolerances of its ops. The bits do
 * not depend on the data behind the extent.
 */
#include "exec/allocate.h"
#include "exec/executable.h"
#include "support/harness.h"
#include "support/random_graph.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WIDTH = 8, HEADS = 2, MOST = 4096 };

/* Larger than the 2e-5 by which a norm may be off, because errors add up in sums of norms. */
#define TOLERANCE 1e-4f

#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

/* Maps x [batch, rows, WIDTH] to a result of any shape. The shapes of params must not depend on
 * rows. */
typedef rlxvk_tensor (*builder)(rlxvk_graph *g, rlxvk_tensor x);

static rlxvk_tensor param(rlxvk_graph *g, rlxvk_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "p%zu", g->nodes.count);
    return rlxvk_param(g, name, RLXVK_F32, shape);
}
#define P(...) param(g, RLXVK_SHAPE(__VA_ARGS__))
#define OF_X(name, ...)                                                                            \
    static rlxvk_tensor name(rlxvk_graph *g, rlxvk_tensor x)                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

/* ---- Ops that keep the shape. Values are near 1, so that one tolerance is enough ---- */

OF_X(activate, rlxvk_gelu(g, x))
OF_X(shift, rlxvk_add(g, x, P(WIDTH)))
OF_X(normalize, rlxvk_layer_norm(g, x, P(WIDTH), P(WIDTH), -1, 1e-5f))
OF_X(project, rlxvk_tanh(g, rlxvk_add(g, x, rlxvk_matmul(g, x, P(WIDTH, WIDTH)))))
OF_X(soften, rlxvk_softmax(g, x, 1))
OF_X(log_soften, rlxvk_log_softmax(g, x, 1))
OF_X(within, rlxvk_softmax(g, x, -1))
OF_X(run_on, rlxvk_tanh(g, rlxvk_cumsum(g, x, 1, false)))
OF_X(run_before, rlxvk_tanh(g, rlxvk_cumsum(g, x, 1, true)))
OF_X(center, rlxvk_sub(g, x, rlxvk_reduce_mean(g, x, AXES(1), true)))
OF_X(by_largest, rlxvk_sub(g, x, rlxvk_reduce_max(g, x, AXES(1), true)))
OF_X(by_sum, rlxvk_mul(g, x, rlxvk_tanh(g, rlxvk_reduce_sum(g, x, AXES(1, 2), true))))
OF_X(first_row, rlxvk_add(g, x, rlxvk_narrow(g, x, 1, 0, 1)))
OF_X(turned,
     rlxvk_transpose(g, rlxvk_softmax(g, rlxvk_transpose(g, x, AXES(0, 2, 1)), 2), AXES(0, 2, 1)))
static rlxvk_tensor attend(rlxvk_graph *g, rlxvk_tensor x, rlxvk_attention_mask kind,
                           rlxvk_tensor mask)
{
    rlxvk_attention_options o = {.num_heads = HEADS,
                                 .mask = kind,
                                 .window = 2,
                                 .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor k = rlxvk_matmul(g, x, P(WIDTH, WIDTH));
    return rlxvk_attention(g, x, k, rlxvk_gelu(g, x), mask, &o);
}
OF_X(see_all, attend(g, x, RLXVK_MASK_NONE, RLXVK_NONE))
OF_X(see_before, attend(g, x, RLXVK_MASK_CAUSAL, RLXVK_NONE))
OF_X(see_near, attend(g, x, RLXVK_MASK_SLIDING, RLXVK_NONE))
static rlxvk_tensor mask_of(rlxvk_graph *g, rlxvk_tensor x, bool biased)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    rlxvk_tensor m =
        rlxvk_reshape(g, rlxvk_narrow(g, x, 2, 0, 1), RLXVK_SHAPE(s.dims[0], 1, 1, s.dims[1]));
    return biased ? m : rlxvk_cast(g, rlxvk_ge(g, m, rlxvk_scalar(g, -0.9f)), RLXVK_F32);
}
OF_X(see_some, attend(g, x, RLXVK_MASK_CUSTOM, mask_of(g, x, false)))
OF_X(see_biased, attend(g, x, RLXVK_MASK_BIAS, mask_of(g, x, true)))
OF_X(see_or_not, attend(g, x, RLXVK_MASK_BIAS, P(rlxvk_tensor_shape(g, x).dims[0], HEADS, 1, 1)))
static rlxvk_tensor norm_over(rlxvk_graph *g, rlxvk_tensor x, bool rms)
{
    int64_t rows = rlxvk_tensor_shape(g, x).dims[1];
    rlxvk_tensor ones = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &(float){0.7f}, 4);
    ones = rlxvk_expand(g, ones, RLXVK_SHAPE(rows));
    return rms ? rlxvk_rms_norm(g, x, ones, RLXVK_NONE, 1, 1e-2f)
               : rlxvk_layer_norm(g, x, ones, ones, 1, 1e-2f);
}
OF_X(norm_rows, norm_over(g, x, false))
OF_X(rms_rows, norm_over(g, x, true))
static rlxvk_tensor norm_groups(rlxvk_graph *g, rlxvk_tensor x)
{
    x = rlxvk_group_norm(g, rlxvk_transpose(g, x, AXES(0, 2, 1)), P(WIDTH), P(WIDTH), 2, 1e-2f);
    return rlxvk_transpose(g, x, AXES(0, 2, 1));
}
/* Keys and values are multiplied along the rows, as in linear attention. */
static rlxvk_tensor mix(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_matmul_options turned = {.transpose_a = true};
    x = rlxvk_matmul(g, x, rlxvk_tanh(g, rlxvk_matmul_with(g, x, rlxvk_gelu(g, x), &turned)));
    return rlxvk_tanh(g, x);
}

/* Merges batch and rows into one axis, as encoders often do. Products of such rows are packed. */
static rlxvk_tensor perceptron(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_tensor rows = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, WIDTH));
    rlxvk_tensor y = rlxvk_layer_norm(g, rows, P(WIDTH), P(1, WIDTH), -1, 1e-5f);
    y = rlxvk_gelu(g, rlxvk_add(g, rlxvk_matmul(g, y, P(WIDTH, 3 * WIDTH)), P(1, 3 * WIDTH)));
    y = rlxvk_mul(g, rlxvk_softmax(g, y, 1), rlxvk_scalar(g, 3));
    y = rlxvk_matmul_with(g, y, P(WIDTH, 3 * WIDTH), &(rlxvk_matmul_options){.transpose_b = true});
    return rlxvk_tanh(g, rlxvk_reshape(g, rlxvk_add(g, rows, y), shape));
}
static rlxvk_tensor encode(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_shape apart = RLXVK_SHAPE(shape.dims[0], shape.dims[1], HEADS, WIDTH / HEADS);
    rlxvk_attention_options o = {.layout = RLXVK_LAYOUT_BSHD};
    rlxvk_tensor rows = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, WIDTH)), part[3];
    rlxvk_tensor all = rlxvk_matmul(g, rows, P(WIDTH, 3 * WIDTH));
    for (int64_t i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(g, rlxvk_narrow(g, all, 1, i * WIDTH, WIDTH), apart);
    rlxvk_tensor y = rlxvk_attention(g, part[0], part[1], part[2], RLXVK_NONE, &o);
    y = rlxvk_matmul(g, rlxvk_reshape(g, y, RLXVK_SHAPE(-1, WIDTH)), P(WIDTH, WIDTH));
    y = rlxvk_layer_norm(g, rlxvk_add(g, rows, y), P(WIDTH), P(WIDTH), -1, 1e-2f);
    return rlxvk_reshape(g, y, shape);
}
/* One factor per row, computed from packed rows. */
static rlxvk_tensor weigh(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor factor = rlxvk_sigmoid(g, rlxvk_matmul(g, x, P(WIDTH, 1)));
    rlxvk_tensor shifted = rlxvk_add(g, rlxvk_matmul(g, x, P(WIDTH, WIDTH)), P(WIDTH));
    return rlxvk_tanh(g, rlxvk_mul(g, shifted, factor));
}

static const builder keeping[] = {perceptron, encode,     weigh,   activate,   shift,
                                  normalize,  project,    soften,  log_soften, within,
                                  run_on,     center,     by_sum,  by_largest, first_row,
                                  run_before, turned,     see_all, see_before, see_near,
                                  see_some,   see_biased, mix,     see_or_not, norm_rows,
                                  rms_rows,   norm_groups};

/* ---- Ops whose result has no rows ---- */

OF_X(mean, rlxvk_reduce_mean(g, x, AXES(1), false))
OF_X(mean_of_all, rlxvk_reduce_mean(g, x, AXES(1, 2), false))
OF_X(sum, rlxvk_reduce_sum(g, x, AXES(1), false))
OF_X(largest, rlxvk_reduce_max(g, x, AXES(1), true))
OF_X(smallest, rlxvk_reduce_min(g, x, AXES(1), false))
OF_X(product, rlxvk_reduce_prod(g, rlxvk_tanh(g, x), AXES(1), false))
/* Argmax over values that grow by about 1 a row, so that there are no ties. */
static rlxvk_tensor where_largest(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor unsure = rlxvk_mul(g, rlxvk_tanh(g, x), rlxvk_scalar(g, 0.2f));
    x = rlxvk_cumsum(g, rlxvk_add(g, unsure, rlxvk_scalar(g, 1)), 1, false);
    return rlxvk_cast(g, rlxvk_argmax(g, x, 1, false), RLXVK_F32);
}
OF_X(head, rlxvk_matmul(g, rlxvk_reshape(g, rlxvk_narrow(g, x, 1, 0, 1), RLXVK_SHAPE(-1, WIDTH)),
                        P(WIDTH, 3)))
OF_X(second, rlxvk_gather(g, x, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &(float){0}, 4), 1))
OF_X(gram, rlxvk_matmul_with(g, x, x, &(rlxvk_matmul_options){.transpose_a = true}))
static const builder ending[] = {mean,    mean_of_all,   sum,  largest, smallest,
                                 product, where_largest, head, second,  gram};

/* Builds the same graph for any number of rows. */
static rlxvk_graph *make(uint64_t seed, int64_t rows)
{
    rlxvk_graph *g = NULL;
    random_source r = {seed};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1 + seed % 3, rows, WIDTH));
    for (uint32_t n = random_below(&r, 5); n > 0; n--)
        x = keeping[random_below(&r, ARRAY_COUNT(keeping))](g, x);
    x = keeping[seed % ARRAY_COUNT(keeping)](g, x);
    rlxvk_graph_output(g, ending[seed / 2 % ARRAY_COUNT(ending)](g, x));
    rlxvk_graph_output(g, x);
    if (rlxvk_graph_status(g) != RLXVK_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, rlxvk_graph_error(g));
    return g;
}

static float value_at(uint64_t seed, uint64_t i)
{
    random_source r = {seed * 1000003 + i};
    return (float)random_below(&r, 2001) / 1000 - 1;
}

static void set_params(rlxvk_executable *e)
{
    float values[MOST];
    for (size_t i = 0; i < e->program->param_count; i++) {
        const node *n = graph_node(e->program->source, e->program->params[i].source);
        uint64_t count = shape_numel(&n->shape);
        for (uint64_t k = 0; k < count; k++)
            values[k] = value_at(i + 77, k) * 0.5f;
        expect_ok(rlxvk_set_param(e, n->name, values, count));
    }
}

/* Element [b, row, w] does not depend on the number of rows. Rows from `active` on are filled with
 * `other`. */
static void run(rlxvk_executable *e, uint64_t seed, int64_t batch, int64_t rows, int64_t active,
                float other, float *y[2], size_t counts[2])
{
    float x[MOST];
    rlxvk_run_output reads[2];
    size_t length = (size_t)(batch * rows * WIDTH);
    for (size_t i = 0; i < length; i++) {
        size_t row = i / WIDTH % (size_t)rows, b = i / WIDTH / (size_t)rows;
        x[i] = row < (size_t)active ? value_at(seed, (b * 1000 + row) * WIDTH + i % WIDTH) : other;
    }
    for (size_t o = 0; o < 2; o++) {
        counts[o] = shape_numel(&e->program->results[o].shape);
        reads[o] = (rlxvk_run_output){o, y[o], counts[o], RLXVK_F32};
    }
    expect_ok(rlxvk_run(e, &(rlxvk_run_input){"x", x, length, RLXVK_F32}, 1, reads, 2));
}

typedef struct results {
    float values[2][MOST];
    size_t counts[2];
} results;

static void run_into(results *out, rlxvk_executable *e, uint64_t seed, int64_t rows, int64_t active,
                     float other)
{
    run(e, seed, 1 + (int64_t)(seed % 3), rows, active, other,
        (float *[2]){out->values[0], out->values[1]}, out->counts);
}

/* Returns the index in the longer result of element i of the shorter one. Only the second output
 * has rows. */
static size_t place_of(size_t output, size_t i, int64_t rows, int64_t active)
{
    size_t span = (size_t)active * WIDTH;
    return output == 0 ? i : i / span * (size_t)rows * WIDTH + i % span;
}

static void compare(const results *shorter, const results *got, int64_t rows, int64_t active,
                    uint64_t seed, bool exact)
{
    for (size_t o = 0; o < 2; o++)
        for (size_t i = 0; i < shorter->counts[o]; i++) {
            float a = shorter->values[o][i], b = got->values[o][place_of(o, i, rows, active)];
            bool same = exact ? memcmp(&a, &b, 4) == 0
                              : fabsf(a - b) <= TOLERANCE * (1 + fabsf(a)) || a == b;
            if (!same)
                fail_msg("seed %llu, %lld of %lld rows: output %zu element %zu is %.9g, wanted "
                         "%.9g%s",
                         (unsigned long long)seed, (long long)active, (long long)rows, o, i,
                         (double)b, (double)a, exact ? " as with other rows behind" : "");
        }
}

static void check(rlxvk_context *c, uint64_t seed, int64_t rows, rlxvk_compile_options o)
{
    static const rlxvk_bucket_axis axis = {"x", 1, false};
    static results shorter, got, again;
    rlxvk_graph *g = make(seed, rows);
    rlxvk_executable *e = NULL;
    random_source r = {seed};
    exec_scratch_fill = 0x7fc00000u;
    o.bucket_axes = &axis;
    o.bucket_axis_count = 1;
    o.extent_promise = RLXVK_EXTENT_SHORTER;
    if (rlxvk_compile(c, g, &o, &e) != RLXVK_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, rlxvk_last_error());
    set_params(e);
    rlxvk_graph_destroy(g);
    for (int k = 0; k < 3; k++) {
        int64_t active = k == 2 ? rows : 1 + random_below(&r, (uint32_t)rows);
        rlxvk_executable *plain = NULL;
        g = make(seed, active);
        expect_ok(rlxvk_compile(c, g, NULL, &plain));
        set_params(plain);
        run_into(&shorter, plain, seed, active, active, 0);
        expect_ok(rlxvk_set_active_extent(e, active, rows));
        run_into(&got, e, seed, rows, active, NAN);
        compare(&shorter, &got, rows, active, seed, false);
        run_into(&again, e, seed, rows, active, k ? 3e38f : -INFINITY);
        for (size_t o2 = 0; o2 < 2; o2++) /* the first run's values become the reference */
            for (size_t i = 0; i < shorter.counts[o2]; i++)
                shorter.values[o2][i] = got.values[o2][place_of(o2, i, rows, active)];
        compare(&shorter, &again, rows, active, seed, true);
        rlxvk_executable_destroy(plain);
        rlxvk_graph_destroy(g);
    }
    exec_scratch_fill = 0;
    rlxvk_executable_destroy(e);
}

static void test_random_graphs(void **state)
{
    static const rlxvk_compile_options modes[] = {{0},
                                                  {.check_plan = RLXVK_ON},
                                                  {.fusion = RLXVK_OFF},
                                                  {.reuse_memory = RLXVK_OFF},
                                                  {.keep_all = RLXVK_ON}};
    static const int64_t rows[] = {2, 5, 16, 33, 64};
    (void)state;
    for (uint64_t seed = 1; seed <= harness_rounds(120); seed++)
        check(shared_context, seed, rows[seed % ARRAY_COUNT(rows)],
              modes[seed % ARRAY_COUNT(modes)]);
}

/* ---- Graphs that are not supported ---- */

OF_X(reversed, rlxvk_reverse(g, x, AXES(1)))
OF_X(with_itself, rlxvk_matmul_with(g, x, x, &(rlxvk_matmul_options){.transpose_b = true}))
OF_X(convolved, rlxvk_conv(g, rlxvk_transpose(g, x, AXES(0, 2, 1)), P(4, WIDTH, 3), RLXVK_NONE,
                           &(rlxvk_conv_options){.padding = {1}}))
OF_X(joined, rlxvk_concat(g, (rlxvk_tensor[]){x, x}, 2, 1))

static void test_what_stands_in_the_way(void **state)
{
    static const struct {
        builder build;
        const char *why;
    } rows[] = {{reversed, "extent_promise: reverse (node 1): it computes across the rows"},
                {with_itself, "extent_promise: matmul (node 1): "},
                {convolved, "extent_promise: conv (node 3): "},
                {joined, "extent_promise: concat (node 1): "}};
    static const rlxvk_bucket_axis axis = {"x", 1, false};
    rlxvk_compile_options o = {.bucket_axes = &axis,
                               .bucket_axis_count = 1,
                               .extent_promise = RLXVK_EXTENT_SHORTER};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 6, WIDTH));
        rlxvk_graph_output(g, rows[i].build(g, x));
        assert_int_equal(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_UNSUPPORTED);
        assert_null(e);
        if (!strstr(rlxvk_last_error(), rows[i].why))
            fail_msg("'%s', wanted '%s'", rlxvk_last_error(), rows[i].why);
        rlxvk_graph_destroy(g);
    }
}

/* ---- Packed rows ---- */

static rlxvk_executable *compile_of_batch(builder build, int64_t batch, int64_t rows)
{
    static const rlxvk_bucket_axis axis = {"x", 1, false};
    rlxvk_compile_options o = {.bucket_axes = &axis,
                               .bucket_axis_count = 1,
                               .extent_promise = RLXVK_EXTENT_SHORTER};
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, rows, WIDTH));
    rlxvk_graph_output(g, build(g, x));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static size_t count_of(const rlxvk_executable *e, op_kind op)
{
    const rlxvk_graph *g = e->program->graph;
    size_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        count += graph_node(g, id)->op == (uint16_t)op;
    return count;
}

/* Rows are packed only for products, and only if there are several batches. Packed or not, every
 * dispatch must scale: for a quarter of the rows, at most a third of the workgroups. */
static void test_products_of_batches_are_packed(void **state)
{
    static const struct {
        builder build;
        int64_t batch;
        size_t packs, unpacks;
    } rows[] = {{perceptron, 16, 2, 1}, {encode, 16, 2, 2}, {weigh, 16, 1, 1},
                {perceptron, 1, 0, 0},  {soften, 16, 0, 0}, {activate, 16, 0, 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_executable *e = compile_of_batch(rows[i].build, rows[i].batch, 4096);
        const program *p = e->program;
        if (count_of(e, OP_pack_first) != rows[i].packs ||
            count_of(e, OP_unpack_first) != rows[i].unpacks)
            fail_msg("row %zu: %zu times packed, %zu times unpacked", i, count_of(e, OP_pack_first),
                     count_of(e, OP_unpack_first));
        for (size_t k = 0; k < p->schedule.dispatches.count && rows[i].packs; k++) {
            const dispatch *d = &p->schedule.dispatches.items[k];
            uint32_t part[3];
            if (d->kernel == KERNEL_KEEP_FIRST) /* of keys: its result has all rows */
                continue;
            if (!extent_scales(&p->extent, k))
                fail_msg("row %zu: kernel %s makes all rows", i, kernel_find(d->kernel)->name);
            extent_launch(d, &p->extent.groups[k], &e->device->setup.profile, 1024, 4096, part);
            if ((uint64_t)part[0] * part[1] * part[2] * 3 >
                (uint64_t)d->groups[0] * d->groups[1] * d->groups[2])
                fail_msg("row %zu: kernel %s makes too many rows", i, kernel_find(d->kernel)->name);
        }
        rlxvk_executable_destroy(e);
    }
}

/* Some dispatches are only for few rows, others only for many. A run executes only one kind.
 * Returns the number of such dispatches. */
static size_t expect_turns(const rlxvk_executable *e, int64_t rows)
{
    const program *p = e->program;
    size_t turns = 0;
    for (size_t k = 0; k < p->schedule.dispatches.count; k++) {
        const dispatch *d = &p->schedule.dispatches.items[k];
        turns += d->turn != TURN_ALWAYS;
        for (int64_t active = 0; active <= rows && d->turn != TURN_ALWAYS; active++) {
            uint32_t part[3];
            bool idle = d->turn == (2 * active <= rows ? TURN_MANY_ROWS : TURN_FEW_ROWS);
            assert_true(extent_scales(&p->extent, k));
            extent_launch(d, &p->extent.groups[k], &e->device->setup.profile, (uint64_t)active,
                          (uint64_t)rows, part);
            assert_int_equal(part[0] * part[1] * part[2] == 0, idle || active == 0);
        }
    }
    return turns;
}

static size_t check_turns(int64_t batch, int64_t rows)
{
    static float x[64 * MOST], y[64 * MOST], wanted[64 * MOST];
    size_t length = (size_t)(batch * rows * WIDTH);
    rlxvk_executable *e = compile_of_batch(project, batch, rows);
    rlxvk_run_input given = {"x", x, length, RLXVK_F32, false};
    size_t turns = expect_turns(e, rows);
    set_params(e);
    for (size_t i = 0; i < length; i++)
        x[i] = value_at(5, i);
    expect_ok(rlxvk_run(e, &given, 1, &(rlxvk_run_output){0, wanted, length, RLXVK_F32}, 1));
    for (int64_t active = 1; active <= rows; active += 1 + rows / 9) {
        expect_ok(rlxvk_set_active_extent(e, active, rows));
        expect_ok(rlxvk_run(e, &given, 1, &(rlxvk_run_output){0, y, length, RLXVK_F32}, 1));
        for (size_t i = 0; i < length; i++)
            if ((int64_t)(i / WIDTH) % rows < active && fabsf(y[i] - wanted[i]) > TOLERANCE)
                fail_msg("%lld of %lld rows: element %zu is %.9g, wanted %.9g", (long long)active,
                         (long long)rows, i, (double)y[i], (double)wanted[i]);
    }
    rlxvk_executable_destroy(e);
    return turns;
}

static void test_products_change_kernels(void **state)
{
    size_t turns = check_turns(3, 4) + check_turns(8, 64) + check_turns(64, 512);
    rlxvk_device_info info;
    (void)state;
    rlxvk_context_device(shared_context, &info);
    if (info.kind == RLXVK_DEVICE_CPU) /* 12 rows: by rows; 3 rows: by elements */
        assert_true(turns >= 2);
}

/* ---- The count of active rows ---- */

static rlxvk_graph *mean_of_rows(int64_t rows)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows));
    rlxvk_graph_output(g, rlxvk_reduce_mean(g, x, AXES(0), false));
    return g;
}

static float mean_now(rlxvk_executable *e)
{
    const float x[6] = {1, 3, 8, 4, NAN, 20};
    float y[1] = {0};
    expect_ok(rlxvk_run(e, &RLXVK_RUN_INPUT("x", x), 1, &RLXVK_RUN_OUTPUT(0, y), 1));
    return y[0];
}

/* Each run counts the rows of its extent; a clone has its own extent. If the extent is cleared, all
 * rows count. The caller cannot see the count as an input. */
static void test_count(void **state)
{
    static const rlxvk_bucket_axis axis = {"x", 0, false};
    rlxvk_compile_options o = {.bucket_axes = &axis,
                               .bucket_axis_count = 1,
                               .extent_promise = RLXVK_EXTENT_SHORTER};
    rlxvk_executable *e = NULL, *clone = NULL;
    rlxvk_tensor_info infos[4];
    size_t count;
    rlxvk_graph *g = mean_of_rows(6);
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_true(isnan(mean_now(e)));
    expect_ok(rlxvk_set_active_extent(e, 2, 6));
    assert_true(mean_now(e) == 2);
    expect_ok(rlxvk_clone(e, &clone));
    expect_ok(rlxvk_set_active_extent(e, 2, 3)); /* two thirds of six rows */
    assert_true(mean_now(e) == 4);
    assert_true(mean_now(clone) == 2);
    expect_ok(rlxvk_clear_active_extent(e));
    assert_true(isnan(mean_now(e)));
    expect_ok(rlxvk_executable_inputs(e, infos, 4, &count));
    assert_int_equal(count, 1);
    assert_int_equal(rlxvk_run(e, &(rlxvk_run_input){"rlxvk.extent", infos, 1, RLXVK_F32}, 1, NULL,
                               0),
                     RLXVK_E_UNKNOWN_NAME);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(clone);
    o.extent_promise = (rlxvk_extent_promise)2;
    assert_int_equal(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR);
    assert_non_null(strstr(rlxvk_last_error(), "extent_promise is 2"));
    rlxvk_graph_destroy(g);
}

/* The extent belongs to the binding in force. Other leaves keep their names, shapes and values. */
static void test_symbols(void **state)
{
    static const char *const shapes[] = {"1", "SEQ"};
    const float x[] = {1, 3, 8, 4, NAN, 20, NAN, NAN, NAN, NAN}, a[1] = {10};
    rlxvk_compile_options o = {.bucket_symbols = RLXVK_ON, .extent_promise = RLXVK_EXTENT_SHORTER};
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_tensor_info infos[4];
    size_t count;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor first = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor rows = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_SEQ)));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor y = rlxvk_mul(g, rlxvk_reduce_mean(g, rows, AXES(0), true), w);
    rlxvk_graph_output(g, rlxvk_add(g, y, first));
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    expect_ok(rlxvk_set_param(e, "w", &(float){2}, 1));
    for (int64_t seq = 6; seq <= 10; seq += 4) {
        float got[1] = {0};
        rlxvk_run_input given[] = {RLXVK_RUN_INPUT("a", a),
                                   {"x", x, (size_t)seq, RLXVK_F32, false}};
        expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, seq}, 1));
        expect_ok(rlxvk_set_active_extent(e, 2, seq));
        expect_ok(rlxvk_run(e, given, 2, &RLXVK_RUN_OUTPUT(0, got), 1));
        assert_true(got[0] == 14);
        expect_ok(rlxvk_executable_inputs(e, infos, 4, &count));
        assert_int_equal(count, 2);
        for (size_t i = 0; i < 2; i++)
            assert_string_equal(infos[i].shape_text, shapes[i]);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs),
                                       cmocka_unit_test(test_what_stands_in_the_way),
                                       cmocka_unit_test(test_products_of_batches_are_packed),
                                       cmocka_unit_test(test_products_change_kernels),
                                       cmocka_unit_test(test_count),
                                       cmocka_unit_test(test_symbols)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
