/*
 * See onnx.h: messages of the format to structs. Each message is read twice: first its repeated
 * fields are counted, then arrays of that length are filled.
 */
#include "model/onnx_message.h"

#include <string.h>

typedef struct reader {
    arena *a;
    const uint8_t *file;
    uint32_t depth; /* of graphs */
} reader;

static rlxvk_status read_graph(reader *r, wire_span span, onnx_graph *out);

#define COUNTED 64
typedef struct field_counts {
    size_t of[COUNTED];
} field_counts;

static rlxvk_status count_fields(const reader *r, wire_span span, field_counts *out)
{
    wire_cursor c = wire_begin(span, r->file);
    wire_field f;
    rlxvk_status status;
    *out = (field_counts){0};
    do {
        TRY(wire_next(&c, &f));
        if (f.number < COUNTED)
            out->of[f.number]++;
    } while (f.number);
error:
    return status;
}

static rlxvk_status make_array(reader *r, size_t count, size_t size, void *out)
{
    uint64_t bytes;
    void *made = size_multiply(count, size, &bytes) ? arena_allocate(r->a, (size_t)bytes) : NULL;
    if (!made)
        return status_fail_memory("model");
    memcpy(out, &made, sizeof made);
    return RLXVK_OK;
}

static rlxvk_status read_string(reader *r, const wire_field *f, const char **out)
{
    return onnx_read_string(r->a, f, r->file, out);
}

static rlxvk_status wrong_kind(const reader *r, const wire_field *f, const char *message)
{
    (void)r;
    return status_fail(RLXVK_E_FILE, "field %u of a %s has the wrong kind: the file is damaged",
                       f->number, message);
}

#define EXPECT_BYTES(message)                                                                      \
    if (f.kind != WIRE_BYTES)                                                                      \
    return wrong_kind(r, &f, message)

/* ---- Attributes ---- */

/* All numbers of field `number` of a message. */
static rlxvk_status read_numbers(reader *r, wire_span span, uint32_t number, wire_kind kind,
                                 uint64_t **out, size_t *out_count)
{
    uint64_t total = 0, count;
    rlxvk_status status = RLXVK_OK;
    *out = NULL;
    for (int pass = 0; pass < 2; pass++) {
        wire_cursor c = wire_begin(span, r->file);
        wire_field f;
        if (pass)
            TRY(make_array(r, (size_t)total, sizeof **out, out));
        total = 0;
        do {
            TRY(wire_next(&c, &f));
            if (f.number != number)
                continue;
            TRY(wire_count_numbers(&f, kind, r->file, &count));
            if (pass)
                TRY(wire_read_numbers(&f, kind, r->file, *out + total));
            total += count;
        } while (f.number);
    }
    *out_count = (size_t)total;
error:
    return status;
}

static rlxvk_status read_reals(reader *r, wire_span span, onnx_attribute *out)
{
    uint64_t *bits;
    float *reals = NULL;
    rlxvk_status status;
    TRY(read_numbers(r, span, 7, WIRE_FIXED32, &bits, &out->count));
    TRY(make_array(r, out->count, sizeof *reals, &reals));
    for (size_t i = 0; i < out->count; i++)
        reals[i] = wire_float(bits[i]);
    out->reals = reals;
error:
    return status;
}

static rlxvk_status read_strings(reader *r, wire_span span, uint32_t number,
                                 const char *const **out, size_t *out_count)
{
    const char **strings = NULL;
    field_counts counts;
    wire_cursor c = wire_begin(span, r->file);
    wire_field f;
    rlxvk_status status;
    TRY(count_fields(r, span, &counts));
    *out_count = 0;
    TRY(make_array(r, counts.of[number], sizeof *strings, &strings));
    do {
        TRY(wire_next(&c, &f));
        if (f.number == number)
            TRY(read_string(r, &f, &strings[(*out_count)++]));
    } while (f.number);
    *out = strings;
error:
    return status;
}

