/*
 * Products with packed matrices whose scales are separate tensors.
 *
 *   dequant_matmul_scaled: y[r][j] = sum over p < k of x[r][p] * w(p, j)
 *   w(p, j) = (code[p][j] - zero[p / block][j]) * scale[p / block][j] (* global)
 *
 * Codes are bytes or nibbles; element (p, j) is number p * n + j (quant_scheme.h). The kernels
 * address weights by element, so they are also used for plain F32, F16 and BF16 rows of
 * dequant_matmul. If there are few rows of x, or on a CPU, the kernel is dequant_element_matvec. If
 * there are many, it is the tiled dequant_element_matmul.
 *
 * Limits: codes and scales fit 31 bits of bytes.
 */
#include "args/packed.h"
#include "constants/packed.h"
#include "op/bucket.h"
#include "op/packed/dequant.h"
#include "op/packed/dequant_choice.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_scheme.h"

#include <math.h>
#include <string.h>

typedef struct dequant_scaled_attributes {
    uint32_t kind; /* rlxvk_quant_kind */
    int64_t block, k, n;
} dequant_scaled_attributes;

enum { MATVEC_ROWS = 4, MOST_TEAM = 16, LEAST_PIECE = 16, CPU_WORKGROUP = 16 };

_Static_assert(DEQUANT_INT8 == (int)RLXVK_QUANT_INT8 &&
                   DEQUANT_INT8_ASYM == (int)RLXVK_QUANT_INT8_ASYM &&
                   DEQUANT_INT4 == (int)RLXVK_QUANT_INT4 &&
                   DEQUANT_E4M3 == (int)RLXVK_QUANT_FP8_E4M3 &&
                   DEQUANT_E5M2 == (int)RLXVK_QUANT_FP8_E5M2 &&
                   DEQUANT_NVFP4_BLOCK == (int)RLXVK_QUANT_NVFP4 &&
                   DEQUANT_MXFP4_BLOCK == (int)RLXVK_QUANT_MXFP4 &&
                   DEQUANT_INT4_ASYM == (int)RLXVK_QUANT_INT4_ASYM,
               "args/packed.h numbers side-scale schemes as rlxvk_quant_kind does");

/* ---- Building ---- */

rlxvk_tensor rlxvk_dequant_matmul_scaled(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor scale, rlxvk_tensor extra,
                                         const rlxvk_quant_scheme *scheme)
{
    dequant_scaled_attributes a;
    rlxvk_quant_scheme s;
    if (!graph_ready(g, "dequant_matmul_scaled") ||
        graph_fail(g, status_require(scheme, "dequant_matmul_scaled", "scheme")) != RLXVK_OK)
        return RLXVK_NONE;
    if (!op_take(g, "dequant_matmul_scaled", SIZED(rlxvk_quant_scheme), scheme, &s))
        return RLXVK_NONE;
    a = (dequant_scaled_attributes){(uint32_t)s.kind, s.block, 0, s.n};
    rlxvk_tensor inputs[] = {x, w, scale, extra};
    return op_build(g, OP_dequant_matmul_scaled, inputs, 4, &a);
}

/* ---- Infer ---- */

static rlxvk_status check_scheme(const node *n, dequant_scaled_attributes *a)
{
    char buffer[160] = "";
    text problem = {buffer, sizeof buffer, 0};
    if (!quant_scheme_resolve(a->kind, &a->block, a->n, &problem))
        return op_fail(n, RLXVK_E_ATTR, "%s", buffer);
    const quant_scheme_traits *t = quant_scheme_find(a->kind);
    bool extra = t->zero_point || t->global;
    if (n->input_count < (extra ? 4u : 3u) ||
        n->input_count > (extra || t->ignores_extra ? 4u : 3u))
        return op_fail(n, RLXVK_E_ARITY, "%s: %u operands; takes x, w, scale%s", t->name,
                       n->input_count,
                       t->zero_point ? ", zero points"
                       : t->global   ? ", global factor"
                                     : "");
    return RLXVK_OK;
}

