/* Kernel ids: first those of the embedded table, then those that custom ops registered. Registered
 * kernels are never removed. */
#include "kernel/kernel.h"
#include "base/system.h"

#include <string.h>

static const kernel_info *registered[KERNEL_REGISTERED_LIMIT];
static uint16_t registered_count;
static system_lock lock = SYSTEM_LOCK_INITIALIZER;

const kernel_info *kernel_find(uint32_t id)
{
    return id < KERNEL_COUNT ? &kernel_table[id] : registered[id - KERNEL_COUNT];
}

/* Kernels of the table always unpack, because tools/build/spv2c.c tried it when it made the
 * table. */
uint32_t *kernel_words(const kernel_info *kernel)
{
    uint32_t *words = memory_allocate(kernel->word_count * sizeof *words);
    void *room = kernel->words ? NULL : memory_allocate(kernel_unpack_bytes(&kernel->packed));
    bool made = words && (room || kernel->words);
    if (made && kernel->words)
        memcpy(words, kernel->words, kernel->word_count * sizeof *words);
    else
        made = made && kernel_unpack(&kernel->packed, room, words);
    memory_free(room);
    if (made)
        return words;
    memory_free(words);
    return NULL;
}

uint32_t kernel_count(void)
{
    system_lock_take(&lock);
    uint32_t count = KERNEL_COUNT + (uint32_t)registered_count;
    system_lock_release(&lock);
    return count;
}

bool kernel_register(const kernel_info *kernel, uint16_t *out_id)
{
    system_lock_take(&lock);
    bool room = registered_count < KERNEL_REGISTERED_LIMIT;
    if (room) {
        registered[registered_count] = kernel;
        *out_id = (uint16_t)(KERNEL_COUNT + registered_count++);
    }
    system_lock_release(&lock);
    return room;
}
