/*
 * Products with packed weight matrices, and code that all ops on packed formats share.
 *
 *   dequant_matmul: y[r][j] = sum over p < k of x[r][p] * decode(w row j)[p]
 *
 * A packed matrix is a U8 leaf of n rows, each k / E blocks of S bytes (quant_format.h). It stays
 * raw bytes. There are several ways to compute a product:
 *
 *   dequant_matvec         decodes in registers, for few rows of x, or any number on a CPU
 *   dequant_gather         first decodes all weights to a temporary; faster if there are many rows
 *   dequant_matmul         decodes tiles, for many rows if that temporary would be too large
 *   kernels for the units  decode for matrix units, if the precision asks for these
 *   dequant_scaled.c       has the kernels for rows of plain floats (E = 1)
 *
 * If the format has a grid, it is the last operand, a constant of the graph.
 *
 * Limits: k is whole blocks; the packed bytes fit 31 bits.
 */
#include "args/elementwise.h"
#include "args/matmul.h"
#include "args/packed.h"
#include "constants/packed.h"
#include "op/bucket.h"
#include "op/packed/dequant.h"
#include "op/packed/dequant_choice.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/matmul/matrix_unit_product.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_grid.h"

#include <string.h>

static bool dequant_has_kernel(uint32_t type)
{
    const quant_format *format = quant_format_find(type);
    return format && format->weight;
}

/* ---- Infer ---- */

rlxvk_status dequant_check_format(const node *n, uint32_t type, uint32_t operands)
{
    uint32_t grid;
    const quant_format *format = quant_format_find(type);
    if (!dequant_has_kernel(type))
        return op_fail(n, RLXVK_E_UNSUPPORTED,
                       "format %u (%s) is no weight format; enum rlxvk_quant_format lists them",
                       type, format ? format->name : "unknown");
    quant_grid_find(type, &grid);
    if (n->input_count != operands + (grid != 0))
        return op_fail(n, RLXVK_E_ARITY, "%u operands; %s takes %u%s", n->input_count, format->name,
                       operands, grid ? " and its grid" : "");
    return RLXVK_OK;
}

rlxvk_status dequant_count_rows(const rlxvk_graph *g, const node *n, uint32_t index,
                                const dequant_attributes *a, uint64_t *out_rows)
{
    char buffer[SHAPE_TEXT];
    const quant_format *format = quant_format_find(a->format);
    const rlxvk_shape *shape = input_shape(g, n, index);
    uint64_t bytes = shape_numel(shape), row = quant_row_bytes(a->format, (uint64_t)a->k);
    if (a->k % format->block_elements != 0)
        return op_fail(n, RLXVK_E_SHAPE, "rows of %lld elements; a block of %s has %u",
                       (long long)a->k, format->name, format->block_elements);
    if (row ? bytes % row != 0 : bytes != 0)
        return op_fail(n, RLXVK_E_LENGTH,
                       "packed operand %u of shape %s has %llu bytes; a row of %lld %s elements "
                       "takes %llu",
                       index, shape_text(shape, buffer), (unsigned long long)bytes, (long long)a->k,
                       format->name, (unsigned long long)row);
    if (row)
        *out_rows = bytes / row;
    else
        *out_rows = shape->rank > 1 ? shape_product(shape, 0, shape->rank - 1) : 0;
    return RLXVK_OK;
}

/* ---- Grids ---- */

/* Finds an earlier constant with these codes, so that a model has each grid only once. */
static uint32_t find_grid_node(const rlxvk_graph *g, const uint16_t *codes, size_t size)
{
    for (uint32_t id = (uint32_t)g->nodes.count; id-- > 0;) {
        const node *n = graph_node(g, id);
        if (n->data && n->data_size == size && n->dtype == RLXVK_U8 && n->shape.rank == 1 &&
            memcmp(n->data, codes, size) == 0)
            return id;
    }
    return NODE_NONE;
}

