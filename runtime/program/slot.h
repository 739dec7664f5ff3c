/* Converts between the caller's data and the bytes of a slot. */
#ifndef RLXVK_PROGRAM_SLOT_H
#define RLXVK_PROGRAM_SLOT_H

#include "op/op.h"

/* The type of a caller's data. With f32_words, they are f32 words as the device holds them.
 * Otherwise they have the tensor's dtype in its encoding on the host. */
typedef struct slot_type {
    rlxvk_dtype dtype;
    bool f32_words;
} slot_type;

/* Computes how many values of this type node `n` has. E_DTYPE if the node does not have this
 * type. */
rlxvk_status slot_length(const node *n, storage held, slot_type type, uint64_t *out);
/* Whether the caller gave `length` units, and a pointer to them unless there are none. */
static inline bool slot_fits(uint64_t length, size_t given, const void *data)
{
    return given == length && (data || length == 0);
}
/* Says why it does not fit: E_LENGTH or E_NULL. The sentence is like "<format> 12 values, given
 * 13". The format says which object needs or has that many. */
rlxvk_status slot_refuse(uint64_t length, const char *unit, size_t given, const char *format, ...)
    FORMATS(4, 5);
#define SLOT_WORDS ((slot_type){.f32_words = true})
static inline slot_type slot_type_of_input(const rlxvk_run_input *item)
{
    return (slot_type){item->dtype, item->f32_words};
}
static inline slot_type slot_type_of_output(const rlxvk_run_output *item)
{
    return (slot_type){item->dtype, item->f32_words};
}
/* Bytes of `length` values. */
static inline uint64_t slot_bytes(slot_type type, uint64_t length)
{
    return length * (type.f32_words ? 4 : rlxvk_dtype_size(type.dtype));
}
/* slot_encode converts a caller's data to slot bytes at `to`. slot_decode converts slot bytes of
 * `count` elements to a caller's data. The type must be one that slot_length accepts, or F32 if the
 * slot has packed halves, which are then converted. */
void slot_encode(const node *n, storage held, slot_type type, const void *data, void *to);
void slot_decode(const node *n, storage held, slot_type type, const void *from, uint64_t count,
                 void *data);

#endif
