#version 450
#pragma use_vulkan_memory_model
/* matrix_direct.glsl for bf16 operands. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_GOOGLE_include_directive : require
#define ELEMENT       bfloat16_t
#define PAIR          bf16vec2
#define pair_of(word) uintBitsToBFloat16EXT(unpack16(word))
#include "matmul/matrix_direct.glsl"