rlxvk_tensor dequant_grid(rlxvk_graph *g, uint32_t type)
{
    uint32_t count, id;
    const uint16_t *codes = quant_grid_find(type, &count);
    if (!codes || !graph_ready(g, "dequant"))
        return RLXVK_NONE;
    id = find_grid_node(g, codes, 2 * (size_t)count);
    if (id != NODE_NONE)
        return tensor_of(g, id);
    return rlxvk_constant(g, RLXVK_U8, RLXVK_SHAPE(2 * (int64_t)count), codes, 2 * (size_t)count);
}

void dequant_describe(const node *n, text *out)
{
    const dequant_attributes *a = n->attributes;
    const quant_format *format = quant_format_find(a->format);
    text_append(out, " format=%s k=%lld", format ? format->name : "?", (long long)a->k);
}

rlxvk_status dequant_check_content(const node *n, uint32_t operand, const void *data,
                                   uint64_t count)
{
    const dequant_attributes *a = n->attributes;
    bool packed = node_row(n)->family->storage.raw_inputs >> operand & 1;
    return packed ? quant_check_blocks(a->format, data, count) : RLXVK_OK;
}

/* ---- dequant_matmul ---- */

rlxvk_tensor rlxvk_dequant_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                  rlxvk_quant_format format)
{
    dequant_attributes a = {.format = (uint32_t)format};
    rlxvk_tensor inputs[] = {x, w, dequant_grid(g, a.format)};
    return op_build(g, OP_dequant_matmul, inputs, 3, &a);
}

static rlxvk_status dequant_matmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    dequant_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    uint64_t rows;
    TRY(dequant_check_format(n, a->format, 2));
    TRY(dequant_check_float(g, n, 0));
    TRY(dequant_check_packed(g, n, 1));
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "operand 0 is a scalar; it needs a last axis of k");
    a->k = x->dims[x->rank - 1];
    TRY(dequant_count_rows(g, n, 1, a, &rows));
    n->shape = *x;
    n->shape.dims[x->rank - 1] = (int64_t)rows;
    n->dtype = RLXVK_F32;
error:
    return status;
}

struct dequant_product_args dequant_product_arguments(const rlxvk_shape *x, uint64_t columns,
                                                      const dequant_attributes *a,
                                                      const operand operands[5])
{
    return (struct dequant_product_args){
        .m = (uint32_t)shape_product(x, 0, x->rank - 1),
        .n = (uint32_t)columns,
        .units = (uint32_t)(a->k / DEQUANT_UNIT_ELEMENTS),
        .row_bytes = (uint32_t)quant_row_bytes(a->format, (uint64_t)a->k),
        .last_word = dequant_last_word(&operands[0]),
        .w_offset = operands[0].offset,
        .x_offset = operands[1].offset,
        .y_offset = operands[2].offset,
        .ends = {(uint32_t)columns, (uint32_t)columns},
    };
}

static dequant_vector_shape vector_shape(const struct dequant_product_args *args, uint32_t type,
                                         uint32_t bits)
{
    const quant_format *format = quant_format_find(type);
    bool pieces = format->block_bytes % 16 != 0,
         rows = (args->row_bytes | args->w_offset) % 16 == 0;
    return (dequant_vector_shape){.m = args->m,
                                  .n = args->n,
                                  .units = args->units,
                                  .experts = args->experts != 0,
                                  .integers = format->integers && (!pieces || rows),
                                  .pieces = pieces,
                                  .normalized = bits & PROJECTION_NORM};
}

