#version 450
/*
 * Samples one index per row of logits: temperature, top-k, top-p, then Gumbel-max. A workgroup
 * takes a row. For long rows, sample_best may have found the best token of each part.
 *
 * Every token has a place in one order: scaled logit descending, then index ascending. The largest
 * scaled logit is 0. Filters keep a prefix of this order. If the first LISTED tokens decide, which
 * a histogram tells, they are listed and sorted. Otherwise two numbers describe a prefix: the
 * smallest kept key, and the largest index kept among tokens with that key. Both are found by
 * bisection. Counts and masses are summed over the row in a fixed order. The logits are only read.
 *
 * Compilers copy a function to each of its calls, and what is done for a token AHEAD times. So the
 * row is read at few places, and one loop takes all steps of a bisection.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/random.h"
#include "lib/math.glsl"
#include "random/philox.glsl"

#define SAMPLE_THREADS 1024 /* at most */
#define LISTED         1024 /* a power of two; at least the number of invocations */
#define BINS           512 /* of the histogram: equal parts of RANGE below the largest logit */
#define RANGE          16.0
#define LOWEST_KEY     0x00800000u /* above the key of -Inf */
#define TOP_KEY        0x80000000u /* of the largest scaled logit, 0 */

layout(constant_id = 1) const bool GREEDY = false;
layout(constant_id = 2) const uint AHEAD = 1; /* logits that an invocation loads at a time */
layout(constant_id = 3) const uint PARTS = 0; /* of a row, if sample_best has found their best */
layout(push_constant) uniform block { sample_args args; };
layout(set = 0, binding = 0) restrict readonly buffer rng_state { uint state[]; };
layout(set = 0, binding = 1) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 3) restrict readonly buffer part_bests { uvec2 bests[]; };

shared uvec2 pair_scratch[SAMPLE_THREADS];
shared float mass_scratch[SAMPLE_THREADS];
shared uint bin_counts[BINS];
shared uint listed; /* number of tokens (key, index) in pair_scratch */

uint row_start;
float top; /* the row's largest logit. If it is +Inf, only such logits stay, all equal. */
#include "random/sample_order.glsl"

#define MOST uintBitsToFloat(0x7f7fffffu)

/*
 * The difference between the logit and the largest one, divided by the temperature. It is -Inf only
 * for tokens that can never be chosen. The difference is taken first, because only it matters, and
 * a logit divided by a small temperature may be beyond f32.
 */
float scaled(float z)
{
    if (is_inf(top))
        return is_inf(z) && z > 0.0 ? 0.0 : -INFINITY;
    if (is_nan(z) || is_inf(z))
        return -INFINITY;
    precise float below = max(z - top, -MOST);
    precise float s = below * args.inverse_temperature;
    return s == 0.0 ? 0.0 : max(s, -MOST);
}

/* Runs `work` with i and z for each of this invocation's tokens i below `end`. z is the token's
 * logit. */
#define EACH_TOKEN(end, work)                                                                      \
    for (uint first = gl_LocalInvocationID.x; first < (end);                                       \
         first += AHEAD * gl_WorkGroupSize.x) {                                                    \
        float logits[AHEAD];                                                                       \
        [[unroll]] for (uint n = 0; n < AHEAD; n++)                                                \
            logits[n] = x[row_start + min(first + n * gl_WorkGroupSize.x, args.vocabulary - 1u)];  \
        [[unroll]] for (uint n = 0; n < AHEAD; n++) {                                              \
            uint i = first + n * gl_WorkGroupSize.x;                                               \
            float z = logits[n];                                                                   \
            if (i < (end)) {                                                                       \
                work;                                                                              \
            }                                                                                      \
        }                                                                                          \
    }

float total_of_row(float mine)
{
    uint me = gl_LocalInvocationID.x, half_size = gl_WorkGroupSize.x / 2u;
    mass_scratch[me] = mine;
    barrier();
    for (; half_size > 0u; half_size /= 2u) {
        if (me < half_size)
            mass_scratch[me] += mass_scratch[me + half_size];
        barrier();
    }
    float result = mass_scratch[0];
    barrier();
    return result;
}

