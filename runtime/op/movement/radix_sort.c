/* Emits the passes of the radix sort. Words, and the items that move with them, alternate between
 * two buffers each. The number of passes tells which buffer holds the result. */
#include "op/movement/radix_sort.h"
#include "constants/movement.h"
#include "op/movement/radix_select.h"

typedef struct radix_work {
    const radix_sort *sort;
    const radix_class *class;
    uint32_t output, passes; /* output: RADIX_VALUES, ... */
    uint64_t blocks;
    operand counts, totals, words[2], items[2];
} radix_work;

uint32_t radix_sort_bits(uint64_t most)
{
    uint32_t bits = 1;
    while (most >> bits)
        bits++;
    return bits;
}

uint32_t radix_sort_threads(const lowering *l)
{
    bool few = l->profile->max_workgroup_invocations < RADIX_THREADS;
    return few ? RADIX_THREADS / 2 : RADIX_THREADS;
}

static operand source_of(const radix_work *w, uint32_t pass)
{
    return reading(pass == 0 ? w->sort->words : w->words[pass % 2]);
}

static rlxvk_status emit_counts(lowering *l, const radix_work *w, uint32_t pass,
                                const struct radix_pass_args *args)
{
    dispatch d = {.kernel = KERNEL_RADIX_COUNT, .variant = w->class->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->class->threads}, {RADIX_COUNT_MODE, w->sort->mode});
    lower_groups(l, &d, args->groups);
    return lower_emit(l, &d, args, sizeof *args, (operand[]){source_of(w, pass), w->counts}, 2);
}

static rlxvk_status emit_scan(lowering *l, const radix_work *w)
{
    struct radix_scan_args args = {(u32)(w->sort->rows * RADIX_DIGITS), (u32)w->blocks};
    uint32_t size = l->profile->workgroup_size;
    uint32_t lanes = power_of_two_from(divide_up(w->blocks, 4), size);
    dispatch d = {.kernel = KERNEL_RADIX_SCAN};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {RADIX_SCAN_LANES, lanes});
    lower_groups(l, &d, groups_for(args.segments, size / lanes));
    return lower_emit(l, &d, &args, sizeof args, (operand[]){updating(w->counts), w->totals}, 2);
}

static rlxvk_status emit_move(lowering *l, const radix_work *w, uint32_t pass,
                              const struct radix_pass_args *args)
{
    uint32_t from = pass % 2, to = 1 - from;
    bool ballots = w->class->ranking != RADIX_BY_COUNTERS, carried = w->output != RADIX_VALUES;
    operand source = source_of(w, pass);
    operand operands[] = {source,
                          carried && pass > 0 ? reading(w->items[from]) : source,
                          reading(w->counts),
                          reading(w->totals),
                          w->words[to],
                          carried ? w->items[to] : w->words[to]};
    dispatch d = {.kernel = ballots ? KERNEL_RADIX_MOVE_BALLOTS : KERNEL_RADIX_MOVE,
                  .variant = w->class->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->class->threads}, {RADIX_MOVE_MODE, w->sort->mode},
                  {RADIX_MOVE_OUTPUT, w->output}, {RADIX_MOVE_FIRST, pass == 0},
                  {RADIX_MOVE_LAST, pass + 1 == w->passes});
    if (ballots)
        SET_CONSTANTS(&d, {RADIX_MOVE_BALLOTS_SUBGROUPS,
                           w->class->threads / l->profile->subgroup_size});
    lower_groups(l, &d, args->groups);
    return lower_emit(l, &d, args, sizeof *args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_pass(lowering *l, const radix_work *w, uint32_t pass)
{
    uint32_t from = pass % 2, to = 1 - from;
    struct radix_pass_args args = {.extent = (u32)w->sort->extent,
                                   .blocks = (u32)w->blocks,
                                   .shift = RADIX_BITS * pass,
                                   .groups = (u32)(w->sort->rows * w->blocks),
                                   .limit = w->sort->limit,
                                   .source_offset = source_of(w, pass).offset,
                                   .target_offset = w->words[to].offset,
                                   .source_items = w->items[from].offset,
                                   .target_items = w->items[to].offset};
    rlxvk_status status;
    TRY(emit_counts(l, w, pass, &args));
    TRY(emit_scan(l, w));
    TRY(emit_move(l, w, pass, &args));
error:
    return status;
}

static bool is_there(const operand *o)
{
    return o->size > 0;
}

/* Allocates the buffers that the passes write and that do not exist yet. */
static rlxvk_status make_buffers(lowering *l, radix_work *w)
{
    uint64_t bytes = 4 * w->sort->rows * w->sort->extent;
    operand *pairs[] = {w->words, w->items};
    size_t kinds = w->output == RADIX_VALUES ? 1 : 2;
    rlxvk_status status = RLXVK_OK;
    for (size_t k = 0; k < kinds; k++)
        for (uint32_t i = w->passes > 1 ? 0 : 1; i < 2; i++)
            if (!is_there(&pairs[k][i]))
                TRY(lower_temporary(l, bytes, &pairs[k][i]));
error:
    return status;
}

static rlxvk_status emit_passes(lowering *l, radix_work *w)
{
    const radix_sort *s = w->sort;
    radix_shape shape = {s->rows, s->extent};
    rlxvk_status status;
    w->class = radix_select(&shape, l->profile, variant_choose(l, CHOICE_radix, NULL, NULL));
    w->blocks = divide_up(s->extent, (uint64_t)w->class->threads * RADIX_ITEMS);
    TRY(lower_temporary(l, 4 * RADIX_DIGITS * s->rows * w->blocks, &w->counts));
    TRY(lower_temporary(l, 4 * RADIX_DIGITS * s->rows, &w->totals));
    TRY(make_buffers(l, w));
    for (uint32_t pass = 0; pass < w->passes; pass++)
        TRY(emit_pass(l, w, pass));
error:
    return status;
}

static radix_work start(const radix_sort *sort, uint32_t output)
{
    return (radix_work){.sort = sort,
                        .output = output,
                        .passes = (uint32_t)divide_up(sort->bits, RADIX_BITS)};
}

rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort)
{
    radix_work w = start(sort, RADIX_PAIRS);
    rlxvk_status status;
    if (sort->mode == RADIX_WORDS) {
        w.words[0] = sort->words;
        w.words[0].access = ACCESS_WRITE;
    }
    TRY(emit_passes(l, &w));
    sort->keys = reading(w.words[w.passes % 2]);
    sort->values = reading(w.items[w.passes % 2]);
error:
    return status;
}

/* Emits one binary search for each key. */
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

rlxvk_status radix_sort_to(lowering *l, const radix_sort *sort, bool places, operand y)
{
    radix_work w = start(sort, places ? RADIX_PLACES : RADIX_VALUES);
    *(places ? &w.items[w.passes % 2] : &w.words[w.passes % 2]) = y;
    return emit_passes(l, &w);
}