static void set_vector_constants(const lowering *l, const struct dequant_product_args *args,
                                 const dequant_vector_class *c, dispatch *d)
{
    bool experts = args->experts != 0;
    uint32_t digits = !experts && dequant_cuts(l->precision, args->m) ? 3 : 4;
    SET_CONSTANTS(d, {DEQUANT_MATVEC_TEAM, c->team}, {DEQUANT_MATVEC_COLUMNS, c->columns},
                  {DEQUANT_MATVEC_EXPERTS, experts}, {DEQUANT_MATVEC_CHUNK, c->chunk});
    if (c->integers)
        SET_CONSTANTS(d, {DEQUANT_MATVEC_INTEGER_DIGITS, digits},
                      {DEQUANT_MATVEC_INTEGER_ROUNDS, (uint32_t)c->teams.rounds},
                      {DEQUANT_MATVEC_INTEGER_ACROSS, (uint32_t)c->teams.groups},
                      {DEQUANT_MATVEC_INTEGER_SUBGROUPS, (uint32_t)c->teams.subgroups});
    else
        SET_CONSTANTS(d, {DEQUANT_MATVEC_ROWS, c->rows}, {DEQUANT_MATVEC_LOOKUP, c->lookup});
}

rlxvk_status dequant_lower_matvec(lowering *l, dispatch *d, const struct dequant_product_args *args,
                                  const operand operands[5], const projection_parts *parts)
{
    uint32_t bits = parts ? parts->bits : 0;
    struct dequant_product_args whole = *args;
    whole.parts = projection_arguments(parts);
    operand bound[] = {operands[0], operands[1], operands[2],
                       operands[3], operands[0], operands[4]};
    dequant_vector_shape shape = vector_shape(args, d->constants[DEQUANT_FORMAT], bits);
    dequant_vector_class c =
        dequant_vector_choose(&shape, l->profile,
                              variant_named(&l->variants, CHOICE_dequant_vector));
    uint64_t groups = dequant_vector_groups(&c, &shape);
    dequant_set_kernel(l, d, c.integers ? DEQUANT_OF_MATVEC_INTEGER : DEQUANT_OF_MATVEC);
    bool asked =
        d->variant && (d->variant == l->choice.row || variant_is_named(&l->variants, d->variant));
    if (!asked || variant_is_named(&l->variants, c.variant))
        d->variant = c.variant; /* otherwise show the row that was asked for */
    if (parts) {
        bound[3] = parts->gamma;
        bound[4] = parts->residual;
    }
    SET_CONSTANTS(d, {LOCAL_SIZE, c.threads},
                  {DEQUANT_MATVEC_X_ALIGNED, (args->x_offset | whole.parts.gamma_offset) % 4 == 0},
                  {DEQUANT_MATVEC_PARTS, bits});
    set_vector_constants(l, args, &c, d);
    lower_groups(l, d, groups);
    d->order.run = (uint32_t)(groups / MAX(divide_up(args->m, c.rows), 1));
    return lower_emit(l, d, &whole, sizeof whole, bound, kernel_table[d->kernel].binding_count);
}

const dequant_tile_class *dequant_tile(const lowering *l, uint64_t rows)
{
    return dequant_tile_choose(rows, l->profile, variant_named(&l->variants, CHOICE_dequant_tile));
}

rlxvk_status dequant_lower_tiled(lowering *l, dispatch *d, const struct dequant_product_args *args,
                                 const operand operands[5], const dequant_tile_class *c,
                                 uint64_t blocks)
{
    dequant_set_kernel(l, d, DEQUANT_OF_MATMUL);
    SET_CONSTANTS(d, {LOCAL_SIZE, dequant_tile_threads(c)},
                  {DEQUANT_MATMUL_X_ALIGNED, args->x_offset % 4 == 0},
                  {DEQUANT_MATMUL_REG_M, c->register_rows},
                  {DEQUANT_MATMUL_REG_N, c->register_columns}, {DEQUANT_MATMUL_TILE_M, c->rows},
                  {DEQUANT_MATMUL_TILE_N, c->columns}, {DEQUANT_MATMUL_STEP, DEQUANT_UNIT_ELEMENTS},
                  {DEQUANT_MATMUL_LOOP, matmul_tile_loop(TILE_LOOP_ZIGZAG, l->profile)},
                  {DEQUANT_MATMUL_EXPERTS, args->experts != 0});
    if (variant_is_named(&l->variants, c->row.name))
        d->variant = c->row.name;
    lower_groups(l, d, divide_up(args->n, c->columns) * blocks);
    if (!args->experts) /* experts' rows are sorted */
        d->order.run = (uint32_t)divide_up(args->n, c->columns);
    return lower_emit(l, d, args, sizeof *args, operands, kernel_table[d->kernel].binding_count);
}

