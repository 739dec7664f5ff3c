/* See bench_sample.h. */
#include "bench/bench_sample.h"

enum { FIRST_CAPACITY = 1024 };

/* The slot that has the hash, or the empty one where it belongs. */
static size_t slot_of(const hash_set *set, uint64_t hash)
{
    size_t at = hash % set->capacity;
    while (set->slots[at] && set->slots[at] != hash)
        at = (at + 1) % set->capacity;
    return at;
}

static rlxvk_status grow(hash_set *set)
{
    hash_set larger = {.capacity = set->capacity ? 2 * set->capacity : FIRST_CAPACITY};
    larger.slots = memory_zeroed(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return status_fail_memory("hashes");
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i])
            larger.slots[slot_of(&larger, set->slots[i])] = set->slots[i];
    larger.count = set->count;
    memory_free(set->slots);
    *set = larger;
    return RLXVK_OK;
}

static rlxvk_status add(hash_set *set, uint64_t hash, bool *out_new)
{
    if (2 * set->count >= set->capacity && grow(set) != RLXVK_OK)
        return status_fail_memory("hashes");
    size_t at = slot_of(set, hash);
    *out_new = !set->slots[at];
    set->count += *out_new;
    set->slots[at] = hash;
    return RLXVK_OK;
}

/* Never 0, which marks empty slots. */
static uint64_t hash_of(const pipeline_request *request)
{
    return base_hash(BASE_HASH_START, request, sizeof *request) | 1;
}

rlxvk_status bench_sample_know(bench_sample *s, const pipeline_request *request)
{
    bool is_new;
    return add(&s->known, hash_of(request), &is_new);
}

/* Rows have unique addresses. */
rlxvk_status bench_sample_ask(bench_sample *s, const pipeline_request *request, const char *row,
                              bool *out_new)
{
    uint64_t hash = hash_of(request);
    rlxvk_status status;
    *out_new = false;
    TRY(add(&s->asked, base_hash(hash, &row, sizeof row) | 1, out_new));
    if (*out_new && s->known.capacity && s->known.slots[slot_of(&s->known, hash)]) {
        *out_new = false;
        s->left_out++;
    }
error:
    return status;
}

bool bench_sample_takes(size_t index, size_t count, size_t most)
{
    if (count <= most || index == 0)
        return true;
    return most > 1 && index * (most - 1) / (count - 1) != (index - 1) * (most - 1) / (count - 1);
}

void bench_sample_destroy(bench_sample *s)
{
    memory_free(s->known.slots);
    memory_free(s->asked.slots);
    *s = (bench_sample){0};
}
