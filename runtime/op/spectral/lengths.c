/* Lengths of transforms, without a graph: the next good length, prime factors, the order of
 * bits. */
#include "op/spectral/fft.h"

uint64_t rlxvk_signal_next_pow2(uint64_t n)
{
    uint64_t power = 1;
    while (power < n && power)
        power *= 2;
    return power; /* 0 above 2^63 */
}

uint64_t rlxvk_signal_next_smooth7(uint64_t n)
{
    return fft_next_smooth(n);
}

uint64_t rlxvk_signal_bit_reverse(uint64_t x, uint32_t bits)
{
    uint64_t reversed = 0;
    for (uint32_t i = 0; i < bits && i < 64; i++)
        reversed = reversed << 1 | (x >> i & 1);
    return reversed;
}

/* (a + b) % n of numbers below n. Their sum may be 2^64 or more. */
static uint64_t add_modulo(uint64_t a, uint64_t b, uint64_t n)
{
    return a >= n - b ? a - (n - b) : a + b;
}

/* a * b % n of numbers below n: by doubling, unless the product fits. */
static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t n)
{
    uint64_t product;
    if (size_multiply(a, b, &product))
        return product % n;
    for (product = 0; b; b >>= 1, a = add_modulo(a, a, n))
        if (b & 1)
            product = add_modulo(product, a, n);
    return product;
}

static uint64_t power_modulo(uint64_t base, uint64_t exponent, uint64_t n)
{
    uint64_t power = 1;
    for (; exponent; exponent >>= 1, base = multiply_modulo(base, base, n))
        if (exponent & 1)
            power = multiply_modulo(power, base, n);
    return power;
}

/* The Miller-Rabin test. These bases decide every odd n below 2^64 (Sorenson, Webster 2015). */
static bool is_prime(uint64_t n)
{
    static const uint8_t bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    int twos = count_zeros_below(n - 1);
    for (size_t i = 0; i < ARRAY_COUNT(bases); i++) {
        uint64_t x = power_modulo(bases[i] % n, (n - 1) >> twos, n);
        bool passes = x <= 1 || x == n - 1;
        for (int k = 1; k < twos && !passes; k++)
            passes = (x = multiply_modulo(x, x, n)) == n - 1;
        if (!passes)
            return false;
    }
    return true;
}

static uint64_t square_plus(uint64_t x, uint64_t shift, uint64_t n)
{
    return add_modulo(multiply_modulo(x, x, n), shift % n, n);
}

/* The smaller factor of an n that has two: Pollard's rho. If a map finds both factors at once, the
 * next map is tried. */
static uint64_t lesser_factor(uint64_t n)
{
    for (uint64_t shift = 1;; shift++) {
        uint64_t slow = 2, fast = 2, divisor = 1;
        while (divisor == 1) {
            slow = square_plus(slow, shift, n);
            fast = square_plus(square_plus(fast, shift, n), shift, n);
            divisor = common_divisor(n, slow > fast ? slow - fast : fast - slow);
        }
        if (divisor != n)
            return MIN(divisor, n / divisor);
    }
}

/* Trial division ends when at most two prime factors can be left. */
size_t rlxvk_signal_prime_factors(uint64_t n, uint64_t *out, size_t capacity)
{
    size_t count = 0;
    for (uint64_t p = 2; n > 1; p++) {
        if (p > n / p)
            p = n;
        else if (p > 1u << 22)
            p = is_prime(n) ? n : lesser_factor(n);
        for (; n % p == 0; n /= p, count++)
            if (out && count < capacity)
                out[count] = p;
    }
    return count;
}
