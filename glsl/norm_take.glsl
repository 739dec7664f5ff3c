/*
 * The elements of a row (of one chunk of it) that a lane keeps in registers, QUADS times four; what
 * they deviate from, and by how much. A kept sum comes without a bias, and is stored last: until
 * then other lanes may read what it overwrites.
 */
layout(set = 0, binding = NORM_SUMS_BINDING) writeonly buffer kept { float sums[]; };
layout(set = 0, binding = NORM_SUMS_BINDING) writeonly buffer kept4 { vec4 sums4[]; };
QUAD_WRITER(write_sum, sums, sums4)
ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(float, squares_of_lanes, scratch_of_squares, row_add)

vec4 v[QUADS];

/* Elements of quad k within the chunk that begins at `first`; those below `end` exist. */
uvec4 element_of(uint first, uint lane, uint k)
{
    return first + row_quad(lane, args.lanes, k);
}

float pivot = 0.0, offset = 0.0; /* their sum is the mean */

/* An element that every lane knows: the first. Without a barrier before the row is written, it must
 * not be read by all. */
float first_element(uint start, uint first, uint end)
{
#ifdef ROW_SUBGROUPS
    if (args.lanes <= gl_SubgroupSize)
        return subgroupShuffle(v[0].x, gl_SubgroupInvocationID & ~(args.lanes - 1u));
#endif
    uvec4 r = uvec4(first);
    bvec4 live = bvec4(first < end);
    return with_bias(residual_sum(start + r * args.inner, live), r, live).x;
}

void take(uint start, uint first, uint lane, uint end)
{
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = element_of(first, lane, k);
        bvec4 live = row_live(r, end);
        v[k] = with_bias(residual_sum(start + r * args.inner, live), r, live);
    }
}

vec4 deviation(uint k)
{
    return IS_RMS ? v[k] : (v[k] - pivot) - offset;
}

/* `count`: elements in all. */
void find_mean(uint start, uint first, uint lane, uint end, float count)
{
    float sum = 0.0;
    pivot = first_element(start, first, end);
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        bvec4 live = row_live(element_of(first, lane, k), end);
        vec4 d = mix(vec4(0.0), v[k] - pivot, live);
        sum += (d.x + d.y) + (d.z + d.w);
    }
    offset = sum_of_lanes(sum, lane, args.lanes, args.lane_stride) / count;
}

float sum_of_squares(uint first, uint lane, uint end)
{
    float sum = 0.0;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        bvec4 live = row_live(element_of(first, lane, k), end);
        vec4 d = mix(vec4(0.0), deviation(k), live);
        sum += dot(d, d);
    }
    return squares_of_lanes(sum, lane, args.lanes, args.lane_stride);
}

void keep_sum(uint start, uint first, uint lane, uint end)
{
    if ((FLAGS & NORM_KEEPS_SUM) == 0u)
        return;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = element_of(first, lane, k);
        write_sum(args.sum_offset + start + r * args.inner, row_live(r, end), v[k]);
    }
}
