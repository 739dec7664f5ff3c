/*
 * Elementary functions whose accuracy does not depend on the driver. They use minimax polynomials
 * after exact range reduction. Quotients and roots have a correction step from the residual.
 * Special values are tested on the bits. The reason is that Vulkan promises too little for the
 * built-ins: sin and cos 2^-11, atan 4096 ulp, division only for moderate divisors, fma that may
 * round twice. Steps whose rounding errors matter are `precise`. Errors are below 2 ulp unless
 * stated otherwise. Subnormal results may be flushed.
 */
#ifndef RLXVK_MATH_GLSL
#define RLXVK_MATH_GLSL

#define SIGN_BIT       0x80000000u
#define MAGNITUDE_BITS 0x7fffffffu
#define INFINITY_BITS  0x7f800000u
#define SMALLEST_BITS  0x00800000u /* the smallest normal number */

uint magnitude_bits(float v)
{
    return floatBitsToUint(v) & MAGNITUDE_BITS;
}
float with_sign(uint magnitude, uint sign)
{
    return uintBitsToFloat(magnitude | (sign & SIGN_BIT));
}
float power_of_two(int exponent) /* -126 .. 127 */
{
    return uintBitsToFloat(uint(exponent + 127) << 23);
}

/* v * 2^exponent for |exponent| <= 250. Overflow gives infinity; underflow gives 0 or a
 * subnormal. */
float scale_by_power(float v, int exponent)
{
    int first = exponent >> 1;
    return v * power_of_two(first) * power_of_two(exponent - first);
}

/* |v| = result * 2^exponent with the result in [1, 2), for finite nonzero v. Subnormals are handled
 * on their bits, because a device may flush them. */
float split_magnitude(float v, out int exponent)
{
    uint bits = magnitude_bits(v);
    exponent = -127;
    if (bits < SMALLEST_BITS) {
        bits = floatBitsToUint(float(bits));
        exponent = -127 - 149;
    }
    exponent += int(bits >> 23);
    return uintBitsToFloat((bits & 0x007fffffu) | 0x3f800000u);
}

/* 1 / x for 2^-100 <= x <= 2^100. It avoids the driver's division, which costs several times as
 * much. The squared inverse root is corrected with one Newton step. */
float reciprocal(float x)
{
    float root = inversesqrt(x), r = root * root;
    return r * fma(-x, r, 2.0);
}

/* Divides the mantissas. So no divisor is outside the range for which Vulkan bounds the error. */
float divide(float a, float b)
{
    uint a_bits = magnitude_bits(a), b_bits = magnitude_bits(b);
    uint sign = floatBitsToUint(a) ^ floatBitsToUint(b);
    int a_exponent, b_exponent;
    if (a_bits > INFINITY_BITS || b_bits > INFINITY_BITS)
        return NAN_VALUE;
    if (a_bits == b_bits && (a_bits == 0u || a_bits == INFINITY_BITS))
        return NAN_VALUE;
    if (b_bits == 0u || a_bits == INFINITY_BITS)
        return with_sign(INFINITY_BITS, sign);
    if (a_bits == 0u || b_bits == INFINITY_BITS)
        return with_sign(0u, sign);
    float x = split_magnitude(a, a_exponent), y = split_magnitude(b, b_exponent);
    float inverse = reciprocal(y);
    precise float quotient = x * inverse;
    precise float residual = fma(-quotient, y, x);
    quotient += residual * inverse;
    float magnitude = scale_by_power(quotient, clamp(a_exponent - b_exponent, -200, 200));
    return with_sign(floatBitsToUint(magnitude), sign);
}

/* Scales a small x up, so that the square of its root loses no bits. Subnormals are handled on
 * their bits. The root of the scaled x is 1 / result times the root of x. */
float scale_for_root(inout float x)
{
    uint bits = floatBitsToUint(x);
    bool tiny = bits < SMALLEST_BITS, small = bits < 0x20000000u;
    x = tiny ? 2.0 * float(bits) : small ? x * 1.84467441e19 : x; /* 2^150, 2^64 */
    return tiny ? 2.64697796e-23 : small ? 2.32830644e-10 : 1.0;
}

