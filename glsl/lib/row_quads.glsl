/*
 * Reads and writes four elements of a row at a time. If FORM is ROW_FORM_QUADS, they are neighbours
 * and move as one vec4; then rows must be whole quads at multiples of four. Otherwise they lie
 * `lanes` apart, so that neighbouring lanes access neighbouring words. Kernels that keep rows in
 * registers include row_forms.glsl, which adds two forms.
 */
const bool VECTORS = FORM == ROW_FORM_QUADS;
#ifndef ROW_EDGE
const bool RAGGED = false;
#endif

uvec4 row_quad(row_work w, uint k)
{
    uint lanes = args.rows.lanes;
    if (VECTORS)
        return 4u * (w.lane + k * lanes) + uvec4(0u, 1u, 2u, 3u);
#ifdef ROW_EDGE
    if (SPAN)
        return w.lane * span_each() + 4u * k + uvec4(0u, 1u, 2u, 3u);
    if (RAGGED)
        return k == ROW_EDGE ? row_edge(w) : row_rest(w, k);
#endif
    return w.lane + lanes * (4u * k + uvec4(0u, 1u, 2u, 3u));
}

/* Element i of a lane, four for each row_quad. ~0 if a ragged row does not have that quad. */
uint row_element(row_work w, uint i)
{
    uint lanes = args.rows.lanes, j = i & 3u, quad = 4u * (w.lane + (i >> 2) * lanes);
    uint r = VECTORS ? quad + j : w.lane + lanes * i;
#ifdef ROW_EDGE
    if (SPAN)
        r = w.lane * span_each() + i;
    if (RAGGED) {
        r = w.head + quad + 3u < w.end ? w.head + quad + j : ~0u;
        if (i >> 2 == ROW_EDGE)
            r = j == 0u ? row_edge(w).x : ~0u;
    }
#endif
    return r;
}

float sum_of_quad(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* Which elements of a row_quad are below `end`. For a quad of a ragged row, all or none are. */
bvec4 row_live(uvec4 r, uint end)
{
    if (VECTORS)
        return bvec4(r.x < end);
    if (RAGGED && r.w != ~0u)
        return bvec4(r.w < end);
    return lessThan(r, uvec4(end));
}

#define QUAD_READ(name, quads)                                                                     \
    vec4 read_##name(uvec4 at, bvec4 live, float none)                                             \
    {                                                                                              \
        vec4 v = vec4(none);                                                                       \
        if ((quads) && (VECTORS || RAGGED) && live.w)                                              \
            return name##4[at.x >> 2];                                                             \
        if ((quads) && VECTORS)                                                                    \
            return v;                                                                              \
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

#define QUAD_WRITE(name)                                                                           \
    void write_##name(uvec4 at, bvec4 live, vec4 v)                                                \
    {                                                                                              \
        if ((VECTORS || RAGGED) && live.w) {                                                       \
            name##4[at.x >> 2] = v;                                                                \
            return;                                                                                \
        }                                                                                          \
        if (VECTORS)                                                                               \
            return;                                                                                \
        if (live.x)                                                                                \
            name[at.x] = v.x;                                                                      \
        if (live.y)                                                                                \
            name[at.y] = v.y;                                                                      \
        if (live.z)                                                                                \
            name[at.z] = v.z;                                                                      \
        if (live.w)                                                                                \
            name[at.w] = v.w;                                                                      \
    }

/* Declares a buffer as words `name` and, if `quads`, also as quads `name`4. Defines vec4
 * read_name(at, live, none), which reads elements `at`; elements that are not live are `none`. */
#define QUAD_INPUT(slot, name, quads)                                                              \
    layout(set = 0, binding = slot) readonly buffer input_##name { float name[]; };                \
    layout(set = 0, binding = slot) readonly buffer input_##name##4 { vec4 name##4[]; };           \
    QUAD_READ(name, quads)

/* The same for a buffer that is written by void write_name(at, live, v). */
#define QUAD_OUTPUT(slot, name)                                                                    \
    layout(set = 0, binding = slot) writeonly buffer target_##name { float name[]; };              \
    layout(set = 0, binding = slot) writeonly buffer target_##name##4 { vec4 name##4[]; };         \
    QUAD_WRITE(name)

/* The same for a buffer that is written and may be read again. */
#define QUAD_KEPT(slot, name)                                                                      \
    layout(set = 0, binding = slot) buffer target_##name { float name[]; };                        \
    layout(set = 0, binding = slot) buffer target_##name##4 { vec4 name##4[]; };                   \
    QUAD_READ(name, true)                                                                          \
    QUAD_WRITE(name)
