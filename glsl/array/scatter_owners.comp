#version 450
/*
 * Sums or products for tiles of lines along any axis. Ballots distribute the updates that fall into
 * the tile to the subgroups. The element decides the subgroup, and the updates of a subgroup keep
 * their order. Then each subgroup applies its updates. Invocations with the same element take
 * turns.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/common.glsl"
#include "args/array.h"
#include "array/scatter_tile.glsl"

layout(constant_id = 4) const uint ITEMS = 4;     /* updates that a thread distributes at a time */
layout(constant_id = 5) const uint SUBGROUPS = 1; /* full; a power of two <= their size */
layout(constant_id = 6) const bool WHOLE = true;  /* each update falls into the tile or nowhere */
/* If the invocations of a subgroup run in step, memory needs a barrier and execution does not. This
 * is for a software driver whose subgroup barrier waits for the whole workgroup, although other
 * subgroups do not reach it. */
layout(constant_id = 7) const bool IN_STEP = false;
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

#define EACH_ITEM(j) [[unroll]] for (uint j = 0u; j < ITEMS; j++)
#define EACH(k)      [[unroll]] for (uint k = 0u; k < SCATTER_TILE_ITEMS; k++)
/* Loops over the bits from `low` to below `high`; both are powers of two. */
#define EACH_BIT(low, high) [[unroll]] for (uint bit = low; bit < high; bit *= 2u)

const uint THREADS = gl_WorkGroupSize.x;
const uint BATCH = ITEMS * THREADS;

shared float tile[SLOTS];
shared uint dealt_slots[BATCH];
shared float dealt_values[BATCH];
shared uint dealt_counts[SUBGROUPS * SUBGROUPS]; /* [from, to] */

float named[ITEMS], values[ITEMS];
uint slots[ITEMS], places[ITEMS];

/* The subgroup that applies the updates of a slot. The slots of one owner are spread over all banks
 * of shared memory. */
uint owner_of(uint slot)
{
    return (slot ^ slot >> 5u) & (SUBGROUPS - 1u);
}

/* `set` has the invocations whose number has this bit. Returns those that agree with `number` in
 * it. */
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

/* Counts the subgroup's updates for each owner. places[j]: the number of earlier updates of the
 * subgroup for the same owner. */
void count_out()
{
    uint lane = gl_SubgroupInvocationID, all = 0u; /* for owner `lane` */
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

/* Puts the updates at the places of their owners. Returns the begin and end of this subgroup's
 * updates. */
uvec2 deal()
{
    uint lane = gl_SubgroupInvocationID, before = 0u, total = 0u; /* for owner `lane` */
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

/* Applies one update for each invocation, starting at `first`. Slots of the same owner differ only
 * in the bits above the owner's bits. */
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
