/*
 * Processes take items from one shared counter. Each finished item goes through the process's pipe
 * to the caller, and only the caller prints. The pipe ends when its process has ended. Then the
 * caller finds out how it ended and at which item, and starts another one if items are left. The
 * caller also kills a process that takes too long. See conform_pool.h.
 */
#include "conform/conform_pool.h"
#include "base/atomic.h"
#include "cli/clock.h"
#include "system/worker.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_PROCESSES = 64,
    OPEN_TRIES = 4, /* in turn, by processes that take the place of others */
    LOOK_MS = 100,  /* the caller looks at the clock so often */
    TRY_AGAIN_SECONDS = 1,
    ABANDON_SECONDS = 5 /* a killed process that does not end waits in the kernel's driver */
};

typedef enum phase { OPENING, BETWEEN, RUNNING, CLOSING } phase;

/* What a child tells. */
typedef struct worker {
    _Atomic int phase; /* enum phase */
    _Atomic size_t at; /* the running item, plus 1 */
    _Atomic double since;
    rlxvk_status status;
    char sentence[1024];
} worker;

typedef struct shared {
    _Atomic size_t next;
    worker workers[MOST_PROCESSES];
} shared;

/* What the caller knows of a process. */
typedef struct lane {
    double killed; /* when; 0: it was not */
} lane;

/* The state of a run in the caller's process. */
typedef struct pool_run {
    const conform_pool *pool;
    shared *shared;
    lane lanes[MOST_PROCESSES];
    worker_process processes[MOST_PROCESSES];
    size_t running, ended; /* processes; items that were heard of */
    bool opened;           /* some process could open */
    unsigned failed_opens; /* since one could */
    double start_after;
    rlxvk_status open_status, status; /* the first errors: of `open`, and others */
    char open_sentence[1024], sentence[1024];
} pool_run;

static bool is_stopped(const conform_pool *pool)
{
    return pool->stopped && pool->stopped();
}

/* ---- In a child ---- */

static void enter(worker *w, phase phase)
{
    w->since = clock_seconds();
    w->phase = phase;
}

/* What a child gets from the caller. */
typedef struct task {
    const conform_pool *pool;
    shared *shared;
} task;

static void run_items(void *argument, size_t index, intptr_t out)
{
    const task *t = argument;
    const conform_pool *pool = t->pool;
    shared *s = t->shared;
    worker *w = &s->workers[index];
    bool able = true;
    w->status = pool->open(pool->user);
    if (w->status != RLXVK_OK) {
        snprintf(w->sentence, sizeof w->sentence, "%s", rlxvk_last_error());
        return;
    }
    enter(w, BETWEEN);
    for (size_t item; able && !is_stopped(pool) && (item = s->next++) < pool->items;) {
        w->at = item + 1;
        enter(w, RUNNING);
        able = pool->run(pool->user, item);
        w->at = 0;
        enter(w, BETWEEN);
        if (!worker_tell(out, item))
            break;
    }
    enter(w, CLOSING);
    if (able)
        pool->close(pool->user);
}

/* ---- Starting and ending, in the caller's process ---- */

/* Keeps the first error. */
static void note_failure(pool_run *r, rlxvk_status status)
{
    if (r->status == RLXVK_OK) {
        r->status = status;
        snprintf(r->sentence, sizeof r->sentence, "%s", rlxvk_last_error());
    }
}

static rlxvk_status start(pool_run *r, size_t index)
{
    task t = {r->pool, r->shared};
    r->shared->workers[index] = (worker){.since = clock_seconds()};
    if (!worker_start(run_items, &t, index, &r->processes[index]))
        return status_fail(RLXVK_E_FILE, "--jobs: a process cannot be started");
    r->lanes[index] = (lane){0};
    r->running++;
    return RLXVK_OK;
}

/* Whether another process is to be started now. */
static bool wants_more(const pool_run *r)
{
    const conform_pool *pool = r->pool;
    size_t taken = MIN(r->shared->next, pool->items);
    bool gave_up = r->failed_opens >= (r->opened ? OPEN_TRIES : 1);
    return r->running < MIN(pool->processes, MOST_PROCESSES) && r->running < pool->items - taken &&
           !gave_up && r->status == RLXVK_OK && !is_stopped(pool) &&
           clock_seconds() >= r->start_after;
}

static void start_wanted(pool_run *r)
{
    for (size_t i = 0; i < MOST_PROCESSES && wants_more(r); i++) {
        rlxvk_status status = r->processes[i].process ? RLXVK_OK : start(r, i);
        if (status != RLXVK_OK)
            note_failure(r, status);
    }
}

static void note_open_failure(pool_run *r, rlxvk_status status, const char *sentence)
{
    r->failed_opens++;
    r->start_after = clock_seconds() + TRY_AGAIN_SECONDS;
    if (r->open_status == RLXVK_OK) {
        r->open_status = status;
        snprintf(r->open_sentence, sizeof r->open_sentence, "%s", sentence);
    }
}

