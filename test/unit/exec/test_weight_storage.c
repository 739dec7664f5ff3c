/*
 * The compile option weight_storage: params are declared F32 but held as F16 or BF16. Results have
 * the same bits as if the params were declared so, and are near those of F32 params with rounded
 * values. Weights take half the memory. For callers they stay F32 if they are set, read, saved,
 * shared or trained.
 */
#include "graph/half.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_files.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 16, MOST_VALUES = 1 << 13 };

static const rlxvk_weight_storage storages[] = {RLXVK_WEIGHTS_F16, RLXVK_WEIGHTS_BF16};

static rlxvk_dtype dtype_of(rlxvk_weight_storage s)
{
    static const rlxvk_dtype dtypes[] = {RLXVK_F32, RLXVK_F16, RLXVK_BF16};
    return dtypes[s];
}

static float rounded_to(rlxvk_dtype dtype, float v)
{
    return dtype == RLXVK_F16    ? f16_to_f32(f32_to_f16(v))
           : dtype == RLXVK_BF16 ? bf16_to_f32(f32_to_bf16(v))
                                 : v;
}

static rlxvk_executable *compiled(const rlxvk_graph *g, const rlxvk_compile_options *o)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, o, &e));
    return e;
}

static rlxvk_executable *compile_only(rlxvk_graph *g, const rlxvk_compile_options *o)
{
    rlxvk_executable *e = compiled(g, o);
    rlxvk_graph_destroy(g);
    return e;
}

static uint64_t weight_bytes(const rlxvk_executable *e)
{
    rlxvk_memory_report r;
    rlxvk_executable_memory(e, &r);
    return r.weight_bytes;
}

static rlxvk_tensor_info info_of(const rlxvk_executable *e, const char *name)
{
    rlxvk_tensor_info infos[MOST] = {{0}};
    size_t count;
    infos[0].struct_size = RLXVK_SIZE_OF(rlxvk_tensor_info);
    for (size_t i = 1; i < MOST; i++)
        infos[i] = infos[0];
    expect_ok(rlxvk_executable_params(e, infos, MOST, &count));
    for (size_t i = 0; i < count; i++)
        if (strcmp(infos[i].name, name) == 0)
            return infos[i];
    fail_msg("no param '%s'", name);
    return infos[0];
}

static void expect_held(const rlxvk_executable *e, const char *name, rlxvk_dtype held)
{
    rlxvk_tensor_info info = info_of(e, name);
    if (info.dtype != RLXVK_F32 || info.held != held)
        fail_msg("%s is %s, held as %s instead of %s", name, rlxvk_dtype_name(info.dtype),
                 rlxvk_dtype_name(info.held), rlxvk_dtype_name(held));
}

/* ---- Nets: a param has dtype `w` if all its readers take packed halves ---- */

typedef rlxvk_graph *(*net)(rlxvk_dtype w);

static const rlxvk_matmul_options by_rows = {.transpose_b = true};

static rlxvk_graph *mlp(rlxvk_dtype w)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(5, 40));
    rlxvk_tensor h = rlxvk_matmul(g, x, rlxvk_param(g, "packed.1", w, RLXVK_SHAPE(40, 48)));
    h = rlxvk_gelu(g, rlxvk_add(g, h, param(g, "bias.1", RLXVK_SHAPE(48))));
    h = build_norm(g, false, h, -1);
    h = rlxvk_matmul_with(g, h, rlxvk_param(g, "packed.2", w, RLXVK_SHAPE(12, 48)), &by_rows);
    rlxvk_graph_output(g, rlxvk_add(g, h, param(g, "bias.2", RLXVK_SHAPE(12))));
    return g;
}

/* An attention block of `rows` rows. Keys and values have `kv` columns each. Its projections can be
 * joined. */
