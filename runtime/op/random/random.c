/*
 * Random numbers: rng_uniform and rng_normal. Seed, step and backend may change from run to run.
 * They are in operand 0, the input RNG_STATE_NAME, which the builder adds once to a graph.
 *
 * Philox4x32-10 mixes the op's key into the seed. Element e uses word e of the op's stream
 * (uniform) or words 2e and 2e + 1 (normal), so invocations are independent.
 *
 * MINSTD is for parity with numbers that other frameworks stored. Uniform numbers use word e, too.
 * Normal numbers use the polar method, which rejects some candidates. So the position of a number
 * depends on all candidates before it. If there are many, a first dispatch counts them.
 */
#include "args/random.h"
#include "constants/random.h"
#include "base/numeric.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/random/random.h"

#include <math.h>
#include <string.h>

_Static_assert(RNG_BACKEND_PHILOX == (int)RLXVK_RNG_PHILOX &&
                   RNG_BACKEND_MINSTD == (int)RLXVK_RNG_MINSTD &&
                   RNG_BACKEND_ZERO == (int)RLXVK_RNG_ZERO,
               "args/random.h numbers backends as rlxvk.h does");

#define MINSTD_MODULUS 2147483647u
#define POLAR_ALONE    64   /* candidates of an invocation if one workgroup does all */
#define POLAR_ROUNDS   8    /* candidates of an invocation in a chunk, at least */
#define POLAR_CHUNKS   4096 /* at most, because each chunk adds the counts of those before it */
#define MOST_PAIRS     4    /* of quads that an invocation makes */
#define BUSY_GROUPS    8ull /* of a compute unit, before invocations make more than one */

/* ---- Building ---- */

static rlxvk_tensor build_rng(rlxvk_graph *g, op_kind op, rlxvk_shape shape, float base,
                              float other, const rlxvk_rng_stream *stream)
{
    rng_attributes a;
    if (!graph_ready(g, op_table[op].name))
        return RLXVK_NONE;
    memset(&a, 0, sizeof a); /* equal nodes are known by their bytes, so the gaps must be equal */
    a.shape.rank = shape.rank;
    memcpy(a.shape.dims, shape.dims, MIN(shape.rank, RLXVK_MAX_RANK) * sizeof *shape.dims);
    a.base = base, a.other = other;
    if (stream && stream->has_op_seed) {
        a.stream.has_op_seed = true;
        a.stream.op_seed = stream->op_seed;
    }
    a.stream.has_key = true;
    a.stream.key = stream && stream->has_key ? stream->key : random_ops(g);
    rlxvk_tensor state = random_state(g);
    return op_build(g, op, &state, 1, &a);
}

rlxvk_tensor rlxvk_rng_uniform(rlxvk_graph *g, rlxvk_shape shape, float low, float high,
                               const rlxvk_rng_stream *stream)
{
    return build_rng(g, OP_rng_uniform, shape, low, high, stream);
}

rlxvk_tensor rlxvk_rng_normal(rlxvk_graph *g, rlxvk_shape shape, float mean, float scale,
                              const rlxvk_rng_stream *stream)
{
    return build_rng(g, OP_rng_normal, shape, mean, scale, stream);
}

/* Only the shape of the template is used. */
static rlxvk_tensor build_like(rlxvk_graph *g, op_kind op, rlxvk_tensor like, float base,
                               float other, const rlxvk_rng_stream *stream)
{
    const char *row = op_table[op].name;
    if (!graph_ready(g, row) || graph_fail(g, graph_take(g, like, row, "operand", 0)) != RLXVK_OK)
        return RLXVK_NONE;
    return build_rng(g, op, rlxvk_tensor_shape(g, like), base, other, stream);
}

rlxvk_tensor rlxvk_rng_uniform_like(rlxvk_graph *g, rlxvk_tensor like, float low, float high,
                                    const rlxvk_rng_stream *stream)
{
    return build_like(g, OP_rng_uniform, like, low, high, stream);
}

rlxvk_tensor rlxvk_rng_normal_like(rlxvk_graph *g, rlxvk_tensor like, float mean, float scale,
                                   const rlxvk_rng_stream *stream)
{
    return build_like(g, OP_rng_normal, like, mean, scale, stream);
}

/* ---- rng_uniform, rng_normal ---- */

