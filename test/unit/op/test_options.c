/*
 * Tests every options struct of the headers. NULL and a zeroed struct must build the same nodes, or
 * fail alike if a value has no default. If PyTorch has a default, passing its value must also build
 * the same nodes.
 *
 * The size of a struct is tested, too. A struct that states its size builds the same. So does a
 * struct that is longer than the library's, if the additional bytes are 0. Any other size is an
 * error that names the struct.
 */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_ops_signal.h>
#include <rlxvk_ops_splat.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_train.h>

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* How the options are passed to a builder. The last three ways are errors. */
typedef enum how {
    LEFT_OUT,
    ZEROED,
    BY_VALUE,
    SAYS_SIZE,
    LONGER,
    LONGER_AND_SET,
    SHORTER,
    NO_SIZE,
    WAYS
} how;
#define MORE 24 /* additional bytes of a longer struct */

typedef struct options_row {
    const char *name; /* of the struct */
    void (*build)(rlxvk_graph *g, how given);
    bool has_values; /* BY_VALUE: has every number with a default in PyTorch */
} options_row;

static rlxvk_tensor leaf(rlxvk_graph *g, rlxvk_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "x%zu", g->nodes.count);
    return rlxvk_param(g, name, RLXVK_F32, shape);
}

/* `first`: where struct_size begins. A struct that ends there is of no version. */
static size_t size_for(how given, size_t size, size_t first)
{
    const size_t tag = RLXVK_SIZE_OF(char) - 1;
    return given == SAYS_SIZE                           ? tag + size
           : given == LONGER || given == LONGER_AND_SET ? tag + size + MORE
           : given == SHORTER                           ? tag + first
           : given == NO_SIZE                           ? size
                                                        : 0;
}

/* Defines the builder call of one struct. `values` initialize it for BY_VALUE, and `call` uses it
 * as o. */
