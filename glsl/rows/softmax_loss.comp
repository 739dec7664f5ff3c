#version 450
/* Cross entropy of rows with labels, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/softmax_loss_rows.glsl"
