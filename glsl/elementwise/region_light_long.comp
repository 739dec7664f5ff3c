#version 450
/* Regions of up to 32 steps with up to 7 inputs: arithmetic, comparisons, selections. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#define REGION_LEVEL  REGION_LIGHT
#define REGION_LENGTH 32
#define REGION_WIDTH  7
#include "elementwise/region.glsl"
