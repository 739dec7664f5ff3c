#version 450
/*
 * The gradients of attention, as passes of the same form. A workgroup owns a tile of rows and loops
 * over tiles of the other rows. Each step computes the weights p again from the log-sum-exp of the
 * rows, so they are not stored.
 *   OF_QUERIES  owns queries, loops over keys: dq += dz k
 *   OF_KEYS     owns keys, loops over the queries of all heads of its kv head: dk += dz^T q,
 *               dv += p^T dy
 *   OF_BIAS     owns a tile of the bias, loops over the axes along which the bias is broadcast:
 *               dbias += ds
 *
 * OF_DK and OF_DV are the halves of OF_KEYS. Each keeps half the sums, but the scores are computed
 * twice.
 *
 * OF_ALL is OF_KEYS and OF_QUERIES in one. The weights are computed once, so a step needs five
 * products instead of seven. A workgroup takes the tiles of one of `parts` parts of the keys, one
 * after another. It has its own dq in memory, to which each step adds. The dq of all parts are
 * summed by a later dispatch. An invocation adds to the same elements in every step, so none has to
 * wait for another one.
 *
 * All products are sums of outer products from shared memory into registers, as in
 * attention_prefill. An invocation has a register block of 4 ROW_QUADS own rows, four other rows
 * and 4 COLUMN_QUADS columns.
 *
 * Shared memory holds p or dz of the tile, other-major. Before that, the same memory holds a slice
 * of both tiles, 16 columns deep, transposed and rotated as in attention_prefill. It also holds
 * VALUE_ROWS of the other rows. If AHEAD, the next slice is loaded into registers while this one is
 * multiplied.
 *
 * Tiles outside the band, or entirely dropped by the mask, are skipped. A dropped pair must not
 * count even if an operand is NaN or Inf. If such a value is seen in a tile with dropped pairs, a
 * guarded loop takes over.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"
#include "args/attention_backward.h"

layout(constant_id = 1) const uint PASS = ATTENTION_OF_QUERIES;
layout(constant_id = 2) const uint MASK = ATTENTION_BAND;
layout(constant_id = 3) const bool SOFTCAP = false;
layout(constant_id = 4) const bool WHOLE = false;       /* quads are aligned */
layout(constant_id = 5) const uint ROW_THREADS = 8;     /* 4, 8 or 16 */
layout(constant_id = 6) const uint COLUMN_THREADS = 16; /* 8, 16 or 32 */
layout(constant_id = 7) const uint ROW_QUADS = 1;
layout(constant_id = 8) const uint COLUMN_QUADS = 1; /* width <= 4 COLUMN_THREADS COLUMN_QUADS */
layout(constant_id = 9) const uint VALUE_ROWS = 8;   /* a multiple of 4 */
layout(constant_id = 10) const uint UNROLL = 4;      /* rows unrolled; above 4 slices too */
layout(constant_id = 11) const bool TURNS = false; /* double buffering: one barrier less */
layout(constant_id = 12) const bool AHEAD = true;  /* the next slice is loaded early */
layout(push_constant) uniform block
{
    attention_backward_args args;
};
layout(set = 0, binding = 0) readonly buffer q_source
{
    float q[];
};
layout(set = 0, binding = 1) readonly buffer dy_source
{
    float dy[];
};
layout(set = 0, binding = 2) readonly buffer k_source
{
    float k[];
};
layout(set = 0, binding = 3) readonly buffer v_source
{
    float v[];
};
layout(set = 0, binding = 0) readonly buffer q_quads
{
    vec4 q4[];
};
layout(set = 0, binding = 1) readonly buffer dy_quads
{
    vec4 dy4[];
};
layout(set = 0, binding = 2) readonly buffer k_quads
{
    vec4 k4[];
};
layout(set = 0, binding = 3) readonly buffer v_quads
{
    vec4 v4[];
};
layout(set = 0, binding = 4) readonly restrict buffer mask_source
{
    float mask[];
};
layout(set = 0, binding = 5) readonly restrict buffer statistics
{
    float stats[];
};
layout(set = 0, binding = 6) writeonly buffer target
{
    float y[];
};
layout(set = 0, binding = 7) buffer query_target
{
    float dq[];
};
layout(set = 0, binding = 7) buffer query_target_quads
{
    vec4 dq4[];
};
layout(set = 0, binding = 6) writeonly buffer target_quads
{
    vec4 y4[];
};

#define MASK_QUERY args.mask_query
#define MASK_KEY   args.mask_key
#include "attention/attention.glsl"

