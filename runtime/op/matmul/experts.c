/*
 * Sorts rows that name an expert into blocks (glsl/matmul/expert_sort.comp). The products with
 * experts share this, if the weights are floats and if they are packed.
 *
 * With M rows and E experts a plan has at most min(M, ceil(M / tile) + E + 1) blocks. This is
 * because each expert, and the group of rows without one, leaves at most one block unfilled.
 */
#include "args/matmul.h"
#include "op/matmul/experts.h"

#include <math.h>

enum {
    DIRECT_ROWS = 16, /* with so few rows, sorting costs more than it saves */
    SORT_THREADS = 1024
};

/* clang-format off */
static const experts_class classes[] = {
    /* {name, settings}, sorted, split, least rows */
    {{"sorted", ON_NATIVE},   true,  false, DIRECT_ROWS + 1},
    {{"split",  ON_HARDWARE}, false, true,  0},
    {{"direct", ON_ALL},      false, false, 0},
};
/* clang-format on */

typedef struct experts_problem {
    uint64_t rows;
    bool packed;
} experts_problem;

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const experts_class *c = row;
    const experts_problem *p = problem;
    (void)profile;
    return (choice_fit){.can = !(c->split && p->packed), .suits = p->rows >= c->least_rows};
}

const choice_table experts_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const experts_class *experts_choose(lowering *l, uint64_t rows, bool packed)
{
    experts_problem problem = {rows, packed};
    return choice_select(&experts_choice, &problem, l->profile,
                         variant_choose(l, CHOICE_experts, NULL, NULL));
}

static uint32_t sort_threads(const device_profile *profile, uint64_t rows)
{
    uint32_t threads = profile->workgroup_size;
    while (threads < rows && threads * 2 <= SORT_THREADS &&
           threads * 2 <= profile->max_workgroup_invocations)
        threads *= 2;
    return threads;
}

rlxvk_status experts_sort(lowering *l, uint32_t id, uint64_t rows, uint64_t experts,
                          uint32_t highest, operand *index, expert_blocks *blocks)
{
    struct expert_sort_args args = {(uint32_t)rows, (uint32_t)experts, 0, index->offset};
    dispatch d = {.kernel = KERNEL_EXPERT_SORT, .node = id, .groups = {1, 1, 1}};
    operand plan;
    rlxvk_status status;
    while (blocks->rows < highest && rows / (experts + 1) >= blocks->rows)
        blocks->rows *= 2;
    blocks->count = MIN(rows, divide_up(rows, blocks->rows) + experts + 1);
    args.tile = blocks->rows;
    SET_CONSTANTS(&d, {LOCAL_SIZE, sort_threads(l->profile, rows)});
    TRY(lower_temporary(l, (3 * (experts + 2) + rows) * sizeof(uint32_t), &plan));
    plan.access = ACCESS_READ | ACCESS_WRITE;
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){*index, plan}, 2));
    plan.access = ACCESS_READ;
    *index = plan;
error:
    return status;
}

uint64_t experts_bucket(bucket_call *c)
{
    for (uint32_t i = 0; i <= 2; i += 2)
        if (bucket_span(c, i) != BUCKET_FIXED && bucket_axis(c, i) != 0)
            return bucket_refuse(c, "its rows are not those of the bucket");
    if (bucket_others(c, 1 | 1 << 2))
        return bucket_refuse(c, "an expert depends on the rows");
    return bucket_along(c, 0);
}

uint64_t experts_host_index(float v, uint64_t experts)
{
    double index = floor((double)v + 0.5);
    return index >= 0 && index < (double)experts ? (uint64_t)index : experts;
}

index_limits experts_indices(int64_t experts, experts_part part)
{
    index_limits r = index_limits_of(2, part.total ? part.total : experts);
    r.base = part.first;
    return r;
}

void experts_describe_part(experts_part part, text *out)
{
    if (part.total)
        text_append(out, " from=%lld of=%lld", (long long)part.first, (long long)part.total);
}

rlxvk_status experts_check_index(const rlxvk_graph *g, const node *n, uint32_t operand,
                                 uint64_t rows)
{
    char buffer[SHAPE_TEXT];
    const rlxvk_shape *index = input_shape(g, n, operand);
    if (shape_numel(index) == rows)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "idx %s holds %llu indices for %llu rows of x; one a row",
                   shape_text(index, buffer), (unsigned long long)shape_numel(index),
                   (unsigned long long)rows);
}
