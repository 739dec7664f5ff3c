#version 450
/*
 * Attention for few new rows over KV caches. It is attention_decode.glsl with k and v in the
 * caches. The rows from the position on are new. They are read from their source and rotated when
 * they are read, as q is. The first workgroup of the row blocks of a chunk also writes the chunk's
 * new rows into the caches. No workgroup reads them from there.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 11) const uint ROTATED = 0; /* rotated columns of a head */
layout(constant_id = 12) const bool NEIGHBOURS = false;
layout(constant_id = 16) const uint NEW_ROWS = 1; /* for each sequence */
layout(constant_id = 17) const uint K_ROW = 1; /* stride between new rows, in elements */
layout(constant_id = 18) const uint V_ROW = 1;
layout(push_constant) uniform block { attention_step_args step_args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) buffer k_source { float k[]; };
layout(set = 0, binding = 2) buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 2) buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 1) buffer k_halves { uvec2 k2[]; };
layout(set = 0, binding = 2) buffer v_halves { uvec2 v2[]; };
layout(set = 0, binding = 3) readonly buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly buffer target { float y[]; };
layout(set = 0, binding = 4) writeonly buffer target_quads { vec4 y4[]; };
layout(set = 0, binding = 5) coherent buffer parts { float partial[]; };
layout(set = 0, binding = 5) coherent buffer parts_quads { vec4 partial4[]; };
layout(set = 0, binding = 6) coherent restrict buffer counts { uint arrivals[]; };
layout(set = 0, binding = 7) readonly buffer new_k_source { float new_k[]; };
layout(set = 0, binding = 8) readonly buffer new_v_source { float new_v[]; };
layout(set = 0, binding = 7) readonly buffer new_k_quads { vec4 new_k4[]; };
layout(set = 0, binding = 8) readonly buffer new_v_quads { vec4 new_v4[]; };
layout(set = 0, binding = 9) readonly buffer cosines { float cos_table[]; };
layout(set = 0, binding = 10) readonly buffer sines { float sin_table[]; };
layout(set = 0, binding = 9) readonly buffer cosine_pairs { vec2 cos_table2[]; };
layout(set = 0, binding = 10) readonly buffer sine_pairs { vec2 sin_table2[]; };
layout(set = 0, binding = 9) readonly buffer cosine_quads { vec4 cos_table4[]; };
layout(set = 0, binding = 10) readonly buffer sine_quads { vec4 sin_table4[]; };

#define args  step_args.attention
#define table step_args.table
#include "attention/attention_rotation.glsl"
DEFINE_ROTATED(rotated_q, q)
DEFINE_ROTATED(rotated_k, new_k)
DEFINE_ROTATED_QUAD(rotated_quad_of_q, q4)
DEFINE_ROTATED_QUAD(rotated_quad_of_k, new_k4)

#define APPEND
#include "attention/attention_decode.glsl"
