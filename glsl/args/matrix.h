/* What matrix_pack makes of an operand besides the forms of args/matmul.h, on which checked-in
 * SPIR-V depends. */
#ifndef RLXVK_ARGS_MATRIX_H
#define RLXVK_ARGS_MATRIX_H

#define MATRIX_F32 3 /* words, eight to two uvec4 */

#endif
