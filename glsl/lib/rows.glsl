/*
 * Rows shared by the lanes of a workgroup. A tensor is [outer, extent, inner]; a row has `extent`
 * elements, `inner` apart, and may be cut into chunks. Result o counts (outer, chunk, inner),
 * inner fastest. Thread t works on slot `row_slot` with lane `row_lane`; lanes of a row are
 * lane_stride threads apart, so that neighbouring threads read neighbouring words.
 */
#define ROW_THREADS 256

/* With subgroups (their size divides the workgroup's) threads are counted subgroup by subgroup. */
uint row_thread()
{
#ifdef ROW_SUBGROUPS
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
    return gl_LocalInvocationID.x;
#endif
}

uint row_lane(uint lanes, uint lane_stride)
{
    return row_thread() / lane_stride & (lanes - 1u);
}

/*
 * The result this thread works on; beyond the last one there is no work, but there still are
 * barriers to reach.
 */
uint row_output(uint lanes, uint lane_stride)
{
    uint slot = lane_stride == 1u ? row_thread() / lanes : row_thread() & (lane_stride - 1u);
    return group_index() * (gl_WorkGroupSize.x / lanes) + slot;
}

/* Element 0 of the row of result o. */
uint row_start(uint o, uint inner, uint extent, uint chunks)
{
    return o / inner / chunks * extent * inner + o % inner;
}

/* Which chunk of its row result o is. */
uint row_chunk(uint o, uint inner, uint chunks)
{
    return o / inner % chunks;
}

/*
 * Defines type name(value, lane, lanes, lane_stride): `combine` over the lanes of each row, lower
 * lanes on its left; every lane gets the same result. Call it in uniform control flow, and once:
 * its scratch is not free again. With subgroups lane_stride must be 1.
 */
#ifdef ROW_SUBGROUPS
#define ROW_BUTTERFLY(type, combine, value, at, lanes)                                             \
    for (uint reach = (lanes) / 2u; reach > 0u; reach /= 2u) {                                     \
        type other = subgroupShuffleXor(value, reach);                                             \
        value = ((at)&reach) != 0u ? combine(other, value) : combine(value, other);                \
    }
#define ROW_TREE(type, name, scratch, combine)                                                     \
    shared type scratch[ROW_THREADS];                                                              \
    type name(type value, uint lane, uint lanes, uint lane_stride)                                 \
    {                                                                                              \
        uint within = min(lanes, gl_SubgroupSize), parts = lanes / within;                         \
        ROW_BUTTERFLY(type, combine, value, lane, within)                                          \
        if (parts == 1u)                                                                           \
            return value;                                                                          \
        if (gl_SubgroupInvocationID == 0u)                                                         \
            scratch[gl_SubgroupID] = value;                                                        \
        barrier();                                                                                 \
        uint first = gl_SubgroupID & ~(parts - 1u), least = min(parts, within);                    \
        uint part = gl_SubgroupInvocationID & (least - 1u);                                        \
        value = scratch[first + part];                                                             \
        for (uint next = part + least; next < parts; next += least)                                \
            value = combine(value, scratch[first + next]);                                         \
        ROW_BUTTERFLY(type, combine, value, part, least)                                           \
        return value;                                                                              \
    }
#else
#define ROW_TREE(type, name, scratch, combine)                                                     \
    shared type scratch[ROW_THREADS];                                                              \
    type name(type value, uint lane, uint lanes, uint lane_stride)                                 \
    {                                                                                              \
        uint t = gl_LocalInvocationID.x;                                                           \
        if (lanes == 1u)                                                                           \
            return value;                                                                          \
        scratch[t] = value;                                                                        \
        barrier();                                                                                 \
        for (uint half_way = lanes / 2u; half_way > 0u; half_way /= 2u) {                          \
            if (lane < half_way)                                                                   \
                scratch[t] = combine(scratch[t], scratch[t + half_way * lane_stride]);             \
            barrier();                                                                             \
        }                                                                                          \
        return scratch[t - lane * lane_stride];                                                    \
    }
#endif

float row_add(float a, float b)
{
    return a + b;
}
vec2 row_add(vec2 a, vec2 b)
{
    return a + b;
}

/* The larger; NaN if either is. */
float row_larger(float a, float b)
{
    return a > b || is_nan(a) ? a : b;
}

/*
 * high + low += v without the rounding error (Knuth's two-sum). Once high is not finite, low means
 * nothing.
 */
void add_compensated(inout float high, inout float low, float v)
{
    precise float sum = high + v;
    precise float part = sum - high;
    precise float error = (high - (sum - part)) + (v - part);
    high = sum;
    low += error;
}

float compensated_value(float high, float low)
{
    return is_nan(high) || is_inf(high) ? high : high + low;
}