static double limit_of(const conform_pool *pool, phase phase)
{
    if (phase == BETWEEN)
        return 0;
    return phase == RUNNING ? pool->item_seconds : pool->open_seconds;
}

/* Takes note of a process that has ended: whether it failed, and how it ended. */
static void report_end(pool_run *r, size_t index, bool failed, const char *ended)
{
    const worker *w = &r->shared->workers[index];
    char buffer[96] = "", sentence[160];
    text how = {buffer, sizeof buffer, 0};
    if (r->lanes[index].killed > 0) {
        failed = true;
        text_append(&how, "was killed, because it did not end within %g s",
                    limit_of(r->pool, (phase)w->phase));
    } else
        text_append(&how, "%s", ended);
    worker_forget(&r->processes[index]);
    r->running--;
    if (w->phase != OPENING) {
        r->opened = true;
        r->failed_opens = 0;
        r->open_status = RLXVK_OK;
    }
    if (w->at) {
        r->pool->crashed(r->pool->user, w->at - 1, buffer);
        r->ended++;
    } else if (w->phase == OPENING) {
        snprintf(sentence, sizeof sentence, "a process of --jobs %s, while it opened the device",
                 buffer);
        note_open_failure(r, failed ? RLXVK_E_FILE : w->status, failed ? sentence : w->sentence);
    } else if (failed) {
        note_failure(r, status_fail(RLXVK_E_FILE, "a process of --jobs %s, at no case", buffer));
    }
}

/* ---- Waiting ---- */

/* The pipe of a killed process stays open if the process waits in the kernel. */
static void look_at_clock(pool_run *r, size_t index)
{
    lane *l = &r->lanes[index];
    const worker *w = &r->shared->workers[index];
    double now = clock_seconds(), limit = limit_of(r->pool, (phase)w->phase);
    if (l->killed > 0 && now - l->killed > ABANDON_SECONDS) {
        report_end(r, index, true, "");
    } else if (l->killed == 0 && limit > 0 && now - w->since > limit) {
        l->killed = now;
        worker_kill(&r->processes[index]);
    }
}

static void hear(pool_run *r, size_t index)
{
    size_t item;
    char buffer[96] = "";
    text how = {buffer, sizeof buffer, 0};
    if (worker_hear(&r->processes[index], &item)) {
        r->pool->done(r->pool->user, item);
        r->ended++;
        if (is_stopped(r->pool)) /* because children may not have received the signal */
            r->shared->next = r->pool->items;
        return;
    }
    bool failed = worker_join(&r->processes[index], &how);
    report_end(r, index, failed, buffer);
}

static void wait_for_some(pool_run *r)
{
    bool ready[MOST_PROCESSES];
    worker_wait(r->processes, MOST_PROCESSES, LOOK_MS, ready);
    for (size_t i = 0; i < MOST_PROCESSES; i++)
        if (ready[i])
            hear(r, i);
    for (size_t i = 0; i < MOST_PROCESSES; i++)
        if (r->processes[i].process)
            look_at_clock(r, i);
}

static bool goes_on(const pool_run *r)
{
    bool waits = r->opened && r->failed_opens && r->failed_opens < OPEN_TRIES &&
                 r->status == RLXVK_OK && r->shared->next < r->pool->items && !is_stopped(r->pool);
    return r->running || waits || wants_more(r);
}

static rlxvk_status run_in_processes(pool_run *r)
{
    while (goes_on(r)) {
        start_wanted(r);
        wait_for_some(r);
    }
    size_t taken = MIN(r->shared->next, r->pool->items);
    if (r->status != RLXVK_OK)
        return status_fail(r->status, "%s", r->sentence);
    if (is_stopped(r->pool))
        return RLXVK_OK;
    if (r->open_status != RLXVK_OK && taken < r->pool->items)
        return status_fail(r->open_status, "%s", r->open_sentence);
    if (r->ended != r->pool->items)
        return status_fail(RLXVK_E_FILE, "--jobs: %zu cases are not heard of",
                           r->pool->items - r->ended);
    return RLXVK_OK;
}

static rlxvk_status run_here(const conform_pool *pool)
{
    rlxvk_status status;
    TRY(pool->open(pool->user));
    for (size_t i = 0; i < pool->items && !is_stopped(pool); i++) {
        bool able = pool->run(pool->user, i);
        pool->done(pool->user, i);
        if (able)
            continue;
        pool->close(pool->user);
        TRY(pool->open(pool->user));
    }
error:
    return status;
}

rlxvk_status conform_pool_run(const conform_pool *pool)
{
    if (pool->processes == 0)
        return run_here(pool);
    pool_run *r = memory_zeroed(1, sizeof *r);
    shared *s = worker_memory(sizeof *s);
    rlxvk_status status = r && s ? RLXVK_OK : status_fail_memory("processes");
    if (s)
        worker_enter(run_items, &(task){pool, s});
    if (status == RLXVK_OK) {
        r->pool = pool;
        r->shared = s;
        status = run_in_processes(r);
    }
    worker_memory_free(s, sizeof *s);
    memory_free(r);
    return status;
}
