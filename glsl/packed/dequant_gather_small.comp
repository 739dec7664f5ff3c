#version 450
/* dequant_gather.glsl for the formats of group small: one scale for 16 or 32 elements. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define DEQUANT_GROUP DEQUANT_SMALL
#include "args/packed.h"
#include "packed/dequant_gather.glsl"
