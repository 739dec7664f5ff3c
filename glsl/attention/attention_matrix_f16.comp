#version 450
#pragma use_vulkan_memory_model
/* attention_matrix.glsl for f16 operands. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define ELEMENT      float16_t
#define pack_pair(v) packHalf2x16(v)
#include "attention/attention_matrix.glsl"
