/*
 * The division of columns among teams, on made-up devices. Every column must belong to a team,
 * workgroups may not be larger than asked for, and the compute units must have about the same
 * amount of work.
 */
#include "base/base.h"
#include "op/matmul/matvec_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static device_profile gpu(uint32_t units, uint32_t subgroup)
{
    return (device_profile){.kind = RLXVK_DEVICE_DISCRETE,
                            .max_workgroup_invocations = 1024,
                            .max_shuffle_invocations = 1024,
                            .shared_memory_bytes = 49152,
                            .subgroup_shuffle = true,
                            .subgroup_size = subgroup,
                            .compute_units = units};
}

static void work_is_even(void **state)
{
    (void)state;
    device_profile p = gpu(132, 32);
    team_division d = matmul_divide_teams(&(team_request){64, 28672, 2, 512, 1}, &p);
    assert_int_equal(d.team, 64);
    assert_int_equal(d.threads, 512);
    assert_int_equal(d.subgroups, 16);
    assert_int_equal(d.groups, 132);
    assert_int_equal(d.rounds, 14);
    d = matmul_divide_teams(&(team_request){64, 1024, 2, 512, 1},
                            &p); /* small workgroups, so that all units get one */
    assert_int_equal(d.threads, 256);
    assert_int_equal(d.groups, 128);
    assert_int_equal(d.rounds, 1);
    d = matmul_divide_teams(&(team_request){172, 11008, 2, 512, 1}, &p); /* whole subgroups */
    assert_int_equal(d.team, 192);
    assert_int_equal(d.threads, 384);
    d = matmul_divide_teams(&(team_request){1000, 4096, 2, 512, 1}, &p);
    assert_true(d.team > 512);
}

static void all_columns_are_made(void **state)
{
    (void)state;
    static const uint64_t columns[] = {0, 1, 2, 3, 7, 100, 1024, 4097, 128256, 1 << 20};
    static const uint64_t lanes[] = {0, 1, 5, 64, 100, 224, 512};
    static const uint32_t units[] = {0, 1, 2, 20, 132};
    for (size_t i = 0; i < ARRAY_COUNT(columns) * ARRAY_COUNT(lanes) * ARRAY_COUNT(units); i++) {
        uint64_t n = columns[i % 10], row = lanes[i / 10 % 7];
        device_profile p = gpu(units[i / 70], i % 2 ? 32 : 4);
        team_request r = {row, n, i % 3 ? 2 : 4, 512, 1 + i % 2};
        team_division d = matmul_divide_teams(&r, &p);
        assert_int_equal(d.team % p.subgroup_size, 0);
        assert_true(d.team >= row && d.threads <= r.threads && d.threads % d.team == 0);
        assert_int_equal(d.subgroups * p.subgroup_size, d.threads);
        assert_true(d.rounds >= 1 && d.rounds <= TEAMS_MOST_ROUNDS && d.groups >= 1);
        assert_true(d.groups * d.rounds * (d.threads / d.team) * r.columns >= n);
        assert_true(d.groups <= MAX(divide_up(n, r.columns), 1));
        assert_true(matmul_team_bytes(&d, r.columns) <= 20 * 1024 || p.subgroup_size == 4);
    }
}

static void rows_of_projections(void **state)
{
    (void)state;
    device_profile p = gpu(132, 32), software = p;
    matvec_shape s = {4096, 4096, true};
    const matvec_class *c = matvec_choose(&s, &p, VARIANT_NONE);
    assert_int_equal(matvec_held(c, &s), 4);
    assert_int_equal(matvec_divide(c, &s, &p).team, 128);
    assert_string_equal(c->row.name, "held");
    s.k = 14336; /* more invocations */
    c = matvec_choose(&s, &p, VARIANT_NONE);
    assert_string_equal(c->row.name, "held_long");
    assert_int_equal(matvec_held(c, &s), 4);
    assert_int_equal(matvec_divide(c, &s, &p).team, 448);
    s.k = 28672; /* more words in each invocation */
    assert_ptr_equal(matvec_choose(&s, &p, VARIANT_NONE), c);
    assert_int_equal(matvec_held(c, &s), 8);
    assert_int_equal(matvec_divide(c, &s, &p).team, 448);
    s.k = 57344;
    assert_string_equal(matvec_choose(&s, &p, VARIANT_NONE)->row.name, "quads");
    s.k = 4096, s.aligned = false;
    assert_string_equal(matvec_choose(&s, &p, VARIANT_NONE)->row.name, "quads");
    s.aligned = true, software.kind = RLXVK_DEVICE_CPU;
    assert_string_equal(matvec_choose(&s, &software, VARIANT_NONE)->row.name, "quads");
    p.subgroup_shuffle = false;
    assert_string_equal(matvec_choose(&s, &p, 0)->row.name, "quads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_even),
        cmocka_unit_test(all_columns_are_made),
        cmocka_unit_test(rows_of_projections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