static rlxvk_graph *attention_of(rlxvk_dtype w, int64_t rows, int64_t kv)
{
    rlxvk_graph *g = new_graph();
    rlxvk_attention_options o = {.num_heads = 4,
                                 .num_kv_heads = kv / 16,
                                 .head_dim = 16,
                                 .mask = RLXVK_MASK_CAUSAL,
                                 .layout = RLXVK_LAYOUT_BSHD};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, rows, 64)), part[3];
    static const char *const names[] = {"packed.q", "packed.k", "packed.v"};
    for (int i = 0; i < 3; i++) {
        int64_t width = i ? kv : 64;
        part[i] =
            rlxvk_matmul_with(g, x, rlxvk_param(g, names[i], w, RLXVK_SHAPE(width, 64)), &by_rows);
        part[i] = rlxvk_reshape(g, part[i], RLXVK_SHAPE(1, rows, width / 16, 16));
    }
    rlxvk_tensor y = rlxvk_attention(g, part[0], part[1], part[2], RLXVK_NONE, &o);
    y = rlxvk_reshape(g, y, RLXVK_SHAPE(1, rows, 64));
    y = rlxvk_matmul_with(g, y, rlxvk_param(g, "packed.o", w, RLXVK_SHAPE(64, 64)), &by_rows);
    rlxvk_graph_output(g, rlxvk_add(g, x, y));
    return g;
}

static rlxvk_graph *attention_block(rlxvk_dtype w)
{
    return attention_of(w, 6, 32);
}

static rlxvk_graph *attention_of_one_row(rlxvk_dtype w)
{
    return attention_of(w, 1, 64);
}

/* A row has 256 bytes as words and 128 as halves. */
static rlxvk_graph *misaligned_parts(rlxvk_dtype w)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 64));
    static const char *const names[] = {"packed.a", "packed.b", "packed.c"};
    for (int i = 0; i < 3; i++)
        rlxvk_graph_output(g,
                           rlxvk_matmul_with(g, x, rlxvk_param(g, names[i], w, RLXVK_SHAPE(1, 64)),
                                             &by_rows));
    return g;
}

static rlxvk_graph *conv_net(rlxvk_dtype w)
{
    static const rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3, 6, 6));
    rlxvk_tensor h = rlxvk_conv(g, x, param(g, "kernel", RLXVK_SHAPE(8, 3, 3, 3)),
                                param(g, "bias", RLXVK_SHAPE(8)), &around);
    h = rlxvk_reduce_mean(g, rlxvk_relu(g, h), (int32_t[]){2, 3}, 2, false);
    rlxvk_graph_output(g, rlxvk_matmul(g, h, rlxvk_param(g, "packed", w, RLXVK_SHAPE(8, 10))));
    return g;
}

/* An embedding, a gated block with one row, and logits from the table of the embedding. */
static rlxvk_graph *language_model(rlxvk_dtype w)
{
    static const int32_t ids[] = {7};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor table = rlxvk_param(g, "packed.table", w, RLXVK_SHAPE(30, 64));
    rlxvk_tensor index = rlxvk_constant(g, RLXVK_I32, RLXVK_SHAPE(1), ids, sizeof ids);
    rlxvk_tensor x = rlxvk_cast(g, rlxvk_gather(g, table, index, 0), RLXVK_F32);
    rlxvk_tensor h = build_norm(g, true, rlxvk_add(g, x, input(g, "x", RLXVK_SHAPE(1, 64))), -1);
    rlxvk_tensor gate = rlxvk_param(g, "packed.gate", w, RLXVK_SHAPE(96, 64));
    rlxvk_tensor up = rlxvk_param(g, "packed.up", w, RLXVK_SHAPE(96, 64));
    gate = rlxvk_silu(g, rlxvk_matmul_with(g, h, gate, &by_rows));
    h = rlxvk_mul(g, gate, rlxvk_matmul_with(g, h, up, &by_rows));
    h = rlxvk_matmul_with(g, h, rlxvk_param(g, "packed.down", w, RLXVK_SHAPE(64, 96)), &by_rows);
    rlxvk_graph_output(g, rlxvk_matmul_with(g, rlxvk_add(g, h, x), table, &by_rows));
    return g;
}

/* Experts, a reshaped weight, and three params that must not be rounded. One of these is also read
 * by an op that takes only words, one is an output, and one is dead. */
