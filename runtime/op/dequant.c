/*
 * Products with, and rows of, packed weight matrices: dequant_matmul and dequant_gather.
 *
 *   dequant_matmul: y[r][j] = sum over p < k of x[r][p] * decode(w row j)[p]
 *   dequant_gather: y[i][p] = decode(table row index[i])[p]; zeros where the index is NaN or no row
 *
 * A packed matrix is a U8 leaf of n rows, each k / E blocks of S bytes (op/quant_format.h), kept as
 * raw bytes and decoded inside the kernels. Few rows of x, and any number on a CPU, take
 * dequant_matvec; many take the tiled dequant_matmul.
 *
 * Limits: k is whole blocks; the packed bytes fit 31 bits.
 */
#include "op/dequant.h"
#include "base/switches.h"
#include "op/families.h"
#include "op/quant_format.h"

#include <math.h>

enum { UNIT_ELEMENTS = 32, MATVEC_ROWS = 8, TILED_ROWS = 32, CPU_WORKGROUP = 16 };

/* The formats that have a decoder in glsl/dequant.glsl, and how far the two runs of a unit lie
 * apart there. */
static const struct kernel_format {
    uint32_t type, distance;
} kernel_formats[] = {
    {DEQUANT_Q8_0, 16},
    {DEQUANT_Q4_K, 32},
    {DEQUANT_Q6_K, 64},
};

static const struct kernel_format *kernel_format_find(uint32_t type)
{
    for (size_t i = 0; i < ARRAY_COUNT(kernel_formats); i++)
        if (kernel_formats[i].type == type)
            return &kernel_formats[i];
    return NULL;
}

/* ---- Checks ---- */

static rlxvk_status check_format(const node *n, uint32_t type)
{
    char buffer[256] = "";
    text names = {buffer, sizeof buffer, 0};
    const quant_format *format = quant_format_find(type);
    if (kernel_format_find(type) && format)
        return RLXVK_OK;
    for (size_t i = 0; i < ARRAY_COUNT(kernel_formats); i++)
        text_append(&names, "%s%s (%u)", i ? ", " : " ",
                    quant_format_find(kernel_formats[i].type)->name, kernel_formats[i].type);
    return op_fail(n, RLXVK_E_UNSUPPORTED, "no kernel for format %u (%s); there are%s", type,
                   format ? format->name : "unknown", buffer);
}

static rlxvk_status check_packed(const rlxvk_graph *g, const node *n, uint32_t index)
{
    rlxvk_dtype dtype = input_dtype(g, n, index);
    if (dtype == RLXVK_U8 && node_storage(g, n->inputs[index]) == STORAGE_RAW)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_DTYPE,
                   "packed operand %u is a %s tensor; it must be a U8 input, param or constant",
                   index, dtype == RLXVK_U8 ? "computed U8" : rlxvk_dtype_name(dtype));
}

/* Rows of k elements in the packed operand. With k = 0 the bytes cannot tell: its leading dims do.
 */
static rlxvk_status count_rows(const rlxvk_graph *g, const node *n, uint32_t index,
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

static rlxvk_status check_float(const rlxvk_graph *g, const node *n, uint32_t index)
{
    rlxvk_dtype dtype = input_dtype(g, n, index);
    if (dtype == RLXVK_F32)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_DTYPE, "operand %u is %s; takes F32, insert a cast", index,
                   rlxvk_dtype_name(dtype));
}

/* ---- Lowering ---- */

/* Specialization constants 1 to 6 of every kernel that includes dequant.glsl. */
static void set_format(dispatch *d, uint32_t type, const operand *packed)
{
    const quant_format *format = quant_format_find(type);
    uint32_t address = format->block_bytes | packed->offset | 16;
    d->constants[1] = type;
    d->constants[2] = address & (~address + 1);
    d->constants[3] = format->block_bytes;
    d->constants[4] = format->block_elements / UNIT_ELEMENTS;
    d->constants[5] = kernel_format_find(type)->distance;
    d->constants[6] = format->affine;
}

static uint32_t last_word(const operand *packed)
{
    return packed->size ? (uint32_t)((packed->size - 1) / 4) : 0;
}

