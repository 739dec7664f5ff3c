/*
 * A pass over long rows: the words of a block are put in order of a digit of 8 bits in the
 * workgroup, and each digit's run of them goes to where those of the blocks before end. OUTPUT,
 * what comes of it: words alone, or with each its position, which goes along. FIRST: positions are
 * as they stand; LAST: what is written is the result.
 *
 * Who includes this has pool[], of BLOCK words at least, and
 *   own(j)               which of the block's elements a thread's j-th is: neighbours' neighbour
 *   rank_digits(count)   makes place[j] where own(j) goes in the block, by digit_at(j, count);
 *                        the pool is free then
 */
layout(constant_id = 1) const uint MODE = RADIX_WORDS;
layout(constant_id = 2) const uint OUTPUT = RADIX_PAIRS;
layout(constant_id = 3) const bool FIRST = false;
layout(constant_id = 4) const bool LAST = false;
layout(push_constant) uniform block { radix_pass_args args; };
layout(set = 0, binding = 0) readonly buffer source_words { uint words[]; };
layout(set = 0, binding = 1) readonly buffer source_items { uint items[]; };
layout(set = 0, binding = 2) restrict readonly buffer before { uint counts[]; };
layout(set = 0, binding = 3) restrict readonly buffer sums { uint totals[]; };
layout(set = 0, binding = 4) writeonly buffer target_words { uint new_words[]; };
layout(set = 0, binding = 5) writeonly buffer target_items { uint new_items[]; };

#define RUN  16u /* digits that one thread sums */
#define RUNS (RADIX_DIGITS / RUN)

uint word[RADIX_ITEMS];

/* Of each digit: where the block's go in the row, less where they start in the block; and that.
 * Behind each run a place is free, so that threads do not meet in one bank. */
shared uvec2 starts[RADIX_DIGITS + RUNS], run_sums[RUNS];

uint digit_spot(uint digit)
{
    return digit + digit / RUN;
}

uint digit_of(uint w)
{
    return key_of(w, MODE, args.limit) >> args.shift & (RADIX_DIGITS - 1u);
}

uint own(uint j);
void rank_digits(uint count);

/* What is no element comes behind all that are. */
uint digit_at(uint j, uint count)
{
    uint digit = digit_of(word[j]);
    return own(j) < count ? digit : RADIX_DIGITS - 1u;
}

void sum_runs()
{
    uint t = gl_LocalInvocationID.x;
    uvec2 sum = uvec2(0u);
    if (t >= RUNS)
        return;
    [[unroll]] for (uint i = 0u; i < RUN; i++) {
        uvec2 v = starts[digit_spot(t * RUN) + i];
        starts[digit_spot(t * RUN) + i] = sum;
        sum += v;
    }
    run_sums[t] = sum;
}

void find_starts(uint row, uint block)
{
    uint t = gl_LocalInvocationID.x;
    for (uint d = t; d < RADIX_DIGITS; d += THREADS) {
        uint segment = row * RADIX_DIGITS + d, at = segment * args.blocks + block;
        uint total = totals[segment], next = block + 1u < args.blocks ? counts[at + 1u] : total;
        starts[digit_spot(d)] = uvec2(total, next - counts[at]);
    }
    barrier();
    sum_runs();
    barrier();
    for (uint d = t; d < RADIX_DIGITS; d += THREADS) {
        uvec2 start = starts[digit_spot(d)];
        for (uint r = 0u; r < d / RUN; r++)
            start += run_sums[r];
        start.x += counts[(row * RADIX_DIGITS + d) * args.blocks + block] - start.y;
        starts[digit_spot(d)] = start;
    }
    barrier();
}

/* Puts the words in order, and each where it goes; word[] is then where, counted from the row. */
void move_words(uint to, uint count)
{
    EACH_ITEM(j)
        pool[place[j]] = word[j];
    barrier();
    EACH_ITEM(j) {
        uint q = j * THREADS + gl_LocalInvocationID.x, w = pool[q];
        uint goes = starts[digit_spot(digit_of(w))].x + q;
        if (LAST && OUTPUT == RADIX_PAIRS)
            w = key_of(w, MODE, args.limit);
        if (q < count && !(LAST && OUTPUT == RADIX_PLACES))
            new_words[to + goes] = w;
        word[j] = goes;
    }
}

void move_items(uint to, uint count)
{
    barrier();
    EACH_ITEM(j)
        pool[place[j]] = item[j];
    barrier();
    EACH_ITEM(j) {
        uint q = j * THREADS + gl_LocalInvocationID.x, v = pool[q];
        if (LAST && OUTPUT == RADIX_PLACES)
            v = floatBitsToUint(float(v));
        if (q < count)
            new_items[to + word[j]] = v;
    }
}

void main()
{
    uint g = group_index();
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks, base = row * args.extent;
    uint first = block * BLOCK, count = min(args.extent - first, BLOCK);
    EACH_ITEM(j)
        word[j] = words[args.source_offset + base + first + min(own(j), count - 1u)];
    find_starts(row, block);
    rank_digits(count);
    EACH_ITEM(j) {
        uint e = first + min(own(j), count - 1u);
        item[j] = FIRST || OUTPUT == RADIX_VALUES ? e : items[args.source_items + base + e];
    }
    move_words(args.target_offset + base, count);
    if (OUTPUT != RADIX_VALUES)
        move_items(args.target_items + base, count);
}