#define OPTIONS(row, values, call)                                                                 \
    static void build_##row(rlxvk_graph *g, how given)                                             \
    {                                                                                              \
        const rlxvk_##row##_options by_value = values;                                             \
        struct {                                                                                   \
            rlxvk_##row##_options o;                                                               \
            uint8_t more[MORE];                                                                    \
        } zeroed = {.o.struct_size = size_for(given, sizeof zeroed.o,                              \
                                              offsetof(rlxvk_##row##_options, struct_size))};      \
        const rlxvk_##row##_options *o = given == LEFT_OUT   ? NULL                                \
                                         : given == BY_VALUE ? &by_value                           \
                                                             : &zeroed.o;                          \
        zeroed.more[MORE - 1] = given == LONGER_AND_SET;                                           \
        call;                                                                                      \
    }
#define LEAF(...) leaf(g, RLXVK_SHAPE(__VA_ARGS__))
#define VALUES(...)                                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

OPTIONS(matmul, {0}, rlxvk_matmul_with(g, LEAF(2, 3), LEAF(3, 4), o))
OPTIONS(projection, {0}, rlxvk_projection(g, LEAF(1, 8), LEAF(4, 8), o))
OPTIONS(rope, {0}, rlxvk_rope(g, LEAF(1, 2, 4), LEAF(2, 2), LEAF(2, 2), o))
OPTIONS(attention, VALUES(.num_heads = 2, .num_kv_heads = 2, .head_dim = 4, .score_scale = .5f),
        rlxvk_attention(g, LEAF(1, 2, 3, 4), LEAF(1, 2, 3, 4), LEAF(1, 2, 3, 4), RLXVK_NONE, o))
OPTIONS(scan, {0}, {
    rlxvk_graph *body = NULL;
    expect_ok(rlxvk_graph_create(&body));
    rlxvk_graph_output(body, rlxvk_relu(body, rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(2))));
    rlxvk_scan(g, body, (rlxvk_tensor[]){LEAF(2)}, 1, o);
    rlxvk_graph_destroy(body);
})
OPTIONS(sample, {0}, rlxvk_sample(g, LEAF(2, 5), o))
OPTIONS(narrow, {0}, rlxvk_narrow_with(g, LEAF(5), 0, 1, 2, o))
OPTIONS(pad, {0}, rlxvk_pad(g, LEAF(5), (int64_t[]){1}, (int64_t[]){2}, 1, o))
OPTIONS(attention_step, {0},
        rlxvk_attention_step(g, LEAF(1, 1, 4), LEAF(1, 1, 4), LEAF(1, 1, 4), LEAF(1, 1, 2, 4),
                             LEAF(1, 1, 2, 4), LEAF(1), RLXVK_NONE, RLXVK_NONE, o))
OPTIONS(pool, {0}, rlxvk_pool_mean(g, LEAF(1, 1, 9, 9), o))
OPTIONS(conv, VALUES({3, 3}, {1, 1}, {0}, {1, 1}, {0}, 1),
        rlxvk_conv(g, LEAF(1, 2, 7, 7), LEAF(4, 2, 3, 3), RLXVK_NONE, o))
OPTIONS(fused_conv, VALUES(.window = {{3, 3}, {1, 1}, {0}, {1, 1}, {0}, 1}),
        rlxvk_fused_conv(g, LEAF(1, 2, 7, 7), LEAF(4, 2, 3, 3), LEAF(4), RLXVK_NONE, o))
OPTIONS(axial_rope2d, {0}, rlxvk_axial_rope2d(g, LEAF(1, 4, 8), o))
OPTIONS(gate, {0}, rlxvk_group_limited_gate(g, LEAF(2, 64), LEAF(2, 64), o))
OPTIONS(dot_general, {0}, rlxvk_dot_general(g, LEAF(2, 3), LEAF(3, 2), o))
OPTIONS(recurrent, {0},
        rlxvk_rnn(g, LEAF(1, 3, 2), LEAF(8), LEAF(16), LEAF(4), RLXVK_NONE, o, NULL))
OPTIONS(linear_attention, {0},
        rlxvk_linear_attention(g, LEAF(1, 3, 2, 4), LEAF(1, 3, 1, 4), LEAF(1, 3, 1, 2), RLXVK_NONE,
                               RLXVK_NONE, RLXVK_NONE, o, NULL))
OPTIONS(quantize, {0}, rlxvk_quantize(g, LEAF(5), o))
OPTIONS(qconv2d, {0}, rlxvk_qconv2d(g, LEAF(1, 2, 5, 5), LEAF(2, 2, 3, 3), RLXVK_NONE, o))
OPTIONS(stft, {0}, rlxvk_stft(g, LEAF(64), LEAF(16), o))
OPTIONS(welch, {0}, rlxvk_welch_power(g, LEAF(4, 16), o))
OPTIONS(welch_frame, {0}, rlxvk_welch(g, LEAF(64), LEAF(16), o))
OPTIONS(istft, {0}, rlxvk_istft(g, LEAF(3, 18), LEAF(16), o))
OPTIONS(mel, {0}, rlxvk_signal_mel_filterbank(g, o))
OPTIONS(gaussian_splat, {0}, rlxvk_gaussian_splat_render(g, &(rlxvk_gaussian_splat_scene){{0}}, o))
OPTIONS(resize, {0}, rlxvk_resize(g, LEAF(1, 1, 4, 4), o))
OPTIONS(grid, VALUES(RLXVK_GRID_BILINEAR, RLXVK_GRID_ZEROS, false),
        rlxvk_grid_sample(g, LEAF(1, 1, 4, 4), LEAF(1, 2, 2, 2), o))
OPTIONS(roi, VALUES(.size = {1, 1}, .spatial_scale = 1),
        rlxvk_roi_align(g, LEAF(1, 1, 4, 4), LEAF(2, 4), LEAF(2), o))
OPTIONS(deform, VALUES(.stride = {1, 1}, .dilation = {1, 1}, .offset_groups = 1, .groups = 1),
        rlxvk_deform_conv(g, LEAF(1, 1, 4, 4), LEAF(1, 1, 1, 1), LEAF(1, 2, 4, 4), RLXVK_NONE,
                          RLXVK_NONE, o))
OPTIONS(dropout, {0}, rlxvk_dropout(g, LEAF(5), o, RLXVK_NONE))
OPTIONS(batch_norm, VALUES(1e-5f, .1f),
        rlxvk_batch_norm_training(g, LEAF(4, 3), LEAF(3), LEAF(3), LEAF(3), LEAF(3), o))
OPTIONS(fake_quantize, {0}, rlxvk_fake_quantize(g, LEAF(5), RLXVK_NONE, o))

static const rlxvk_optimizer_data *scheduled(rlxvk_graph *g, rlxvk_optimizer_data *data)
{
    *data = (rlxvk_optimizer_data){.schedule = LEAF(3)};
    return data;
}

OPTIONS(adamw, VALUES(1e-3f, .9f, .999f, 1e-8f, 0, 0), {
    rlxvk_optimizer_data d;
    rlxvk_adamw(g, LEAF(3), LEAF(3), LEAF(3), LEAF(3), o, scheduled(g, &d), NULL);
})
OPTIONS(sgd, VALUES(.learning_rate = 1e-3f), rlxvk_sgd(g, LEAF(3), LEAF(3), LEAF(3), o, NULL, NULL))
OPTIONS(lion, VALUES(1e-4f, .9f, .99f, 0), rlxvk_lion(g, LEAF(3), LEAF(3), LEAF(3), o, NULL, NULL))

#define ROW(name)                                                                                  \
    {                                                                                              \
        "rlxvk_" #name "_options", build_##name, false                                             \
    }
#define VALUED(name)                                                                               \
    {                                                                                              \
        "rlxvk_" #name "_options", build_##name, true                                              \
    }

static const options_row rows[] = {
    ROW(matmul),
    ROW(projection),
    ROW(rope),
    VALUED(attention),
    ROW(scan),
    ROW(sample),
    ROW(narrow),
    ROW(pad),
    ROW(pool),
    VALUED(conv),
    VALUED(fused_conv),
    ROW(attention_step),
    ROW(gate),
    ROW(dot_general),
    ROW(axial_rope2d),
    ROW(recurrent),
    ROW(linear_attention),
    ROW(quantize),
    ROW(qconv2d),
    ROW(stft),
    ROW(welch),
    ROW(welch_frame),
    ROW(istft),
    ROW(mel),
    ROW(gaussian_splat),
    ROW(resize),
    VALUED(grid),
    VALUED(roi),
    VALUED(deform),
    ROW(dropout),
    VALUED(batch_norm),
    ROW(fake_quantize),
    VALUED(adamw),
    VALUED(sgd),
    VALUED(lion),
};

/* Structs that no builder takes. Other tests pass NULL and zeroed ones to each of their calls. */
static const char *const others[] = {"rlxvk_context_options",   "rlxvk_compile_options",
                                     "rlxvk_model_options",     "rlxvk_model_graph_options",
                                     "rlxvk_rng_options",       "rlxvk_save_options",
                                     "rlxvk_load_options",      "rlxvk_values_options",
                                     "rlxvk_tokenizer_options", "rlxvk_turn_options",
                                     "rlxvk_language_options",  "rlxvk_generate_options"};

static void expect_same(const options_row *row, const rlxvk_graph *a, const rlxvk_graph *b)
{
    if (strcmp(rlxvk_graph_error(a), rlxvk_graph_error(b)) != 0)
        fail_msg("%s: '%s' and '%s'", row->name, rlxvk_graph_error(a), rlxvk_graph_error(b));
    assert_int_equal(a->nodes.count, b->nodes.count);
    for (uint32_t id = 0; id < a->nodes.count; id++) {
        const node *m = graph_node(a, id), *n = graph_node(b, id);
        bool same =
            m->op == n->op && shape_equal(&m->shape, &n->shape) &&
            m->attribute_size == n->attribute_size &&
            (!m->attributes || memcmp(m->attributes, n->attributes, m->attribute_size) == 0);
        if (!same)
            fail_msg("%s: node %u (%s) differs", row->name, id, node_row(m)->name);
    }
}

static void expect_refused(const options_row *row, const rlxvk_graph *g)
{
    const char *error = rlxvk_graph_error(g);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_ATTR);
    if (!strstr(error, row->name) || !strstr(error, "0x") == !strstr(error, "later members"))
        fail_msg("%s: '%s'", row->name, error);
}

static void what_is_left_out_is_the_default(void **state)
{
    size_t built = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *graphs[WAYS];
        for (how given = LEFT_OUT; given < WAYS; given++) {
            expect_ok(rlxvk_graph_create(&graphs[given]));
            rows[i].build(graphs[given], given);
        }
        expect_same(&rows[i], graphs[LEFT_OUT], graphs[ZEROED]);
        expect_same(&rows[i], graphs[ZEROED], graphs[SAYS_SIZE]);
        expect_same(&rows[i], graphs[ZEROED], graphs[LONGER]);
        for (how given = LONGER_AND_SET; given <= NO_SIZE; given++)
            expect_refused(&rows[i], graphs[given]);
        if (rows[i].has_values) {
            expect_same(&rows[i], graphs[ZEROED], graphs[BY_VALUE]);
            assert_int_equal(rlxvk_graph_status(graphs[ZEROED]), RLXVK_OK);
        }
        built += rlxvk_graph_status(graphs[ZEROED]) == RLXVK_OK;
        for (how given = LEFT_OUT; given < WAYS; given++)
            rlxvk_graph_destroy(graphs[given]);
    }
    print_message("%zu structs, of which %zu have defaults for all\n", ARRAY_COUNT(rows), built);
}

