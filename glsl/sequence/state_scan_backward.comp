#version 450
/*
 * Gradients of a state scan, for a tile of channels by state numbers over a segment of the time.
 * LANES_C x LANES_K invocations own OWN_C x OWN_K of the tile each, every lanes-th one.
 *
 * The first passes go forward and keep the state at the beginning of every chunk. The other passes
 * take the chunks from the last to the first. They recompute the states of a chunk, keep them, and
 * walk back. With h' = exp(delta a) h, the state decayed by step t:
 *
 *   G += dy c,  dc = sum dy (h' + delta b x),  dx = delta sum G b,  db = sum G delta x,
 *   ddelta = sum G (a h' + b x),  da += G delta h',  G = exp(delta a) G.
 *
 * Sums over k and over channels go through shared memory in a fixed order. Sums shared with other
 * tiles or segments are partial, and another kernel adds them up. An invocation reads only the kept
 * states that it wrote itself.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/math.glsl"
#include "args/sequence.h"
#include "args/sequence_backward.h"

layout(constant_id = 1) const uint KIND = STATE_SCAN_SELECTIVE;
layout(constant_id = 2) const uint LANES_C = 32;
layout(constant_id = 3) const uint LANES_K = 4;
layout(constant_id = 4) const uint OWN_C = 4;
layout(constant_id = 5) const uint OWN_K = 4;
/* Whether other tiles, or segments, share the sums. */
layout(constant_id = 6) const bool CHANNEL_PARTS = false;
layout(constant_id = 7) const bool VECTOR_PARTS = false;
layout(constant_id = 8) const bool RATE_PARTS = false;
layout(push_constant) uniform block { state_scan_backward_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer steps { float delta[]; };
layout(set = 0, binding = 2) restrict readonly buffer decays { float a[]; };
layout(set = 0, binding = 3) restrict readonly buffer inputs { float b[]; };
layout(set = 0, binding = 4) restrict readonly buffer outputs { float c[]; };
layout(set = 0, binding = 5) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 6) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 7) restrict buffer scratch { float work[]; };

const bool BY_HEAD = KIND == STATE_SCAN_MAMBA2; /* delta and a */
const uint THREADS = LANES_C * LANES_K;
const uint OWN = OWN_C * OWN_K;
/* Number of values that an invocation contributes. Sums over k: dx and ddelta by channel. Sums over
 * channels: db and dc by k and, if delta belongs to heads, all its parts of ddelta. */
const uint OVER_K = OWN_C * (BY_HEAD ? 1u : 2u);
const uint OVER_C = OWN_K * 2u + (BY_HEAD ? 1u : 0u);
shared float parts[(OVER_K + OVER_C) * THREADS];

float state[OWN], gradient[OWN], rate[OWN], rate_sum[OWN];
float step_x[OWN_C], step_delta[OWN_C], step_dy[OWN_C], step_b[OWN_K], step_c[OWN_K];

struct place {
    uint batch_row, head, segment;
    uint channel, k;   /* of the tile's first element, in its head */
    uint tile, tiles;  /* of the head */
    uint tile_c, tile_k, tiles_c;
    uint lane_c, lane_k;
};

place find_place()
{
    place at;
    uint tiles_k = (args.size + LANES_K * OWN_K - 1u) / (LANES_K * OWN_K), group = group_index();
    at.tiles_c = (args.width + LANES_C * OWN_C - 1u) / (LANES_C * OWN_C);
    at.tiles = at.tiles_c * tiles_k;
    at.tile = group % at.tiles;
    at.tile_c = at.tile % at.tiles_c;
    at.tile_k = at.tile / at.tiles_c;
    group /= at.tiles;
    at.head = group % args.heads;
    at.batch_row = group / args.heads % args.batch;
    at.segment = group / args.heads / args.batch;
    at.channel = at.tile_c * LANES_C * OWN_C;
    at.k = at.tile_k * LANES_K * OWN_K;
    at.lane_c = gl_LocalInvocationID.x % LANES_C;
    at.lane_k = gl_LocalInvocationID.x / LANES_C;
    return at;
}