static rlxvk_status read_part(reader *r, const wire_field *f, onnx_attribute *out)
{
    onnx_tensor *tensor = NULL;
    rlxvk_status status = RLXVK_OK;
    switch (f->number) {
    case 1:
        return read_string(r, f, &out->name);
    case 2:
        out->real = wire_float(f->value);
        break;
    case 3:
        out->integer = (int64_t)f->value;
        break;
    case 4:
        return read_string(r, f, &out->string);
    case 5:
        TRY(make_array(r, 1, sizeof *tensor, &tensor));
        out->tensor = tensor;
        return onnx_read_tensor(r->a, f->bytes, r->file, tensor);
    case 6:
        TRY(make_array(r, 1, sizeof *out->graph, &out->graph));
        return read_graph(r, f->bytes, out->graph);
    case 20:
        out->type = (int32_t)f->value;
        break;
    case 21:
        return read_string(r, f, &out->reference);
    default:
        break;
    }
error:
    return status;
}

/* Files of early versions have no types of attributes. */
static int32_t guess_type(const field_counts *counts)
{
    static const struct {
        uint8_t field, type;
    } fields[] = {{2, ONNX_ATTRIBUTE_FLOAT},   {3, ONNX_ATTRIBUTE_INT},
                  {4, ONNX_ATTRIBUTE_STRING},  {5, ONNX_ATTRIBUTE_TENSOR},
                  {6, ONNX_ATTRIBUTE_GRAPH},   {7, ONNX_ATTRIBUTE_FLOATS},
                  {8, ONNX_ATTRIBUTE_INTS},    {9, ONNX_ATTRIBUTE_STRINGS},
                  {10, ONNX_ATTRIBUTE_TENSORS}};
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (counts->of[fields[i].field])
            return fields[i].type;
    return ONNX_UNDEFINED;
}

static rlxvk_status read_attribute(reader *r, wire_span span, onnx_attribute *out)
{
    wire_cursor c = wire_begin(span, r->file);
    field_counts counts;
    wire_field f;
    uint64_t *integers;
    rlxvk_status status;
    *out = (onnx_attribute){.name = "", .string = ""};
    TRY(count_fields(r, span, &counts));
    out->type = guess_type(&counts);
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 5 || f.number == 6)
            EXPECT_BYTES("AttributeProto");
        TRY(read_part(r, &f, out));
    } while (f.number);
    if (out->type == ONNX_ATTRIBUTE_FLOATS)
        TRY(read_reals(r, span, out));
    if (out->type == ONNX_ATTRIBUTE_STRINGS)
        TRY(read_strings(r, span, 9, &out->strings, &out->count));
    if (out->type == ONNX_ATTRIBUTE_INTS) {
        TRY(read_numbers(r, span, 8, WIRE_VARINT, &integers, &out->count));
        out->integers = (const int64_t *)integers;
    }
    if (out->type == ONNX_ATTRIBUTE_TENSOR && !out->tensor)
        return status_fail(RLXVK_E_FILE, "attribute '%.80s' has no tensor", out->name);
    if (out->type == ONNX_ATTRIBUTE_GRAPH && !out->graph)
        return status_fail(RLXVK_E_FILE, "attribute '%.80s' has no graph", out->name);
error:
    return status;
}

/* ---- Nodes ---- */

static rlxvk_status read_node_part(reader *r, const wire_field *f, onnx_node *out,
                                   onnx_attribute *attributes)
{
    rlxvk_status status = RLXVK_OK;
    switch (f->number) {
    case 3:
        return read_string(r, f, &out->name);
    case 4:
        return read_string(r, f, &out->op);
    case 5:
        if (f->kind != WIRE_BYTES)
            return wrong_kind(r, f, "NodeProto");
        return read_attribute(r, f->bytes, &attributes[out->attribute_count++]);
    case 7:
        TRY(read_string(r, f, &out->domain));
        out->domain = onnx_domain(out->domain);
        break;
    default:
        break;
    }
error:
    return status;
}

