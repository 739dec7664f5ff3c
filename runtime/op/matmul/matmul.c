/*
 * Matrix products: y[.., i, j] = sum_k a[.., i, k] b[.., k, j], and the same with a bias per column
 * and an activation.
 *
 * Leading axes broadcast as in numpy: each batch axis has one stride per operand, 0 where it
 * repeats. After joining axes at most six remain (rank 8 less the matrix). transpose_a and
 * transpose_b say that an operand is stored with its last two axes swapped; it is read so, never
 * copied. Either operand may be a packed F16/BF16 leaf.
 *
 * matmul_select.c chooses the kernel. Where K is long and y is small, workgroups sum parts of K
 * into a temporary [splits, y], which matmul_sum adds up in order; the epilogue is then
 * matmul_sum's.
 */
#include "args/elementwise.h"
#include "args/product.h"
#include "constants/matmul.h"
#include "op/compose/composite.h"
#include "op/gradient.h"
#include "op/activation.h"
#include "op/families.h"
#include "op/matmul/matrix_product.h"
#include "op/matmul/matvec_select.h"

#include <string.h>

#define UNPACKED_TILE 128

/* ---- Building ---- */

/* A vector is a matrix of one row, or, as b, of one column; its axis leaves the result again. */
static rlxvk_tensor multiply_vectors(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                                     matmul_attributes *attributes)
{
    static const char row[] = "matmul";
    rlxvk_shape of_a = rlxvk_tensor_shape(g, a), of_b = rlxvk_tensor_shape(g, b), of_y;
    size_t start = g->nodes.count;
    if (!composite_begin(g, row, (rlxvk_tensor[]){a, b}, 2))
        return RLXVK_NONE;
    if (of_a.rank == 1) {
        attributes->transpose_a = false;
        a = rlxvk_reshape(g, a, RLXVK_SHAPE(1, of_a.dims[0]));
    }
    if (of_b.rank == 1) {
        attributes->transpose_b = true;
        b = rlxvk_reshape(g, b, RLXVK_SHAPE(1, of_b.dims[0]));
    }
    rlxvk_tensor y = op_build(g, OP_matmul, (rlxvk_tensor[]){a, b}, 2, attributes);
    of_y = rlxvk_tensor_shape(g, y);
    if (of_a.rank == 1 && of_y.rank >= 2) {
        of_y.dims[of_y.rank - 2] = of_y.dims[of_y.rank - 1];
        of_y.rank--;
    }
    of_y.rank -= of_b.rank == 1 && of_y.rank >= 1;
    return composite_end(g, row, start, rlxvk_reshape(g, y, of_y));
}

rlxvk_tensor rlxvk_matmul_with(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                               const rlxvk_matmul_options *options)
{
    matmul_attributes attributes;
    rlxvk_matmul_options o;
    if (!op_take(g, "matmul", SIZED(rlxvk_matmul_options), options, &o))
        return RLXVK_NONE;
    memset(&attributes, 0, sizeof attributes);
    attributes.transpose_a = o.transpose_a;
    attributes.transpose_b = o.transpose_b;
    uint32_t rank_a = rlxvk_tensor_shape(g, a).rank, rank_b = rlxvk_tensor_shape(g, b).rank;
    if (rank_a == 1 || rank_b == 1)
        return multiply_vectors(g, a, b, &attributes);
    return op_build(g, OP_matmul, (rlxvk_tensor[]){a, b}, 2, &attributes);
}

rlxvk_tensor rlxvk_matmul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)
{
    return rlxvk_matmul_with(g, a, b, NULL);
}

rlxvk_tensor rlxvk_fused_matmul_bias_act(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor bias, rlxvk_activation activation,
                                         bool transpose_w)
{
    matmul_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.transpose_b = transpose_w;
    attributes.activation = activation;
    return op_build(g, OP_fused_matmul_bias_act, (rlxvk_tensor[]){x, w, bias}, 3, &attributes);
}

/* ---- Infer ---- */

/* Rows and columns of a matrix operand as the product sees it. */
static void matrix_dims(const rlxvk_shape *s, bool transposed, int64_t *rows, int64_t *columns)
{
    int64_t last = s->dims[s->rank - 1], before = s->rank > 1 ? s->dims[s->rank - 2] : 1;
    *rows = transposed ? last : before;
    *columns = transposed ? before : last;
}

