#version 450
/* dequant_gather.glsl for the formats of group grid: IQ1, IQ2, IQ3. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define DEQUANT_GROUP DEQUANT_GRID
#include "args/packed.h"
#include "packed/dequant_gather.glsl"