static uint32_t gather_threads(const lowering *l)
{
    return MIN(l->profile->workgroup_size, 128);
}

void dequant_set_gather(const lowering *l, dispatch *d, uint32_t order, uint32_t storage)
{
    bool blocks = order == DEQUANT_BLOCKS;
    matrix_shape unit = blocks ? matrix_unit(l->precision, l->profile) : (matrix_shape){16, 16, 16};
    dequant_set_kernel(l, d, DEQUANT_OF_GATHER);
    SET_CONSTANTS(d, {LOCAL_SIZE, gather_threads(l)}, {DEQUANT_GATHER_ORDER, order},
                  {DEQUANT_GATHER_STORAGE, storage}, {DEQUANT_GATHER_BLOCK_ROWS, unit.n},
                  {DEQUANT_GATHER_UNIT_K, unit.k},
                  {DEQUANT_GATHER_BY_LANES, blocks && l->matrix_in_lanes});
}

/* Decodes the weights of some rows, in order, or as blocks. */
static rlxvk_status unpack_weights(lowering *l, uint32_t id, uint32_t storage,
                                   matmul_rows_of_b rows, operand *out)
{
    const dequant_attributes *a = graph_node(l->graph, id)->attributes;
    uint64_t k = (uint64_t)a->k, row_bytes = quant_row_bytes(a->format, k);
    operand w = lower_input(l, id, 1);
    lower_narrow(l, &w, rows.first * row_bytes, rows.count * row_bytes);
    struct dequant_gather_args args = {
        .count = (uint32_t)(rows.count * k / DEQUANT_UNIT_ELEMENTS),
        .rows = (uint32_t)rows.count,
        .units = (uint32_t)(k / DEQUANT_UNIT_ELEMENTS),
        .row_bytes = (uint32_t)row_bytes,
        .last_word = dequant_last_word(&w),
        .w_offset = w.offset,
    };
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    uint32_t threads = gather_threads(l), order = DEQUANT_ALL;
    uint64_t groups = groups_for(args.count, threads);
    dispatch d = {.node = id, .variant = dequant_name(DEQUANT_FORM_UNPACKED)};
    rlxvk_status status;
    if (rows.in_blocks) {
        order = DEQUANT_BLOCKS;
        args.count = (uint32_t)rows.room;
        groups = rows.room / unit.n * divide_up(args.units, threads / unit.n);
        d.variant = dequant_name(DEQUANT_FORM_BLOCKS);
    }
    if (out->size == 0)
        TRY(lower_temporary(l, rows.room * k * (storage == MATMUL_WORDS ? 4 : 2), out));
    out->access = ACCESS_WRITE;
    operand operands[] = {w, w, *out, dequant_grid_operand(l, id, 2, &w)};
    dequant_set_format(&d, a->format, &w);
    dequant_set_gather(l, &d, order, storage);
    lower_groups(l, &d, groups);
    TRY(lower_emit(l, &d, &args, sizeof args, operands, kernel_table[d.kernel].binding_count));
    out->access = ACCESS_READ;
error:
    return status;
}

/* Chooses the form. Measured choices count only in f32, because they say nothing about matrix
 * units. */
static size_t choose(lowering *l, const dequant_attributes *a,
                     const struct dequant_product_args *args)
{
    const char *tag = quant_format_find(a->format)->name;
    return variant_choose(l, CHOICE_dequant, l->precision == RLXVK_PRECISION_F32 ? tag : NULL,
                          (uint64_t[VARIANT_DIMS]){args->m, args->n, (uint64_t)a->k, 0});
}

