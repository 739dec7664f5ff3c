#version 450
/* The gradient of cross entropy of rows with labels, with subgroup shuffles. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define ROW_SUBGROUPS
#define LOSS_BACKWARD
#include "rows/softmax_loss_rows.glsl"
