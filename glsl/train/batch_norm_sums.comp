#version 450
/* Sums for the gradients of batch norm, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "train/batch_norm_sums_rows.glsl"
