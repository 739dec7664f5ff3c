/*
 * Structs of callers that are shorter or longer than the library's. In this test, the library's
 * struct got the member `later` after its first version.
 */
#include "base/sized.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct first_version {
    uint64_t a;
    uint32_t b;
    size_t struct_size;
} first_version;

typedef struct grown {
    uint64_t a;
    uint32_t b;
    size_t struct_size;
    uint64_t later;
} grown;

typedef struct newest {
    uint64_t a;
    uint32_t b;
    size_t struct_size;
    uint64_t later, latest;
} newest;

static const sized type = {"grown", offsetof(grown, struct_size), sizeof(first_version),
                           sizeof(grown)};

static void the_first_version_ends_behind_its_struct_size(void **state)
{
    const sized *memory = SIZED(first_version);
    (void)state;
    assert_int_equal(memory->at, offsetof(first_version, struct_size));
    assert_int_equal(memory->first, sizeof(first_version));
    assert_int_equal(memory->known, sizeof(first_version));
    assert_int_equal(SIZED(grown)->first, sizeof(first_version));
    assert_string_equal(memory->name, "first_version");
}

static void what_a_caller_lacks_is_zero(void **state)
{
    struct {
        first_version given;
        uint64_t behind;
    } x = {{1, 2, 0}, 99};
    grown own;
    (void)state;
    for (int says = 0; says < 2; says++) {
        x.given.struct_size = says ? RLXVK_SIZE_OF(first_version) : 0;
        memset(&own, 0xff, sizeof own);
        expect_ok(sized_read(&type, &x.given, &own));
        assert_true(own.a == 1 && own.b == 2 && own.later == 0);
        assert_int_equal(own.struct_size, RLXVK_SIZE_OF(grown));
    }
    expect_ok(sized_read(&type, NULL, &own));
    assert_true(own.a == 0 && own.later == 0);
    assert_int_equal(own.struct_size, RLXVK_SIZE_OF(grown));
}

static void a_caller_of_this_version_gives_all(void **state)
{
    grown given = RLXVK_SIZED(grown, .a = 1, .later = 3), own;
    (void)state;
    expect_ok(sized_read(&type, &given, &own));
    assert_true(own.a == 1 && own.later == 3);
    given = (grown){1, 2, 0, 3}; /* if no size is given, the first version is assumed */
    expect_ok(sized_read(&type, &given, &own));
    assert_int_equal(own.later, 0);
}

static void a_later_caller_may_give_zeros_only(void **state)
{
    newest given = RLXVK_SIZED(newest, .a = 1, .later = 3);
    grown own;
    char size[64], place[64]; /* of 32 and of 64 bits */
    (void)state;
    expect_ok(sized_read(&type, &given, &own));
    assert_true(own.a == 1 && own.later == 3);
    given.latest = 1ull << 56;
    assert_int_equal(sized_read(&type, &given, &own), RLXVK_E_ATTR);
    snprintf(size, sizeof size, "grown has %zu bytes, of which library ", sizeof given);
    snprintf(place, sizeof place, " knows %zu, but byte %zu is not 0: leave later", sizeof own,
             sizeof given - 1);
    assert_non_null(strstr(rlxvk_last_error(), size));
    assert_non_null(strstr(rlxvk_last_error(), place));
    assert_true(own.a == 0 && own.later == 0);
}

static void other_sizes_are_errors(void **state)
{
    const size_t bad[] = {1,
                          sizeof(grown),
                          RLXVK_SIZE_OF(first_version) - 1,
                          RLXVK_SIZE_OF(char[65536]),
                          RLXVK_SIZE_OF(grown) ^ (size_t)1 << (8 * sizeof(size_t) - 1),
                          SIZE_MAX};
    grown own;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        grown given = {1, 2, bad[i], 0};
        assert_int_equal(sized_read(&type, &given, &own), RLXVK_E_ATTR);
        assert_non_null(strstr(rlxvk_last_error(), "grown: struct_size is 0x"));
        assert_non_null(strstr(rlxvk_last_error(), ": zero the struct before you fill it in"));
        assert_true(own.a == 0 && own.later == 0);
    }
}