static rlxvk_status check_codes(const rlxvk_graph *g, const node *n,
                                const dequant_scaled_attributes *a)
{
    rlxvk_dtype dtype = input_dtype(g, n, 1);
    const quant_scheme_traits *t = quant_scheme_find(a->kind);
    uint64_t bytes = shape_numel(input_shape(g, n, 1)), needed;
    if ((dtype != RLXVK_U8 && dtype != RLXVK_I8) || op_node_storage(g, n->inputs[1]) != STORAGE_RAW)
        return op_fail(n, RLXVK_E_DTYPE,
                       "operand 1 is a %s tensor; it must be a U8 or I8 input, param or constant",
                       rlxvk_dtype_name(dtype));
    if (!quant_scheme_bytes(t, (uint64_t)a->k, (uint64_t)a->n, &needed) || bytes != needed)
        return op_fail(n, RLXVK_E_LENGTH, "operand 1 has %llu bytes; %s of %lldx%lld takes %llu",
                       (unsigned long long)bytes, t->name, (long long)a->k, (long long)a->n,
                       (unsigned long long)needed);
    return RLXVK_OK;
}

/* Checks an operand of f32 words, which must have exactly one of two counts. */
static rlxvk_status check_words(const rlxvk_graph *g, const node *n, uint32_t index, uint64_t count,
                                uint64_t other)
{
    rlxvk_status status;
    char buffer[SHAPE_TEXT];
    uint64_t numel = shape_numel(input_shape(g, n, index));
    TRY(dequant_check_float(g, n, index));
    if (numel != count && numel != other)
        return op_fail(n, RLXVK_E_SHAPE,
                       "operand %u of shape %s has %llu elements; it must have %llu", index,
                       shape_text(input_shape(g, n, index), buffer), (unsigned long long)numel,
                       (unsigned long long)count);
error:
    return status;
}

static rlxvk_status check_scales(const rlxvk_graph *g, const node *n,
                                 const dequant_scaled_attributes *a)
{
    rlxvk_status status = RLXVK_OK;
    const quant_scheme_traits *t = quant_scheme_find(a->kind);
    uint64_t columns = (uint64_t)a->n, bytes = shape_numel(input_shape(g, n, 2)), count;
    if (t->scale == SCALE_COLUMN)
        return check_words(g, n, 2, columns, 1);
    if (!size_multiply(divide_up((uint64_t)a->k, (uint64_t)a->block), columns, &count))
        return op_fail(n, RLXVK_E_TOO_LARGE, "the scales do not fit 64 bits; split the matrix");
    if (t->scale == SCALE_BYTE) {
        TRY(dequant_check_packed(g, n, 2));
        if (bytes != count)
            return op_fail(n, RLXVK_E_LENGTH, "operand 2 has %llu bytes; the scales take %llu",
                           (unsigned long long)bytes, (unsigned long long)count);
    } else
        TRY(check_words(g, n, 2, count, count));
    if (t->zero_point)
        TRY(check_words(g, n, 3, count, count));
    if (t->global)
        TRY(check_words(g, n, 3, 1, 1));
error:
    return status;
}

static rlxvk_status dequant_scaled_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    dequant_scaled_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    TRY(check_scheme(n, a));
    TRY(dequant_check_float(g, n, 0));
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "operand 0 is a scalar; it needs a last axis of k");
    a->k = x->dims[x->rank - 1];
    TRY(check_codes(g, n, a));
    TRY(check_scales(g, n, a));
    n->shape = *x;
    n->shape.dims[x->rank - 1] = a->n;
    n->dtype = RLXVK_F32;
error:
    return status;
}

/* ---- Lower ---- */

static rlxvk_status lower_element_matvec(lowering *l, dispatch *d,
                                         const struct dequant_element_matvec_args *args,
                                         const operand operands[5])
{
    bool cpu = profile_is_software(l->profile);
    uint32_t local = cpu ? CPU_WORKGROUP : MIN(l->profile->workgroup_size, 128);
    uint32_t pieces = power_of_two_from(divide_up(args->k, LEAST_PIECE), MOST_TEAM);
    uint32_t team = cpu ? 1 : MAX(1, MIN(pieces, local / 8));
    uint32_t rows = power_of_two_from(args->m, MATVEC_ROWS);
    d->kernel = KERNEL_DEQUANT_ELEMENT_MATVEC;
    SET_CONSTANTS(d, {LOCAL_SIZE, local}, {DEQUANT_ELEMENT_MATVEC_TEAM, team},
                  {DEQUANT_ELEMENT_MATVEC_ROWS, rows});
    d->order.run = (uint32_t)divide_up(args->n, (uint64_t)local / team * 4);
    lower_groups(l, d, d->order.run * divide_up(args->m, rows));
    return lower_emit(l, d, args, sizeof *args, operands, 5);
}