static uint32_t power_of_two_at_least(uint32_t value)
{
    uint32_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

static void describe_format(const node *n, text *out)
{
    const dequant_attributes *a = n->attributes;
    const quant_format *format = quant_format_find(a->format);
    text_append(out, " format=%s k=%lld", format ? format->name : "?", (long long)a->k);
}

/* ---- dequant_matmul ---- */

static rlxvk_status matmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    dequant_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    uint64_t rows;
    TRY(check_format(n, a->format));
    TRY(check_float(g, n, 0));
    TRY(check_packed(g, n, 1));
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "operand 0 is a scalar; it needs a last axis of k");
    a->k = x->dims[x->rank - 1];
    TRY(count_rows(g, n, 1, a, &rows));
    n->shape = *x;
    n->shape.dims[x->rank - 1] = (int64_t)rows;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static struct dequant_matmul_args product_arguments(const rlxvk_graph *g, const node *n,
                                                    const operand operands[3])
{
    const dequant_attributes *a = n->attributes;
    uint64_t columns = (uint64_t)n->shape.dims[n->shape.rank - 1];
    return (struct dequant_matmul_args){
        .m = (uint32_t)shape_product(&n->shape, 0, n->shape.rank - 1),
        .n = (uint32_t)columns,
        .units = (uint32_t)(a->k / UNIT_ELEMENTS),
        .row_bytes = (uint32_t)(shape_numel(input_shape(g, n, 1)) / columns),
        .last_word = last_word(&operands[0]),
        .w_offset = operands[0].offset,
        .x_offset = operands[1].offset,
        .y_offset = operands[2].offset,
    };
}

/* How dequant_matvec divides the outputs: an invocation keeps rows * columns sums, `team` of them
 * share the row. */
typedef struct matvec_split {
    uint32_t rows, columns, team, local;
} matvec_split;

/*
 * A CPU runs the invocations of a workgroup as vector lanes and pays for barriers and for every
 * lane's load: teams of one, and several columns to a load of x (more would double the time to
 * compile the kernel). A GPU wants neighbours to read neighbouring bytes and many of them in
 * flight; there, more columns pay where decoding is light (32-element blocks) or shared by several
 * rows of x.
 */
static matvec_split split_matvec(const lowering *l, const struct dequant_matmul_args *args,
                                 const quant_format *format)
{
    if (l->profile->kind == RLXVK_DEVICE_CPU)
        return (matvec_split){args->m == 1 ? 1 : 4, 4, 1, CPU_WORKGROUP};
    uint32_t rows = MIN(power_of_two_at_least(args->m), MATVEC_ROWS);
    bool light = format->block_elements == UNIT_ELEMENTS;
    uint32_t team = MIN(power_of_two_at_least(args->units), rows == 1 ? 64 : 32);
    return (matvec_split){rows, rows > 1 || light ? 4 : 2, team,
                          MIN(l->profile->workgroup_size, 128)};
}

static rlxvk_status lower_matvec(lowering *l, dispatch *d, const struct dequant_matmul_args *args,
                                 const operand operands[3])
{
    matvec_split split = split_matvec(l, args, quant_format_find(d->constants[1]));
    struct dequant_matvec_args matvec = {args->m,         args->n,         args->units,
                                         args->row_bytes, args->last_word, args->w_offset,
                                         args->x_offset,  args->y_offset};
    d->kernel = KERNEL_DEQUANT_MATVEC;
    d->constants[0] = split.local;
    d->constants[7] = args->x_offset % 4 == 0;
    d->constants[8] = split.team;
    d->constants[9] = split.columns;
    d->constants[10] = split.rows;
    lower_groups(l, d,
                 divide_up(args->n, (uint64_t)split.local / split.team * split.columns) *
                     divide_up(args->m, split.rows));
    return lower_emit(l, d, &matvec, sizeof matvec, operands, 3);
}

static rlxvk_status lower_tiled(lowering *l, dispatch *d, const struct dequant_matmul_args *args,
                                const operand operands[3])
{
    uint32_t height = args->m <= 16 ? 1 : args->m <= 32 ? 2 : 4;
    d->kernel = KERNEL_DEQUANT_MATMUL;
    d->constants[0] = DEQUANT_MATMUL_THREADS;
    d->constants[7] = args->x_offset % 4 == 0;
    d->constants[8] = height;
    lower_groups(l, d,
                 divide_up(args->n, DEQUANT_MATMUL_COLUMNS) *
                     divide_up(args->m, (uint64_t)16 * height));
    return lower_emit(l, d, args, sizeof *args, operands, 3);
}

