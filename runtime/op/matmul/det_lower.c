/*
 * The dispatches of determinants and cofactors. Up to 4 x 4, an invocation takes a matrix. Larger
 * matrices are scaled first (glsl/matmul/det.glsl). A determinant is the product of the pivots of
 * their LU factors (lu.h).
 *
 * Cofactors take complete pivoting. If the matrix is small, one workgroup factors it. Otherwise two
 * dispatches make each step: one eliminates with the last pivot, and one chooses the next. Then one
 * workgroup makes COFACTOR_ROWS rows of cofactors.
 */
#include "args/det.h"
#include "constants/matmul.h"
#include "op/matmul/det.h"
#include "op/matmul/lu.h"

#define SMALL 4 /* largest matrix of one invocation */

static rlxvk_status emit(lowering *l, uint16_t kernel, uint32_t workgroup, uint64_t groups,
                         const void *args, size_t size, const operand *operands, uint32_t count)
{
    dispatch d = {.kernel = kernel};
    SET_CONSTANTS(&d, {LOCAL_SIZE, workgroup});
    lower_groups(l, &d, groups);
    return lower_emit(l, &d, args, size, operands, count);
}

static struct det_args args_of(det_matrices m, operand a, operand y)
{
    return (struct det_args){(u32)m.n, (u32)m.batch, a.offset, y.offset};
}

static rlxvk_status lower_small(lowering *l, uint32_t id, det_matrices m, uint32_t mode)
{
    operand a = lower_input(l, id, 0), y = lower_write(l, id);
    struct det_args args = args_of(m, a, y);
    dispatch d = {.kernel = KERNEL_DET_SMALL};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {DET_SMALL_N, (uint32_t)m.n},
                  {DET_SMALL_MODE, mode});
    if (mode == DET_LOGARITHM)
        lower_groups(l, &d, groups_for(m.batch, l->profile->workgroup_size));
    else
        lower_groups_in_order(l, &d, m.batch, l->profile->workgroup_size);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){a, y}, 2);
}

static rlxvk_status lower_scaled(lowering *l, uint32_t id, det_matrices m, uint32_t workgroup,
                                 operand *exponents, operand *scaled)
{
    operand a = lower_input(l, id, 0);
    struct det_args args = args_of(m, a, a);
    rlxvk_status status;
    TRY(lower_temporary(l, m.batch * (2 * m.n + 1) * sizeof(int32_t), exponents));
    TRY(lower_temporary(l, m.batch * m.n * m.n * sizeof(float), scaled));
    TRY(emit(l, KERNEL_DET_SCALE, workgroup, m.batch, &args, sizeof args,
             (operand[]){a, updating(*exponents), *scaled}, 3));
    *exponents = reading(*exponents);
error:
    return status;
}

static rlxvk_status lower_product(lowering *l, uint32_t id, uint32_t mode)
{
    const node *n = graph_node(l->graph, id);
    det_matrices m = det_matrices_of(input_shape(l->graph, n, 0));
    lu_factors f = {.node = id,
                    .n = (uint32_t)m.n,
                    .batch = (uint32_t)m.batch,
                    .workgroup = lu_workgroup(l->profile, (int64_t)m.n)};
    operand exponents, y = lower_write(l, id);
    struct det_args args = args_of(m, y, y);
    dispatch d = {.kernel = KERNEL_DET_FINISH};
    rlxvk_status status;
    if (m.n <= SMALL)
        return lower_small(l, id, m, mode);
    TRY(lu_check_size(l, n, (int64_t)m.n));
    TRY(lower_scaled(l, id, m, f.workgroup, &exponents, &f.matrix));
    TRY(lu_lower(l, &f));
    SET_CONSTANTS(&d, {LOCAL_SIZE, MIN(f.workgroup, 64)}, {DET_FINISH_MODE, mode});
    lower_groups(l, &d, m.batch);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){f.matrix, f.pivots, exponents, y}, 4));
error:
    return status;
}

rlxvk_status det_lower(lowering *l, uint32_t id)
{
    return lower_product(l, id, DET_VALUE);
}

rlxvk_status det_lower_logarithm(lowering *l, uint32_t id)
{
    return lower_product(l, id, DET_LOGARITHM);
}

/* ---- Cofactors ---- */

