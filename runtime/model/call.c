/* See call.h. */
#include "model/call.h"

#include <stdio.h>
#include <string.h>

enum { KNOWN_LIMIT = 1 << 16, FOLD_LIMIT = 16 };

/* ---- Problems ---- */

static void add_problem(call *c, rlxvk_status status, const char *attribute, const char *text)
{
    char op[160];
    snprintf(op, sizeof op, "%.70s%s%.70s", c->node->domain, *c->node->domain ? ":" : "",
             c->node->op);
    if (!c->failed)
        import_add_problem(c->import, status, c->text, op, attribute, text);
    c->failed = true;
}

void call_refuse(call *c, const char *attribute, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    text_format(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    add_problem(c, RLXVK_E_UNSUPPORTED, attribute, sentence);
}

void call_fail(call *c, const char *attribute, rlxvk_status status)
{
    add_problem(c, status, attribute, rlxvk_last_error());
}

/* ---- Operands ---- */

bool call_has(const call *c, size_t i)
{
    return i < c->input_count && c->inputs[i];
}

int32_t call_type(const call *c, size_t i)
{
    return call_has(c, i) ? c->inputs[i]->type : ONNX_UNDEFINED;
}

rlxvk_tensor call_tensor_of(call *c, onnx_value *v)
{
    rlxvk_tensor t = RLXVK_NONE;
    rlxvk_status status;
    if (c->failed)
        return t;
    status = import_tensor(c->import, v, &t);
    if (status != RLXVK_OK)
        call_fail(c, NULL, status);
    return t;
}

rlxvk_tensor call_tensor(call *c, size_t i)
{
    return call_has(c, i) ? call_tensor_of(c, c->inputs[i]) : RLXVK_NONE;
}

rlxvk_shape call_tensor_shape(call *c, rlxvk_tensor t)
{
    return rlxvk_tensor_shape(c->graph, t);
}

rlxvk_shape call_shape(call *c, size_t i)
{
    rlxvk_shape s = RLXVK_SCALAR;
    const onnx_value *v = call_has(c, i) ? c->inputs[i] : NULL;
    if (!v)
        return s;
    if (v->has_tensor)
        return call_tensor_shape(c, v->tensor);
    if (v->host)
        return v->host->shape;
    if (v->initializer) {
        s.rank = v->initializer->rank;
        memcpy(s.dims, v->initializer->dims, sizeof s.dims);
    }
    return s;
}

bool call_is_fixed(call *c, rlxvk_shape shape)
{
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) {
            char buffer[128] = "";
            (void)!rlxvk_shape_text(c->graph, shape, buffer, sizeof buffer);
            call_refuse(c, NULL,
                        "an operand has the shape %s, but must have numbers; give its "
                        "named dims sizes (--bind NAME=SIZE)",
                        buffer);
            return false;
        }
    return true;
}

static bool is_known(const onnx_value *v)
{
    return v->host || (v->initializer && v->initializer->numel <= KNOWN_LIMIT &&
                       (onnx_is_integer(v->type) || v->type == ONNX_BOOL ||
                        (onnx_is_real(v->type) && v->initializer->numel <= FOLD_LIMIT)));
}

bool call_is_known(const call *c, size_t i)
{
    return call_has(c, i) && (c->inputs[i]->host || c->inputs[i]->initializer);
}

bool call_is_host(const call *c)
{
    for (size_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] && !is_known(c->inputs[i]))
            return false;
    return true;
}

/* Names the inputs from which an operand is computed, and asks for their values if these are
 * numbers or rows, as sizes are. */
static bool ask_for_inputs(call *c, uint64_t depends, text *out)
{
    const onnx_graph *g = &c->import->model->graph;
    bool asked = depends != 0;
    for (uint32_t i = 0; i < g->input_count && i < 64; i++)
        if (depends >> i & 1)
            asked = asked && g->inputs[i].rank <= 1;
    for (uint32_t i = 0; asked && i < g->input_count && i < 64; i++) {
        if (!(depends >> i & 1))
            continue;
        c->import->needs_value[i] = true;
        text_append(out, "%s--bind '%.80s'=VALUE,...", out->length ? " " : "", g->inputs[i].name);
    }
    return asked;
}