/* Tiles pay from about 32 rows on, on devices with real shared memory; RLXVK_MATMUL forces either.
 */
static bool use_tiles(const lowering *l, const struct dequant_matmul_args *args)
{
    if (l->matmul != MATMUL_AUTO)
        return l->matmul == MATMUL_TILED;
    return args->m > TILED_ROWS && l->profile->kind != RLXVK_DEVICE_CPU;
}

static rlxvk_status matmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const dequant_attributes *a = n->attributes;
    operand operands[] = {lower_input(l, id, 1), lower_input(l, id, 0), lower_write(l, id)};
    struct dequant_matmul_args args = product_arguments(l->graph, n, operands);
    dispatch d = {.node = id};
    set_format(&d, a->format, &operands[0]);
    return use_tiles(l, &args) ? lower_tiled(l, &d, &args, operands)
                               : lower_matvec(l, &d, &args, operands);
}

/* The bound of a row of outputs: 2^-24 (4 + 2 sqrt k) * sum |x| (|scale term| + |min term|). */
static void product_column(const host_call *c, const float *row, const float *magnitude, uint64_t k,
                           uint64_t column, uint64_t columns)
{
    uint64_t rows = columns ? shape_numel(&c->node->shape) / columns : 0;
    double unit = 0x1p-24 * (4 + 2 * sqrt((double)k));
    for (uint64_t r = 0; r < rows; r++) {
        const float *x = c->inputs[0].words + r * k;
        double sum = 0, weight = 0;
        for (uint64_t p = 0; p < k; p++) {
            sum += (double)x[p] * row[p];
            weight += fabs((double)x[p]) * magnitude[p];
        }
        c->out[r * columns + column] = sum;
        if (c->bound)
            c->bound[r * columns + column] = unit * weight;
    }
}

static rlxvk_status matmul_host(const host_call *c)
{
    rlxvk_status status = RLXVK_OK;
    const dequant_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k, row_bytes = quant_row_bytes(a->format, k);
    uint64_t columns = (uint64_t)c->node->shape.dims[c->node->shape.rank - 1];
    float *row = memory_zeroed(2 * k + 1, sizeof *row);
    if (!row)
        return fail_memory("decoded row");
    for (uint64_t j = 0; j < columns; j++) {
        const uint8_t *packed = c->inputs[1].bytes + j * row_bytes;
        TRY(quant_decode_row(a->format, packed, k, row));
        TRY(quant_decode_row_magnitude(a->format, packed, k, row + k));
        product_column(c, row, row + k, k, j, columns);
    }
error:
    memory_free(row);
    return status;
}

const op_family dequant_matmul_family = {
    .name = "dequant_matmul",
    .attribute_size = sizeof(dequant_attributes),
    .raw_inputs = 2,
    .infer = matmul_infer,
    .lower = matmul_lower,
    .host = matmul_host,
    .describe = describe_format,
};

rlxvk_tensor rlxvk_dequant_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                  rlxvk_quant_format format)
{
    dequant_attributes a = {.format = (uint32_t)format};
    rlxvk_tensor inputs[] = {x, w};
    return op_build(g, OP_dequant_matmul, inputs, 2, &a);
}

/* ---- dequant_gather ---- */