uint channel_of(place at, uint i)
{
    return at.channel + at.lane_c + i * LANES_C;
}
uint k_of(place at, uint j)
{
    return at.k + at.lane_k + j * LANES_K;
}
bool is_live(place at, uint i, uint j)
{
    return channel_of(at, i) < args.width && k_of(at, j) < args.size;
}

/* Index of a state number in tensor order. `from` is the number of channels before this batch row
 * and head. */
uint state_index(place at, uint from, uint i, uint j)
{
    return (from + channel_of(at, i)) * args.size + k_of(at, j);
}

void load_rates(place at)
{
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        [[unroll]] for (uint j = 0u; j < OWN_K; j++) {
            uint from = BY_HEAD ? at.head : channel_of(at, i) * args.size + k_of(at, j);
            rate[i * OWN_K + j] = is_live(at, i, j) ? a[args.a_offset + from] : 0.0;
            rate_sum[i * OWN_K + j] = 0.0;
        }
}

/* Loads the state at the segment's start and the gradient at its end. */
void load_ends(place at)
{
    uint from = ((at.segment * args.batch + at.batch_row) * args.heads + at.head) * args.width;
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        [[unroll]] for (uint j = 0u; j < OWN_K; j++) {
            uint index = state_index(at, from, i, j), o = i * OWN_K + j;
            bool given = args.start_at != STATE_SCAN_ZERO && is_live(at, i, j);
            state[o] = given ? work[args.start_at + index] : 0.0;
            gradient[o] = given ? work[args.end_at + index] : 0.0;
        }
}

/* Reads x, delta, dy, b and c of a token. Elements past the ends are 0. */
void read_step(place at, uint token)
{
    uint row = (token * args.heads + at.head) * args.width;
    uint vector = (token * args.heads + at.head) * args.size;
    [[unroll]] for (uint i = 0u; i < OWN_C; i++) {
        uint channel = channel_of(at, i);
        bool live = channel < args.width;
        uint delta_at = BY_HEAD ? token * args.heads + at.head : row + channel;
        step_x[i] = live ? x[args.x_offset + row + channel] : 0.0;
        step_delta[i] = live ? delta[args.delta_offset + delta_at] : 0.0;
        step_dy[i] = live ? dy[args.dy_offset + row + channel] : 0.0;
    }
    [[unroll]] for (uint j = 0u; j < OWN_K; j++) {
        uint k = k_of(at, j);
        step_b[j] = k < args.size ? b[args.b_offset + vector + k] : 0.0;
        step_c[j] = k < args.size ? c[args.c_offset + vector + k] : 0.0;
    }
}

/* One step forward. */
void advance(place at, uint token)
{
    read_step(at, token);
    float shared_decay = BY_HEAD ? exponential(step_delta[0] * rate[0]) : 0.0;
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        [[unroll]] for (uint j = 0u; j < OWN_K; j++) {
            uint o = i * OWN_K + j;
            if (is_live(at, i, j)) {
                float kept = BY_HEAD ? shared_decay : exponential(step_delta[i] * rate[o]);
                state[o] = fma(step_delta[i] * step_x[i], step_b[j], kept * state[o]);
            }
        }
}

/* ---- Kept states ---- */

uint slot_at(uint slots, uint slot)
{
    return args.scratch_at + ((group_index() * slots + slot) * OWN) * THREADS +
           gl_LocalInvocationID.x;
}

void keep_state(uint at)
{
    [[unroll]] for (uint o = 0u; o < OWN; o++)
        work[at + o * THREADS] = state[o];
}

void recall_state(uint at)
{
    [[unroll]] for (uint o = 0u; o < OWN; o++)
        state[o] = work[at + o * THREADS];
}

/* ---- Sums ---- */

