#version 450
#pragma use_vulkan_memory_model
/* conv_matrix.glsl for bfloat16 operands. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_bfloat16 : require
#extension GL_GOOGLE_include_directive : require
#define ELEMENT bfloat16_t
#define IN_BF16
#include "conv/conv_matrix.glsl"