const bool OF_ALL = PASS == ATTENTION_OF_ALL;
const bool HAS_DK = PASS == ATTENTION_OF_KEYS || PASS == ATTENTION_OF_DK || OF_ALL;
const bool HAS_DV = PASS == ATTENTION_OF_KEYS || PASS == ATTENTION_OF_DV || OF_ALL;
const bool OF_KEYS = HAS_DK || HAS_DV; /* own rows are keys */
const bool OF_BIAS = PASS == ATTENTION_OF_BIAS;
const uint DEPTH = 16;
const uint THREADS = ROW_THREADS * COLUMN_THREADS;
const uint ROWS = 4 * ROW_QUADS;
const uint OWN_QUADS = ROW_THREADS * ROW_QUADS;
const uint OWN = 4 * OWN_QUADS;
const uint OTHERS = 4 * COLUMN_THREADS;
const uint TILE_COLUMN_QUADS = COLUMN_THREADS * COLUMN_QUADS;
const uint PITCH = OWN_QUADS + 1;            /* stride of the weights of an other row */
const uint OWN_PITCH = COLUMN_THREADS + 1u; /* stride of those of an own row */
/* Quads that an invocation loads for a slice, at most: a low tile has fewer own quads than
 * invocations. */
const uint OWN_SLICE = OWN_QUADS * DEPTH;
const uint OWN_LOADS = (OWN_SLICE + THREADS - 1) / THREADS;
const uint OTHER_LOADS = COLUMN_THREADS * DEPTH / THREADS; /* DEPTH / ROW_THREADS: no rest */
const uint VALUE_SLICE = VALUE_ROWS * TILE_COLUMN_QUADS;
const uint V_LOADS = (VALUE_SLICE + THREADS - 1) / THREADS;
const uint SCORE_SLICE = OWN_SLICE + DEPTH * COLUMN_THREADS;
const uint OTHER_WEIGHTS = OTHERS * PITCH, OWN_WEIGHTS = OF_ALL ? OWN * OWN_PITCH : 0u;
const uint WEIGHTS = OWN_WEIGHTS > OTHER_WEIGHTS ? OWN_WEIGHTS : OTHER_WEIGHTS;
const uint SLICES = TURNS ? 2 * SCORE_SLICE : SCORE_SLICE;
const uint QUERY_QUADS = OF_ALL ? COLUMN_THREADS / ROW_THREADS : 1; /* of an invocation's dq */
const uint SUMS = OF_BIAS ? ROWS : ROWS * COLUMN_QUADS;

shared vec4 weights[WEIGHTS > SLICES ? WEIGHTS : SLICES]; /* or slices */
shared vec4 values[OF_BIAS ? 1 : VALUE_SLICE];
shared uint unsafe_mark; /* the last product in which a NaN or Inf was seen */
shared uint kept_mark;   /* the last step in which the mask keeps a pair */

uint lane, ty, tx;
uint query_target_at;             /* start of the workgroup's own dq */
bool fresh;                       /* the workgroup's dq is not written yet */
uint mark;                        /* number of the step or product, from 1 on */
vec4 next[OWN_LOADS + OTHER_LOADS > V_LOADS ? OWN_LOADS + OTHER_LOADS : V_LOADS];
vec4 s[ROWS]; /* scores, then p */
vec4 g[ROWS]; /* dp, then ds or dz */
vec4 first_sums[PASS == ATTENTION_OF_DV ? 1u : SUMS];
vec4 second_sums[HAS_DV ? SUMS : 1u];
vec4 query_sums[OF_ALL ? 4u * QUERY_QUADS * COLUMN_QUADS : 1u];

/* The position in the tiles of row 4 m + e of an invocation, and of its other row c. */
uint row_of(uint r)
{
    return (r & 3u) * OWN_QUADS + (r >> 2) * ROW_THREADS + ty;
}
uint other_of(uint c)
{
    return c * COLUMN_THREADS + tx;
}

#include "attention/attention_backward_rows.glsl"
#include "attention/attention_backward.glsl"

/* ---- A step ---- */

void process()
{
    bool edge = is_edge();
    mark++;
    if (MASK != ATTENTION_BAND) {
        barrier();
        if (keeps_any())
            kept_mark = mark;
        barrier();
        if (kept_mark != mark) {
            if (OF_ALL && fresh)
                clear_queries();
            return;
        }
    }
    if (PASS != ATTENTION_OF_DV) {
        if (AHEAD)
            fetch_slice(1u, 0u);
        multiply_columns(1u);
    }
    if (AHEAD)
        fetch_slice(0u, 0u);
    [[unroll]] for (uint r = 0; r < ROWS; r++) g[r] = PASS == ATTENTION_OF_DV ? vec4(0.0) : s[r];
    multiply_columns(0u);
    find_weights(edge);
    if (OF_BIAS) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) first_sums[r] += g[r];
        return;
    }
    if (HAS_DV)
        add_p(edge);
    if (PASS != ATTENTION_OF_DV)
        add_dz(edge);
    if (OF_ALL)
        add_queries(edge);
}