static rlxvk_status lower_element_tiled(lowering *l, dispatch *d,
                                        const struct dequant_element_matvec_args *args,
                                        const operand operands[5])
{
    struct dequant_element_matmul_args tiled;
    uint32_t height = dequant_tile_height(args->m);
    memcpy(&tiled, args, sizeof tiled);
    d->kernel = KERNEL_DEQUANT_ELEMENT_MATMUL;
    SET_CONSTANTS(d, {LOCAL_SIZE, DEQUANT_MATMUL_THREADS}, {DEQUANT_ELEMENT_MATMUL_HEIGHT, height});
    d->order.run = (uint32_t)divide_up(args->n, DEQUANT_MATMUL_COLUMNS);
    lower_groups(l, d, d->order.run * divide_up(args->m, (uint64_t)16 * height));
    return lower_emit(l, d, &tiled, sizeof tiled, operands, 5);
}

/* Fills in the arguments that all cases share. Operands: w, x, y, scales, extra. */
static rlxvk_status lower_elements(lowering *l, uint32_t id, dispatch *d, uint64_t k,
                                   struct dequant_element_matvec_args *args,
                                   const operand operands[5])
{
    const rlxvk_shape *y = &graph_node(l->graph, id)->shape;
    const dequant_shape shape = {shape_product(y, 0, y->rank - 1), 0, true};
    const dequant_class *class =
        dequant_choose(&shape, l->profile, variant_choose(l, CHOICE_dequant, NULL, NULL));
    args->m = (uint32_t)shape.rows;
    args->n = (uint32_t)y->dims[y->rank - 1];
    args->k = (uint32_t)k;
    args->block = MAX(1, MIN(args->block, args->k));
    args->last_word = dequant_last_word(&operands[0]);
    args->w_offset = operands[0].offset;
    args->x_offset = operands[1].offset;
    args->y_offset = operands[2].offset;
    args->scale_offset = operands[3].offset;
    args->extra_offset = operands[4].offset;
    d->node = id;
    d->variant = class->row.name;
    SET_CONSTANTS(d, {PACKED_HALF_SUBNORMALS, l->profile->half_subnormals});
    return class->form == DEQUANT_FORM_TILED ? lower_element_tiled(l, d, args, operands)
                                             : lower_element_matvec(l, d, args, operands);
}

rlxvk_status dequant_lower_plain(lowering *l, uint32_t id)
{
    const dequant_attributes *a = graph_node(l->graph, id)->attributes;
    operand w = lower_input(l, id, 1), x = lower_input(l, id, 0);
    operand operands[] = {w, x, lower_write(l, id), x, x};
    struct dequant_element_matvec_args args = {.block = UINT32_MAX};
    dispatch d = {0};
    uint32_t alignment = dequant_alignment(w.offset | quant_format_find(a->format)->block_bytes);
    SET_CONSTANTS(&d, {DEQUANT_ELEMENT_SCHEME, DEQUANT_PLAIN + a->format},
                  {DEQUANT_ELEMENT_ALIGNMENT, alignment});
    return lower_elements(l, id, &d, (uint64_t)a->k, &args, operands);
}

/* The alignment of the address of every four columns that start at a multiple of four. */
static uint32_t columns_alignment(const dequant_scaled_attributes *a, uint32_t offset)
{
    if (quant_scheme_find(a->kind)->code_bits == 8)
        return dequant_alignment((uint32_t)a->n | offset | 4);
    return a->n % 4 == 0 ? dequant_alignment(offset | 2) : 1;
}

