/*
 * Solves dense linear systems A x = b, one matrix or a batch. It uses LU factors with partial
 * pivoting, in f32, and one step of refinement.
 *
 * The node is one tensor: x [B, N, K], then B flags of singular matrices. The builder returns a
 * view of x. First A is copied and factored (lu.h). Then one workgroup solves each column of b.
 *
 * Limits: on software devices N <= 2048, because their loops end after 65535 rounds.
 */
#include "graph/symbol.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/matmul/lu.h"
#include "op/movement/layout.h"

#include <math.h>
#include <string.h>

typedef struct solve_attributes { /* from the shapes: matrices, their size, right sides of each */
    int64_t batch, n, columns;
} solve_attributes;

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor a, rlxvk_tensor b)
{
    solve_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    rlxvk_tensor packed = op_build(g, op, (rlxvk_tensor[]){a, b}, 2, &attributes);
    if (!packed.id)
        return packed;
    rlxvk_shape shape = rlxvk_tensor_shape(g, b);
    return rlxvk_reshape(g, rlxvk_narrow(g, packed, 0, 0, dim_elements(g, &shape)), shape);
}

rlxvk_tensor rlxvk_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)
{
    return build(g, OP_dense_solve, a, b);
}

rlxvk_tensor rlxvk_batched_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)
{
    return build(g, OP_batched_dense_solve, a, b);
}

/* ---- Infer ---- */

static rlxvk_status solve_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    solve_attributes *s = attributes;
    const rlxvk_shape *a = input_shape(g, n, 0), *b = input_shape(g, n, 1);
    uint32_t lead = node_code(n) == SOLVE_BATCH;
    char a_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
    if (a->rank != lead + 2 || (b->rank != lead + 1 && b->rank != lead + 2))
        return op_fail(n, RLXVK_E_SHAPE, "A %s, b %s; A is %s, b %s", shape_text(a, a_text),
                       shape_text(b, b_text), lead ? "[B, N, N]" : "[N, N]",
                       lead ? "[B, N] or [B, N, K]" : "[N] or [N, K]");
    s->batch = lead ? a->dims[0] : 1;
    s->n = a->dims[lead];
    s->columns = b->rank == lead + 2 ? b->dims[lead + 1] : 1;
    if (s->n == 0)
        s->columns = 0; /* without rows their number does not matter */
    if (a->dims[lead + 1] != s->n)
        return op_fail(n, RLXVK_E_ATTR, "A %s is not square; its last two dims are equal",
                       shape_text(a, a_text));
    if (b->dims[lead] != s->n || (lead && b->dims[0] != s->batch))
        return op_fail(n, RLXVK_E_SHAPE, "b %s does not go with A %s; it has a row for each of A's",
                       shape_text(b, b_text), shape_text(a, a_text));
    n->shape = RLXVK_SHAPE((int64_t)shape_numel(b) + s->batch);
    n->dtype = (uint8_t)input_dtype(g, n, 1);
    return RLXVK_OK;
}

/* ---- Lower ---- */

static rlxvk_status lower_factors(lowering *l, uint32_t id, lu_factors *f)
{
    strided_copy copy = layout_dense_copy(input_shape(l->graph, graph_node(l->graph, id), 0));
    rlxvk_status status;
    memcpy(copy.source, copy.target, sizeof copy.source);
    TRY(lower_temporary(l, (uint64_t)f->batch * f->n * f->n * sizeof(float), &f->matrix));
    if (f->n > 0)
        TRY(layout_emit_copy(l, &copy, lower_input(l, id, 0), f->matrix));
    TRY(lu_lower(l, f));
error:
    return status;
}

static rlxvk_status lower_solutions(lowering *l, uint32_t id, const lu_factors *f)
{
    const solve_attributes *s = graph_node(l->graph, id)->attributes;
    operand work, a = lower_input(l, id, 0), b = lower_input(l, id, 1), x = lower_update(l, id);
    struct lu_solve_args args = {(uint32_t)s->n,     (uint32_t)s->columns,
                                 (uint32_t)s->batch, a.offset,
                                 b.offset,           x.offset};
    dispatch d = {.kernel = KERNEL_LU_SOLVE, .node = id};
    rlxvk_status status;
    TRY(lower_temporary(l, (uint64_t)(s->batch * s->n * s->columns) * sizeof(float), &work));
    work.access = ACCESS_READ | ACCESS_WRITE;
    SET_CONSTANTS(&d, {LOCAL_SIZE, f->workgroup});
    lower_groups(l, &d, (uint64_t)s->batch * MAX((uint64_t)s->columns, 1));
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){f->matrix, f->pivots, a, b, work, x}, 6));
error:
    return status;
}

