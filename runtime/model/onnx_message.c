/* See onnx_message.h. */
#include "model/onnx_message.h"

#include <string.h>

rlxvk_status onnx_read_string(arena *a, const wire_field *f, const uint8_t *file, const char **out)
{
    char *copy;
    size_t at = f->bytes.bytes && file ? (size_t)(f->bytes.bytes - file) : 0;
    if (f->kind != WIRE_BYTES)
        return status_fail(RLXVK_E_FILE, "field %u is no text: the file is damaged", f->number);
    if (f->bytes.size && memchr(f->bytes.bytes, 0, f->bytes.size))
        return status_fail(RLXVK_E_FILE, "byte %zu: a text has a 0 inside: the file is damaged",
                           at);
    *out = "";
    if (f->bytes.size == 0)
        return RLXVK_OK;
    copy = arena_allocate(a, f->bytes.size + 1);
    if (!copy)
        return status_fail_memory("model");
    memcpy(copy, f->bytes.bytes, f->bytes.size);
    *out = copy;
    return RLXVK_OK;
}

const char *onnx_domain(const char *name)
{
    return strcmp(name, "ai.onnx") == 0 ? "" : name;
}

/* ---- Tensors ---- */

static rlxvk_status add_dims(const wire_field *f, const uint8_t *file, onnx_tensor *out)
{
    uint64_t count, dims[RLXVK_MAX_RANK];
    rlxvk_status status;
    TRY(wire_count_numbers(f, WIRE_VARINT, file, &count));
    if (count + out->rank > RLXVK_MAX_RANK)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "a tensor has more than %d axes; rlxvk takes no more", RLXVK_MAX_RANK);
    TRY(wire_read_numbers(f, WIRE_VARINT, file, dims));
    for (uint64_t i = 0; i < count; i++)
        out->dims[out->rank++] = (int64_t)dims[i];
error:
    return status;
}

static bool parse_number(const char *string, uint64_t *out)
{
    *out = 0;
    for (const char *c = string; *c; c++)
        if (*c < '0' || *c > '9' || !size_multiply(*out, 10, out) ||
            !size_add(*out, (uint64_t)(*c - '0'), out))
            return false;
    return *string != 0;
}

/* An entry of external_data: key and value. */
static rlxvk_status read_entry(arena *a, wire_span span, const uint8_t *file, onnx_tensor *out)
{
    wire_cursor c = wire_begin(span, file);
    const char *key = "", *value = "";
    wire_field f;
    rlxvk_status status;
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1)
            TRY(onnx_read_string(a, &f, file, &key));
        if (f.number == 2)
            TRY(onnx_read_string(a, &f, file, &value));
    } while (f.number);
    if (strcmp(key, "location") == 0)
        out->location = value;
    out->has_length = out->has_length || strcmp(key, "length") == 0;
    if ((strcmp(key, "offset") == 0 && !parse_number(value, &out->offset)) ||
        (strcmp(key, "length") == 0 && !parse_number(value, &out->length)))
        return status_fail(RLXVK_E_FILE, "external data: the %s '%.40s' is no number", key, value);
error:
    return status;
}

static rlxvk_status count_elements(onnx_tensor *t)
{
    t->numel = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || !size_multiply(t->numel, (uint64_t)t->dims[i], &t->numel))
            return status_fail(RLXVK_E_FILE,
                               "tensor '%.80s': dim %u is %lld, which is negative or too large",
                               t->name, i, (long long)t->dims[i]);
    return RLXVK_OK;
}

/* Compares the number of elements with the bytes that are there. */
static rlxvk_status check_size(const onnx_tensor *t)
{
    uint64_t bits = onnx_type_bits(t->type), size;
    if (t->location || !t->has_raw || bits == 0)
        return RLXVK_OK;
    if (!size_multiply(t->numel, bits, &size) || divide_up(size, 8) != t->raw.size)
        return status_fail(RLXVK_E_FILE,
                           "tensor '%.80s' has %zu bytes for %llu elements of type %s", t->name,
                           t->raw.size, (unsigned long long)t->numel, onnx_type_name(t->type));
    return RLXVK_OK;
}