void add_channels(place at, uint token, uint v, uint lane, float sum)
{
    uint i = BY_HEAD ? v : v / 2u, channel = at.channel + lane + i * LANES_C;
    uint count = args.batch * args.steps * args.heads * args.width;
    uint index = (BY_HEAD ? 0u : v % 2u * count) +
                 (token * args.heads + at.head) * args.width + channel;
    if (channel >= args.width)
        return;
    if (CHANNEL_PARTS)
        work[args.channels_at + at.tile_k * (BY_HEAD ? count : 2u * count) + index] = sum;
    else
        y[args.channels_at + index] = sum;
}

void add_vectors(place at, uint token, uint v, uint lane, float sum)
{
    uint rows = args.batch * args.steps * args.heads, count = rows * args.size;
    uint k = at.k + lane + v / 2u * LANES_K;
    if (BY_HEAD && v == OWN_K * 2u) {
        work[args.steps_at + (at.tile * LANES_K + lane) * rows + token * args.heads + at.head] =
            sum;
        return;
    }
    uint index = v % 2u * count + (token * args.heads + at.head) * args.size + k;
    if (k >= args.size)
        return;
    if (VECTOR_PARTS)
        work[args.vectors_at + at.tile_c * 2u * count + index] = sum;
    else
        y[args.vectors_at + index] = sum;
}

/* Lanes begin their sums at different terms to avoid bank conflicts. */
void join(place at, uint token)
{
    for (uint o = gl_LocalInvocationID.x; o < OVER_C * LANES_K; o += THREADS) {
        uint v = o / LANES_K, lane = o % LANES_K;
        float sum = 0.0;
        for (uint i = 0u; i < LANES_C; i++)
            sum += parts[(OVER_K + v) * THREADS + lane * LANES_C + (i + o) % LANES_C];
        add_vectors(at, token, v, lane, sum);
    }
    for (uint o = gl_LocalInvocationID.x; o < OVER_K * LANES_C; o += THREADS) {
        uint v = o / LANES_C, lane = o % LANES_C;
        float sum = 0.0;
        for (uint i = 0u; i < LANES_K; i++)
            sum += parts[v * THREADS + i * LANES_C + lane];
        add_channels(at, token, v, lane, sum);
    }
}

/*
 * One step back for one number of the state. `kept` is its decay by this step, and g is G + dy c.
 */
void retreat_one(uint i, uint j, float kept, inout vec2 over_k, inout vec2 over_c)
{
    uint o = i * OWN_K + j;
    float before = kept * state[o], scaled = step_delta[i] * step_x[i];
    float now = fma(scaled, step_b[j], before), g = fma(step_dy[i], step_c[j], gradient[o]);
    over_k += vec2(g * step_b[j], rate[o] * (g * before));
    over_c += vec2(g * scaled, step_dy[i] * now);
    rate_sum[o] = fma(step_delta[i], g * before, rate_sum[o]);
    gradient[o] = kept * g;
}

/* Walks one step back. The step's operands are already read, and `state` is the state before the
 * step. The sums are left to join. */
void retreat(place at)
{
    uint thread = gl_LocalInvocationID.x;
    float shared_decay = BY_HEAD ? exponential(step_delta[0] * rate[0]) : 0.0, all = 0.0;
    vec2 over_k[OWN_C], over_c[OWN_K];
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        over_k[i] = vec2(0.0);
    [[unroll]] for (uint j = 0u; j < OWN_K; j++)
        over_c[j] = vec2(0.0);
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        [[unroll]] for (uint j = 0u; j < OWN_K; j++)
            if (is_live(at, i, j)) {
                float kept =
                    BY_HEAD ? shared_decay : exponential(step_delta[i] * rate[i * OWN_K + j]);
                retreat_one(i, j, kept, over_k[i], over_c[j]);
            }
    [[unroll]] for (uint i = 0u; i < OWN_C; i++) {
        float rest = fma(step_x[i], over_k[i].x, over_k[i].y);
        all += rest;
        parts[(BY_HEAD ? i : 2u * i) * THREADS + thread] = step_delta[i] * over_k[i].x;
        if (!BY_HEAD)
            parts[(2u * i + 1u) * THREADS + thread] = rest;
    }
    [[unroll]] for (uint j = 0u; j < OWN_K; j++) {
        parts[(OVER_K + 2u * j) * THREADS + thread] = over_c[j].x;
        parts[(OVER_K + 2u * j + 1u) * THREADS + thread] = over_c[j].y;
    }
    if (BY_HEAD)
        parts[(OVER_K + 2u * OWN_K) * THREADS + thread] = all;
}