static rlxvk_graph *mixture(rlxvk_dtype w)
{
    static const int32_t expert[] = {1, 0, 2};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 16));
    rlxvk_tensor index = rlxvk_constant(g, RLXVK_I32, RLXVK_SHAPE(3), expert, sizeof expert);
    rlxvk_tensor experts = rlxvk_param(g, "packed.experts", w, RLXVK_SHAPE(3, 16, 20));
    rlxvk_tensor flat = rlxvk_param(g, "packed.flat", w, RLXVK_SHAPE(320));
    rlxvk_tensor both = param(g, "both", RLXVK_SHAPE(16, 4));
    rlxvk_tensor out = param(g, "out", RLXVK_SHAPE(16, 4));
    rlxvk_graph_output(g, rlxvk_grouped_matmul(g, x, experts, index, false));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, rlxvk_reshape(g, flat, RLXVK_SHAPE(16, 20))));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, both));
    rlxvk_graph_output(g, rlxvk_tanh(g, both));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, out));
    rlxvk_graph_output(g, out);
    (void)param(g, "dead", RLXVK_SHAPE(16, 4));
    return g;
}

static const struct {
    const char *name;
    net build;
} nets[] = {{"mlp", mlp},
            {"attention", attention_block},
            {"attention of one row", attention_of_one_row},
            {"misaligned parts", misaligned_parts},
            {"convolutions", conv_net},
            {"language model", language_model},
            {"mixture", mixture}};

/* ---- Values ---- */

static void expect_same_bits(const char *name, const float *got, const float *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&got[i], &wanted[i], sizeof *got) != 0)
            fail_msg("%s: element %zu is %g, wanted %g", name, i, (double)got[i],
                     (double)wanted[i]);
}

/* Each param is held as its name says. It reads back as it was set, and rounded if it is packed.
 * Then sets the params of `other` to the values that were read. */
static void expect_params(rlxvk_executable *e, rlxvk_executable *exact, rlxvk_executable *other,
                          rlxvk_dtype held)
{
    rlxvk_tensor_info infos[MOST];
    size_t count;
    memset(infos, 0, sizeof infos);
    expect_ok(rlxvk_executable_params(e, infos, MOST, &count));
    for (size_t i = 0; i < count; i++) {
        static float got[MOST_VALUES], wanted[MOST_VALUES];
        uint64_t numel;
        expect_ok(rlxvk_shape_elements(infos[i].shape, &numel));
        assert_true(numel <= MOST_VALUES);
        if (!infos[i].live)
            continue;
        bool packed = strncmp(infos[i].name, "packed", 6) == 0;
        expect_held(e, infos[i].name, packed ? held : RLXVK_F32);
        expect_ok(rlxvk_read_param(e, infos[i].name, got, numel));
        expect_ok(rlxvk_read_param(exact, infos[i].name, wanted, numel));
        for (size_t k = 0; k < numel; k++)
            assert_true(got[k] == rounded_to(packed ? held : RLXVK_F32, wanted[k]));
        expect_ok(rlxvk_set_param(other, infos[i].name, got, numel));
    }
}

static float *run_again(rlxvk_executable *e, const float *x, size_t length, size_t count)
{
    rlxvk_run_input in = {"x", x, length, RLXVK_F32};
    size_t outputs = rlxvk_executable_output_count(e), at = 0;
    rlxvk_run_output out[MOST];
    float *y = calloc(count + 1, sizeof *y);
    for (size_t i = 0; i < outputs; i++) {
        uint64_t numel;
        expect_ok(rlxvk_shape_elements(rlxvk_executable_output_shape(e, i), &numel));
        out[i] = (rlxvk_run_output){i, y + at, numel, RLXVK_F32};
        at += numel;
    }
    assert_int_equal(at, count);
    expect_ok(rlxvk_run(e, &in, 1, out, outputs));
    return y;
}

/* An F32 graph whose params have the rounded values gives the same results, except for the order of
 * sums. */