static rlxvk_status dequant_scaled_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const dequant_scaled_attributes *a = n->attributes;
    operand w = lower_input(l, id, 1), x = lower_input(l, id, 0), scale = lower_input(l, id, 2);
    operand extra = n->input_count > 3 ? lower_input(l, id, 3) : x;
    operand operands[] = {w, x, lower_write(l, id), scale, extra};
    struct dequant_element_matvec_args args = {
        .block =
            quant_scheme_find(a->kind)->scale == SCALE_COLUMN ? UINT32_MAX : (uint32_t)a->block,
        .scale_step = shape_numel(input_shape(l->graph, n, 2)) > 1,
    };
    dispatch d = {0};
    SET_CONSTANTS(&d, {DEQUANT_ELEMENT_SCHEME, a->kind},
                  {DEQUANT_ELEMENT_ALIGNMENT, columns_alignment(a, w.offset)});
    return lower_elements(l, id, &d, (uint64_t)a->k, &args, operands);
}

/* ---- Host ---- */

static rlxvk_status dequant_scaled_host(const host_call *c)
{
    const dequant_scaled_attributes *a = c->node->attributes;
    const quant_scheme_traits *t = quant_scheme_find(a->kind);
    uint64_t k = (uint64_t)a->k, columns = (uint64_t)a->n;
    quant_matrix m = {
        .traits = t,
        .k = k,
        .n = columns,
        .block = t->scale == SCALE_COLUMN ? MAX(k, 1) : (uint64_t)a->block,
        .codes = c->inputs[1].bytes,
        .scale_bytes = c->inputs[2].bytes,
        .scales = c->inputs[2].words,
        .extra = c->node->input_count > 3 ? c->inputs[3].words : NULL,
        .one_scale = shape_numel(&c->inputs[2].node->shape) == 1,
    };
    float *column = memory_zeroed(2 * k + 1, sizeof *column);
    if (!column)
        return status_fail_memory("decoded column");
    for (uint64_t j = 0; j < columns; j++) {
        quant_decode_column(&m, j, column, column + k);
        dequant_product_column(c, column, column + k, k, j, columns);
    }
    memory_free(column);
    return RLXVK_OK;
}

/* ---- Gradient ---- */

/* The values of each byte: those of its codes, the lower one first, or that of a scale. If a value
 * is not a number, it is 0. */
static void fill_meanings(const quant_scheme_traits *t, bool of_scale, uint32_t byte, float *out)
{
    uint32_t count = of_scale ? 1 : 8 / t->code_bits;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits = count == 1 ? byte : byte >> (4 * i) & 15;
        float value = of_scale ? t->scale_code(bits) : t->code(bits);
        out[i] = isfinite(value) ? value : 0;
    }
}

/* Decodes a leaf of bytes with a table: [elements of the leaf, values in one byte]. The table of I8
 * begins with -128. */
static rlxvk_tensor decode_bytes(rlxvk_graph *g, rlxvk_tensor bytes, const quant_scheme_traits *t,
                                 bool of_scale)
{
    float table[256 * 2];
    uint32_t count = of_scale ? 1 : 8 / t->code_bits;
    bool is_signed = rlxvk_tensor_dtype(g, bytes) == RLXVK_I8;
    for (uint32_t i = 0; i < 256; i++)
        fill_meanings(t, of_scale, is_signed ? i ^ 128 : i, table + (size_t)i * count);
    rlxvk_tensor meanings =
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(256, count), table, 256 * count * sizeof(float));
    rlxvk_tensor index = rlxvk_reshape(g, rlxvk_cast(g, bytes, RLXVK_F32), RLXVK_SHAPE(-1));
    if (is_signed)
        index = rlxvk_add(g, index, gradient_scalar(g, 128));
    return rlxvk_gather(g, meanings, index, 0);
}

/* Spreads one number per block, [blocks, n], over the rows of the block. If k is whole blocks, the
 * result is [blocks, 1, n], which broadcasts. Otherwise it is [k, n]. */
static rlxvk_tensor spread_blocks(rlxvk_graph *g, const dequant_scaled_attributes *a, int64_t block,
                                  rlxvk_tensor numbers)
{
    int64_t blocks = (a->k + block - 1) / block;
    numbers = rlxvk_reshape(g, numbers, RLXVK_SHAPE(blocks, 1, a->n));
    if (a->k % block == 0)
        return numbers;
    numbers = rlxvk_expand(g, numbers, RLXVK_SHAPE(blocks, block, a->n));
    return rlxvk_narrow(g, rlxvk_reshape(g, numbers, RLXVK_SHAPE(-1, a->n)), 0, 0, a->k);
}

