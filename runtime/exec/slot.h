/* Between the caller's data and the bytes of a slot. */
#ifndef RLXVK_EXEC_SLOT_H
#define RLXVK_EXEC_SLOT_H

#include "op/op.h"

/* Length that `encoding` asks for node `id`; E_DTYPE where it does not apply. */
rlxvk_status slot_length(const node *n, storage held, rlxvk_encoding encoding, uint64_t *out);
/* What a caller's data or buffer of `given` units is to be: `length` of them, and there. */
static inline bool slot_fits(uint64_t length, size_t given, const void *data)
{
    return given == length && (data || length == 0);
}
/* Why it does not: E_LENGTH, or E_NULL. "<format> 12 values, given 13": the format says what needs
 * or has that many. */
rlxvk_status slot_refuse(uint64_t length, const char *unit, size_t given, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static inline const char *slot_unit(rlxvk_encoding encoding)
{
    return encoding == RLXVK_AS_BYTES ? "bytes" : "values";
}
/* Caller's data -> slot bytes at `to`; slot bytes -> caller's data. */
void slot_encode(const node *n, storage held, rlxvk_encoding encoding, const void *data, void *to);
void slot_decode(const node *n, storage held, rlxvk_encoding encoding, const void *from,
                 void *data);

#endif
