/*
 * Random numbers: rng_uniform, rng_normal and sample. Philox4x32-10 with the op's key mixed into
 * the seed; element e of an op uses word e (uniform) or words 2e and 2e + 1 (normal) of its stream,
 * so that every invocation works alone. Seed and step are run-time state: operand 0 is the input
 * RNG_STATE_NAME, which the builder adds once a graph.
 */
#include "op/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_RATIO     0x9E3779B97F4A7C15u
#define SAMPLE_DOMAIN    0x53414D50u
#define SAMPLE_GREEDY_AT 1e-6f

void rng_state_write(const rlxvk_rng_options *options, float words[RNG_STATE_WORDS])
{
    uint32_t bits[RNG_STATE_WORDS] = {(uint32_t)options->seed, (uint32_t)(options->seed >> 32),
                                      (uint32_t)options->step, (uint32_t)(options->step >> 32),
                                      (uint32_t)options->backend};
    memcpy(words, bits, sizeof bits);
}

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int i = 0; i < 10; i++) {
        uint64_t p = (uint64_t)0xD2511F53u * c[0], q = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
                            (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

/* ---- Building ---- */

static rlxvk_tensor rng_state(rlxvk_graph *g)
{
    uint32_t id = graph_find(g, OP_input, RNG_STATE_NAME);
    return id != NODE_NONE
               ? tensor_of(id)
               : rlxvk_input(g, RNG_STATE_NAME, RLXVK_F32, RLXVK_SHAPE(RNG_STATE_WORDS));
}

/* The default key: how many random ops there are already. */
static uint64_t random_ops(const rlxvk_graph *g)
{
    uint64_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const op_family *family = node_row(graph_node(g, id))->family;
        count += family == op_table[OP_rng_uniform].family || family == op_table[OP_sample].family;
    }
    return count;
}

static rlxvk_tensor build_rng(rlxvk_graph *g, op_kind op, rlxvk_shape shape, float base,
                              float other, const rlxvk_rng_stream *stream)
{
    rng_attributes a = {.shape = shape, .base = base, .other = other};
    if (stream)
        a.stream = *stream;
    if (!a.stream.has_key)
        a.stream.key = random_ops(g);
    a.stream.has_key = true;
    rlxvk_tensor state = rng_state(g);
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

rlxvk_tensor rlxvk_sample(rlxvk_graph *g, rlxvk_tensor logits, const rlxvk_sample_options *options)
{
    sample_attributes a = {.options = options ? *options : (rlxvk_sample_options){0}};
    if (!a.options.stream.has_key)
        a.options.stream.key = random_ops(g);
    a.options.stream.has_key = true;
    if (logits.id == 0)
        return op_build(g, OP_sample, &logits, 1, &a);
    return op_build(g, OP_sample, (rlxvk_tensor[]){rng_state(g), logits}, 2, &a);
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

static uint32_t float_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static rlxvk_status rng_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rng_attributes *a = n->attributes;
    uint64_t numel = shape_numel(&n->shape), key = a->stream.key * GOLDEN_RATIO;
    bool uniform = node_code(n) == RNG_UNIFORM;
    operand state = lower_input(l, id, 0), y = lower_write(l, id);
    struct rng_args args = {.numel = (u32)numel,
                            .state_offset = state.offset,
                            .y_offset = y.offset,
                            .key_low = (u32)key,
                            .key_high = (u32)(key >> 32),
                            .use_op_seed = a->stream.has_op_seed,
                            .op_seed = float_bits(a->stream.op_seed),
                            .base = a->base,
                            .scale = uniform ? a->other - a->base : a->other,
                            .limit = a->other,
                            .below_limit = nextafterf(a->other, -INFINITY)};
    dispatch d = {.kernel = KERNEL_RNG, .constants = {l->profile->workgroup_size, node_code(n)}};
    lower_groups(l, &d, groups_for(divide_up(numel, uniform ? 4 : 2), l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, (operand[]){state, y}, 2);
}

/* Seed, step and backend as operand 0 holds them. */
typedef struct rng_source {
    uint64_t seed, step;
    uint32_t backend;
} rng_source;

static rng_source source_of(const host_tensor *state)
{
    uint32_t bits[RNG_STATE_WORDS];
    memcpy(bits, state->words, sizeof bits);
    return (rng_source){bits[0] | (uint64_t)bits[1] << 32, bits[2] | (uint64_t)bits[3] << 32,
                        bits[4]};
}

/* Word w of the stream. */
static uint32_t stream_word(const rng_source *s, uint64_t mixed, uint64_t w)
{
    uint64_t block = w / 4;
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)s->step,
                           (uint32_t)(s->step >> 32)};
    uint32_t key[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32)}, out[4];
    philox4x32(counter, key, out);
    return out[w % 4];
}

static double host_uniform(const rng_attributes *a, uint32_t word)
{
    float width = a->other - a->base, u = ldexpf((float)(word >> 8), -24);
    float product = u * width, v = a->base + product;
    return v >= a->other && a->other > a->base ? nextafterf(a->other, -INFINITY) : v;
}

