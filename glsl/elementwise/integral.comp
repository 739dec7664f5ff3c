#version 450
/* y[i] = a[..] op b[..] by whole numbers: exact remainders, and operations on bits. */
#extension GL_GOOGLE_include_directive : require
#define RESULT(p, q) integral(CODE, p, q)
#define INTEGRAL
#include "elementwise/pairwise.glsl"
