#version 450
/* Moments of the chunks of long rows, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/norm_partial_rows.glsl"
