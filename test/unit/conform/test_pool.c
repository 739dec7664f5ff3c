/*
 * Cases that run in other processes. Each case runs once. If a process crashes, hangs or can do no
 * more, only its own case is lost, and another process takes its place.
 */
#include "conform/conform_pool.h"
#include "system/worker.h"

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
    size_t hangs, last;  /* the items that never end, and after which a process can do no more */
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

static bool run(void *user, size_t item)
{
    work *w = user;
    w->common->by[item] = getpid();
    w->common->runs[item]++;
    if (item == w->killed || (w->every && item % w->every == 0))
        raise(SIGKILL);
    if (item == w->left)
        _exit(7);
    while (item == w->hangs)
        pause();
    return item != w->last;
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
    work w = {.common = worker_memory(sizeof(in_common)),
              .killed = ITEMS,
              .left = ITEMS,
              .hangs = ITEMS,
              .last = ITEMS};
    assert_non_null(w.common);
    return w;
}

static rlxvk_status share(work *w, size_t items, size_t processes)
{
    const conform_pool pool = {.user = w,
                               .items = items,
                               .processes = processes,
                               .item_seconds = 0.5,
                               .open_seconds = 0.5,
                               .open = open_work,
                               .run = run,
                               .close = close_work,
                               .done = done,
                               .crashed = crashed};
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
    for (size_t processes = 0; processes <= 5; processes += processes ? 2 : 1) {
        work w = new_work();
        assert_int_equal(share(&w, ITEMS, processes), RLXVK_OK);
        expect_all(&w, 0);
        assert_in_range(w.common->opened, 1, MAX(processes, 1)); /* the first may be quick */
        assert_int_equal(w.common->closed, processes ? w.common->opened : 0);
        assert_true((w.common->by[0] == getpid()) == (processes == 0));
        worker_memory_free(w.common, sizeof *w.common);
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
    worker_memory_free(w.common, sizeof *w.common);
    w = new_work();
    w.left = 101;
    assert_int_equal(share(&w, ITEMS, 2), RLXVK_OK);
    expect_all(&w, 1);
    assert_string_equal(w.how, "ended with exit status 7");
    worker_memory_free(w.common, sizeof *w.common);
}

/* If more processes crash than there were, new ones must take the rest. */
static void crashes_do_not_end_the_work(void **state)
{
    (void)state;
    for (size_t processes = 1; processes <= 3; processes += 2) {
        work w = new_work();
        w.every = 10;
        assert_int_equal(share(&w, ITEMS, processes), RLXVK_OK);
        expect_all(&w, ITEMS / 10);
        assert_true(w.common->opened >= ITEMS / 10);
        worker_memory_free(w.common, sizeof *w.common);
    }
}

/* A process that hangs is killed. The others go on meanwhile. */
static void a_hang_fails_its_own_item(void **state)
{
    (void)state;
    for (size_t processes = 1; processes <= 2; processes++) {
        work w = new_work();
        w.hangs = 23;
        assert_int_equal(share(&w, ITEMS, processes), RLXVK_OK);
        expect_all(&w, 1);
        assert_int_equal(w.crashed[23], 1);
        assert_int_equal(kill(w.common->by[23], 0), -1);
        assert_string_equal(w.how, "was killed, because it did not end within 0.5 s");
        assert_true(w.common->opened == 2 || processes == 2);
        worker_memory_free(w.common, sizeof *w.common);
    }
}

/* A process that lost its device ends after its item, without closing. */
static void a_process_that_can_do_no_more_is_replaced(void **state)
{
    (void)state;
    for (size_t processes = 0; processes <= 2; processes++) {
        work w = new_work();
        w.last = 31;
        assert_int_equal(share(&w, ITEMS, processes), RLXVK_OK);
        expect_all(&w, 0);
        assert_true(w.common->opened == 2 || processes == 2);
        assert_int_equal(w.common->closed, processes ? w.common->opened - 1 : 1);
        assert_true((w.common->by[30] == w.common->by[32]) == (processes == 0) || processes == 2);
        worker_memory_free(w.common, sizeof *w.common);
    }
}

/* After a crash, a driver may take a while until it can open the device again. */
static rlxvk_status refuse_the_second(void *user)
{
    work *w = user;
    return __atomic_fetch_add(&w->common->opened, 1, __ATOMIC_SEQ_CST) == 1 ? refuse(user)
                                                                            : RLXVK_OK;
}

static rlxvk_status hang_later(void *user)
{
    work *w = user;
    while (__atomic_fetch_add(&w->common->opened, 1, __ATOMIC_SEQ_CST) > 0)
        pause();
    return RLXVK_OK;
}

static void opening_again_is_tried_again(void **state)
{
    work w = new_work();
    conform_pool pool = {.user = &w,
                         .items = ITEMS,
                         .processes = 1,
                         .open = refuse_the_second,
                         .run = run,
                         .close = close_work,
                         .done = done,
                         .crashed = crashed};
    (void)state;
    w.killed = 40;
    assert_int_equal(conform_pool_run(&pool), RLXVK_OK);
    expect_all(&w, 1);
    assert_int_equal(w.common->opened, 3);
    worker_memory_free(w.common, sizeof *w.common);
    w = new_work();
    w.killed = 40;
    pool.open = hang_later;
    pool.open_seconds = 0.01;
    assert_int_equal(conform_pool_run(&pool), RLXVK_E_FILE);
    assert_string_equal(rlxvk_last_error(),
                        "a process of --jobs was killed, because it did not end within 0.01 s, "
                        "while it opened the device");
    assert_int_equal(w.common->runs[40], 1);
    assert_int_equal(w.common->runs[41], 0);
    worker_memory_free(w.common, sizeof *w.common);
}

static void what_cannot_open_is_told(void **state)
{
    work w = new_work();
    (void)state;
    for (size_t processes = 0; processes <= 2; processes++) {
        const conform_pool pool = {.user = &w,
                                   .items = ITEMS,
                                   .processes = processes,
                                   .open = refuse,
                                   .run = run,
                                   .close = close_work,
                                   .done = done,
                                   .crashed = crashed};
        assert_int_equal(conform_pool_run(&pool), RLXVK_E_VULKAN);
        assert_string_equal(rlxvk_last_error(), "no device today");
    }
    assert_int_equal(w.common->runs[0], 0);
    worker_memory_free(w.common, sizeof *w.common);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_runs_once),
        cmocka_unit_test(a_crash_fails_its_own_item),
        cmocka_unit_test(crashes_do_not_end_the_work),
        cmocka_unit_test(a_hang_fails_its_own_item),
        cmocka_unit_test(a_process_that_can_do_no_more_is_replaced),
        cmocka_unit_test(opening_again_is_tried_again),
        cmocka_unit_test(what_cannot_open_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
