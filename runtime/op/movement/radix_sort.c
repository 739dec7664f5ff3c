/* Emitting the passes of the radix sort. Keys and values go back and forth between two pairs of
 * temporaries. */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/movement/radix_sort.h"

static operand reading(operand o)
{
    o.access = ACCESS_READ;
    return o;
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

typedef struct radix_pass {
    uint64_t rows, extent, blocks;
    uint32_t shift;
    operand counts, keys, values, new_keys, new_values;
} radix_pass;

/* A row of counts is one workgroup's: of as many threads as it has counts for, a few each. */
static uint32_t scan_threads(const device_profile *profile, uint64_t count)
{
    uint32_t threads = RADIX_THREADS;
    while (!profile_is_software(profile) && threads < 1024 && 4ull * threads < count &&
           2 * threads <= profile->max_workgroup_invocations)
        threads *= 2;
    return threads;
}

static rlxvk_status emit_counts(lowering *l, const radix_pass *p)
{
    uint64_t groups = p->rows * p->blocks;
    dispatch count = {.kernel = KERNEL_RADIX_COUNT};
    dispatch scan = {.kernel = KERNEL_RADIX_SCAN};
    struct radix_count_args count_args = {(u32)p->extent, (u32)p->blocks, p->shift, (u32)groups};
    struct radix_scan_args scan_args = {(u32)p->rows, (u32)(RADIX_DIGITS * p->blocks)};
    operand both = p->counts;
    both.access = ACCESS_READ | ACCESS_WRITE;
    rlxvk_status status;
    SET_CONSTANTS(&count, {LOCAL_SIZE, RADIX_THREADS});
    lower_groups(l, &count, groups);
    SET_CONSTANTS(&scan, {LOCAL_SIZE, scan_threads(l->profile, scan_args.count)});
    lower_groups(l, &scan, p->rows);
    TRY(lower_emit(l, &count, &count_args, sizeof count_args,
                   (operand[]){reading(p->keys), p->counts}, 2));
    TRY(lower_emit(l, &scan, &scan_args, sizeof scan_args, &both, 1));
error:
    return status;
}

static rlxvk_status emit_pass(lowering *l, const radix_pass *p)
{
    uint64_t groups = p->rows * p->blocks;
    dispatch d = {.kernel = KERNEL_RADIX_SCATTER};
    struct radix_scatter_args args = {(u32)p->extent, (u32)p->blocks, p->shift, (u32)groups};
    /* The first pass reads no values; the keys stand in. */
    operand operands[] = {reading(p->keys), reading(p->shift == 0 ? p->keys : p->values),
                          reading(p->counts), p->new_keys, p->new_values};
    rlxvk_status status;
    TRY(emit_counts(l, p));
    SET_CONSTANTS(&d, {LOCAL_SIZE, RADIX_THREADS}, {RADIX_SCATTER_FIRST, p->shift == 0});
    lower_groups(l, &d, groups);
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort)
{
    uint64_t bytes = 4 * sort->rows * sort->extent;
    radix_pass p = {.rows = sort->rows,
                    .extent = sort->extent,
                    .blocks = divide_up(sort->extent, RADIX_BLOCK),
                    .keys = sort->keys};
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * RADIX_DIGITS * p.rows * p.blocks, &p.counts));
    TRY(lower_temporary(l, bytes, &p.new_keys));
    TRY(lower_temporary(l, bytes, &p.new_values));
    TRY(lower_temporary(l, bytes, &p.values));
    for (; p.shift < sort->bits; p.shift += RADIX_BITS) {
        operand keys = p.keys, values = p.values;
        TRY(emit_pass(l, &p));
        p.keys = p.new_keys;
        p.values = p.new_values;
        p.new_keys = keys;
        p.new_values = values;
    }
    sort->keys = reading(p.keys);
    sort->values = reading(p.values);
    sort->counts = reading(p.counts);
    sort->blocks = p.blocks;
error:
    return status;
}
