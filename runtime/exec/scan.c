/* The content of a node as numbers, with statistics. */
#include "exec/scan.h"
#include "exec/transfer.h"

#include <math.h>

scan scan_words(const float *words, uint64_t count)
{
    scan s = {.min = INFINITY, .max = -INFINITY};
    for (uint64_t i = 0; i < count; i++) {
        float v = words[i];
        bool bad = !isfinite(v);
        if (bad && !s.bad)
            s.first_bad = i;
        s.bad = s.bad || bad;
        s.nan_count += isnan(v) != 0;
        s.infinity_count += isinf(v) != 0;
        s.negative_infinity_count += isinf(v) && v < 0;
        s.nonzero += v != 0;
        if (isnan(v))
            continue;
        s.min = fminf(s.min, v);
        s.max = fmaxf(s.max, v);
        s.max_abs = fmaxf(s.max_abs, fabsf(v));
    }
    return s;
}

/* Raw bytes, packed halves and the random state are not f32 words. */
static bool holds_numbers(const rlxvk_executable *e, uint32_t id)
{
    storage held = program_held(e->program, id);
    bool random_state = e->rng_input && e->rng_input->leaf->node == id;
    return held != STORAGE_RAW && held != STORAGE_HALF && !random_state;
}

rlxvk_status scan_read(rlxvk_executable *e, uint32_t id, float **words, uint64_t *count)
{
    location from = executable_location(e, id);
    rlxvk_status status = RLXVK_OK;
    *words = NULL;
    *count = from.bytes / 4;
    if (!holds_numbers(e, id) || from.bytes == 0)
        return RLXVK_OK;
    if (!(*words = memory_allocate(from.bytes)))
        return status_fail_memory("node content");
    status = transfer_read(e, &from, *words, from.bytes);
    return status;
}
