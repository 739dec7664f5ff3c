#version 450
/* y[i] = a[..] op b[..] on whole numbers: exact remainders, and bitwise operations. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "elementwise/integral.glsl"
#define RESULT(p, q) integral(CODE, p, q)
#include "elementwise/pairwise.glsl"