static rlxvk_status rng_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rng_attributes *a = attributes;
    bool uniform = node_code(n) == RNG_UNIFORM;
    (void)g;
    if (!isfinite(a->base) || !isfinite(a->other) || (uniform ? a->other < a->base : a->other < 0))
        return op_fail(n, RLXVK_E_ATTR,
                       uniform ? "range %g .. %g; both must be finite and low <= high"
                               : "mean %g, scale %g; both must be finite and scale >= 0",
                       (double)a->base, (double)a->other);
    if (a->shape.rank > RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "rank %u; at most %d", a->shape.rank, RLXVK_MAX_RANK);
    n->shape = a->shape;
    n->dtype = RLXVK_F32;
    return RLXVK_OK;
}

static uint32_t rng_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    return op_shape_sizes(&((rng_attributes *)attributes)->shape, out);
}

static uint32_t float_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* The engine seed for an op seed: its integer part, saturated to 32 bits. */
static uint32_t engine_word(float op_seed)
{
    uint32_t word;
    dtype_narrow(RLXVK_U32, &op_seed, 1, &word);
    return word;
}

/* Chooses chunks for the expected number of candidates, 4 / pi for each pair. The last chunk
 * continues until all numbers are there. If there are few candidates, one chunk does all, without
 * counting. So the other backends do not pay for a counting dispatch. */
static void divide_candidates(struct rng_args *args, uint64_t numel, uint32_t threads)
{
    uint64_t pairs = divide_up(numel, 2), candidates = pairs * 163 / 128;
    uint64_t rounds = MAX(divide_up(candidates, (uint64_t)threads * POLAR_CHUNKS), POLAR_ROUNDS);
    bool alone = candidates <= (uint64_t)threads * POLAR_ALONE;
    args->polar_rounds = (u32)rounds;
    args->polar_chunks = alone ? 1 : (u32)(candidates / (rounds * threads));
}

static rlxvk_status lower_polar_count(lowering *l, const struct rng_args *args, operand state,
                                      operand *counts)
{
    dispatch d = {.kernel = KERNEL_RNG_POLAR_COUNT};
    rlxvk_status status;
    TRY(lower_temporary(l, args->polar_chunks * sizeof(u32), counts));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, args->polar_chunks);
    TRY(lower_emit(l, &d, args, sizeof *args, (operand[]){state, *counts}, 2));
    counts->access = ACCESS_READ;
error:
    return status;
}

/* Whether the length of the range overflows f32. */
static bool is_wide(const rng_attributes *a)
{
    return !isfinite(a->other - a->base);
}

static rlxvk_status rng_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rng_attributes *a = n->attributes;
    uint64_t numel = shape_numel(&n->shape), key = a->stream.key * GOLDEN_RATIO;
    bool uniform = node_code(n) == RNG_UNIFORM, wide = uniform && is_wide(a);
    uint32_t threads = l->profile->workgroup_size;
    operand state = lower_input(l, id, 0), y = lower_write(l, id), counts = state;
    struct rng_args args = {.numel = (u32)numel,
                            .state_offset = state.offset,
                            .y_offset = y.offset,
                            .key_low = (u32)key,
                            .key_high = (u32)(key >> 32),
                            .use_op_seed = a->stream.has_op_seed,
                            .op_seed = float_bits(a->stream.op_seed),
                            .engine_key = (u32)a->stream.key,
                            .op_engine = engine_word(a->stream.op_seed),
                            .base = a->base,
                            .scale = !uniform ? a->other
                                     : wide   ? a->other / 2 - a->base / 2
                                              : a->other - a->base,
                            .wide = wide,
                            .limit = a->other,
                            .below_limit = nextafterf(a->other, -INFINITY)};
    dispatch d = {.kernel = KERNEL_RNG};
    uint64_t groups = groups_for(divide_up(numel, 8), threads);
    rlxvk_status status;
    args.pairs = (u32)MIN(groups / (BUSY_GROUPS * l->profile->compute_units), MOST_PAIRS);
    args.pairs = MAX(args.pairs, 1);
    groups = divide_up(groups, args.pairs);
    if (!uniform) {
        divide_candidates(&args, numel, threads);
        if (args.polar_chunks > 1)
            TRY(lower_polar_count(l, &args, state, &counts));
        groups = MAX(groups, args.polar_chunks);
    }
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads}, {RNG_KIND, node_code(n)});
    lower_groups(l, &d, groups);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){state, counts, y}, 3));
error:
    return status;
}

/* Word w of the stream. */
static uint32_t stream_word(const rng_source *s, uint64_t mixed, uint64_t w)
{
    uint64_t block = w / 4;
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)s->step,
                           (uint32_t)(s->step >> 32)};
    uint32_t key[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32)}, out[4];
    random_philox(counter, key, out);
    return out[w % 4];
}

/* The upper 24 bits as a fraction. */
static float unit(uint32_t word)
{
    return ldexpf((float)(word >> 8), -24);
}