static rlxvk_status check_inner(const node *n, const rlxvk_shape *a, const rlxvk_shape *b,
                                const matmul_attributes *attributes)
{
    int64_t m, k, b_k, columns, turned_k, turned_columns;
    char a_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
    matrix_dims(a, attributes->transpose_a, &m, &k);
    matrix_dims(b, attributes->transpose_b, &b_k, &columns);
    if (k == b_k)
        return RLXVK_OK;
    matrix_dims(b, !attributes->transpose_b, &turned_k, &turned_columns);
    return op_fail(n, RLXVK_E_SHAPE, "K is %lld in %s%s and %lld in %s%s; they must be equal%s",
                   (long long)k, shape_text(a, a_text),
                   attributes->transpose_a ? " (transposed)" : "", (long long)b_k,
                   shape_text(b, b_text), attributes->transpose_b ? " (transposed)" : "",
                   turned_k != k             ? ""
                   : attributes->transpose_b ? "; without transpose_b they are"
                                             : "; with transpose_b, for weights stored [N, K] as "
                                               "PyTorch has them, they are");
}

static rlxvk_status infer_plain(const rlxvk_graph *g, node *n, const matmul_attributes *attributes)
{
    const rlxvk_shape *a = input_shape(g, n, 0), *b = input_shape(g, n, 1);
    char a_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
    int64_t inner;
    rlxvk_status status;
    if (a->rank < 2 || b->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "operands %s and %s; both need rank 2 or more (reshape)",
                       shape_text(a, a_text), shape_text(b, b_text));
    TRY(check_inner(n, a, b, attributes));
    rlxvk_shape a_batch = *a, b_batch = *b;
    a_batch.rank -= 2;
    b_batch.rank -= 2;
    if (!shape_broadcast(&a_batch, &b_batch, &n->shape))
        return op_fail(n, RLXVK_E_SHAPE,
                       "leading dims of %s and %s do not broadcast; they are equal or 1",
                       shape_text(a, a_text), shape_text(b, b_text));
    n->shape.rank += 2;
    matrix_dims(a, attributes->transpose_a, &n->shape.dims[n->shape.rank - 2], &inner);
    matrix_dims(b, attributes->transpose_b, &inner, &n->shape.dims[n->shape.rank - 1]);
    n->dtype = (uint8_t)dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1));
error:
    return status;
}

static rlxvk_status infer_bias_act(const rlxvk_graph *g, node *n,
                                   const matmul_attributes *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    const rlxvk_shape *bias = input_shape(g, n, 2);
    char buffer[SHAPE_TEXT];
    int64_t inner, columns;
    rlxvk_status status;
    if ((unsigned)attributes->activation > UNARY_COUNT)
        return op_fail(n, RLXVK_E_ATTR, "activation %d is none of 0 .. %d",
                       (int)attributes->activation, UNARY_COUNT);
    if (x->rank < 1)
        return op_fail(n, RLXVK_E_SHAPE, "x is a scalar; it needs rank 1 or more");
    if (w->rank != 2)
        return op_fail(n, RLXVK_E_SHAPE, "w is %s; it must have rank 2", shape_text(w, buffer));
    TRY(check_inner(n, x, w, attributes));
    matrix_dims(w, attributes->transpose_b, &inner, &columns);
    if (bias->rank != 1 || bias->dims[0] != columns)
        return op_fail(n, RLXVK_E_SHAPE, "bias is %s; w has %lld columns, so it must be [%lld]",
                       shape_text(bias, buffer), (long long)columns, (long long)columns);
    n->shape = *x;
    n->shape.dims[x->rank - 1] = columns;
    n->dtype = (uint8_t)dtype_promote(dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1)),
                                      input_dtype(g, n, 2));
error:
    return status;
}

static rlxvk_status matmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    return node_code(n) == MATMUL_PLAIN ? infer_plain(g, n, attributes)
                                        : infer_bias_act(g, n, attributes);
}

/* ---- Lower ---- */

/* Stride of batch axis `from_last` (0: the innermost) of an operand, 0 where it is missing or 1. */
static uint64_t batch_stride(const rlxvk_shape *s, uint32_t from_last)
{
    if (s->rank < 3 + from_last || s->dims[s->rank - 3 - from_last] == 1)
        return 0;
    return shape_product(s, s->rank - 2 - from_last, s->rank);
}

static uint64_t batch_extent(const rlxvk_shape *s, uint32_t from_last)
{
    return s->rank < 3 + from_last ? 1 : (uint64_t)s->dims[s->rank - 3 - from_last];
}

static void add_axis(matmul_problem *p, matmul_axis axis)
{
    matmul_axis *inner = p->axis_count ? &p->axes[p->axis_count - 1] : NULL;
    if (axis.extent == 1)
        return;
    if (inner && axis.a_stride == inner->a_stride * inner->extent &&
        axis.b_stride == inner->b_stride * inner->extent)
        inner->extent *= axis.extent;
    else
        p->axes[p->axis_count++] = axis;
}

