/*
 * Four elements of a row at a time: neighbours, moved as one vec4, where the kernel's VECTORS says
 * that the row is whole quads at multiples of four; else elements that lie `lanes` apart, so that
 * neighbouring lanes move neighbouring words.
 */
uvec4 row_quad(uint lane, uint lanes, uint k)
{
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

/* Defines vec4 name(at, live, none): elements `at` of a buffer seen as words and, where `whole`, as
 * quads; `none` for those that are not live. */
#define QUAD_READER(name, words, quads, whole)                                                     \
    vec4 name(uvec4 at, bvec4 live, float none)                                                    \
    {                                                                                              \
        vec4 v = vec4(none);                                                                       \
        if (whole) {                                                                               \
            if (live.x)                                                                            \
                v = quads[at.x >> 2];                                                              \
            return v;                                                                              \
        }                                                                                          \
        if (live.x)                                                                                \
            v.x = words[at.x];                                                                     \
        if (live.y)                                                                                \
            v.y = words[at.y];                                                                     \
        if (live.z)                                                                                \
            v.z = words[at.z];                                                                     \
        if (live.w)                                                                                \
            v.w = words[at.w];                                                                     \
        return v;                                                                                  \
    }

#define QUAD_WRITER(name, words, quads)                                                            \
    void name(uvec4 at, bvec4 live, vec4 v)                                                        \
    {                                                                                              \
        if (VECTORS) {                                                                             \
            if (live.x)                                                                            \
                quads[at.x >> 2] = v;                                                              \
            return;                                                                                \
        }                                                                                          \
        if (live.x)                                                                                \
            words[at.x] = v.x;                                                                     \
        if (live.y)                                                                                \
            words[at.y] = v.y;                                                                     \
        if (live.z)                                                                                \
            words[at.z] = v.z;                                                                     \
        if (live.w)                                                                                \
            words[at.w] = v.w;                                                                     \
    }
