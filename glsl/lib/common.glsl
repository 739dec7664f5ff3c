/*
 * Shared by every kernel: the types of the argument structs, the workgroup size as a specialization
 * constant, linear indices, and tests for NaN and infinity on the bits.
 */
#include "args/types.h"

layout(local_size_x_id = 0) in;

/* Linear workgroup and invocation indices of a grid that lower_groups folded into three
 * dimensions. */
uint group_index()
{
    return gl_WorkGroupID.x +
           gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}
uint global_index()
{
    return group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

bool is_nan(float v)
{
    return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u;
}
bool is_inf(float v)
{
    return (floatBitsToUint(v) & 0x7fffffffu) == 0x7f800000u;
}

#define NAN_VALUE uintBitsToFloat(0x7fc00000u)
#define INFINITY  uintBitsToFloat(0x7f800000u)
