/*
 * Reductions over rows, with the lanes of a workgroup. A tensor is [outer, extent, inner]. A row
 * has `extent` elements, `inner` apart, and may be cut into chunks. Result o counts (outer, chunk,
 * inner), inner fastest. Each thread works on one row of its workgroup, as lane row_lane(). The
 * lanes of a row are lane_stride threads apart, so that neighbouring threads read neighbouring
 * words. The includer declares its push constants `args` first; args.rows is a row_args.
 */
#define ROW_THREADS 256

/* With subgroups, threads are numbered subgroup by subgroup. The subgroup size must divide the
 * workgroup size. */
uint row_thread()
{
#ifdef ROW_SUBGROUPS
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
    return gl_LocalInvocationID.x;
#endif
}

uint row_lane()
{
    return row_thread() >> findMSB(args.rows.lane_stride) & args.rows.lanes - 1u;
}

/* The index of element 0 of the row of result o, if rows are cut into `chunks`. */
uint row_start(uint o, uint chunks)
{
    if (args.rows.inner == 1u && chunks == 1u)
        return o * args.rows.extent;
    return o / args.rows.inner / chunks * args.rows.extent * args.rows.inner + o % args.rows.inner;
}

/* The work of a thread: elements first to end of the row that starts at `start`, for result o. Past
 * the last result there is no work (end is 0), but the thread must still reach the barriers. */
struct row_work {
    uint lane, o, start, first, end;
    uint head; /* used by row_forms.glsl */
    bool live;
};

/* The number of rows that a workgroup handles at a time. */
uint row_slots()
{
    return gl_WorkGroupSize.x >> findMSB(args.rows.lanes);
}

#if defined(ROW_TURNS) || defined(ROW_VOTES)
shared uint row_turns; /* whether a row of the workgroup is processed again */
#endif

row_work row_whole()
{
    row_work w;
#ifdef ROW_VOTES
    if (row_thread() == 0u)
        row_turns = 0u;
#endif
    uint lanes = findMSB(args.rows.lanes), stride = args.rows.lane_stride;
    uint slot = stride == 1u ? row_thread() >> lanes : row_thread() & (stride - 1u);
    w.lane = row_lane();
    w.o = group_index() * row_slots() + slot;
    w.live = w.o < args.rows.outputs;
    w.first = 0u;
    w.head = 0u;
    w.end = w.live ? args.rows.extent : 0u;
    w.start = row_start(w.o, 1u);
    return w;
}

/* The index, within its row, of the chunk that belongs to result o. */
uint row_chunk(uint o)
{
    return o / args.rows.inner % args.rows.chunks;
}

/* The uncut row that contains the chunk of result o. */
uint row_of_chunk(uint o)
{
    return o / args.rows.inner / args.rows.chunks * args.rows.inner + o % args.rows.inner;
}

/* Restricts w to the chunk of its result. */
row_work row_cut(row_work w)
{
    w.first = row_chunk(w.o) * args.rows.chunk_length;
    w.end = w.live ? min(w.first + args.rows.chunk_length, args.rows.extent) : 0u;
    w.start = row_start(w.o, args.rows.chunks);
    return w;
}

row_work row_part()
{
    return row_cut(row_whole());
}

/* The result of the first chunk in the row of result o. The results of its other chunks follow,
 * `inner` apart. */
uint row_first_chunk(uint o)
{
    return o / args.rows.inner / args.rows.chunks * args.rows.chunks * args.rows.inner +
           o % args.rows.inner;
}

/*
 * Defines type name(value, lane), which reduces with `combine` over the lanes of each row; lower
 * lanes are the left operand. Every lane gets the same result. Call it in uniform control flow. Its
 * scratch memory may be reused only after another tree. With subgroups, lane_stride must be 1.
 */
#ifdef ROW_SUBGROUPS
#define ROW_BUTTERFLY(type, combine, value, at, lanes)                                             \
    for (uint reach = (lanes) / 2u; reach > 0u; reach /= 2u) {                                     \
        type other = subgroupShuffleXor(value, reach);                                             \
        value = ((at)&reach) != 0u ? combine(other, value) : combine(value, other);                \
    }
