/* Gradients of state scans and of linear attention. */
#ifndef RLXVK_ARGS_SEQUENCE_BACKWARD_H
#define RLXVK_ARGS_SEQUENCE_BACKWARD_H

#include "args/types.h"

/* `work` holds states [segments, batch, heads, width, size] as words, starting at *_at. They are
 * the states at the start of each segment, the gradients at its end, and the products of its
 * decays. */
struct state_scan_backward_args {
    u32 batch, steps, heads, width, size;
    u32 segments, segment_steps; /* segments of the time; steps of all but the last segment */
    u32 chunk;                   /* steps between two stored states */
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset, dy_offset;
    u32 start_at, end_at; /* STATE_SCAN_ZERO: the states are zeros */
    u32 scratch_at;       /* stored states, by workgroup */
    /* Offsets of dx (followed by ddelta), db and dc, da, ddt: in the result, or in work if they are
     * partial sums. Then the offset of the initial state's gradient, STATE_SCAN_ZERO if there is
     * none. */
    u32 channels_at, vectors_at, rates_at, steps_at, initial_at;
};

struct state_scan_segment_args {
    u32 batch, steps, heads, width, size;
    u32 segments, segment_steps;
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset, dy_offset;
    u32 start_at, end_at, decay_at;
};

struct state_scan_join_args {
    u32 states, segments; /* states: the words of one state, over all batches */
    u32 before_offset, after_offset;
    u32 start_at, end_at, decay_at;
};

#define STATE_SCAN_ZERO 0xffffffffu /* instead of an offset: the states are zeros */

struct linear_attention_backward_args { /* sizes as in linear_attention_args */
    u32 batch, steps, heads, queries, key_width, value_width;
    u32 chunk;
    f32 scale; /* of the result */
    u32 q_offset, k_offset, v_offset, g_offset, beta_offset, dy_offset;
    /* Offsets in work: v minus its prediction for every step; the initial state; the gradient of
     * the final state (STATE_SCAN_ZERO: zeros); the stored states, by workgroup. */
    u32 rest_at, start_at, end_at, scratch_at;
    /* Offsets of dq and dk, dg and dbeta: in the result, or in work if they are partial sums. If
     * the decay is by key, dg is at decays_at, and gates_at has dbeta only. Then those of dv and of
     * the state's gradient. */
    u32 vectors_at, gates_at, decays_at, values_at, initial_at;
};

#endif