void matmul_problem_make(const rlxvk_shape *a, const rlxvk_shape *b, bool transpose_a,
                         bool transpose_b, matmul_problem *out)
{
    int64_t m, k, n;
    matmul_shape *s = &out->shape;
    memset(out, 0, sizeof *out);
    matrix_dims(a, transpose_a, &m, &k);
    matrix_dims(b, transpose_b, &k, &n);
    *s = (matmul_shape){(uint64_t)m, (uint64_t)n, (uint64_t)k, 1, transpose_a, transpose_b};
    for (uint32_t i = 0; i + 2 < MAX(a->rank, b->rank); i++) {
        uint64_t a_extent = batch_extent(a, i), b_extent = batch_extent(b, i);
        add_axis(out, (matmul_axis){a_extent == 1 ? b_extent : a_extent, batch_stride(a, i),
                                    batch_stride(b, i)});
    }
    while (out->axis_count && !transpose_a && out->axes[0].b_stride == 0 &&
           out->axes[0].a_stride == s->m * s->k) {
        s->m *= out->axes[0].extent;
        memmove(&out->axes[0], &out->axes[1], --out->axis_count * sizeof(matmul_axis));
    }
    for (uint32_t i = 0; i < out->axis_count; i++)
        s->batch *= out->axes[i].extent;
}

/* One product ready to be emitted: operands in the kernel's order (swapped or not). */
typedef struct product {
    const matmul_class *class;
    matmul_problem problem; /* in the kernel's orientation */
    operand a, b, bias, y;
    bool swapped, has_bias;
    uint32_t activation; /* UNARY_... */
    uint64_t slice, splits, y_row;
    uint32_t ends[2];
    bool apart;                    /* y is partial results */
    const projection_parts *parts; /* NULL: none */
    const char *variant;           /* the row to show; NULL: the class's */
} product;

static void swap_operands(product *p)
{
    matmul_shape *s = &p->problem.shape;
    operand a = p->a;
    *s = (matmul_shape){s->n, s->m, s->k, s->batch, !s->transpose_b, !s->transpose_a};
    for (uint32_t i = 0; i < p->problem.axis_count; i++) {
        matmul_axis *axis = &p->problem.axes[i];
        *axis = (matmul_axis){axis->extent, axis->b_stride, axis->a_stride};
    }
    p->a = p->b;
    p->b = a;
    p->swapped = true;
}

/* Which operands can be read and written in quads: contiguous axis, offsets and batch strides all
 * multiples of four. */
static uint32_t vector_bits(const product *p)
{
    const matmul_shape *s = &p->problem.shape;
    uint64_t a = p->a.offset | (s->transpose_a ? s->m : s->k);
    uint64_t b = p->b.offset | (s->transpose_b ? s->k : s->n);
    for (uint32_t i = 0; i < p->problem.axis_count; i++) {
        a |= p->problem.axes[i].a_stride;
        b |= p->problem.axes[i].b_stride;
    }
    bool tiled = p->class->form == MATMUL_FORM_TILED || p->class->form == MATMUL_FORM_ROWS;
    bool a_runs = p->class->form == MATMUL_FORM_TILED || !s->transpose_a; /* others gather it */
    uint32_t tail = tiled && s->k % p->class->step != 0 ? MATMUL_TAIL : 0u;
    return tail | (a % 4 == 0 && a_runs ? MATMUL_VECTOR_A : 0u) |
           (b % 4 == 0 ? MATMUL_VECTOR_B : 0u) |
           (tiled && (p->y.offset | p->y_row | s->n | p->ends[0] | p->ends[1]) % 4 == 0
                ? MATMUL_VECTOR_Y
                : 0u);
}

static struct matmul_args make_arguments(const product *p)
{
    const matmul_shape *s = &p->problem.shape;
    struct matmul_args args = {.m = (uint32_t)s->m,
                               .n = (uint32_t)s->n,
                               .k = (uint32_t)s->k,
                               .k_slice = (uint32_t)p->slice,
                               .a_offset = p->a.offset,
                               .b_offset = p->b.offset,
                               .bias_offset = p->bias.offset,
                               .y_offset = p->y.offset,
                               .batch_count = (uint32_t)s->batch};
    for (uint32_t i = 0; i < MATMUL_BATCH_AXES; i++) {
        bool real = i < p->problem.axis_count;
        if (i < MATMUL_BATCH_AXES - 1)
            args.batch_dims[i] = real ? (uint32_t)p->problem.axes[i].extent : 1;
        args.a_batch_strides[i] = real ? (uint32_t)p->problem.axes[i].a_stride : 0;
        args.b_batch_strides[i] = real ? (uint32_t)p->problem.axes[i].b_stride : 0;
    }
    return args;
}

/* Rows and columns in registers of a matvec: the vectors rounded up, and what the shared memory's
 * 16 KiB hold. */
