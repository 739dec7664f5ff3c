#version 450
/* Input gradient of norms of short rows, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/norm_backward_rows.glsl"
