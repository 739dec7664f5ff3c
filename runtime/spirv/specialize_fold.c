/*
 * Computes facts from facts: the value of each instruction whose relevant operands are known. Only
 * integers and booleans. If SPIR-V leaves a result undefined (division by zero, long shifts), the
 * instruction stays.
 */
#include "spirv/specialize.h"

#include <spirv/unified1/GLSL.std.450.h>

/* Used in a switch over opcodes. */
#define FOLD(opcode, expression)                                                                   \
    case opcode:                                                                                   \
        *out = (expression);                                                                       \
        return true;

static bool fold_one(uint32_t opcode, uint32_t a, uint32_t *out)
{
    switch (opcode) {
        FOLD(SpvOpCopyObject, a)
        FOLD(SpvOpBitcast, a)
        FOLD(SpvOpNot, ~a)
        FOLD(SpvOpSNegate, 0 - a)
        FOLD(SpvOpLogicalNot, !a)
    default:
        return false;
    }
}

static bool fold_two(uint32_t opcode, uint32_t a, uint32_t b, uint32_t *out)
{
    int32_t x = (int32_t)a, y = (int32_t)b;
    bool divides = opcode == SpvOpUDiv || opcode == SpvOpUMod;
    bool shifts = opcode == SpvOpShiftLeftLogical || opcode == SpvOpShiftRightLogical;
    if ((divides && b == 0) || (shifts && b > 31))
        return false;
    switch (opcode) {
        FOLD(SpvOpIAdd, a + b)
        FOLD(SpvOpISub, a - b)
        FOLD(SpvOpIMul, a * b)
        FOLD(SpvOpUDiv, a / b)
        FOLD(SpvOpUMod, a % b)
        FOLD(SpvOpBitwiseAnd, a & b)
        FOLD(SpvOpBitwiseOr, a | b)
        FOLD(SpvOpBitwiseXor, a ^ b)
        FOLD(SpvOpShiftLeftLogical, a << b)
        FOLD(SpvOpShiftRightLogical, a >> b)
        FOLD(SpvOpIEqual, a == b)
        FOLD(SpvOpINotEqual, a != b)
        FOLD(SpvOpUGreaterThan, a > b)
        FOLD(SpvOpUGreaterThanEqual, a >= b)
        FOLD(SpvOpULessThan, a < b)
        FOLD(SpvOpULessThanEqual, a <= b)
        FOLD(SpvOpSGreaterThan, x > y)
        FOLD(SpvOpSGreaterThanEqual, x >= y)
        FOLD(SpvOpSLessThan, x < y)
        FOLD(SpvOpSLessThanEqual, x <= y)
        FOLD(SpvOpLogicalEqual, a == b)
        FOLD(SpvOpLogicalNotEqual, a != b)
        FOLD(SpvOpLogicalAnd, a && b)
        FOLD(SpvOpLogicalOr, a || b)
    default:
        return false;
    }
}

static bool fold_standard(uint32_t instruction, uint32_t a, uint32_t b, uint32_t *out)
{
    switch (instruction) {
        FOLD(GLSLstd450UMin, MIN(a, b))
        FOLD(GLSLstd450UMax, MAX(a, b))
        FOLD(GLSLstd450SMin, (uint32_t)MIN((int32_t)a, (int32_t)b))
        FOLD(GLSLstd450SMax, (uint32_t)MAX((int32_t)a, (int32_t)b))
    default:
        return false;
    }
}

static bool take(const specialization *s, uint32_t id, uint32_t *out)
{
    *out = s->ids[id].value;
    return s->ids[id].known;
}

/* A phi is known if it has the same value along all live edges. */
static bool fold_phi(const specialization *s, uint32_t label, const uint32_t *w, uint32_t *out)
{
    bool any = false;
    for (uint32_t i = 3; i + 1 < length_of(w[0]); i += 2) {
        if (!spirv_leads(s, w[i + 1], label))
            continue;
        if (!s->ids[w[i]].known || (any && s->ids[w[i]].value != *out))
            return false;
        *out = s->ids[w[i]].value;
        any = true;
    }
    return any;
}

static bool fold_element(const specialization *s, const uint32_t *operands, uint32_t *out)
{
    const uint32_t *w = s->words + s->ids[operands[0]].at;
    uint32_t opcode = opcode_of(w[0]);
    return s->ids[operands[0]].at &&
           (opcode == SpvOpConstantComposite || opcode == SpvOpSpecConstantComposite) &&
           operands[1] + 3 < length_of(w[0]) && take(s, w[3 + operands[1]], out);
}

static bool fold_operation(const specialization *s, uint32_t opcode, const uint32_t *operands,
                           uint32_t count, uint32_t *out)
{
    if (opcode == SpvOpCompositeExtract)
        return count == 2 && fold_element(s, operands, out);
    for (uint32_t k = 0; k < count; k++)
        if (operands[k] >= s->bound)
            return false;
    if (count == 0 || count > 3)
        return false;
    const id_state *a = &s->ids[operands[0]];
    if (opcode == SpvOpSelect)
        return a->known && take(s, operands[a->value ? 1 : 2], out);
    if (count == 1)
        return a->known && fold_one(opcode, a->value, out);
    const id_state *b = &s->ids[operands[1]];
    if (opcode == SpvOpLogicalAnd || opcode == SpvOpLogicalOr) {
        bool decides = opcode == SpvOpLogicalOr;
        *out = decides;
        if ((a->known && a->value == decides) || (b->known && b->value == decides))
            return true;
    }
    return a->known && b->known && fold_two(opcode, a->value, b->value, out);
}

static bool fold_instruction(const specialization *s, uint32_t label, const uint32_t *w,
                             uint32_t *out)
{
    uint32_t opcode = opcode_of(w[0]), count = length_of(w[0]);
    const id_state *id = &s->ids[w[2]];
    bool given = id->constant && id->constant <= s->constant_count;
    switch (opcode) {
    case SpvOpConstantTrue:
    case SpvOpConstantFalse:
        *out = opcode == SpvOpConstantTrue;
        return true;
    case SpvOpSpecConstantTrue:
    case SpvOpSpecConstantFalse:
        *out = given ? s->constants[id->constant - 1] != 0 : opcode == SpvOpSpecConstantTrue;
        return true;
    case SpvOpSpecConstant:
        *out = given ? s->constants[id->constant - 1] : w[3];
        return true;
    case SpvOpConstant:
        *out = w[3];
        return true;
    case SpvOpConstantNull:
        *out = 0;
        return true;
    case SpvOpSpecConstantOp:
        return fold_operation(s, w[3], w + 4, count - 4, out);
    case SpvOpPhi:
        return fold_phi(s, label, w, out);
    case SpvOpExtInst:
        return w[3] == s->standard && count == 7 && s->ids[w[5]].known && s->ids[w[6]].known &&
               fold_standard(w[4], s->ids[w[5]].value, s->ids[w[6]].value, out);
    default:
        return fold_operation(s, opcode, w + 3, count - 3, out);
    }
}

void spirv_fold(specialization *s)
{
    uint32_t label = 0;
    s->changed = false;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < s->count; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        if (opcode_of(w[0]) == SpvOpLabel)
            label = w[1];
        if (!has_result(s, w) || s->ids[w[2]].at != i || s->ids[w[2]].known ||
            !s->ids[w[1]].is_scalar)
            continue;
        uint32_t value;
        if (fold_instruction(s, label, w, &value)) {
            s->ids[w[2]].known = s->changed = true;
            s->ids[w[2]].value = value;
        }
    }
}