static void set_vector_constants(const product *p, dispatch *d)
{
    uint32_t rows = 1;
    while (rows < p->problem.shape.m)
        rows *= 2;
    uint32_t columns = p->parts ? MATMUL_PROJECTION_COLUMNS : matmul_vector_columns(rows);
    SET_CONSTANTS(d, {MATVEC_REG_M, rows}, {MATVEC_REG_N, columns}, {MATVEC_SWAPPED, p->swapped},
                  {MATVEC_PARTS, p->parts ? p->parts->bits : 0});
}

static void set_rows_constants(const product *p, dispatch *d)
{
    const matmul_class *c = p->class;
    uint32_t threads_m = c->tile_m / c->register_m;
    SET_CONSTANTS(d, {MATMUL_ROWS_REG_M, matmul_rows(c, p->problem.shape.m)},
                  {MATMUL_ROWS_THREADS_M, threads_m}, {MATMUL_ROWS_STEP, c->step},
                  {MATMUL_ROWS_SLICES, c->threads / (threads_m * MATMUL_ROWS_LANES)},
                  {MATMUL_ROWS_AHEAD, c->loop});
}

static void set_constants(const lowering *l, const product *p, dispatch *d)
{
    const matmul_class *c = p->class;
    uint32_t bias = p->swapped ? MATMUL_BIAS_ROW : MATMUL_BIAS_COLUMN;
    bool last = !p->apart; /* otherwise matmul_sum has the epilogue */
    SET_CONSTANTS(d, {LOCAL_SIZE, c->threads ? c->threads : l->profile->workgroup_size},
                  {MATMUL_TRANSPOSE_A, p->problem.shape.transpose_a},
                  {MATMUL_TRANSPOSE_B, p->problem.shape.transpose_b},
                  {MATMUL_A_STORAGE, matmul_storage_code(l, &p->a)},
                  {MATMUL_B_STORAGE, matmul_storage_code(l, &p->b)},
                  {MATMUL_VECTORS, vector_bits(p)},
                  {MATMUL_BIAS, last && p->has_bias ? bias : MATMUL_NO_BIAS},
                  {MATMUL_ACTIVATION, last ? p->activation : UNARY_NONE},
                  {MATMUL_REG_M, c->register_m}, {MATMUL_REG_N, c->register_n});
    if (c->form == MATMUL_FORM_ROWS)
        set_rows_constants(p, d);
    if (c->form == MATMUL_FORM_TILED)
        SET_CONSTANTS(d, {MATMUL_TILED_TILE_M, c->tile_m}, {MATMUL_TILED_TILE_N, c->tile_n},
                      {MATMUL_TILED_STEP, c->step}, {MATMUL_TILED_LOOP, c->loop},
                      {MATMUL_TILED_BAND, MATMUL_BAND});
    if (c->form == MATMUL_FORM_VECTOR || c->form == MATMUL_FORM_SWAPPED)
        set_vector_constants(p, d);
}

/* Workgroups of the kernels that make the next rows of y: all matrices come in their order, those
 * of a matvec have all its rows; with tiles, as many rows of them are made as are launched. */
static uint32_t run_of(const product *p, const dispatch *d)
{
    const matmul_class *c = p->class;
    uint64_t across = divide_up(p->problem.shape.n, MAX(c->tile_n, 1));
    if (p->problem.shape.batch > 1)
        return 1;
    if (c->form == MATMUL_FORM_VECTOR)
        return d->groups[0] * d->groups[1] * d->groups[2];
    if (c->form == MATMUL_FORM_SWAPPED)
        return (uint32_t)p->splits;
    /* After so many a workgroup begins with a row of blocks; K is not split. */
    if (c->form == MATMUL_FORM_SCALAR)
        return (uint32_t)(across / common_divisor(across, d->constants[LOCAL_SIZE]));
    return (uint32_t)(across * p->splits);
}

/* The rows of each matrix of a batch: tiles go through a band of rows together, or, of few rows,
 * from column to column. */
static group_order order_of(const product *p, const dispatch *d, uint64_t groups)
{
    const matmul_shape *s = &p->problem.shape;
    uint64_t matrices = s->batch * p->splits, across = divide_up(s->n, MAX(p->class->tile_n, 1));
    group_order order = {.run = run_of(p, d)};
    bool tiled = p->class->form == MATMUL_FORM_TILED, rows = p->class->form == MATMUL_FORM_ROWS;
    if (s->batch == 1 || !(tiled || rows || p->class->form == MATMUL_FORM_SWAPPED))
        return order;
    order.span = s->m * s->n;
    order.cycles = (uint32_t)(matrices * (rows ? across : 1));
    order.cycle = (uint32_t)(groups / order.cycles);
    order.rows_run = tiled ? (uint32_t)(MATMUL_BAND * across) : 1;
    return order;
}

