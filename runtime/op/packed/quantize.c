/*
 * quantize and dequantize: F32 to 8-bit integers and back. There is one scale and zero point, or
 * one for each index of an axis.
 *
 *   quantize:   q = clamp(round(x * r) + zero point, -128, 127), r = 1 / scale rounded to f32
 *   dequantize: x = (q - zero point) * scale
 *
 * round takes halves away from zero. With RLXVK_QUANTIZE_EVEN, the factor is the scale: the f32
 * nearest to x / scale is rounded, halves to even. Results are exact, because every operation is
 * one f32 operation. The builders turn the numbers into constants, the operands after x: factors (r
 * or scale) and zero points, [1] or [length of the axis]. A quantized tensor is words and not
 * bytes, because it is computed.
 */
#include "args/packed.h"
#include "constants/packed.h"
#include "base/numeric.h"
#include "op/bucket.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/integer.h"

#include <math.h>

typedef struct quantize_attributes {
    bool per_axis;
    int32_t axis;
    uint32_t even, is_unsigned; /* 0 or 1 */
} quantize_attributes;

/* ---- Building ---- */

enum { MOST_CODE = 255 };

static rlxvk_status check_zero_point(const node *n, const rlxvk_quantize_options *o, size_t i)
{
    bool is_unsigned = o->code == RLXVK_U8;
    int32_t z = o->zero_points ? o->zero_points[i] : 0;
    if (is_unsigned ? z >= 0 && z <= MOST_CODE : integer_is_zero_point(z))
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_ATTR, "zero point %zu is %d outside %s", i, z,
                   is_unsigned ? "0..255" : "-128..127");
}

static rlxvk_status check_mode(const node *n, const rlxvk_quantize_options *o)
{
    if ((unsigned)o->rounding > RLXVK_QUANTIZE_EVEN)
        return op_fail(n, RLXVK_E_ATTR, "rounding %d is not one of 0 .. 1", (int)o->rounding);
    if (o->code != 0 && (o->code != RLXVK_U8 || n->op != OP_quantize))
        return op_fail(n, RLXVK_E_ATTR, "code %d; quantize gives RLXVK_U8 or, with 0, I8",
                       (int)o->code);
    return RLXVK_OK;
}

static rlxvk_status check_options(const node *n, const rlxvk_quantize_options *o)
{
    rlxvk_status status;
    TRY(check_mode(n, o));
    TRY(status_require_items(o->scales, o->count, node_row(n)->name, "options.scales"));
    if (o->count == 0)
        return op_fail(n, RLXVK_E_ATTR, "0 scales; options.scales holds one, or one an index");
    for (size_t i = 0; i < o->count; i++) {
        if (!isfinite(o->scales[i]) || !(o->scales[i] > 0))
            return op_fail(n, RLXVK_E_ATTR, "scale %zu is %g; scales are finite and above 0", i,
                           (double)o->scales[i]);
        if (n->op == OP_quantize && !isnormal(1 / o->scales[i]))
            return op_fail(n, RLXVK_E_ATTR,
                           "scale %zu is %g; 1 / scale is not a normal f32, as it is for scales "
                           "from 3e-39 to 8e37",
                           i, (double)o->scales[i]);
        if (n->op == OP_quantize && o->rounding == RLXVK_QUANTIZE_EVEN &&
            !(o->scales[i] >= 1e-30f && o->scales[i] <= 1e30f))
            return op_fail(n, RLXVK_E_ATTR, "scale %zu is %g; halves to even need 1e-30 .. 1e30", i,
                           (double)o->scales[i]);
        TRY(check_zero_point(n, o, i));
    }
error:
    return status;
}

/* Appends the factors and zero points as constants of the graph. */
static rlxvk_status append_numbers(rlxvk_graph *g, op_kind op, const rlxvk_quantize_options *o,
                                   rlxvk_tensor out[2])
{
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)o->count);
    float *factors = memory_zeroed(o->count + 1, sizeof *factors);
    int32_t *zero_points = memory_zeroed(o->count + 1, sizeof *zero_points);
    rlxvk_status status = factors && zero_points ? RLXVK_OK : status_fail_memory("scales");
    for (size_t i = 0; i < o->count && status == RLXVK_OK; i++) {
        factors[i] = op == OP_quantize && o->rounding == RLXVK_QUANTIZE_AWAY ? 1 / o->scales[i]
                                                                             : o->scales[i];
        zero_points[i] = o->zero_points ? o->zero_points[i] : 0;
    }
    if (status == RLXVK_OK) {
        out[0] = rlxvk_constant(g, RLXVK_F32, shape, factors, o->count * sizeof *factors);
        out[1] = rlxvk_constant(g, RLXVK_I32, shape, zero_points, o->count * sizeof *zero_points);
    }
    memory_free(factors);
    memory_free(zero_points);
    return status;
}

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x,
                          const rlxvk_quantize_options *options)
{
    rlxvk_tensor inputs[3] = {x};
    node n = {.op = (uint16_t)op, .building = g};
    rlxvk_quantize_options o;
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_quantize_options), options, &o))
        return RLXVK_NONE;
    if (x.id && (graph_fail(g, check_options(&n, &o)) != RLXVK_OK ||
                 graph_fail(g, append_numbers(g, op, &o, inputs + 1)) != RLXVK_OK))
        return RLXVK_NONE;
    quantize_attributes attributes = {.per_axis = o.per_axis,
                                      .axis = o.axis,
                                      .is_unsigned = o.code == RLXVK_U8};
    attributes.even = op == OP_quantize && o.rounding == RLXVK_QUANTIZE_EVEN;
    return op_build(g, op, inputs, ARRAY_COUNT(inputs), &attributes);
}

