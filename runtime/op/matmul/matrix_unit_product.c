/*
 * See matrix_unit_product.h. A product takes these steps:
 *
 *   matrix_scale        in split mode, finds the exponents of both operands' rows
 *   matrix_pack         packs both operands K-major; matrix_block_pack as blocks
 *   matrix_product_*    multiplies and adds the bias; matrix_direct_* from blocks
 *   matmul_sum          applies the activation
 *
 * Packed operands and exponents are temporaries.
 *
 * In split mode an operand, times a power of two of its row, is high + low, both f16. This is exact
 * to 2^-22 of a value within 2^18 of the row's largest. For smaller values it is exact to 2^-40 of
 * the largest. Three of the four products are summed in f32. So |error| <= f32's bound + 2^-20 S +
 * 2^-38 K max|a_i| max|b_j|, S = sum |a_ik b_kj|. Infinities make NaN.
 */
#include "args/elementwise.h"
#include "args/matmul.h"
#include "args/matrix.h"
#include "constants/matmul.h"
#include "op/matmul/matrix_unit_product.h"

#include <string.h>

#define PACK_GROUP  128 /* divides the octets of a tile of blocks */
#define SCALE_GROUP 128
#define TURNED_ROWS 32 /* of matrix_pack's tile, and of matrix_scale's workgroup */
#define TURNED_K    64
#define LEAST_SIDE  16 /* with fewer rows or columns it is a matrix-vector product */

bool matrix_wanted(const lowering *l, const matmul_shape *shape)
{
    /* If a variant of `matmul` is named, it wins, unless one of `matrix` is named, too. */
    if (variant_named(&l->variants, CHOICE_matmul) != VARIANT_NONE &&
        variant_named(&l->variants, CHOICE_matrix) == VARIANT_NONE)
        return false;
    return shape->m >= LEAST_SIDE && shape->n >= LEAST_SIDE && shape->k > 0 &&
           matrix_unit_choose(shape, l->precision, l->profile, false, VARIANT_NONE);
}

/* One operand as rows along K: the rows of a, or the columns of b. */
typedef struct side {
    operand source;
    uint64_t rows, k, matrices, matrix_unit_step;
    bool is_b;
    bool is_packed;           /* already, so that matrix_pack is not needed */
    bool turned;              /* neighbours in memory belong to different rows */
    uint32_t storage;         /* MATMUL_WORDS, ... */
    uint32_t distance;        /* for matrix_pack: the order of K */
    bool by_lanes;            /* or another order of K (matrix_unit_packing) */
    operand packed, exponent; /* temporaries */
    uint64_t round_rows, round_k;
} side;

/* Counts the matrices of an operand. A batch axis along which it only repeats does not count. */
static void count_matrices(const matmul_problem *p, bool is_b, side *s)
{
    s->matrices = 1;
    s->matrix_unit_step = s->rows * s->k;
    for (uint32_t i = 0; i < p->axis_count; i++)
        if (is_b ? p->axes[i].b_stride : p->axes[i].a_stride)
            s->matrices *= p->axes[i].extent;
}

static side make_side(const lowering *l, const matmul_request *r, bool is_b, uint64_t tile,
                      uint64_t tile_k)
{
    const matmul_shape *shape = &r->problem.shape;
    side s = {.source = is_b ? r->b : r->a,
              .is_b = is_b,
              .rows = is_b ? shape->n : shape->m,
              .k = shape->k,
              .turned = is_b ? !shape->transpose_b : shape->transpose_a,
              .distance = MATRIX_IN_ORDER};
    s.storage = is_b && r->unpack_b ? MATMUL_WORDS : matmul_storage_code(l, &s.source);
    s.round_rows = round_up(s.rows, tile);
    s.round_k = round_up(s.k, tile_k);
    count_matrices(&r->problem, is_b, &s);
    return s;
}

static rlxvk_status emit_scale(lowering *l, uint32_t id, side *s)
{
    struct matrix_scale_args args = {(uint32_t)s->rows, (uint32_t)s->k, (uint32_t)s->matrices,
                                     (uint32_t)s->matrix_unit_step, s->source.offset};
    dispatch d = {.kernel = KERNEL_MATRIX_SCALE, .node = id};
    rlxvk_status status;
    TRY(lower_temporary(l, s->rows * s->matrices * sizeof(int32_t), &s->exponent));
    const operand operands[] = {s->source, s->exponent};
    SET_CONSTANTS(&d, {LOCAL_SIZE, SCALE_GROUP}, {MATRIX_SCALE_STORAGE, s->storage},
                  {MATRIX_SCALE_TRANSPOSED, s->turned});
    lower_groups(l, &d, s->matrices * (s->turned ? divide_up(s->rows, TURNED_ROWS) : s->rows));
    d.order.run = !s->is_b;
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    s->exponent.access = ACCESS_READ;
error:
    return status;
}

