/*
 * Shared by every kernel: types of the argument structs, workgroup size by specialization, linear
 * indices, NaN tests on bits.
 */
#include "args/types.h"

layout(local_size_x_id = 0) in;

/* Linear workgroup and invocation index of a grid folded by lower_groups. */
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
