#version 450
/*
 * For each entry of the list this computes SPLAT_SUMS sums over the pixels of its tile, with one
 * workgroup per tile:
 *
 * - f = (derivative of the loss by alpha) times alpha
 * - f c (3 sums)
 * - f c c^T (6 sums)
 * - the derivative by the colour (3 sums)
 *
 * Pixels are first composited forward. Then they go back from the last entry, because then the
 * colour behind an entry is known. The transmittance before an entry is the one behind it, divided
 * by 1 - alpha. Four entries at a time are summed over the threads. The sums are written to the
 * entry's position before the list was sorted, so that the sums of a splat are contiguous.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

#define AT_ONCE 4u
#define PITCH   (SPLAT_THREADS + 1) /* avoids bank conflicts */

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint prepared[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 2) restrict readonly buffer arrived { float loss[]; };
layout(set = 0, binding = 3) restrict buffer target { float sums[]; };

#include "splat/layout.glsl"
#include "splat/walk.glsl"

shared float terms[AT_ONCE * SPLAT_SUMS * PITCH];

vec4 slope[SPLAT_PIXELS], behind[SPLAT_PIXELS]; /* of the loss; the colour behind, and its alpha */

/* v within the clip limits. NaN stays NaN. */
float clipped(float v)
{
    return is_nan(v) ? v : min(max(v, -args.clip), args.clip);
}

void find_slopes()
{
    vec3 color = background();
    EACH_PIXEL(q) {
        behind[q] = vec4(color, 0.0);
        slope[q] = vec4(0.0);
        if (pixel[q] != NO_ENTRY) {
            vec3 sum = gathered[q] + left_over[q] * color;
            uint at = args.loss_offset + 4u * pixel[q];
            for (uint c = 0u; c < 3u; c++)
                if (sum[c] > 0.0)
                    slope[q][c] =
                        clipped(loss[at + c]) * args.gamma * power(sum[c], args.gamma - 1.0);
            if (args.alpha != 0u)
                slope[q].w = clipped(loss[at + 3u]);
        }
        left_over[q] = faint[q] == NO_ENTRY ? left_over[q] : 0.0;
    }
}

/* Goes back over one entry. */
void add_terms(uint slot, uint entry, inout float own[SPLAT_SUMS])
{
    vec4 color = vec4(staged_color(slot), 1.0);
    EACH_PIXEL(q) {
        float alpha;
        vec3 c;
        if (entry < stop[q] && meets(slot, ray[q], alpha, c)) {
            if (entry == faint[q])
                left_over[q] = before_faint[q];
            else if (left_over[q] > 0.0)
                left_over[q] /= 1.0 - alpha;
            float share = left_over[q] * alpha;
            float f = share * dot(slope[q], color - behind[q]);
            behind[q] += alpha * (color - behind[q]);
            vec3 fc = f * c;
            own[0] += f;
            own[1] += fc.x;
            own[2] += fc.y;
            own[3] += fc.z;
            own[4] += fc.x * c.x;
            own[5] += fc.x * c.y;
            own[6] += fc.x * c.z;
            own[7] += fc.y * c.y;
            own[8] += fc.y * c.z;
            own[9] += fc.z * c.z;
            own[10] += share * slope[q].x;
            own[11] += share * slope[q].y;
            own[12] += share * slope[q].z;
        }
    }
}

/* Stores the sums of `count` entries, from `entry` on. */
void store_sums(uint entry, uint count, bool more)
{
    for (uint i = gl_LocalInvocationID.x; i < count * SPLAT_SUMS; i += SPLAT_THREADS) {
        uint k = i / SPLAT_SUMS, term = i - k * SPLAT_SUMS;
        float sum = 0.0;
        for (uint t = 0u; t < SPLAT_THREADS; t++)
            sum += terms[i * PITCH + t];
        uint at = SPLAT_SUMS * positions[entry + k] + term;
        sums[at] = more ? sums[at] + sum : sum;
    }
}

void go_back(uint batch, uint count, bool more)
{
    uint t = gl_LocalInvocationID.x;
    for (uint end = (count + AT_ONCE - 1u) / AT_ONCE; end > 0u; end--) {
        uint first = (end - 1u) * AT_ONCE, some = min(AT_ONCE, count - first);
        for (uint k = some; k > 0u; k--) {
            float own[SPLAT_SUMS];
            for (uint s = 0u; s < SPLAT_SUMS; s++)
                own[s] = 0.0;
            add_terms(first + k - 1u, batch + first + k - 1u, own);
            for (uint s = 0u; s < SPLAT_SUMS; s++)
                terms[((k - 1u) * SPLAT_SUMS + s) * PITCH + t] = own[s];
        }
        barrier();
        store_sums(batch + first, some, more);
        barrier();
    }
}

void main()
{
    uint tile = group_index();
    if (tile >= tile_count())
        return;
    uint chunks = (args.tile_size * args.tile_size + TILE_PIXELS - 1u) / TILE_PIXELS;
    entry_range range = entries_of(tile);
    uint length = range.end > range.first ? range.end - range.first : 0u;
    uint batches = (length + SPLAT_BATCH - 1u) / SPLAT_BATCH;
    for (uint chunk = 0u; chunk < chunks; chunk++) {
        find_pixels(tile, chunk);
        walk(range);
        find_slopes();
        for (uint part = batches; part > 0u; part -= min(part, BATCHES))
            for (uint b = part; b > part - min(part, BATCHES); b--) {
                uint batch = range.first + (b - 1u) * SPLAT_BATCH;
                stage_batch(batch, range.end);
                barrier();
                go_back(batch, min(SPLAT_BATCH, range.end - batch), chunk > 0u);
            }
    }
}