static uint64_t plane_octets(const side *s)
{
    return s->matrices * s->round_rows * s->round_k / 8;
}

/* The format of packed operands: halves, or words if an element needs more than a half. */
static uint32_t packed_storage(const lowering *l)
{
    return l->precision == RLXVK_PRECISION_F16    ? MATMUL_F16
           : l->precision == RLXVK_PRECISION_BF16 ? MATMUL_BF16
                                                  : MATMUL_WORDS;
}

/* Do packed weights become halves at once? They do if their rows need no padding. Otherwise they
 * become words first. */
static bool unpacks_at_once(const lowering *l, uint64_t k, uint64_t tile_k)
{
    return packed_storage(l) != MATMUL_WORDS && k % tile_k == 0;
}

uint64_t matrix_unit_unpacked_bytes(const lowering *l, const matmul_shape *s)
{
    const matrix_class *c = matrix_unit_choose(s, l->precision, l->profile, false, VARIANT_NONE);
    uint64_t packed = round_up(s->n, c->tile_n) * round_up(s->k, c->tile_k) * 2 *
                      matrix_unit_planes(l->precision);
    return packed + (unpacks_at_once(l, s->k, c->tile_k) ? 0 : s->n * s->k * sizeof(float));
}

/* Decodes b from packed weights. */
static rlxvk_status unpack_side(lowering *l, uint32_t id, const matmul_request *r, uint64_t tile_k,
                                side *s)
{
    uint32_t half = packed_storage(l);
    bool direct = unpacks_at_once(l, s->k, tile_k);
    s->is_packed = direct;
    return direct
               ? r->unpack_b(l, id, half, (matmul_rows_of_b){0, s->rows, s->round_rows}, &s->packed)
               : r->unpack_b(l, id, MATMUL_WORDS, (matmul_rows_of_b){0, s->rows, s->rows},
                             &s->source);
}

/* Would packing leave b as it is? Its rows are halves then, in whole steps. */
static bool is_as_packed(const lowering *l, const matmul_request *r, uint64_t tile_k)
{
    const matmul_shape *s = &r->problem.shape;
    uint32_t half = packed_storage(l);
    return half != MATMUL_WORDS && !r->unpack_b && matmul_storage_code(l, &r->b) == half &&
           s->transpose_b && s->k % tile_k == 0 && r->b.offset == 0;
}

static void take_packed(side *s)
{
    s->packed = s->source;
    s->round_rows = s->rows;
    s->is_packed = true;
}

/* Blocks must be packed even if rows need not be. A direct product makes up for that only if there
 * are so many rows. */
#define LEAST_DIRECT_ROWS 768

static bool may_be_direct(const lowering *l, const matmul_request *r)
{
    if (r->unpack_b)
        return r->in_blocks;
    return l->matrix_in_lanes &&
           (r->problem.shape.m >= LEAST_DIRECT_ROWS || !is_as_packed(l, r, MATRIX_BLOCK_K));
}

static const matrix_class *class_of(const lowering *l, const matmul_request *r, size_t forced)
{
    return matrix_unit_choose(&r->problem.shape, l->precision, l->profile, may_be_direct(l, r),
                              forced);
}

bool matrix_unit_takes_blocks(const lowering *l, const matmul_request *r)
{
    matmul_request in_blocks = *r;
    in_blocks.in_blocks = true;
    const matrix_class *c = class_of(l, &in_blocks, variant_named(&l->variants, CHOICE_matrix));
    return c && c->depth;
}

static struct matrix_pack_args pack_args(const side *s)
{
    return (struct matrix_pack_args){(uint32_t)s->rows,     (uint32_t)s->k,
                                     (uint32_t)s->matrices, (uint32_t)s->matrix_unit_step,
                                     s->source.offset,      (uint32_t)s->round_rows,
                                     (uint32_t)s->round_k,  (uint32_t)plane_octets(s)};
}