rlxvk_status onnx_read_tensor(arena *a, wire_span span, const uint8_t *file, onnx_tensor *out)
{
    wire_cursor c = wire_begin(span, file);
    wire_field f;
    bool external = false;
    rlxvk_status status;
    *out = (onnx_tensor){.name = "", .whole = span};
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1)
            TRY(add_dims(&f, file, out));
        else if (f.number == 2)
            out->type = (int32_t)f.value;
        else if (f.number == 8)
            TRY(onnx_read_string(a, &f, file, &out->name));
        else if (f.number == 9 && f.kind == WIRE_BYTES)
            out->raw = f.bytes, out->has_raw = true;
        else if (f.number == 13 && f.kind == WIRE_BYTES)
            TRY(read_entry(a, f.bytes, file, out));
        else if (f.number == 14)
            external = f.value == 1;
    } while (f.number);
    if (external && !out->location)
        return status_fail(RLXVK_E_FILE, "tensor '%.80s' is external, but names no file",
                           out->name);
    if (!external)
        out->location = NULL;
    TRY(count_elements(out));
    TRY(check_size(out));
error:
    return status;
}

/* ---- Types of inputs and outputs ---- */

static rlxvk_status read_dim(arena *a, wire_span span, const uint8_t *file, onnx_dim *out)
{
    wire_cursor c = wire_begin(span, file);
    wire_field f;
    rlxvk_status status;
    *out = (onnx_dim){.size = -1};
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1)
            out->size = (int64_t)f.value < 0 ? -1 : (int64_t)f.value;
        if (f.number == 2)
            TRY(onnx_read_string(a, &f, file, &out->name));
    } while (f.number);
    if (out->name && *out->name == 0)
        out->name = NULL;
error:
    return status;
}

static rlxvk_status read_shape(arena *a, wire_span span, const uint8_t *file, onnx_value_info *out)
{
    wire_cursor c = wire_begin(span, file);
    wire_field f;
    rlxvk_status status;
    out->has_shape = true;
    do {
        TRY(wire_next(&c, &f));
        if (f.number != 1 || f.kind != WIRE_BYTES)
            continue;
        if (out->rank < RLXVK_MAX_RANK)
            TRY(read_dim(a, f.bytes, file, &out->dims[out->rank]));
        out->rank++;
    } while (f.number);
error:
    return status;
}

static rlxvk_status read_tensor_type(arena *a, wire_span span, const uint8_t *file,
                                     onnx_value_info *out)
{
    wire_cursor c = wire_begin(span, file);
    wire_field f;
    rlxvk_status status;
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1)
            out->type = (int32_t)f.value;
        if (f.number == 2 && f.kind == WIRE_BYTES)
            TRY(read_shape(a, f.bytes, file, out));
    } while (f.number);
error:
    return status;
}

static rlxvk_status read_type(arena *a, wire_span span, const uint8_t *file, onnx_value_info *out)
{
    wire_cursor c = wire_begin(span, file);
    wire_field f;
    rlxvk_status status;
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1 && f.kind == WIRE_BYTES) {
            out->kind = ONNX_TENSOR;
            TRY(read_tensor_type(a, f.bytes, file, out));
        }
        if (f.number == 4 || f.number == 8)
            out->kind = ONNX_SEQUENCE;
        if (f.number == 5)
            out->kind = ONNX_MAP;
        if (f.number == 9)
            out->kind = ONNX_OPTIONAL;
    } while (f.number);
error:
    return status;
}

rlxvk_status onnx_read_value_info(arena *a, wire_span span, const uint8_t *file,
                                  onnx_value_info *out)
{
    wire_cursor c = wire_begin(span, file);
    wire_field f;
    rlxvk_status status;
    *out = (onnx_value_info){.name = ""};
    do {
        TRY(wire_next(&c, &f));
        if (f.number == 1)
            TRY(onnx_read_string(a, &f, file, &out->name));
        if (f.number == 2 && f.kind == WIRE_BYTES)
            TRY(read_type(a, f.bytes, file, out));
    } while (f.number);
error:
    return status;
}
