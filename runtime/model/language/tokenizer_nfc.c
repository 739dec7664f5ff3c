/*
 * Canonical composition of Unicode (NFC), because some vocabularies want it. Characters are
 * decomposed, marks are sorted by combining class, and pairs are composed again.
 */
#include "model/language/tokenizer_internal.h"
#include "model/language/unicode.h"
#include "model/language/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    HANGUL = 0xac00,
    LEADS = 0x1100,
    VOWELS = 0x1161,
    TAILS = 0x11a7, /* one before the first tail, because 0 means "no tail" */
    LEAD_COUNT = 19,
    VOWEL_COUNT = 21,
    TAIL_COUNT = 28,
    MOST_PLACES = 64
};
#define FIRST_CHANGED                                                                              \
    0xcc                  /* first byte of U+0300; NFC does not change text whose bytes are all    \
                             smaller */
#define NO_POINT 0x110000 /* plus the byte, if it is not UTF-8 */

typedef struct character {
    uint32_t point, place; /* place of its combining class; 0: a starter */
} character;

typedef VECTOR(character) character_list;

static int compare_run(const void *key, const void *item)
{
    uint32_t point = *(const uint32_t *)key;
    const unicode_class_run *run = item;
    return point < run->first ? -1 : point > run->last;
}

static int compare_decomposition(const void *key, const void *item)
{
    uint32_t point = *(const uint32_t *)key, other = ((const unicode_decomposition *)item)->point;
    return (point > other) - (point < other);
}

static int compare_pair(const void *key, const void *item)
{
    const unicode_pair *a = key, *b = item;
    if (a->first != b->first)
        return a->first > b->first ? 1 : -1;
    return (a->second > b->second) - (a->second < b->second);
}

static bool append_point(character_list *list, uint32_t point)
{
    const unicode_class_run *run = bsearch(&point, unicode_classes, unicode_classes_count,
                                           sizeof *unicode_classes, compare_run);
    return VECTOR_PUSH(list, ((character){point, run ? run->place : 0}));
}

static bool append_hangul(character_list *list, uint32_t syllable)
{
    uint32_t tail = syllable % TAIL_COUNT, pair = syllable / TAIL_COUNT;
    return append_point(list, LEADS + pair / VOWEL_COUNT) &&
           append_point(list, VOWELS + pair % VOWEL_COUNT) &&
           (tail == 0 || append_point(list, TAILS + tail));
}

static bool append_decomposed(character_list *list, uint32_t point)
{
    if (point - HANGUL < LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT)
        return append_hangul(list, point - HANGUL);
    const unicode_decomposition *d =
        bsearch(&point, unicode_decompositions, unicode_decompositions_count,
                sizeof *unicode_decompositions, compare_decomposition);
    if (d == NULL)
        return append_point(list, point);
    for (size_t i = 0; i < ARRAY_COUNT(d->parts) && d->parts[i] != 0; i++)
        if (!append_point(list, d->parts[i]))
            return false;
    return true;
}

static bool is_sorted(const character *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (items[i - 1].place > items[i].place)
            return false;
    return true;
}

/* Sorts a run of marks by class, with one pass for each class, because a hostile text may have a
 * long run. */
static bool sort_run(character *items, size_t count)
{
    character *copy;
    size_t used = 0;
    if (is_sorted(items, count))
        return true;
    if (!(copy = memory_allocate(count * sizeof *copy)))
        return false;
    memcpy(copy, items, count * sizeof *copy);
    for (uint32_t place = 1; place < MOST_PLACES; place++)
        for (size_t i = 0; i < count; i++)
            if (copy[i].place == place)
                items[used++] = copy[i];
    memory_free(copy);
    return true;
}

static bool sort_marks(character_list *list)
{
    for (size_t start = 0, end; start < list->count; start = end + 1) {
        for (end = start; end < list->count && list->items[end].place != 0;)
            end++;
        if (!sort_run(list->items + start, end - start))
            return false;
    }
    return true;
}

/* Returns 0 if the two do not compose. */
static uint32_t compose_two(uint32_t first, uint32_t second)
{
    if (first - LEADS < LEAD_COUNT && second - VOWELS < VOWEL_COUNT)
        return HANGUL + ((first - LEADS) * VOWEL_COUNT + second - VOWELS) * TAIL_COUNT;
    if (first - HANGUL < LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT &&
        (first - HANGUL) % TAIL_COUNT == 0 && second - TAILS - 1 < TAIL_COUNT - 1)
        return first + second - TAILS;
    const unicode_pair key = {first, second, 0};
    const unicode_pair *pair =
        bsearch(&key, unicode_pairs, unicode_pairs_count, sizeof *unicode_pairs, compare_pair);
    return pair ? pair->composed : 0;
}

/* A character joins the last starter, unless a character between them has the same class or a
 * higher one. */
static void compose(character_list *list)
{
    size_t used = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < list->count; i++) {
        character c = list->items[i];
        bool blocked =
            starter == SIZE_MAX || (used - 1 != starter && list->items[used - 1].place >= c.place);
        uint32_t composed = blocked ? 0 : compose_two(list->items[starter].point, c.point);
        if (composed) {
            list->items[starter].point = composed;
            continue;
        }
        if (c.place == 0)
            starter = used;
        list->items[used++] = c;
    }
    list->count = used;
}

static bool append_text(const character_list *list, token_text *out)
{
    for (size_t i = 0; i < list->count; i++) {
        uint32_t point = list->items[i].point;
        uint8_t bytes[4] = {(uint8_t)(point - NO_POINT)};
        size_t size = point < NO_POINT ? utf8_encode(point, bytes) : 1;
        if (!VECTOR_RESERVE(out, size))
            return false;
        memcpy(out->items + out->count, bytes, size);
        out->count += size;
    }
    return true;
}

static bool append_composed(const uint8_t *bytes, size_t length, token_text *out)
{
    character_list list = {0};
    bool room = true;
    for (size_t i = 0, size; i < length && room; i += size) {
        uint32_t point = utf8_decode(bytes + i, length - i, &size);
        room = point == UTF8_INVALID ? VECTOR_PUSH(&list, ((character){NO_POINT + bytes[i], 0}))
                                     : append_decomposed(&list, point);
    }
    if (room)
        room = sort_marks(&list);
    if (room) {
        compose(&list);
        room = append_text(&list, out);
    }
    VECTOR_FREE(&list);
    return room;
}

rlxvk_status tokenizer_append_nfc(token_text *out, const char *bytes, size_t length)
{
    bool plain = true;
    for (size_t i = 0; i < length && plain; i++)
        plain = (uint8_t)bytes[i] < FIRST_CHANGED;
    if (length == 0)
        return RLXVK_OK;
    if (!plain)
        return append_composed((const uint8_t *)bytes, length, out)
                   ? RLXVK_OK
                   : status_fail_memory("composed text");
    if (!VECTOR_RESERVE(out, length))
        return status_fail_memory("composed text");
    memcpy(out->items + out->count, bytes, length);
    out->count += length;
    return RLXVK_OK;
}
