#version 450
/* y[i] = a[..] op b[..] by whole numbers: exact remainders, and operations on bits. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "elementwise/integral.glsl"
#define RESULT(p, q) integral(CODE, p, q)
#include "elementwise/pairwise.glsl"