float square_root(float x)
{
    uint bits = floatBitsToUint(x);
    float v = x, scale = scale_for_root(v);
    float inverse = inversesqrt(v);
    precise float root = min(v * inverse, 1.84467430e19); /* the largest whose square is in range */
    precise float residual = fma(-root, root, v);
    root = fma(residual, 0.5 * inverse, root) * scale;
    root = bits > INFINITY_BITS ? NAN_VALUE : root;
    return (bits & MAGNITUDE_BITS) == 0u || bits == INFINITY_BITS ? x : root;
}

float reciprocal_root(float x)
{
    uint bits = floatBitsToUint(x);
    float v = x, scale = scale_for_root(v);
    precise float root = inversesqrt(v);
    precise float residual = fma(-(v * root), root, 1.0);
    root = fma(0.5 * root, residual, root);
    root *= power_of_two(127 - int(floatBitsToUint(scale) >> 23)); /* 1 / scale */
    root = bits > INFINITY_BITS ? NAN_VALUE : root;
    root = bits == INFINITY_BITS ? 0.0 : root;
    return (bits & MAGNITUDE_BITS) == 0u ? INFINITY : root;
}

/* x = n ln 2 + r with |r| <= ln 2 / 2, so e^x = 2^n (1 + r + r^2 P(r)). Adding 1.5 * 2^23 rounds n.
 * The product of n and the first part of ln 2 is exact. */
float exponential(float x)
{
    const float shift = 12582912.0;
    float v = min(max(x, -104.0), 89.0);
    precise float shifted = fma(v, 1.44269504, shift);
    precise float n = shifted - shift;
    precise float r = (v - n * 0.693145751953125) - n * 1.42860682e-6;
    float p = fma(r, 1.381443348e-3, 8.368796669e-3);
    p = fma(r, p, 4.166839644e-2);
    p = fma(r, p, 1.666651964e-1);
    p = fma(r, p, 4.999999404e-1);
    p = fma(r * r, p, r) + 1.0;
    v = scale_by_power(p, floatBitsToInt(shifted) - floatBitsToInt(shift));
    return is_nan(x) ? x : v;
}

/* The term f^3 P(f) of ln(1 + f) = f - f^2 / 2 + f^3 P(f), for f in [1/sqrt 2 - 1, sqrt 2 - 1]. */
float logarithm_tail(float f)
{
    float p = fma(f, -7.860947400e-2, 1.288349181e-1);
    p = fma(f, p, -1.312909722e-1);
    p = fma(f, p, 1.418095678e-1);
    p = fma(f, p, -1.662449986e-1);
    p = fma(f, p, 2.000229508e-1);
    p = fma(f, p, -2.500081062e-1);
    p = fma(f, p, 3.333331645e-1);
    return f * f * f * p;
}

/* ln |x| as an unevaluated sum of two numbers, for finite nonzero x. The relative error is about
 * 4e-8. */
vec2 logarithm_pair(float x)
{
    int exponent;
    float mantissa = split_magnitude(x, exponent);
    if (mantissa > 1.41421356) {
        mantissa *= 0.5;
        exponent += 1;
    }
    float f = mantissa - 1.0, e = float(exponent);
    precise float whole = e * 0.693145751953125;
    precise float high = whole + f;
    precise float low = (whole - high) + f;
    low += e * 1.42860682e-6 + (logarithm_tail(f) - 0.5 * f * f);
    precise float sum = high + low;
    precise float rest = (high - sum) + low;
    return vec2(sum, rest);
}

/* x = 2^n (1 + f) with 1 + f in [sqrt 1/2, sqrt 2], so ln x = n ln 2 + f P(f). The relative error
 * is 2e-7. */
float logarithm(float x)
{
    uint bits = floatBitsToUint(x), number = bits;
    if (bits < SMALLEST_BITS)
        number = floatBitsToUint(float(bits)); /* x 2^149 */
    uint power = (number - 0x3f3504f3u) & 0xff800000u;
    float f = uintBitsToFloat(number - power) - 1.0, n = float(int(power) >> 23);
    float p = fma(f, 8.722324713e-2, -1.436683677e-1);
    p = fma(f, p, 1.495227704e-1);
    p = fma(f, p, -1.656239540e-1);
    p = fma(f, p, 1.995683265e-1);
    p = fma(f, p, -2.500207388e-1);
    p = fma(f, p, 3.333418565e-1);
    p = fma(f, p, -4.999998797e-1);
    p = fma(f, p, 9.999999742e-1);
    float v = fma(f, p, (bits < SMALLEST_BITS ? n - 149.0 : n) * 0.693147181);
    v = bits > INFINITY_BITS ? NAN_VALUE : v;
    v = bits == INFINITY_BITS ? x : v;
    return (bits & MAGNITUDE_BITS) == 0u ? -INFINITY : v;
}

