#version 450
/* Cumulative sums of rows, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/cumsum_rows.glsl"
