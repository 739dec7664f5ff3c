/* Shared by the families that compute with 8-bit integers: checks, operand codes, and reading
 * operands on the host. */
#ifndef RLXVK_INTEGER_H
#define RLXVK_INTEGER_H

#include "args/packed.h"
#include "op/op.h"

/* Fails with E_DTYPE if operand `index` is not I8. */
rlxvk_status integer_check_operand(const rlxvk_graph *g, const node *n, uint32_t index);
bool integer_is_zero_point(int64_t value); /* -128..127 */

/* The specialization constant of an I8 operand: INTEGER_BYTES or INTEGER_WORDS. */
static inline uint32_t integer_storage(const operand *o)
{
    return o->storage == STORAGE_RAW ? INTEGER_BYTES : INTEGER_WORDS;
}

/* ---- Host ---- */

int integer_host_read(const host_tensor *t, uint64_t index);
/* Rounds to the nearest integer, halves away from zero, adds the zero point and clamps to 8 bits.
 * If v is NaN, the result is the zero point. */
double integer_host_saturate(float v, int32_t zero_point);

#endif