static rlxvk_status solve_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const solve_attributes *s = n->attributes;
    lu_factors f = {.node = id,
                    .n = (uint32_t)s->n,
                    .batch = (uint32_t)s->batch,
                    .workgroup = lu_workgroup(l->profile, s->n)};
    rlxvk_status status;
    TRY(lu_check_size(l, n, s->n));
    TRY(lower_factors(l, id, &f));
    TRY(lower_solutions(l, id, &f));
error:
    return status;
}

/* ---- Host ---- */

static void exchange_rows(double *a, uint64_t width, uint64_t i, uint64_t j)
{
    for (uint64_t c = 0; c < width; c++) {
        double upper = a[i * width + c];
        a[i * width + c] = a[j * width + c];
        a[j * width + c] = upper;
    }
}

/* Gauss-Jordan elimination on [A | right], n rows of `width`. The part right of A becomes A^-1
 * times it. Returns false if A is singular. */
static bool eliminate(double *a, uint64_t n, uint64_t width)
{
    for (uint64_t k = 0; k < n; k++) {
        uint64_t pivot = k;
        for (uint64_t i = k + 1; i < n; i++)
            if (fabs(a[i * width + k]) > fabs(a[pivot * width + k]))
                pivot = i;
        if (a[pivot * width + k] == 0 || !isfinite(a[pivot * width + k]))
            return false;
        exchange_rows(a, width, k, pivot);
        double scale = 1 / a[k * width + k];
        for (uint64_t c = k; c < width; c++)
            a[k * width + c] *= scale;
        for (uint64_t i = 0; i < n; i++) {
            double factor = i == k ? 0 : a[i * width + k];
            for (uint64_t c = k; factor != 0 && c < width; c++)
                a[i * width + c] -= factor * a[k * width + c];
        }
    }
    return true;
}

static double largest(const float *values, uint64_t count, uint64_t stride)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i * stride]));
    return most;
}

/*
 * How far column c of x may be off: |A^-1| r, with r the residual that is allowed. In every row it
 * is the smaller of 1e-5 (max|A| max|x| + max|b|) and u (8 + 4 sqrt n) (|A| |x| + |b|).
 */
static void bound_column(const host_call *call, const double *solved, uint64_t slice, uint64_t c)
{
    const solve_attributes *s = call->node->attributes;
    uint64_t n = (uint64_t)s->n, k = (uint64_t)s->columns, width = 2 * n + k;
    const float *a = call->inputs[0].words + slice * n * n;
    const float *b = call->inputs[1].words + slice * n * k + c;
    double most = 0, *bound = call->bound + slice * n * k + c;
    for (uint64_t i = 0; i < n; i++)
        most = fmax(most, fabs(solved[i * width + n + c]));
    double whole = 1e-5 * (largest(a, n * n, 1) * most + largest(b, n, k));
    for (uint64_t i = 0; i < n; i++)
        bound[i * k] = 0;
    for (uint64_t j = 0; j < n; j++) {
        double sum = fabs((double)b[j * k]);
        for (uint64_t p = 0; p < n; p++)
            sum += fabs((double)a[j * n + p] * solved[p * width + n + c]);
        double residual = fmin(whole, 0x1p-24 * (8 + 4 * sqrt((double)n)) * sum);
        for (uint64_t i = 0; i < n; i++)
            bound[i * k] += fabs(solved[i * width + n + k + j]) * residual;
    }
}