static void expect_near_rounded(const rlxvk_graph *g, rlxvk_weight_storage storage)
{
    rlxvk_compile_options o = {.weight_storage = storage};
    rlxvk_compile_options sized = RLXVK_SIZED(rlxvk_compile_options, .weight_storage = storage);
    rlxvk_executable *e = compiled(g, &o), *exact = compiled(g, NULL), *other = compiled(g, NULL);
    rlxvk_executable *again = compiled(g, &sized);
    size_t count, n;
    uint64_t length;
    static float x[4096];
    for (int i = 0; i < 4096; i++)
        x[i] = (float)((i * 37) % 101 - 50) / 64;
    free(run_seeded(e, g, 5, false, &count));
    free(run_seeded(exact, g, 5, false, &n));
    expect_params(e, exact, other, dtype_of(storage));
    expect_params(e, e, again, dtype_of(storage)); /* rounded values stay the same */
    expect_ok(
        rlxvk_shape_elements(rlxvk_tensor_shape(g, tensor_of(g, op_find_input(g, "x"))), &length));
    float *got = run_again(e, x, length, count), *wanted = run_again(other, x, length, count);
    float *same = run_again(again, x, length, count);
    expect_same_bits("rounded before", same, got, count);
    for (size_t i = 0; i < count; i++)
        assert_true(fabsf(got[i] - wanted[i]) <= 1e-4f * (1 + fabsf(wanted[i])));
    free(got);
    free(wanted);
    free(same);
    rlxvk_executable *all[] = {e, exact, other, again};
    for (int i = 0; i < 4; i++)
        rlxvk_executable_destroy(all[i]);
}

static void test_rounded_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(nets); i++)
        for (size_t s = 0; s < 2; s++) {
            rlxvk_graph *g = nets[i].build(RLXVK_F32);
            expect_near_rounded(g, storages[s]);
            rlxvk_graph_destroy(g);
        }
}

/* ---- Compared with declared halves ---- */

static rlxvk_compile_options mode(int m)
{
    rlxvk_compile_options o = {.check_plan = RLXVK_ON};
    o.fusion = m == 1 ? RLXVK_OFF : RLXVK_DEFAULT;
    o.keep_all = m == 2 ? RLXVK_ON : RLXVK_DEFAULT;
    o.force_host = m == 3 ? RLXVK_ON : RLXVK_DEFAULT;
    o.prepared_bytes = m == 4 || m == 5 ? UINT64_MAX : 0;
    o.precision = m == 5 ? RLXVK_PRECISION_F16 : RLXVK_PRECISION_F32;
    return o;
}
enum { MODES = 6 };

static void expect_as_declared(size_t which, rlxvk_weight_storage storage, int m)
{
    rlxvk_compile_options o = mode(m);
    rlxvk_graph *plain = nets[which].build(RLXVK_F32);
    rlxvk_graph *declared = nets[which].build(dtype_of(storage));
    rlxvk_executable *e[3] = {compiled(plain, &o), compiled(declared, &o)};
    o.weight_storage = storage;
    e[2] = compiled(plain, &o);
    size_t count, n;
    float *wanted = run_seeded(e[1], declared, 9, false, &count);
    float *got = run_seeded(e[2], plain, 9, false, &n);
    assert_int_equal(n, count);
    expect_same_bits(nets[which].name, got, wanted, count);
    assert_int_equal(weight_bytes(e[2]), weight_bytes(e[1]));
    assert_true(weight_bytes(e[2]) <= weight_bytes(e[0]));
    free(wanted);
    wanted = run_seeded(e[1], declared, 10, false, &count); /* set again */
    free(got);
    got = run_seeded(e[2], plain, 10, false, &n);
    expect_same_bits(nets[which].name, got, wanted, count);
    free(wanted);
    free(got);
    for (int i = 0; i < 3; i++)
        rlxvk_executable_destroy(e[i]);
    rlxvk_graph_destroy(plain);
    rlxvk_graph_destroy(declared);
}

static void test_as_declared(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(nets); i++)
        for (size_t s = 0; s < 2; s++)
            for (int m = 0; m < MODES; m++)
                expect_as_declared(i, storages[s], m);
}

/* ---- One weight ---- */

/* y = x w, w has `side` rows and columns. */
static rlxvk_graph *product_of(int64_t rows, int64_t side)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(rows, side));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, param(g, "w", RLXVK_SHAPE(side, side))));
    return g;
}

static rlxvk_executable *product(rlxvk_weight_storage s, rlxvk_executable *share_with)
{
    return compile_only(product_of(1, 2),
                        &(rlxvk_compile_options){.weight_storage = s, .share_with = share_with});
}

static void expect_weight(rlxvk_executable *e, const float wanted[4])
{
    float w[4];
    expect_ok(rlxvk_read_param(e, "w", w, 4));
    for (int i = 0; i < 4; i++)
        assert_true(w[i] == wanted[i] || (isnan(w[i]) && isnan(wanted[i])));
}