rlxvk_tensor rlxvk_quantize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_quantize_options *options)
{
    return build(g, OP_quantize, x, options);
}

rlxvk_tensor rlxvk_dequantize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_quantize_options *options)
{
    return build(g, OP_dequantize, x, options);
}

static rlxvk_status check_input(const rlxvk_graph *g, const node *n)
{
    return n->op == OP_dequantize ? integer_check_operand(g, n, 0)
                                  : op_require_dtype(g, n, 0, RLXVK_F32, "insert a cast");
}

static rlxvk_status check_counts(const rlxvk_graph *g, const node *n, const quantize_attributes *a,
                                 int64_t length)
{
    const rlxvk_shape *factors = input_shape(g, n, 1), *zero_points = input_shape(g, n, 2);
    if (factors->rank != 1 || !shape_equal(factors, zero_points))
        return op_fail(n, RLXVK_E_ATTR, "scales and zero points must be two lists of one length");
    if (factors->dims[0] == 1 || (a->per_axis && factors->dims[0] == length))
        return RLXVK_OK;
    if (!a->per_axis)
        return op_fail(n, RLXVK_E_ATTR, "%lld scales without an axis; give one, or set per_axis",
                       (long long)factors->dims[0]);
    return op_fail(n, RLXVK_E_ATTR, "%lld scales; axis %d takes 1 or %lld",
                   (long long)factors->dims[0], a->axis, (long long)length);
}

static rlxvk_status quantize_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    quantize_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    TRY(check_input(g, n));
    if (a->per_axis)
        TRY(op_axis(n, a->axis, x->rank, &a->axis));
    else
        a->axis = 0;
    TRY(check_counts(g, n, a, a->per_axis && x->rank ? x->dims[a->axis] : 1));
    n->shape = *x;
    n->dtype = n->op != OP_quantize ? RLXVK_F32 : a->is_unsigned ? RLXVK_U8 : RLXVK_I8;
error:
    return status;
}

static uint32_t quantize_in_place(const rlxvk_graph *g, const node *n)
{
    return op_node_storage(g, n->inputs[0]) == STORAGE_WORD;
}

/* ---- Lower and host ---- */

/* How many factors there are, and how many consecutive elements share one. */
static uint64_t channels_of(const rlxvk_graph *g, const node *n)
{
    return (uint64_t)input_shape(g, n, 1)->dims[0];
}

static uint64_t inner_of(const node *n)
{
    const quantize_attributes *a = n->attributes;
    return op_axis_view(&n->shape, a->axis).inner;
}

static rlxvk_status quantize_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_input(l, id, 2),
                          lower_write(l, id)};
    struct quantize_args args = {.numel = (uint32_t)shape_numel(&n->shape),
                                 .inner = (uint32_t)inner_of(n),
                                 .channels = (uint32_t)channels_of(l->graph, n),
                                 .x_offset = operands[0].offset,
                                 .factor_offset = operands[1].offset,
                                 .zero_offset = operands[2].offset,
                                 .y_offset = operands[3].offset};
    const quantize_attributes *a = n->attributes;
    uint32_t mode = node_code(n);
    if (operands[0].storage == STORAGE_RAW)
        mode = DEQUANTIZE_BYTES;
    dispatch d = {.kernel = KERNEL_QUANTIZE, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {QUANTIZE_MODE, mode},
                  {QUANTIZE_PER_CHANNEL, args.channels > 1}, {QUANTIZE_UNSIGNED, a->is_unsigned},
                  {QUANTIZE_EVEN, a->even});
    lower_groups_in_order(l, &d, args.numel, elementwise_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* A code of x. The division is in f32, as its rounding is part of the definition. */
static double host_code(const quantize_attributes *a, float x, double factor, int32_t zero_point)
{
    double low = a->is_unsigned ? 0 : -128, code;
    if (isnan(x))
        return zero_point;
    code = a->even ? rint((float)((double)x / factor)) : numeric_round((float)((double)x * factor));
    return fmin(fmax(code + zero_point, low), low + MOST_CODE);
}

static rlxvk_status quantize_host(const host_call *c)
{
    const host_tensor *in = c->inputs;
    uint64_t numel = shape_numel(&c->node->shape), inner = inner_of(c->node);
    uint64_t channels = (uint64_t)in[1].node->shape.dims[0];
    for (uint64_t i = 0; i < numel; i++) {
        uint64_t channel = i / inner % channels;
        double factor = in[1].words[channel];
        int32_t zero_point = (int32_t)in[2].words[channel];
        if (c->node->op == OP_quantize)
            c->out[i] = host_code(c->node->attributes, in[0].words[i], factor, zero_point);
        else
            c->out[i] = (integer_host_read(&in[0], i) - zero_point) * factor;
    }
    return RLXVK_OK;
}

static void quantize_describe(const node *n, text *out)
{
    const quantize_attributes *a = n->attributes;
    if (a->per_axis)
        text_append(out, " axis=%d", a->axis);
    if (a->even)
        text_append(out, " rounding=even");
}

const op_family quantize_family = {
    .name = "quantize",
    .attribute_size = sizeof(quantize_attributes),
    .infer = quantize_infer,
    .storage = {.raw_inputs = 1},
    .memory = {.in_place = quantize_in_place},
    .execution = {.foldable = true, .lower = quantize_lower, .host = quantize_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = gradient_identity, .straight_through = true},
    .describe = quantize_describe,
};