static double host_normal(uint32_t word_1, uint32_t word_2)
{
    double u = fmax(ldexp((double)(word_1 >> 8), -24), ldexp(1, -126));
    return sqrt(-2 * log(u)) * cos(2 * acos(-1) * ldexp((double)(word_2 >> 8), -24));
}

static rlxvk_status rng_host(const host_call *c)
{
    const rng_attributes *a = c->node->attributes;
    rng_source s = source_of(&c->inputs[0]);
    uint64_t numel = shape_numel(&c->node->shape);
    uint64_t seed = a->stream.has_op_seed ? float_bits(a->stream.op_seed) : s.seed;
    uint64_t mixed = seed + a->stream.key * GOLDEN_RATIO;
    for (uint64_t i = 0; i < numel && s.backend != RNG_BACKEND_ZERO; i++) {
        if (node_code(c->node) == RNG_UNIFORM) {
            c->out[i] = host_uniform(a, stream_word(&s, mixed, i));
            continue;
        }
        double z = host_normal(stream_word(&s, mixed, 2 * i), stream_word(&s, mixed, 2 * i + 1));
        c->out[i] = a->base + a->other * z;
        if (c->bound)
            c->bound[i] = 2e-6 * a->other + 1e-6 * fabs(c->out[i]);
    }
    return RLXVK_OK;
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
    .lower = rng_lower,
    .host = rng_host,
    .describe = rng_describe,
};

/* ---- sample ---- */

static rlxvk_status sample_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_sample_options *o = &((sample_attributes *)attributes)->options;
    const rlxvk_shape *logits = input_shape(g, n, 1);
    if (logits->rank == 0 || logits->dims[logits->rank - 1] < 1)
        return op_fail(n, RLXVK_E_SHAPE, "logits need a last axis of at least one token");
    if (logits->dims[logits->rank - 1] > 1 << 24)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "%lld tokens; f32 indices reach 2^24",
                       (long long)logits->dims[logits->rank - 1]);
    if (!(o->temperature >= 0) || isinf(o->temperature))
        return op_fail(n, RLXVK_E_ATTR, "temperature %g; must be finite and >= 0",
                       (double)o->temperature);
    if (!(o->top_p <= 1))
        return op_fail(n, RLXVK_E_ATTR, "top_p %g; must be at most 1", (double)o->top_p);
    n->shape = *logits;
    n->shape.rank--;
    if (n->shape.rank == 0)
        n->shape = RLXVK_SHAPE(1);
    n->dtype = RLXVK_F32;
    return RLXVK_OK;
}

/* top_p 0 is the default, no limit; below 0 only the best token stays. */
static uint64_t effective_top_k(const rlxvk_sample_options *o, uint64_t vocabulary)
{
    if (o->top_p < 0)
        return 1;
    return o->top_k == 0 || o->top_k > vocabulary ? vocabulary : o->top_k;
}
static float effective_top_p(const rlxvk_sample_options *o)
{
    return o->top_p <= 0 ? 1 : o->top_p;
}

/* Rows are read some forty times, and a software driver ends loops at 65,535 rounds an invocation:
 * long rows take all the invocations there are. A power of two. */
static uint32_t sample_threads(const device_profile *profile, uint64_t vocabulary)
{
    uint32_t threads = 1, most = MIN(profile->max_workgroup_invocations, 1024);
    if (vocabulary <= 8192)
        most = MIN(profile->workgroup_size, most);
    while (2 * threads <= most)
        threads *= 2;
    return threads;
}

static rlxvk_status sample_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_sample_options *o = &((const sample_attributes *)n->attributes)->options;
    const rlxvk_shape *logits = input_shape(l->graph, n, 1);
    uint64_t vocabulary = (uint64_t)logits->dims[logits->rank - 1];
    uint64_t rows = shape_numel(logits) / vocabulary, key = o->stream.key * GOLDEN_RATIO;
    operand state = lower_input(l, id, 0), x = lower_input(l, id, 1), y = lower_write(l, id);
    bool greedy = o->temperature < SAMPLE_GREEDY_AT;
    struct sample_args args = {.rows = (u32)rows,
                               .vocabulary = (u32)vocabulary,
                               .x_offset = x.offset,
                               .y_offset = y.offset,
                               .state_offset = state.offset,
                               .key_low = (u32)key,
                               .key_high = (u32)(key >> 32),
                               .seed_low = (u32)o->seed,
                               .seed_high = (u32)(o->seed >> 32),
                               .top_k = (u32)effective_top_k(o, vocabulary),
                               .top_p = effective_top_p(o),
                               .inverse_temperature = greedy ? 1 : 1 / o->temperature};
    dispatch d = {.kernel = KERNEL_SAMPLE,
                  .constants = {sample_threads(l->profile, vocabulary), greedy}};
    lower_groups(l, &d, rows);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){state, x, y}, 3);
}

typedef struct token {
    double scaled, probability, score;
    uint32_t index;
} token;

