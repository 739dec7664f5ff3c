#version 450
/*
 * One pass of a complex FFT. A workgroup takes `rows` transforms of n points, as Stockham stages of
 * radix up to 16 in shared memory (glsl/spectral/fft_butterfly.glsl has a stage's transforms).
 *
 * A line of the tensor is one transform of the whole length. A pass may be a part of it: point j of
 * row (d1, d2) is at position j * step + d1 * step1 + d2 * step2 of its line. `ns` is the product
 * of the radices of earlier stages. Butterfly b of a stage takes x[b + r * n/R] times w^(r (b mod
 * ns)). Its output r goes to (b div ns) ns R + (b mod ns) + r ns. One table has the twiddle factors
 * of all stages, each at r * ns + b mod ns.
 *
 * The inverse transform is the forward one with real and imaginary parts exchanged at both ends.
 * Then `imaginary`, the distance from a real part to its imaginary part, is negative.
 *
 * Flags (FFT_..): a load or a store may multiply by a table over positions. Positions from
 * load_limit on are loaded as zeros, and positions from store_limit on are not stored. If there are
 * several passes, a store may multiply by w_N^(j d1), split into two factors.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"
#include "spectral/fft_butterfly.glsl"
#include "spectral/fft_real.glsl"

layout(constant_id = 1) const uint KNOWN = 0;      /* radices, a set of FFT_RADIX_BIT */
layout(constant_id = 2) const uint POINTS = 1;     /* of shared memory */
layout(constant_id = 3) const bool SINGLE = false; /* stages take one round: one buffer is enough */
layout(constant_id = 4) const uint PAD = 31;       /* one point of padding every 2^PAD */
layout(push_constant) uniform block { fft_args args; };
layout(set = 0, binding = 0) readonly buffer source1 { float x1[]; };
layout(set = 0, binding = 0) readonly buffer source2 { vec2 x2[]; };
layout(set = 0, binding = 1) restrict readonly buffer stages { vec2 twiddles[]; };
layout(set = 0, binding = 2) restrict readonly buffer factors { vec2 table[]; };
layout(set = 0, binding = 3) writeonly buffer target1 { float y1[]; };
layout(set = 0, binding = 3) writeonly buffer target2 { vec2 y2[]; };

shared vec2 work[POINTS];

/* The position of a row among all rows. */
struct place {
    uint inner, d1, d2, outer;
};

place place_of(uint row)
{
    place p;
    p.inner = row % args.inner;
    row /= args.inner;
    p.d1 = row % args.d1;
    row /= args.d1;
    p.d2 = row % args.d2;
    p.outer = row / args.d2;
    return p;
}

bool flag(uint bit)
{
    return (args.flags & bit) != 0u;
}

/* Point `at` of a row in the shared buffer that starts at `begin`. */
uint slot(uint begin, uint row, uint at)
{
    return begin + row * args.pitch + at + (at >> PAD);
}

uint source_position(place p)
{
    return p.d1 * args.in_step1 + p.d2 * args.in_step2;
}
uint target_position(place p)
{
    return p.d1 * args.out_step1 + p.d2 * args.out_step2;
}

/* Both parts at a word of x, exchanged for the inverse. */
vec2 read_parts(uint word)
{
    if (!flag(FFT_IN_PAIRS))
        return vec2(x1[word], x1[uint(int(word) + args.in_imaginary)]);
    vec2 value = x2[word >> 1];
    return args.in_imaginary < 0 ? value.yx : value;
}

/* The bins' parts are exchanged, and so are those of the result. The first and the last bin are
 * real. */
vec2 read_bins(uint word, uint position)
{
    vec2 a = read_parts(word).yx, b = read_parts(word - 2 * position + args.load_limit).yx;
    if (position == 0)
        a.y = b.y = 0;
    return pair_of_bins(a, b, table[position]).yx;
}

vec2 load_point(place p, uint at)
{
    uint position = source_position(p) + at * args.in_step;
    if (position >= args.load_limit)
        return vec2(0);
    uint word = args.in_offset + p.outer * args.in_outer + p.inner * args.in_inner +
                position * args.in_axis;
    vec2 value = flag(FFT_LOAD_BINS) ? read_bins(word, position) : read_parts(word);
    return flag(FFT_LOAD_TABLE) ? complex_product(value, table[args.load_table + position]) : value;
}

vec2 target_factor(place p, uint at, uint position)
{
    if (flag(FFT_STORE_TABLE))
        return table[args.store_table + position];
    uint exponent = at * p.d1, low = args.flags >> FFT_SPLIT_SHIFT;
    return complex_product(table[args.store_table + (exponent & ((1u << low) - 1u))],
                           table[args.store_table + (1u << low) + (exponent >> low)]);
}

