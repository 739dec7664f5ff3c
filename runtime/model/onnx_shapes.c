/* Lowerings of ops that compute shapes, and of those that only change a shape. Shapes stay on the
 * host, and so do results of known operands. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

/* ---- Values ---- */

/* A constant is an initializer without a name. */
static void give_constant(call *c, const onnx_tensor *t)
{
    onnx_value v = {.type = t->type, .initializer = t, .input = UINT32_MAX};
    call_give_value(c, 0, &v);
}

static void give_numbers(call *c, const int64_t *integers, const float *reals, size_t count,
                         bool scalar)
{
    rlxvk_shape shape = scalar ? RLXVK_SCALAR : RLXVK_SHAPE((int64_t)count);
    host_array *h = call_make_host(c, integers ? ONNX_INT64 : ONNX_FLOAT, shape);
    for (size_t i = 0; h && i < count; i++)
        if (integers)
            h->integers[i] = integers[i];
        else
            h->reals[i] = reals[i];
    call_give_host(c, 0, h);
}

void onnx_constant(call *c)
{
    for (size_t i = 0; i < c->node->attribute_count; i++) {
        const onnx_attribute *a = call_attribute(c, c->node->attributes[i].name, ONNX_UNDEFINED);
        if (!a)
            continue;
        if (a->type == ONNX_ATTRIBUTE_TENSOR)
            give_constant(c, a->tensor);
        else if (a->type == ONNX_ATTRIBUTE_INTS)
            give_numbers(c, a->integers, NULL, a->count, false);
        else if (a->type == ONNX_ATTRIBUTE_FLOATS)
            give_numbers(c, NULL, a->reals, a->count, false);
        else if (a->type == ONNX_ATTRIBUTE_INT)
            give_numbers(c, &a->integer, NULL, 1, true);
        else if (a->type == ONNX_ATTRIBUTE_FLOAT)
            give_numbers(c, NULL, &a->real, 1, true);
        else
            call_refuse(c, a->name, "only numbers and dense tensors are supported");
    }
}

void onnx_shape(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t start = call_integer(c, "start", 0), end = call_integer(c, "end", s.rank);
    start = MAX(0, MIN(start < 0 ? start + s.rank : start, s.rank));
    end = MAX(start, MIN(end < 0 ? end + s.rank : end, s.rank));
    call_give_host(c, 0, host_row(c, s.dims + start, (uint32_t)(end - start)));
}

void onnx_size(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t size = call_product(c, s, 0, s.rank);
    host_array *h = host_row(c, &size, 1);
    call_give_host(c, 0, host_reshape(c, h, RLXVK_SCALAR));
}

/* A longer result is made on the device. */
enum { LONG = 4096 };

static bool is_long(rlxvk_shape s)
{
    uint64_t count;
    return rlxvk_shape_elements(s, &count) != RLXVK_OK || count > LONG;
}

void onnx_constant_of_shape(call *c)
{
    const onnx_attribute *value = call_attribute(c, "value", ONNX_ATTRIBUTE_TENSOR);
    rlxvk_shape shape = host_to_shape(c, call_host_integers(c, 0, "the shape of the result"));
    host_array *filler = NULL, *h;
    onnx_value v = {.type = ONNX_FLOAT, .input = UINT32_MAX};
    rlxvk_tensor one;
    if (value) {
        const host_array *given = NULL;
        rlxvk_status status;
        v.type = value->tensor->type;
        v.initializer = value->tensor;
        status = import_host(c->import, &v, &given);
        if (status != RLXVK_OK)
            call_fail(c, "value", status);
        else if (given->numel != 1)
            call_refuse(c, "value", "it has %llu elements instead of 1",
                        (unsigned long long)given->numel);
        else
            filler = host_reshape(c, given, RLXVK_SCALAR);
    } else
        filler = call_make_host(c, ONNX_FLOAT, RLXVK_SCALAR);
    if (c->failed || !filler)
        return;
    h = is_long(shape) ? NULL : host_expand(c, filler, shape);
    if (h) {
        call_give_host(c, 0, h);
        return;
    }
    v = (onnx_value){.type = filler->type, .host = filler, .input = UINT32_MAX};
    if (import_tensor(c->import, &v, &one) == RLXVK_OK)
        call_give_as(c, 0, rlxvk_expand(c->graph, one, shape), filler->type);
}

