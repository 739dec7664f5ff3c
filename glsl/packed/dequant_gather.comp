#version 450
/* dequant_gather.glsl for the formats of group common: Q8_0, Q4_K, Q5_K, Q6_K. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define DEQUANT_GROUP DEQUANT_COMMON
#include "args/packed.h"
#include "packed/dequant_gather.glsl"
