/*
 * Cases that run in several processes. Each case runs once, and if a process crashes, only its own
 * case fails.
 */
#include "conform/conform_pool.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { ITEMS = 200 };

typedef struct in_common {
    int runs[ITEMS], opened, closed;
    pid_t by[ITEMS];
} in_common;

typedef struct work {
    in_common *common;
    size_t killed, left; /* the items that end their process by a signal, by exiting */
    size_t every;        /* or each every-th item does */
    int done[ITEMS], crashed[ITEMS];
    char how[96];
} work;

static rlxvk_status open_work(void *user)
{
    work *w = user;
    __atomic_fetch_add(&w->common->opened, 1, __ATOMIC_SEQ_CST);
    return RLXVK_OK;
}

static rlxvk_status refuse(void *user)
{
    (void)user;
    return status_fail(RLXVK_E_VULKAN, "no device today");
}

static void run(void *user, size_t item)
{
    work *w = user;
    w->common->by[item] = getpid();
    w->common->runs[item]++;
    if (item == w->killed || (w->every && item % w->every == 0))
        raise(SIGKILL);
    if (item == w->left)
        _exit(7);
}

static void close_work(void *user)
{
    work *w = user;
    __atomic_fetch_add(&w->common->closed, 1, __ATOMIC_SEQ_CST);
}

static void done(void *user, size_t item)
{
    ((work *)user)->done[item]++;
}

static void crashed(void *user, size_t item, const char *how)
{
    work *w = user;
    w->crashed[item]++;
    snprintf(w->how, sizeof w->how, "%s", how);
}

static work new_work(void)
{
    work w = {conform_pool_memory(sizeof(in_common)), ITEMS, ITEMS, 0, {0}, {0}, ""};
    assert_non_null(w.common);
    return w;
}

static rlxvk_status share(work *w, size_t items, size_t processes)
{
    const conform_pool pool = {w, items, processes, open_work, run, close_work, done, crashed};
    return conform_pool_run(&pool);
}

static void expect_all(const work *w, size_t crashes)
{
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(w->common->runs[i], 1);
        assert_int_equal(w->done[i] + w->crashed[i], 1);
        crashes -= (size_t)w->crashed[i];
    }
    assert_int_equal(crashes, 0);
}

static void each_item_runs_once(void **state)
{
    (void)state;
    for (size_t processes = 1; processes <= 5; processes += 2) {
        work w = new_work();
        assert_int_equal(share(&w, ITEMS, processes), RLXVK_OK);
        expect_all(&w, 0);
        assert_int_equal(w.common->opened, processes);
        assert_int_equal(w.common->closed, processes == 1 ? 0 : processes);
        assert_true((w.common->by[0] == getpid()) == (processes == 1));
        conform_pool_release(w.common, sizeof *w.common);
    }
}

static void a_crash_fails_its_own_item(void **state)
{
    work w = new_work();
    (void)state;
    w.killed = 17;
    assert_int_equal(share(&w, ITEMS, 3), RLXVK_OK);
    expect_all(&w, 1);
    assert_int_equal(w.crashed[17], 1);
    assert_non_null(strstr(w.how, "ended by signal 9"));
    conform_pool_release(w.common, sizeof *w.common);
    w = new_work();
    w.left = 101;
    assert_int_equal(share(&w, ITEMS, 2), RLXVK_OK);
    expect_all(&w, 1);
    assert_string_equal(w.how, "ended with exit status 7");
    conform_pool_release(w.common, sizeof *w.common);
}

/* If more processes crash than there were, new ones must take the rest. */
static void crashes_do_not_end_the_work(void **state)
{
    work w = new_work();
    (void)state;
    w.every = 10;
    assert_int_equal(share(&w, ITEMS, 3), RLXVK_OK);
    expect_all(&w, ITEMS / 10);
    conform_pool_release(w.common, sizeof *w.common);
}

static void what_cannot_open_is_told(void **state)
{
    work w = new_work();
    (void)state;
    for (size_t processes = 1; processes <= 2; processes++) {
        const conform_pool pool = {&w, ITEMS, processes, refuse, run, close_work, done, crashed};
        assert_int_equal(conform_pool_run(&pool), RLXVK_E_VULKAN);
        assert_string_equal(rlxvk_last_error(), "no device today");
    }
    assert_int_equal(w.common->runs[0], 0);
    conform_pool_release(w.common, sizeof *w.common);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_runs_once),
        cmocka_unit_test(a_crash_fails_its_own_item),
        cmocka_unit_test(crashes_do_not_end_the_work),
        cmocka_unit_test(what_cannot_open_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
