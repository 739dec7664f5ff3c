#version 450
#pragma use_vulkan_memory_model
/* dequant_panel.glsl on f16 operands for the formats of group large. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_GOOGLE_include_directive : require
#define DEQUANT_GROUP DEQUANT_LARGE
#define ELEMENT       float16_t
#include "args/packed.h"
#include "packed/dequant_panel.glsl"
