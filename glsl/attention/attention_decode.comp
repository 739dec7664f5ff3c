#version 450
/* Attention for few queries; see attention_decode.glsl. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) readonly buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 2) readonly buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 1) readonly buffer k_halves { uvec2 k2[]; };
layout(set = 0, binding = 2) readonly buffer v_halves { uvec2 v2[]; };
layout(set = 0, binding = 3) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly buffer target { float y[]; };
layout(set = 0, binding = 4) writeonly buffer target_quads { vec4 y4[]; };
layout(set = 0, binding = 5) coherent buffer parts { float partial[]; };
layout(set = 0, binding = 5) coherent buffer parts_quads { vec4 partial4[]; };
layout(set = 0, binding = 6) coherent restrict buffer counts { uint arrivals[]; };

#include "attention/attention_decode.glsl"
