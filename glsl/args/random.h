/* Random numbers and their users: samples, dropout. */
#ifndef RLXVK_ARGS_RANDOM_H
#define RLXVK_ARGS_RANDOM_H

#include "args/types.h"

#define RNG_UNIFORM 0
#define RNG_NORMAL  1

#define RNG_BACKEND_PHILOX 0
#define RNG_BACKEND_MINSTD 1
#define RNG_BACKEND_ZERO   2

/*
 * y = base + fraction * scale (below `limit`), or y = base + scale * z.
 *   wide        fraction * scale is added twice, because the whole range exceeds f32
 *   key_*       the key of the op times the golden ratio, mod 2^64
 *   engine_key  the key as MINSTD takes it
 *   op_engine   the op's seed as MINSTD takes it
 *   polar_*     the number of chunks of candidates, and the candidates of an invocation in a chunk
 *   pairs       pairs of quads of an invocation
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
    u32 key_low, key_high, seed_low, seed_high; /* seed 0: use the seed of the plan */
    u32 top_k;
    f32 top_p, inverse_temperature;
};

/* An element is kept if the 24 high bits of its random word are at least `threshold`. */
struct dropout_args {
    u32 numel, x_offset, step_offset, y_offset;
    u32 key_low, key_high, threshold;
    f32 scale;
};

#endif
