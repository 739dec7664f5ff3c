#version 450
/*
 * State-space scans. Each channel has a state of `size` numbers: h = exp(delta a) h + delta x b, y
 * = sum c h. `lanes` invocations share a channel and keep KEEP (constant 2) numbers each in
 * registers. If these are not all numbers, further passes over the steps add to y. The lanes' parts
 * of y are joined every STATE_SCAN_STEPS steps. Constant 1 says whether a and delta belong to
 * channels or to heads. If constant 3 is true, the kernel reads an initial state and writes the
 * final one. `after` may be `before`.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"

layout(constant_id = 1) const uint KIND = STATE_SCAN_SELECTIVE;
layout(constant_id = 2) const uint KEEP = 16;
layout(constant_id = 3) const bool CARRY = false;
layout(push_constant) uniform block { state_scan_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer steps { float delta[]; };
layout(set = 0, binding = 2) restrict readonly buffer decays { float a[]; };
layout(set = 0, binding = 3) restrict readonly buffer inputs { float b[]; };
layout(set = 0, binding = 4) restrict readonly buffer outputs { float c[]; };
layout(set = 0, binding = 5) buffer target { float y[]; };
layout(set = 0, binding = 6) readonly buffer before_state { float before[]; };
layout(set = 0, binding = 7) writeonly buffer after_state { float after[]; };

shared float partial[STATE_SCAN_STEPS][STATE_SCAN_THREADS];

float state[KEEP];
float rate[KEEP];

struct place {
    uint batch_row, tile; /* tile: first channel of the workgroup */
    uint channel, head;   /* of this invocation; the last one again past the end */
    uint lane, lanes, first; /* first: index of this lane's first state number */
    uint channels;
};

void load_state(place at)
{
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint k = at.first + i * at.lanes;
        bool live = k < args.size;
        uint index = ((at.batch_row * at.channels) + at.channel) * args.size + k;
        state[i] = CARRY && live ? before[args.before_offset + index] : 0.0;
        uint rate_at = KIND == STATE_SCAN_MAMBA2 ? at.head : at.channel * args.size + k;
        rate[i] = live ? a[args.a_offset + rate_at] : 0.0;
    }
}

void store_state(place at)
{
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint k = at.first + i * at.lanes;
        uint index = ((at.batch_row * at.channels) + at.channel) * args.size + k;
        if (k < args.size)
            after[args.after_offset + index] = state[i];
    }
}

/* delta and x of step t. Past the end they are those of the last step. */
vec2 read_step(place at, uint t)
{
    uint row = at.batch_row * args.steps + min(t, args.steps - 1u);
    uint delta_at = KIND == STATE_SCAN_MAMBA2 ? row * args.heads + at.head
                                              : row * at.channels + at.channel;
    return vec2(delta[args.delta_offset + delta_at],
                x[args.x_offset + row * at.channels + at.channel]);
}

/* Advances this lane's state by one step, and returns its part of y. */
float advance(place at, uint t, vec2 values)
{
    float step_size = values.x, scaled = values.x * values.y;
    uint vector = ((at.batch_row * args.steps + t) * args.heads + at.head) * args.size;
    float shared_decay = KIND == STATE_SCAN_MAMBA2 ? exp(step_size * rate[0]) : 0.0;
    float sum = 0.0;
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint k = at.first + i * at.lanes;
        if (k < args.size) {
            float kept = KIND == STATE_SCAN_MAMBA2 ? shared_decay : exp(step_size * rate[i]);
            state[i] = kept * state[i] + scaled * b[args.b_offset + vector + k];
            sum = fma(c[args.c_offset + vector + k], state[i], sum);
        }
    }
    return sum;
}

void store(place at, uint t, uint channel, float value, bool more)
{
    uint to = args.y_offset + (at.batch_row * args.steps + t) * at.channels + channel;
    y[to] = more ? y[to] + value : value;
}

/* Joins the lanes' parts of steps t .. t + count - 1. */
void join_lanes(place at, uint t, uint count, bool more)
{
    uint columns = STATE_SCAN_THREADS / at.lanes;
    for (uint o = gl_LocalInvocationID.x; o < count * columns; o += STATE_SCAN_THREADS) {
        uint step_index = o / columns, column = o - step_index * columns;
        float sum = 0.0;
        for (uint lane = 0u; lane < at.lanes; lane++)
            sum += partial[step_index][lane * columns + column];
        if (at.tile + column < at.channels)
            store(at, t + step_index, at.tile + column, sum, more);
    }
}

void scan(place at, bool live)
{
    bool more = at.first >= at.lanes * KEEP;
    vec2 values, next = read_step(at, 0u); /* read one step ahead */
    for (uint t = 0u; t < args.steps; t += STATE_SCAN_STEPS) {
        uint count = min(STATE_SCAN_STEPS, args.steps - t);
        for (uint s = 0u; s < count; s++) {
            values = next;
            next = read_step(at, t + s + 1u);
            float part = advance(at, t + s, values);
            if (at.lanes > 1u)
                partial[s][gl_LocalInvocationID.x] = part;
            else if (live)
                store(at, t + s, at.channel, part, more);
        }
        if (at.lanes > 1u) {
            barrier();
            join_lanes(at, t, count, more);
            barrier();
        }
    }
}

void main()
{
    place at;
    at.lanes = args.lanes;
    at.channels = args.heads * args.width;
    uint columns = STATE_SCAN_THREADS / at.lanes;
    uint tiles = (at.channels + columns - 1u) / columns, group = group_index();
    at.batch_row = group / tiles;
    at.tile = group % tiles * columns;
    at.lane = gl_LocalInvocationID.x / columns;
    uint channel = at.tile + gl_LocalInvocationID.x % columns;
    bool live = channel < at.channels;
    at.channel = min(channel, at.channels - 1u);
    at.head = KIND == STATE_SCAN_MAMBA2 ? at.channel / args.width : 0u;
    if (at.batch_row >= args.batch)
        return;
    for (uint from = 0u; from < args.size; from += at.lanes * KEEP) {
        at.first = from + at.lane;
        load_state(at);
        scan(at, live);
        if (CARRY && live)
            store_state(at);
    }
}
