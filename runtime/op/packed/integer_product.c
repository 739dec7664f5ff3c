/* See integer_product.h. */
#include "op/packed/integer_product.h"
#include "constants/packed.h"

#include <math.h>

/* ---- Infer ---- */

static rlxvk_status check_requantize(const node *n, const rlxvk_requantize *r)
{
    const struct {
        const char *name;
        int32_t value;
    } points[] = {{"x_zero_point", r->x_zero_point},
                  {"w_zero_point", r->w_zero_point},
                  {"out_zero_point", r->out_zero_point}};
    for (size_t i = 0; i < ARRAY_COUNT(points); i++)
        if (!integer_is_zero_point(points[i].value))
            return op_fail(n, RLXVK_E_ATTR, "%s is %d outside -128..127", points[i].name,
                           points[i].value);
    if (!isfinite(r->multiplier) || !(r->multiplier > 0))
        return op_fail(n, RLXVK_E_ATTR, "multiplier is %g; it must be finite and above 0",
                       (double)r->multiplier);
    return RLXVK_OK;
}

rlxvk_status integer_check_bias(const rlxvk_graph *g, const node *n, int64_t outputs)
{
    char buffer[SHAPE_TEXT];
    if (n->input_count < 3)
        return RLXVK_OK;
    const rlxvk_shape *bias = input_shape(g, n, 2);
    if (input_dtype(g, n, 2) != RLXVK_I32)
        return op_fail(n, RLXVK_E_DTYPE, "the bias is %s; takes I32, insert a cast",
                       rlxvk_dtype_name(input_dtype(g, n, 2)));
    if (bias->rank != 1 || bias->dims[0] != outputs)
        return op_fail(n, RLXVK_E_SHAPE, "bias %s; takes [%lld]", shape_text(bias, buffer),
                       (long long)outputs);
    return RLXVK_OK;
}

rlxvk_status integer_check_operands(const rlxvk_graph *g, const node *n, const rlxvk_requantize *r)
{
    rlxvk_status status;
    TRY(integer_check_operand(g, n, 0));
    TRY(integer_check_operand(g, n, 1));
    TRY(check_requantize(n, r));
error:
    return status;
}

/* ---- Gradient ---- */

rlxvk_tensor integer_centered(rlxvk_graph *g, uint32_t operand, int32_t zero_point)
{
    static const float one = 1;
    const rlxvk_quantize_options options = {.scales = &one, .zero_points = &zero_point, .count = 1};
    return rlxvk_dequantize(g, tensor_of(g, operand), &options);
}

/* ---- Host ---- */

double integer_host_requantize(const rlxvk_requantize *r, int64_t sum)
{
    double scaled = (double)(float)sum * r->multiplier;
    return integer_host_saturate((float)scaled, r->out_zero_point);
}

int64_t integer_host_bias(const host_call *c, uint64_t output)
{
    if (c->node->input_count < 3 || isnan(c->inputs[2].words[output]))
        return 0;
    return (int64_t)fmin(fmax(trunc(c->inputs[2].words[output]), INT32_MIN), INT32_MAX);
}

int64_t integer_host_product(const host_call *c, const rlxvk_requantize *r, uint64_t x, uint64_t w)
{
    return (int64_t)(integer_host_read(&c->inputs[0], x) - r->x_zero_point) *
           (integer_host_read(&c->inputs[1], w) - r->w_zero_point);
}

void integer_describe(const rlxvk_requantize *r, text *out)
{
    text_append(out, " zero_points=%d,%d,%d multiplier=%g", r->x_zero_point, r->w_zero_point,
                r->out_zero_point, (double)r->multiplier);
}

/* ---- Lower ---- */

void integer_operands(const lowering *l, uint32_t id, operand out[4])
{
    uint32_t bias = graph_node(l->graph, id)->input_count > 2 ? 2 : 0;
    for (uint32_t i = 0; i < 2; i++)
        out[i] = lower_input(l, id, i);
    out[2] = lower_input(l, id, bias);
    out[3] = lower_write(l, id);
}

rlxvk_status integer_emit(lowering *l, dispatch *d, const void *args, size_t size, operand o[4],
                          const struct integer_sum_args *sum)
{
    rlxvk_status status;
    bool split = sum->splits > 1, has_bias = graph_node(l->graph, d->node)->input_count > 2;
    operand y = o[3];
    uint64_t bytes = (uint64_t)sum->splits * sum->count * 4;
    if (split && bytes > UINT32_MAX)
        return op_fail(graph_node(l->graph, d->node), RLXVK_E_TOO_LARGE,
                       "%u partial sums of %u elements need %llu bytes; split the operands",
                       sum->splits, sum->count, (unsigned long long)bytes);
    if (split)
        TRY(lower_temporary(l, bytes, &o[3]));
    TRY(lower_emit(l, d, args, size, o, 4));
    if (split) {
        dispatch finish = {.kernel = KERNEL_INTEGER_SUM, .node = d->node};
        operand operands[] = {o[3], o[2], y};
        operands[0].access = ACCESS_READ;
        SET_CONSTANTS(&finish, {LOCAL_SIZE, l->profile->workgroup_size},
                      {INTEGER_SUM_HAS_BIAS, has_bias});
        lower_groups(l, &finish, groups_for(sum->count, finish.constants[LOCAL_SIZE]));
        TRY(lower_emit(l, &finish, sum, sizeof *sum, operands, ARRAY_COUNT(operands)));
    }
error:
    return status;
}
