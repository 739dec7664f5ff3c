#version 450
/* The gradient of cross entropy of rows with labels, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define LOSS_BACKWARD
#include "rows/softmax_loss_rows.glsl"
