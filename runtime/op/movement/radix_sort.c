/* Emitting the passes of the radix sort. Keys and values go back and forth between two pairs of
 * temporaries. */
#include "op/movement/radix_sort.h"
#include "args/movement.h"
#include "constants/movement.h"

#define KEY_BITS 32

typedef struct radix_work {
    uint64_t rows, extent, blocks;
    uint32_t threads, bits;
    const radix_floats *floats; /* NULL: keys[0] are the keys */
    operand counts, totals, keys[2], items[2];
} radix_work;

static operand reading(operand o)
{
    o.access = ACCESS_READ;
    return o;
}

uint32_t radix_sort_bits(uint64_t largest)
{
    uint32_t bits = 1;
    while (largest >> bits)
        bits++;
    return bits;
}

uint32_t radix_sort_threads(const lowering *l)
{
    bool few = l->profile->max_workgroup_invocations < RADIX_THREADS;
    return few ? RADIX_THREADS / 2 : RADIX_THREADS;
}

rlxvk_status radix_sort_keys(lowering *l, radix_sort *sort, operand x, uint32_t mode,
                             uint32_t limit)
{
    uint64_t count = sort->rows * sort->extent;
    struct radix_keys_args args = {.count = (u32)count, .limit = limit, .x_offset = x.offset};
    dispatch d = {.kernel = KERNEL_RADIX_KEYS};
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * count, &sort->keys));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {RADIX_KEYS_MODE, mode});
    lower_groups(l, &d, groups_for(count, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){x, sort->keys}, 2));
error:
    return status;
}

static rlxvk_status emit_counts(lowering *l, const radix_work *w, operand source, bool first,
                                struct radix_pass_args args)
{
    dispatch count = {.kernel = KERNEL_RADIX_COUNT}, scan = {.kernel = KERNEL_RADIX_SCAN};
    struct radix_scan_args sums = {(u32)(w->rows * RADIX_DIGITS), (u32)w->blocks};
    operand both = w->counts;
    uint32_t lanes = 1;
    rlxvk_status status;
    while (lanes < w->threads && 4 * lanes < w->blocks)
        lanes *= 2;
    both.access = ACCESS_READ | ACCESS_WRITE;
    SET_CONSTANTS(&count, {LOCAL_SIZE, w->threads}, {RADIX_COUNT_FIRST, first});
    lower_groups(l, &count, args.groups);
    TRY(lower_emit(l, &count, &args, sizeof args, (operand[]){source, w->counts}, 2));
    SET_CONSTANTS(&scan, {LOCAL_SIZE, w->threads}, {RADIX_SCAN_LANES, lanes});
    lower_groups(l, &scan, groups_for(sums.segments, w->threads / lanes));
    TRY(lower_emit(l, &scan, &sums, sizeof sums, (operand[]){both, w->totals}, 2));
error:
    return status;
}

static rlxvk_status emit_pass(lowering *l, const radix_work *w, uint32_t shift)
{
    const radix_floats *f = w->floats;
    uint32_t from = shift / RADIX_BITS % 2, to = 1 - from;
    bool first = f && shift == 0, last = f && shift + RADIX_BITS >= w->bits;
    operand source = first ? f->x : reading(w->keys[from]);
    struct radix_pass_args args = {.extent = (u32)w->extent,
                                   .blocks = (u32)w->blocks,
                                   .shift = shift,
                                   .groups = (u32)(w->rows * w->blocks),
                                   .descending = f && f->descending,
                                   .indices = f && f->indices,
                                   .x_offset = first ? f->x.offset : 0};
    dispatch d = {.kernel = KERNEL_RADIX_MOVE};
    operand operands[] = {source,
                          shift == 0 ? source : reading(w->items[from]),
                          reading(w->counts),
                          reading(w->totals),
                          f ? f->x : source,
                          w->keys[to],
                          last ? f->y : w->items[to]};
    rlxvk_status status;
    TRY(emit_counts(l, w, source, first, args));
    args.x_offset = f ? f->x.offset : 0;
    args.y_offset = last ? f->y.offset : 0;
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->threads}, {RADIX_MOVE_FIRST, first}, {RADIX_MOVE_LAST, last},
                  {RADIX_MOVE_POSITIONS, shift == 0});
    lower_groups(l, &d, args.groups);
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* What is not there yet of the temporaries, and the passes. */
static rlxvk_status emit_passes(lowering *l, radix_work *w)
{
    uint64_t bytes = 4 * w->rows * w->extent;
    rlxvk_status status;
    w->threads = radix_sort_threads(l);
    w->blocks = divide_up(w->extent, (uint64_t)w->threads * RADIX_ITEMS);
    TRY(lower_temporary(l, 4 * RADIX_DIGITS * w->rows * w->blocks, &w->counts));
    TRY(lower_temporary(l, 4 * RADIX_DIGITS * w->rows, &w->totals));
    for (int i = w->floats ? 0 : 1; i < 2; i++)
        TRY(lower_temporary(l, bytes, &w->keys[i]));
    for (int i = 0; i < 2; i++)
        TRY(lower_temporary(l, bytes, &w->items[i]));
    for (uint32_t shift = 0; shift < w->bits; shift += RADIX_BITS)
        TRY(emit_pass(l, w, shift));
error:
    return status;
}

rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort)
{
    radix_work w = {.rows = sort->rows, .extent = sort->extent, .bits = sort->bits};
    uint32_t at = (uint32_t)(divide_up(sort->bits, RADIX_BITS) % 2);
    rlxvk_status status;
    w.keys[0] = sort->keys;
    w.keys[0].access = ACCESS_WRITE;
    TRY(emit_passes(l, &w));
    sort->keys = reading(w.keys[at]);
    sort->values = reading(w.items[at]);
error:
    return status;
}

/* A search for each. */
rlxvk_status radix_sort_find_starts(lowering *l, const radix_sort *sort, uint64_t keys,
                                    uint64_t row_keys, operand *out)
{
    struct radix_starts_args args = {(u32)keys, (u32)row_keys, (u32)sort->extent,
                                     (u32)(sort->rows * sort->extent)};
    dispatch d = {.kernel = KERNEL_RADIX_STARTS};
    uint32_t size = l->profile->workgroup_size;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * (keys + 1), out));
    SET_CONSTANTS(&d, {LOCAL_SIZE, size});
    lower_groups(l, &d, groups_for(keys + 1, size));
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){sort->keys, *out}, 2));
    out->access = ACCESS_READ;
error:
    return status;
}

rlxvk_status radix_sort_floats(lowering *l, const radix_floats *f)
{
    radix_work w = {.rows = f->rows, .extent = f->extent, .bits = KEY_BITS, .floats = f};
    return emit_passes(l, &w);
}
