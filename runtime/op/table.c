/* The op table: one row per line of op.def, each pointing at its family's struct. */
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

/* By comparing with each: callers ask once an option or case, not once a node. */
op_kind op_find(const char *name)
{
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (strcmp(op_table[i].name, name) == 0)
            return (op_kind)i;
    return OP_COUNT;
}
