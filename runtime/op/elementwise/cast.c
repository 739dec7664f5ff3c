/*
 * cast converts values to another dtype. All real dtypes are stored as f32 words. So a cast that
 * never changes a word is a view: to the same dtype, to F32 or F64, or from Bool to any real dtype.
 * Other casts change values:
 *   F16, BF16   round
 *   integers    truncate and saturate
 *   Bool        tests for nonzero
 *   raw bytes   are unpacked
 *   C64         adds or drops an imaginary part
 *
 * copy writes the same bits to memory of its own. It keeps the storage of the operand: raw bytes
 * stay raw.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/movement/layout.h"

#include <math.h>

/* ---- cast ---- */

_Static_assert(DTYPE_F32 == (int)RLXVK_F32 && DTYPE_F16 == (int)RLXVK_F16 &&
                   DTYPE_BF16 == (int)RLXVK_BF16 && DTYPE_F64 == (int)RLXVK_F64 &&
                   DTYPE_I8 == (int)RLXVK_I8 && DTYPE_I16 == (int)RLXVK_I16 &&
                   DTYPE_I32 == (int)RLXVK_I32 && DTYPE_I64 == (int)RLXVK_I64 &&
                   DTYPE_U8 == (int)RLXVK_U8 && DTYPE_U32 == (int)RLXVK_U32 &&
                   DTYPE_BOOL == (int)RLXVK_BOOL && DTYPE_C64 == (int)RLXVK_C64,
               "args/elementwise.h numbers dtypes as rlxvk.h does");

rlxvk_tensor rlxvk_cast(rlxvk_graph *g, rlxvk_tensor x, rlxvk_dtype to)
{
    cast_attributes attributes = {to};
    return op_build(g, OP_cast, &x, 1, &attributes);
}

static rlxvk_status cast_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_dtype to = ((cast_attributes *)attributes)->to;
    if ((unsigned)to > RLXVK_C64)
        return op_fail(n, RLXVK_E_ATTR, "dtype %d is not one of 0 .. %d", (int)to, RLXVK_C64);
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)to;
    return RLXVK_OK;
}

static bool cast_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    rlxvk_dtype from = input_dtype(g, n, 0);
    *out_offset = 0;
    if (n->dtype == from)
        return true;
    bool byte = n->dtype == RLXVK_U8 || n->dtype == RLXVK_I8; /* a view would pass for raw */
    bool same_word = n->dtype == RLXVK_F32 || n->dtype == RLXVK_F64 ||
                     (from == RLXVK_BOOL && n->dtype != RLXVK_C64 && !byte);
    return same_word && op_node_storage(g, n->inputs[0]) == STORAGE_WORD;
}

static uint32_t cast_in_place(const rlxvk_graph *g, const node *n)
{
    return op_node_storage(g, n->inputs[0]) == STORAGE_WORD && n->dtype != RLXVK_C64;
}

static uint32_t source_code(const operand *x, rlxvk_dtype dtype)
{
    if (x->storage == STORAGE_RAW)
        return dtype == RLXVK_U8 ? CAST_FROM_U8 : CAST_FROM_I8;
    return x->storage == STORAGE_PAIR ? CAST_FROM_PAIR : CAST_FROM_WORD;
}