#define ROW_TREE(type, name, scratch, combine)                                                     \
    shared type scratch[ROW_THREADS];                                                              \
    type name(type value, uint lane)                                                               \
    {                                                                                              \
        uint within = min(args.rows.lanes, gl_SubgroupSize), parts = args.rows.lanes / within;     \
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
    type name(type value, uint lane)                                                               \
    {                                                                                              \
        uint t = gl_LocalInvocationID.x, lanes = args.rows.lanes, apart = args.rows.lane_stride;   \
        if (lanes == 1u)                                                                           \
            return value;                                                                          \
        scratch[t] = value;                                                                        \
        barrier();                                                                                 \
        for (uint half_way = lanes / 2u; half_way > 0u; half_way /= 2u) {                          \
            if (lane < half_way)                                                                   \
                scratch[t] = combine(scratch[t], scratch[t + half_way * apart]);                   \
            barrier();                                                                             \
        }                                                                                          \
        return scratch[t - lane * apart];                                                          \
    }
#endif

/* Does the reduction over the lanes of a row use a barrier? */
bool row_has_barriers()
{
#ifdef ROW_SUBGROUPS
    return args.rows.lanes > gl_SubgroupSize;
#else
    return args.rows.lanes > 1u;
#endif
}

void row_barrier()
{
    if (row_has_barriers())
        barrier();
}

#if defined(ROW_TURNS) || defined(ROW_VOTES)
/* Is v true for any thread of the workgroup? */
bool row_any(bool v)
{
    if (row_thread() == 0u)
        row_turns = 0u;
    barrier();
    if (v)
        atomicOr(row_turns, 1u);
    barrier();
    return row_turns != 0u;
}
#endif

/*
 * Decides whether to process a row again. All lanes of a row get the same answer. If trees use
 * barriers, all rows of the workgroup repeat if one does.
 *
 * ROW_VOTE defines bool name(value, count), which needs no barrier of its own. Call it after the
 * tree that reduced to `value` and left the lanes' parts in `scratch`. It returns strange(value,
 * count). If rows repeat together, it returns whether strange() is true for any lane's part of any
 * row. So if strange() is true for the value of a row, it must be true for one of its parts. The
 * scratch memory may be reused only after a barrier.
 */
#ifdef ROW_VOTES
/* Call it once, after row_whole() and the tree of the rows. */
bool row_vote(bool again)
{
    if (row_slots() == 1u)
        return again;
    if (!row_has_barriers()) {
#ifdef ROW_SUBGROUPS
        return again;
#else
        /* For all rows, too: a driver lost what invocations had that left out code with barriers,
         * although no barrier of it was reached. */
        return row_any(again);
#endif
    }
    if (again)
        atomicOr(row_turns, 1u);
    barrier();
    return row_turns != 0u;
}
#endif

#ifdef ROW_SUBGROUPS
#define ROW_VOTE(type, name, scratch, strange)                                                     \
    bool name(type value, float count)                                                             \
    {                                                                                              \
        if (!row_has_barriers() || row_slots() == 1u)                                              \
            return strange(value, count);                                                          \
        uint few = min(gl_NumSubgroups, gl_SubgroupSize), any = 0u;                                \
        for (uint i = gl_SubgroupInvocationID & (few - 1u); i < gl_NumSubgroups; i += few)         \
            any |= strange(scratch[i], count) ? 1u : 0u;                                           \
        for (uint reach = few / 2u; reach > 0u; reach /= 2u)                                       \
            any |= subgroupShuffleXor(any, reach);                                                 \
        return any != 0u;                                                                          \
    }
#else
#define ROW_VOTE(type, name, scratch, strange)                                                     \
    bool name(type value, float count)                                                             \
    {                                                                                              \
        if (!row_has_barriers() || row_slots() == 1u)                                              \
            return strange(value, count);                                                          \
        uint apart = args.rows.lane_stride == 1u ? args.rows.lanes : 1u;                           \
        bool any = false;                                                                          \
        for (uint i = 0u; i < row_slots(); i++)                                                    \
            any = strange(scratch[i * apart], count) || any;                                       \
        return any;                                                                                \
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

/* The larger one, or NaN if either is NaN. */
float row_larger(float a, float b)
{
    return a > b || is_nan(a) ? a : b;
}

/*
 * high + low += v without a rounding error (Knuth's two-sum). If high is no longer finite, low has
 * no meaning.
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
