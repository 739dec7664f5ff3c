/* The families that op.def names. Each is defined in a file of this folder (leaf) or of one below.
 */
#ifndef RLXVK_FAMILIES_H
#define RLXVK_FAMILIES_H

#include "op/op.h"

/* A family with several rows is declared several times, which C allows. */
#define OP(row, family, ...) extern const op_family family##_family;
#include "op/op.def"
#undef OP

#endif