static int by_rank(const void *a, const void *b)
{
    const token *x = a, *y = b;
    if (x->scaled != y->scaled)
        return x->scaled > y->scaled ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* The row's tokens that can be chosen at all, scaled; returns how many. */
static size_t list_tokens(const float *z, uint64_t vocabulary, float inverse, token *tokens)
{
    size_t count = 0;
    bool infinite = false;
    for (uint64_t i = 0; i < vocabulary; i++)
        infinite = infinite || z[i] == INFINITY;
    for (uint64_t i = 0; i < vocabulary; i++)
        if (infinite ? z[i] == INFINITY : z[i] > -INFINITY)
            tokens[count++] =
                (token){.scaled = infinite ? 0 : (double)(z[i] * inverse), .index = (uint32_t)i};
    qsort(tokens, count, sizeof *tokens, by_rank);
    return count;
}

/* Keeps the shortest prefix with `top_p` of the mass; *unsure when a sum lies at the limit. */
static size_t keep_prefix(token *tokens, size_t count, double top_p, bool *unsure)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < count; i++)
        total += tokens[i].probability = exp(tokens[i].scaled - tokens[0].scaled);
    for (size_t i = 0; i < count && top_p < 1; i++) {
        sum += tokens[i].probability / total;
        *unsure = *unsure || fabs(sum - top_p) < 1e-5;
        if (sum >= top_p)
            return i + 1;
    }
    return count;
}

static double gumbel_score(const rng_source *s, uint64_t mixed, uint64_t row, const token *t)
{
    uint32_t counter[4] = {t->index / 4, (uint32_t)row, (uint32_t)s->step,
                           (uint32_t)(s->step >> 32)};
    uint32_t key[2] = {(uint32_t)mixed, (uint32_t)(mixed >> 32) ^ SAMPLE_DOMAIN}, out[4];
    philox4x32(counter, key, out);
    float v = fminf(((float)out[t->index % 4] + 0.5f) * 0x1p-32f, 1 - 0x1p-24f);
    return t->scaled - log(-log1p(-(double)v));
}

/* Index of the best score; *unsure when the runner-up is too near to tell in f32. */
static uint32_t best_token(token *tokens, size_t count, bool *unsure)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        const token *a = &tokens[i], *b = &tokens[best];
        if (a->score > b->score || (a->score == b->score && a->index < b->index))
            best = i;
    }
    for (size_t i = 0; i < count; i++)
        if (i != best &&
            tokens[best].score - tokens[i].score < 1e-4 * (1 + fabs(tokens[best].score)))
            *unsure = true;
    return tokens[best].index;
}

static uint32_t host_choice(const rlxvk_sample_options *o, const rng_source *s, const float *z,
                            uint64_t row, uint64_t vocabulary, token *tokens, bool *unsure)
{
    bool greedy = o->temperature < SAMPLE_GREEDY_AT;
    size_t count = list_tokens(z, vocabulary, greedy ? 1 : 1 / o->temperature, tokens);
    uint64_t mixed = (o->seed ? o->seed : s->seed) + o->stream.key * GOLDEN_RATIO;
    uint64_t top_k = effective_top_k(o, vocabulary);
    if (count == 0 || greedy)
        return count ? tokens[0].index : 0;
    count = MIN(count, top_k);
    count = keep_prefix(tokens, count, (double)effective_top_p(o), unsure);
    for (size_t i = 0; i < count; i++)
        tokens[i].score = gumbel_score(s, mixed, row, &tokens[i]);
    return best_token(tokens, count, unsure);
}

static rlxvk_status sample_host(const host_call *c)
{
    const rlxvk_sample_options *o = &((const sample_attributes *)c->node->attributes)->options;
    const rlxvk_shape *logits = &c->inputs[1].node->shape;
    uint64_t vocabulary = (uint64_t)logits->dims[logits->rank - 1];
    uint64_t rows = shape_numel(logits) / vocabulary;
    rng_source s = source_of(&c->inputs[0]);
    token *tokens = memory_zeroed(vocabulary, sizeof *tokens);
    if (!tokens)
        return fail_memory("sample");
    for (uint64_t row = 0; row < rows; row++) {
        bool unsure = false;
        c->out[row] = host_choice(o, &s, c->inputs[1].words + row * vocabulary, row, vocabulary,
                                  tokens, &unsure);
        if (c->bound && unsure)
            c->bound[row] = (double)vocabulary;
    }
    memory_free(tokens);
    return RLXVK_OK;
}

static void sample_describe(const node *n, text *out)
{
    const rlxvk_sample_options *o = &((const sample_attributes *)n->attributes)->options;
    text_append(out, " key=%llu temperature=%g top_k=%u top_p=%g",
                (unsigned long long)o->stream.key, (double)o->temperature, o->top_k,
                (double)o->top_p);
}

const op_family sample_family = {
    .name = "sample",
    .attribute_size = sizeof(sample_attributes),
    .infer = sample_infer,
    .lower = sample_lower,
    .host = sample_host,
    .describe = sample_describe,
};
