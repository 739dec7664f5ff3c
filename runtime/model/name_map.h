/* A map from names to indices. The names stay the caller's. */
#ifndef RLXVK_NAME_MAP_H
#define RLXVK_NAME_MAP_H

#include "base/base.h"

#define NAME_NONE UINT32_MAX

typedef struct name_map {
    struct name_entry {
        const char *name; /* NULL: free */
        uint32_t index;
    } * entries;
    uint32_t count, capacity; /* the capacity is 0 or a power of two */
} name_map;

/* The index of a name, or NAME_NONE. */
uint32_t name_find(const name_map *map, const char *name);
/* Adds a name, or gives it another index. */
RLXVK_MUST_CHECK rlxvk_status name_put(name_map *map, const char *name, uint32_t index);
void name_destroy(name_map *map);

#endif
