#version 450
/* Batch regions of up to 32 steps: all ops. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#define REGION_LEVEL  REGION_ALL
#define REGION_LENGTH 32
#include "elementwise/region_batch.glsl"
