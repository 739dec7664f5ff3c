/*
 * A bump arena. Invariant: the first chunk is the one being filled. Every chunk is zeroed when it
 * is allocated and no byte is handed out twice, so allocations are zero without another memset.
 */
#include "base/base.h"

#include <string.h>

#define ARENA_ALIGNMENT   16
#define FIRST_CHUNK_BYTES 4096
#define CHUNK_BYTES_LIMIT ((size_t)1 << 20)

struct arena_chunk {
    arena_chunk *next;
    size_t size, used;
    uint8_t *bytes; /* the aligned part of the room: 32-bit systems align allocations by 8 */
    uint8_t room[];
};

static arena_chunk *chunk_create(size_t size)
{
    uint64_t bytes;
    if (!size_add(size, sizeof(arena_chunk) + ARENA_ALIGNMENT, &bytes) || bytes > SIZE_MAX)
        return NULL;
    arena_chunk *chunk = memory_zeroed(1, (size_t)bytes);
    if (chunk) {
        chunk->size = size;
        chunk->bytes = chunk->room + (-(uintptr_t)chunk->room & (ARENA_ALIGNMENT - 1));
    }
    return chunk;
}

static void *chunk_take(arena_chunk *chunk, size_t size)
{
    void *taken = chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
}

void *arena_allocate(arena *a, size_t size)
{
    if (size > SIZE_MAX - ARENA_ALIGNMENT)
        return NULL;
    size = (size_t)round_up(MAX(size, 1), ARENA_ALIGNMENT);
    arena_chunk *first = a->chunks;
    if (first && first->size - first->used >= size)
        return chunk_take(first, size);
    size_t usual = first ? MIN(first->size * 2, CHUNK_BYTES_LIMIT) : FIRST_CHUNK_BYTES;
    arena_chunk *chunk = chunk_create(MAX(usual, size));
    if (!chunk)
        return NULL;
    if (first && size > usual) {
        /* A large chunk of its own goes second, because the first may still have room. */
        chunk->next = first->next;
        first->next = chunk;
    } else {
        chunk->next = first;
        a->chunks = chunk;
    }
    return chunk_take(chunk, size);
}

void *arena_copy(arena *a, const void *bytes, size_t size)
{
    void *copy = arena_allocate(a, size);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

char *arena_copy_string(arena *a, const char *string)
{
    return string ? arena_copy(a, string, strlen(string) + 1) : NULL;
}

void arena_destroy(arena *a)
{
    if (!a)
        return;
    for (arena_chunk *chunk = a->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        memory_free(chunk);
    }
    a->chunks = NULL;
}
