/*
 * The library's host allocations. They are counted, and tests can make them fail. Invariant: NULL
 * means only "out of memory", so an allocation of size 0 also returns a block.
 */
#include "base/base.h"
#include "base/atomic.h"
#include "base/memory_sizes.h"

#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t allocations, requested;
static _Atomic int64_t live;
static _Atomic uint64_t countdown; /* allocations until the one that fails; 0: none fails */

/* Counts one allocation; true if a test wants it to fail. */
static bool allocation_fails(uint64_t bytes)
{
    atomic_add_alone(&allocations, 1);
    atomic_add_alone(&requested, bytes);
    uint64_t left = atomic_read_alone(&countdown);
    while (left != 0)
        if (atomic_compare_exchange_weak_explicit(&countdown, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return left == 1;
    return false;
}

void memory_fail_at(uint64_t nth)
{
    atomic_write_alone(&countdown, nth);
}

uint64_t memory_allocation_count(void)
{
    return atomic_read_alone(&allocations);
}

uint64_t memory_requested_bytes(void)
{
    return atomic_read_alone(&requested);
}

int64_t memory_live_count(void)
{
    return atomic_read_alone(&live);
}

/* Counts a new block, unless it is NULL. */
static void *made(void *pointer)
{
    if (pointer)
        atomic_add_alone(&live, 1);
    return pointer;
}

void memory_keep(const void *pointer)
{
    if (pointer)
        atomic_subtract_alone(&live, 1);
}

void *memory_allocate(size_t size)
{
    return allocation_fails(size) ? NULL : made(malloc(MAX(size, 1)));
}

void *memory_zeroed(size_t count, size_t size)
{
    uint64_t bytes;
    if (!size_multiply(count, size, &bytes) || bytes > SIZE_MAX)
        return NULL;
    return allocation_fails(bytes) ? NULL : made(calloc(1, (size_t)MAX(bytes, 1)));
}

void *memory_resize(void *pointer, size_t size)
{
    if (!pointer)
        return memory_allocate(size);
    return allocation_fails(size) ? NULL : realloc(pointer, MAX(size, 1));
}

void memory_free(void *pointer)
{
    memory_keep(pointer); /* do not count it any more */
    free(pointer);
}

char *memory_copy_string(const char *string)
{
    if (!string)
        return NULL;
    size_t size = strlen(string) + 1;
    char *copy = memory_allocate(size);
    return copy ? memcpy(copy, string, size) : NULL;
}

bool memory_grow_vector(void **items, size_t *capacity, size_t needed, size_t item_size)
{
    uint64_t grown = MAX(MAX(needed, 8), *capacity + *capacity / 2), bytes;
    if (!size_multiply(grown, item_size, &bytes) || bytes > SIZE_MAX)
        return false;
    /* `items` really points to a T *, so copying its bytes respects the aliasing rules. */
    void *old, *resized;
    memcpy(&old, items, sizeof(old));
    resized = memory_resize(old, (size_t)bytes);
    if (!resized)
        return false;
    memcpy(items, &resized, sizeof(resized));
    *capacity = (size_t)grown;
    return true;
}

uint64_t base_hash(uint64_t hash, const void *bytes, size_t size)
{
    for (const uint8_t *at = bytes, *end = at + size; at < end; at++)
        hash = (hash ^ *at) * 0x100000001b3ull;
    return hash;
}
