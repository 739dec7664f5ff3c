/* The operands into which gradients flow, from gradient.def. */
#include "op/gradient.h"

static const uint32_t without[OP_COUNT] = {
#define NO_GRADIENT(row, operands, why, names) [OP_##row] = (operands),
#include "op/gradient.def"
};

bool gradient_flows(op_kind op, uint32_t operand)
{
    return !(without[op] >> MIN(operand, 31u) & 1);
}

bool gradient_ends(op_kind op)
{
    return without[op] == EVERY_OPERAND;
}