bool call_need_inputs(call *c, const onnx_value *v, const char *what)
{
    char buffer[320] = "";
    text names = {buffer, sizeof buffer, 0};
    bool asked = ask_for_inputs(c, v->depends, &names);
    if (asked)
        call_refuse(c, NULL,
                    "an operand decides %s, so the values of the inputs from which it is "
                    "computed must be known before the graph is built: %s",
                    what, buffer);
    return asked;
}

void call_need(call *c, const onnx_value *v, const char *what)
{
    if (!call_need_inputs(c, v, what))
        call_refuse(c, NULL,
                    "an operand decides %s, but is computed from the data of a run; a "
                    "graph has sizes that do not depend on data",
                    what);
}

const host_array *call_host(call *c, size_t i, const char *what)
{
    const host_array *h = NULL;
    rlxvk_status status;
    if (c->failed || !call_has(c, i))
        return NULL;
    if (!call_is_known(c, i)) {
        call_need(c, c->inputs[i], what);
        return NULL;
    }
    status = import_host(c->import, c->inputs[i], &h);
    if (status != RLXVK_OK)
        call_fail(c, NULL, status);
    return h;
}

const host_array *call_known(call *c, size_t i)
{
    const onnx_value *v = call_has(c, i) ? c->inputs[i] : NULL;
    if (!v || c->failed)
        return NULL;
    return v->host || (is_known(v) && !onnx_is_real(v->type)) ? call_host(c, i, "the result")
                                                              : NULL;
}

const host_array *call_host_integers(call *c, size_t i, const char *what)
{
    const host_array *h = call_host(c, i, what);
    if (!h || h->integers)
        return h;
    call_refuse(c, NULL, "operand %zu, which decides %s, has the type %s instead of integers", i,
                what, onnx_type_name(h->type));
    return NULL;
}

static const host_array *single(call *c, size_t i, const char *what)
{
    const host_array *h = call_host(c, i, what);
    if (h && h->numel != 1)
        call_refuse(c, NULL, "operand %zu, which decides %s, has %llu elements instead of 1", i,
                    what, (unsigned long long)h->numel);
    return h && h->numel == 1 ? h : NULL;
}

int64_t call_host_integer(call *c, size_t i, const char *what, int64_t otherwise)
{
    const host_array *h = single(c, i, what);
    return !h ? otherwise : h->integers ? h->integers[0] : (int64_t)h->reals[0];
}

double call_host_real(call *c, size_t i, const char *what, double otherwise)
{
    const host_array *h = single(c, i, what);
    return !h ? otherwise : h->integers ? (double)h->integers[0] : h->reals[0];
}

/* ---- Attributes ---- */

/* An attribute of a function's node may stand for one of the node that calls the function, or for
 * its default. */
static const onnx_attribute *dereference(call *c, const onnx_attribute *given)
{
    const onnx_function *f = c->import->function;
    const call *caller = c->import->caller;
    if (!given->reference || !*given->reference || !f || !caller)
        return given;
    for (size_t i = 0; i < caller->node->attribute_count; i++)
        if (strcmp(caller->node->attributes[i].name, given->reference) == 0)
            return &caller->node->attributes[i];
    for (size_t i = 0; i < f->default_count; i++)
        if (strcmp(f->defaults[i].name, given->reference) == 0)
            return &f->defaults[i];
    return NULL;
}

const onnx_attribute *call_attribute(call *c, const char *name, int32_t type)
{
    for (size_t i = 0; i < c->node->attribute_count; i++) {
        const onnx_attribute *a = &c->node->attributes[i];
        if (strcmp(a->name, name) != 0)
            continue;
        c->used |= i < CALL_ATTRIBUTES ? UINT64_C(1) << i : 0;
        a = dereference(c, a);
        if (!a || type == ONNX_UNDEFINED || a->type == type)
            return a;
        call_refuse(c, name, "the attribute is of another type than the op's definition says");
        return NULL;
    }
    return NULL;
}

