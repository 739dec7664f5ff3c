/* Between the caller's data and the bytes of a slot. A slot holds words, pairs, raw bytes or packed
 * halves. */
#include "exec/slot.h"
#include "graph/half.h"

#include <string.h>

rlxvk_status slot_length(const node *n, storage held, rlxvk_encoding encoding, uint64_t *out)
{
    uint64_t numel = shape_numel(&n->shape);
    if (encoding != RLXVK_AS_F32 && encoding != RLXVK_AS_BYTES)
        return status_fail(RLXVK_E_ATTR, "%s '%s': encoding %d is none of rlxvk_encoding",
                           node_row(n)->name, n->name ? n->name : "", (int)encoding);
    if (encoding == RLXVK_AS_BYTES)
        *out = numel * rlxvk_dtype_size((rlxvk_dtype)n->dtype);
    else if (held == STORAGE_RAW)
        return status_fail(RLXVK_E_DTYPE, "%s '%s' is raw %s; give bytes, not f32 values",
                           node_row(n)->name, n->name ? n->name : "",
                           rlxvk_dtype_name((rlxvk_dtype)n->dtype));
    else
        *out = held == STORAGE_PAIR ? 2 * numel : numel;
    return RLXVK_OK;
}

rlxvk_status slot_refuse(uint64_t length, const char *unit, size_t given, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    text_format(what, sizeof what, format, arguments);
    va_end(arguments);
    if (given == length)
        return status_fail(RLXVK_E_NULL, "%s %llu %s, given NULL", what, (unsigned long long)length,
                           unit);
    return status_fail(RLXVK_E_LENGTH, "%s %llu %s, given %zu", what, (unsigned long long)length,
                       unit, given);
}

static void encode_half(const node *n, const float *values, uint64_t count, uint16_t *to)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = n->dtype == RLXVK_F16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
}

void slot_encode(const node *n, storage held, rlxvk_encoding encoding, const void *data, void *to)
{
    uint64_t numel = shape_numel(&n->shape);
    bool bytes = encoding == RLXVK_AS_BYTES;
    if (held == STORAGE_RAW || (held == STORAGE_HALF && bytes)) {
        memcpy(to, data, numel * rlxvk_dtype_size((rlxvk_dtype)n->dtype));
    } else if (held == STORAGE_HALF) {
        encode_half(n, data, numel, to);
    } else if (bytes) {
        dtype_widen((rlxvk_dtype)n->dtype, data, numel, to);
    } else {
        memcpy(to, data, numel * (held == STORAGE_PAIR ? 8 : 4));
        if (node_is_param(n) || node_is_constant(n))
            dtype_round((rlxvk_dtype)n->dtype, to, numel);
    }
}

void slot_decode(const node *n, storage held, rlxvk_encoding encoding, const void *from, void *data)
{
    uint64_t numel = shape_numel(&n->shape);
    bool bytes = encoding == RLXVK_AS_BYTES;
    if (held == STORAGE_RAW || (held == STORAGE_HALF && bytes))
        memcpy(data, from, numel * rlxvk_dtype_size((rlxvk_dtype)n->dtype));
    else if (held == STORAGE_HALF)
        dtype_widen((rlxvk_dtype)n->dtype, from, numel, data);
    else if (bytes)
        dtype_narrow((rlxvk_dtype)n->dtype, from, numel, data);
    else
        memcpy(data, from, numel * (held == STORAGE_PAIR ? 8 : 4));
}
