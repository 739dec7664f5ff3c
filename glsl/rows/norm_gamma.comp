#version 450
/* Column sums for the gradient of a norm's gamma, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/norm_gamma_rows.glsl"