static void no_more_is_written_than_the_caller_has(void **state)
{
    const grown own = {1, 2, RLXVK_SIZE_OF(grown), 3};
    struct {
        first_version out;
        uint64_t behind;
    } x;
    newest wide = RLXVK_SIZED(newest, .latest = 7);
    grown same = RLXVK_SIZED(grown, 0);
    const size_t sizes[] = {0, 0x1234, sizeof(grown), RLXVK_SIZE_OF(first_version)};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        x.behind = 99;
        x.out.struct_size = sizes[i];
        sized_write(&type, &own, &x.out);
        assert_true(x.out.a == 1 && x.out.b == 2 && x.behind == 99);
        assert_int_equal(x.out.struct_size, i == 3 ? sizes[i] : 0);
    }
    sized_write(&type, &own, &same);
    assert_true(same.a == 1 && same.later == 3);
    assert_int_equal(same.struct_size, RLXVK_SIZE_OF(grown));
    sized_write(&type, &own, &wide);
    assert_true(wide.a == 1 && wide.later == 3 && wide.latest == 7);
    assert_int_equal(wide.struct_size, RLXVK_SIZE_OF(newest));
}

static void items_lie_as_far_apart_as_the_first_says(void **state)
{
    first_version old[3] = {{1}, {2}, {3}};
    newest late[2] = {RLXVK_SIZED(newest, 4, .later = 40), RLXVK_SIZED(newest, 5, .later = 50)};
    grown same[2] = {RLXVK_SIZED(grown, 6), RLXVK_SIZED(grown, 7)}, own;
    sized_array array;
    (void)state;
    expect_ok(sized_array_of(&type, old, 3, &array));
    for (size_t i = 0; i < 3; i++) {
        const grown *item = sized_item(&type, &array, i, &own);
        assert_true(item == &own && item->a == i + 1 && item->later == 0);
    }
    expect_ok(sized_array_of(&type, late, 2, &array));
    assert_int_equal(((const grown *)sized_item(&type, &array, 1, &own))->later, 50);
    expect_ok(sized_array_of(&type, same, 2, &array));
    assert_ptr_equal(sized_item(&type, &array, 1, &own), &same[1]); /* not copied */
    expect_ok(sized_array_of(&type, NULL, 3, &array));
    expect_ok(sized_array_of(&type, same, 0, &array));

    late[1].latest = 1;
    assert_int_equal(sized_array_of(&type, late, 2, &array), RLXVK_E_ATTR);
    old[2].struct_size = RLXVK_SIZE_OF(first_version);
    assert_int_equal(sized_array_of(&type, old, 3, &array), RLXVK_E_ATTR);
    assert_non_null(strstr(rlxvk_last_error(), "grown: struct_size of item 2 is 0x"));
}

static void items_are_filled_as_far_apart(void **state)
{
    const grown own = {1, 2, 0, 3};
    first_version old[3];
    newest late[2] = {RLXVK_SIZED(newest, 0), RLXVK_SIZED(newest, 0)};
    (void)state;
    memset(old, 0xa5, sizeof old);
    sized_array array = sized_room(&type, old, 2);
    for (size_t i = 0; i < 2; i++)
        sized_put(&type, &array, i, &own);
    assert_true(old[1].a == 1 && old[1].b == 2 && old[1].struct_size == 0);
    assert_int_equal(old[2].a, 0xa5a5a5a5a5a5a5a5u);
    array = sized_room(&type, late, 2);
    sized_put(&type, &array, 1, &own);
    assert_true(late[0].a == 0 && late[1].a == 1 && late[1].later == 3 && late[1].latest == 0);
    assert_int_equal(sized_room(&type, NULL, 2).count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_version_ends_behind_its_struct_size),
        cmocka_unit_test(what_a_caller_lacks_is_zero),
        cmocka_unit_test(a_caller_of_this_version_gives_all),
        cmocka_unit_test(a_later_caller_may_give_zeros_only),
        cmocka_unit_test(other_sizes_are_errors),
        cmocka_unit_test(no_more_is_written_than_the_caller_has),
        cmocka_unit_test(items_lie_as_far_apart_as_the_first_says),
        cmocka_unit_test(items_are_filled_as_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
