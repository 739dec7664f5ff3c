/*
 * Lowerings of ops on sequences and optionals. A sequence is a list of values while the graph is
 * built; the graph has no trace of it.
 */
#include "model/host.h"
#include "model/onnx_inner.h"
#include "model/onnx_ops.h"

#include <string.h>

/* ---- Lists ---- */

/* Operand i, which must be a sequence; NULL after a problem. */
static const onnx_sequence *sequence_of(call *c, size_t i)
{
    const onnx_value *v = call_has(c, i) ? c->inputs[i] : NULL;
    if (v && !v->sequence && !c->failed)
        call_refuse(c, NULL, "operand %zu is no sequence", i);
    return c->failed || !v ? NULL : v->sequence;
}

static onnx_sequence *make_sequence(call *c, size_t count)
{
    onnx_sequence *s = arena_allocate(c->a, sizeof *s);
    if (s) {
        s->items = arena_allocate(c->a, MAX(count, 1) * sizeof *s->items);
        s->count = count;
    }
    if (!s || !s->items) {
        import_end(c->import, status_fail_memory("sequence of a model"));
        return NULL;
    }
    return s;
}

static void give_sequence(call *c, size_t i, const onnx_sequence *s, int32_t type)
{
    onnx_value v = {.type = type, .sequence = s, .input = UINT32_MAX};
    if (s && s->count)
        v.type = s->items[0]->type;
    if (s)
        call_give_value(c, i, &v);
}

static void give_integer(call *c, size_t i, int64_t value, int32_t type)
{
    host_array *h = call_make_host(c, type, RLXVK_SCALAR);
    if (h)
        h->integers[0] = value;
    call_give_host(c, i, h);
}

/* The place that operand i names, from 0 to `end`; without the operand, `otherwise`. */
static size_t place(call *c, size_t i, size_t count, size_t end, size_t otherwise)
{
    int64_t at = call_host_integer(c, i, "an element of a sequence", (int64_t)otherwise);
    at += at < 0 ? (int64_t)count : 0;
    if (!c->failed && (at < 0 || at > (int64_t)end))
        call_refuse(c, NULL, "element %lld is outside of a sequence of %zu", (long long)at, count);
    return c->failed ? 0 : (size_t)at;
}

void onnx_sequence_empty(call *c)
{
    give_sequence(c, 0, make_sequence(c, 0), (int32_t)call_integer(c, "dtype", ONNX_FLOAT));
}

void onnx_sequence_construct(call *c)
{
    onnx_sequence *s = make_sequence(c, c->input_count);
    for (size_t i = 0; s && i < c->input_count; i++) {
        s->items[i] = c->inputs[i];
        if (!c->inputs[i])
            call_refuse(c, NULL, "operand %zu is missing", i);
    }
    give_sequence(c, 0, s, ONNX_FLOAT);
}

void onnx_sequence_length(call *c)
{
    const onnx_sequence *s = sequence_of(c, 0);
    if (s)
        give_integer(c, 0, (int64_t)s->count, ONNX_INT64);
}

void onnx_sequence_at(call *c)
{
    const onnx_sequence *s = sequence_of(c, 0);
    size_t at;
    if (!s)
        return;
    if (s->count == 0) {
        call_refuse(c, NULL, "the sequence has no elements");
        return;
    }
    at = place(c, 1, s->count, s->count - 1, 0);
    if (!c->failed)
        call_give_value(c, 0, s->items[at]);
}

void onnx_sequence_insert(call *c)
{
    const onnx_sequence *s = sequence_of(c, 0);
    size_t at = s ? place(c, 2, s->count, s->count, s->count) : 0;
    onnx_sequence *out = s && !c->failed ? make_sequence(c, s->count + 1) : NULL;
    if (!out)
        return;
    for (size_t i = 0; i < out->count; i++)
        out->items[i] = i == at ? c->inputs[1] : s->items[i > at ? i - 1 : i];
    give_sequence(c, 0, out, ONNX_FLOAT);
}

void onnx_sequence_erase(call *c)
{
    const onnx_sequence *s = sequence_of(c, 0);
    onnx_sequence *out;
    size_t at;
    if (s && s->count == 0)
        call_refuse(c, NULL, "the sequence has no elements");
    if (!s || c->failed)
        return;
    at = place(c, 1, s->count, s->count - 1, s->count - 1);
    out = c->failed ? NULL : make_sequence(c, s->count - 1);
    for (size_t i = 0; out && i < out->count; i++)
        out->items[i] = s->items[i >= at ? i + 1 : i];
    give_sequence(c, 0, out, call_type(c, 0));
}

/* ---- Splitting and joining ---- */

typedef struct split {
    int32_t axis;
    int64_t length; /* of the axis */
    int64_t block;  /* of parts of one length; 0: `sizes` has those of all parts */
    const host_array *sizes;
    bool drop_axis; /* parts of one element, without the axis */
} split;

static size_t count_parts(call *c, const split *s)
{
    int64_t total = 0;
    if (!s->sizes)
        return (size_t)divide_up((uint64_t)s->length, (uint64_t)s->block);
    for (uint64_t i = 0; i < s->sizes->numel; i++)
        total += MAX(s->sizes->integers[i], 0);
    if (total != s->length)
        call_refuse(c, NULL, "the parts do not fill the axis of %lld elements",
                    (long long)s->length);
    return (size_t)s->sizes->numel;
}

