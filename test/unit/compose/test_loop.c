/* Long loops, which replay a recorded body: bit for bit what unrolling gives, on random bodies, in
 * all modes of execution; as much memory and as many commands however long they are. */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define UNROLLED UINT64_MAX
#define REPLAYED 1

static rlxvk_graph *new_graph(uint64_t limit)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_set_unroll_limit(g, limit);
    return g;
}

static rlxvk_tensor scalar(rlxvk_graph *g, float v)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &v, sizeof v);
}

static uint32_t loops_of(const rlxvk_graph *g)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        count += graph_node(g, id)->op == OP_loop_end;
    return count;
}

/* ---- Random bodies ---- */

#define ROWS    3
#define COLUMNS 4

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t roll(dice *d, uint32_t below)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % below;
}

static rlxvk_tensor param(rlxvk_graph *g, const char *name)
{
    uint32_t id = op_find_param(g, name);
    return id != NODE_NONE ? tensor_of(g, id)
                           : rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(COLUMNS, COLUMNS));
}

/* Of the values so far, all of 3x4 and about as large as the inputs. */
static rlxvk_tensor random_node(rlxvk_graph *g, dice *d, const rlxvk_tensor *values, size_t count)
{
    rlxvk_tensor a = values[roll(d, (uint32_t)count)], b = values[roll(d, (uint32_t)count)];
    int32_t axis = (int32_t)roll(d, 2);
    switch (roll(d, 12)) {
    case 0:
        return rlxvk_sin(g, rlxvk_add(g, a, b));
    case 1:
        return rlxvk_tanh(g, rlxvk_mul(g, a, b));
    case 2:
        return rlxvk_sub(g, a, rlxvk_reduce_mean(g, b, &axis, 1, true));
    case 3:
        return rlxvk_softmax(g, a, axis);
    case 4:
        return rlxvk_where(g, rlxvk_lt(g, a, b), a, rlxvk_neg(g, b));
    case 5: return rlxvk_tanh(g, rlxvk_matmul(g, a, param(g, roll(d, 2) ? "w" : "v")));
    case 6:
        return rlxvk_reverse(g, a, &axis, 1);
    case 7:
        return rlxvk_narrow(g, rlxvk_concat(g, (rlxvk_tensor[]){a, b}, 2, 0), 0, roll(d, ROWS + 1),
                            ROWS);
    case 8:
        return rlxvk_cumsum(g, rlxvk_mul(g, a, scalar(g, 0.5f)), axis, false);
    case 9:
        return rlxvk_add(g, a, rlxvk_rng_uniform_like(g, b, -1, 1, NULL));
    case 10:
        return rlxvk_reshape(g, rlxvk_reshape(g, a, RLXVK_SHAPE(2, 6)), RLXVK_SHAPE(ROWS, COLUMNS));
    default:
        return rlxvk_sin(g, rlxvk_fma(g, a, b, rlxvk_add(g, a, scalar(g, 0.25f))));
    }
}

static rlxvk_tensor matrix(rlxvk_graph *g, const char *name)
{
    return rlxvk_input(g, name, RLXVK_F32, RLXVK_SHAPE(ROWS, COLUMNS));
}

typedef struct scheme {
    uint64_t seed;
    size_t broadcasts, sequences, carries;
    int64_t length, checkpoints;
    bool save, is_while, nested, random;
} scheme;

static rlxvk_tensor build_scan(rlxvk_graph *g, const scheme *s, const rlxvk_tensor *given,
                               uint64_t limit, bool inner);