static rlxvk_status emit_pack(lowering *l, uint32_t id, side *s)
{
    static const uint32_t targets[] = {[RLXVK_PRECISION_F32] = MATRIX_F32,
                                       [RLXVK_PRECISION_F16] = MATRIX_F16,
                                       [RLXVK_PRECISION_BF16] = MATRIX_BF16,
                                       [RLXVK_PRECISION_SPLIT] = MATRIX_SPLIT};
    bool split = l->precision == RLXVK_PRECISION_SPLIT;
    struct matrix_pack_args args = pack_args(s);
    bool quads = (s->source.offset | s->k | s->matrix_unit_step) % 4 == 0;
    dispatch d = {.kernel = KERNEL_MATRIX_PACK, .node = id};
    rlxvk_status status;
    TRY(lower_temporary(l, 16 * matrix_unit_planes(l->precision) * plane_octets(s), &s->packed));
    const operand operands[] = {s->source, split ? s->exponent : s->source, s->packed};
    uint64_t tiles = divide_up(s->rows, TURNED_ROWS) * divide_up(s->round_k, TURNED_K);
    SET_CONSTANTS(&d, {LOCAL_SIZE, PACK_GROUP}, {MATRIX_PACK_STORAGE, s->storage},
                  {MATRIX_PACK_TO, targets[l->precision]}, {MATRIX_PACK_TRANSPOSED, s->turned},
                  {MATRIX_PACK_QUADS, quads}, {MATRIX_PACK_DISTANCE, s->distance},
                  {MATRIX_PACK_BY_LANES, s->by_lanes});
    lower_groups(l, &d,
                 s->matrices * (s->turned ? tiles : 0) +
                     (s->turned ? 0
                                : groups_for(s->matrices * s->rows * s->round_k / 8, PACK_GROUP)));
    d.order.run = !s->is_b && !s->turned;
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    s->packed.access = ACCESS_READ;
error:
    return status;
}

rlxvk_status matrix_unit_pack_emit(lowering *l, uint32_t id, const matmul_request *r,
                                   const matrix_unit_packing *p, operand *out)
{
    side a = make_side(l, r, false, p->tile, p->tile_k);
    a.distance = p->distance;
    a.by_lanes = p->by_lanes;
    rlxvk_status status = emit_pack(l, id, &a);
    *out = a.packed;
    return status;
}

/* Packs an operand as blocks, in which form both matrix_direct kernels take it. */
static rlxvk_status emit_block_pack(lowering *l, uint32_t id, side *s)
{
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    struct matrix_pack_args args = pack_args(s);
    uint64_t across = s->turned ? s->rows : s->k; /* where neighbours in memory lie */
    dispatch d = {.kernel = KERNEL_MATRIX_BLOCK_PACK, .node = id};
    rlxvk_status status;
    TRY(lower_temporary(l, 16 * plane_octets(s), &s->packed));
    const operand operands[] = {s->source, s->packed};
    SET_CONSTANTS(&d, {LOCAL_SIZE, PACK_GROUP}, {MATRIX_BLOCK_PACK_STORAGE, s->storage},
                  {MATRIX_BLOCK_PACK_TO_BF16, l->precision == RLXVK_PRECISION_BF16},
                  {MATRIX_BLOCK_PACK_TRANSPOSED, s->turned},
                  {MATRIX_BLOCK_PACK_QUADS,
                   (s->source.offset | across | s->matrix_unit_step) % 4 == 0},
                  {MATRIX_BLOCK_PACK_BY_LANES, l->matrix_in_lanes},
                  {MATRIX_BLOCK_PACK_BLOCK_ROWS, s->is_b ? unit.n : unit.m},
                  {MATRIX_BLOCK_PACK_UNIT_K, unit.k});
    lower_groups(l, &d,
                 s->matrices * (s->round_rows / MATRIX_BLOCK_ROWS) * (s->round_k / MATRIX_BLOCK_K));
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    s->packed.access = ACCESS_READ;
error:
    return status;
}

/* Decodes b from packed weights to blocks. If rows are no whole steps, to halves first. */
static rlxvk_status unpack_blocks(lowering *l, uint32_t id, const matmul_request *r, side *b)
{
    bool at_once = b->k == b->round_k;
    rlxvk_status status;
    b->storage = packed_storage(l);
    TRY(r->unpack_b(l, id, b->storage,
                    (matmul_rows_of_b){0, b->rows, at_once ? b->round_rows : b->rows, at_once},
                    at_once ? &b->packed : &b->source));
    return at_once ? RLXVK_OK : emit_block_pack(l, id, b);
error:
    return status;
}

