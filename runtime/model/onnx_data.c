/* See onnx_data.h. */
#include "base/input.h"
#include "model/onnx_data.h"

#include <string.h>

/* ---- Elements in files ---- */

/* The file has so many bytes there, or it was cut off since. */
static rlxvk_status read_part(const input_file *file, uint64_t offset, uint64_t size,
                              onnx_data *out)
{
    out->owned = memory_allocate((size_t)MAX(size, 1));
    if (!out->owned)
        return status_fail_memory("weights of a model");
    out->bytes = (wire_span){out->owned, (size_t)size};
    return input_read(file, offset, size, out->owned);
}

static rlxvk_status read_external(const onnx_tensor *t, const char *folder, uint64_t size,
                                  onnx_data *out)
{
    input_file *file = NULL;
    rlxvk_status status;
    if (!folder)
        return status_fail(RLXVK_E_FILE,
                           "tensor '%.80s' is in the file '%.80s', but the model came as bytes; "
                           "name its folder in rlxvk_model_options",
                           t->name, t->location);
    TRY(input_open_beside(folder, t->location, &file));
    if (t->has_length && t->length != size)
        TRY(status_fail(RLXVK_E_FILE, "tensor '%.80s' needs %llu bytes, but names %llu of '%.80s'",
                        t->name, (unsigned long long)size, (unsigned long long)t->length,
                        t->location));
    if (t->offset > file->length || size > file->length - t->offset)
        TRY(status_fail(RLXVK_E_FILE,
                        "tensor '%.80s' needs %llu bytes from byte %llu of '%.80s' on, which has "
                        "%llu bytes",
                        t->name, (unsigned long long)size, (unsigned long long)t->offset,
                        t->location, (unsigned long long)file->length));
    TRY(read_part(file, t->offset, size, out));
error:
    input_close(file);
    return status;
}

/* ---- Typed fields ---- */

/* The field of a type, the kind of its numbers, and how many bytes of a number count. */
typedef struct typed_field {
    uint32_t number;
    wire_kind kind;
    uint32_t bytes;
    uint32_t parts; /* numbers of an element */
} typed_field;

static typed_field field_of(int32_t type)
{
    switch (type) {
    case ONNX_FLOAT:
        return (typed_field){4, WIRE_FIXED32, 4, 1};
    case ONNX_COMPLEX64:
        return (typed_field){4, WIRE_FIXED32, 4, 2};
    case ONNX_DOUBLE:
        return (typed_field){10, WIRE_FIXED64, 8, 1};
    case ONNX_COMPLEX128:
        return (typed_field){10, WIRE_FIXED64, 8, 2};
    case ONNX_INT64:
        return (typed_field){7, WIRE_VARINT, 8, 1};
    case ONNX_UINT64:
        return (typed_field){11, WIRE_VARINT, 8, 1};
    case ONNX_UINT32:
        return (typed_field){11, WIRE_VARINT, 4, 1};
    default: /* packed elements below 8 bits have a byte in each number */
        return (typed_field){5, WIRE_VARINT, MAX(onnx_type_bits(type) / 8, 1), 1};
    }
}

/* The numbers of the field, as bytes; `out` NULL: only counts them. */
static rlxvk_status read_typed(const onnx_tensor *t, const uint8_t *file, typed_field how,
                               uint8_t *out, uint64_t *out_count)
{
    wire_cursor c = wire_begin(t->whole, file);
    uint64_t count, *numbers = NULL;
    wire_field f;
    rlxvk_status status;
    *out_count = 0;
    do {
        TRY(wire_next(&c, &f));
        if (f.number != how.number)
            continue;
        TRY(wire_count_numbers(&f, how.kind, file, &count));
        *out_count += count;
        if (!out)
            continue;
        numbers = memory_zeroed((size_t)MAX(count, 1), sizeof *numbers);
        if (!numbers)
            TRY(status_fail_memory("tensor of a model"));
        TRY(wire_read_numbers(&f, how.kind, file, numbers));
        for (uint64_t i = 0; i < count; i++, out += how.bytes)
            memcpy(out, &numbers[i], how.bytes);
        memory_free(numbers);
        numbers = NULL;
    } while (f.number);
error:
    memory_free(numbers);
    return status;
}

static rlxvk_status read_fields(const onnx_tensor *t, const uint8_t *file, uint64_t size,
                                onnx_data *out)
{
    typed_field how = field_of(t->type);
    uint64_t count;
    rlxvk_status status;
    TRY(read_typed(t, file, how, NULL, &count));
    if (count != size / how.bytes)
        return status_fail(RLXVK_E_FILE,
                           "tensor '%.80s' has %llu numbers for %llu elements of type %s", t->name,
                           (unsigned long long)count, (unsigned long long)t->numel,
                           onnx_type_name(t->type));
    out->owned = memory_allocate((size_t)MAX(size, 1));
    if (!out->owned)
        return status_fail_memory("tensor of a model");
    out->bytes = (wire_span){out->owned, (size_t)size};
    TRY(read_typed(t, file, how, out->owned, &count));
error:
    return status;
}

rlxvk_status onnx_data_read(const onnx_tensor *t, const char *folder, const uint8_t *file,
                            onnx_data *out)
{
    uint64_t bits = onnx_type_bits(t->type), size;
    rlxvk_status status = RLXVK_OK;
    *out = (onnx_data){0};
    if (bits == 0)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "tensor '%.80s' is of type %s, which has no numbers", t->name,
                           onnx_type_name(t->type));
    if (!size_multiply(t->numel, bits, &size))
        return status_fail(RLXVK_E_TOO_LARGE, "tensor '%.80s' is too large", t->name);
    size = divide_up(size, 8);
    if (t->location)
        TRY(read_external(t, folder, size, out));
    else if (t->source)
        TRY(read_part(t->source, t->offset, size, out));
    else if (t->has_raw)
        out->bytes = t->raw;
    else
        TRY(read_fields(t, file, size, out));
    return RLXVK_OK;
error:
    onnx_data_free(out);
    return status;
}

void onnx_data_free(onnx_data *data)
{
    memory_free(data->owned);
    *data = (onnx_data){0};
}