/* The same whatever the limit; the condition lets about so many rounds pass. */
static rlxvk_graph *make_body(const scheme *s, size_t inputs, size_t outputs, uint64_t limit,
                              bool nest)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    dice d = {s->seed * 2 + nest};
    rlxvk_graph *g = new_graph(limit);
    rlxvk_tensor values[32];
    size_t count = 0, nodes = 2 + roll(&d, 7);
    while (count < inputs) {
        values[count] = matrix(g, names[count]);
        count++;
    }
    for (size_t i = 0; i < nodes; i++, count++)
        values[count] = random_node(g, &d, values, count);
    if (nest) {
        values[count] = build_scan(g, s, values, limit, true);
        count++;
    }
    for (size_t i = 0; i < outputs; i++) /* some are inputs as they are, other carries among them */
        rlxvk_graph_output(g, values[i == 0 ? count - 1 : roll(&d, (uint32_t)count)]);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static rlxvk_tensor build_scan(rlxvk_graph *g, const scheme *s, const rlxvk_tensor *given,
                               uint64_t limit, bool inner)
{
    rlxvk_scan_options o = {.length = s->length,
                            .broadcast_count = s->broadcasts,
                            .save_trajectory = s->save,
                            .checkpoints = s->checkpoints};
    size_t count = 1 + s->broadcasts + (inner ? 0 : s->sequences);
    if (inner)
        o = (rlxvk_scan_options){.length = 3, .broadcast_count = s->broadcasts};
    rlxvk_graph *body = make_body(s, count, 1, limit, s->nested && !inner);
    rlxvk_tensor y = rlxvk_scan(g, body, given, count, &o);
    rlxvk_graph_destroy(body);
    return y;
}

static void build_while(rlxvk_graph *g, const scheme *s, rlxvk_tensor *values, uint64_t limit)
{
    rlxvk_graph *condition = new_graph(limit);
    rlxvk_graph *body = make_body(s, s->carries, s->carries - 1, limit, s->nested);
    rlxvk_tensor i = rlxvk_input(condition, "i", RLXVK_F32, RLXVK_SCALAR);
    for (size_t k = 1; k < s->carries; k++)
        (void)matrix(condition, k == 1 ? "p" : k == 2 ? "q" : "r");
    rlxvk_graph_output(condition, rlxvk_lt(condition, i, scalar(condition, (float)s->checkpoints)));
    rlxvk_graph *counted = new_graph(limit); /* a count before the body's values */
    rlxvk_tensor in[8], out[8];
    in[0] = rlxvk_input(counted, "i", RLXVK_F32, RLXVK_SCALAR);
    for (size_t k = 1; k < s->carries; k++)
        in[k] = matrix(counted, k == 1 ? "p" : k == 2 ? "q" : "r");
    in[s->carries] = rlxvk_sin(counted, in[1]);
    rlxvk_call(counted, body, in + 1, s->carries, out, s->carries - 1);
    rlxvk_graph_output(counted, rlxvk_add(counted, in[0], scalar(counted, 1)));
    for (size_t k = 1; k < s->carries; k++)
        rlxvk_graph_output(counted, out[k - 1]);
    rlxvk_while(g, condition, counted, (uint32_t)s->length, values, s->carries, values);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(counted);
    rlxvk_graph_destroy(body);
}

static rlxvk_graph *build(const scheme *s, uint64_t limit)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5"};
    rlxvk_graph *g = new_graph(limit);
    rlxvk_tensor v[6];
    size_t fixed = 1 + s->broadcasts, count = fixed + s->sequences;
    for (size_t i = 0; i < 6; i++)
        v[i] = i >= fixed && i < count && !s->is_while
                   ? rlxvk_input(g, names[i], RLXVK_F32, RLXVK_SHAPE(s->length, ROWS, COLUMNS))
                   : rlxvk_mul(g, matrix(g, names[i]), scalar(g, 0.5f));
    if (s->is_while) {
        v[0] = scalar(g, 0);
        build_while(g, s, v, limit);
        for (size_t k = 0; k < s->carries; k++)
            rlxvk_graph_output(g, k % 2 ? rlxvk_add(g, v[k], v[1]) : v[k]);
    } else {
        rlxvk_tensor y = build_scan(g, s, v, limit, false);
        rlxvk_graph_output(g, rlxvk_mul(g, y, scalar(g, 2)));
        if (roll(&(dice){s->seed}, 2))
            rlxvk_graph_output(g, y);
    }
    /* What draws behind the loop has the key that it would have behind all its rounds. */
    rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(2), 0, 1, NULL));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static scheme random_scheme(uint64_t seed)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 5, 8, 17};
    dice d = {seed ^ 0x9E3779B97F4A7C15u};
    scheme s = {.seed = seed, .is_while = roll(&d, 3) == 0, .nested = roll(&d, 4) == 0};
    s.broadcasts = roll(&d, 3);
    s.sequences = roll(&d, 3);
    s.carries = 2 + roll(&d, 3);
    s.length = lengths[roll(&d, 7)];
    s.save = roll(&d, 2);
    /* Of a while, when the condition fails. */
    s.checkpoints = s.is_while           ? roll(&d, 20)
                    : s.save && s.length ? roll(&d, (uint32_t)s.length + 1)
                                         : 0;
    return s;
}