static float first_product(rlxvk_executable *e)
{
    float y[2];
    rlxvk_run_input in = {"x", (float[]){1, 0}, 2, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, y, 2, RLXVK_F32}, 1));
    return y[0];
}

static void test_memory(void **state)
{
    rlxvk_compile_options o = {0};
    uint64_t bytes[3];
    (void)state;
    for (int s = 0; s < 3; s++) {
        o.weight_storage = (rlxvk_weight_storage)s;
        rlxvk_executable *e = compile_only(product_of(4, 256), &o);
        bytes[s] = weight_bytes(e);
        rlxvk_executable_destroy(e);
    }
    assert_int_equal(bytes[0], 4 * 256 * 256);
    assert_int_equal(bytes[1], 2 * 256 * 256);
    assert_int_equal(bytes[2], 2 * 256 * 256);
}

/* Rounds to nearest, ties to even. Values beyond the range become infinite, and NaN stays NaN. */
static void test_rounding(void **state)
{
    const float w[4] = {1 + 0x1p-11f, 65520, NAN, 0x1.8p-24f};
    const float f16[4] = {1, INFINITY, NAN, 0x1p-23f};
    const float ties[4] = {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, -65520, -3.4e38f};
    const float bf16[4] = {1, 1 + 0x1p-6f, -65536, -INFINITY};
    rlxvk_executable *e = product(RLXVK_WEIGHTS_F16, NULL);
    (void)state;
    expect_held(e, "w", RLXVK_F16);
    expect_ok(rlxvk_set_param(e, "w", w, 4));
    expect_weight(e, f16);
    rlxvk_executable_destroy(e);
    e = product(RLXVK_WEIGHTS_BF16, NULL);
    expect_held(e, "w", RLXVK_BF16);
    expect_ok(rlxvk_set_param(e, "w", ties, 4));
    expect_weight(e, bf16);
    rlxvk_executable_destroy(e);
}

/* Every call that sets or reads the param, with all types that an F32 param takes. */
static void test_calls(void **state)
{
    const double doubles[4] = {1.0009765, 2, 3, 4};
    const uint16_t halves[4] = {0x3c01, 0x4000, 0x4200, 0x4400};
    const float floats[4] = {1 + 0x1p-10f, 2, 3, 4}, third[4] = {1 / 3.f};
    float got[4];
    rlxvk_executable *e = product(RLXVK_WEIGHTS_F16, NULL), *copy = NULL;
    (void)state;
    expect_ok(rlxvk_set_param_typed(e, "w", halves, sizeof halves, RLXVK_F16));
    expect_weight(e, floats);
    expect_ok(rlxvk_clear_param(e, "w"));
    expect_weight(e, (float[4]){0});
    expect_ok(rlxvk_set_param_typed(e, "w", doubles, sizeof doubles, RLXVK_F64));
    expect_weight(e, floats);
    expect_ok(rlxvk_set_param_bytes(e, "w", third, sizeof third));
    assert_true(first_product(e) == rounded_to(RLXVK_F16, 1 / 3.f));
    expect_ok(rlxvk_set_params(e, &(rlxvk_param_item){"w", floats, sizeof floats, RLXVK_F32}, 1));
    expect_ok(rlxvk_read_param_bytes(e, "w", got, sizeof got));
    assert_memory_equal(got, floats, sizeof got);
    expect_ok(rlxvk_read_param_typed(e, "w", got, sizeof got, RLXVK_F32));
    assert_memory_equal(got, floats, sizeof got);
    expect_error(rlxvk_read_param_typed(e, "w", got, 8, RLXVK_F16), RLXVK_E_DTYPE, "'w' is F32");
    expect_error(rlxvk_read_param(e, "w", got, 3), RLXVK_E_LENGTH, "4 values");
    expect_error(rlxvk_set_param_bytes(e, "w", halves, sizeof halves), RLXVK_E_LENGTH, "16 bytes");
    expect_ok(rlxvk_clone(e, &copy));
    expect_held(copy, "w", RLXVK_F16);
    expect_weight(copy, floats);
    expect_ok(rlxvk_set_param(e, "w", third, 4));
    expect_weight(copy, floats);
    rlxvk_executable_destroy(e);
    assert_true(first_product(copy) == 1 + 0x1p-10f);
    rlxvk_executable_destroy(copy);
}

