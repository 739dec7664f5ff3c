#version 450
/*
 * One pass over long rows, with subgroup ballots. A subgroup goes through its elements in order.
 * One ballot for each bit of the digit tells which of its invocations have the same digit, and the
 * subgroup's own counters tell how many came before. All SUBGROUPS of a workgroup are full.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix_items.glsl"
#include "movement/radix_key.glsl"

layout(constant_id = 5) const uint SUBGROUPS = 1;

const uint COUNTERS = RADIX_DIGITS * SUBGROUPS;

shared uint pool[BLOCK > COUNTERS ? BLOCK : COUNTERS];

#include "movement/radix_move.glsl"

uint own(uint j)
{
    return (gl_SubgroupID * RADIX_ITEMS + j) * gl_SubgroupSize + gl_SubgroupInvocationID;
}

/* The invocations with the same digit. */
uvec4 peers_of(uint digit)
{
    uvec4 peers = subgroupBallot(true);
    [[unroll]] for (uint i = 0u; i < RADIX_BITS; i++) {
        uint bit = digit >> i & 1u;
        peers &= subgroupBallot(bit != 0u) ^ (bit - 1u);
    }
    return peers;
}

/* Adds the peers to the counter at `at`, and returns its earlier value. `rank` is this invocation's
 * rank among the peers. */
uint count_peers(uint at, uvec4 peers, uint rank)
{
    uint earlier = pool[at];
    subgroupBarrier();
    if (rank == 0u)
        pool[at] = earlier + subgroupBallotBitCount(peers);
    subgroupBarrier();
    return earlier;
}

/*
 * Sets place[j] to the number of earlier elements of the subgroup with this digit. The digit is
 * stored in its low bits. Afterwards the subgroup's counters, from `counters` on, include all its
 * elements.
 */
void count_before(uint counters, uint count)
{
    EACH_ITEM(j) {
        uint digit = digit_at(j, count);
        uvec4 peers = peers_of(digit);
        uint rank = subgroupBallotExclusiveBitCount(peers);
        place[j] = count_peers(counters + digit, peers, rank) + rank << RADIX_BITS | digit;
    }
}

/* For each digit, computes the position in the block at which each subgroup's elements start. */
void sum_counters()
{
    for (uint d = gl_LocalInvocationID.x; d < RADIX_DIGITS; d += THREADS) {
        uint sum = starts[digit_spot(d)].y;
        for (uint s = d; s < COUNTERS; s += RADIX_DIGITS) {
            uint v = pool[s];
            pool[s] = sum;
            sum += v;
        }
    }
}

void rank_digits(uint count)
{
    uint counters = gl_SubgroupID * RADIX_DIGITS;
    for (uint d = gl_SubgroupInvocationID; d < RADIX_DIGITS; d += gl_SubgroupSize)
        pool[counters + d] = 0u;
    subgroupBarrier();
    count_before(counters, count);
    barrier();
    sum_counters();
    barrier();
    EACH_ITEM(j)
        place[j] = (place[j] >> RADIX_BITS) + pool[counters + (place[j] & (RADIX_DIGITS - 1u))];
    barrier();
}