/* w [k, n], as the product has it. */
static rlxvk_tensor decode_matrix(gradient_call *c)
{
    const dequant_scaled_attributes *a = c->n.attributes;
    const quant_scheme_traits *t = quant_scheme_find(a->kind);
    rlxvk_graph *g = c->graph;
    rlxvk_tensor w = decode_bytes(g, gradient_operand(c, 1), t, false);
    rlxvk_tensor scale = gradient_operand(c, 2);
    w = rlxvk_narrow(g, rlxvk_reshape(g, w, RLXVK_SHAPE(-1)), 0, 0, a->k * a->n);
    int64_t block = t->scale == SCALE_COLUMN ? a->k : MIN(a->block, a->k);
    w = rlxvk_reshape(g, w,
                      a->k % block == 0 ? RLXVK_SHAPE(a->k / block, block, a->n)
                                        : RLXVK_SHAPE(a->k, a->n));
    if (t->scale == SCALE_BYTE)
        scale = decode_bytes(g, scale, t, true);
    if (t->zero_point)
        w = rlxvk_sub(g, w, spread_blocks(g, a, block, gradient_operand(c, 3)));
    w = rlxvk_mul(g, w,
                  t->scale == SCALE_COLUMN ? rlxvk_reshape(g, scale, RLXVK_SHAPE(1, -1))
                                           : spread_blocks(g, a, block, scale));
    if (t->global)
        w = rlxvk_mul(g, w, rlxvk_reshape(g, gradient_operand(c, 3), RLXVK_SHAPE(1)));
    return rlxvk_reshape(g, w, RLXVK_SHAPE(a->k, a->n));
}

/* The gradient of x only: dy times the decoded weights. */
static rlxvk_status dequant_scaled_vjp(gradient_call *c)
{
    const dequant_scaled_attributes *a = c->n.attributes;
    rlxvk_shape x = gradient_shape(c, 0);
    if (shape_numel(&c->n.shape) == 0 || a->k == 0) {
        gradient_give(c, 0, gradient_filled(c->graph, 0, RLXVK_F32, x));
        return RLXVK_OK;
    }
    rlxvk_tensor dy = rlxvk_reshape(c->graph, c->dy, RLXVK_SHAPE(-1, a->n));
    const rlxvk_matmul_options options = {.transpose_b = true};
    rlxvk_tensor dx = rlxvk_matmul_with(c->graph, dy, decode_matrix(c), &options);
    gradient_give(c, 0, rlxvk_reshape(c->graph, dx, x));
    return RLXVK_OK;
}

/* ---- The family ---- */

static rlxvk_status dequant_scaled_check_content(const node *n, uint32_t operand, const void *data,
                                                 uint64_t count)
{
    static const uint8_t parts[] = {[1] = QUANT_CODES, [2] = QUANT_SCALES, [3] = QUANT_EXTRA};
    const dequant_scaled_attributes *a = n->attributes;
    if (operand == 0)
        return RLXVK_OK;
    return quant_check_part(quant_scheme_find(a->kind), parts[operand], data, count);
}

static void dequant_scaled_describe(const node *n, text *out)
{
    const dequant_scaled_attributes *a = n->attributes;
    const quant_scheme_traits *t = quant_scheme_find(a->kind);
    text_append(out, " scheme=%s", t ? t->name : "?");
    if (t && t->scale != SCALE_COLUMN)
        text_append(out, "/%lld", (long long)a->block);
    text_append(out, " k=%lld n=%lld", (long long)a->k, (long long)a->n);
}

const op_family dequant_scaled_family = {
    .name = "dequant_matmul_scaled",
    .attribute_size = sizeof(dequant_scaled_attributes),
    .infer = dequant_scaled_infer,
    .storage = {.raw_inputs = 6},
    .execution = {.lower = dequant_scaled_lower, .host = dequant_scaled_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.vjp = dequant_scaled_vjp},
    .checks = {.check_content = dequant_scaled_check_content},
    .describe = dequant_scaled_describe,
};