typedef struct cofactor_work {
    det_matrices m;
    uint32_t workgroup;
    struct cofactor_args args;
    operand factors, order, exponents;
} cofactor_work;

/* One workgroup for each matrix. */
static rlxvk_status emit_alone(lowering *l, const cofactor_work *w, uint16_t kernel,
                               const operand *operands, uint32_t count)
{
    return emit(l, kernel, w->workgroup, w->m.batch, &w->args, sizeof w->args, operands, count);
}

/* Step k eliminates with pivot k - 1, and takes the largest element that is left as pivot k. */
static rlxvk_status lower_steps(lowering *l, cofactor_work *w)
{
    uint32_t local = 64;
    operand best, factors = updating(w->factors), order = updating(w->order);
    rlxvk_status status;
    w->args.blocks = (u32)(divide_up(w->m.n, local) * divide_up(w->m.n, COFACTOR_EACH));
    TRY(lower_temporary(l, w->m.batch * w->args.blocks * 2 * sizeof(uint32_t), &best));
    for (uint32_t step = 0; step < w->m.n; step++) {
        w->args.step = step;
        TRY(emit(l, KERNEL_COFACTOR_STEP, local, w->m.batch * w->args.blocks, &w->args,
                 sizeof w->args, (operand[]){factors, order, best}, 3));
        TRY(emit(l, KERNEL_COFACTOR_CHOOSE, local, w->m.batch, &w->args, sizeof w->args,
                 (operand[]){order, reading(best)}, 2));
    }
error:
    return status;
}

static rlxvk_status lower_rows(lowering *l, uint32_t id, const cofactor_work *w)
{
    operand work, y = lower_write(l, id);
    struct cofactor_args args = w->args;
    rlxvk_status status;
    uint64_t groups = w->m.batch * divide_up(w->m.n, COFACTOR_ROWS);
    args.y_offset = y.offset;
    args.blocks = (u32)divide_up(w->m.n, COFACTOR_ROWS);
    TRY(lower_temporary(l, groups * COFACTOR_ROWS * w->m.n * sizeof(float), &work));
    TRY(emit(l, KERNEL_COFACTOR_ROWS, MIN(w->workgroup, 128), groups, &args, sizeof args,
             (operand[]){w->factors, w->order, updating(work), y}, 4));
error:
    return status;
}

static rlxvk_status lower_factored(lowering *l, uint32_t id, det_matrices m, bool inverse)
{
    const node *n = graph_node(l->graph, id);
    cofactor_work w = {.m = m, .workgroup = lu_workgroup(l->profile, (int64_t)m.n)};
    rlxvk_status status;
    TRY(lu_check_size(l, n, (int64_t)m.n));
    w.args = (struct cofactor_args){.n = (u32)m.n, .batch = (u32)m.batch, .inverse = inverse};
    TRY(lower_scaled(l, id, w.m, w.workgroup, &w.exponents, &w.factors));
    TRY(lower_temporary(l, w.m.batch * COFACTOR_WORDS(w.m.n) * sizeof(uint32_t), &w.order));
    if (w.m.n <= LU_WHOLE)
        TRY(emit_alone(l, &w, KERNEL_COFACTOR_FACTOR,
                       (operand[]){updating(w.factors), updating(w.order)}, 2));
    else
        TRY(lower_steps(l, &w));
    w.factors = reading(w.factors);
    TRY(emit_alone(l, &w, KERNEL_COFACTOR_OTHERS,
                   (operand[]){w.factors, updating(w.order), w.exponents}, 3));
    w.order = reading(w.order);
    TRY(lower_rows(l, id, &w));
error:
    return status;
}

rlxvk_status det_lower_cofactors(lowering *l, uint32_t id)
{
    det_matrices m = det_matrices_of(input_shape(l->graph, graph_node(l->graph, id), 0));
    return m.n <= SMALL ? lower_small(l, id, m, DET_COFACTORS) : lower_factored(l, id, m, false);
}

/* Products of minors are not stable enough for a small inverse. */
rlxvk_status det_lower_inverse(lowering *l, uint32_t id)
{
    det_matrices m = det_matrices_of(input_shape(l->graph, graph_node(l->graph, id), 0));
    return lower_factored(l, id, m, true);
}