static double first_of(const host_array *h)
{
    return h->integers ? (double)h->integers[0] : h->reals[0];
}

/* Whether all numbers of a range are exact in F32. */
static bool is_exact(const host_array *start, const host_array *limit, const host_array *delta)
{
    return fabs(first_of(start)) <= 1 << 24 && fabs(first_of(limit)) <= 1 << 24 &&
           fabs(first_of(delta)) <= 1 << 24;
}

/* A range up to a named dim. False: it is none. */
static bool is_symbolic_range(call *c, const host_array *start, const host_array *limit,
                              const host_array *delta)
{
    if (!start->integers ||
        !(onnx_is_code(start, start->integers[0]) || onnx_is_code(limit, limit->integers[0])))
        return false;
    if (start->integers[0] != 0 || delta->integers[0] != 1)
        call_refuse(c, NULL,
                    "a range up to a named dim must begin at 0 and go in steps of 1; give "
                    "the dim a size (--bind NAME=SIZE)");
    else
        call_give(c, 0, rlxvk_arange(c->graph, 0, 1, limit->integers[0]));
    return true;
}

/* Long ranges are made on the device, if their numbers are exact there. */
static void give_range(call *c, const host_array *start, const host_array *limit,
                       const host_array *delta)
{
    double first = first_of(start), step = first_of(delta);
    double count = fmax(ceil((first_of(limit) - first) / step), 0);
    host_array *h;
    if (!(count <= INT32_MAX)) {
        call_refuse(c, NULL, "the range is too long");
        return;
    }
    if (count > LONG && (start->reals || is_exact(start, limit, delta))) {
        call_give(c, 0, rlxvk_arange(c->graph, (float)first, (float)step, (int64_t)count));
        return;
    }
    h = call_make_host(c, start->type, RLXVK_SHAPE((int64_t)count));
    for (uint64_t i = 0; h && i < h->numel; i++)
        if (h->reals)
            h->reals[i] = onnx_round_to(start->type, first + (double)i * step);
        else
            h->integers[i] = start->integers[0] + (int64_t)i * delta->integers[0];
    call_give_host(c, 0, h);
}

void onnx_range(call *c)
{
    const host_array *start = call_host(c, 0, "the length"), *limit = call_host(c, 1, "the length");
    const host_array *delta = call_host(c, 2, "the length");
    if (c->failed || !start || !limit || !delta)
        return;
    if (start->numel != 1 || limit->numel != 1 || delta->numel != 1 || start->type != limit->type ||
        start->type != delta->type)
        call_refuse(c, NULL, "its operands must be single numbers of one type");
    else if (!is_symbolic_range(c, start, limit, delta))
        give_range(c, start, limit, delta);
}

/* ---- Shapes ---- */

/* Replaces a -1 by what the other dims leave. False: the sizes are no numbers. */
static bool complete_shape(rlxvk_shape *shape, uint64_t numel)
{
    uint64_t known = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < -1 ||
            (shape->dims[i] >= 0 && !size_multiply(known, (uint64_t)shape->dims[i], &known)))
            return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] == -1)
            shape->dims[i] = known ? (int64_t)(numel / known) : 0;
    return true;
}

/* Gives operand 0 in another shape; one dim may be -1. */
static void give_reshaped(call *c, rlxvk_shape shape)
{
    const host_array *x = call_known(c, 0);
    rlxvk_shape whole = shape;
    if (c->failed)
        return;
    if (x && complete_shape(&whole, x->numel))
        call_give_host(c, 0, host_reshape(c, x, whole));
    else
        call_give(c, 0, rlxvk_reshape(c->graph, call_tensor(c, 0), shape));
}

void onnx_reshape(call *c)
{
    bool zero_is_zero = call_flag(c, "allowzero", false);
    rlxvk_shape from = call_shape(c, 0), shape = RLXVK_SCALAR;
    size_t count;
    if (c->opset < 5) {
        const int64_t *sizes = call_integers(c, "shape", &count);
        shape.rank = (uint32_t)MIN(count, RLXVK_MAX_RANK);
        for (uint32_t i = 0; i < shape.rank; i++)
            shape.dims[i] = sizes[i];
    } else
        shape = host_to_shape(c, call_host_integers(c, 1, "the shape of the result"));
    for (uint32_t i = 0; i < shape.rank && !zero_is_zero; i++)
        if (i < from.rank && shape.dims[i] == 0)
            shape.dims[i] = from.dims[i];
    give_reshaped(c, shape);
}

