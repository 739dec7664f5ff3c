/*
 * sample draws one token for each row, by the Gumbel-max method, from the tokens that top_k and
 * top_p leave. The random number of a token is a Philox word that depends only on the row and the
 * token. So any order of reduction gives the same result. It is always Philox, even if the run uses
 * another backend.
 */
#include "args/random.h"
#include "constants/random.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/random/random.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define SAMPLE_DOMAIN    0x53414D50u
#define SAMPLE_GREEDY_AT 1e-6f

/* ---- Building ---- */

rlxvk_tensor rlxvk_sample(rlxvk_graph *g, rlxvk_tensor logits, const rlxvk_sample_options *options)
{
    sample_attributes a = {0};
    if (!op_take(g, "sample", SIZED(rlxvk_sample_options), options, &a.options))
        return RLXVK_NONE;
    if (!a.options.stream.has_key)
        a.options.stream.key = random_ops(g);
    a.options.stream.has_key = true;
    if (logits.id == 0)
        return op_build(g, OP_sample, &logits, 1, &a);
    return op_build(g, OP_sample, (rlxvk_tensor[]){random_state(g), logits}, 2, &a);
}

/* ---- Infer ---- */

static rlxvk_status sample_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_sample_options *o = &((sample_attributes *)attributes)->options;
    const rlxvk_shape *logits = input_shape(g, n, 1);
    char buffer[SHAPE_TEXT];
    if (logits->rank == 0 || logits->dims[logits->rank - 1] < 1)
        return op_fail(n, RLXVK_E_SHAPE, "logits %s; takes a last axis of at least one token",
                       shape_text(logits, buffer));
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

/* ---- Lower ---- */

/* top_p = 0 is the default and means no limit. If top_p < 0, only the best token stays. */
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

/* A power of two. Long rows use as many invocations as possible, because a row is read about forty
 * times and software drivers end loops after 65,535 rounds of an invocation. */
static uint32_t sample_threads(const device_profile *profile, uint64_t vocabulary)
{
    uint32_t most = MIN(profile->max_workgroup_invocations, 1024);
    if (vocabulary <= 8192)
        most = MIN(profile->workgroup_size, most);
    return power_of_two_within(most);
}

#define PART_TOKENS 4096 /* tokens of a part, at least */
#define MOST_ROWS   64   /* with more, the rows keep a device busy by themselves */

/* The number of parts of a row whose best tokens are found in parallel; 0 if one workgroup reads
 * the whole row. */
static uint32_t sample_parts(uint64_t rows, uint64_t vocabulary)
{
    return rows > MOST_ROWS || vocabulary < 2 * PART_TOKENS
               ? 0
               : (uint32_t)MIN(vocabulary / PART_TOKENS, 64);
}

static rlxvk_status emit_bests(lowering *l, const struct sample_args *args, uint32_t parts,
                               operand x, operand *out)
{
    dispatch d = {.kernel = KERNEL_SAMPLE_BEST};
    rlxvk_status status;
    TRY(lower_temporary(l, 2 * sizeof(uint32_t) * args->rows * parts, out));
    SET_CONSTANTS(&d, {LOCAL_SIZE, sample_threads(l->profile, args->vocabulary)},
                  {SAMPLE_BEST_PARTS, parts});
    lower_groups(l, &d, (uint64_t)args->rows * parts);
    TRY(lower_emit(l, &d, args, sizeof *args, (operand[]){x, *out}, 2));
    out->access = ACCESS_READ;
error:
    return status;
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
    uint32_t parts = sample_parts(rows, vocabulary);
    operand bests = x;
    dispatch d = {.kernel = KERNEL_SAMPLE};
    rlxvk_status status;
    if (parts)
        TRY(emit_bests(l, &args, parts, x, &bests));
    SET_CONSTANTS(&d, {LOCAL_SIZE, sample_threads(l->profile, vocabulary)}, {SAMPLE_GREEDY, greedy},
                  {SAMPLE_AHEAD, l->profile->portable ? 1 : 8}, {SAMPLE_PARTS, parts});
    lower_groups(l, &d, rows);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){state, x, y, bests}, 4));
error:
    return status;
}

/* ---- Host ---- */

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

/* Lists the tokens of the row that can be drawn, and returns how many there are. They are ordered
 * by differences as f32 computes them. */
static size_t list_tokens(const float *z, uint64_t vocabulary, float inverse, token *tokens)
{
    size_t count = 0;
    float top = -INFINITY;
    for (uint64_t i = 0; i < vocabulary; i++)
        top = fmaxf(top, z[i]);
    for (uint64_t i = 0; i < vocabulary; i++) {
        if (isinf(top) ? z[i] != INFINITY : !(z[i] > -INFINITY))
            continue;
        float below = isinf(top) ? 0 : fmaxf(z[i] - top, -FLT_MAX);
        tokens[count++] = (token){.scaled = fmaxf(below * inverse, -FLT_MAX), .index = (uint32_t)i};
    }
    qsort(tokens, count, sizeof *tokens, by_rank);
    return count;
}

/* Keeps the shortest prefix that has at least `top_p` of the probability. If a sum is too near to
 * the limit, *unsure is set. */
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
    random_philox(counter, key, out);
    float v = fminf(((float)out[t->index % 4] + 0.5f) * 0x1p-32f, 1 - 0x1p-24f);
    return t->scaled - log(-log1p(-(double)v));
}

/* The index of the best score. If another score is too near to tell them apart in f32, *unsure is
 * set. */
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
    uint64_t mixed = random_mixed(s, o->seed ? o->seed : s->seed, o->stream.key);
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
    rng_source s = random_source_of(&c->inputs[0]);
    token *tokens = memory_zeroed(vocabulary, sizeof *tokens);
    if (!tokens)
        return status_fail_memory("sample");
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

/* ---- The family ---- */

/* A random number depends on the index of the row and of the token, not on other rows. */
static uint64_t sample_bucket(bucket_call *c)
{
    if (bucket_span(c, 0) != BUCKET_FIXED)
        return bucket_refuse(c, "its seed depends on the rows");
    return bucket_rows(c, 1u << (input_shape(c->graph, c->node, 1)->rank - 1), 1u << 1);
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
    .execution = {.lower = sample_lower, .host = sample_host},
    .rows = {.bucket = sample_bucket},
    .describe = sample_describe,
};
