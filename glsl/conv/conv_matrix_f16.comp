#version 450
#pragma use_vulkan_memory_model
/* conv_matrix.glsl for f16 operands. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_GOOGLE_include_directive : require
#define ELEMENT float16_t
#include "conv/conv_matrix.glsl"
