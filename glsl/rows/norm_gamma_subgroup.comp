#version 450
/* Column sums for the gradient of a norm's gamma, with subgroup shuffles. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define ROW_SUBGROUPS
#include "rows/norm_gamma_rows.glsl"
