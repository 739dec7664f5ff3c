#version 450
/*
 * Writes the entries of the list, splat by splat in order, with ascending tiles. SPLAT_COUNT adds
 * up the number of entries for the splats of each workgroup. SPLAT_EMIT writes a splat's entries
 * after those of all earlier splats. Sums are clamped to the largest word, and entries end at
 * list_most.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"


layout(constant_id = 1) const uint STAGE = SPLAT_COUNT;
layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer order { uint splat_order[]; };
layout(set = 0, binding = 1) restrict readonly buffer outlines { uint footprints[]; };
layout(set = 0, binding = 2) restrict buffer totals { uint sums[]; };
layout(set = 0, binding = 3) restrict writeonly buffer tiles { uint keys[]; };
layout(set = 0, binding = 4) restrict writeonly buffer whose { uint owners[]; };
layout(set = 0, binding = 5) restrict writeonly buffer spans { uint runs[]; };
layout(set = 0, binding = 6) restrict writeonly buffer target { uint prepared[]; };

#include "splat/layout.glsl"
#include "splat/footprint.glsl"

const uint THREADS = gl_WorkGroupSize.x;

shared uint parts[THREADS];

uint saturating_add(uint a, uint b)
{
    uint sum = a + b;
    return sum < a ? 0xffffffffu : sum;
}

/* Sum over the threads up to this one. The last thread has the sum over all threads. */
uint sum_up_to(uint value)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    parts[t] = value;
    barrier();
    for (uint reach = 1u; reach < THREADS; reach *= 2u) {
        uint earlier = t >= reach ? parts[t - reach] : 0u;
        barrier();
        parts[t] = saturating_add(parts[t], earlier);
        barrier();
    }
    return parts[t];
}

footprint read_footprint(uint splat)
{
    uint at = SPLAT_FOOTPRINT * splat;
    float words[7];
    for (uint w = 0u; w < 7u; w++)
        words[w] = uintBitsToFloat(footprints[at + w]);
    return footprint(vec2(words[0], words[1]), words[2], words[3], words[4], words[5], words[6]);
}

void emit(uint splat, uint at, uint end)
{
    footprint f = read_footprint(splat);
    uvec2 rows = tile_rows(f);
    /*
     * an old software driver ends loops after 65,535 rounds, so a splat in that many tiles is wrong
     */
    for (uint row = rows.x; row < rows.y && at < end; row++) {
        uvec2 range = tiles_of_row(f, row);
        for (uint tile = range.x; tile < range.y && at < end; tile++) {
            keys[at] = row * args.tiles_wide + tile;
            owners[at] = splat;
            at++;
        }
    }
}

void main()
{
    uint group = group_index(), t = gl_LocalInvocationID.x, i = group * THREADS + t;
    uint groups = (args.count + THREADS - 1u) / THREADS;
    if (group >= groups)
        return;
    uint splat = i < args.count ? splat_order[i] : 0u;
    uint own = i < args.count ? footprints[SPLAT_FOOTPRINT * splat + 7u] : 0u;
    uint up_to = sum_up_to(own);
    if (STAGE == SPLAT_COUNT) {
        if (t + 1u == THREADS)
            sums[group] = up_to;
        return;
    }
    uint earlier = 0u;
    for (uint g = t; g < group; g += THREADS)
        earlier = saturating_add(earlier, sums[g]);
    sum_up_to(earlier);
    earlier = parts[THREADS - 1u];
    uint end = saturating_add(earlier, up_to);
    if (i + 1u == args.count)
        prepared[parameters_at() + 10u] = end;
    if (i >= args.count)
        return;
    /* if the sum was clamped to the largest word, the splat gets no entries */
    uint first = min(end == 0xffffffffu ? end : end - own, args.list_most);
    end = min(end, args.list_most);
    runs[2u * splat] = first;
    runs[2u * splat + 1u] = end;
    if (first < end)
        emit(splat, first, end);
}
