/*
 * The value map, without a device: the slot of a node, its offset in it, and how the node is held.
 */
#include "op/value.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* ---- Places ---- */

static value_map map_of(const rlxvk_graph *g, bool keep_all)
{
    value_map map;
    expect_ok(rlxvk_graph_status(g));
    expect_ok(value_map_create(g, &(value_options){.keep_all = keep_all}, &map));
    return map;
}

static void expect_at(const value_map *map, rlxvk_tensor t, rlxvk_tensor root, uint64_t offset)
{
    const value *v = &map->items[t.id - 1];
    assert_int_equal(v->root, root.id - 1);
    assert_int_equal(v->offset, offset);
}

static void views_chain(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 6)), n = rlxvk_narrow(g, x, 0, 1, 2);
    rlxvk_tensor r = rlxvk_reshape(g, n, RLXVK_SHAPE(12)), m = rlxvk_narrow(g, r, 0, 3, 4);
    rlxvk_tensor t = rlxvk_transpose(g, n, (int32_t[]){1, 0}, 2);
    rlxvk_tensor column = rlxvk_narrow(g, x, 1, 2, 1), s = rlxvk_stop_gradient(g, column);
    value_map map = map_of(g, false);
    expect_at(&map, n, x, 6);
    expect_at(&map, r, x, 6);
    expect_at(&map, m, x, 9);
    expect_at(&map, t, t, 0);
    expect_at(&map, column, column, 0);
    expect_at(&map, s, column, 0);
    value_map_destroy(&map);
    rlxvk_graph_destroy(g);
}

static void parts_join_their_concat(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3)), a = rlxvk_neg(g, x), b = rlxvk_exp(g, x);
    rlxvk_tensor inner = rlxvk_concat(g, (rlxvk_tensor[]){x, a, b}, 3, 0), d = rlxvk_abs(g, x);
    rlxvk_tensor outer = rlxvk_concat(g, (rlxvk_tensor[]){d, inner}, 2, 0);
    rlxvk_graph_output(g, outer);
    value_map map = map_of(g, false);
    expect_at(&map, d, outer, 0);
    expect_at(&map, inner, outer, 6);
    expect_at(&map, x, x, 0); /* a leaf has its own slot */
    expect_at(&map, a, outer, 12);
    expect_at(&map, b, outer, 18);
    assert_true(map.items[a.id - 1].in_concat && map.items[inner.id - 1].in_concat);
    assert_false(map.items[x.id - 1].in_concat || map.items[outer.id - 1].in_concat);
    value_map_destroy(&map);
    map = map_of(g, true);
    expect_at(&map, a, a, 0);
    expect_at(&map, inner, inner, 0);
    value_map_destroy(&map);
    rlxvk_graph_destroy(g);
}

static void parts_stay_apart(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3)), cache = input(g, "c", RLXVK_SHAPE(1, 2, 3));
    rlxvk_tensor twice = rlxvk_neg(g, x), read = rlxvk_exp(g, x), shown = rlxvk_abs(g, x);
    rlxvk_tensor under = rlxvk_sin(g, x), view = rlxvk_reshape(g, under, RLXVK_SHAPE(2, 3));
    rlxvk_tensor side = rlxvk_cos(g, x);
    rlxvk_tensor c = rlxvk_concat(g, (rlxvk_tensor[]){twice, twice, read, shown, view}, 5, 0);
    rlxvk_tensor wide = rlxvk_concat(g, (rlxvk_tensor[]){side, x}, 2, 1); /* rows interleave */
    rlxvk_tensor rows = rlxvk_reshape(g, rlxvk_tan(g, x), RLXVK_SHAPE(1, 2, 3));
    rlxvk_tensor w = rlxvk_write_rows(g, cache, rows, input(g, "p", RLXVK_SHAPE(1)));
    rlxvk_tensor caches = rlxvk_concat(g, (rlxvk_tensor[]){w, cache}, 2, 0);
    rlxvk_tensor outputs[] = {c, wide, caches, shown, rlxvk_neg(g, read)};
    for (size_t i = 0; i < ARRAY_COUNT(outputs); i++)
        rlxvk_graph_output(g, outputs[i]);
    value_map map = map_of(g, false);
    expect_at(&map, twice, twice, 0);
    expect_at(&map, read, read, 0);
    expect_at(&map, shown, shown, 0);
    expect_at(&map, under, under, 0);
    expect_at(&map, view, under, 0);
    expect_at(&map, side, side, 0);
    expect_at(&map, w, cache, 0);
    value_map_destroy(&map);
    rlxvk_graph_destroy(g);
}

/* ---- Packed halves ---- */

/* Adds readers of w [4,4]. The result becomes an output. */
typedef rlxvk_tensor (*half_reader)(rlxvk_graph *, rlxvk_tensor x, rlxvk_tensor w);

static rlxvk_tensor by_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    return rlxvk_matmul(g, x, w);
}

static rlxvk_tensor by_view(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_tensor half = rlxvk_narrow(g, rlxvk_reshape(g, w, RLXVK_SHAPE(16, 1)), 0, 4, 8);
    return rlxvk_matmul(g, x, rlxvk_reshape(g, half, RLXVK_SHAPE(4, 2)));
}

static rlxvk_tensor by_gather(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    return rlxvk_gather(g, w, rlxvk_reshape(g, x, RLXVK_SHAPE(16)), 0);
}

static rlxvk_tensor by_both(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_graph_output(g, rlxvk_neg(g, w));
    return rlxvk_matmul(g, x, w);
}

static rlxvk_tensor by_output(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_graph_output(g, w);
    return rlxvk_matmul(g, x, w);
}