/* Counts up to 2^24 are exact in f32. */
uint count_of_row(uint mine)
{
    return uint(total_of_row(float(mine)));
}

float value_of(uint key)
{
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}

/*
 * A prefix of the order: keys above `key`, and tokens with that key whose index is at most `index`.
 */
bool is_kept(uint key, uint i, uvec2 prefix)
{
    return key > prefix.x || (key == prefix.x && i <= prefix.y);
}

/* ---- Listed ---- */

/* The bin of a scaled logit, or BINS beyond the range. A larger logit never has a higher bin. */
uint bin_of(float s)
{
    return uint(min(-s * (float(BINS) / RANGE), float(BINS)));
}

/* Replaces mass_scratch[i] by the sum up to i, for i < LISTED. */
void add_up()
{
    barrier();
    for (uint step = 1u; step < LISTED; step *= 2u) {
        for (uint e = gl_LocalInvocationID.x; e < LISTED / 2u; e += gl_WorkGroupSize.x) {
            uint past = (e / step * 2u + 1u) * step; /* start of the run's later half */
            mass_scratch[past + e % step] += mass_scratch[past - 1u];
        }
        barrier();
    }
}

/* How many of the first bins have at most LISTED tokens together. If top_k leaves all tokens, also
 * the mass of the row. */
uint bins_to_list(out float total)
{
    uint me = gl_LocalInvocationID.x, count = 0u;
    bool weighs = args.top_k >= args.vocabulary;
    float mass = 0.0;
    for (uint bin = me; bin < BINS; bin += gl_WorkGroupSize.x)
        bin_counts[bin] = 0u;
    barrier();
    EACH_TOKEN(args.vocabulary, {
        float s = scaled(z);
        uint bin = bin_of(s);
        if (bin < BINS)
            atomicAdd(bin_counts[bin], 1u);
        if (weighs && !is_inf(s))
            mass += exponential(s);
    })
    total = total_of_row(mass);
    for (uint e = me; e < LISTED; e += gl_WorkGroupSize.x)
        mass_scratch[e] = e < BINS ? float(bin_counts[e]) : 0.0;
    add_up();
    for (uint bin = me; bin < BINS; bin += gl_WorkGroupSize.x)
        count += mass_scratch[bin] <= float(LISTED) ? 1u : 0u;
    barrier();
    return count_of_row(count);
}

void list_tokens(out float total)
{
    uint me = gl_LocalInvocationID.x, bins = bins_to_list(total);
    if (me == 0u)
        listed = 0u;
    barrier();
    EACH_TOKEN(args.vocabulary, {
        float s = scaled(z);
        if (bin_of(s) < bins)
            pair_scratch[atomicAdd(listed, 1u)] = uvec2(key_of(s), i);
    })
    barrier();
    for (uint place = listed + me; place < LISTED; place += gl_WorkGroupSize.x)
        pair_scratch[place] = uvec2(0u, ~0u);
    barrier();
}

/* Bitonic sort. The order in which tokens were listed no longer matters. */
void sort_listed()
{
    for (uint run = 2u; run <= LISTED; run *= 2u)
        for (uint step = run / 2u; step > 0u; step /= 2u) {
            for (uint e = gl_LocalInvocationID.x; e < LISTED / 2u; e += gl_WorkGroupSize.x) {
                uint i = 2u * e - (e & step - 1u), j = i + step;
                uvec2 a = pair_scratch[i], b = pair_scratch[j];
                bool ahead = better(a, b) == a;
                if (ahead == ((i & run) != 0u)) {
                    pair_scratch[i] = b;
                    pair_scratch[j] = a;
                }
            }
            barrier();
        }
}

