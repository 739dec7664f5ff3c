#version 450
/* y[i] = a[..] ? b[..], with ? a comparison: 1.0 or 0.0. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "elementwise/arithmetic.glsl"
#define RESULT(p, q) (holds(CODE, p, q) ? 1.0 : 0.0)
#include "elementwise/pairwise.glsl"
