/*
 * How a row is chosen from a table, tested with a made-up table. Also the rules that every table of
 * the library must keep.
 */
#include "op/matmul/matmul_choice.h"
#include "op/op.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct made_row {
    choice_row row;
    uint32_t threads, shared_bytes;
    uint64_t most;  /* it can do up to this size */
    uint64_t least; /* it suits from this size */
    double cost;
    uint32_t kept, loaded;
} made_row;

static const made_row made[] = {
    {{"shuffles", ON_NATIVE, NEEDS_SHUFFLES}, 64, 0, 100, 0, 0},
    {{"bytes", ON_NATIVE, NEEDS_BYTE_PRODUCTS | IF_QUICK_BYTES}, 64, 0, 100, 0, 0},
    {{"many", ON_HARDWARE, IF_FILLS}, 64, 0, UINT64_MAX, 0, 0},
    {{"wide", ON_NATIVE}, 512, 0, UINT64_MAX, 50, 0, 100, 50},
    {{"deep", ON_NATIVE}, 64, 40000, UINT64_MAX, 40, 0},
    {{"slow", ON_NATIVE}, 64, 0, UINT64_MAX, 20, 3},
    {{"quick", ON_NATIVE}, 64, 0, UINT64_MAX, 30, 1},
    {{"plain", ON_ALL}, 64, 0, UINT64_MAX, 10, 0},
    {{"ballots", ON_NATIVE, NEEDS_BALLOTS}, 64, 0, UINT64_MAX, UINT64_MAX, 0},
    {{"single", ON_SOFTWARE}, 1, 0, UINT64_MAX, 11, 0},
};

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const made_row *r = row;
    uint64_t size = *(const uint64_t *)problem;
    (void)profile;
    return (choice_fit){.can = size <= r->most,
                        .suits = size >= r->least,
                        .threads = r->threads,
                        .shared_bytes = r->shared_bytes,
                        .groups = size,
                        .cost = r->cost,
                        .kept = r->kept,
                        .loaded = r->loaded};
}

static void expect(const char *name, uint64_t size, device_profile p, size_t preferred)
{
    static const choice_table table = {CHOICE_ROWS(made), .fit = fit};
    const choice_row *r = choice_select(&table, &size, &p, preferred);
    assert_string_equal(r->name, name);
}

static void first_that_suits(void **state)
{
    (void)state;
    device_profile gpu = big_gpu();
    expect("wide", 111, gpu, VARIANT_NONE);
    expect("many", 112, gpu, VARIANT_NONE); /* seven groups for eight units */
    expect("deep", 45, gpu, VARIANT_NONE);
    gpu.max_workgroup_invocations = 256;
    expect("deep", 60, gpu, VARIANT_NONE);
    gpu.shared_memory_bytes = 32768;
    expect("quick", 60, gpu, VARIANT_NONE);
}

/* A device of 65,536 registers has 128 for each thread of a workgroup of 512. A row that needs more
 * is chosen only if it is preferred. */
static void registers(void **state)
{
    (void)state;
    device_profile gpu = big_gpu();
    gpu.unit_registers = 65536;
    gpu.thread_registers = 255;
    expect("wide", 111, gpu, VARIANT_NONE);
    gpu.loads_early = true;
    expect("deep", 111, gpu, VARIANT_NONE);
    expect("wide", 111, gpu, 3);
    gpu.unit_registers *= 2;
    expect("wide", 111, gpu, VARIANT_NONE);
    gpu.thread_registers = 128;
    expect("deep", 111, gpu, VARIANT_NONE);
    gpu.unit_registers = gpu.thread_registers = 0; /* not known */
    expect("wide", 111, gpu, VARIANT_NONE);
    device_profile blocks = {.unit_registers = 49152,
                             .thread_registers = 192,
                             .register_threads = 256};
    assert_int_equal(profile_registers(&blocks, 64), 192);
    assert_int_equal(profile_registers(&blocks, 256), 192);
    assert_int_equal(profile_registers(&blocks, 257), 96);
}

static void least_cost(void **state)
{
    (void)state;
    expect("slow", 25, big_gpu(), VARIANT_NONE);
    expect("quick", 35, big_gpu(), VARIANT_NONE);
    expect("plain", 15, big_gpu(), VARIANT_NONE);
}

static void needs_and_ifs(void **state)
{
    (void)state;
    device_profile gpu = big_gpu();
    gpu.subgroup_size = 32;
    gpu.subgroup_shuffle = true;
    gpu.max_shuffle_invocations = 1024;
    expect("shuffles", 5, gpu, VARIANT_NONE);
    expect("shuffles", 15, gpu, 8);
    gpu.subgroup_ballot = true;
    expect("ballots", 15, gpu, 8);
    gpu.subgroup_size = 128; /* exceeds a workgroup */
    expect("plain", 15, gpu, 8);
    gpu.byte_products = true;
    expect("plain", 15, gpu, VARIANT_NONE);
    expect("bytes", 15, gpu, 1);
    gpu.quick_byte_products = true;
    expect("bytes", 15, gpu, VARIANT_NONE);
    gpu.byte_products = false;
    expect("plain", 15, gpu, 1);
    expect("plain", 15, gpu, 0);
}

