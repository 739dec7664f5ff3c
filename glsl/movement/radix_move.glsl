/*
 * One pass over long rows. A workgroup sorts the words of a block by a digit of 8 bits. Then it
 * writes each digit's run behind the runs of the blocks before. OUTPUT says whether only words are
 * sorted, or words together with their positions. In the FIRST pass the positions are the indices
 * themselves. The LAST pass writes the result.
 *
 * The includer declares pool[], of at least BLOCK words, and:
 *
 *   own(j)               index in the block of a thread's j-th element; neighbouring threads have
 *                        neighbouring elements
 *   rank_digits(count)   sets place[j] to the position of own(j) in the sorted block, from
 *                        digit_at(j, count); afterwards the pool is free
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

/* For each digit: x is the position of the block's run in the row, minus y. y is its position in
 * the block. One slot is free after each run of digits to avoid bank conflicts. */
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

/* Slots beyond the last element get the largest digit, so that they come after all elements. */
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

/* Puts the words in order and writes each to its target. Then word[] is the target's position in
 * the row. */
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
