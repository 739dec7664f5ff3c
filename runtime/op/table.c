/* The op table: one row for each line of op.def, with a pointer to its family's struct. */
#include "op/op.h"
#include "op/families.h"
#include "args/elementwise.h"
#include "args/packed.h"
#include "args/random.h"
#include "args/rows.h"
#include "args/sequence.h"
#include "args/train.h"

#include <string.h>

const op_row op_table[OP_COUNT] = {
#define OP(row, family, code, fewest, most, atol, rtol)                                            \
    [OP_##row] = {#row, &family##_family, code, fewest, most, atol, rtol},
#include "op/op.def"
#undef OP
};

/* A linear search suffices, because callers ask once for each option or test case, not for each
 * node. */
op_kind op_find(const char *name)
{
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (strcmp(op_table[i].name, name) == 0)
            return (op_kind)i;
    return OP_COUNT;
}
