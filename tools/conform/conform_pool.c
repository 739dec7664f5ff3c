/*
 * Processes take items from one shared counter. Each finished item goes through a pipe to the
 * caller, and only the caller prints. The pipe ends when the last process has ended. Then the
 * caller finds out which processes crashed, and at which items. If items are left but no process, a
 * new batch of processes takes them. See conform_pool.h.
 */
#include "conform/conform_pool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64 };

typedef struct worker {
    pid_t process;
    _Atomic size_t at; /* the running item, plus 1 */
    rlxvk_status status;
    char sentence[1024];
} worker;

typedef struct shared {
    _Atomic size_t next;
    worker workers[MOST_PROCESSES];
} shared;

void *conform_pool_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void conform_pool_release(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

static bool is_stopped(const conform_pool *pool)
{
    return pool->stopped && pool->stopped();
}

/* ---- In a child ---- */

static void run_items(const conform_pool *pool, shared *s, worker *w, int out)
{
    w->status = pool->open(pool->user);
    if (w->status != RLXVK_OK) {
        snprintf(w->sentence, sizeof w->sentence, "%s", rlxvk_last_error());
        return;
    }
    for (size_t item; !is_stopped(pool) && (item = atomic_fetch_add(&s->next, 1)) < pool->items;) {
        w->at = item + 1;
        pool->run(pool->user, item);
        w->at = 0;
        if (write(out, &item, sizeof item) != sizeof item) /* atomic, because it is so small */
            break;
    }
    pool->close(pool->user);
}

/* ---- In the caller's process ---- */

static bool start(const conform_pool *pool, shared *s, worker *w, const int ends[2])
{
    *w = (worker){0}; /* before a child exists that writes it */
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        run_items(pool, s, w, ends[1]);
        fflush(NULL);
        _exit(EXIT_SUCCESS); /* not exit(): the child must not run the caller's exit handlers */
    }
    w->process = process;
    return process > 0;
}

/* Returns whether the process died during an item. */
static bool report_end(const conform_pool *pool, worker *w, rlxvk_status *status)
{
    char how[96];
    int result = 0;
    while (waitpid(w->process, &result, 0) < 0)
        continue;
    if (WIFSIGNALED(result))
        snprintf(how, sizeof how, "ended by signal %d (%s)", WTERMSIG(result),
                 strsignal(WTERMSIG(result)));
    else
        snprintf(how, sizeof how, "ended with exit status %d", WEXITSTATUS(result));
    if (w->at)
        pool->crashed(pool->user, w->at - 1, how);
    else if (*status == RLXVK_OK && w->status != RLXVK_OK)
        *status = status_fail(w->status, "%s", w->sentence);
    else if (*status == RLXVK_OK && result != 0)
        *status = status_fail(RLXVK_E_FILE, "a process of --jobs %s, at no case", how);
    return w->at;
}

/* Starts as many processes as allowed and waits until all have ended. */
static rlxvk_status run_lot(const conform_pool *pool, shared *s)
{
    int ends[2];
    size_t started = 0, first = s->next, ended = 0, item;
    size_t wanted = MIN(MIN(pool->processes, MOST_PROCESSES), pool->items - first);
    rlxvk_status status = RLXVK_OK;
    if (pipe(ends))
        return status_fail(RLXVK_E_FILE, "pipe: none to be had");
    fflush(NULL);
    while (started < wanted && start(pool, s, &s->workers[started], ends))
        started++;
    close(ends[1]);
    while (started && read(ends[0], &item, sizeof item) == sizeof item) {
        pool->done(pool->user, item);
        ended++;
        if (is_stopped(pool)) /* because children may not have received the signal */
            s->next = pool->items;
    }
    close(ends[0]);
    for (size_t i = 0; i < started; i++)
        ended += report_end(pool, &s->workers[i], &status);
    if (status == RLXVK_OK && !is_stopped(pool) &&
        (ended == 0 || ended != MIN(s->next, pool->items) - first))
        status = status_fail(RLXVK_E_FILE, "--jobs: of %zu processes, %zu cases are not heard of",
                             started, MIN(s->next, pool->items) - first - ended);
    return status;
}

rlxvk_status conform_pool_run(const conform_pool *pool)
{
    rlxvk_status status = RLXVK_OK;
    if (pool->processes <= 1) {
        TRY(pool->open(pool->user));
        for (size_t i = 0; i < pool->items && !is_stopped(pool); i++) {
            pool->run(pool->user, i);
            pool->done(pool->user, i);
        }
        return RLXVK_OK;
    }
    shared *s = conform_pool_memory(sizeof *s);
    if (!s)
        return status_fail_memory("processes");
    while (status == RLXVK_OK && s->next < pool->items && !is_stopped(pool))
        status = run_lot(pool, s);
    conform_pool_release(s, sizeof *s);
error:
    return status;
}