/* The default stride of a pool is its kernel size, as in PyTorch. */
static void pools_step_by_their_kernel(void **state)
{
    rlxvk_graph *g = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor y = rlxvk_pool_max(g, LEAF(1, 1, 9, 8), &(rlxvk_pool_options){.kernel = {3, 2}});
    assert_true(rlxvk_shape_equal(rlxvk_tensor_shape(g, y), RLXVK_SHAPE(1, 1, 3, 4)));
    rlxvk_graph_destroy(g);
}

/* A program that was built before a pool had dilation and more has a shorter struct. What lies
 * behind its struct_size must not count. */
static void older_pools_have_no_later_members(void **state)
{
    rlxvk_pool_options o = {.kernel = {2},
                            .stride = {2},
                            .padding = {1},
                            .dilation = {3},
                            .padding_after = {1},
                            .rounding = RLXVK_POOL_CEIL};
    size_t first = offsetof(rlxvk_pool_options, struct_size) + sizeof o.struct_size;
    const struct {
        size_t size;
        int64_t windows;
    } ways[] = {{0, 5}, {RLXVK_SIZE_OF(char) - 1 + first, 5}, {RLXVK_SIZE_OF(o), 4}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        rlxvk_graph *g = NULL;
        expect_ok(rlxvk_graph_create(&g));
        o.struct_size = ways[i].size;
        o.padding_kind = RLXVK_POOL_PADDING_SEPARATE;
        rlxvk_tensor y = rlxvk_pool_max(g, LEAF(1, 1, 8), &o);
        assert_int_equal(rlxvk_tensor_shape(g, y).dims[2], ways[i].windows);
        rlxvk_graph_destroy(g);
    }
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        if (strcmp(others[i], name) == 0)
            return true;
    return false;
}

static void every_struct_of_the_headers_is_here(void **state)
{
    glob_t headers;
    char line[256], name[128];
    size_t found = 0;
    (void)state;
    assert_int_equal(glob("include/*.h", 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        FILE *f = fopen(headers.gl_pathv[i], "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            if (sscanf(line, "typedef struct %127[a-z0-9_] {", name) != 1 ||
                !strstr(name, "_options") || !strchr(line, '{'))
                continue;
            found++;
            if (!is_known(name))
                fail_msg("%s: no row for %s", headers.gl_pathv[i], name);
        }
        fclose(f);
    }
    globfree(&headers);
    assert_int_equal(found, ARRAY_COUNT(rows) + ARRAY_COUNT(others));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_the_default),
        cmocka_unit_test(pools_step_by_their_kernel),
        cmocka_unit_test(older_pools_have_no_later_members),
        cmocka_unit_test(every_struct_of_the_headers_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