static void set_batch(const matmul_problem *p, const side *a, const side *b,
                      struct matrix_product_args *args)
{
    args->batch_count = (uint32_t)p->shape.batch;
    for (uint32_t i = 0; i < MATMUL_BATCH_AXES; i++) {
        bool real = i < p->axis_count;
        if (i < MATMUL_BATCH_AXES - 1)
            args->batch_dims[i] = real ? (uint32_t)p->axes[i].extent : 1;
        args->a_batch_strides[i] = real ? (uint32_t)(p->axes[i].a_stride / a->matrix_unit_step) : 0;
        args->b_batch_strides[i] = real ? (uint32_t)(p->axes[i].b_stride / b->matrix_unit_step) : 0;
    }
}

static void set_constants(const lowering *l, const matmul_request *r, const matrix_class *c,
                          dispatch *d)
{
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    SET_CONSTANTS(d, {LOCAL_SIZE, matrix_unit_threads(c, l->profile)},
                  {MATRIX_PRODUCT_TILE_M, c->tile_m}, {MATRIX_PRODUCT_TILE_N, c->tile_n},
                  {MATRIX_PRODUCT_PART_M, c->part_m}, {MATRIX_PRODUCT_PART_N, c->part_n},
                  {MATRIX_PRODUCT_UNIT_M, unit.m}, {MATRIX_PRODUCT_UNIT_N, unit.n},
                  {MATRIX_PRODUCT_UNIT_K, unit.k},
                  {MATRIX_PRODUCT_BIAS, r->bias ? MATMUL_BIAS_COLUMN : MATMUL_NO_BIAS},
                  {MATRIX_PRODUCT_BAND, MATMUL_BAND});
    if (l->precision != RLXVK_PRECISION_F32)
        SET_CONSTANTS(d, {MATRIX_PRODUCT_TILE_K, c->tile_k},
                      {MATRIX_PRODUCT_PLANES, matrix_unit_planes(l->precision)},
                      {MATRIX_PRODUCT_STAGES, c->stages});
}

static struct matrix_product_args product_args(const matmul_request *r, const side *a,
                                               const side *b)
{
    const matmul_shape *s = &r->problem.shape;
    struct matrix_product_args args = {.m = (uint32_t)s->m,
                                       .n = (uint32_t)s->n,
                                       .k_octets = (uint32_t)(a->round_k / 8),
                                       .a_rows = (uint32_t)a->round_rows,
                                       .b_rows = (uint32_t)b->round_rows,
                                       .a_plane = (uint32_t)plane_octets(a),
                                       .b_plane = (uint32_t)plane_octets(b),
                                       .bias_offset = r->bias ? r->bias->offset : 0,
                                       .y_offset = r->y.offset};
    matmul_set_ends(r, s->n, args.ends);
    set_batch(&r->problem, a, b, &args);
    return args;
}

/* The workgroups of a product, and the order in which they write y. */
static void set_groups(const lowering *l, const matmul_shape *s, const matrix_class *c, dispatch *d)
{
    uint64_t tiles_m = divide_up(s->m, c->tile_m), tiles_n = divide_up(s->n, c->tile_n);
    lower_groups(l, d, s->batch * tiles_m * tiles_n);
    d->order = (group_order){.run = s->batch > 1 ? 1 : MATMUL_BAND * (uint32_t)tiles_n,
                             .span = s->batch > 1 ? s->m * s->n : 0,
                             .cycle = (uint32_t)(tiles_m * tiles_n),
                             .cycles = (uint32_t)s->batch,
                             .rows_run = MATMUL_BAND * (uint32_t)tiles_n};
}

static rlxvk_status emit_product(lowering *l, uint32_t id, const matmul_request *r,
                                 const matrix_class *c, const side *a, const side *b)
{
    static const uint16_t kernels[] = {[RLXVK_PRECISION_F32] = KERNEL_MATRIX_PRODUCT_F32,
                                       [RLXVK_PRECISION_F16] = KERNEL_MATRIX_PRODUCT_F16,
                                       [RLXVK_PRECISION_BF16] = KERNEL_MATRIX_PRODUCT_BF16,
                                       [RLXVK_PRECISION_SPLIT] = KERNEL_MATRIX_PRODUCT_F16};
    bool split = l->precision == RLXVK_PRECISION_SPLIT;
    struct matrix_product_args args = product_args(r, a, b);
    dispatch d = {.kernel = kernels[l->precision], .node = id, .variant = c->row.name};
    /* Unused bindings get an operand that is read anyway. */
    const operand bias = r->bias ? *r->bias : a->packed;
    const operand in_words[] = {a->packed, b->packed, bias, r->y};
    const operand operands[] = {
        a->packed, b->packed, split ? a->exponent : a->packed, split ? b->exponent : b->packed,
        bias,      r->y};
    bool words = l->precision == RLXVK_PRECISION_F32;
    set_constants(l, r, c, &d);
    set_groups(l, &r->problem.shape, c, &d);
    return lower_emit(l, &d, &args, sizeof args, words ? in_words : operands,
                      words ? ARRAY_COUNT(in_words) : ARRAY_COUNT(operands));
}