/* ---- Results ---- */

void store_rows(uint part)
{
    uint base = args.out_offset + part * args.part_words + (OF_KEYS ? k_at : q_at);
    uint second = HAS_DK ? args.part_words / 2u : 0u; /* from dk to dv */
    [[unroll]] for (uint r = 0; r < ROWS; r++)
    {
        uint row = own_first + row_of(r);
        uint at = base + row * (OF_KEYS ? args.kv_seq : args.q_seq);
        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)
        {
            uint d = (n * COLUMN_THREADS + tx) * 4u;
            if (row < own_count) {
                if (PASS != ATTENTION_OF_DV)
                    store_quad(at, d, first_sums[r * COLUMN_QUADS + n] * args.scale);
                if (HAS_DV)
                    store_quad(at + second, d, second_sums[r * COLUMN_QUADS + n]);
            }
        }
    }
}

float weight_at(uint row, uint other)
{
    return weights[other * PITCH + row % OWN_QUADS][row / OWN_QUADS];
}
void set_weight(uint row, uint other, float value)
{
    weights[other * PITCH + row % OWN_QUADS][row / OWN_QUADS] = value;
}

/* Stores the tile of ds, summed along the axes that the bias does not have. */
void store_bias(uint part, uint b, uint h)
{
    bool each_query = args.mask_query != 0u, each_key = args.mask_key != 0u;
    barrier(); /* others may still read slices, where dz goes; software drivers never show it */
    [[unroll]] for (uint r = 0; r < ROWS; r++) g[r] = first_sums[r];
    store_dz();
    barrier();
    if (!each_query && lane < OTHERS) {
        float sum = 0.0;
        for (uint r = 0; r < OWN; r++)
            sum += weight_at(r, lane);
        set_weight(0u, lane, sum);
    }
    barrier();
    if (!each_key && lane < (each_query ? OWN : 1u)) {
        float sum = 0.0;
        for (uint x = 0; x < OTHERS; x++)
            sum += weight_at(lane, x);
        set_weight(lane, 0u, sum);
    }
    barrier();
    uint base = args.out_offset + part * args.part_words + b * args.mask_batch + h * args.mask_head;
    for (uint e = lane; e < OWN * OTHERS; e += THREADS) {
        uint r = e / OTHERS, x = e % OTHERS;
        bool here = (each_query ? own_first + r < args.queries : r == 0u) &&
                    (each_key ? other_first + x < args.keys : x == 0u);
        if (here)
            y[base + (own_first + r) * args.mask_query + (other_first + x) * args.mask_key] =
                weight_at(r, x);
    }
}

/* ---- Loops over tiles ---- */

/* Invocations form blocks of 4 x 8 neighbours, as in attention_prefill. */
void find_place()
{
    lane = gl_LocalInvocationID.x;
    uint block = lane / 32u;
    tx = (lane & 1u) | (lane >> 1 & 6u) | (block % (COLUMN_THREADS / 8u) * 8u);
    ty = (lane >> 1 & 1u) | (lane >> 3 & 2u) | (block / (COLUMN_THREADS / 8u) * 4u);
}

void clear_sums()
{
    if (PASS != ATTENTION_OF_DV) [[unroll]]
        for (uint r = 0; r < SUMS; r++)
            first_sums[r] = vec4(0.0);
    if (HAS_DV) [[unroll]]
        for (uint r = 0; r < SUMS; r++)
            second_sums[r] = vec4(0.0);
}

void begin()
{
    find_place();
    mark = 0u;
    if (lane == 0u) {
        unsafe_mark = 0u;
        kept_mark = 0u;
    }
    clear_sums();
    own_count = OF_KEYS ? args.keys : args.queries;
    other_count = OF_KEYS ? args.queries : args.keys;
    barrier();
}

/* The first step of this part. The steps are divided evenly among the parts. */
uint part_begin(uint steps, uint parts, uint part)
{
    return min(steps, part * tiles_of(steps, parts));
}

/* Workgroups of later queries start first, because they have the most work under a causal mask. */
void walk_keys(uint item, uint part)
{
    uint heads = args.batch * args.heads, head = item % heads;
    uint tiles = tiles_of(args.queries, OWN);
    if (item / heads >= tiles)
        return;
    own_first = (tiles - 1u - item / heads) * OWN;
    begin();
    set_head(head / args.heads, head % args.heads);
    uint first = band_begin(own_first) / OTHERS;
    uint end = tiles_of(band_end(min(own_first + OWN, args.queries) - 1u), OTHERS);
    uint steps = end - min(first, end), last = part_begin(steps, args.parts, part + 1u);
    [[dont_unroll]] for (uint step = part_begin(steps, args.parts, part); step < last; step++)
    {
        other_first = (first + step) * OTHERS;
        process();
    }
    store_rows(part);
}

