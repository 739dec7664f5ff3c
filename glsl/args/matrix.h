/* Another type that matrix_pack packs an operand to. It is not in args/matmul.h, because checked-in
 * SPIR-V depends on that file. */
#ifndef RLXVK_ARGS_MATRIX_H
#define RLXVK_ARGS_MATRIX_H

#define MATRIX_F32 3 /* words, eight in two uvec4 */

#endif