static rlxvk_status emit_product(lowering *l, uint32_t id, const product *p, uint64_t groups)
{
    static const uint16_t kernels[] = {[MATMUL_FORM_SCALAR] = KERNEL_MATMUL_SCALAR,
                                       [MATMUL_FORM_VECTOR] = KERNEL_MATVEC,
                                       [MATMUL_FORM_SWAPPED] = KERNEL_MATVEC,
                                       [MATMUL_FORM_TILED] = KERNEL_MATMUL_TILED,
                                       [MATMUL_FORM_ROWS] = KERNEL_MATMUL_ROWS};
    dispatch d = {.kernel = kernels[p->class->form],
                  .node = id,
                  .variant = p->variant ? p->variant : p->class->row.name};
    struct matmul_args matrices = make_arguments(p);
    struct matvec_args with_parts = {matrices,
                                     projection_arguments(p->parts),
                                     {p->ends[0], p->ends[1]}};
    struct product_args args = {matrices, (uint32_t)p->y_row, {p->ends[0], p->ends[1]}};
    const operand operands[] = {p->a, p->b, p->bias, p->y, p->parts ? p->parts->residual : p->a};
    bool vector = d.kernel == KERNEL_MATVEC;
    set_constants(l, p, &d);
    lower_groups(l, &d, groups * p->splits);
    d.order = order_of(p, &d, groups * p->splits);
    return lower_emit(l, &d, vector ? (const void *)&with_parts : &args,
                      vector ? sizeof with_parts : sizeof args, operands,
                      kernel_table[d.kernel].binding_count);
}

static rlxvk_status emit_sum(lowering *l, uint32_t id, const matmul_request *r, operand partial,
                             uint64_t splits, bool in_order)
{
    const matmul_shape *s = &r->problem.shape;
    uint64_t y_row = r->y_row ? r->y_row : s->n;
    uint64_t count = s->batch * s->m * s->n;
    dispatch d = {.kernel = KERNEL_MATMUL_SUM, .node = id};
    struct matmul_sum_args args = {.count = (uint32_t)count,
                                   .n = (uint32_t)s->n,
                                   .splits = (uint32_t)splits,
                                   .bias_offset = r->bias ? r->bias->offset : 0,
                                   .y_offset = r->y.offset,
                                   .y_row = (uint32_t)y_row};
    matmul_set_ends(r, y_row, args.ends);
    partial.access = ACCESS_READ;
    const operand operands[] = {partial, r->bias ? *r->bias : partial, r->y};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {MATMUL_SUM_BIAS, r->bias ? MATMUL_BIAS_COLUMN : MATMUL_NO_BIAS},
                  {MATMUL_SUM_ACTIVATION, r->activation});
    lower_groups_in_order(l, &d, count, d.constants[LOCAL_SIZE]);
    if (!in_order)
        d.order = (group_order){0};
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

rlxvk_status matmul_emit_sum(lowering *l, uint32_t id, const matmul_request *r, operand partial,
                             uint64_t splits)
{
    return emit_sum(l, id, r, partial, splits, true);
}

rlxvk_status matmul_emit_plain_sum(lowering *l, uint32_t id, operand partial, uint64_t parts,
                                   uint64_t count, operand y)
{
    const matmul_request r = {.y = y,
                              .activation = UNARY_NONE,
                              .problem.shape = {.m = 1, .n = count, .batch = 1}};
    return emit_sum(l, id, &r, partial, parts, false);
}

static size_t choose(lowering *l, const matmul_shape *s)
{
    return variant_choose(l, CHOICE_matmul, matmul_tag(s),
                          (uint64_t[VARIANT_DIMS]){s->m, s->n, s->k, s->batch});
}

/* Whether the kernel can leave elements of others between rows of y. */
static bool has_rows_apart(const matmul_class *c)
{
    return c->form != MATMUL_FORM_VECTOR && c->form != MATMUL_FORM_SWAPPED;
}

/* In f32. */
static rlxvk_status emit_exact(lowering *l, uint32_t id, const matmul_request *r)
{
    product p = {.a = r->a,
                 .b = r->b,
                 .bias = r->bias ? *r->bias : r->a,
                 .y = r->y,
                 .problem = r->problem,
                 .has_bias = r->bias != NULL,
                 .activation = r->activation};
    const matmul_shape shape = p.problem.shape;
    const matmul_request whole = {.activation = UNARY_NONE};
    uint64_t groups;
    rlxvk_status status;
    p.class = matmul_select(&shape, l->profile, choose(l, &shape));
    groups = matmul_groups(p.class, &shape, l->profile);
    p.slice = matmul_slice(p.class, &shape, l->profile);
    p.splits = p.slice < shape.k ? divide_up(shape.k, p.slice) : 1;
    if (p.class->form == MATMUL_FORM_SWAPPED)
        swap_operands(&p);
    p.apart = p.splits > 1 || (r->y_row && !has_rows_apart(p.class));
    p.y_row = p.apart || !r->y_row ? shape.n : r->y_row;
    matmul_set_ends(p.apart ? &whole : r, p.y_row, p.ends);
    if (p.apart)
        TRY(lower_temporary(l, p.splits * shape.batch * shape.m * shape.n * sizeof(float), &p.y));
    TRY(emit_product(l, id, &p, groups));
    if (p.apart)
        TRY(matmul_emit_sum(l, id, r, p.y, p.splits));
error:
    return status;
}

