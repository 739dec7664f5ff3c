/*
 * Work shared by processes: drivers lock where threads would compile at the same time, and one that
 * crashes takes the cases of its own process with it, no others.
 */
#ifndef RLXVK_CONFORM_POOL_H
#define RLXVK_CONFORM_POOL_H

#include "base/base.h"

typedef struct conform_pool {
    void *user;
    size_t items, processes; /* one process: the caller's own */
    /* In the process that runs items: before its first, and after its last where it is a child.
     * What `user` points to is the caller's alone, unless it is memory of conform_pool_memory. */
    rlxvk_status (*open)(void *user);
    void (*run)(void *user, size_t item);
    void (*close)(void *user);
    /* In the caller's process, one at a time. how: "ended by signal 11 (Segmentation fault)" */
    void (*done)(void *user, size_t item);
    void (*crashed)(void *user, size_t item, const char *how);
    /* Asked in every process before an item; once true, no more are taken. NULL: never. */
    bool (*stopped)(void);
} conform_pool;

/* Runs all items, unless stopped. E_VULKAN and the like: of the first `open` that failed; E_FILE:
 * no process. */
RLXVK_MUST_CHECK rlxvk_status conform_pool_run(const conform_pool *pool);

/* Zeroed memory that children share with the caller. */
void *conform_pool_memory(size_t bytes);
void conform_pool_release(void *memory, size_t bytes);

#endif
