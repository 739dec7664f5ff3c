#version 450
/* dequant_matvec.glsl by integers for the formats of group common: Q8_0, Q4_K, Q5_K, Q6_K. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define DEQUANT_INTEGERS
#define DEQUANT_GROUP DEQUANT_COMMON
#include "args/packed.h"
#include "packed/dequant_matvec.glsl"
