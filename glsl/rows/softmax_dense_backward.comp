#version 450
/* The gradients of cross entropy with dense targets, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define LOSS_BACKWARD
#include "rows/softmax_dense_rows.glsl"