uint64_t matmul_unpacked_bytes = UINT64_C(144) << 20;

/* Columns of a packed b that are decoded at a time: all where both places together hold them. Else
 * as many whole tiles as a place holds, but what keeps a GPU busy for whole rounds: the last
 * workgroups of a part leave compute units idle, on an H200 3.5 % of a prompt's time with parts of
 * 64 MiB. */
static uint64_t unpacked_columns(const lowering *l, const matmul_shape *s)
{
    if (s->n * s->k * sizeof(float) <= 2 * matmul_unpacked_bytes)
        return s->n;
    const matmul_class *c = matmul_select(s, l->profile, VARIANT_NONE);
    uint64_t tile = round_up(MAX(c->tile_n, 1), UNPACKED_TILE);
    uint64_t bands = divide_up(s->m, MAX(c->tile_m, 1)), units = MAX(l->profile->compute_units, 1);
    uint64_t most = MAX(matmul_unpacked_bytes / (sizeof(float) * tile * MAX(s->k, 1)), 1);
    uint64_t rounds = most * bands / units;
    return tile * MAX(rounds ? rounds * units / bands : most, 1);
}

/* Narrows y to `count` columns from the first on, which are all of one part of it or some. */
static void take_columns(const lowering *l, const matmul_request *r, uint64_t first, uint64_t count,
                         matmul_request *part)
{
    const matmul_shape *s = &r->problem.shape;
    const uint32_t *ends = r->ends;
    uint64_t begin = first < ends[0] ? 0 : first < ends[1] ? ends[0] : ends[1];
    uint64_t end = first < ends[0] ? ends[0] : first < ends[1] ? ends[1] : s->n;
    part->ends[0] = part->ends[1] = 0;
    part->problem.shape.n = count;
    part->y_row = count < end - begin ? end - begin : 0;
    lower_narrow(l, &part->y, begin * s->m + first - begin, (s->m - 1) * (end - begin) + count);
}

/* Columns of y, so many after the other, from weights that are decoded to two places by turns:
 * while the ones are multiplied, the next are decoded. */
static rlxvk_status emit_unpacked(lowering *l, uint32_t id, const matmul_request *r)
{
    const matmul_shape *s = &r->problem.shape;
    uint64_t step = MIN(unpacked_columns(l, s), s->n), count;
    bool all = step == s->n;
    operand places[2] = {{0}, {0}};
    rlxvk_status status = RLXVK_OK;
    for (uint64_t first = 0, turn = 0; first < s->n; first += count, turn = 1 - turn) {
        matmul_request part = *r;
        operand bias = r->bias ? *r->bias : r->y;
        count = MIN(step, s->n - first);
        for (int i = 0; i < 2 && !all; i++)
            if (first < r->ends[i])
                count = MIN(count, r->ends[i] - first);
        l->prepares = all;
        TRY(r->unpack_b(l, id, MATMUL_WORDS, (matmul_rows_of_b){first, count, step},
                        &places[turn]));
        l->prepares = false;
        part.b = places[turn];
        if (!all)
            take_columns(l, r, first, count, &part);
        if (r->bias) {
            lower_narrow(l, &bias, first, count);
            part.bias = &bias;
        }
        TRY(emit_exact(l, id, &part));
    }
error:
    return status;
}

rlxvk_status matmul_emit(lowering *l, uint32_t id, const matmul_request *r)
{
    operand sums;
    rlxvk_status status;
    if (r->exact || !matrix_wanted(l, &r->problem.shape))
        return r->unpack_b ? emit_unpacked(l, id, r) : emit_exact(l, id, r);
    TRY(matrix_product_emit(l, id, r, &sums));
    if (r->activation != UNARY_NONE)
        TRY(matmul_emit_sum(l, id, r, sums, 1));
error:
    return status;
}

/* The class whose kernel streams weights past one row. */
static const matmul_class *streaming_class(const matmul_shape *s, const device_profile *profile,
                                           bool named)
{
    size_t row = 0;
    while (named && matmul_classes[row].form != MATMUL_FORM_VECTOR)
        row++;
    return matmul_select(s, profile, named ? row : VARIANT_NONE);
}

