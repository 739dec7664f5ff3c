/* Elementwise functions of complex tensors, shared by unary.c and complex.c. */
#ifndef RLXVK_COMPLEX_H
#define RLXVK_COMPLEX_H

#include "op/op.h"

/* Gives the COMPLEX_... code of an activation on C64. Returns false if there is none. */
bool complex_code_of(uint32_t unary, uint32_t *out);
rlxvk_status complex_lower_as(lowering *l, uint32_t id, uint32_t code);
rlxvk_status complex_host_as(const host_call *call, uint32_t code);

#endif