/* mass_scratch[i] = the mass of listed tokens up to i, if only the first `kept` count. */
void sum_listed(uint kept)
{
    for (uint e = gl_LocalInvocationID.x; e < LISTED; e += gl_WorkGroupSize.x)
        mass_scratch[e] = e < kept ? exponential(value_of(pair_scratch[e].x)) : 0.0;
    add_up();
}

/* How many listed tokens are kept, or 0 if the list is not enough. It is enough if it has all
 * tokens that top_k leaves, or top_p of `total`, the whole row's mass. */
uint listed_kept(float total)
{
    bool all = args.top_k >= args.vocabulary;
    if (!all && args.top_k > listed)
        return 0u;
    uint kept = min(args.top_k, listed), count = 0u;
    if (args.top_p >= 1.0)
        return kept;
    sum_listed(kept);
    float mass = mass_scratch[LISTED - 1u], wanted = args.top_p * (all ? total : mass);
    for (uint e = gl_LocalInvocationID.x; e < kept; e += gl_WorkGroupSize.x)
        count += mass_scratch[e] < wanted ? 1u : 0u;
    barrier();
    count = count_of_row(count);
    return mass < wanted ? 0u : min(count + 1u, kept);
}

/* ---- By bisection ---- */

/* Of tokens before `end` that both prefixes keep and whose key is at most `highest`: the mass, or
 * how many there are. */
float measure(uvec2 prefix, uvec2 within, uint highest, uint end, bool by_mass)
{
    float sum = 0.0;
    EACH_TOKEN(end, {
        float s = scaled(z);
        uint key = key_of(s);
        if (is_kept(key, i, prefix) && is_kept(key, i, within) && key <= highest)
            sum += by_mass ? exponential(s) : 1.0;
    })
    return total_of_row(sum);
}

/* The stages of shortest_prefix, in order: which tokens it measures. */
#define ALL_KEPT    0 /* all that `kept` keeps */
#define FROM_MIDDLE 1 /* of them, those whose key is at least the middle one; bisects the keys */
#define ABOVE_KEY   2 /* of them, those above the key that was found */
#define SAME_KEY    3 /* those with this key, up to the middle index; bisects the indices */

/* The shortest prefix within `kept` that has top_p of its mass, or top_k of its tokens. If it has
 * no more tokens, it is the result. */
uvec2 shortest_prefix(uvec2 kept, bool by_mass)
{
    uint key = 0u, low = kept.x, high = TOP_KEY;
    int stage = ALL_KEPT;
    float wanted = by_mass ? args.top_p : float(args.top_k);
    while (stage != SAME_KEY || low < high) {
        bool same = stage == SAME_KEY;
        uint half_way = (high - low) / 2u;
        uint middle = stage == ALL_KEPT ? low : stage == ABOVE_KEY ? low + 1u : high - half_way;
        middle = same ? low + half_way : middle;
        uvec2 prefix = uvec2(same ? key : middle, ~0u);
        float sum = measure(prefix, same ? prefix : kept, same ? key : ~0u,
                            same ? middle + 1u : args.vocabulary, by_mass && !same);
        bool enough = sum >= wanted;
        if (same) {
            low = enough ? low : middle + 1u;
            high = enough ? middle : high;
        } else if (stage == ABOVE_KEY) {
            key = low;
            wanted -= sum;
            if (by_mass)
                wanted = min(max(ceil(wanted / exponential(value_of(key))), 1.0),
                             float(args.vocabulary));
            low = 0u;
            high = args.vocabulary - 1u;
            stage = SAME_KEY;
        } else {
            if (stage == FROM_MIDDLE) {
                low = enough ? middle : low;
                high = enough ? high : middle - 1u;
            } else if (by_mass) {
                wanted *= sum;
            } else if (sum <= wanted) {
                return kept;
            }
            stage = low < high ? FROM_MIDDLE : ABOVE_KEY;
        }
    }
    return key == kept.x && low > kept.y ? kept : uvec2(key, low);
}

