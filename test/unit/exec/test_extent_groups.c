/*
 * Tests which dispatches do less work for fewer rows. Rows may be the leading axis or an inner one,
 * for example the rows of each matrix in a batch. Each graph also runs under several extents and
 * must match bit for bit.
 */
#include "exec/executable.h"
#include "support/extent_check.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define OF_X(name, ...)                                                                            \
    static rlxvk_tensor name(rlxvk_graph *g, rlxvk_tensor x)                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define W(...)    rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(__VA_ARGS__))
#define S(...)    rlxvk_param(g, "s", RLXVK_F32, RLXVK_SHAPE(__VA_ARGS__))

OF_X(unary, rlxvk_silu(g, x))
OF_X(binary, rlxvk_add(g, x, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &(float){2}, 4)))
OF_X(region, rlxvk_mul(g, rlxvk_silu(g, x), rlxvk_tanh(g, x)))
OF_X(cast, rlxvk_cast(g, rlxvk_cast(g, x, RLXVK_I32), RLXVK_F32))
OF_X(swiglu, rlxvk_fused_swiglu(g, x, true))
OF_X(soft, rlxvk_softmax(g, x, -1))
OF_X(norm, rlxvk_layer_norm(g, x, W(32), RLXVK_NONE, -1, 1e-5f))
OF_X(sum, rlxvk_reduce_sum(g, x, AXES(-1), false))
OF_X(best, rlxvk_cast(g, rlxvk_argmax(g, x, -1, false), RLXVK_F32))
OF_X(three, rlxvk_cast(g, rlxvk_topk(g, x, 3), RLXVK_F32))
OF_X(forty, rlxvk_cast(g, rlxvk_topk(g, x, 40), RLXVK_F32))
OF_X(joined, rlxvk_concat(g, (rlxvk_tensor[]){x, W(3, 256, 32)}, 2, 2))
OF_X(narrowed, rlxvk_narrow(g, x, 2, 4, 16))
static rlxvk_tensor heads_again(rlxvk_graph *g, rlxvk_tensor x)
{
    x = rlxvk_transpose(g, rlxvk_reshape(g, x, RLXVK_SHAPE(3, -1, 4, 8)), AXES(0, 2, 1, 3));
    return rlxvk_silu(g, x);
}
OF_X(turned_matrices, rlxvk_transpose(g, x, AXES(0, 2, 1)))
OF_X(product, rlxvk_matmul(g, x, W(3, 32, 40)))
OF_X(narrow_product, rlxvk_matmul(g, x, W(3, 32, 3)))
OF_X(rope, rlxvk_rope(g, x, W(256, 4), S(256, 4), &(rlxvk_rope_options){.head_dim = 8, .n_rot = 8}))
static rlxvk_tensor attend(rlxvk_graph *g, rlxvk_tensor x, rlxvk_attention_layout layout)
{
    rlxvk_attention_options o = {.num_heads = 4, .mask = RLXVK_MASK_CAUSAL, .layout = layout};
    return rlxvk_attention(g, x, x, x, RLXVK_NONE, &o);
}
OF_X(attention, attend(g, x, RLXVK_LAYOUT_PACKED))
OF_X(attention_heads_first, attend(g, x, RLXVK_LAYOUT_BHSD))
OF_X(conv, rlxvk_conv(g, x, W(6, 4, 3, 3), RLXVK_NONE, &(rlxvk_conv_options){0}))
OF_X(conv_groups, rlxvk_conv(g, x, W(6, 2, 3, 3), RLXVK_NONE, &(rlxvk_conv_options){.groups = 2}))
OF_X(conv_depthwise,
     rlxvk_conv(g, x, W(4, 1, 3, 3), RLXVK_NONE, &(rlxvk_conv_options){.groups = 4}))
OF_X(conv_transposed, rlxvk_conv_transpose2d(g, x, W(4, 6, 3, 3), RLXVK_NONE,
                                             &(rlxvk_conv_options){.stride = {2, 2}}))
OF_X(pool, rlxvk_pool_max(g, x, &(rlxvk_pool_options){.kernel = {2, 2}, .stride = {2, 2}}))
OF_X(pool_all, rlxvk_global_pool_mean(g, x))
OF_X(twice, rlxvk_resize_nearest2x(g, x))
OF_X(experts, rlxvk_grouped_matmul(g, x, W(2, 32, 40),
                                   rlxvk_param(g, "i", RLXVK_F32, RLXVK_SHAPE(40)), false))

