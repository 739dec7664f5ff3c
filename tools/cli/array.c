/* See array.h. */
#include "cli/array.h"
#include "cli/file.h"
#include "base/new_file.h"
#include "exec/npy_header.h"
#include "model/onnx_message.h"
#include "model/onnx_value.h"

#include <stdio.h>
#include <string.h>

void array_destroy(array *a)
{
    memory_free(a->data);
    *a = (array){0};
}

rlxvk_status array_make(rlxvk_dtype dtype, rlxvk_shape shape, array *out)
{
    rlxvk_status status;
    *out = (array){.dtype = dtype, .shape = shape};
    TRY(rlxvk_shape_elements(shape, &out->numel));
    out->size = out->numel * rlxvk_dtype_size(dtype);
    out->data = memory_zeroed((size_t)MAX(out->size, 1), 1);
    if (!out->data)
        status = status_fail_memory("array");
error:
    return status;
}

/* ---- NumPy ---- */

static rlxvk_status read_npy(const file_content *file, array *out)
{
    npy_header h;
    rlxvk_status status;
    TRY(npy_header_begin(file->data, file->length, &h));
    TRY(npy_header_read(file->data, &h));
    if (h.dtype == RLXVK_DTYPE_COUNT || h.column_major)
        return status_fail(RLXVK_E_DTYPE, "npy: element type '%s'%s is not supported", h.type,
                           h.column_major ? " in Fortran's order" : "");
    TRY(array_make(h.dtype, h.shape, out));
    if (out->size != file->length - h.start)
        return status_fail(RLXVK_E_FILE, "npy: %llu bytes of data instead of %llu",
                           (unsigned long long)(file->length - h.start),
                           (unsigned long long)out->size);
    memcpy(out->data, file->data + h.start, (size_t)out->size);
error:
    return status;
}

/* ---- TensorProto ---- */

/* Copies elements, one by one if the dtype is wider than they are. */
static rlxvk_status copy_elements(const onnx_tensor *t, wire_span bytes, array *out)
{
    arena room = {0};
    host_array *h;
    rlxvk_status status = RLXVK_OK;
    if (onnx_type_bits(t->type) == 8 * rlxvk_dtype_size(out->dtype)) {
        memcpy(out->data, bytes.bytes, (size_t)out->size);
        return RLXVK_OK;
    }
    TRY(onnx_decode(&room, t->type, out->shape, bytes, &h));
    for (uint64_t i = 0; i < out->numel; i++)
        if (h->reals)
            ((float *)out->data)[i] = (float)h->reals[i];
        else if (out->dtype == RLXVK_U32)
            ((uint32_t *)out->data)[i] = (uint32_t)h->integers[i];
        else
            ((uint8_t *)out->data)[i] = (uint8_t)h->integers[i];
error:
    arena_destroy(&room);
    return status;
}

static rlxvk_status read_tensor(const file_content *file, array *out)
{
    wire_span span = {file->data, (size_t)file->length};
    arena a = {0};
    onnx_tensor t;
    onnx_data data = {0};
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    rlxvk_status status;
    TRY(onnx_read_tensor(&a, span, file->data, &t));
    if (!onnx_value_dtype(t.type, &dtype))
        TRY(status_fail(RLXVK_E_DTYPE, "elements of type %s are not supported",
                        onnx_type_name(t.type)));
    TRY(onnx_data_read(&t, NULL, file->data, &data));
    shape = (rlxvk_shape){.rank = t.rank};
    memcpy(shape.dims, t.dims, sizeof shape.dims);
    TRY(array_make(dtype, shape, out));
    TRY(copy_elements(&t, data.bytes, out));
    out->short_words = t.type == ONNX_UINT16;
error:
    onnx_data_free(&data);
    arena_destroy(&a);
    return status;
}

rlxvk_status array_read(const char *path, array *out)
{
    const char *dot = strrchr(path, '.');
    file_content file = {0};
    rlxvk_status status;
    *out = (array){0};
    TRY(file_read(path, &file));
    status = dot && strcmp(dot, ".pb") == 0 ? read_tensor(&file, out) : read_npy(&file, out);
    if (status != RLXVK_OK) {
        status = status_fail_within(status, "'%s'", path);
        array_destroy(out);
    }
error:
    file_free(&file);
    return status;
}

/* ---- Elements ---- */

void array_shorten(array *a, uint32_t axis, int64_t count)
{
    uint64_t inner = rlxvk_dtype_size(a->dtype), outer = 1;
    int64_t whole = a->shape.dims[axis];
    for (uint32_t i = 0; i < a->shape.rank; i++) {
        outer *= i < axis ? (uint64_t)a->shape.dims[i] : 1;
        inner *= i > axis ? (uint64_t)a->shape.dims[i] : 1;
    }
    for (uint64_t i = 0; i < outer; i++)
        memmove((uint8_t *)a->data + i * (uint64_t)count * inner,
                (uint8_t *)a->data + i * (uint64_t)whole * inner,
                (size_t)((uint64_t)count * inner));
    a->shape.dims[axis] = count;
    a->size = outer * (uint64_t)count * inner;
    a->numel = a->size / rlxvk_dtype_size(a->dtype);
}

void array_take_as_bf16(array *a)
{
    for (uint64_t i = 0; i < a->numel; i++)
        ((uint16_t *)a->data)[i] = (uint16_t)((const uint32_t *)a->data)[i];
    a->dtype = RLXVK_BF16;
    a->size = a->numel * sizeof(uint16_t);
    a->short_words = false;
}

static int32_t type_of(rlxvk_dtype dtype)
{
    rlxvk_dtype found;
    for (int32_t type = ONNX_FLOAT; type < ONNX_TYPE_COUNT; type++)
        if (type != ONNX_UINT16 && type != ONNX_UINT64 && onnx_value_dtype(type, &found) &&
            found == dtype)
            return type;
    return ONNX_UNDEFINED;
}

double *array_numbers(const array *a)
{
    double *numbers = memory_zeroed((size_t)MAX(a->numel, 1), sizeof *numbers);
    wire_span bytes = {a->data, (size_t)a->size};
    arena room = {0};
    host_array *h = NULL;
    if (!numbers || onnx_decode(&room, type_of(a->dtype), a->shape, bytes, &h) != RLXVK_OK) {
        memory_free(numbers);
        numbers = NULL;
    }
    for (uint64_t i = 0; numbers && i < a->numel; i++)
        numbers[i] = h->reals ? h->reals[i] : (double)h->integers[i];
    arena_destroy(&room);
    return numbers;
}

rlxvk_status array_write(const char *path, const array *a)
{
    uint8_t header[NPY_HEADER_ROOM];
    bool widened = a->dtype == RLXVK_BF16;
    size_t length = npy_header_write(widened ? RLXVK_F32 : a->dtype, &a->shape, header);
    double *numbers = widened ? array_numbers(a) : NULL;
    new_file file;
    rlxvk_status status;
    if (widened && !numbers)
        return status_fail_memory("array");
    TRY(new_file_open(path, &file));
    fwrite(header, 1, length, file.stream);
    for (uint64_t i = 0; widened && i < a->numel; i++) {
        float value = (float)numbers[i];
        fwrite(&value, sizeof value, 1, file.stream);
    }
    if (!widened)
        fwrite(a->data, 1, (size_t)a->size, file.stream);
    status = new_file_close(&file);
error:
    memory_free(numbers);
    return status;
}
