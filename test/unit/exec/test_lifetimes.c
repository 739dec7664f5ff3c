/*
 * An object keeps alive what it needs: objects may be destroyed in any order, and the others still
 * work. A failed call sets its object to NULL. In a forked child, calls do not hang.
 */
#include "program/context.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* A context, its graphs, and executables of every kind. */
typedef enum object {
    CONTEXT,
    GRAPH,
    SYMBOLIC, /* a graph with a symbol */
    PLAIN,    /* compiled from GRAPH */
    CLONE,    /* clone of PLAIN */
    SHARING,  /* shares params with PLAIN */
    FAMILY,   /* compiled from SYMBOLIC */
    RELATIVE, /* clone of FAMILY after it got a size */
    UNBOUND,  /* compiled from SYMBOLIC, never given a size */
    OBJECTS
} object;

typedef struct world {
    rlxvk_context *context;
    rlxvk_graph *graphs[2];
    rlxvk_executable *executables[OBJECTS];
    bool alive[OBJECTS];
} world;

static const float weight[2] = {3, 5};

/* y = x * w */
static rlxvk_graph *product(int64_t rows)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_mul(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, 2)),
                                    rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2))));
    return g;
}

static void expect_works(rlxvk_executable *e)
{
    const float x[2] = {2, 7};
    float y[2] = {0};
    expect_ok(rlxvk_run(e, &RLXVK_RUN_INPUT("x", x), 1, &RLXVK_RUN_OUTPUT(0, y), 1));
    assert_true(y[0] == 6 && y[1] == 35);
}

static void create(world *w)
{
    *w = (world){0};
    expect_ok(rlxvk_context_create(NULL, &w->context));
    w->graphs[0] = product(1);
    w->graphs[1] = product(rlxvk_symbol(RLXVK_BATCH));
    rlxvk_executable **e = w->executables;
    expect_ok(rlxvk_compile(w->context, w->graphs[0], NULL, &e[PLAIN]));
    expect_ok(rlxvk_set_param(e[PLAIN], "w", weight, 2));
    expect_ok(rlxvk_clone(e[PLAIN], &e[CLONE]));
    rlxvk_compile_options share = {.share_with = e[PLAIN]};
    expect_ok(rlxvk_compile(w->context, w->graphs[0], &share, &e[SHARING]));
    for (object o = FAMILY; o <= UNBOUND; o++)
        if (o != RELATIVE) {
            expect_ok(rlxvk_compile(w->context, w->graphs[1], NULL, &e[o]));
            expect_ok(rlxvk_set_param(e[o], "w", weight, 2));
        }
    expect_works(e[FAMILY]);
    expect_ok(rlxvk_clone(e[FAMILY], &e[RELATIVE]));
    memset(w->alive, true, sizeof w->alive);
}

static void destroy(world *w, object o)
{
    w->alive[o] = false;
    if (o == CONTEXT)
        rlxvk_context_destroy(w->context);
    else if (o <= SYMBOLIC)
        rlxvk_graph_destroy(w->graphs[o - GRAPH]);
    else
        rlxvk_executable_destroy(w->executables[o]);
}

static void destroy_in_order(const object order[OBJECTS])
{
    world w;
    create(&w);
    for (int i = 0; i < OBJECTS; i++) {
        destroy(&w, order[i]);
        for (object o = PLAIN; o < UNBOUND; o++)
            if (w.alive[o])
                expect_works(w.executables[o]);
    }
}

/* Destroys the objects in 36 random orders and in the reverse of each. So each pair is destroyed in
 * both orders. */
static void every_order_of_destruction(void **state)
{
    object order[OBJECTS], reverse[OBJECTS];
    bool before[OBJECTS][OBJECTS] = {{false}};
    random_source r = {1};
    (void)state;
    for (int i = 0; i < OBJECTS; i++)
        order[i] = (object)i;
    for (uint64_t round = 0; round < harness_rounds(36); round++) {
        for (uint32_t i = OBJECTS - 1; i > 0; i--) {
            uint32_t k = random_below(&r, i + 1);
            object kept = order[i];
            order[i] = order[k];
            order[k] = kept;
        }
        for (int i = 0; i < OBJECTS; i++)
            reverse[OBJECTS - 1 - i] = order[i];
        destroy_in_order(order);
        destroy_in_order(reverse);
        for (int i = 0; i < OBJECTS; i++)
            for (int k = 0; k < i; k++)
                before[order[k]][order[i]] = before[order[i]][order[k]] = true;
    }
    for (int i = 0; i < OBJECTS; i++)
        for (int k = 0; k < OBJECTS; k++)
            assert_true(i == k || before[i][k]);
}