static void test_option(void **state)
{
    rlxvk_graph *g = product_of(1, 2);
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.weight_storage = (rlxvk_weight_storage)3};
    (void)state;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR, "weight_storage is 3");
    rlxvk_graph_destroy(g);
}

/* To find the bad node, the library compiles again without packing and gives it the rounded values.
 */
static void test_first_bad_node(void **state)
{
    rlxvk_executable *e = product(RLXVK_WEIGHTS_F16, NULL);
    rlxvk_bad_node bad = {0};
    rlxvk_run_input in = {"x", (float[]){1, 0}, 2, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_set_param(e, "w", (float[]){1, 2, 3, 4}, 4));
    expect_ok(rlxvk_first_bad_node(e, &in, 1, &bad));
    assert_false(bad.found);
    expect_ok(rlxvk_set_param(e, "w", (float[]){1, 65519, 3, 70000}, 4));
    expect_ok(rlxvk_first_bad_node(e, &in, 1, &bad));
    assert_true(bad.found);
    assert_string_equal(bad.name, "w");
    assert_int_equal(bad.first_index, 3);
    assert_int_equal(bad.infinity_count, 1);
    rlxvk_executable_destroy(e);
}

/* Files have F32, so a packed param can be loaded into any other param and back. */
static void test_files(void **state)
{
    static const char *const paths[] = {"weights.npz", "weights.safetensors"};
    const float third[4] = {1 / 3.f, 2, 3, 4};
    float rounded[4];
    char folder[] = "/tmp/rlxvk_weights_XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++)
        rounded[i] = rounded_to(RLXVK_BF16, third[i]);
    for (int i = 0; i < 2; i++) {
        rlxvk_executable *e = product(RLXVK_WEIGHTS_BF16, NULL);
        rlxvk_executable *plain = product(RLXVK_WEIGHTS_AS_DECLARED, NULL);
        snprintf(path, sizeof path, "%s/%s", folder, paths[i]);
        expect_ok(rlxvk_set_param(e, "w", third, 4));
        expect_ok(rlxvk_save_params(e, path, NULL));
        expect_ok(rlxvk_load_params(plain, path, NULL));
        expect_weight(plain, rounded);
        expect_ok(rlxvk_set_param(plain, "w", third, 4));
        expect_ok(rlxvk_save_params(plain, path, NULL));
        expect_ok(rlxvk_clear_param(e, "w"));
        expect_ok(rlxvk_load_params(e, path, NULL));
        expect_weight(e, rounded);
        rlxvk_executable_destroy(e);
        rlxvk_executable_destroy(plain);
    }
    assert_int_equal(remove_folder(folder), 0);
}

/* ---- Sharing ---- */

/* If executables share a param, the first one decides how it is held. */
static void test_shared(void **state)
{
    const float third[4] = {1 / 3.f, 2, 3, 4};
    (void)state;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            rlxvk_executable *first = product((rlxvk_weight_storage)a, NULL);
            rlxvk_executable *second = product((rlxvk_weight_storage)b, first);
            rlxvk_executable *last = product(RLXVK_WEIGHTS_AS_DECLARED, second);
            rlxvk_dtype held = dtype_of((rlxvk_weight_storage)a);
            expect_held(second, "w", held);
            expect_held(last, "w", held);
            assert_true(info_of(last, "w").shared);
            assert_int_equal(weight_bytes(last), 0);
            expect_ok(rlxvk_set_param(a == b ? first : second, "w", third, 4));
            rlxvk_executable_destroy(first);
            assert_true(first_product(second) == rounded_to(held, third[0]));
            assert_true(first_product(last) == rounded_to(held, third[0]));
            rlxvk_executable_destroy(second);
            rlxvk_executable_destroy(last);
        }
}