/* Rounds as the kernel does, because rounding is part of the definition of a number. For a wide
 * range the result is not exact but has an error bound. */
static double host_uniform(const rng_attributes *a, float u)
{
    double low = a->base, high = a->other;
    if (is_wide(a))
        return fmin(low + u * (high - low), nextafterf(a->other, -INFINITY));
    float width = a->other - a->base;
    float product = u * width, v = a->base + product;
    return v >= a->other && a->other > a->base ? nextafterf(a->other, -INFINITY) : v;
}

static void host_store_uniform(const host_call *c, uint64_t i, float u)
{
    const rng_attributes *a = c->node->attributes;
    c->out[i] = host_uniform(a, u);
    if (c->bound && is_wide(a))
        c->bound[i] = 0x1p-23 * (fabs((double)a->base) + fabs((double)a->other));
}

static double host_normal(uint32_t word_1, uint32_t word_2)
{
    double u = fmax(unit(word_1), ldexp(1, -126));
    return sqrt(-2 * log(u)) * numeric_cos(2 * acos(-1) * unit(word_2));
}

static double normal_bound(const rng_attributes *a, double v)
{
    return 2e-6 * a->other + 1e-6 * fabs(v);
}

static void philox_host(const host_call *c, const rng_source *s)
{
    const rng_attributes *a = c->node->attributes;
    uint64_t numel = shape_numel(&c->node->shape);
    uint64_t seed = a->stream.has_op_seed ? float_bits(a->stream.op_seed) : s->seed;
    uint64_t mixed = random_mixed(s, seed, a->stream.key);
    for (uint64_t i = 0; i < numel; i++) {
        if (node_code(c->node) == RNG_UNIFORM) {
            host_store_uniform(c, i, unit(stream_word(s, mixed, i)));
            continue;
        }
        double z = host_normal(stream_word(s, mixed, 2 * i), stream_word(s, mixed, 2 * i + 1));
        c->out[i] = a->base + a->other * z;
        if (c->bound)
            c->bound[i] = normal_bound(a, c->out[i]);
    }
}

static float minstd_next(uint64_t *x)
{
    *x = 16807 * *x % MINSTD_MODULUS;
    return fminf((float)((double)(*x - 1) / (MINSTD_MODULUS - 1)), 1 - 0x1p-24f);
}

/* The next two numbers of the polar method. */
static void minstd_polar(uint64_t *x, double z[2])
{
    double v1, v2, s;
    do {
        v1 = 2.0 * minstd_next(x) - 1;
        v2 = 2.0 * minstd_next(x) - 1;
        s = v1 * v1 + v2 * v2;
    } while (s >= 1 || s == 0);
    z[0] = v1 * sqrt(-2 * log(s) / s);
    z[1] = v2 * sqrt(-2 * log(s) / s);
}

/* Computes one number after the other, in the order of the definition. */
static void minstd_host(const host_call *c, const rng_source *s)
{
    const rng_attributes *a = c->node->attributes;
    uint64_t numel = shape_numel(&c->node->shape), x = (uint32_t)(s->seed + a->stream.key);
    double z[2];
    if (a->stream.has_op_seed)
        x = engine_word(a->stream.op_seed);
    if ((x %= MINSTD_MODULUS) == 0)
        x = 1;
    for (uint64_t i = 0; i < numel; i++) {
        if (node_code(c->node) == RNG_UNIFORM) {
            host_store_uniform(c, i, minstd_next(&x));
            continue;
        }
        if (i % 2 == 0)
            minstd_polar(&x, z);
        c->out[i] = a->base + a->other * z[i % 2];
        if (c->bound)
            c->bound[i] = normal_bound(a, c->out[i]);
    }
}

static rlxvk_status rng_host(const host_call *c)
{
    rng_source s = random_source_of(&c->inputs[0]);
    if (s.backend == RNG_BACKEND_PHILOX)
        philox_host(c, &s);
    else if (s.backend == RNG_BACKEND_MINSTD)
        minstd_host(c, &s);
    return RLXVK_OK;
}

static uint64_t rng_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its seed depends on the rows");
}

static void rng_describe(const node *n, text *out)
{
    const rng_attributes *a = n->attributes;
    text_append(out, " key=%llu %g %g", (unsigned long long)a->stream.key, (double)a->base,
                (double)a->other);
}

const op_family rng_family = {
    .name = "rng",
    .attribute_size = sizeof(rng_attributes),
    .infer = rng_infer,
    .sizes = rng_sizes,
    .execution = {.lower = rng_lower, .host = rng_host},
    .rows = {.bucket = rng_bucket},
    .describe = rng_describe,
};