static rlxvk_status cast_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    dispatch d = {.kernel = KERNEL_CAST};
    struct cast_args args = {(uint32_t)shape_numel(&n->shape), operands[0].offset,
                             operands[1].offset};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {CAST_SOURCE, source_code(&operands[0], input_dtype(l->graph, n, 0))},
                  {CAST_TARGET, n->dtype});
    lower_groups_in_order(l, &d, args.numel, elementwise_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

/* Rounds to `digits` significant bits, but to no finer unit than `quantum`. Ties go to even. The
 * result is infinite if it is at least `overflow`. */
static double host_round(double v, int digits, double quantum, double overflow)
{
    int exponent;
    if (!isfinite(v) || v == 0)
        return v;
    frexp(v, &exponent);
    double step = fmax(ldexp(1, exponent - digits), quantum);
    double rounded = nearbyint(v / step) * step;
    return fabs(rounded) >= overflow ? copysign(INFINITY, v) : rounded;
}

static double host_integer(double v, double lowest, double highest)
{
    return isnan(v) ? 0 : fmin(fmax(trunc(v), lowest), highest);
}

/* Words of integer dtypes saturate at the f32 nearest to the dtype's limits. */
static const struct {
    double lowest, highest;
} integer_limits[RLXVK_DTYPE_COUNT] = {
    [RLXVK_I8] = {-128, 127},        [RLXVK_I16] = {-32768, 32767}, [RLXVK_I32] = {-0x1p31, 0x1p31},
    [RLXVK_I64] = {-0x1p63, 0x1p63}, [RLXVK_U8] = {0, 255},         [RLXVK_U32] = {0, 0x1p32},
};

double cast_host_value(rlxvk_dtype to, double v)
{
    if (to == RLXVK_F16)
        return host_round(v, 11, 0x1p-24, 0x1p16);
    if (to == RLXVK_BF16)
        return host_round(v, 8, 0x1p-133, INFINITY);
    if (to == RLXVK_BOOL)
        return v != 0;
    return dtype_is_integer(to)
               ? host_integer(v, integer_limits[to].lowest, integer_limits[to].highest)
               : v;
}

static double host_element(const host_tensor *t, uint64_t i)
{
    if (t->storage == STORAGE_RAW)
        return t->node->dtype == RLXVK_I8 ? (int8_t)t->bytes[i] : t->bytes[i];
    return t->words[t->storage == STORAGE_PAIR ? 2 * i : i];
}

static rlxvk_status cast_host(const host_call *call)
{
    rlxvk_dtype to = (rlxvk_dtype)call->node->dtype;
    bool both_pairs = to == RLXVK_C64 && call->inputs[0].storage == STORAGE_PAIR;
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        if (both_pairs)
            layout_host_move(call, i, &call->inputs[0], i);
        else
            call->out[to == RLXVK_C64 ? 2 * i : i] =
                cast_host_value(to, host_element(&call->inputs[0], i));
    }
    return RLXVK_OK;
}

/* No gradient flows through casts to and from integers and BOOL. */
static rlxvk_status cast_vjp(gradient_call *c)
{
    if (dtype_is_continuous((rlxvk_dtype)graph_node(c->graph, c->n.inputs[0])->dtype))
        gradient_give(c, 0, c->dy);
    else
        gradient_give_zero(c, 0);
    return RLXVK_OK;
}

static void cast_describe(const node *n, text *out)
{
    text_append(out, " to=%s", rlxvk_dtype_name((rlxvk_dtype)n->dtype));
}

const op_family cast_family = {
    .name = "cast",
    .attribute_size = sizeof(cast_attributes),
    .infer = cast_infer,
    .storage = {.raw_inputs = 1, .pairs = true, .reinterprets = true},
    .views = {.view = cast_view, .reorder = op_reorder_none},
    .memory = {.in_place = cast_in_place},
    .execution = {.foldable = true, .lower = cast_lower, .host = cast_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = cast_vjp},
    .describe = cast_describe,
};

/* ---- copy ---- */

rlxvk_tensor rlxvk_copy(rlxvk_graph *g, rlxvk_tensor x)
{
    return op_build(g, OP_copy, &x, 1, NULL);
}

static rlxvk_status copy_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

/* All storages are copied as words. This is possible because views of raw bytes start at multiples
 * of 4. */
static struct copy_args copy_arguments(const operand *x, const operand *y, uint64_t numel)
{
    if (x->storage == STORAGE_RAW)
        return (struct copy_args){(uint32_t)divide_up(numel, 4), x->offset / 4, y->offset / 4};
    uint32_t words = element_words(x);
    return (struct copy_args){(uint32_t)numel * words, x->offset * words, y->offset * words};
}

static rlxvk_status copy_lower(lowering *l, uint32_t id)
{
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    uint64_t numel = shape_numel(&graph_node(l->graph, id)->shape);
    struct copy_args args = copy_arguments(&operands[0], &operands[1], numel);
    bool quads = args.x_offset % 4 == 0 && args.y_offset % 4 == 0;
    uint32_t size = l->profile->workgroup_size;
    dispatch d = {.kernel = KERNEL_COPY};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {COPY_VECTORS, quads}, {COPY_UNITS, quads ? 1 : 4});
    lower_groups_in_order(l, &d, args.words, elementwise_lot(size));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

static rlxvk_status copy_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    return RLXVK_OK;
}

const op_family copy_family = {
    .name = "copy",
    .infer = copy_infer,
    .storage = {.raw_inputs = 1, .pairs = true, .keeps_storage = true},
    .execution = {.lower = copy_lower, .host = copy_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = gradient_identity},
};
