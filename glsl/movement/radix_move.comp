#version 450
/* One pass over long rows, on any device. A block is split by four bits twice. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix_block.glsl"
#include "movement/radix_key.glsl"
#include "movement/radix_move.glsl"

uint own(uint j)
{
    return element(j, true);
}

void rank_digits(uint count)
{
    EACH_ITEM(j)
        pool[spot(own(j))] = digit_at(j, count);
    barrier();
    EACH_ITEM(j) { /* the digit, and its element */
        uint e = element(j, false);
        key[j] = pool[spot(e)] | e << RADIX_BITS;
    }
    barrier();
    EACH_ITEM(j)
        place[j] = key[j] & 15u;
    rank_items();
    move_keys(false);
    EACH_ITEM(j)
        place[j] = key[j] >> 4u & 15u;
    rank_items();
    EACH_ITEM(j)
        pool[spot(key[j] >> RADIX_BITS)] = place[j];
    barrier();
    EACH_ITEM(j)
        place[j] = pool[spot(own(j))];
    barrier();
}