#define BATCHES RLXVK_SHAPE(3, 256, 32)
#define HIGH    RLXVK_SHAPE(3, 1024, 32) /* several tile rows */
#define IMAGES  RLXVK_SHAPE(10, 4, 12, 16)
static const struct row {
    const char *name;
    rlxvk_shape shape; /* shape of x */
    int32_t axis;
    rlxvk_tensor (*build)(rlxvk_graph *g, rlxvk_tensor x);
    rlxvk_variant forced;
} rows[] = {
    {"unary", BATCHES, 1, unary, {0}},
    {"binary", BATCHES, 1, binary, {0}},
    {"region", BATCHES, 1, region, {0}},
    {"cast", BATCHES, 1, cast, {0}},
    {"swiglu", BATCHES, 1, swiglu, {0}},
    {"softmax", BATCHES, 1, soft, {0}},
    {"norm", BATCHES, 1, norm, {0}},
    {"sum", BATCHES, 1, sum, {0}},
    {"argmax", BATCHES, 1, best, {0}},
    {"topk", BATCHES, 1, three, {0}},
    {"topk, rows", RLXVK_SHAPE(40, 32), 0, three, {0}},
    {"topk of long rows", RLXVK_SHAPE(8, 3000), 0, forty, {0}},
    {"concat", BATCHES, 1, joined, {0}},
    {"narrow", HIGH, 1, narrowed, {0}},
    {"transpose of heads", HIGH, 1, heads_again, {0}},
    {"transpose", RLXVK_SHAPE(16, 3, 40, 36), 0, turned_matrices, {0}},
    {"products of matrices", HIGH, 1, product, {"matmul", "tiled_32x32"}},
    {"products of matrices, high tiles", HIGH, 1, product, {"matmul", "tiled_64x64"}},
    {"products of matrices, by rows", BATCHES, 1, product, {"matmul", "rows_1"}},
    {"products of few columns", BATCHES, 1, narrow_product, {"matmul", "vector_swapped"}},
    {"rope", BATCHES, 1, rope, {0}},
    {"attention", BATCHES, 1, attention, {"attention", "tile_64x64"}},
    {"attention of chunks", BATCHES, 1, attention, {"attention", "tile_split"}},
    {"attention, heads first",
     RLXVK_SHAPE(2, 4, 256, 8),
     2,
     attention_heads_first,
     {"attention", "tile_64x64"}},
    {"conv", IMAGES, 0, conv, {"conv", "tiled_32x32"}},
    {"conv in groups", IMAGES, 0, conv_groups, {"conv", "tiled_32x32"}},
    {"transposed conv", IMAGES, 0, conv_transposed, {"conv", "tiled_32x32"}},
    {"conv by depth", IMAGES, 0, conv_depthwise, {"conv", "strips"}},
    {"pool", IMAGES, 0, pool, {0}},
    {"pool of all", IMAGES, 0, pool_all, {0}},
    {"resize", IMAGES, 0, twice, {0}},
    {"experts", RLXVK_SHAPE(40, 32), 0, experts, {"experts", "direct"}},
    {"experts, lanes along K", RLXVK_SHAPE(40, 32), 0, experts, {"experts", "split"}},
};

static rlxvk_graph *graph_of(const struct row *r)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_shape shape = r->build == turned_matrices ? RLXVK_SHAPE(16, 40, 36) : r->shape;
    rlxvk_graph_output(g, r->build(g, rlxvk_input(g, "x", RLXVK_F32, shape)));
    if (rlxvk_graph_status(g) != RLXVK_OK)
        fail_msg("%s: %s", r->name, rlxvk_graph_error(g));
    return g;
}

/* Every dispatch must have fewer workgroups for half of the rows, and none for 0 rows. */
static void expect_fewer(const struct row *r, const rlxvk_executable *e)
{
    const program *p = e->program;
    int64_t upper = (int64_t)p->extent.unit;
    for (size_t i = 0; i < p->schedule.dispatches.count; i++) {
        const dispatch *d = &p->schedule.dispatches.items[i];
        uint32_t half[3], none[3];
        if (!extent_scales(&p->extent, i))
            fail_msg("%s: kernel %s makes all rows", r->name, kernel_find(d->kernel)->name);
        const device_profile *profile = &e->device->setup.profile;
        extent_launch(d, &p->extent.groups[i], profile, (uint64_t)upper / 2, (uint64_t)upper, half);
        extent_launch(d, &p->extent.groups[i], profile, 0, (uint64_t)upper, none);
        uint64_t all = (uint64_t)d->groups[0] * d->groups[1] * d->groups[2];
        assert_int_equal(none[0], 0);
        if ((uint64_t)half[0] * half[1] * half[2] >= all)
            fail_msg("%s: kernel %s has %llu workgroups for half of the rows, too", r->name,
                     kernel_find(d->kernel)->name, (unsigned long long)all);
    }
}

static void test_dispatches_shrink(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_bucket_axis axis = {"x", rows[i].axis, false};
        rlxvk_compile_options o = {.variants = &rows[i].forced,
                                   .variant_count = rows[i].forced.kind != NULL,
                                   .bucket_axes = &axis,
                                   .bucket_axis_count = 1};
        rlxvk_graph *g = graph_of(&rows[i]);
        rlxvk_executable *e = NULL;
        if (rlxvk_compile(shared_context, g, &o, &e) != RLXVK_OK)
            fail_msg("%s: %s", rows[i].name, rlxvk_last_error());
        expect_fewer(&rows[i], e);
        rlxvk_executable_destroy(e);
        assert_true(extent_check(shared_context, g, o, &axis, 1, rows[i].name, i + 1));
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dispatches_shrink)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
