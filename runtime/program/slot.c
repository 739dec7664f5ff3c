/* Converts between the caller's data and the bytes of a slot. A slot holds words, pairs, raw bytes
 * or packed halves. */
#include "program/slot.h"
#include "graph/half.h"

#include <string.h>

static rlxvk_status refuse_dtype(const node *n, slot_type type)
{
    const char *row = node_row(n)->name, *own = rlxvk_dtype_name((rlxvk_dtype)n->dtype);
    const char *name = n->name ? n->name : "";
    if ((unsigned)type.dtype >= RLXVK_DTYPE_COUNT)
        return status_fail(RLXVK_E_DTYPE, "%s '%s': dtype %d of the buffer is none of rlxvk_dtype",
                           row, name, (int)type.dtype);
    if (type.f32_words)
        return status_fail(RLXVK_E_DTYPE,
                           "%s '%s' is held as raw %s, not as f32 words; give bytes and dtype "
                           "RLXVK_%s",
                           row, name, own, own);
    return status_fail(RLXVK_E_DTYPE,
                       "%s '%s' is %s, the buffer %s%s; give a buffer of %s and dtype RLXVK_%s",
                       row, name, own, rlxvk_dtype_name(type.dtype),
                       type.dtype == RLXVK_F32 ? " (where no dtype is given)" : "", own, own);
}

rlxvk_status slot_length(const node *n, storage held, slot_type type, uint64_t *out)
{
    uint64_t numel = shape_numel(&n->shape);
    if (type.f32_words ? held == STORAGE_RAW : type.dtype != (rlxvk_dtype)n->dtype)
        return refuse_dtype(n, type);
    *out = type.f32_words && held == STORAGE_PAIR ? 2 * numel : numel;
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

/* Whether the caller's data are packed halves as in the slot. */
static bool are_halves(const node *n, storage held, slot_type type)
{
    return held == STORAGE_HALF && !type.f32_words && type.dtype == (rlxvk_dtype)n->dtype;
}

void slot_encode(const node *n, storage held, slot_type type, const void *data, void *to)
{
    uint64_t numel = shape_numel(&n->shape);
    bool bytes = !type.f32_words;
    if (held == STORAGE_RAW || are_halves(n, held, type)) {
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

void slot_decode(const node *n, storage held, slot_type type, const void *from, uint64_t count,
                 void *data)
{
    if (held == STORAGE_RAW || are_halves(n, held, type))
        memcpy(data, from, count * rlxvk_dtype_size((rlxvk_dtype)n->dtype));
    else if (held == STORAGE_HALF)
        dtype_widen((rlxvk_dtype)n->dtype, from, count, data);
    else if (!type.f32_words)
        dtype_narrow((rlxvk_dtype)n->dtype, from, count, data);
    else
        memcpy(data, from, count * (held == STORAGE_PAIR ? 8 : 4));
}
