#version 450
/* Moments of the chunks of channels, with subgroup shuffles. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define ROW_SUBGROUPS
#include "train/batch_norm_moments_rows.glsl"