void onnx_flatten(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t axis = call_integer(c, "axis", 1);
    if (axis != s.rank)
        axis = call_axis(c, "axis", axis, s.rank);
    give_reshaped(c, RLXVK_SHAPE(call_product(c, s, 0, (uint32_t)axis),
                                 call_product(c, s, (uint32_t)axis, s.rank)));
}

void onnx_squeeze(call *c)
{
    rlxvk_shape s = call_shape(c, 0), out = RLXVK_SCALAR;
    call_axes axes = call_read_axes(c, 13, 1, s.rank);
    for (uint32_t i = 0; i < s.rank; i++) {
        bool drop = !axes.given && s.dims[i] == 1;
        for (uint32_t k = 0; k < axes.count; k++)
            drop = drop || axes.items[k] == (int32_t)i;
        if (drop && s.dims[i] != 1 && s.dims[i] >= 0)
            call_refuse(c, "axes", "axis %u has %lld elements instead of 1", i,
                        (long long)s.dims[i]);
        if (!drop)
            out.dims[out.rank++] = s.dims[i];
    }
    give_reshaped(c, out);
}

void onnx_unsqueeze(call *c)
{
    rlxvk_shape s = call_shape(c, 0), out = RLXVK_SCALAR;
    size_t count = 0;
    call_axes axes;
    uint32_t taken = 0;
    if (c->opset >= 13) {
        const host_array *h = call_host_integers(c, 1, "the axes");
        count = h ? (size_t)h->numel : 0;
    } else
        (void)call_integers(c, "axes", &count);
    if (c->failed)
        return;
    if (s.rank + count > RLXVK_MAX_RANK) {
        call_refuse(c, "axes", "the result has more than %d axes", RLXVK_MAX_RANK);
        return;
    }
    out.rank = s.rank + (uint32_t)count;
    axes = call_read_axes(c, 13, 1, out.rank);
    for (uint32_t i = 0; i < out.rank; i++) {
        bool added = false;
        for (uint32_t k = 0; k < axes.count; k++)
            added = added || axes.items[k] == (int32_t)i;
        out.dims[i] = added || taken >= s.rank ? 1 : s.dims[taken++];
    }
    give_reshaped(c, out);
}

void onnx_expand(call *c)
{
    rlxvk_shape from = call_shape(c, 0);
    rlxvk_shape to = host_to_shape(c, call_host_integers(c, 1, "the shape of the result"));
    uint32_t rank = MAX(from.rank, to.rank);
    rlxvk_shape shape = {.rank = rank};
    const host_array *x = is_long(to) ? NULL : call_known(c, 0);
    if (c->failed)
        return;
    if (x) {
        call_give_host(c, 0, host_expand(c, x, to));
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t a = i + from.rank >= rank ? from.dims[i + from.rank - rank] : 1;
        int64_t b = i + to.rank >= rank ? to.dims[i + to.rank - rank] : 1;
        shape.dims[i] = b == 1 ? a : b;
    }
    call_give(c, 0, rlxvk_expand(c->graph, call_tensor(c, 0), shape));
}

/* ---- Places of elements ---- */

void onnx_transpose(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t strides[RLXVK_MAX_RANK], moved[RLXVK_MAX_RANK];
    int32_t perm[RLXVK_MAX_RANK];
    rlxvk_shape out = {.rank = s.rank};
    size_t count;
    const int64_t *given = call_integers(c, "perm", &count);
    const host_array *x = call_known(c, 0);
    if (given && count != s.rank) {
        call_refuse(c, "perm", "it has %zu axes, the operand %u", count, s.rank);
        return;
    }
    for (uint32_t i = 0; i < s.rank; i++)
        perm[i] = given ? call_axis(c, "perm", given[i], s.rank) : (int32_t)(s.rank - 1 - i);
    if (c->failed)
        return;
    if (!x) {
        call_give(c, 0, rlxvk_transpose(c->graph, call_tensor(c, 0), perm, s.rank));
        return;
    }
    host_strides(s, strides);
    for (uint32_t i = 0; i < s.rank; i++) {
        out.dims[i] = s.dims[perm[i]];
        moved[i] = strides[perm[i]];
    }
    call_give_host(c, 0, host_view(c, x, out, 0, moved));
}