static rlxvk_tensor by_output_of_view(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_graph_output(g, rlxvk_reshape(g, w, RLXVK_SHAPE(16)));
    return rlxvk_matmul(g, x, w);
}

static rlxvk_tensor by_cast(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    return rlxvk_matmul(g, x, rlxvk_cast(g, w, RLXVK_F32));
}

static rlxvk_tensor as_indices(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    return rlxvk_gather(g, x, w, 0);
}

static rlxvk_tensor as_bias(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_tensor row = rlxvk_reshape(g, rlxvk_narrow(g, w, 0, 0, 1), RLXVK_SHAPE(4));
    return rlxvk_fused_matmul_bias_act(g, x, x, row, RLXVK_ACTIVATION_NONE, false);
}

/* Readers of w are placed in a concat. That does not make them views of w. */
static rlxvk_tensor by_part(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_tensor parts[] = {rlxvk_neg(g, w), rlxvk_exp(g, w)};
    rlxvk_graph_output(g, rlxvk_matmul(g, x, w));
    return rlxvk_concat(g, parts, 2, 0);
}

static rlxvk_tensor by_product_in_part(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w)
{
    return rlxvk_concat(g, (rlxvk_tensor[]){rlxvk_matmul(g, w, x), rlxvk_matmul(g, x, w)}, 2, 0);
}

static void halves_stay_packed_where_read_so(void **state)
{
    const struct {
        const char *what;
        half_reader reader;
        storage storage;
    } rows[] = {
        {"matmul", by_matmul, STORAGE_HALF},
        {"views of it", by_view, STORAGE_HALF},
        {"gather", by_gather, STORAGE_HALF},
        {"matmuls that are parts", by_product_in_part, STORAGE_HALF},
        {"matmul and neg", by_both, STORAGE_WORD},
        {"output", by_output, STORAGE_WORD},
        {"view as output", by_output_of_view, STORAGE_WORD},
        {"cast that is a view", by_cast, STORAGE_WORD},
        {"indices", as_indices, STORAGE_WORD},
        {"bias", as_bias, STORAGE_WORD},
        {"parts of a concat", by_part, STORAGE_WORD},
    };
    const uint16_t content[16] = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        for (int kind = 0; kind < 3; kind++) {
            rlxvk_graph *g = new_graph();
            rlxvk_shape square = RLXVK_SHAPE(4, 4);
            rlxvk_tensor x = input(g, "x", square);
            rlxvk_tensor w = kind == 0   ? rlxvk_param(g, "w", RLXVK_F16, square)
                             : kind == 1 ? rlxvk_constant(g, RLXVK_BF16, square, content, 32)
                                         : rlxvk_input(g, "w", RLXVK_F16, square);
            rlxvk_graph_output(g, rows[i].reader(g, x, w));
            value_map map = map_of(g, false);
            storage wanted = kind == 2 ? STORAGE_WORD : rows[i].storage;
            if (map.items[w.id - 1].storage != wanted)
                print_error("read by %s\n", rows[i].what);
            assert_int_equal(map.items[w.id - 1].storage, wanted);
            for (uint32_t id = 0; id < g->nodes.count; id++)
                if (map.items[id].root == w.id - 1)
                    assert_int_equal(map.items[id].storage, wanted);
            value_map_destroy(&map);
            rlxvk_graph_destroy(g);
        }
}

/* A cache is held as words, no matter who reads it, because its rows are written as words. */
static void written_params_are_words(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor cache = rlxvk_param(g, "c", RLXVK_F16, RLXVK_SHAPE(1, 4, 4));
    rlxvk_tensor rows = rlxvk_input(g, "r", RLXVK_F16, RLXVK_SHAPE(1, 1, 4));
    rlxvk_tensor w = rlxvk_write_rows(g, cache, rows, input(g, "p", RLXVK_SHAPE(1)));
    rlxvk_graph_output(g, rlxvk_matmul(g, input(g, "x", RLXVK_SHAPE(4, 4)), w));
    value_map map = map_of(g, false);
    assert_int_equal(map.items[cache.id - 1].storage, STORAGE_WORD);
    assert_int_equal(map.items[w.id - 1].storage, STORAGE_WORD);
    value_map_destroy(&map);
    rlxvk_graph_destroy(g);
}

static void storages_follow_dtypes(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor raw = rlxvk_param(g, "raw", RLXVK_U8, RLXVK_SHAPE(4, 4));
    rlxvk_tensor view = rlxvk_narrow(g, rlxvk_reshape(g, raw, RLXVK_SHAPE(16)), 0, 4, 8);
    rlxvk_tensor copy = rlxvk_copy(g, raw), words = rlxvk_cast(g, raw, RLXVK_F32);
    rlxvk_tensor computed = rlxvk_cast(g, words, RLXVK_U8);
    rlxvk_tensor pair = rlxvk_cast(g, words, RLXVK_C64);
    value_map map = map_of(g, false);
    assert_int_equal(map.items[raw.id - 1].storage, STORAGE_RAW);
    assert_int_equal(map.items[view.id - 1].storage, STORAGE_RAW);
    assert_int_equal(map.items[copy.id - 1].storage, STORAGE_RAW);
    assert_int_equal(map.items[words.id - 1].storage, STORAGE_WORD);
    assert_int_equal(map.items[computed.id - 1].storage, STORAGE_WORD);
    assert_int_equal(map.items[pair.id - 1].storage, STORAGE_PAIR);
    value_map_destroy(&map);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_chain),
        cmocka_unit_test(parts_join_their_concat),
        cmocka_unit_test(parts_stay_apart),
        cmocka_unit_test(halves_stay_packed_where_read_so),
        cmocka_unit_test(written_params_are_words),
        cmocka_unit_test(storages_follow_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
