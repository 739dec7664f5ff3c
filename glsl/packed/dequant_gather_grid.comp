#version 450
/* dequant_gather.glsl for the formats of group grid: IQ1, IQ2, IQ3. */
#extension GL_GOOGLE_include_directive : require
#define DEQUANT_GROUP DEQUANT_GRID
#include "args/packed.h"
#include "packed/dequant_gather.glsl"