static rlxvk_status emit_direct(lowering *l, uint32_t id, const matmul_request *r,
                                const matrix_class *c, const side *a, const side *b)
{
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    struct matrix_product_args args = product_args(r, a, b);
    dispatch d = {.kernel = l->precision == RLXVK_PRECISION_BF16 ? KERNEL_MATRIX_DIRECT_BF16
                                                                 : KERNEL_MATRIX_DIRECT_F16,
                  .node = id,
                  .variant = c->row.name};
    const operand operands[] = {a->packed, b->packed, r->bias ? *r->bias : a->packed, r->y};
    SET_CONSTANTS(&d, {LOCAL_SIZE, matrix_unit_threads(c, l->profile)},
                  {MATRIX_DIRECT_TILE_M, c->tile_m}, {MATRIX_DIRECT_TILE_N, c->tile_n},
                  {MATRIX_DIRECT_PART_M, c->part_m}, {MATRIX_DIRECT_PART_N, c->part_n},
                  {MATRIX_DIRECT_UNIT_M, unit.m}, {MATRIX_DIRECT_UNIT_N, unit.n},
                  {MATRIX_DIRECT_UNIT_K, unit.k}, {MATRIX_DIRECT_DEPTH, c->depth},
                  {MATRIX_DIRECT_BY_LANES, l->matrix_in_lanes},
                  {MATRIX_DIRECT_BIAS, r->bias ? MATMUL_BIAS_COLUMN : MATMUL_NO_BIAS},
                  {MATRIX_DIRECT_BAND, MATMUL_BAND},
                  {MATRIX_DIRECT_PAIRS,
                   (args.n | args.y_offset | args.ends[0] | args.ends[1]) % 2 == 0});
    set_groups(l, &r->problem.shape, c, &d);
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* Packs both operands as the class takes them. */
static rlxvk_status emit_packed(lowering *l, uint32_t id, const matmul_request *r,
                                const matrix_class *c, side *a, side *b)
{
    rlxvk_status status;
    if (c->depth) {
        TRY(emit_block_pack(l, id, a));
        return r->unpack_b ? unpack_blocks(l, id, r, b) : emit_block_pack(l, id, b);
    }
    if (r->unpack_b)
        TRY(unpack_side(l, id, r, c->tile_k, b));
    else if (is_as_packed(l, r, c->tile_k))
        take_packed(b);
    if (l->precision == RLXVK_PRECISION_SPLIT) {
        TRY(emit_scale(l, id, a));
        TRY(emit_scale(l, id, b));
    }
    TRY(emit_pack(l, id, a));
    if (!b->is_packed)
        TRY(emit_pack(l, id, b));
error:
    return status;
}

static size_t choose(lowering *l, const matmul_shape *s)
{
    char tag[VARIANT_TAG] = "";
    text_append(&(text){tag, sizeof tag, 0}, "%s_%s", rlxvk_precision_name(l->precision),
                matmul_tag(s));
    return variant_choose(l, CHOICE_matrix, tag,
                          (uint64_t[VARIANT_DIMS]){s->m, s->n, s->k, s->batch});
}

rlxvk_status matrix_unit_product_emit(lowering *l, uint32_t id, const matmul_request *r,
                                      operand *out_sums)
{
    const matrix_class *c = class_of(l, r, choose(l, &r->problem.shape));
    side a = make_side(l, r, false, c->tile_m, c->tile_k);
    side b = make_side(l, r, true, c->tile_n, c->tile_k);
    matmul_request plain = *r;
    rlxvk_status status;
    l->prepares = true;
    TRY(emit_packed(l, id, r, c, &a, &b));
    l->prepares = false;
    /* The kernel has no activation, because that is long code and the sums must stay in
     * registers. */
    if (r->activation != UNARY_NONE) {
        const matmul_shape *s = &r->problem.shape;
        TRY(lower_temporary(l, s->batch * s->m * s->n * sizeof(float), &plain.y));
        plain.bias = NULL;
        plain.ends[0] = plain.ends[1] = 0;
    }
    TRY((c->depth ? emit_direct : emit_product)(l, id, &plain, c, &a, &b));
    *out_sums = plain.y;
error:
    return status;
}