static onnx_value *make_part(call *c, const split *s, int64_t start, int64_t length)
{
    rlxvk_tensor t = rlxvk_narrow(c->graph, call_tensor(c, 0), s->axis, start, length);
    rlxvk_shape shape = call_tensor_shape(c, t);
    onnx_value *v = import_make_value(c->import);
    if (!v || c->failed)
        return NULL;
    if (s->drop_axis) {
        shape.rank--;
        memmove(shape.dims + s->axis, shape.dims + s->axis + 1,
                (shape.rank - (uint32_t)s->axis) * sizeof *shape.dims);
        t = rlxvk_reshape(c->graph, t, shape);
    }
    v->type = call_type(c, 0);
    v->tensor = t;
    v->has_tensor = true;
    return v;
}

/* Without sizes, parts have one element. A scalar is the size of all parts but the last. */
void onnx_split_to_sequence(call *c)
{
    rlxvk_shape shape = call_shape(c, 0);
    split s = {.axis = call_axis(c, "axis", call_integer(c, "axis", 0), shape.rank), .block = 1};
    bool keep = call_flag(c, "keepdims", true);
    int64_t start = 0;
    size_t count;
    onnx_sequence *out;
    s.sizes = call_host_integers(c, 1, "the sizes of the parts");
    if (c->failed || !call_is_fixed(c, shape))
        return;
    s.length = shape.dims[s.axis];
    s.drop_axis = !keep && !s.sizes;
    if (s.sizes && s.sizes->shape.rank == 0) {
        s.block = s.sizes->integers[0];
        s.sizes = NULL;
        if (s.block < 1) {
            call_refuse(c, NULL, "parts of %lld elements are not allowed", (long long)s.block);
            return;
        }
    }
    count = count_parts(c, &s);
    out = c->failed ? NULL : make_sequence(c, count);
    for (size_t i = 0; out && i < count; i++) {
        int64_t size = s.sizes ? s.sizes->integers[i] : MIN(s.block, s.length - start);
        out->items[i] = make_part(c, &s, start, size);
        if (!out->items[i])
            return;
        start += size;
    }
    give_sequence(c, 0, out, call_type(c, 0));
}

void onnx_concat_from_sequence(call *c)
{
    const onnx_sequence *s = sequence_of(c, 0);
    int64_t axis = call_integer(c, "axis", 0);
    bool new_axis = call_flag(c, "new_axis", false);
    rlxvk_tensor *parts;
    int32_t at = 0;
    if (!s || s->count == 0) {
        if (!c->failed)
            call_refuse(c, NULL, "the sequence has no elements");
        return;
    }
    parts = arena_allocate(c->a, s->count * sizeof *parts);
    if (!parts)
        import_end(c->import, status_fail_memory("sequence of a model"));
    for (size_t i = 0; parts && i < s->count && !c->failed; i++) {
        onnx_value v = *s->items[i];
        rlxvk_shape shape;
        parts[i] = call_tensor_of(c, &v);
        shape = call_tensor_shape(c, parts[i]);
        at = call_axis(c, "axis", axis, shape.rank + new_axis);
        if (!new_axis || c->failed || shape.rank == RLXVK_MAX_RANK)
            continue;
        memmove(shape.dims + at + 1, shape.dims + at,
                (shape.rank - (uint32_t)at) * sizeof *shape.dims);
        shape.dims[at] = 1;
        shape.rank++;
        parts[i] = rlxvk_reshape(c->graph, parts[i], shape);
    }
    if (parts && !c->failed)
        call_give_as(c, 0, rlxvk_concat(c->graph, parts, s->count, at), s->items[0]->type);
}

/* ---- Maps ---- */

/* The body runs on element i of each operand that is a sequence; the others stay. */
void onnx_sequence_map(call *c)
{
    const onnx_graph *body = onnx_inner_graph(c, "body");
    const onnx_sequence *first = sequence_of(c, 0);
    onnx_value **values = onnx_inner_values(c, c->input_count);
    onnx_sequence **out = arena_allocate(c->a, MAX(c->output_count, 1) * sizeof *out);
    if (!body || !first || !values || !out)
        return;
    if (body->input_count != c->input_count || body->output_count != c->output_count) {
        call_refuse(c, "body", "it does not have the inputs and outputs that the node needs");
        return;
    }
    for (size_t i = 0; i < c->output_count; i++)
        if (!(out[i] = make_sequence(c, first->count)))
            return;
    for (size_t at = 0; at < first->count; at++) {
        onnx_value **results;
        for (size_t i = 0; i < c->input_count && !c->failed; i++) {
            const onnx_sequence *s = c->inputs[i] ? c->inputs[i]->sequence : NULL;
            values[i] = c->inputs[i];
            if (s && at >= s->count)
                call_refuse(c, NULL, "its sequences have different lengths");
            else if (s)
                values[i] = (onnx_value *)s->items[at];
        }
        results = c->failed ? NULL : onnx_inner_run(c, body, NULL, values);
        for (size_t i = 0; results && i < c->output_count; i++)
            out[i]->items[at] = results[i];
        if (!results)
            return;
    }
    for (size_t i = 0; i < c->output_count; i++)
        give_sequence(c, i, out[i], ONNX_FLOAT);
}

/* ---- Optionals ---- */

void onnx_optional(call *c)
{
    onnx_value empty = {.is_empty = true, .type = ONNX_FLOAT, .input = UINT32_MAX};
    call_ignore(c, "type");
    call_give_value(c, 0, call_has(c, 0) ? c->inputs[0] : &empty);
}

void onnx_optional_has_element(call *c)
{
    give_integer(c, 0, call_has(c, 0) && !c->inputs[0]->is_empty, ONNX_BOOL);
}

void onnx_optional_get_element(call *c)
{
    if (c->inputs[0]->is_empty)
        call_refuse(c, NULL, "the optional is empty");
    call_give_value(c, 0, c->inputs[0]);
}