int64_t call_integer(call *c, const char *name, int64_t otherwise)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_INT);
    return a ? a->integer : otherwise;
}

bool call_flag(call *c, const char *name, bool otherwise)
{
    return call_integer(c, name, otherwise) != 0;
}

float call_real(call *c, const char *name, float otherwise)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_FLOAT);
    return a ? a->real : otherwise;
}

const char *call_string(call *c, const char *name, const char *otherwise)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_STRING);
    return a ? a->string : otherwise;
}

const int64_t *call_integers(call *c, const char *name, size_t *out_count)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_INTS);
    *out_count = a ? a->count : 0;
    return a ? a->integers : NULL;
}

const float *call_reals(call *c, const char *name, size_t *out_count)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_FLOATS);
    *out_count = a ? a->count : 0;
    return a ? a->reals : NULL;
}

int call_word(call *c, const char *name, const char *const *words, int otherwise)
{
    const char *given = call_string(c, name, NULL);
    if (!given)
        return otherwise;
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], given) == 0)
            return i;
    call_refuse(c, name, "'%.60s' is not supported", given);
    return otherwise;
}

void call_ignore(call *c, const char *name)
{
    (void)call_attribute(c, name, ONNX_UNDEFINED);
}

int32_t call_axis(call *c, const char *name, int64_t axis, uint32_t rank)
{
    int64_t from_front = axis < 0 ? axis + rank : axis;
    if (from_front >= 0 && from_front < rank)
        return (int32_t)from_front;
    if (!c->failed)
        call_refuse(c, name, "axis %lld is outside of the rank %u", (long long)axis, rank);
    return 0;
}

static void add_axes(call *c, call_axes *axes, const int64_t *items, uint64_t count, uint32_t rank)
{
    axes->given = true;
    for (uint64_t i = 0; i < count; i++) {
        int32_t axis = call_axis(c, "axes", items[i], rank);
        for (uint32_t k = 0; k < axes->count; k++)
            if (axes->items[k] == axis) {
                call_refuse(c, "axes", "axis %d is given twice", axis);
                return;
            }
        axes->items[axes->count++] = axis;
    }
}

call_axes call_read_axes(call *c, int64_t since, size_t i, uint32_t rank)
{
    call_axes axes = {.count = 0};
    size_t count = 0;
    const int64_t *items = c->opset < since ? call_integers(c, "axes", &count) : NULL;
    if (items)
        add_axes(c, &axes, items, count, rank);
    if (c->opset >= since && call_has(c, i)) {
        const host_array *h = call_host_integers(c, i, "the axes");
        if (h)
            add_axes(c, &axes, h->integers, h->numel, rank);
    }
    return axes;
}

/* ---- Results ---- */

bool call_wants(const call *c, size_t i)
{
    return i < c->output_count && c->outputs[i];
}

rlxvk_tensor call_cast(call *c, rlxvk_tensor t, int32_t type)
{
    rlxvk_dtype dtype;
    if (!onnx_value_dtype(type, &dtype)) {
        call_refuse(c, NULL, "there are no tensors of type %s", onnx_type_name(type));
        return t;
    }
    return c->failed || rlxvk_tensor_dtype(c->graph, t) == dtype ? t
                                                                 : rlxvk_cast(c->graph, t, dtype);
}

void call_give_as(call *c, size_t i, rlxvk_tensor tensor, int32_t type)
{
    if (c->failed || !call_wants(c, i))
        return;
    tensor = call_cast(c, tensor, type);
    *c->outputs[i] =
        (onnx_value){.type = type, .has_tensor = true, .tensor = tensor, .input = UINT32_MAX};
}