static rlxvk_status read_node(reader *r, wire_span span, onnx_node *out)
{
    wire_cursor c = wire_begin(span, r->file);
    onnx_attribute *attributes = NULL;
    field_counts counts;
    wire_field f;
    rlxvk_status status;
    *out = (onnx_node){.name = "", .op = "", .domain = ""};
    TRY(count_fields(r, span, &counts));
    TRY(make_array(r, counts.of[5], sizeof *attributes, &attributes));
    out->attributes = attributes;
    do {
        TRY(wire_next(&c, &f));
        TRY(read_node_part(r, &f, out, attributes));
    } while (f.number);
    TRY(read_strings(r, span, 1, &out->inputs, &out->input_count));
    TRY(read_strings(r, span, 2, &out->outputs, &out->output_count));
error:
    return status;
}

/* ---- Graphs ---- */

static rlxvk_status read_graph_part(reader *r, const wire_field *f, onnx_graph *out)
{
    if (f->number != 2 && f->kind != WIRE_BYTES &&
        (f->number == 1 || f->number == 5 || f->number == 11 || f->number == 12))
        return wrong_kind(r, f, "GraphProto");
    switch (f->number) {
    case 1:
        return read_node(r, f->bytes, &out->nodes[out->node_count++]);
    case 2:
        return read_string(r, f, &out->name);
    case 5:
        return onnx_read_tensor(r->a, f->bytes, r->file,
                                &out->initializers[out->initializer_count++]);
    case 11:
        return onnx_read_value_info(r->a, f->bytes, r->file, &out->inputs[out->input_count++]);
    case 12:
        return onnx_read_value_info(r->a, f->bytes, r->file, &out->outputs[out->output_count++]);
    case 15:
        out->sparse_count++;
        return RLXVK_OK;
    default:
        return RLXVK_OK;
    }
}

static rlxvk_status read_graph(reader *r, wire_span span, onnx_graph *out)
{
    wire_cursor c = wire_begin(span, r->file);
    field_counts counts;
    wire_field f;
    rlxvk_status status;
    *out = (onnx_graph){.name = ""};
    if (r->depth >= ONNX_NESTING_LIMIT)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "graphs inside graphs are nested more than %d deep; export the model "
                           "with fewer nested branches and loops",
                           ONNX_NESTING_LIMIT);
    r->depth++;
    TRY(count_fields(r, span, &counts));
    TRY(make_array(r, counts.of[1], sizeof *out->nodes, &out->nodes));
    TRY(make_array(r, counts.of[5], sizeof *out->initializers, &out->initializers));
    TRY(make_array(r, counts.of[11], sizeof *out->inputs, &out->inputs));
    TRY(make_array(r, counts.of[12], sizeof *out->outputs, &out->outputs));
    do {
        TRY(wire_next(&c, &f));
        TRY(read_graph_part(r, &f, out));
    } while (f.number);
    r->depth--;
error:
    return status;
}

/* ---- Opsets and functions ---- */

static rlxvk_status read_opset(reader *r, wire_span span, onnx_opset *out)
{
    wire_cursor c = wire_begin(span, r->file);
    wire_field f;
    rlxvk_status status;
    *out = (onnx_opset){.domain = ""};
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1)
            TRY(read_string(r, &f, &out->domain));
        if (f.number == 2)
            out->version = (int64_t)f.value;
    } while (f.number);
    out->domain = onnx_domain(out->domain);
error:
    return status;
}

static rlxvk_status read_opsets(reader *r, wire_span span, uint32_t number, const onnx_opset **out,
                                size_t *out_count)
{
    wire_cursor c = wire_begin(span, r->file);
    field_counts counts;
    onnx_opset *opsets = NULL;
    wire_field f;
    rlxvk_status status;
    TRY(count_fields(r, span, &counts));
    TRY(make_array(r, counts.of[number], sizeof *opsets, &opsets));
    *out = opsets;
    *out_count = 0;
    do {
        TRY(wire_next(&c, &f));
        if (f.number != number)
            continue;
        EXPECT_BYTES("list of opsets");
        TRY(read_opset(r, f.bytes, &opsets[(*out_count)++]));
    } while (f.number);
error:
    return status;
}