static matmul_request product_request(lowering *l, uint32_t id,
                                      const struct dequant_product_args *args)
{
    uint64_t k = (uint64_t)args->units * DEQUANT_UNIT_ELEMENTS;
    return (matmul_request){.a = lower_input(l, id, 0),
                            .y = lower_write(l, id),
                            .ends = {args->ends[0], args->ends[1]},
                            .unpack_b = unpack_weights,
                            .activation = UNARY_NONE,
                            .problem.shape = {args->m, args->n, k, 1, false, true}};
}

/* The rows from which it pays to decode the weights as blocks (glsl/packed/dequant_gather.glsl), as
 * measured on an H200: 4096 x 14336 weights in f16. 0: they cannot be. A workgroup needs whole
 * groups of units. */
static uint64_t blocks_from(const lowering *l, const matmul_request *r, uint32_t format)
{
    static const uint16_t rows[QUANT_TYPES] = {
        [QUANT_Q4_0] = 3072, [QUANT_Q4_1] = 3072, [QUANT_Q4_K] = 3072, [QUANT_Q5_1] = 2048,
        [QUANT_Q8_0] = 2048, [QUANT_Q3_K] = 384,  [QUANT_Q6_K] = 384,
    };
    enum { OTHERS = 1024, WITH_GRID = 384 };
    const quant_format *f = quant_format_find(format);
    if (!matrix_unit_takes_blocks(l, r))
        return 0;
    uint32_t band = matrix_unit(l->precision, l->profile).n, threads = gather_threads(l);
    if (threads % band != 0 || threads / band % (f->distance / DEQUANT_RUN) != 0)
        return 0;
    if (f->group == DEQUANT_GRID)
        return WITH_GRID;
    return rows[format] ? rows[format] : OTHERS;
}

/* Bytes of the weights once they are decoded for matrix units. 0 if they may not stay in memory. */
static uint64_t kept_bytes(const lowering *l, const matmul_shape *s, const operand *w)
{
    const node *n = graph_node(l->graph, w->value);
    uint64_t bytes = (node_is_weight(n) || n->prepare) && matrix_wanted(l, s)
                         ? matrix_unit_unpacked_bytes(l, s)
                         : 0;
    return bytes <= l->prepared_bytes ? bytes : 0;
}

static bool dequant_matmul_writes_parts(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return quant_format_find(((const dequant_attributes *)n->attributes)->format)->distance != 0;
}