/* -ln(1 - v) of a word's fraction v, accurate for small v. */
float exponential_variate(uint word)
{
    float v = min((float(word) + 0.5) * 2.3283064365386963e-10, 0.999999940395355225);
    if (v >= 0.0625)
        return -logarithm(1.0 - v);
    float p = 0.125;
    for (int i = 7; i >= 1; i--)
        p = p * v + 1.0 / float(i);
    return p * v;
}

/* ---- Drawing ---- */

uvec2 draw_key()
{
    uint offset = args.state_offset;
    uvec2 seed = (args.seed_low | args.seed_high) != 0u
                     ? uvec2(args.seed_low, args.seed_high)
                     : uvec2(state[offset], state[offset + 1u]);
    uvec2 key = mixed_key(seed, uvec2(args.key_low, args.key_high + state[offset + 5u]));
    key.y ^= 0x53414D50u;
    return key;
}

/* The random words of tokens 4 four to 4 four + 3. */
uvec4 words_of(uint four, uint row, uvec2 key)
{
    uint offset = args.state_offset;
    return philox(uvec4(four, row, state[offset + 2u], state[offset + 3u]), key);
}

/* The score of token i with scaled logit s, and i. */
uvec2 scored(float s, uint i, uint word)
{
    return uvec2(key_of(s - logarithm(exponential_variate(word))), i);
}

uint draw_listed(uint kept, uint row)
{
    uvec2 key = draw_key(), best = uvec2(0u, ~0u);
    for (uint e = gl_LocalInvocationID.x; e < kept; e += gl_WorkGroupSize.x) {
        uint i = pair_scratch[e].y;
        uvec4 words = words_of(i / 4u, row, key);
        best = better(best, scored(value_of(pair_scratch[e].x), i, words[i % 4u]));
    }
    barrier();
    return best_of_row(best).y;
}

/* An invocation takes four tokens at a time, because they share their random words. */
uint draw(uvec2 kept, uint row)
{
    uvec2 key = draw_key(), best = uvec2(0u, ~0u);
    uint last = args.vocabulary - 1u;
    for (uint four = gl_LocalInvocationID.x; four <= last / 4u; four += gl_WorkGroupSize.x) {
        float logits[4];
        [[unroll]] for (uint n = 0; n < 4; n++)
            logits[n] = x[row_start + min(4u * four + n, last)];
        uvec4 words = words_of(four, row, key);
        [[unroll]] for (uint n = 0; n < 4; n++) {
            uint i = 4u * four + n;
            float s = scaled(logits[n]);
            if (i <= last && is_kept(key_of(s), i, kept))
                best = better(best, scored(s, i, words[n]));
        }
    }
    return best_of_row(best).y;
}

uint choose(uint row)
{
    bool counts = args.top_k < args.vocabulary, weighs = args.top_p < 1.0;
    if (counts || weighs) {
        float total;
        list_tokens(total);
        sort_listed();
        uint count = listed_kept(total);
        if (count > 0u)
            return draw_listed(count, row);
    }
    uvec2 kept = uvec2(LOWEST_KEY, ~0u);
    for (uint rule = 0u; rule < 2u; rule++)
        if (rule == 0u ? counts : weighs)
            kept = shortest_prefix(kept, rule == 1u);
    return draw(kept, row);
}

void main()
{
    uint row = group_index();
    if (row >= args.rows)
        return;
    row_start = args.x_offset + row * args.vocabulary;
    uvec2 best = uvec2(0u, ~0u);
    if (PARTS > 0u) {
        for (uint i = gl_LocalInvocationID.x; i < PARTS; i += gl_WorkGroupSize.x)
            best = better(best, bests[row * PARTS + i]);
    } else {
        EACH_TOKEN(args.vocabulary, best = better(best, uvec2(key_of(ranked(z)), i)))
    }
    best = best_of_row(best);
    uint chosen = best.x < LOWEST_KEY ? 0u : best.y;
    if (!GREEDY && best.x >= LOWEST_KEY) {
        top = value_of(best.x);
        chosen = choose(row);
    }
    if (gl_LocalInvocationID.x == 0u)
        y[args.y_offset + row] = float(chosen);
}
