/*
 * Two more forms of rows whose elements are adjacent, for kernels that keep QUADS quads in each
 * lane.
 *
 * Ragged rows begin at any word: w.head words, then quads at multiples of four, then up to three
 * words. The words before and after form one more quad, of which only the first element is used. It
 * has the number ROW_EDGE and follows the other quads. Lanes 0 to 2 hold the words before, lanes 4
 * to 6 those after.
 *
 * Spans: the rows of a workgroup are adjacent in memory. They are copied as a whole between memory
 * and `span` in shared memory. Each lane reads neighbouring elements from `span`. So few rows with
 * few lanes each cause few bank conflicts. Rows have at most 16 * lanes elements.
 */
#define ROW_EDGE QUADS
const bool RAGGED = FORM == ROW_FORM_RAGGED, SPAN = FORM == ROW_FORM_SPAN;
const uint HELD = QUADS + (RAGGED ? 1u : 0u);

shared float span[SPAN ? ROW_SPAN_WORDS : 1];

uvec4 row_edge(row_work w)
{
    uint tail = w.head + ((w.end - w.head) & ~3u) + w.lane - 4u;
    uint r = w.lane < w.head ? w.lane : w.lane >= 4u && w.lane < 8u && tail < w.end ? tail : ~0u;
    return uvec4(r, uvec3(~0u));
}

/* Defines vec4 shifted_name(r, live, offset, extent), which reads words r of a vector of `extent`
 * elements. If the vector contains both aligned quads around them, they are combined from those
 * two. */
#define SHIFTED_INPUT(name)                                                                        \
    vec4 shifted_##name(uvec4 r, bvec4 live, uint offset, uint extent)                             \
    {                                                                                              \
        uint quad = offset + r.x >> 2, by = offset + r.x & 3u;                                     \
        if (!live.w || 4u * quad + 8u > offset + extent)                                           \
            return read_##name(offset + r, live, 0.0);                                             \
        vec4 a = name##4[quad], b = name##4[quad + 1u];                                            \
        vec4 odd = by == 1u ? vec4(a.yzw, b.x) : vec4(a.w, b.xyz);                                 \
        vec4 even = by == 0u ? a : vec4(a.zw, b.xy);                                               \
        return (by & 1u) != 0u ? odd : even;                                                       \
    }

/* Quad k of a lane, for rows that are quads or ragged: its indices, whether it exists, and whether
 * it exists for any lane. */
uvec4 row_rest(row_work w, uint k)
{
    return w.head + 4u * (w.lane + k * args.rows.lanes) + uvec4(0u, 1u, 2u, 3u);
}
bvec4 rest_live(uvec4 r, uint end)
{
    return bvec4(r.w < end);
}
bool row_goes_on(row_work w, uint k)
{
    return w.head + 4u * k * args.rows.lanes + 3u < w.end;
}

/* The number of neighbouring elements of a row that a lane takes. */
uint span_each()
{
    return args.rows.extent + args.rows.lanes - 1u >> findMSB(args.rows.lanes);
}

/* Completes w for its form: the words before the first quad, or the end of the lane's elements. */
row_work row_formed(row_work w, uint offset)
{
    if (RAGGED)
        w.head = min((0u - offset - w.start) & 3u, w.end);
    if (SPAN)
        w.end = min((w.lane + 1u) * span_each(), w.end);
    return w;
}

uint span_first()
{
    return group_index() * row_slots() * args.rows.extent;
}

uint span_count()
{
    uint rows = group_index() * row_slots();
    rows = min(max(args.rows.outputs, rows) - rows, row_slots());
    return rows * args.rows.extent;
}

vec4 span_read(uvec4 at, bvec4 live, float none)
{
    vec4 v = vec4(none);
    at -= span_first();
    if (live.x)
        v.x = span[at.x];
    if (live.y)
        v.y = span[at.y];
    if (live.z)
        v.z = span[at.z];
    if (live.w)
        v.w = span[at.w];
    return v;
}

void span_write(uvec4 at, bvec4 live, vec4 v)
{
    at -= span_first();
    if (live.x)
        span[at.x] = v.x;
    if (live.y)
        span[at.y] = v.y;
    if (live.z)
        span[at.z] = v.z;
    if (live.w)
        span[at.w] = v.w;
}

/* The words of the span that the thread copies. */
uvec4 span_words(uint k)
{
    return gl_LocalInvocationID.x + gl_WorkGroupSize.x * (4u * k + uvec4(0u, 1u, 2u, 3u));
}

/* Defines void span_load(), which copies the words of `name` to the span. */
#define SPAN_LOAD(name)                                                                            \
    void span_load()                                                                               \
    {                                                                                              \
        uint first = span_first(), count = span_count();                                           \
        vec4 v[QUADS];                                                                             \
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {                                             \
            uvec4 i = span_words(k);                                                               \
            v[k] = read_##name(args.name##_offset + first + i, lessThan(i, uvec4(count)), 0.0);    \
        }                                                                                          \
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {                                             \
            uvec4 i = span_words(k);                                                               \
            span_write(first + i, lessThan(i, uvec4(count)), v[k]);                                \
        }                                                                                          \
        barrier();                                                                                 \
    }

/* Defines void span_store(), which copies the span to the words of `name`. It waits until every
 * lane has written its elements. */
#define SPAN_STORE(name)                                                                           \
    void span_store()                                                                              \
    {                                                                                              \
        uint first = span_first(), count = span_count();                                           \
        barrier();                                                                                 \
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {                                             \
            uvec4 i = span_words(k);                                                               \
            bvec4 live = lessThan(i, uvec4(count));                                                \
            write_##name(args.name##_offset + first + i, live, span_read(first + i, live, 0.0));   \
        }                                                                                          \
    }
