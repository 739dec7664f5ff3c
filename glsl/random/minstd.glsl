/*
 * MINSTD (Park and Miller): x -> 16807 x mod m, m = 2^31 - 1. Word w of a stream is 16807^(w + 1)
 * times the seed, so that any invocation can start anywhere.
 *
 * Also the polar method for normal numbers. Candidate c is a pair of fractions, words 2c and 2c +
 * 1. Only these two words decide whether it is accepted, and the test uses integers. Candidates are
 * counted in chunks, one workgroup per chunk.
 */
#define MINSTD_MODULUS 0x7fffffffu
#define MINSTD_FACTOR  16807u
#define MINSTD_ONE     0x40000000 /* 1 in polar coordinates, whose unit is 2^-30 */

/* a b mod m for a, b < m. The halves of the product are added, because 2^31 is 1 mod m. */
uint minstd_product(uint a, uint b)
{
    uint high, low;
    umulExtended(a, b, high, low);
    uint sum = (high << 1 | low >> 31) + (low & MINSTD_MODULUS);
    return sum >= MINSTD_MODULUS ? sum - MINSTD_MODULUS : sum;
}

/* 16807^n mod m */
uint minstd_power(uint n)
{
    uint power = 1u, square = MINSTD_FACTOR;
    for (; n != 0u; n >>= 1) {
        if ((n & 1u) != 0u)
            power = minstd_product(power, square);
        square = minstd_product(square, square);
    }
    return power;
}

/*
 * Makes any word the seed of a stream. It is taken mod m, and is never 0, which is a fixed point.
 */
uint minstd_seed(uint v)
{
    v = (v & MINSTD_MODULUS) + (v >> 31);
    v = v >= MINSTD_MODULUS ? v - MINSTD_MODULUS : v;
    return v == 0u ? 1u : v;
}

uint minstd_word(uint seed, uint w)
{
    return minstd_product(seed, minstd_power(w + 1u));
}

/*
 * 2^31 U, with U = (x - 1) / (m - 1) rounded to f64, then to f32, and at most 1 - 2^-24. With a = x
 * - 1, 2^31 U is a + a / (2^30 - 1). This is a little more than a, or than a + 1 from 2^30 - 1 on,
 * and never half way between two f32. But the f64 quotient is half way for two values of x. Then
 * the even f32 is taken.
 */
uint minstd_fraction(uint x)
{
    uint a = x - 1u, width = max(findMSB(a | 0x00800000u) - 23, 0), rest = a & ((1u << width) - 1u);
    uint half_unit = (1u << width) >> 1;
    bool up = width != 0u && rest + (a >= 0x3fffffffu ? 1u : 0u) >= half_unit;
    if (a == 0x3fffffdfu)
        up = true;
    if (a == 0x4000003fu)
        up = false;
    return min(((a >> width) + (up ? 1u : 0u)) << width, 0x7fffff80u);
}

uvec2 minstd_square(int v)
{
    uint high, low, magnitude = uint(abs(v));
    umulExtended(magnitude, magnitude, high, low);
    return uvec2(low, high);
}

/*
 * The candidate whose first word is x. v = 2 U - 1 is in units of 2^-30. |v|^2 is in units of
 * 2^-60, low word first. Both are exact. Returns true if the candidate is accepted: 0 < |v|^2 < 1.
 */
bool polar_candidate(uint x, out ivec2 v, out uvec2 square)
{
    uint carry;
    uint next = minstd_product(x, MINSTD_FACTOR);
    v = ivec2(minstd_fraction(x), minstd_fraction(next)) - MINSTD_ONE;
    uvec2 a = minstd_square(v.x), b = minstd_square(v.y);
    square.x = uaddCarry(a.x, b.x, carry);
    square.y = a.y + b.y + carry;
    return square.y < 0x10000000u && (square.x | square.y) != 0u;
}

/* The first word of this invocation's first candidate in a chunk. The next one is a workgroup size
 * further on. */
uint polar_start(uint seed, uint chunk)
{
    uint candidate = chunk * args.polar_rounds * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    return minstd_word(seed, 2u * candidate);
}

/* The stream's seed, from the run-time state or from the op. */
uint minstd_stream(uint seed_low)
{
    return minstd_seed(args.use_op_seed != 0u ? args.op_engine : seed_low + args.engine_key);
}