/* |a|^b as e^(b ln |a|), for operands that are not special values. The low part of the logarithm
 * and the rounding error of the product are applied as a factor. If fma rounds twice, the latter is
 * lost; the tolerance allows for that. */
float magnitude_power(float a, float b)
{
    vec2 ln = logarithm_pair(a);
    precise float product = b * ln.x;
    if (abs(product) > 200.0)
        return product > 0.0 ? INFINITY : 0.0;
    precise float rest = fma(b, ln.x, -product) + b * ln.y;
    return exponential(product) * (1.0 + rest);
}

/* pow as in C99. */
float power(float a, float b)
{
    uint a_bits = magnitude_bits(a), b_bits = magnitude_bits(b);
    bool a_negative = floatBitsToUint(a) >= SIGN_BIT, b_negative = floatBitsToUint(b) >= SIGN_BIT;
    if (b_bits == 0u || floatBitsToUint(a) == 0x3f800000u)
        return 1.0;
    if (a_bits > INFINITY_BITS || b_bits > INFINITY_BITS)
        return NAN_VALUE;
    bool huge = b_bits >= 0x4b800000u; /* 2^24 and above: even integers */
    uint whole = huge ? 0u : uint(abs(b));
    bool integral = huge || floatBitsToUint(float(whole)) == b_bits;
    uint sign = a_negative && integral && (whole & 1u) != 0u ? SIGN_BIT : 0u;
    if (a_bits == 0u || a_bits == INFINITY_BITS)
        return with_sign((a_bits == 0u) == b_negative ? INFINITY_BITS : 0u, sign);
    if (b_bits == INFINITY_BITS) {
        if (a_bits == 0x3f800000u)
            return 1.0;
        return (a_bits > 0x3f800000u) == b_negative ? 0.0 : INFINITY;
    }
    if (a_negative && !integral)
        return NAN_VALUE;
    if (whole >= 1u && whole <= 3u && integral && !(b_negative && whole > 1u)) {
        if (b_negative)
            return divide(1.0, a);
        return whole == 1u ? a : whole == 2u ? a * a : a * a * a;
    }
    return with_sign(floatBitsToUint(magnitude_power(a, b)), sign);
}

/* Words `word` to `word` + 3 of 2/pi in binary, for word <= 4. The first word is the integer part.
 * They are selected instead of indexed, because an array of constants is put in memory and is slow
 * to compile. */
uvec4 two_over_pi_words(uint word)
{
    const uint a = 0xa2f9836eu, b = 0x4e441529u, c = 0xfc2757d1u, d = 0xf534ddc0u;
    const uint e = 0xdb629599u, f = 0x3c439041u, g = 0xfe5163abu;
    uvec4 words = word == 0u ? uvec4(0u, a, b, c) : uvec4(a, b, c, d);
    words = word == 2u ? uvec4(b, c, d, e) : words;
    words = word == 3u ? uvec4(c, d, e, f) : words;
    return word == 4u ? uvec4(d, e, f, g) : words;
}

/* The remainder of |x| by pi/2, for |x| >= 2^16. It multiplies m, where |x| = m 2^e, by those bits
 * of 2/pi that do not give multiples of 4, as a fixed-point number of 2 + 62 bits. The products
 * wrap on purpose, because only their value modulo 4 matters. */
float reduce_large_angle(float x, out int quadrant)
{
    uint bits = magnitude_bits(x);
    uint mantissa = (bits & 0x007fffffu) | 0x00800000u;
    uint start = (bits >> 23) - 150u + 30u, shift = start & 31u;
    uvec4 words = two_over_pi_words(start >> 5);
    uvec3 part = words.xyz << shift;
    if (shift != 0u)
        part |= words.yzw >> 32u - shift;
    uint high, low, carry, unused;
    umulExtended(mantissa, part.z, carry, unused);
    umulExtended(mantissa, part.y, high, low);
    high += mantissa * part.x;
    low = uaddCarry(low, carry, carry);
    high += carry;
    uint nearest = (high + 0x20000000u) >> 30;
    quadrant = int(nearest);
    float fraction = float(int(high - (nearest << 30))) + float(low) * 2.3283064e-10;
    return fraction * 1.46291807926715968e-9; /* pi/2 / 2^30 */
}

