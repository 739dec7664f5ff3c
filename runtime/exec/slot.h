/* Between the caller's data and the bytes of a slot. */
#ifndef RLXVK_EXEC_SLOT_H
#define RLXVK_EXEC_SLOT_H

#include "op/op.h"

/* The type of a caller's data: that of the tensor, in its host encoding, or f32 words whatever the
 * tensor's, as the device holds them. */
typedef struct slot_type {
    rlxvk_dtype dtype;
    bool f32_words;
} slot_type;

/* How many values of that type node `n` has; E_DTYPE where it has another. */
rlxvk_status slot_length(const node *n, storage held, slot_type type, uint64_t *out);
/* What a caller's data or buffer of `given` units is to be: `length` of them, and there. */
static inline bool slot_fits(uint64_t length, size_t given, const void *data)
{
    return given == length && (data || length == 0);
}
/* Why it does not: E_LENGTH, or E_NULL. "<format> 12 values, given 13": the format says what needs
 * or has that many. */
rlxvk_status slot_refuse(uint64_t length, const char *unit, size_t given, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define SLOT_WORDS ((slot_type){.f32_words = true})
static inline slot_type slot_type_of_input(const rlxvk_run_input *item)
{
    return (slot_type){item->dtype, item->f32_words};
}
static inline slot_type slot_type_of_output(const rlxvk_run_output *item)
{
    return (slot_type){item->dtype, item->f32_words};
}
/* Bytes of so many values. */
static inline uint64_t slot_bytes(slot_type type, uint64_t length)
{
    return length * (type.f32_words ? 4 : rlxvk_dtype_size(type.dtype));
}
/* Caller's data -> slot bytes at `to`; slot bytes of `count` elements -> caller's data. Of a type
 * that slot_length accepts, or F32 of packed halves, which are then converted. */
void slot_encode(const node *n, storage held, slot_type type, const void *data, void *to);
void slot_decode(const node *n, storage held, slot_type type, const void *from, uint64_t count,
                 void *data);

#endif
