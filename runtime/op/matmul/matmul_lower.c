/*
 * Turns products into dispatches. matmul_choice.c chooses the kernel. If K is long and y is small,
 * workgroups sum parts of K into a temporary [splits, y]. Then matmul_sum adds these up in order
 * and also applies the epilogue.
 */
#include "args/elementwise.h"
#include "args/product.h"
#include "constants/matmul.h"
#include "op/activation.h"
#include "op/matmul/matrix_unit_product.h"
#include "op/matmul/matvec_choice.h"

#define UNPACKED_TILE 128

/* One product that is ready to be emitted. Operands are in the kernel's order, swapped or not. */
typedef struct product {
    const matmul_class *class;
    matmul_problem problem; /* in the kernel's orientation */
    operand a, b, bias, y;
    bool swapped, has_bias;
    uint32_t activation; /* UNARY_... */
    uint64_t slice, splits, y_row;
    uint32_t ends[2];
    bool apart;                    /* y is a temporary for matmul_sum */
    const projection_parts *parts; /* NULL: none */
    const char *variant;           /* the name to show; NULL: the class's */
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

/* Which operands the kernel can read and write in quads. Their contiguous axis, offset and batch
 * strides must be multiples of four. */
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

/* Rows and columns that a matvec invocation keeps in registers. Rows are the vectors, rounded up to
 * a power of two. Columns are as many as 16 KiB of shared memory hold. */
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
                      {MATMUL_TILED_STEP, c->step},
                      {MATMUL_TILED_LOOP, matmul_tile_loop(c->loop, l->profile)},
                      {MATMUL_TILED_BAND, MATMUL_BAND});
    if (c->form == MATMUL_FORM_VECTOR || c->form == MATMUL_FORM_SWAPPED)
        set_vector_constants(p, d);
}

/* How many consecutive workgroups compute the next rows of y (group_order). With a batch it is 1,
 * because the matrices come in order. For a matvec it is all workgroups, because each computes all
 * rows of some columns. With tiles it is a row of tiles with its splits. */
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
    /* After so many, a workgroup begins with a new row of blocks. K is not split. */
    if (c->form == MATMUL_FORM_SCALAR)
        return (uint32_t)(across / common_divisor(across, d->constants[LOCAL_SIZE]));
    return (uint32_t)(across * p->splits);
}

/* How workgroups go through the rows of each matrix of a batch. Tiles go through a band of rows
 * together. If there are few rows, they go from column to column. */
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

/* Can the kernel leave other tensors' elements between the rows of y? */
static bool has_rows_apart(const matmul_class *c)
{
    return c->form != MATMUL_FORM_VECTOR && c->form != MATMUL_FORM_SWAPPED;
}

/* A kernel, and how many elements of K each of its workgroups sums. */
typedef struct way {
    const matmul_class *class;
    uint64_t slice;
} way;

static way way_for(lowering *l, const matmul_shape *s)
{
    const matmul_class *class = matmul_choose(s, l->profile, choose(l, s));
    return (way){class, matmul_slice(class, s, l->profile)};
}

