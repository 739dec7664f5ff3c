/*
 * Work shared by processes. Threads are no use, because drivers lock while they compile. Also, if a
 * process crashes or hangs, only the item that it runs is lost: another process takes its place.
 */
#ifndef RLXVK_CONFORM_POOL_H
#define RLXVK_CONFORM_POOL_H

#include "base/base.h"

typedef struct conform_pool {
    void *user;
    size_t items, processes; /* processes 0: all items run in the caller's process */
    /* A process that takes longer for one item, or to open or to close, is killed; 0: none is.
     * Nothing limits the caller's process. */
    double item_seconds, open_seconds;
    /* Called in the process that runs items: open before its first item, close after its last if it
     * is a child. Data of `user` is private to each process, unless it is memory of
     * worker_memory (system/worker.h). If `run` returns false, the process can run no more items. A
     * child then ends at once, and the caller's process closes and opens again. */
    rlxvk_status (*open)(void *user);
    bool (*run)(void *user, size_t item);
    void (*close)(void *user);
    /* Called in the caller's process, one at a time. `how` is for example "ended by signal 11
     * (Segmentation fault)" or "was killed, because it did not end within 300 s". */
    void (*done)(void *user, size_t item);
    void (*crashed)(void *user, size_t item, const char *how);
    /* Asked in every process before each item. If true, no more items are taken. NULL: never stop.
     */
    bool (*stopped)(void);
} conform_pool;

/* Runs all items, unless stopped. If a process cannot open, and another could before, it is tried
 * again after a while, because drivers take time to reset a device.
 *   E_FILE   a pipe cannot be made, a process fails outside of an item, or items are missing
 *   and the error of the first `open` that failed, for example E_VULKAN. */
RLXVK_MUST_CHECK rlxvk_status conform_pool_run(const conform_pool *pool);

#endif
