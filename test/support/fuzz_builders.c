/* The table of builders. */
#include "support/fuzz_calls.h"

#define CALL(row)       {.name = #row, .call = fuzz_call_##row},
#define UNARY(row)      {.name = #row, .unary = rlxvk_##row},
#define BINARY(row)     {.name = #row, .binary = rlxvk_##row},
#define TERNARY(row)    {.name = #row, .ternary = rlxvk_##row},
#define REDUCE(row)     {.name = #row, .reduce = rlxvk_##row},
#define ALONG(row)      {.name = #row, .along = rlxvk_##row},
#define ALONG_WITH(row) {.name = #row, .along_with = rlxvk_##row},
#define POOLED(row)     {.name = #row, .pool = rlxvk_##row},

const fuzz_builder fuzz_builders[] = {
#include "support/fuzz_builders.def"
};
const size_t fuzz_builder_count = sizeof fuzz_builders / sizeof *fuzz_builders;
fuzz_count fuzz_counts[sizeof fuzz_builders / sizeof *fuzz_builders];
