/*
 * Work shared by processes. Threads are no use, because drivers lock while they compile. Also, if a
 * process crashes, only the case that it runs is lost.
 */
#ifndef RLXVK_CONFORM_POOL_H
#define RLXVK_CONFORM_POOL_H

#include "base/base.h"

typedef struct conform_pool {
    void *user;
    size_t items, processes; /* processes <= 1: all items run in the caller's process */
    /* Called in the process that runs items: open before its first item, close after its last if it
     * is a child. Data of `user` is private to each process, unless it is memory of
     * conform_pool_memory. */
    rlxvk_status (*open)(void *user);
    void (*run)(void *user, size_t item);
    void (*close)(void *user);
    /* Called in the caller's process, one at a time. `how` is for example "ended by signal 11
     * (Segmentation fault)". */
    void (*done)(void *user, size_t item);
    void (*crashed)(void *user, size_t item, const char *how);
    /* Asked in every process before each item. If true, no more items are taken. NULL: never stop.
     */
    bool (*stopped)(void);
} conform_pool;

/* Runs all items, unless stopped.
 *   E_FILE   a pipe cannot be made, a process fails outside of an item, or items are missing
 *   and the error of the first `open` that failed, for example E_VULKAN. */
RLXVK_MUST_CHECK rlxvk_status conform_pool_run(const conform_pool *pool);

/* Returns zeroed memory that children share with the caller. */
void *conform_pool_memory(size_t bytes);
void conform_pool_release(void *memory, size_t bytes);

#endif