static rlxvk_status dequant_matmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const dequant_attributes *a = n->attributes;
    const dequant_class *class;
    operand w = lower_input(l, id, 1);
    operand operands[] = {w, lower_input(l, id, 0), lower_write(l, id), w,
                          dequant_grid_operand(l, id, 2, &w)};
    struct dequant_product_args args =
        dequant_product_arguments(input_shape(l->graph, n, 0),
                                  (uint64_t)n->shape.dims[n->shape.rank - 1], a, operands);
    dispatch d = {.node = id};
    if (quant_format_find(a->format)->distance == 0)
        return dequant_lower_plain(l, id);
    lower_ends(l, id, args.ends);
    matmul_request r = product_request(l, id, &args);
    const matmul_shape *s = &r.problem.shape;
    uint64_t kept = kept_bytes(l, s, &w);
    dequant_shape shape = {.rows = args.m,
                           .weights = s->n * s->k,
                           .units = dequant_on_units(l, s, a->format),
                           .fragments = dequant_in_fragments(l, s, a->format),
                           .panels = dequant_in_panels(l, s, a->format),
                           .blocks_from = blocks_from(l, &r, a->format),
                           .in_lanes = l->matrix_in_lanes,
                           .kept = kept != 0};
    class = dequant_choose(&shape, l->profile, choose(l, a, &args));
    dequant_form form = class->form;
    bool named = variant_named(&l->variants, CHOICE_dequant) != VARIANT_NONE;
    if (!named && form > DEQUANT_FORM_UNPACKED && matrix_wanted(l, s)) /* as the precision asks */
        form = shape.units && !kept ? DEQUANT_FORM_MATRIX : DEQUANT_FORM_UNPACKED;
    if (form == DEQUANT_FORM_FRAGMENT)
        return dequant_lower_fragment(l, id, &r, &args, operands);
    if (form == DEQUANT_FORM_PANEL)
        return dequant_lower_panel(l, id, &r, &args, operands);
    if (form == DEQUANT_FORM_MATRIX)
        return dequant_lower_matrix(l, id, &r, &args, operands);
    r.in_blocks = form == DEQUANT_FORM_BLOCKS;
    if (r.in_blocks || form == DEQUANT_FORM_UNPACKED) {
        l->prepared_bytes -= kept;
        return matmul_emit(l, id, &r);
    }
    dequant_set_format(&d, a->format, &operands[0]);
    d.variant = class->row.name;
    if (form == DEQUANT_FORM_VECTOR)
        return dequant_lower_matvec(l, &d, &args, operands, NULL);
    const dequant_tile_class *tile = dequant_tile(l, args.m);
    return dequant_lower_tiled(l, &d, &args, operands, tile, divide_up(args.m, tile->rows));
}

static rlxvk_status dequant_matmul_host(const host_call *c)
{
    rlxvk_status status = RLXVK_OK;
    const dequant_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k, row_bytes = quant_row_bytes(a->format, k);
    uint64_t columns = (uint64_t)c->node->shape.dims[c->node->shape.rank - 1];
    float *row = memory_zeroed(2 * k + 1, sizeof *row);
    if (!row)
        return status_fail_memory("decoded row");
    for (uint64_t j = 0; j < columns; j++) {
        TRY(dequant_decode_row(a->format, c->inputs[1].bytes + j * row_bytes, k, row));
        dequant_product_column(c, row, row + k, k, j, columns);
    }
error:
    memory_free(row);
    return status;
}

/* The gradient of x only: dy times the decoded weights. */
static rlxvk_status dequant_matmul_vjp(gradient_call *c)
{
    const dequant_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_shape y = c->n.shape, x = gradient_shape(c, 0);
    int64_t rows = y.dims[y.rank - 1];
    rlxvk_tensor indices =
        rlxvk_cumsum(g, gradient_filled(g, 1, RLXVK_F32, RLXVK_SHAPE(rows)), 0, true);
    rlxvk_tensor w = rlxvk_dequant_gather(g, gradient_operand(c, 1), indices,
                                          (rlxvk_quant_format)a->format, a->k);
    if (a->format == RLXVK_MXFP4) /* products take its NaN as 0 */
        w = rlxvk_where(g, rlxvk_eq(g, w, w), w, gradient_scalar(g, 0));
    if (shape_numel(&y) == 0) {
        gradient_give(c, 0, gradient_filled(g, 0, RLXVK_F32, x));
        return RLXVK_OK;
    }
    rlxvk_tensor dx = rlxvk_matmul(g, rlxvk_reshape(g, c->dy, RLXVK_SHAPE(-1, rows)), w);
    gradient_give(c, 0, rlxvk_reshape(g, dx, x));
    return RLXVK_OK;
}

const op_family dequant_matmul_family = {
    .name = "dequant_matmul",
    .attribute_size = sizeof(dequant_attributes),
    .infer = dequant_matmul_infer,
    .storage = {.raw_inputs = 6},
    .views = {.writes_parts = dequant_matmul_writes_parts},
    .execution = {.matrix_layout = true,
                  .lower = dequant_matmul_lower,
                  .host = dequant_matmul_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.vjp = dequant_matmul_vjp},
    .checks = {.check_content = dequant_check_content},
    .describe = dequant_describe,
};
