/*
 * A stable split of a workgroup's elements by four bits, on any device. A thread holds RADIX_ITEMS
 * consecutive elements. It counts its own elements for each of 16 digits, with two counts per word.
 * Prefix sums over digits and threads give the elements' new positions, to which they move through
 * shared memory. Nothing depends on subgroups, or on the order in which threads run.
 */
#include "movement/radix_items.glsl"

shared uint pool[BLOCK];

uint key[RADIX_ITEMS];

/*
 * Positions in shared memory of element i and of count i. The exclusive or avoids bank conflicts.
 */
uint spot(uint i)
{
    return i ^ (i >> 5u & 15u);
}
uint count_spot(uint i)
{
    return i ^ (i >> 5u & 7u);
}

/* Prefix sum over the threads before this one, for two 16-bit halves at once. `total` is the sum
 * over all threads. */
uint sum_before(uint value, out uint total)
{
    uint t = gl_LocalInvocationID.x, first = 8u * THREADS, runs = THREADS / 16u;
    pool[first + t] = value;
    barrier();
    if (t < runs) {
        uint sum = 0u;
        for (uint i = first + 16u * t; i < first + 16u * t + 16u; i++) {
            uint v = pool[i];
            pool[i] = sum;
            sum += v;
        }
        pool[first + THREADS + t] = sum;
    }
    barrier();
    uint before = pool[first + t];
    total = 0u;
    for (uint r = 0u; r < runs; r++) {
        uint v = pool[first + THREADS + r];
        before += r < t / 16u ? v : 0u;
        total += v;
    }
    return before;
}

/* Replaces the digits in place[] by the new positions of the elements. */
void rank_items()
{
    uint t = gl_LocalInvocationID.x, first = 8u * t, sum = 0u, total;
    for (uint d = 0u; d < 8u; d++)
        pool[count_spot(d * THREADS + t)] = 0u;
    EACH_ITEM(j) {
        uint digit = place[j], half_of = (digit >> 3u) * 16u;
        uint slot = count_spot((digit & 7u) * THREADS + t);
        uint counts = pool[slot];
        place[j] = digit | (counts >> half_of & 0xffffu) << 4u;
        pool[slot] = counts + (1u << half_of);
    }
    barrier();
    for (uint i = first; i < first + 8u; i++)
        sum += pool[count_spot(i)];
    uint before = sum_before(sum, total);
    before += total << 16u; /* upper halves come after all lower ones */
    for (uint i = first; i < first + 8u; i++) {
        uint counts = pool[count_spot(i)];
        pool[count_spot(i)] = before;
        before += counts;
    }
    barrier();
    EACH_ITEM(j) {
        uint digit = place[j] & 15u, half_of = (digit >> 3u) * 16u;
        uint before_item = pool[count_spot((digit & 7u) * THREADS + t)] >> half_of & 0xffffu;
        place[j] = (place[j] >> 4u) + before_item;
    }
    barrier();
}

/* Index in the workgroup of a thread's j-th element. A thread has consecutive elements or, if
 * strided, one out of every THREADS. */
uint element(uint j, bool strided)
{
    uint t = gl_LocalInvocationID.x;
    return strided ? j * THREADS + t : t * RADIX_ITEMS + j;
}

void move_keys(bool strided)
{
    EACH_ITEM(j)
        pool[spot(place[j])] = key[j];
    barrier();
    EACH_ITEM(j)
        key[j] = pool[spot(element(j, strided))];
    barrier();
}

void move_items(bool strided)
{
    EACH_ITEM(j)
        pool[spot(place[j])] = item[j];
    barrier();
    EACH_ITEM(j)
        item[j] = pool[spot(element(j, strided))];
    barrier();
}

void split_by_key(uint shift, bool strided)
{
    EACH_ITEM(j)
        place[j] = key[j] >> shift & 15u;
    rank_items();
    move_keys(strided);
    move_items(strided);
}