/* Solves one matrix. Rows of `work` are [A | b | 1]. */
static void host_slice(const host_call *call, uint64_t slice, double *work)
{
    const solve_attributes *s = call->node->attributes;
    uint64_t n = (uint64_t)s->n, k = (uint64_t)s->columns, width = 2 * n + k;
    const float *a = call->inputs[0].words + slice * n * n;
    const float *b = call->inputs[1].words + slice * n * k;
    double *x = call->out + slice * n * k;
    memset(work, 0, n * width * sizeof *work);
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t j = 0; j < n; j++)
            work[i * width + j] = a[i * n + j];
        for (uint64_t c = 0; c < k; c++)
            work[i * width + n + c] = b[i * k + c];
        work[i * width + n + k + i] = 1;
    }
    bool regular = eliminate(work, n, width);
    for (uint64_t i = 0; i < n * k; i++)
        x[i] = regular ? work[i / k * width + n + i % k] : NAN;
    for (uint64_t c = 0; c < k && regular && call->bound; c++)
        bound_column(call, work, slice, c);
    call->out[(uint64_t)s->batch * n * k + slice] = !regular;
}

static rlxvk_status solve_host(const host_call *call)
{
    const solve_attributes *s = call->node->attributes;
    uint64_t n = (uint64_t)s->n;
    double *work = memory_zeroed(n * (2 * n + (uint64_t)s->columns) + 1, sizeof *work);
    if (!work)
        return status_fail_memory("solve");
    for (uint64_t slice = 0; slice < (uint64_t)s->batch; slice++)
        host_slice(call, slice, work);
    memory_free(work);
    return RLXVK_OK;
}

static uint64_t solve_bucket(bucket_call *c)
{
    return bucket_refuse(c, "the flags of singular systems lie behind its solutions");
}

/* X = A^-1 B gives dB = A'^-1 dX and dA = -dB X'. The flags in the result have no gradient. */
static rlxvk_status solve_vjp(gradient_call *c)
{
    const solve_attributes *s = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_shape b = gradient_shape(c, 1), matrices = RLXVK_SHAPE(s->batch, s->n, s->columns);
    int64_t numel = s->batch * s->n * s->columns;
    rlxvk_matmul_options options = {.transpose_b = true};
    if (numel == 0) {
        for (uint32_t i = 0; i < 2; i++)
            gradient_give(c, i, gradient_filled(g, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    rlxvk_tensor dx = rlxvk_reshape(g, rlxvk_narrow(g, c->dy, 0, 0, numel), matrices);
    rlxvk_tensor x = rlxvk_reshape(g, rlxvk_narrow(g, gradient_result(c), 0, 0, numel), matrices);
    rlxvk_tensor a = rlxvk_reshape(g, gradient_operand(c, 0), RLXVK_SHAPE(s->batch, s->n, s->n));
    rlxvk_tensor turned = rlxvk_transpose(g, a, (int32_t[]){0, 2, 1}, 3);
    rlxvk_tensor db = rlxvk_batched_dense_solve(g, turned, dx);
    gradient_give(c, 1, rlxvk_reshape(g, db, b));
    rlxvk_tensor da = rlxvk_neg(g, rlxvk_matmul_with(g, db, x, &options));
    gradient_give(c, 0, rlxvk_reshape(g, da, gradient_shape(c, 0)));
    return RLXVK_OK;
}

/* ---- The family ---- */

static uint64_t solve_flags(const node *n, uint64_t *out_first)
{
    const solve_attributes *s = n->attributes;
    *out_first = (uint64_t)(s->batch * s->n * s->columns);
    return (uint64_t)s->batch;
}

static rlxvk_status solve_flag_error(const node *n, const char *label, const run_flags *found)
{
    (void)n;
    return status_fail(RLXVK_E_SINGULAR,
                       "%s: %llu of %llu matrices are singular, the first is slice %llu; their "
                       "solutions are NaN, all else is valid",
                       label, (unsigned long long)found->bad, (unsigned long long)found->count,
                       (unsigned long long)found->first);
}

static void solve_describe(const node *n, text *out)
{
    const solve_attributes *s = n->attributes;
    text_append(out, " batch=%lld n=%lld columns=%lld", (long long)s->batch, (long long)s->n,
                (long long)s->columns);
}

const op_family solve_family = {
    .name = "solve",
    .attribute_size = sizeof(solve_attributes),
    .infer = solve_infer,
    .execution = {.lower = solve_lower, .host = solve_host},
    .rows = {.bucket = solve_bucket},
    .derivative = {.vjp = solve_vjp},
    .checks = {.flags = solve_flags, .flag_error = solve_flag_error},
    .describe = solve_describe,
};