static rlxvk_status read_function_part(reader *r, const wire_field *f, onnx_function *out,
                                       onnx_attribute *defaults)
{
    if (f->kind != WIRE_BYTES && (f->number == 7 || f->number == 11))
        return wrong_kind(r, f, "FunctionProto");
    switch (f->number) {
    case 1:
        return read_string(r, f, &out->name);
    case 7:
        return read_node(r, f->bytes, &out->body.nodes[out->body.node_count++]);
    case 10:
        return read_string(r, f, &out->domain);
    case 11:
        return read_attribute(r, f->bytes, &defaults[out->default_count++]);
    case 13:
        return read_string(r, f, &out->overload);
    default:
        return RLXVK_OK;
    }
}

static rlxvk_status read_function(reader *r, wire_span span, onnx_function *out)
{
    wire_cursor c = wire_begin(span, r->file);
    onnx_attribute *defaults = NULL;
    field_counts counts;
    wire_field f;
    rlxvk_status status;
    *out = (onnx_function){.name = "", .domain = "", .overload = "", .body = {.name = ""}};
    TRY(count_fields(r, span, &counts));
    TRY(make_array(r, counts.of[7], sizeof *out->body.nodes, &out->body.nodes));
    TRY(make_array(r, counts.of[11], sizeof *defaults, &defaults));
    out->defaults = defaults;
    do {
        TRY(wire_next(&c, &f));
        TRY(read_function_part(r, &f, out, defaults));
    } while (f.number);
    out->domain = onnx_domain(out->domain);
    out->body.name = out->name;
    TRY(read_strings(r, span, 4, &out->inputs, &out->input_count));
    TRY(read_strings(r, span, 5, &out->outputs, &out->output_count));
    TRY(read_strings(r, span, 6, &out->attributes, &out->attribute_count));
    TRY(read_opsets(r, span, 9, &out->opsets, &out->opset_count));
error:
    return status;
}

/* ---- The model ---- */

static rlxvk_status read_model_part(reader *r, const wire_field *f, onnx_model *out)
{
    if (f->kind != WIRE_BYTES && (f->number == 7 || f->number == 25))
        return wrong_kind(r, f, "ModelProto");
    switch (f->number) {
    case 1:
        out->ir_version = (int64_t)f->value;
        return RLXVK_OK;
    case 2:
        return read_string(r, f, &out->producer);
    case 7:
        return read_graph(r, f->bytes, &out->graph);
    case 25:
        return read_function(r, f->bytes, &out->functions[out->function_count++]);
    default:
        return RLXVK_OK;
    }
}

rlxvk_status onnx_read(wire_span bytes, arena *a, onnx_model *out)
{
    reader reading = {.a = a, .file = bytes.bytes}, *r = &reading;
    wire_cursor c = wire_begin(bytes, bytes.bytes);
    field_counts counts;
    wire_field f;
    rlxvk_status status;
    *out = (onnx_model){.file = bytes.bytes, .producer = "", .graph = {.name = ""}};
    TRY(count_fields(r, bytes, &counts));
    if (counts.of[7] != 1 || counts.of[1] == 0)
        return status_fail(RLXVK_E_FILE,
                           "the file has %zu graphs and %s version: it is no ONNX model, which has "
                           "one of each",
                           counts.of[7], counts.of[1] ? "a" : "no");
    TRY(make_array(r, counts.of[25], sizeof *out->functions, &out->functions));
    do {
        TRY(wire_next(&c, &f));
        TRY(read_model_part(r, &f, out));
    } while (f.number);
    TRY(read_opsets(r, bytes, 8, &out->opsets, &out->opset_count));
error:
    return status;
}
