#version 450
/*
 * Sums or products of tiles of lines along any axis. Updates that fall into the tile are dealt out
 * to the subgroups by their element, those of each in their order, by ballots; a subgroup applies
 * what it has been dealt, of its invocations those with the same element one after the other.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/common.glsl"
#include "args/array.h"
#include "array/scatter_tile.glsl"

layout(constant_id = 4) const uint ITEMS = 4;     /* updates that a thread deals out at a time */
layout(constant_id = 5) const uint SUBGROUPS = 1; /* full; a power of two, none above their size */
layout(constant_id = 6) const bool WHOLE = true;  /* all updates fall into the tile, or nowhere */
/* Invocations of a subgroup run in step, so memory needs a barrier and execution does not. A
 * software driver waits for the whole workgroup at a subgroup's barrier, which is not reached by
 * all. */
layout(constant_id = 7) const bool IN_STEP = false;
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

#define EACH_ITEM(j) [[unroll]] for (uint j = 0u; j < ITEMS; j++)
#define EACH(k)      [[unroll]] for (uint k = 0u; k < SCATTER_TILE_ITEMS; k++)
/* Bits of numbers from `low` to below `high`, powers of two, as such. */
#define EACH_BIT(low, high) [[unroll]] for (uint bit = low; bit < high; bit *= 2u)

const uint THREADS = gl_WorkGroupSize.x;
const uint BATCH = ITEMS * THREADS;

shared float tile[SLOTS];
shared uint dealt_slots[BATCH];
shared float dealt_values[BATCH];
shared uint dealt_counts[SUBGROUPS * SUBGROUPS]; /* [from, to] */

float named[ITEMS], values[ITEMS];
uint slots[ITEMS], places[ITEMS];

/* Who applies what goes to a slot: slots of one owner are in all banks of shared memory. */
uint owner_of(uint slot)
{
    return (slot ^ slot >> 5u) & (SUBGROUPS - 1u);
}

/* Of those that `set` says have a bit, or have it not: which are like this number. */
uvec4 like(uvec4 set, uint number, uint bit)
{
    return (number & bit) != 0u ? set : ~set;
}

uint item_at(uint first, uint j)
{
    uint lane = gl_SubgroupInvocationID;
    return first + (gl_SubgroupID * ITEMS + j) * gl_SubgroupSize + lane;
}

void fetch(uint first)
{
    EACH_ITEM(j) {
        uint at = element_at(item_at(first, j), args.updates);
        named[j] = index[args.index_offset + at];
        if (WHOLE)
            values[j] = updates[args.updates_offset + at];
    }
}

void find_slots(uint first)
{
    EACH_ITEM(j) {
        uint i = item_at(first, j);
        slots[j] = slot_of(i, named[j]);
        if (!WHOLE && slots[j] != NO_SLOT)
            values[j] = updates[args.updates_offset + element_at(i, args.updates)];
    }
}

/* places[j]: how many the subgroup had for the same owner before; what it has for each. */
void count_out()
{
    uint lane = gl_SubgroupInvocationID, all = 0u; /* for the owner that is `lane` */
    EACH_ITEM(j) {
        uint owner = owner_of(slots[j]);
        uvec4 live = subgroupBallot(slots[j] != NO_SLOT), peers = live, its = live;
        EACH_BIT(1u, SUBGROUPS) {
            uvec4 set = subgroupBallot((owner & bit) != 0u);
            peers &= like(set, owner, bit);
            its &= like(set, lane, bit);
        }
        places[j] = subgroupShuffle(all, owner) + subgroupBallotExclusiveBitCount(peers);
        all += subgroupBallotBitCount(its);
    }
    if (lane < SUBGROUPS)
        dealt_counts[gl_SubgroupID * SUBGROUPS + lane] = all;
}

/* Puts the updates where their owners find them; returns where this subgroup's begin and end. */
uvec2 deal()
{
    uint lane = gl_SubgroupInvocationID, before = 0u, total = 0u; /* of the owner that is `lane` */
    for (uint s = 0u; s < SUBGROUPS; s++) {
        uint count = dealt_counts[s * SUBGROUPS + (lane & (SUBGROUPS - 1u))];
        before += s < gl_SubgroupID ? count : 0u;
        total += count;
    }
    uint end = total;
    EACH_BIT(1u, SUBGROUPS) {
        uint earlier = subgroupShuffle(end, lane >= bit ? lane - bit : 0u);
        end += lane >= bit ? earlier : 0u;
    }
    uint begin = end - total;
    EACH_ITEM(j)
        places[j] += subgroupShuffle(begin + before, owner_of(slots[j]));
    EACH_ITEM(j)
        if (slots[j] != NO_SLOT) {
            dealt_slots[places[j]] = slots[j];
            dealt_values[places[j]] = values[j];
        }
    return uvec2(subgroupShuffle(begin, gl_SubgroupID), subgroupShuffle(end, gl_SubgroupID));
}

/* As many as there are invocations, from `first` on. An owner's slots differ above the owner's
 * bits. */
void apply_some(uint first, uint end)
{
    uint i = first + gl_SubgroupInvocationID;
    bool live = i < end;
    uint slot = dealt_slots[min(i, end - 1u)];
    float value = dealt_values[min(i, end - 1u)];
    uvec4 peers = subgroupBallot(live);
    EACH_BIT(SUBGROUPS, SLOTS)
        peers &= like(subgroupBallot((slot & bit) != 0u), slot, bit);
    uint turn = subgroupBallotExclusiveBitCount(peers);
    for (uint now = 0u; now < gl_SubgroupSize; now++) {
        if (live && turn == now)
            tile[slot] = apply(MODE, tile[slot], value);
        if (IN_STEP)
            subgroupMemoryBarrierShared();
        else
            subgroupBarrier();
        if (subgroupBallot(live && turn > now) == uvec4(0u))
            break;
    }
}

void load_tile()
{
    uint end = rows * COLUMNS;
    for (uint s = gl_LocalInvocationID.x; s < end; s += SCATTER_TILE_ITEMS * THREADS) {
        float olds[SCATTER_TILE_ITEMS];
        EACH(k)
            olds[k] = x[args.x_offset + place_of(s + k * THREADS)];
        EACH(k)
            if (s + k * THREADS < end)
                tile[s + k * THREADS] = olds[k];
    }
}

void main()
{
    if (!find_tile())
        return;
    uint end = args.updates * COLUMNS;
    fetch(0u);
    load_tile();
    for (uint first = 0u; first < end; first += BATCH) {
        find_slots(first);
        count_out();
        barrier();
        uvec2 dealt = deal();
        barrier();
        fetch(first + BATCH);
        for (uint i = dealt.x; i < dealt.y; i += gl_SubgroupSize)
            apply_some(i, dealt.y);
    }
    barrier();
    for (uint s = gl_LocalInvocationID.x; s < rows * COLUMNS; s += THREADS)
        if (is_place(s))
            y[args.y_offset + place_of(s)] = tile[s];
}