static void settings(void **state)
{
    (void)state;
    device_profile translated = big_gpu(), cpu = software();
    translated.portable = true;
    assert_int_equal(choice_setting_of(&translated), ON_TRANSLATED);
    expect("plain", 60, translated, VARIANT_NONE);
    expect("many", 1000, translated, VARIANT_NONE);
    expect("plain", 1000, cpu, VARIANT_NONE);
    expect("many", 1, cpu, 2); /* a preferred row is taken on any device */
    cpu.portable = false;
    assert_int_equal(choice_setting_of(&cpu), ON_SOFTWARE);
}

/* If no row suits, the last possible row is taken. If none is possible either, it is the very last
 * row (last_takes_all) or none. */
static void none_suits(void **state)
{
    (void)state;
    static const choice_table all = {CHOICE_ROWS(made), .fit = fit, .last_takes_all = true};
    static const choice_table one = {.rows = made,
                                     .row_bytes = sizeof *made,
                                     .count = 1,
                                     .fit = fit};
    device_profile gpu = big_gpu();
    uint64_t size = 5;
    expect("plain", size, gpu, VARIANT_NONE);
    expect("single", size, software(), VARIANT_NONE);
    assert_ptr_equal(choice_select(&all, &size, &gpu, VARIANT_NONE), &made[9]);
    assert_null(choice_select(&one, &size, &gpu, 0));
}

/* ---- The library's tables ---- */

static void names_are_unique(void **state)
{
    (void)state;
    for (size_t f = 0; f < CHOICE_COUNT; f++) {
        const kernel_kind *kind = &choice_kinds[f];
        const char *name;
        assert_ptr_equal(choice_find_kind(kind->name, strlen(kind->name)), kind);
        for (size_t i = 0; (name = choice_row_name(kind, i)); i++) {
            assert_int_equal(choice_find_row(kind, name, strlen(name)), i);
            assert_int_equal(strcspn(name, " ,="), strlen(name));
            assert_true(strlen(name) < 48); /* the buffer of the profile reader */
        }
        assert_true(kind->table->count > 0 && kind->table->count < UINT8_MAX);
    }
    assert_null(choice_find_kind("softmax", 7));
    assert_int_equal(choice_find_row(&choice_kinds[CHOICE_rows], "none", 4), VARIANT_NONE);
}

static bool is_op(const char *name, size_t length)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (strlen(op_table[i].name) == length && strncmp(op_table[i].name, name, length) == 0)
            return true;
    return false;
}

/* If an op of a kernel kind does not exist, rlxvk conform --each-variant would skip the
 * kind. */
static void ops_exist(void **state)
{
    (void)state;
    for (size_t f = 0; f < CHOICE_COUNT; f++)
        for (const char *op = choice_kinds[f].ops; *op; op += strspn(op, ",")) {
            size_t length = strcspn(op, ",");
            assert_true(is_op(op, length));
            op += length;
        }
    assert_true(choice_reaches(&choice_kinds[CHOICE_conv], "conv_transpose2d"));
    assert_false(choice_reaches(&choice_kinds[CHOICE_conv], "conv_transpose"));
}

/* Each row is for at least one setting, and in each table every setting has a row. */
static void settings_are_covered(void **state)
{
    (void)state;
    for (size_t f = 0; f < CHOICE_COUNT; f++) {
        unsigned settings = 0;
        for (size_t i = 0; i < choice_kinds[f].table->count; i++) {
            const choice_row *r = choice_row_at(choice_kinds[f].table, i);
            assert_true(r->settings && !(r->settings & ~(unsigned)ON_ALL));
            settings |= r->settings;
        }
        assert_int_equal(settings, ON_ALL);
    }
}

/* Rows of different tables may have the same name. A dispatch can still tell its table, because it
 * keeps the address of the name. */
static void equal_names_are_told_apart(void **state)
{
    size_t equal = 0;
    (void)state;
    for (size_t f = 0; f < CHOICE_COUNT; f++)
        for (size_t i = 0; choice_row_name(&choice_kinds[f], i); i++) {
            const char *name = choice_row_name(&choice_kinds[f], i);
            variant_set named = {{0}};
            named.rows[f] = (uint8_t)(i + 1);
            for (size_t g = 0; g < CHOICE_COUNT; g++)
                for (size_t k = 0; choice_row_name(&choice_kinds[g], k); k++) {
                    const char *other = choice_row_name(&choice_kinds[g], k);
                    equal += f < g && strcmp(name, other) == 0;
                    assert_int_equal(variant_is_named(&named, other), f == g && i == k);
                }
        }
    assert_true(equal > 0);
}

static void tile_loops(void **state)
{
    (void)state;
    device_profile gpu = big_gpu(), cpu = software();
    assert_int_equal(matmul_tile_loop(TILE_LOOP_ZIGZAG, &gpu), TILE_LOOP_ZIGZAG);
    gpu.loads_early = true;
    assert_int_equal(matmul_tile_loop(TILE_LOOP_ZIGZAG, &gpu), TILE_LOOP_ZIGZAG | TILE_LOOP_ROLLED);
    assert_int_equal(matmul_tile_loop(0, &cpu), TILE_LOOP_ROLLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_that_suits),
        cmocka_unit_test(registers),
        cmocka_unit_test(tile_loops),
        cmocka_unit_test(least_cost),
        cmocka_unit_test(needs_and_ifs),
        cmocka_unit_test(settings),
        cmocka_unit_test(none_suits),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(ops_exist),
        cmocka_unit_test(settings_are_covered),
        cmocka_unit_test(equal_names_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
