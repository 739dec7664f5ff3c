/*
 * Processes that the program starts: workers, which share memory with it and run a part of its
 * work, and other commands.
 */
#ifndef RLXVK_WORKER_H
#define RLXVK_WORKER_H

#include "base/system.h"

/* ---- Workers ---- */

/* Returns zeroed memory that workers share with the caller. */
void *worker_memory(size_t bytes);
void worker_memory_free(void *memory, size_t bytes);

/* Zeroed: no process. */
typedef struct worker_process {
    intptr_t process, in; /* `in`: what it tells is read here */
} worker_process;

/* Starts a process that calls work(argument, index, out) and then ends. It ends with the caller,
 * too. If the system can fork, the process has the caller's memory as it is now. Otherwise it is
 * this program, started again with the same arguments; it shares only memory of worker_memory, and
 * comes by itself to worker_enter. False: none can be started. */
typedef void worker_work(void *argument, size_t index, intptr_t out);
RLXVK_MUST_CHECK bool worker_start(worker_work *work, void *argument, size_t index,
                                   worker_process *out);
/* Whether this process was started again. Then worker_memory gives the caller's memory, in the
 * order in which the caller made what it had when it started this process. */
bool worker_is_restarted(void);
/* If this process was started again, calls work(argument, index, out) and ends it. */
void worker_enter(worker_work *work, void *argument);

/* In the worker: tells a number to the caller. False: the caller is gone. */
bool worker_tell(intptr_t out, size_t number);

/* In the caller: waits up to `milliseconds` until some worker has told a number or has ended.
 * ready[i]: this one has. */
void worker_wait(const worker_process *workers, size_t count, unsigned milliseconds, bool *ready);
/* Takes a number that a ready worker told. False: it has ended, or ends now. */
bool worker_hear(const worker_process *worker, size_t *out);
void worker_kill(const worker_process *worker);
/* Waits until the process has ended, and appends how: "ended with exit status 1". Returns whether
 * it failed. */
bool worker_join(const worker_process *worker, text *how);
/* Forgets the worker, which need not have ended. */
void worker_forget(worker_process *worker);

/* ---- Commands ---- */

/* How a command ended. */
typedef enum spawn_end { SPAWN_DONE, SPAWN_FAILED, SPAWN_NOT_FOUND } spawn_end;

/* Runs a command, found as shells find it, with this text as its input, and waits for its end. No
 * shell sees the arguments. They end with NULL. */
spawn_end spawn_command(const char *const arguments[], const char *input, size_t length);

/* Runs this program again with the arguments behind its name, and returns what it prints first in
 * `line`, as a string. *out_first is when it came, by system_nanoseconds. */
spawn_end spawn_self(const char *const arguments[], char *line, size_t size, uint64_t *out_first);

#endif