/* A tile of keys, with the queries of every head of its kv head. */
void walk_tile(uint b, uint kv_head, uint parts, uint part)
{
    uint group = args.heads / args.kv_heads, first, end;
    find_queries(OWN, first, end);
    uint tiles = end - min(first, end), steps = group * tiles;
    uint last = part_begin(steps, parts, part + 1u);
    k_at = b * args.kv_batch + kv_head * args.kv_head;
    [[dont_unroll]] for (uint step = part_begin(steps, parts, part); step < last; step++)
    {
        set_head(b, kv_head * group + step / tiles);
        other_first = (first + step % tiles) * OTHERS;
        process();
    }
    store_rows(OF_ALL ? 0u : part);
}

void walk_queries(uint item, uint part)
{
    uint heads = args.batch * args.kv_heads;
    if (item / heads >= tiles_of(args.keys, OWN))
        return;
    own_first = item / heads * OWN;
    begin();
    walk_tile(item % heads / args.kv_heads, item % args.kv_heads, args.parts, part);
}

/* Clears dq for the tiles of queries that the first tile of keys does not visit. */
void clear_others(uint b, uint kv_head)
{
    uint group = args.heads / args.kv_heads, tiles = tiles_of(args.queries, OTHERS), first, end;
    find_queries(OWN, first, end);
    [[dont_unroll]] for (uint step = 0; step < group * tiles; step++)
    {
        set_head(b, kv_head * group + step / tiles);
        other_first = step % tiles * OTHERS;
        if (step % tiles < first || step % tiles >= end)
            clear_queries();
    }
}

/* Deals the tiles to the parts in zigzag order, so that all parts have equal work under a causal
 * mask. */
void walk_all(uint item, uint part)
{
    uint b = item / args.kv_heads, kv_head = item % args.kv_heads;
    uint tiles = tiles_of(args.keys, OWN);
    if (b >= args.batch)
        return;
    begin();
    query_target_at = args.dq_offset + part * args.dq_words;
    own_first = part * OWN;
    clear_others(b, kv_head);
    [[dont_unroll]] for (uint round = 0; round * args.parts < tiles; round++)
    {
        uint tile = round * args.parts + ((round & 1u) == 0u ? part : args.parts - 1u - part);
        own_first = tile * OWN;
        if (own_first < args.keys) {
            fresh = round == 0u;
            clear_sums();
            walk_tile(b, kv_head, 1u, 0u);
        }
    }
}

/* A workgroup owns one tile along the axes that the bias has. It loops over the axes that the bias
 * does not have. */
void walk_bias(uint item, uint part)
{
    uint i_tiles = tiles_of(args.queries, OWN), j_tiles = tiles_of(args.keys, OTHERS);
    uint own_j = args.mask_key != 0u ? j_tiles : 1u, own_i = args.mask_query != 0u ? i_tiles : 1u;
    uint own_h = args.mask_head != 0u ? args.heads : 1u;
    uint own_b = args.mask_batch != 0u ? args.batch : 1u;
    uint other_j = args.mask_key != 0u ? 1u : j_tiles;
    uint other_i = args.mask_query != 0u ? 1u : i_tiles;
    uint other_h = args.mask_head != 0u ? 1u : args.heads;
    uint other_b = args.mask_batch != 0u ? 1u : args.batch;
    if (item >= own_b * own_h * own_i * own_j)
        return;
    begin();
    uint j = item % own_j, i = item / own_j % own_i;
    uint h = item / (own_j * own_i) % own_h, b = item / (own_j * own_i * own_h);
    uint steps = args.width == 0u ? 0u : other_b * other_h * other_i * other_j;
    uint last = part_begin(steps, args.parts, part + 1u);
    [[dont_unroll]] for (uint step = part_begin(steps, args.parts, part); step < last; step++)
    {
        other_first = (j + step % other_j) * OTHERS;
        own_first = (i + step / other_j % other_i) * OWN;
        set_head(b + step / (other_j * other_i * other_h),
                 h + step / (other_j * other_i) % other_h);
        process();
    }
    own_first = i * OWN;
    other_first = j * OTHERS;
    store_bias(part, b, h);
}

void main()
{
    uint item = group_index() / args.parts, part = group_index() % args.parts;
    if (PASS == ATTENTION_OF_QUERIES)
        walk_keys(item, part);
    else if (OF_ALL)
        walk_all(item, part);
    else if (OF_KEYS)
        walk_queries(item, part);
    else
        walk_bias(item, part);
}
