/* Shared by the kernels that sort a workgroup's elements. Each thread has RADIX_ITEMS of them. */
#extension GL_EXT_control_flow_attributes : require
#include "args/movement.h"

#define EACH_ITEM(j) [[unroll]] for (uint j = 0u; j < RADIX_ITEMS; j++)

const uint THREADS = gl_WorkGroupSize.x;
const uint BLOCK = RADIX_ITEMS * THREADS;

uint item[RADIX_ITEMS], place[RADIX_ITEMS];