void store_point(place p, uint at, vec2 value)
{
    uint position = target_position(p) + at * args.out_step;
    if (position >= args.store_limit)
        return;
    uint word = args.out_offset + p.outer * args.out_outer + p.inner * args.out_inner +
                position * args.out_axis;
    if (flag(FFT_STORE_TABLE | FFT_STORE_TWIDDLE))
        value = complex_product(value, target_factor(p, at, position));
    value *= args.scale;
    if (flag(FFT_OUT_PAIRS)) {
        y2[word >> 1] = args.out_imaginary < 0 ? value.yx : value;
    } else {
        y1[word] = value.x;
        y1[uint(int(word) + args.out_imaginary)] = value.y;
    }
}

/* A thread's share: points (or butterflies) lane, lane + step, .. of one row of the workgroup. */
struct share {
    bool busy;
    uint row, lane, step;
    place at;
};

share share_of(bool across)
{
    uint thread = gl_LocalInvocationID.x, first_row = group_index() * args.rows;
    share s;
    s.step = gl_WorkGroupSize.x / args.rows;
    s.row = across ? thread % args.rows : thread / s.step;
    s.lane = across ? thread / args.rows : thread % s.step;
    s.busy = s.row < args.rows && s.lane < s.step && first_row + s.row < args.lines;
    s.at = place_of(first_row + s.row);
    return s;
}

void load_rows(share s)
{
    for (uint at = s.lane; s.busy && at < args.n; at += s.step)
        work[slot(0, s.row, at)] = load_point(s.at, at);
}

void store_rows(share s, uint from)
{
    for (uint at = s.lane; s.busy && at < args.n; at += s.step)
        store_point(s.at, at, work[slot(from, s.row, at)]);
}

struct stage {
    uint ns, from, to; /* product of the earlier radices; buffers in shared memory */
};

/* Butterfly b of a row. All threads come here, and those without a butterfly are idle. */
#define STAGE(name, R, transform)                                                                  \
    void name(stage s, bool busy, uint row, uint b)                                                \
    {                                                                                              \
        vec2 v[R];                                                                                 \
        uint count = args.n / R, low = b % s.ns, to = (b - low) * R + low;                         \
        if (busy) {                                                                                \
            for (uint r = 0; r < R; r++)                                                           \
                v[r] = work[slot(s.from, row, b + r * count)];                                     \
            for (uint r = 1; r < R && s.ns > 1u; r++)                                              \
                v[r] = complex_product(v[r], twiddles[r * s.ns + low]);                            \
        }                                                                                          \
        if (SINGLE)                                                                                \
            barrier();                                                                             \
        if (busy) {                                                                                \
            transform(v);                                                                          \
            for (uint r = 0; r < R; r++)                                                           \
                work[slot(s.to, row, to + r * s.ns)] = v[r];                                       \
        }                                                                                          \
    }
STAGE(stage2, 2, transform2)
STAGE(stage3, 3, transform3)
STAGE(stage4, 4, transform4)
STAGE(stage5, 5, transform5)
STAGE(stage7, 7, transform7)
STAGE(stage8, 8, transform8)
STAGE(stage11, 11, transform11)
STAGE(stage13, 13, transform13)
STAGE(stage16, 16, transform16)

/* A pipeline contains only the radices that it needs, because each takes long to compile. */
void run(uint radix, stage s, bool busy, uint row, uint b)
{
#define STAGE_OF(R)                                                                                \
    if ((KNOWN & FFT_RADIX_BIT(R)) != 0u && radix == R)                                            \
        stage##R(s, busy, row, b);
    STAGE_OF(2) STAGE_OF(3) STAGE_OF(4) STAGE_OF(5) STAGE_OF(7) STAGE_OF(8) STAGE_OF(11)
    STAGE_OF(13) STAGE_OF(16)
}

void main()
{
    share mine = share_of(flag(FFT_LOAD_ACROSS));
    load_rows(mine);
    mine = share_of(false);
    stage s = stage(1u, 0u, SINGLE ? 0u : args.rows * args.pitch);
    barrier();
    for (uint i = 0; i < args.stages; i++) {
        uint code = (i < 8u ? args.radices : args.more_radices) >> (4u * (i & 7u)) & 15u;
        uint radix = code == 0u ? 16u : code, count = args.n / radix;
        uint rounds = SINGLE ? 1u : (count + mine.step - 1) / mine.step;
        for (uint round = 0; round < rounds; round++) {
            uint b = mine.lane + round * mine.step;
            run(radix, s, mine.busy && b < count, mine.row, b);
        }
        barrier();
        s = stage(s.ns * radix, s.to, s.from);
    }
    store_rows(share_of(flag(FFT_STORE_ACROSS)), s.from);
}