bool matmul_projects(const matmul_shape *s, const device_profile *profile, bool named)
{
    const matmul_class *c = streaming_class(s, profile, named);
    return s->m == 1 && s->batch == 1 && s->transpose_b && s->k % 4 == 0 &&
           c->form == MATMUL_FORM_VECTOR && matmul_slice(c, s, profile) >= s->k;
}

static bool names_matvec(const lowering *l)
{
    return variant_named(&l->variants, CHOICE_matvec) != VARIANT_NONE;
}

/* The product by teams that hold the row. */
static rlxvk_status emit_held(lowering *l, uint32_t id, const product *p, const matvec_class *c,
                              const matvec_shape *s)
{
    team_division t = matvec_divide(c, s, l->profile);
    dispatch d = {.kernel = KERNEL_MATVEC_HELD, .node = id, .variant = c->row.name};
    struct matvec_args args = {make_arguments(p), projection_arguments(p->parts)};
    const operand operands[] = {p->a, p->b, p->bias, p->y, p->parts->residual};
    SET_CONSTANTS(&d, {LOCAL_SIZE, (uint32_t)t.threads},
                  {MATVEC_HELD_B_STORAGE, matmul_storage_code(l, &p->b)},
                  {MATVEC_HELD_TEAM, (uint32_t)t.team}, {MATVEC_HELD_COLUMNS, c->columns},
                  {MATVEC_HELD_ROUNDS, (uint32_t)t.rounds},
                  {MATVEC_HELD_ACROSS, (uint32_t)t.groups},
                  {MATVEC_HELD_SUBGROUPS, (uint32_t)t.subgroups},
                  {MATVEC_HELD_PARTS, p->parts->bits}, {MATVEC_HELD_VECTORS, matvec_held(c, s)});
    lower_groups(l, &d, t.groups);
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* The way of a product of one row; `gamma` as in projection_parts. */
static const matvec_class *choose_vector(const lowering *l, const matmul_request *r,
                                         const operand *gamma, matvec_shape *out)
{
    const matmul_shape *s = &r->problem.shape;
    bool halves = matmul_storage_code(l, &r->b) != MATMUL_WORDS;
    *out = (matvec_shape){s->n, s->k,
                          halves && (s->k | r->b.offset) % 8 == 0 &&
                              (r->a.offset | gamma->offset) % 4 == 0};
    return matvec_select(out, l->profile, variant_named(&l->variants, CHOICE_matvec));
}

rlxvk_status matmul_emit_projection(lowering *l, uint32_t id, const matmul_request *r,
                                    const projection_parts *parts)
{
    const matmul_shape *s = &r->problem.shape;
    product p = {.class = streaming_class(s, l->profile, names_matvec(l)),
                 .problem = r->problem,
                 .a = r->a,
                 .b = r->b,
                 .bias = parts->gamma,
                 .y = r->y,
                 .activation = UNARY_NONE,
                 .slice = s->k,
                 .splits = 1,
                 .parts = parts};
    matvec_shape shape;
    const matvec_class *c = choose_vector(l, r, &parts->gamma, &shape);
    if (c->most_held)
        return emit_held(l, id, &p, c, &shape);
    p.variant = names_matvec(l) ? c->row.name : NULL;
    return emit_product(l, id, &p, divide_up(s->n, MATMUL_PROJECTION_COLUMNS));
}

/* One row by weights that are streamed past it is a projection, its bias the residual. */
static bool is_streamed(const lowering *l, const matmul_request *r)
{
    matvec_shape shape;
    return r->activation == UNARY_NONE &&
           variant_named(&l->variants, CHOICE_matmul) == VARIANT_NONE &&
           matmul_projects(&r->problem.shape, l->profile, names_matvec(l)) &&
           choose_vector(l, r, &r->a, &shape)->most_held != 0;
}

/* All kernels of one matrix of rows can. */
static bool matmul_divides(const rlxvk_graph *g, const node *n)
{
    const matmul_attributes *a = n->attributes;
    matmul_problem p;
    matmul_problem_make(input_shape(g, n, 0), input_shape(g, n, 1), a->transpose_a, a->transpose_b,
                        &p);
    return p.shape.batch == 1;
}

static rlxvk_status matmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const matmul_attributes *attributes = n->attributes;
    operand bias = lower_input(l, id, n->input_count - 1);
    matmul_request r = {.a = lower_input(l, id, 0),
                        .b = lower_input(l, id, 1),
                        .bias = node_code(n) == MATMUL_BIAS_ACT ? &bias : NULL,
                        .y = lower_write(l, id),
                        .activation = activation_code(attributes->activation)};
    lower_ends(l, id, r.ends);
    matmul_problem_make(input_shape(l->graph, n, 0), input_shape(l->graph, n, 1),
                        attributes->transpose_a, attributes->transpose_b, &r.problem);
    if (!is_streamed(l, &r))
        return matmul_emit(l, id, &r);
    projection_parts parts = {r.bias ? PROJECTION_RESIDUAL : 0, 0, r.a, r.bias ? bias : r.a};
    return matmul_emit_projection(l, id, &r, &parts);
}

