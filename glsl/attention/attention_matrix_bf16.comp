#version 450
#pragma use_vulkan_memory_model
/* attention_matrix.glsl for bf16 operands. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define ELEMENT      bfloat16_t
#define pack_pair(v) pack32(bfloat16BitsToUintEXT(bf16vec2(v)))
#include "attention/attention_matrix.glsl"
