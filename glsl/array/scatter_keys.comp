#version 450
/* Computes the keys for a sort. A key is the row that an index selects, or the number of rows if
 * there is none. With ELEMENTS, it is the element of y for each element of the updates, or the
 * number of elements. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const bool ELEMENTS = false;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint keys[]; };
#include "array/scatter.glsl"

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    keys[i] = ELEMENTS ? min(target_of(i, false), args.lines * args.rows * args.inner)
                       : min(row_of(i), args.rows);
}