void onnx_concat(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", c->opset < 4 ? 1 : 0), s.rank);
    rlxvk_tensor *parts = arena_allocate(c->a, c->input_count * sizeof *parts);
    const host_array **arrays = arena_allocate(c->a, c->input_count * sizeof *arrays);
    bool host = call_is_host(c);
    if (!parts || !arrays) {
        import_end(c->import, status_fail_memory("concat"));
        return;
    }
    for (size_t i = 0; i < c->input_count && !c->failed; i++) {
        rlxvk_shape part = call_shape(c, i);
        if (!call_has(c, i))
            call_refuse(c, NULL, "operand %zu is missing", i);
        else if (part.rank != s.rank)
            call_refuse(c, NULL, "operand %zu has %u axes, the first %u", i, part.rank, s.rank);
        if (c->failed)
            return;
        if (host)
            arrays[i] = call_host(c, i, "the result");
        else
            parts[i] = call_tensor(c, i);
    }
    if (c->failed)
        return;
    if (host)
        call_give_host(c, 0, host_concat(c, arrays, c->input_count, (uint32_t)axis));
    else
        call_give(c, 0, rlxvk_concat(c->graph, parts, c->input_count, axis));
}

/* Gives part [start, start + length) of an axis as result i. */
static void give_part(call *c, size_t i, int32_t axis, int64_t start, int64_t length)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t strides[RLXVK_MAX_RANK];
    const host_array *x = call_known(c, 0);
    if (!x) {
        call_give(c, i, rlxvk_narrow(c->graph, call_tensor(c, 0), axis, start, length));
        return;
    }
    host_strides(s, strides);
    s.dims[axis] = length;
    call_give_host(c, i, host_view(c, x, s, start * strides[axis], strides));
}

/* The length of part i of `count` parts of an axis: all alike, the last one perhaps shorter. */
static int64_t even_part(int64_t size, size_t count, size_t i)
{
    int64_t part = (size + (int64_t)count - 1) / (int64_t)count;
    return MIN(part, MAX(size - part * (int64_t)i, 0));
}

void onnx_split(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", 0), s.rank);
    size_t count = 0, parts = c->output_count;
    const int64_t *sizes = c->opset < 13 ? call_integers(c, "split", &count) : NULL;
    int64_t start = 0;
    const host_array *h =
        c->opset >= 13 ? call_host_integers(c, 1, "the sizes of the parts") : NULL;
    if (h) {
        sizes = h->integers;
        count = (size_t)h->numel;
    }
    if (c->opset >= 18)
        parts = (size_t)MAX(call_integer(c, "num_outputs", (int64_t)parts), 1);
    if (c->failed || (!sizes && !call_is_fixed(c, RLXVK_SHAPE(s.dims[axis]))))
        return;
    if (sizes ? count != c->output_count : parts != c->output_count) {
        call_refuse(c, "split", "it has another number of parts than the node has results");
        return;
    }
    for (size_t i = 0; i < c->output_count; i++) {
        int64_t length = sizes ? sizes[i] : even_part(s.dims[axis], parts, i);
        give_part(c, i, axis, start, length);
        start += length;
    }
}

/* ---- Slices ---- */

typedef struct slices {
    int64_t starts[RLXVK_MAX_RANK], stops[RLXVK_MAX_RANK], steps[RLXVK_MAX_RANK];
} slices;

