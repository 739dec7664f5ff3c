/* See npy.h. */
#include "conform/npy.h"
#include "cli/file.h"
#include "base/new_file.h"
#include "exec/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_readable(rlxvk_dtype dtype)
{
    return dtype == RLXVK_F32 || dtype == RLXVK_F64 || dtype == RLXVK_U8 || dtype == RLXVK_I32 ||
           dtype == RLXVK_I64;
}

static rlxvk_status take_header(const npy_header *h, npy_array *array)
{
    if (!is_readable(h->dtype))
        return status_fail(RLXVK_E_DTYPE,
                           "npy: element type '%s'; readable are <f4 <f8 |u1 <i4 <i8", h->type);
    if (h->column_major)
        return status_fail(RLXVK_E_DTYPE, "npy: fortran_order is True; save the array in C order");
    *array = (npy_array){.dtype = h->dtype, .shape = h->shape, .numel = h->numel};
    if (!size_multiply(h->numel, rlxvk_dtype_size(h->dtype), &array->size))
        return status_fail(RLXVK_E_SHAPE, "npy: %" PRIu64 " elements overflow a size", h->numel);
    return RLXVK_OK;
}

rlxvk_status npy_parse(const void *bytes, uint64_t length, npy_array *out)
{
    npy_header h;
    npy_array array = {0};
    rlxvk_status status;
    *out = array;
    TRY(npy_header_begin(bytes, length, &h));
    TRY(npy_header_read(bytes, &h));
    TRY(take_header(&h, &array));
    if (array.size != length - h.start)
        return status_fail(RLXVK_E_FILE,
                           "npy: the shape needs %" PRIu64 " bytes of data, the file has %" PRIu64
                           " from byte %" PRIu64,
                           array.size, length - h.start, h.start);
    array.data = memory_allocate((size_t)MAX(array.size, 1));
    if (array.data == NULL)
        return status_fail_memory("npy array");
    memcpy(array.data, (const uint8_t *)bytes + h.start, (size_t)array.size);
    *out = array;
error:
    return status;
}

rlxvk_status npy_read(const char *path, npy_array *out)
{
    file_content content = {0};
    rlxvk_status status;
    memset(out, 0, sizeof *out);
    TRY(file_read(path, &content));
    status = npy_parse(content.data, content.length, out);
    if (status != RLXVK_OK)
        status = status_fail_within(status, "'%s'", path);
error:
    file_free(&content);
    return status;
}

void npy_destroy(npy_array *array)
{
    memory_free(array->data);
    memset(array, 0, sizeof *array);
}

double npy_element(const npy_array *array, uint64_t index)
{
    switch (array->dtype) {
    case RLXVK_F32:
        return ((const float *)array->data)[index];
    case RLXVK_F64:
        return ((const double *)array->data)[index];
    case RLXVK_I32:
        return ((const int32_t *)array->data)[index];
    case RLXVK_I64:
        return (double)((const int64_t *)array->data)[index];
    default:
        return ((const uint8_t *)array->data)[index];
    }
}

rlxvk_status npy_write_f32(const char *path, const float *data, const rlxvk_shape *shape)
{
    uint8_t header[NPY_HEADER_ROOM];
    size_t length = npy_header_write(RLXVK_F32, shape, header), numel = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        numel *= (size_t)shape->dims[i];
    new_file file;
    rlxvk_status status = new_file_open(path, &file);
    if (status != RLXVK_OK)
        return status;
    fwrite(header, 1, length, file.stream);
    fwrite(data, sizeof(float), numel, file.stream);
    return new_file_close(&file);
}
