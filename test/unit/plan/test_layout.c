/* Leaves (names, shapes, constant sizes); which layout ops are views; and the kernel, the unit and
 * the byte range of a copy. No device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "constants/movement.h"
#include "plan/schedule.h"

#include <string.h>

static const device_profile profile = {.max_group_count = {65535, 65535, 65535},
                                       .slot_alignment = 4,
                                       .workgroup_size = 128,
                                       .compute_units = 8};

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g;
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 3));
    rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2, 3));
    return g;
}

/* ---- Leaves ---- */

typedef struct leaf_row {
    const char *name;
    int dtype;
    rlxvk_shape shape;
    rlxvk_status expected;
} leaf_row;

static void leaf_names_and_shapes(void **state)
{
    static char longest[257];
    memset(longest, 'a', 256);
    const leaf_row rows[] = {
        {"y", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_OK},
        {"w", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_OK}, /* params have their own name space */
        {"x", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_DUP_NAME},
        {"", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {NULL, RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_NULL},
        {longest, RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {longest + 1, RLXVK_F32, RLXVK_SHAPE(1), RLXVK_OK},
        {"\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\xa9", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_OK},
        {"\xc3(", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {"a\xe2\x82", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {"\xed\xa0\x80", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {"\xc0\x80", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {"\xf4\x90\x80\x80", RLXVK_F32, RLXVK_SHAPE(1), RLXVK_E_ATTR},
        {"y", RLXVK_DTYPE_COUNT, RLXVK_SHAPE(1), RLXVK_E_DTYPE},
        {"y", 256, RLXVK_SHAPE(1), RLXVK_E_DTYPE},
        {"y", RLXVK_F32, RLXVK_SHAPE(2, -1), RLXVK_E_SHAPE},
        {"y", RLXVK_F32, {.rank = 9}, RLXVK_E_SHAPE},
        {"y", RLXVK_F32, RLXVK_SHAPE(65536, 32768), RLXVK_E_TOO_LARGE},
        {"y", RLXVK_F32, RLXVK_SHAPE(65536, 0, 1000000), RLXVK_OK},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor t = rlxvk_input(g, rows[i].name, (rlxvk_dtype)rows[i].dtype, rows[i].shape);
        assert_int_equal(rlxvk_graph_status(g), rows[i].expected);
        assert_int_equal(t.id != 0, rows[i].expected == RLXVK_OK);
        rlxvk_graph_destroy(g);
    }
}

static void constant_sizes(void **state)
{
    static const struct {
        rlxvk_dtype dtype;
        int64_t dim;
        const void *bytes;
        size_t size;
        rlxvk_status expected;
    } rows[] = {
        {RLXVK_F32, 1, "abcd", 4, RLXVK_OK},
        {RLXVK_F32, 1, "abcd", 3, RLXVK_E_CONST_SIZE},
        {RLXVK_F32, 1, NULL, 4, RLXVK_E_NULL},
        {RLXVK_F32, 0, NULL, 0, RLXVK_OK},
        {RLXVK_F16, 2, "abcd", 4, RLXVK_OK},
        {RLXVK_U8, 4, "abcd", 4, RLXVK_OK},
        {RLXVK_F32, (int64_t)1 << 31, "", 0, RLXVK_E_TOO_LARGE},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_constant(g, rows[i].dtype, RLXVK_SHAPE(rows[i].dim), rows[i].bytes, rows[i].size);
        assert_int_equal(rlxvk_graph_status(g), rows[i].expected);
        rlxvk_graph_destroy(g);
    }
}

static void concat_names_a_missing_part(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    assert_int_equal(rlxvk_concat(g, (rlxvk_tensor[]){tensor_of(g, 0), RLXVK_NONE}, 2, 0).id, 0);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_DANGLING);
    assert_non_null(strstr(rlxvk_graph_error(g), "part 1"));
    assert_int_equal(rlxvk_reshape(g, tensor_of(g, 0), RLXVK_SHAPE(6)).id, 0); /* sticky */
    rlxvk_graph_destroy(g);
}

/* ---- Lowering ---- */

static schedule lower(rlxvk_graph *g, rlxvk_tensor output)
{
    schedule s;
    schedule_options options = {.profile = &profile, .forbid_host = true};
    rlxvk_graph_output(g, output);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_int_equal(schedule_create(g, &options, &s), RLXVK_OK);
    return s;
}

static void views_take_no_dispatch(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "deep", RLXVK_F32, RLXVK_SHAPE(8, 1, 3));
    (void)state;
    x = rlxvk_narrow(g, x, 0, 2, 6);                    /* from element 6 on */
    x = rlxvk_transpose(g, x, (int32_t[]){1, 0, 2}, 3); /* moves a 1 */
    x = rlxvk_narrow(g, x, 1, 1, 4);                    /* from element 9 on */
    x = rlxvk_reverse(g, x, (int32_t[]){0}, 1);         /* an axis of 1 */
    x = rlxvk_reshape(g, rlxvk_stop_gradient(g, x), RLXVK_SHAPE(3, -1));
    x = rlxvk_expand(g, x, RLXVK_SHAPE(1, 3, 4));
    schedule s = lower(g, x);
    assert_int_equal(s.dispatches.count, 0);
    assert_int_equal(s.values.items[x.id - 1].root, 2);
    assert_int_equal(s.values.items[x.id - 1].offset, 9);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

static void check_copy(rlxvk_shape shape, rlxvk_dtype dtype, int32_t axis, int64_t start,
                       int64_t length, uint32_t width)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "deep", dtype, shape);
    schedule s = lower(g, rlxvk_narrow(g, x, axis, start, length));
    assert_int_equal(s.dispatches.count, 1);
    assert_int_equal(s.dispatches.items[0].kernel, KERNEL_STRIDED_COPY);
    assert_int_equal(s.dispatches.items[0].constants[STRIDED_COPY_WIDTH], width);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

static void copies_use_the_widest_unit(void **state)
{
    (void)state;
    check_copy(RLXVK_SHAPE(3, 16), RLXVK_F32, 1, 4, 8, 4);
    check_copy(RLXVK_SHAPE(3, 16), RLXVK_F32, 1, 2, 8, 2);
    check_copy(RLXVK_SHAPE(3, 16), RLXVK_F32, 1, 4, 6, 2);
    check_copy(RLXVK_SHAPE(3, 18), RLXVK_F32, 1, 4, 8, 2);
    check_copy(RLXVK_SHAPE(3, 16), RLXVK_F32, 1, 3, 8, 1);
    check_copy(RLXVK_SHAPE(3, 5, 4), RLXVK_F32, 1, 1, 3, 4);
    check_copy(RLXVK_SHAPE(3, 5), RLXVK_C64, 1, 1, 3, 2);
    check_copy(RLXVK_SHAPE(3, 6), RLXVK_C64, 1, 2, 4, 4);
}

static uint16_t transpose_kernel(rlxvk_shape shape)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "deep", RLXVK_F32, shape);
    schedule s = lower(g, rlxvk_transpose(g, x, (int32_t[]){0, 2, 1}, 3));
    uint16_t kernel = s.dispatches.items[0].kernel;
    assert_int_equal(s.dispatches.count, 1);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
    return kernel;
}

static void transposes_go_through_tiles(void **state)
{
    (void)state;
    assert_int_equal(transpose_kernel(RLXVK_SHAPE(2, 40, 50)), KERNEL_TRANSPOSE2D);
    assert_int_equal(transpose_kernel(RLXVK_SHAPE(2, 40, 15)), KERNEL_STRIDED_COPY);
}

/* If a part of a concat is a leaf, it is copied; the ranges must not overlap. A computed part is
 * written in place. */
static void concat_writes_apart(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor computed = rlxvk_reverse(g, tensor_of(g, 0), (int32_t[]){1}, 1);
    rlxvk_tensor parts[] = {tensor_of(g, 0), computed, tensor_of(g, 1), tensor_of(g, 0)};
    (void)state;
    schedule s = lower(g, rlxvk_concat(g, parts, 4, 0));
    assert_int_equal(s.dispatches.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const operand *written = &s.dispatches.items[i].operands[1];
        static const uint64_t first[] = {24, 0, 48, 72}; /* the reverse runs first */
        assert_int_equal(written->value, 3);
        assert_int_equal(written->first, first[i]);
        assert_int_equal(written->size, 24);
    }
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaf_names_and_shapes),
        cmocka_unit_test(constant_sizes),
        cmocka_unit_test(concat_names_a_missing_part),
        cmocka_unit_test(views_take_no_dispatch),
        cmocka_unit_test(copies_use_the_widest_unit),
        cmocka_unit_test(transposes_go_through_tiles),
        cmocka_unit_test(concat_writes_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
