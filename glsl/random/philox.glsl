/*
 * Philox4x32-10 (Salmon et al., SC'11): ten rounds of two 32 x 32 -> 64 bit products. Random ops
 * read their state at run time: seed and step as u64 in two words each, then the backend, then a
 * number that is added to the upper word of every key.
 */
#define PHILOX_KEY_STEP uvec2(0x9E3779B9u, 0xBB67AE85u)

uvec4 philox_round(uvec4 counter, uvec2 key)
{
    uint high_0, low_0, high_1, low_1;
    umulExtended(0xD2511F53u, counter.x, high_0, low_0);
    umulExtended(0xCD9E8D57u, counter.z, high_1, low_1);
    return uvec4(high_1 ^ counter.y ^ key.x, low_1, high_0 ^ counter.w ^ key.y, low_0);
}

uvec4 philox(uvec4 counter, uvec2 key)
{
    for (int i = 0; i < 10; i++) {
        counter = philox_round(counter, key);
        key += PHILOX_KEY_STEP;
    }
    return counter;
}

/* For several counters, with one key schedule. */
void philox_two(inout uvec4 a, inout uvec4 b, uvec2 key)
{
    for (int i = 0; i < 10; i++) {
        a = philox_round(a, key);
        b = philox_round(b, key);
        key += PHILOX_KEY_STEP;
    }
}

void philox_four(inout uvec4 a, inout uvec4 b, inout uvec4 c, inout uvec4 d, uvec2 key)
{
    for (int i = 0; i < 10; i++) {
        a = philox_round(a, key);
        b = philox_round(b, key);
        c = philox_round(c, key);
        d = philox_round(d, key);
        key += PHILOX_KEY_STEP;
    }
}

/* seed + addend mod 2^64 */
uvec2 mixed_key(uvec2 seed, uvec2 addend)
{
    uint carry;
    uint low = uaddCarry(seed.x, addend.x, carry);
    return uvec2(low, seed.y + addend.y + carry);
}

/* The 24 high bits of a word as a fraction in [0, 1). */
float unit_fraction(uint word)
{
    return float(word >> 8) * 5.9604644775390625e-8;
}
