#version 450
/* Moments of the chunks of channels, for every device. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "train/batch_norm_moments_rows.glsl"
