/*
 * Code that both kinds of tokenizer share: maps from strings to positions, and merging a chain of
 * symbols.
 *
 * Merging has a binary heap of the joins that are possible now. A join is void if one side was
 * merged with another symbol since. This shows because the length of both sides together has
 * changed. A void join is dropped when it reaches the top. n symbols cause at most 3n joins, so
 * merging is O(n log n).
 */
#include "model/language/tokenizer_internal.h"

#include <string.h>

/* ---- String maps: open addressing, slot = position + 1 ---- */

static gguf_string map_item(const string_map *map, uint64_t i)
{
    gguf_string item;
    memcpy(&item, map->items + i * map->stride, sizeof item);
    return item;
}

static uint64_t hash_pieces(const gguf_string *pieces, size_t count)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < pieces[i].length; j++)
            h = (h ^ (uint8_t)pieces[i].data[j]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static bool equals_pieces(gguf_string item, const gguf_string *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (item.length < pieces[i].length ||
            memcmp(item.data, pieces[i].data, (size_t)pieces[i].length) != 0)
            return false;
        item.data += pieces[i].length;
        item.length -= pieces[i].length;
    }
    return item.length == 0;
}

static uint32_t *map_slot(const string_map *map, const gguf_string *pieces, size_t count)
{
    for (uint64_t i = hash_pieces(pieces, count);; i++) {
        uint32_t *slot = &map->slots[i & map->mask];
        if (*slot == 0 || equals_pieces(map_item(map, *slot - 1), pieces, count))
            return slot;
    }
}

uint32_t tokenizer_find_string(const string_map *map, const gguf_string *pieces, size_t count)
{
    return *map_slot(map, pieces, count) - 1; /* a free slot is 0, and 0 - 1 is RLXVK_NO_TOKEN */
}

rlxvk_status tokenizer_build_map(string_map *map, const void *items, size_t stride, uint64_t count)
{
    uint64_t size = 4;
    while (size < 2 * count)
        size *= 2;
    *map = (string_map){.mask = size - 1, .items = items, .stride = stride};
    map->slots = memory_zeroed((size_t)size, sizeof *map->slots);
    if (map->slots == NULL)
        return status_fail_memory("tokenizer string map");
    for (uint64_t i = 0; i < count; i++) {
        gguf_string item = map_item(map, i);
        uint32_t *slot = map_slot(map, &item, 1);
        if (*slot == 0)
            *slot = (uint32_t)i + 1;
    }
    return RLXVK_OK;
}

/* ---- Merging ---- */

typedef struct join {
    double key;
    uint32_t left, right;
    size_t length; /* of both sides together when the join was found */
} join;

typedef VECTOR(join) join_heap;

static bool join_before(const join *a, const join *b)
{
    return a->key < b->key || (a->key == b->key && a->left < b->left);
}

static bool heap_push(join_heap *heap, join item)
{
    if (!VECTOR_PUSH(heap, item))
        return false;
    size_t i = heap->count - 1;
    for (; i > 0 && join_before(&item, &heap->items[(i - 1) / 2]); i = (i - 1) / 2)
        heap->items[i] = heap->items[(i - 1) / 2];
    heap->items[i] = item;
    return true;
}

/* The heap must not be empty. */
static join heap_pop(join_heap *heap)
{
    join top = heap->items[0], last = heap->items[--heap->count];
    size_t i = 0;
    for (size_t child = 1; child < heap->count; child = 2 * i + 1) {
        if (child + 1 < heap->count && join_before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!join_before(&heap->items[child], &last))
            break;
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = last;
    return top;
}

static gguf_string symbol_text(const symbol *s)
{
    return (gguf_string){s->data, s->length};
}

static bool offer_join(const tokenizer *t, const symbol_list *symbols, merge_key key, uint32_t left,
                       join_heap *heap)
{
    if (left == RLXVK_NO_TOKEN || symbols->items[left].next == RLXVK_NO_TOKEN)
        return true;
    const symbol *a = &symbols->items[left], *b = &symbols->items[a->next];
    join item = {.left = left, .right = a->next, .length = a->length + b->length};
    if (!key(t, symbol_text(a), symbol_text(b), &item.key))
        return true;
    return heap_push(heap, item);
}

rlxvk_status tokenizer_append_symbol(symbol_list *symbols, const char *data, size_t length)
{
    uint32_t position = (uint32_t)symbols->count;
    symbol item = {data, length, position > 0 ? position - 1 : RLXVK_NO_TOKEN, RLXVK_NO_TOKEN};
    if (symbols->count >= RLXVK_NO_TOKEN - 1)
        return status_fail(RLXVK_E_TOO_LARGE, "tokenizer: a text of 2^32 characters");
    if (!VECTOR_PUSH(symbols, item))
        return status_fail_memory("tokenizer symbols");
    if (position > 0)
        symbols->items[position - 1].next = position;
    return RLXVK_OK;
}

static void apply_join(symbol_list *symbols, const join *item)
{
    symbol *left = &symbols->items[item->left], *right = &symbols->items[item->right];
    left->length += right->length;
    left->next = right->next;
    if (right->next != RLXVK_NO_TOKEN)
        symbols->items[right->next].previous = item->left;
    right->length = 0;
}

rlxvk_status tokenizer_merge_symbols(const tokenizer *t, symbol_list *symbols, merge_key key)
{
    join_heap heap = {0};
    bool room = true;
    for (uint32_t i = 0; i < symbols->count && room; i++)
        room = offer_join(t, symbols, key, i, &heap);
    while (room && heap.count > 0) {
        join item = heap_pop(&heap);
        symbol *left = &symbols->items[item.left], *right = &symbols->items[item.right];
        if (left->length == 0 || right->length == 0 || left->length + right->length != item.length)
            continue;
        apply_join(symbols, &item);
        room = offer_join(t, symbols, key, left->previous, &heap) &&
               offer_join(t, symbols, key, item.left, &heap);
    }
    VECTOR_FREE(&heap);
    return room ? RLXVK_OK : status_fail_memory("tokenizer merges");
}

rlxvk_status tokenizer_append_token(token_list *list, uint32_t id)
{
    return VECTOR_PUSH(list, id) ? RLXVK_OK : status_fail_memory("token list");
}