/* x = quadrant * pi/2 + result with |result| <= pi/4 (slightly more because of rounding), for
 * finite x. */
float reduce_angle(float x, out int quadrant)
{
    if (abs(x) >= 65536.0) {
        float r = reduce_large_angle(x, quadrant);
        if (x > 0.0)
            return r;
        quadrant = -quadrant;
        return -r;
    }
    /* The first three parts of pi/2 have 8 bits each, so their multiples are exact. */
    precise float n = floor(x * 0.636619772 + 0.5);
    precise float r = x - n * 1.5703125;
    r = r - n * 4.84466552734375e-4;
    r = r + n * 6.407499313354492e-7;
    r = r - n * 9.92093629e-10;
    quadrant = int(n);
    return r;
}

float sine_polynomial(float r)
{
    float u = r * r;
    float p = fma(u, fma(u, -1.950906299e-4, 8.332118392e-3), -1.666665375e-1);
    return fma(r * u, p, r);
}
float cosine_polynomial(float r)
{
    float u = r * r;
    float p = fma(u, fma(u, 2.442921323e-5, -1.388728851e-3), 4.166664556e-2);
    return fma(u * u, p, fma(u, -0.5, 1.0));
}

/* sin(x + turns * pi/2) */
float sine(float x, int turns)
{
    int quadrant;
    if (magnitude_bits(x) >= INFINITY_BITS)
        return NAN_VALUE;
    float r = reduce_angle(x, quadrant);
    quadrant += turns;
    float v = (quadrant & 1) != 0 ? cosine_polynomial(r) : sine_polynomial(r);
    return (quadrant & 2) != 0 ? -v : v;
}

float tangent(float x)
{
    int quadrant;
    if (magnitude_bits(x) >= INFINITY_BITS)
        return NAN_VALUE;
    float r = reduce_angle(x, quadrant);
    float s = sine_polynomial(r), c = cosine_polynomial(r);
    bool odd = (quadrant & 1) != 0;
    float below = odd ? s : c, v = (odd ? -c : s) * reciprocal(max(abs(below), 1e-30));
    return below < 0.0 ? -v : v;
}

/* |x| is reduced to at most tan(pi/8) with atan x = pi/4 + atan((x - 1) / (x + 1)) = pi/2 - atan(1
 * / x). */
float arctangent(float x)
{
    float magnitude = min(abs(x), 1e9);
    bool large = magnitude > 2.41421356, middle = magnitude > 0.414213562;
    float base = large ? 1.57079633 : middle ? 0.785398163 : 0.0;
    float above = large ? -1.0 : middle ? magnitude - 1.0 : magnitude;
    float t = above * reciprocal(large ? magnitude : middle ? magnitude + 1.0 : 1.0);
    float u = t * t;
    float p = fma(u, -6.082504988e-2, 1.059564650e-1);
    p = fma(u, p, -1.424380392e-1);
    p = fma(u, p, 1.999848783e-1);
    p = fma(u, p, -3.333331645e-1);
    float v = base + fma(t * u, p, t);
    return is_nan(x) ? x : with_sign(floatBitsToUint(v), floatBitsToUint(x));
}

/* Near 0 an odd polynomial, so that the relative error is bounded. Otherwise 1 - 2 / (e^2|x| +
 * 1). */
float hyperbolic_tangent(float x)
{
    float magnitude = min(abs(x), 10.0), u = magnitude * magnitude;
    float p = fma(u, -6.207434926e-3, 2.102722228e-2);
    p = fma(u, p, -5.384228006e-2);
    p = fma(u, p, 1.333249956e-1);
    p = fma(u, p, -3.333331645e-1);
    float near = fma(magnitude * u, p, magnitude);
    float far = 1.0 - 2.0 * reciprocal(exp2(2.88539008 * magnitude) + 1.0);
    float v = with_sign(floatBitsToUint(magnitude < 0.55 ? near : far), floatBitsToUint(x));
    return is_nan(x) ? x : v;
}

/* 1 / (1 + e^-x) without overflow. */
float logistic(float x)
{
    float e = exp2(max(-1.44269504 * abs(x), -252.0));
    float v = (x < 0.0 ? e : 1.0) * reciprocal(1.0 + e);
    return is_nan(x) ? x : v;
}

#endif
