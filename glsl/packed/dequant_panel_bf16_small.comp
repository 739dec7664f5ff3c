#version 450
#pragma use_vulkan_memory_model
/* dequant_panel.glsl on bf16 operands for the formats of group small. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_bfloat16 : require
#extension GL_GOOGLE_include_directive : require
#define DEQUANT_GROUP DEQUANT_SMALL
#define ELEMENT       bfloat16_t
#define IN_BF16
#include "args/packed.h"
#include "packed/dequant_panel.glsl"
