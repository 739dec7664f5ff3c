#version 450
/* Cross entropy of rows with dense targets, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/softmax_dense_rows.glsl"