/* Joined projections of one row and of several rows. Either is compiled first. */
static void test_shared_parts(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) {
        rlxvk_graph *g[2] = {attention_of(RLXVK_F32, k & 1 ? 6 : 1, 64),
                             attention_of(RLXVK_F32, k & 1 ? 1 : 6, 64)};
        rlxvk_compile_options o = {.prepared_bytes = k & 2 ? UINT64_MAX : 0,
                                   .weight_storage = RLXVK_WEIGHTS_F16};
        rlxvk_executable *e[2] = {compiled(g[0], &o)}, *own = compiled(g[1], &o);
        size_t count;
        o.share_with = e[0];
        o.weight_storage = k & 4 ? RLXVK_WEIGHTS_F16 : RLXVK_WEIGHTS_AS_DECLARED;
        e[1] = compiled(g[1], &o);
        expect_held(e[1], "packed.k", RLXVK_F16);
        assert_true(weight_bytes(e[1]) < weight_bytes(own));
        float *wanted = run_seeded(own, g[1], 3, false, &count);
        free(run_seeded(e[0], g[0], 3, false, &(size_t){0}));
        float *got = run_seeded(e[1], g[1], 3, false, &count);
        expect_same_bits("shared", got, wanted, count);
        free(got);
        free(wanted);
        rlxvk_executable_destroy(own);
        for (int i = 0; i < 2; i++) {
            rlxvk_executable_destroy(e[i]);
            rlxvk_graph_destroy(g[i]);
        }
    }
}

/* An op of the second executable takes only words. So its param has its own memory and must be set
 * there. */
static void test_not_shared(void **state)
{
    rlxvk_executable *packed = product(RLXVK_WEIGHTS_F16, NULL);
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, rlxvk_tanh(g, param(g, "w", RLXVK_SHAPE(2, 2))));
    (void)state;
    expect_ok(rlxvk_set_param(packed, "w", (float[]){1, 2, 3, 4}, 4));
    rlxvk_executable *e = compile_only(g, &(rlxvk_compile_options){.share_with = packed});
    expect_held(e, "w", RLXVK_F32);
    assert_false(info_of(e, "w").shared);
    expect_error(rlxvk_run(e, NULL, 0, NULL, 0), RLXVK_E_UNSET_PARAM, "'w'");
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(packed);
}

/* The params have the same name and size and are held the same way. They are still not shared,
 * because they are declared differently. */
static void test_declared_otherwise(void **state)
{
    rlxvk_executable *packed = product(RLXVK_WEIGHTS_F16, NULL);
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 2));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, rlxvk_param(g, "w", RLXVK_F16, RLXVK_SHAPE(2, 2))));
    (void)state;
    rlxvk_executable *e = compile_only(g, &(rlxvk_compile_options){.share_with = packed});
    assert_false(info_of(e, "w").shared);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(packed);
}

/* ---- Training ---- */

/* y is the sum of (x w) v. w is frozen and v is trained: each run subtracts 2^-20 times its
 * gradient. */
static void test_trained(void **state)
{
    const float third[4] = {1 / 3.f, 2, 3, 4}, x[2] = {1, 1}, small[4] = {0x1p-20f, 0, 0, 0};
    (void)state;
    for (size_t s = 0; s < 2; s++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor v = param(g, "v", RLXVK_SHAPE(2, 2)), d;
        rlxvk_tensor y =
            rlxvk_matmul(g, input(g, "x", RLXVK_SHAPE(1, 2)), param(g, "w", RLXVK_SHAPE(2, 2)));
        y = rlxvk_reduce_sum(g, rlxvk_matmul(g, y, v), (int32_t[]){0, 1}, 2, false);
        rlxvk_graph_output(g, y);
        rlxvk_grad(g, y, RLXVK_NONE, &v, 1, &d);
        expect_ok(
            rlxvk_sgd_all(g, &v, &d, 1, &(rlxvk_sgd_options){.learning_rate = 0x1p-20f}, NULL));
        rlxvk_executable *e =
            compile_only(g, &(rlxvk_compile_options){.weight_storage = storages[s]});
        expect_held(e, "w", dtype_of(storages[s]));
        expect_held(e, "v", RLXVK_F32);
        expect_ok(rlxvk_set_param(e, "w", (float[]){1, 0, 0, 1}, 4));
        expect_ok(rlxvk_set_param(e, "v", third, 4));
        for (int i = 0; i < 3; i++)
            expect_ok(rlxvk_run(e, &(rlxvk_run_input){"x", x, 2, RLXVK_F32}, 1, NULL, 0));
        float got[4], wanted = third[0];
        for (int i = 0; i < 3; i++)
            wanted -= small[0];
        expect_ok(rlxvk_read_param(e, "v", got, 4));
        assert_true(got[0] == wanted && got[1] == 2 - 3 * 0x1p-20f);

        /* An executable that shares with a trainer reads its words. */
        rlxvk_graph *model = new_graph();
        rlxvk_graph_output(model, rlxvk_matmul(model, input(model, "x", RLXVK_SHAPE(1, 2)),
                                               param(model, "v", RLXVK_SHAPE(2, 2))));
        rlxvk_executable *reader =
            compile_only(model,
                         &(rlxvk_compile_options){.weight_storage = storages[s], .share_with = e});
        expect_held(reader, "v", RLXVK_F32);
        assert_true(info_of(reader, "v").shared);
        rlxvk_executable_destroy(reader);
        rlxvk_executable_destroy(e);
    }
}