/* Walks back over the steps of a chunk. `state` is the state before its last step. The other states
 * are in slots from `kept` on. */
void walk_back(place at, uint token, uint slots, uint kept, uint count)
{
    read_step(at, token + count - 1u);
    for (uint t = count; t-- > 0u;) {
        retreat(at);
        if (t > 0u) { /* load the next step while invocations wait for each other */
            recall_state(slot_at(slots, kept + t - 1u));
            read_step(at, token + t - 1u);
        }
        barrier();
        join(at, token + t);
        barrier();
    }
}

/* ---- Results at the segment's beginning ---- */

void store_rates(place at)
{
    uint row = at.segment * args.batch + at.batch_row, count = args.width * args.size;
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        [[unroll]] for (uint j = 0u; j < OWN_K; j++) {
            uint index = state_index(at, 0u, i, j);
            if (!is_live(at, i, j))
                continue;
            if (RATE_PARTS)
                work[args.rates_at + row * count + index] = rate_sum[i * OWN_K + j];
            else
                y[args.rates_at + index] = rate_sum[i * OWN_K + j];
        }
}

/* The gradient of a head's rate: one number for the whole tile. */
void store_head_rate(place at)
{
    uint row = at.segment * args.batch + at.batch_row, thread = gl_LocalInvocationID.x;
    float sum = 0.0;
    [[unroll]] for (uint o = 0u; o < OWN; o++)
        sum += rate_sum[o];
    parts[thread] = sum;
    for (uint others = THREADS / 2u; others > 0u; others /= 2u) {
        barrier();
        if (thread < others)
            parts[thread] += parts[thread + others];
    }
    if (thread == 0u)
        work[args.rates_at + (row * at.tiles + at.tile) * args.heads + at.head] = parts[0];
}

void store_initial(place at)
{
    uint from = (at.batch_row * args.heads + at.head) * args.width;
    [[unroll]] for (uint i = 0u; i < OWN_C; i++)
        [[unroll]] for (uint j = 0u; j < OWN_K; j++)
            if (is_live(at, i, j))
                y[args.initial_at + state_index(at, from, i, j)] = gradient[i * OWN_K + j];
}

void main()
{
    place at = find_place();
    if (at.segment >= args.segments)
        return;
    uint first = at.segment * args.segment_steps;
    uint count = min(args.segment_steps, args.steps - first);
    uint token = at.batch_row * args.steps + first, chunks = (count + args.chunk - 1u) / args.chunk;
    uint slots = (args.segment_steps + args.chunk - 1u) / args.chunk + args.chunk;
    load_rates(at);
    load_ends(at);
    for (uint pass = 1u; pass < 2u * chunks; pass++) {
        bool back = pass >= chunks;
        uint n = back ? 2u * chunks - pass - 1u : pass - 1u;
        uint begin = n * args.chunk, end = min(begin + args.chunk, count);
        if (back && pass > chunks)
            recall_state(slot_at(slots, n));
        else if (!back)
            keep_state(slot_at(slots, n));
        for (uint t = begin; t < end - (back ? 1u : 0u); t++) {
            if (back)
                keep_state(slot_at(slots, slots - args.chunk + t - begin));
            advance(at, token + t);
        }
        if (back)
            walk_back(at, token + begin, slots, slots - args.chunk, end - begin);
    }
    if (BY_HEAD)
        store_head_rate(at);
    else
        store_rates(at);
    if (args.initial_at != STATE_SCAN_ZERO && at.segment == 0u)
        store_initial(at);
}
