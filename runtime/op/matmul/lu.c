/* The dispatches of LU factors. */
#include "op/matmul/lu.h"

enum { CPU_LARGEST = 2048 };

rlxvk_status lu_check_size(const lowering *l, const node *n, int64_t size)
{
    if (profile_is_software(l->profile) && size > CPU_LARGEST)
        return op_fail(n, RLXVK_E_UNSUPPORTED, "N is %lld; at most %d on a software device",
                       (long long)size, CPU_LARGEST);
    return RLXVK_OK;
}

uint32_t lu_workgroup(const device_profile *profile, int64_t n)
{
    uint32_t most = MIN(profile->max_workgroup_invocations, n > 128 ? 512 : 128), size = 16;
    while (size * 2 <= most && size < n)
        size *= 2;
    return size;
}

static rlxvk_status emit(lowering *l, const lu_factors *f, uint16_t kernel, uint32_t local,
                         struct lu_args args, uint64_t groups)
{
    dispatch d = {.kernel = kernel, .node = f->node};
    SET_CONSTANTS(&d, {LOCAL_SIZE, local});
    lower_groups(l, &d, groups);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){f->matrix, f->pivots}, 2);
}

/* Factors columns first .. last, then applies that to the others. */
static rlxvk_status lower_panel(lowering *l, const lu_factors *f, uint32_t first, uint32_t last)
{
    uint32_t n = f->n, batch = f->batch, local = MIN(f->workgroup, 128);
    uint32_t strips = (uint32_t)divide_up(n, local);
    struct lu_args args = {n, batch, first, last, strips, 0};
    rlxvk_status status;
    TRY(emit(l, f, KERNEL_LU_PANEL, f->workgroup, args, batch));
    if (first > 0 || last < n)
        TRY(emit(l, f, KERNEL_LU_ROWS, local, args, (uint64_t)strips * batch));
    args.strips = (uint32_t)divide_up(n - last, local);
    args.blocks = (uint32_t)divide_up(n - last, SOLVE_ROWS);
    if (last < n)
        TRY(emit(l, f, KERNEL_LU_UPDATE, local, args, (uint64_t)args.strips * args.blocks * batch));
error:
    return status;
}

rlxvk_status lu_lower(lowering *l, lu_factors *f)
{
    uint32_t n = f->n, width = n <= LU_WHOLE ? n : SOLVE_PANEL;
    rlxvk_status status;
    TRY(lower_temporary(l, (uint64_t)f->batch * (2 * (uint64_t)n + 1) * sizeof(uint32_t),
                        &f->pivots));
    f->matrix = updating(f->matrix);
    f->pivots = updating(f->pivots);
    if (n == 0)
        TRY(lower_panel(l, f, 0, 0));
    for (uint32_t first = 0; first < n; first += width)
        TRY(lower_panel(l, f, first, MIN(first + width, n)));
    f->matrix = reading(f->matrix);
    f->pivots = reading(f->pivots);
error:
    return status;
}
