#version 450
/* dequant_gather.glsl for the formats of group large: Q2_K, Q3_K, Q8_K, TQ1_0, TQ2_0. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define DEQUANT_GROUP DEQUANT_LARGE
#include "args/packed.h"
#include "packed/dequant_gather.glsl"