static rlxvk_status gather_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    dequant_attributes *a = attributes;
    const rlxvk_shape *indices = input_shape(g, n, 1);
    uint64_t rows;
    TRY(check_format(n, a->format));
    TRY(check_packed(g, n, 0));
    if (a->k < 0 || a->k > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "k is %lld; a row has 0 .. 2^31 - 1 elements",
                       (long long)a->k);
    TRY(count_rows(g, n, 0, a, &rows));
    if (indices->rank == RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "indices of rank %u; the result would have one axis more",
                       indices->rank);
    n->shape = *indices;
    n->shape.dims[n->shape.rank++] = a->k;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status gather_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const dequant_attributes *a = n->attributes;
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    uint64_t row_bytes = quant_row_bytes(a->format, (uint64_t)a->k);
    struct dequant_gather_args args = {
        .count = (uint32_t)(shape_numel(&n->shape) / UNIT_ELEMENTS),
        .rows = (uint32_t)(shape_numel(input_shape(l->graph, n, 0)) / row_bytes),
        .units = (uint32_t)(a->k / UNIT_ELEMENTS),
        .row_bytes = (uint32_t)row_bytes,
        .last_word = last_word(&operands[0]),
        .w_offset = operands[0].offset,
        .index_offset = operands[1].offset,
        .y_offset = operands[2].offset,
    };
    dispatch d = {.kernel = KERNEL_DEQUANT_GATHER, .node = id};
    set_format(&d, a->format, &operands[0]);
    d.constants[0] = MIN(l->profile->workgroup_size, 128);
    lower_groups(l, &d, groups_for(args.count, d.constants[0]));
    return lower_emit(l, &d, &args, sizeof args, operands, 3);
}

/* Copies a decoded row out, with the bound 2^-23 * (|scale term| + |min term|). */
static rlxvk_status gather_row(const host_call *c, uint64_t item, const uint8_t *packed,
                               float *scratch)
{
    rlxvk_status status;
    const dequant_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k;
    TRY(quant_decode_row(a->format, packed, k, scratch));
    TRY(quant_decode_row_magnitude(a->format, packed, k, scratch + k));
    for (uint64_t p = 0; p < k; p++) {
        c->out[item * k + p] = scratch[p];
        if (c->bound)
            c->bound[item * k + p] = 0x1p-23 * scratch[k + p];
    }
error:
    return status;
}

static rlxvk_status gather_host(const host_call *c)
{
    rlxvk_status status = RLXVK_OK;
    const dequant_attributes *a = c->node->attributes;
    uint64_t row_bytes = quant_row_bytes(a->format, (uint64_t)a->k);
    uint64_t count = shape_numel(&c->inputs[1].node->shape);
    uint64_t rows = row_bytes ? shape_numel(&c->inputs[0].node->shape) / row_bytes : 0;
    float *scratch = memory_zeroed(2 * (uint64_t)a->k + 1, sizeof *scratch);
    if (!scratch)
        return fail_memory("decoded row");
    for (uint64_t i = 0; i < count; i++) {
        double index = floor((double)c->inputs[1].words[i] + 0.5);
        if (index >= 0 && index < (double)rows)
            TRY(gather_row(c, i, c->inputs[0].bytes + (uint64_t)index * row_bytes, scratch));
    }
error:
    memory_free(scratch);
    return status;
}

static uint64_t table_rows(const rlxvk_graph *g, const node *n, uint32_t *out_operand)
{
    const dequant_attributes *a = n->attributes;
    uint64_t row_bytes = quant_row_bytes(a->format, (uint64_t)a->k);
    *out_operand = 1;
    return row_bytes ? shape_numel(input_shape(g, n, 0)) / row_bytes : 0;
}

const op_family dequant_gather_family = {
    .name = "dequant_gather",
    .attribute_size = sizeof(dequant_attributes),
    .raw_inputs = 1,
    .infer = gather_infer,
    .lower = gather_lower,
    .host = gather_host,
    .index_limit = table_rows,
    .describe = describe_format,
};

rlxvk_tensor rlxvk_dequant_gather(rlxvk_graph *g, rlxvk_tensor table, rlxvk_tensor indices,
                                  rlxvk_quant_format format, int64_t k)
{
    dequant_attributes a = {.format = (uint32_t)format, .k = k};
    rlxvk_tensor inputs[] = {table, indices};
    return op_build(g, OP_dequant_gather, inputs, 2, &a);
}

/* ---- For the other families of packed weights (dequant.h) ---- */

rlxvk_status dequant_check_packed(const rlxvk_graph *g, const node *n, uint32_t index)
{
    return check_packed(g, n, index);
}

void dequant_set_format(dispatch *d, uint32_t type, const operand *packed)
{
    set_format(d, type, packed);
}

uint32_t dequant_last_word(const operand *packed)
{
    return last_word(packed);
}
