#version 450
/* y[i] = a[..] op b[..]. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "elementwise/arithmetic.glsl"
#define RESULT(p, q) combine(CODE, p, q)
#include "elementwise/pairwise.glsl"