/* Starts, ends, axes and steps: attributes until opset 9, then operands. */
static bool read_slices(call *c, uint32_t rank, slices *out)
{
    size_t counts[4] = {0};
    const int64_t *lists[4] = {NULL};
    static const char *const names[] = {"starts", "ends", "axes"};
    for (int k = 0; k < 4; k++) {
        const host_array *h;
        if (c->opset < 10) {
            lists[k] = k < 3 ? call_integers(c, names[k], &counts[k]) : NULL;
            continue;
        }
        h = call_host_integers(c, (size_t)k + 1, "what is taken");
        if (h) {
            lists[k] = h->integers;
            counts[k] = (size_t)h->numel;
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        out->starts[i] = 0;
        out->stops[i] = RLXVK_SLICE_LAST;
        out->steps[i] = 1;
    }
    if (c->failed || !lists[0] || !lists[1] || counts[0] != counts[1] || counts[0] > rank ||
        (lists[2] && counts[2] != counts[0]) || (lists[3] && counts[3] != counts[0])) {
        if (!c->failed)
            call_refuse(c, NULL, "starts, ends, axes and steps do not have the same length");
        return false;
    }
    for (size_t i = 0; i < counts[0]; i++) {
        int32_t axis = call_axis(c, "axes", lists[2] ? lists[2][i] : (int64_t)i, rank);
        out->starts[axis] = lists[0][i];
        out->stops[axis] = lists[1][i];
        out->steps[axis] = lists[3] ? lists[3][i] : 1;
        if (out->steps[axis] == 0)
            call_refuse(c, NULL, "a step is 0");
    }
    return !c->failed;
}

/* The place of an end in an axis, as numpy counts. */
static int64_t clamp_end(int64_t end, int64_t size, int64_t step)
{
    end = end < 0 && end >= -size ? end + size : end < 0 ? -1 : end;
    return step > 0 ? MAX(0, MIN(end, size)) : MAX(-1, MIN(end, size - 1));
}

static void slice_host(call *c, const host_array *x, const slices *s)
{
    int64_t strides[RLXVK_MAX_RANK], offset = 0;
    rlxvk_shape shape = x->shape;
    host_strides(shape, strides);
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t size = shape.dims[i], step = s->steps[i];
        int64_t start = clamp_end(s->starts[i], size, step),
                stop = clamp_end(s->stops[i], size, step);
        int64_t length = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
        shape.dims[i] = length > 0 ? 1 + (length - 1) / stride : 0;
        offset += start * strides[i];
        strides[i] *= step;
    }
    call_give_host(c, 0, host_view(c, x, shape, offset, strides));
}

/* A slice whose ends are codes of dims: from 0 or a number to the end, or up to a dim. */
static bool slice_symbolic(call *c, rlxvk_shape shape, const slices *s)
{
    rlxvk_tensor x = call_tensor(c, 0);
    bool symbolic = false;
    for (uint32_t i = 0; i < shape.rank; i++)
        symbolic = symbolic || (s->stops[i] <= rlxvk_symbol(0) && s->stops[i] > INT64_MIN / 4) ||
                   (s->starts[i] <= rlxvk_symbol(0) && s->starts[i] > INT64_MIN / 4);
    if (!symbolic)
        return false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t stop = s->stops[i] >= INT32_MAX ? shape.dims[i] : s->stops[i];
        if (s->starts[i] == 0 && stop == shape.dims[i] && s->steps[i] == 1)
            continue;
        if (s->steps[i] != 1) {
            call_refuse(c, NULL,
                        "steps with ends that depend on named dims are not supported; give "
                        "the dims sizes (--bind NAME=SIZE)");
            return true;
        }
        x = rlxvk_narrow(c->graph, x, (int32_t)i, s->starts[i],
                         rlxvk_dim_sub(c->graph, stop, s->starts[i]));
    }
    call_give(c, 0, x);
    return true;
}

void onnx_slice(call *c)
{
    rlxvk_shape shape = call_shape(c, 0);
    const host_array *x = call_known(c, 0);
    slices s;
    if (!read_slices(c, shape.rank, &s))
        return;
    if (x) {
        slice_host(c, x, &s);
        return;
    }
    if (slice_symbolic(c, shape, &s))
        return;
    for (uint32_t i = 0; i < shape.rank; i++) {
        /* An end below the axis goes before its first element, which rlxvk_slice calls _FIRST. */
        if (s.steps[i] < 0 && shape.dims[i] >= 0 && s.stops[i] < -shape.dims[i])
            s.stops[i] = RLXVK_SLICE_FIRST;
        if (s.steps[i] < 0 && s.stops[i] == RLXVK_SLICE_LAST)
            s.stops[i] = shape.dims[i];
        if (s.starts[i] == RLXVK_SLICE_FIRST)
            s.starts[i] = -INT32_MAX;
        if (s.starts[i] == RLXVK_SLICE_LAST)
            s.starts[i] = INT32_MAX;
    }
    call_give(c, 0,
              rlxvk_slice(c->graph, call_tensor(c, 0), s.starts, s.stops, s.steps, shape.rank));
}
