/*
 * For kernels whose invocations take 4 elements each. The elements are one workgroup size apart, so
 * that neighbouring invocations access neighbouring elements. All loads come before any store,
 * because the compiler may not move a load across a store to memory that may alias. Indices past
 * the last element load the last one again and are not stored.
 */
uvec4 four_elements()
{
    uint step = gl_WorkGroupSize.x, first = group_index() * step * 4 + gl_LocalInvocationID.x;
    return uvec4(first, first + step, first + 2 * step, first + 3 * step);
}

/* Arguments of a vec4 or uvec4 constructor. */
#define LOAD_FOUR(buffer, at) buffer[(at).x], buffer[(at).y], buffer[(at).z], buffer[(at).w]

#define STORE_FOUR(buffer, offset, i, count, v)                                                    \
    if ((i).x < (count))                                                                           \
        buffer[(offset) + (i).x] = (v).x;                                                          \
    if ((i).y < (count))                                                                           \
        buffer[(offset) + (i).y] = (v).y;                                                          \
    if ((i).z < (count))                                                                           \
        buffer[(offset) + (i).z] = (v).z;                                                          \
    if ((i).w < (count))                                                                           \
        buffer[(offset) + (i).w] = (v).w;