/* ---- The family ---- */

/* A gradient of an operand that may have been broadcast over the batch. */
static void give_product(gradient_call *c, uint32_t i, rlxvk_tensor a, rlxvk_tensor b,
                         bool transpose_a, bool transpose_b)
{
    rlxvk_matmul_options options = {transpose_a, transpose_b};
    if (gradient_wanted(c, i))
        gradient_give_broadcast(c, i, rlxvk_matmul_with(c->graph, a, b, &options));
}

/* w of one matrix, x of many: dw sums over all rows at once, as one product. */
static bool give_joined_weight(gradient_call *c, const matmul_attributes *m, rlxvk_tensor dy)
{
    rlxvk_shape x = gradient_shape(c, 0), w = gradient_shape(c, 1),
                y = rlxvk_tensor_shape(c->graph, dy);
    if (w.rank != 2 || x.rank < 3 || m->transpose_a)
        return false;
    rlxvk_tensor rows =
        rlxvk_reshape(c->graph, gradient_operand(c, 0), RLXVK_SHAPE(-1, x.dims[x.rank - 1]));
    rlxvk_tensor flat = rlxvk_reshape(c->graph, dy, RLXVK_SHAPE(-1, y.dims[y.rank - 1]));
    if (m->transpose_b)
        give_product(c, 1, flat, rows, true, false);
    else
        give_product(c, 1, rows, flat, true, false);
    return true;
}

/* z = a b, each perhaps stored transposed: da = dz b', db = a' dz, stored alike. */
static rlxvk_status matmul_vjp(gradient_call *c)
{
    const matmul_attributes *m = c->n.attributes;
    bool ta = m->transpose_a, tb = m->transpose_b;
    rlxvk_tensor a = gradient_operand(c, 0), b = gradient_operand(c, 1);
    rlxvk_shape y = c->n.shape;
    if (shape_numel(&y) == 0) {
        for (uint32_t i = 0; i < 2; i++)
            gradient_give(c, i, gradient_filled(c->graph, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    if (ta)
        give_product(c, 0, b, c->dy, tb, true);
    else
        give_product(c, 0, c->dy, b, false, !tb);
    if (!gradient_wanted(c, 1) || give_joined_weight(c, m, c->dy))
        return RLXVK_OK;
    if (tb)
        give_product(c, 1, c->dy, a, true, ta);
    else
        give_product(c, 1, a, c->dy, !ta, false);
    return RLXVK_OK;
}

static rlxvk_tensor matmul_expand(rlxvk_graph *g, const node *n)
{
    if (node_code(n) == MATMUL_PLAIN)
        return RLXVK_NONE;
    const matmul_attributes *m = n->attributes;
    rlxvk_matmul_options options = {m->transpose_a, m->transpose_b};
    rlxvk_tensor x = tensor_of(g, n->inputs[0]);
    rlxvk_shape rows = rlxvk_tensor_shape(g, x);
    if (rows.rank == 1)
        x = rlxvk_reshape(g, x, RLXVK_SHAPE(1, rows.dims[0]));
    rlxvk_tensor z = rlxvk_matmul_with(g, x, tensor_of(g, n->inputs[1]), &options);
    z = rlxvk_add(g, rlxvk_reshape(g, z, n->shape), tensor_of(g, n->inputs[2]));
    return m->activation == RLXVK_ACTIVATION_NONE
               ? z
               : op_build(g, activation_op(activation_code(m->activation)), &z, 1, NULL);
}

static void matmul_describe(const node *n, text *out)
{
    const matmul_attributes *a = n->attributes;
    if (a->transpose_a)
        text_append(out, " transpose_a");
    if (a->transpose_b)
        text_append(out, " transpose_b");
    if (a->activation != RLXVK_ACTIVATION_NONE)
        text_append(out, " activation=%s", activation_name(a->activation));
}

const op_family matmul_family = {
    .name = "matmul",
    .attribute_size = sizeof(matmul_attributes),
    .half_inputs = 3,
    .infer = matmul_infer,
    .divides = matmul_divides,
    .lower = matmul_lower,
    .host = matmul_host,
    .bucket = matmul_bucket,
    .shorten = matmul_shorten,
    .vjp = matmul_vjp,
    .expand = matmul_expand,
    .describe = matmul_describe,
};