/* A step of attention could read this cache as packed halves, but it also writes the cache. So the
 * cache stays F32. */
static void test_written_cache(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_attention_step_options o = {.heads = 1, .head_dim = 4};
    rlxvk_tensor row = input(g, "x", RLXVK_SHAPE(1, 1, 4));
    rlxvk_tensor keys = param(g, "keys", RLXVK_SHAPE(1, 1, 8, 4));
    rlxvk_tensor values = param(g, "values", RLXVK_SHAPE(1, 1, 8, 4));
    rlxvk_tensor at = input(g, "at", RLXVK_SHAPE(1));
    (void)state;
    rlxvk_graph_output(g, rlxvk_attention_step(g, row, row, row, keys, values, at, RLXVK_NONE,
                                               RLXVK_NONE, &o));
    rlxvk_executable *e =
        compile_only(g, &(rlxvk_compile_options){.weight_storage = RLXVK_WEIGHTS_F16});
    expect_held(e, "keys", RLXVK_F32);
    expect_held(e, "values", RLXVK_F32);
    rlxvk_executable_destroy(e);
}

/* ---- Symbols ---- */

static float symbolic_first(rlxvk_executable *e, size_t batch)
{
    float x[16] = {1}, y[16];
    rlxvk_run_input in = {"x", x, 2 * batch, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, y, 2 * batch, RLXVK_F32}, 1));
    return y[0];
}

/* Sets the param before and after a binding. Members share one memory for it, or each has its own.
 * The latter happens if the binding in force may overwrite it. */
static void test_symbols(void **state)
{
    const float third[4] = {1 / 3.f, 2, 3, 4}, fifth[4] = {1 / 5.f, 2, 3, 4};
    (void)state;
    for (size_t s = 0; s < 2; s++) {
        rlxvk_dtype held = dtype_of(storages[s]);
        rlxvk_compile_options o = {.weight_storage = storages[s]};
        rlxvk_executable *e = compile_only(product_of(rlxvk_symbol(RLXVK_BATCH), 2), &o);
        rlxvk_executable *copy = NULL, *reader;
        expect_ok(rlxvk_set_param(e, "w", third, 4));
        assert_int_equal(info_of(e, "w").held, RLXVK_F32);
        assert_true(symbolic_first(e, 1) == rounded_to(held, third[0]));
        expect_held(e, "w", held);
        assert_true(symbolic_first(e, 7) == rounded_to(held, third[0]));
        expect_held(e, "w", held);
        expect_ok(rlxvk_set_param(e, "w", fifth, 4));
        assert_true(symbolic_first(e, 1) == rounded_to(held, fifth[0]));
        expect_ok(rlxvk_clone(e, &copy));
        reader = product(RLXVK_WEIGHTS_AS_DECLARED, e);
        expect_held(reader, "w", held);
        rlxvk_executable_destroy(e);
        assert_true(symbolic_first(copy, 3) == rounded_to(held, fifth[0]));
        assert_true(first_product(reader) == rounded_to(held, fifth[0]));
        rlxvk_executable_destroy(copy);
        rlxvk_executable_destroy(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounded_values), cmocka_unit_test(test_as_declared),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_calls),          cmocka_unit_test(test_option),
        cmocka_unit_test(test_first_bad_node), cmocka_unit_test(test_files),
        cmocka_unit_test(test_shared),         cmocka_unit_test(test_shared_parts),
        cmocka_unit_test(test_not_shared),     cmocka_unit_test(test_declared_otherwise),
        cmocka_unit_test(test_trained),        cmocka_unit_test(test_written_cache),
        cmocka_unit_test(test_symbols),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