/* Emits the product in f32. */
static rlxvk_status emit_by(lowering *l, uint32_t id, const matmul_request *r, way w)
{
    product p = {.class = w.class,
                 .a = r->a,
                 .b = r->b,
                 .bias = r->bias ? *r->bias : r->a,
                 .y = r->y,
                 .problem = r->problem,
                 .has_bias = r->bias != NULL,
                 .activation = r->activation,
                 .slice = w.slice};
    const matmul_shape shape = p.problem.shape;
    const matmul_request whole = {.activation = UNARY_NONE};
    uint64_t groups = matmul_groups(p.class, &shape, l->profile);
    rlxvk_status status;
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

#define FEW_ROWS_SHARE 4u /* the kernel for few active rows is chosen for m divided by this */

/* Finds the way that is best if few rows are active and that can compute all of them. Returns false
 * if there is none, or if it is the same as `all`. */
static bool has_way_for_few(lowering *l, const matmul_shape *s, way all, way *few)
{
    matmul_shape fewer = *s;
    fewer.m = divide_up(s->m, FEW_ROWS_SHARE);
    *few = way_for(l, &fewer);
    uint64_t words = divide_up(s->k, few->slice) * s->m * s->n;
    return (few->class != all.class || few->slice != all.slice) &&
           matmul_choose(s, l->profile, (size_t)(few->class - matmul_classes)) == few->class &&
           (few->slice >= s->k || words <= l->profile->max_binding_bytes / sizeof(float));
}

static rlxvk_status emit_exact(lowering *l, uint32_t id, const matmul_request *r)
{
    const matmul_shape *s = &r->problem.shape;
    way all = way_for(l, s), few;
    rlxvk_status status;
    if (r->ends_early && s->batch == 1 && has_way_for_few(l, s, all, &few)) {
        l->turn = TURN_FEW_ROWS;
        TRY(emit_by(l, id, r, few));
        l->turn = TURN_MANY_ROWS;
    }
    TRY(emit_by(l, id, r, all));
error:
    l->turn = TURN_ALWAYS;
    return status;
}

uint64_t matmul_unpacked_bytes = UINT64_C(144) << 20;

/* How many columns of a packed b are decoded at a time. If both buffers together hold all of them,
 * it is all. Otherwise it is as many whole tiles as one buffer holds, cut to whole rounds of
 * workgroups on all compute units. They are cut because the last workgroups of a part leave compute
 * units idle. On an H200 that took 3.5 % of a prompt's time with parts of 64 MiB. */
static uint64_t unpacked_columns(const lowering *l, const matmul_shape *s)
{
    if (s->n * s->k * sizeof(float) <= 2 * matmul_unpacked_bytes)
        return s->n;
    const matmul_class *c = matmul_choose(s, l->profile, VARIANT_NONE);
    uint64_t tile = round_up(MAX(c->tile_n, 1), UNPACKED_TILE);
    uint64_t bands = divide_up(s->m, MAX(c->tile_m, 1)), units = MAX(l->profile->compute_units, 1);
    uint64_t most = MAX(matmul_unpacked_bytes / (sizeof(float) * tile * MAX(s->k, 1)), 1);
    uint64_t rounds = most * bands / units;
    return tile * MAX(rounds ? rounds * units / bands : most, 1);
}

/* Narrows y to `count` columns from `first` on. They are some or all columns of one part of y. */
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

/* Computes y some columns at a time, from weights that are decoded into two buffers in turn. While
 * one buffer is multiplied, the next weights are decoded into the other. */
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
    TRY(matrix_unit_product_emit(l, id, r, &sums));
    if (r->activation != UNARY_NONE)
        TRY(matmul_emit_sum(l, id, r, sums, 1));
error:
    return status;
}

/* The class for the shape. If `named`, it is the one whose kernel streams weights past one row,
 * provided that this kernel can do the shape. */
static const matmul_class *streaming_class(const matmul_shape *s, const device_profile *profile,
                                           bool named)
{
    size_t row = 0;
    while (named && matmul_classes[row].form != MATMUL_FORM_VECTOR)
        row++;
    return matmul_choose(s, profile, named ? row : VARIANT_NONE);
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

/* Emits the product by teams that hold the row. */
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

/* Chooses how to compute a product of one row; `gamma` as in projection_parts. */
static const matvec_class *choose_vector(const lowering *l, const matmul_request *r,
                                         const operand *gamma, matvec_shape *out)
{
    const matmul_shape *s = &r->problem.shape;
    bool halves = matmul_storage_code(l, &r->b) != MATMUL_WORDS;
    *out = (matvec_shape){s->n, s->k,
                          halves && (s->k | r->b.offset) % 8 == 0 &&
                              (r->a.offset | gamma->offset) % 4 == 0};
    return matvec_choose(out, l->profile, variant_named(&l->variants, CHOICE_matvec));
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

/* Is the product emitted as a projection? It is if weights are streamed past one row. The bias is
 * then the projection's residual. */
static bool is_streamed(const lowering *l, const matmul_request *r)
{
    matvec_shape shape;
    return r->activation == UNARY_NONE &&
           variant_named(&l->variants, CHOICE_matmul) == VARIANT_NONE &&
           matmul_projects(&r->problem.shape, l->profile, names_matvec(l)) &&
           choose_vector(l, r, &r->a, &shape)->most_held != 0;
}

rlxvk_status matmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const matmul_attributes *attributes = n->attributes;
    operand bias = lower_input(l, id, n->input_count - 1);
    matmul_request r = {.a = lower_input(l, id, 0),
                        .b = lower_input(l, id, 1),
                        .bias = node_code(n) == MATMUL_BIAS_ACT ? &bias : NULL,
                        .y = lower_write(l, id),
                        .activation = activation_code(attributes->activation),
                        .ends_early = attributes->ends_early};
    lower_ends(l, id, r.ends);
    matmul_problem_make(input_shape(l->graph, n, 0), input_shape(l->graph, n, 1),
                        attributes->transpose_a, attributes->transpose_b, &r.problem);
    if (!is_streamed(l, &r))
        return matmul_emit(l, id, &r);
    projection_parts parts = {r.bias ? PROJECTION_RESIDUAL : 0, 0, r.a, r.bias ? bias : r.a};
    return matmul_emit_projection(l, id, &r, &parts);
}
