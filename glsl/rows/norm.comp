#version 450
/* Norms of short rows, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/norm_rows.glsl"