static float *run_graph(const rlxvk_graph *g, const rlxvk_compile_options *o, uint64_t seed,
                        size_t *count)
{
    rlxvk_executable *e = NULL, *twin = NULL;
    expect_ok(rlxvk_compile(shared_context, g, o, &e));
    float *first = run_seeded(e, g, seed, false, count);
    expect_ok(rlxvk_clone(e, &twin));
    size_t again;
    float *second = run_seeded(twin, g, seed, false, &again);
    assert_int_equal(again, *count);
    assert_memory_equal(first, second, again * sizeof *first);
    free(second);
    rlxvk_executable_destroy(twin);
    rlxvk_executable_destroy(e);
    return first;
}

static void compare(const scheme *s, const char *mode, const float *want, const float *got,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&want[i], &got[i], sizeof *want) != 0)
            fail_msg("seed %llu, %s of length %lld: element %zu of %zu is %g, unrolled %g (%s)",
                     (unsigned long long)s->seed, s->is_while ? "while" : "scan",
                     (long long)s->length, i, count, (double)got[i], (double)want[i], mode);
}

static void check_mode(const scheme *s, const rlxvk_graph *unrolled, const rlxvk_graph *replayed,
                       const rlxvk_compile_options *o, const char *mode)
{
    size_t wanted, count;
    float *want = run_graph(unrolled, o, s->seed, &wanted);
    float *got = run_graph(replayed, o, s->seed, &count);
    assert_int_equal(count, wanted);
    compare(s, mode, want, got, count);
    free(want);
    free(got);
}

static void test_random_bodies(void **state)
{
    static const struct {
        const char *name;
        rlxvk_compile_options options;
    } modes[] = {
        {"default", {.check_plan = RLXVK_ON}},
        {"uncached", {.check_plan = RLXVK_ON, .cached = RLXVK_OFF}},
        {"full barriers", {.check_plan = RLXVK_ON, .full_barrier = RLXVK_ON}},
        {"no reuse", {.check_plan = RLXVK_ON, .reuse_memory = RLXVK_OFF}},
        {"program order", {.check_plan = RLXVK_ON, .reorder = RLXVK_OFF}},
        {"keep all", {.check_plan = RLXVK_ON, .keep_all = RLXVK_ON}},
        {"profiled", {.check_plan = RLXVK_ON, .profile = RLXVK_ON}},
        {"host", {.check_plan = RLXVK_ON, .force_host = RLXVK_ON}},
    };
    const char *seeds = getenv("RLXVK_TEST_LOOP_SEEDS");
    uint64_t most = seeds ? strtoull(seeds, NULL, 10) : 120;
    size_t replays = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= most; seed++) {
        scheme s = random_scheme(seed);
        rlxvk_graph *unrolled = build(&s, UNROLLED), *replayed = build(&s, REPLAYED);
        assert_int_equal(loops_of(unrolled), 0);
        replays += loops_of(replayed);
        size_t mode = seed % 2 ? 0 : seed / 2 % (sizeof modes / sizeof *modes);
        check_mode(&s, unrolled, replayed, &modes[mode].options, modes[mode].name);
        rlxvk_graph_destroy(unrolled);
        rlxvk_graph_destroy(replayed);
    }
    print_message("%zu loops\n", replays);
    assert_true(replays * 2 > most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_bodies),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
