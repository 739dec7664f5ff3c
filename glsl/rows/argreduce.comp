#version 450
/* Argmax and argmin of rows, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/argreduce_rows.glsl"
