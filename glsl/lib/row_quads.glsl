/*
 * Four elements of a row at a time: neighbours, moved as one vec4, where the kernel's VECTORS says
 * that the row is whole quads at multiples of four; else elements that lie `lanes` apart, so that
 * neighbouring lanes move neighbouring words.
 */
uvec4 row_quad(uint lane, uint k)
{
    uint lanes = args.rows.lanes;
    if (VECTORS)
        return 4u * (lane + k * lanes) + uvec4(0u, 1u, 2u, 3u);
    return lane + lanes * (4u * k + uvec4(0u, 1u, 2u, 3u));
}

/* Which of a row_quad lie below `end`. */
bvec4 row_live(uvec4 r, uint end)
{
    if (VECTORS)
        return bvec4(r.x < end);
    return lessThan(r, uvec4(end));
}

/* A buffer seen as words, `name`, and, where `whole`, as quads, `name`4; defines
 * vec4 read_name(at, live, none): its elements `at`, `none` for those that are not live. */
#define QUAD_INPUT(slot, name, whole)                                                              \
    layout(set = 0, binding = slot) readonly buffer input_##name { float name[]; };                \
    layout(set = 0, binding = slot) readonly buffer input_##name##4 { vec4 name##4[]; };           \
    vec4 read_##name(uvec4 at, bvec4 live, float none)                                             \
    {                                                                                              \
        vec4 v = vec4(none);                                                                       \
        if (whole) {                                                                               \
            if (live.x)                                                                            \
                v = name##4[at.x >> 2];                                                            \
            return v;                                                                              \
        }                                                                                          \
        if (live.x)                                                                                \
            v.x = name[at.x];                                                                      \
        if (live.y)                                                                                \
            v.y = name[at.y];                                                                      \
        if (live.z)                                                                                \
            v.z = name[at.z];                                                                      \
        if (live.w)                                                                                \
            v.w = name[at.w];                                                                      \
        return v;                                                                                  \
    }

/* The same of a buffer that void write_name(at, live, v) writes. */
#define QUAD_OUTPUT(slot, name)                                                                    \
    layout(set = 0, binding = slot) writeonly buffer target_##name { float name[]; };              \
    layout(set = 0, binding = slot) writeonly buffer target_##name##4 { vec4 name##4[]; };         \
    void write_##name(uvec4 at, bvec4 live, vec4 v)                                                \
    {                                                                                              \
        if (VECTORS) {                                                                             \
            if (live.x)                                                                            \
                name##4[at.x >> 2] = v;                                                            \
            return;                                                                                \
        }                                                                                          \
        if (live.x)                                                                                \
            name[at.x] = v.x;                                                                      \
        if (live.y)                                                                                \
            name[at.y] = v.y;                                                                      \
        if (live.z)                                                                                \
            name[at.z] = v.z;                                                                      \
        if (live.w)                                                                                \
            name[at.w] = v.w;                                                                      \
    }