void call_give(call *c, size_t i, rlxvk_tensor tensor)
{
    call_give_as(c, i, tensor, call_type(c, 0));
}

void call_give_host(call *c, size_t i, const host_array *h)
{
    if (!c->failed && h && call_wants(c, i))
        *c->outputs[i] = (onnx_value){.type = h->type, .host = h, .input = UINT32_MAX};
}

void call_give_value(call *c, size_t i, const onnx_value *value)
{
    if (!c->failed && value && call_wants(c, i))
        *c->outputs[i] = *value;
}

host_array *call_make_host(call *c, int32_t type, rlxvk_shape shape)
{
    host_array *h;
    onnx_import *import = c->import;
    uint64_t count;
    if (c->failed)
        return NULL;
    if (rlxvk_shape_elements(shape, &count) != RLXVK_OK ||
        count > import->host_limit - import->host_elements) {
        call_refuse(c, NULL,
                    "its result, or all such results together, are too large to be "
                    "computed before the run");
        return NULL;
    }
    import->host_elements += count;
    h = onnx_make_host(c->a, type, shape);
    if (!h)
        call_fail(c, NULL, status_fail_memory("values of a model"));
    return h;
}

rlxvk_tensor call_apply(call *c, void lowering(call *), int64_t opset, const rlxvk_tensor *operands,
                        size_t count, int32_t type)
{
    call inner = *c;
    onnx_value result = {0}, *out = &result;
    inner.inputs = arena_allocate(c->a, MAX(count, 1) * sizeof *inner.inputs);
    inner.outputs = &out;
    inner.input_count = count;
    inner.output_count = 1;
    inner.opset = opset;
    for (size_t i = 0; inner.inputs && i < count; i++) {
        if (!operands[i].graph)
            continue; /* left out */
        inner.inputs[i] = import_make_value(c->import);
        if (!inner.inputs[i])
            return RLXVK_NONE;
        inner.inputs[i]->type = type;
        inner.inputs[i]->tensor = operands[i];
        inner.inputs[i]->has_tensor = true;
    }
    if (!inner.inputs)
        import_end(c->import, status_fail_memory("node of a model"));
    if (!inner.inputs || c->failed)
        return RLXVK_NONE;
    lowering(&inner);
    c->used = inner.used;
    c->failed = inner.failed;
    return call_tensor_of(c, out);
}

/* ---- Short forms ---- */

rlxvk_tensor call_scalar(call *c, double value)
{
    return rlxvk_scalar(c->graph, (float)value);
}

rlxvk_tensor call_wrap(call *c, rlxvk_tensor t, int32_t type)
{
    uint32_t bits = onnx_type_bits(type);
    rlxvk_tensor turn, half;
    if (!onnx_is_integer(type) || bits > 16)
        return t;
    turn = call_scalar(c, 1 << bits);
    half = call_scalar(c, 1 << (bits - 1));
    if (!onnx_is_signed(type))
        return call_cast(c, rlxvk_mod(c->graph, t, turn), type);
    t = rlxvk_mod(c->graph, rlxvk_add(c->graph, t, half), turn);
    return call_cast(c, rlxvk_sub(c->graph, t, half), type);
}

/* What the remainder leaves is a multiple, so a division that is off is rounded right. */
rlxvk_tensor call_divide_whole(call *c, rlxvk_tensor t, int64_t by, rlxvk_tensor *out_rest)
{
    rlxvk_tensor divisor = call_scalar(c, (double)by);
    t = call_cast(c, t, ONNX_FLOAT);
    *out_rest = rlxvk_fmod(c->graph, t, divisor);
    return rlxvk_round(c->graph, rlxvk_div(c->graph, rlxvk_sub(c->graph, t, *out_rest), divisor));
}

int64_t call_product(call *c, rlxvk_shape shape, uint32_t from, uint32_t to)
{
    int64_t product = 1;
    for (uint32_t i = from; i < to; i++)
        product = rlxvk_dim_multiply(c->graph, product, shape.dims[i]);
    return product;
}
