/* Random numbers, and what is made with them: samples, dropout. */
#ifndef RLXVK_ARGS_RANDOM_H
#define RLXVK_ARGS_RANDOM_H

#include "args/types.h"

#define RNG_UNIFORM 0
#define RNG_NORMAL  1

#define RNG_BACKEND_PHILOX 0
#define RNG_BACKEND_MINSTD 1
#define RNG_BACKEND_ZERO   2

/*
 * y = base + fraction * scale (below `limit`), or base + scale * z. wide: fraction * scale counts
 * twice, since the whole range is beyond f32. key_*: the op's key times the
 * golden ratio, mod 2^64. engine_key, op_engine: key and op seed as MINSTD takes them. polar_*: how
 * many chunks of candidates there are, and how many a workgroup's invocation has of each. pairs: of
 * quads, an invocation's.
 */
struct rng_args {
    u32 numel, state_offset, y_offset;
    u32 key_low, key_high, use_op_seed, op_seed;
    u32 engine_key, op_engine, polar_chunks, polar_rounds, pairs;
    f32 base, scale, limit, below_limit;
    u32 wide;
};

struct sample_args {
    u32 rows, vocabulary, x_offset, y_offset, state_offset;
    u32 key_low, key_high, seed_low, seed_high; /* seed 0: the plan's */
    u32 top_k;
    f32 top_p, inverse_temperature;
};

/* An element is kept where the 24 high bits of its word are `threshold` or more. */
struct dropout_args {
    u32 numel, x_offset, step_offset, y_offset;
    u32 key_low, key_high, threshold;
    f32 scale;
};

#endif
