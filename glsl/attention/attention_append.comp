#version 450
/*
 * Appends new rows of k (rotated) and v to the KV caches, from the position on. It runs before the
 * attention over the caches. An invocation writes one element, or a pair if halves are packed. Rows
 * outside the cache are dropped, and so are rows of batches that have no entry in the cache.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 1) const uint ROTATED = 0; /* rotated columns of a head */
layout(constant_id = 2) const bool NEIGHBOURS = false;
layout(constant_id = 3) const uint K_HELD = ATTENTION_WORDS;
layout(constant_id = 4) const uint V_HELD = ATTENTION_WORDS;
layout(push_constant) uniform block { attention_append_args args; };
layout(set = 0, binding = 0) writeonly restrict buffer k_target { float k[]; };
layout(set = 0, binding = 1) writeonly restrict buffer v_target { float v[]; };
layout(set = 0, binding = 0) writeonly restrict buffer k_pairs { uint k1[]; };
layout(set = 0, binding = 1) writeonly restrict buffer v_pairs { uint v1[]; };
layout(set = 0, binding = 2) readonly buffer place { float position[]; };
layout(set = 0, binding = 3) readonly buffer new_k_source { float new_k[]; };
layout(set = 0, binding = 4) readonly buffer new_v_source { float new_v[]; };
layout(set = 0, binding = 5) readonly buffer cosines { float cos_table[]; };
layout(set = 0, binding = 6) readonly buffer sines { float sin_table[]; };

#define table args.table
#include "attention/attention_rotation.glsl"
DEFINE_ROTATED(rotated_k, new_k)

const bool HALF_SUBNORMALS = false;
#include "lib/half.glsl"
#include "lib/index.glsl"
#include "lib/narrow.glsl"

const bool PAIRWISE = K_HELD == ATTENTION_HALVES || V_HELD == ATTENTION_HALVES;

#define DEFINE_STORE(name, held, words, pairs)                                                     \
    void name(uint at, vec2 x)                                                                     \
    {                                                                                              \
        if (held != ATTENTION_WORDS)                                                               \
            x = vec2(to_f16(x.x), to_f16(x.y));                                                    \
        if (held == ATTENTION_HALVES) {                                                            \
            pairs[at >> 1] = half_bits(x.x) | half_bits(x.y) << 16;                                \
            return;                                                                                \
        }                                                                                          \
        words[at] = x.x;                                                                           \
        if (PAIRWISE)                                                                              \
            words[at + 1u] = x.y;                                                                  \
    }
DEFINE_STORE(store_k, K_HELD, k, k1)
DEFINE_STORE(store_v, V_HELD, v, v1)

void main()
{
    uint e = global_index() * (PAIRWISE ? 2u : 1u), d = e % args.width, head = e / args.width;
    if (e >= args.numel)
        return;
    uint token = head / args.heads, b = token / args.rows;
    uint from = args.position_offset + (args.placed != 0u ? 2u * b : b);
    float first = nearest_integer(position[from]), entry = float(b);
    if (args.placed != 0u)
        entry = nearest_integer(position[from + 1u]);
    if (is_nan(first) || first < 0.0 || first >= float(args.capacity) || is_nan(entry) ||
        entry < 0.0 || entry >= float(args.entries))
        return;
    uint row = uint(first) + token % args.rows, h = head % args.heads, column = h * args.width;
    if (row >= args.capacity)
        return;
    uint at = ((uint(entry) * args.heads + h) * args.capacity + row) * args.width + d;
    uint k_from = args.new_k + token * args.new_k_row + column;
    uint v_from = args.new_v + token * args.new_v_row + column + d;
    uint behind = PAIRWISE ? 1u : 0u;
    store_k(args.k_offset + at,
            vec2(rotated_k(k_from, token, d), rotated_k(k_from, token, d + behind)));
    store_v(args.v_offset + at, vec2(new_v[v_from], new_v[v_from + behind]));
}
