/* See name_map.h. Open addressing; at most three of four entries are in use. */
#include "model/name_map.h"

#include <string.h>

static struct name_entry *place_of(const name_map *map, const char *name)
{
    uint32_t mask = map->capacity - 1;
    uint32_t i = (uint32_t)base_hash(BASE_HASH_START, name, strlen(name)) & mask;
    while (map->entries[i].name && strcmp(map->entries[i].name, name) != 0)
        i = (i + 1) & mask;
    return &map->entries[i];
}

uint32_t name_find(const name_map *map, const char *name)
{
    const struct name_entry *e = map->count ? place_of(map, name) : NULL;
    return e && e->name ? e->index : NAME_NONE;
}

static rlxvk_status grow(name_map *map)
{
    name_map larger = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 8};
    larger.entries = memory_zeroed(larger.capacity, sizeof *larger.entries);
    if (!larger.entries || larger.capacity > UINT32_MAX / 4) {
        memory_free(larger.entries);
        return status_fail_memory("names of a model");
    }
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->entries[i].name)
            *place_of(&larger, map->entries[i].name) = map->entries[i];
    memory_free(map->entries);
    *map = larger;
    return RLXVK_OK;
}

rlxvk_status name_put(name_map *map, const char *name, uint32_t index)
{
    struct name_entry *e;
    rlxvk_status status = RLXVK_OK;
    if (map->count >= map->capacity / 4 * 3)
        TRY(grow(map));
    e = place_of(map, name);
    map->count += e->name == NULL;
    *e = (struct name_entry){name, index};
error:
    return status;
}

void name_destroy(name_map *map)
{
    memory_free(map->entries);
    *map = (name_map){0};
}