/* ---- Failed calls ---- */

static void failed_calls_leave_null(void **state)
{
    rlxvk_context *c = NULL;
    rlxvk_graph *empty = NULL, *symbolic = product(rlxvk_symbol(RLXVK_BATCH));
    rlxvk_executable *e = (rlxvk_executable *)state;
    rlxvk_graph *bound = symbolic;
    rlxvk_device_info none = {.index = 1000000, .uuid = "no such device"};
    rlxvk_context *other = (rlxvk_context *)state;
    assert_int_not_equal(rlxvk_context_create(&(rlxvk_context_options){.device = &none}, &other),
                         RLXVK_OK);
    assert_null(other);
    expect_ok(rlxvk_context_create(NULL, &c));
    expect_ok(rlxvk_graph_create(&empty));
    assert_int_equal(rlxvk_compile(c, empty, NULL, &e), RLXVK_E_NO_OUTPUTS);
    assert_null(e);
    e = (rlxvk_executable *)state;
    assert_int_equal(rlxvk_compile(NULL, empty, NULL, &e), RLXVK_E_NULL);
    assert_null(e);
    e = (rlxvk_executable *)state;
    assert_int_equal(rlxvk_clone(NULL, &e), RLXVK_E_NULL);
    assert_null(e);
    assert_int_equal(rlxvk_graph_bind(symbolic, &(rlxvk_binding){RLXVK_BATCH, -2}, 1, &bound),
                     RLXVK_E_RANGE);
    assert_null(bound);
    rlxvk_graph_destroy(symbolic);
    rlxvk_graph_destroy(empty);
    rlxvk_context_destroy(c);
}

/* All contexts share one instance, because NVIDIA's driver fails in a process that has made about
 * ten. */
static void contexts_share_an_instance(void **state)
{
    rlxvk_context *first, *second;
    (void)state;
    expect_ok(rlxvk_context_create(NULL, &first));
    VkInstance instance = first->device->instance;
    rlxvk_context_destroy(first);
    for (int i = 0; i < 3; i++) {
        expect_ok(rlxvk_context_create(NULL, &second));
        assert_true(second->device->instance == instance);
        rlxvk_context_destroy(second);
    }
}

/* ---- Forks ---- */

/* Runs in the child. The exit status tells which check failed. */
static int try_in_child(world *w)
{
    const float x[2] = {2, 7};
    rlxvk_executable *e = w->executables[PLAIN], *fresh = NULL;
    if (rlxvk_run(e, &RLXVK_RUN_INPUT("x", x), 1, NULL, 0) != RLXVK_E_DEVICE_LOST)
        return 1;
    if (!strstr(rlxvk_last_error(), "fork first"))
        return 2;
    if (rlxvk_compile(w->context, w->graphs[0], NULL, &fresh) != RLXVK_E_DEVICE_LOST || fresh)
        return 3;
    if (rlxvk_clone(e, &fresh) != RLXVK_E_DEVICE_LOST || fresh)
        return 4;
    for (object o = CONTEXT; o < OBJECTS; o++)
        destroy(w, o);
    return 0;
}

static void a_forks_child_gets_a_status(void **state)
{
    world w;
    int how = 0;
    (void)state;
    create(&w);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(try_in_child(&w));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    for (object o = PLAIN; o < UNBOUND; o++)
        expect_works(w.executables[o]);
    for (object o = CONTEXT; o < OBJECTS; o++)
        destroy(&w, o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_destruction),
        cmocka_unit_test(failed_calls_leave_null),
        cmocka_unit_test(contexts_share_an_instance),
        cmocka_unit_test(a_forks_child_gets_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
