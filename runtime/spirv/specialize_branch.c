/* The blocks to which a block may branch, by the known facts. Folding of phis and reaching of
 * blocks both use it. */
#include "spirv/specialize.h"

uint32_t spirv_target(const uint32_t *w, uint32_t k)
{
    switch (opcode_of(w[0])) {
    case SpvOpBranch:
        return k == 0 ? w[1] : 0;
    case SpvOpBranchConditional:
        return k < 2 ? w[2 + k] : 0;
    case SpvOpSwitch:
        return 2 + 2 * k < length_of(w[0]) ? w[2 + 2 * k] : 0;
    default:
        return 0;
    }
}

uint32_t spirv_only_target(const specialization *s, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]), chosen = 0;
    if (s->whole || (opcode != SpvOpBranchConditional && opcode != SpvOpSwitch) ||
        !s->ids[w[1]].known)
        return 0;
    if (opcode == SpvOpBranchConditional) {
        chosen = w[2 + !s->ids[w[1]].value];
    } else {
        chosen = w[2];
        for (uint32_t i = 3; i + 1 < length_of(w[0]); i += 2)
            if (w[i] == s->ids[w[1]].value)
                chosen = w[i + 1];
    }
    for (uint32_t k = 0; spirv_target(w, k); k++)
        if (s->words + s->ids[spirv_target(w, k)].at < w)
            return 0;
    return chosen;
}

bool spirv_leads(const specialization *s, uint32_t from, uint32_t to)
{
    const uint32_t *w = s->words + s->ids[from].end;
    uint32_t only = spirv_only_target(s, w);
    if (!s->ids[from].live)
        return false;
    for (uint32_t k = 0; !only && spirv_target(w, k); k++)
        if (spirv_target(w, k) == to)
            return true;
    return only == to;
}
