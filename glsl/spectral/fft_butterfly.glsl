/*
 * Forward transforms of R points in registers, with outputs in natural order: v[k] <- sum v[n]
 * w^(nk), w = exp(-2 pi i / R). Powers of two are built from 4-point transforms. Odd lengths use
 * the pairs (n, R - n), because their cosines are equal and their sines are opposite. Constants are
 * rounded once. If the includer defines UNROLL, it precedes every loop.
 */
#ifndef UNROLL
#define UNROLL
#endif

vec2 complex_product(vec2 a, vec2 b)
{
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
vec2 times_minus_i(vec2 a)
{
    return vec2(a.y, -a.x);
}

void transform2(inout vec2 v[2])
{
    vec2 difference = v[0] - v[1];
    v[0] += v[1];
    v[1] = difference;
}

void four_points(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d)
{
    vec2 s = a + c, t = a - c, u = b + d, w = times_minus_i(b - d);
    a = s + u;
    b = t + w;
    c = s - u;
    d = t - w;
}

void transform4(inout vec2 v[4])
{
    four_points(v[0], v[1], v[2], v[3]);
}

#define ROOT_HALF 0.70710678118654752
#define COSINE_8  0.92387953251128676 /* of pi / 8 */
#define SINE_8    0.38268343236508977

/* Two interleaved 4-point transforms, then 2-point ones. */
void transform8(inout vec2 v[8])
{
    four_points(v[0], v[2], v[4], v[6]);
    four_points(v[1], v[3], v[5], v[7]);
    vec2 o1 = vec2(v[3].x + v[3].y, v[3].y - v[3].x) * ROOT_HALF;
    vec2 o2 = times_minus_i(v[5]);
    vec2 o3 = vec2(v[7].y - v[7].x, -v[7].x - v[7].y) * ROOT_HALF;
    vec2 e0 = v[0], e1 = v[2], e2 = v[4], e3 = v[6], o0 = v[1];
    v[0] = e0 + o0;
    v[1] = e1 + o1;
    v[2] = e2 + o2;
    v[3] = e3 + o3;
    v[4] = e0 - o0;
    v[5] = e1 - o1;
    v[6] = e2 - o2;
    v[7] = e3 - o3;
}

/* 4 x 4: columns, twiddles w^(ab), rows. Then a transposition gives natural order. */
void transform16(inout vec2 v[16])
{
    const vec2 w1 = vec2(COSINE_8, -SINE_8), w2 = vec2(ROOT_HALF, -ROOT_HALF);
    const vec2 w3 = vec2(SINE_8, -COSINE_8), w6 = vec2(-ROOT_HALF, -ROOT_HALF);
    four_points(v[0], v[4], v[8], v[12]);
    four_points(v[1], v[5], v[9], v[13]);
    four_points(v[2], v[6], v[10], v[14]);
    four_points(v[3], v[7], v[11], v[15]);
    v[5] = complex_product(v[5], w1);
    v[6] = complex_product(v[6], w2);
    v[7] = complex_product(v[7], w3);
    v[9] = complex_product(v[9], w2);
    v[10] = times_minus_i(v[10]);
    v[11] = complex_product(v[11], w6);
    v[13] = complex_product(v[13], w3);
    v[14] = complex_product(v[14], w6);
    v[15] = complex_product(v[15], -w1);
    four_points(v[0], v[1], v[2], v[3]);
    four_points(v[4], v[5], v[6], v[7]);
    four_points(v[8], v[9], v[10], v[11]);
    four_points(v[12], v[13], v[14], v[15]);
    UNROLL for (uint a = 0; a < 4; a++)
        UNROLL for (uint b = a + 1; b < 4; b++) {
            vec2 other = v[4 * a + b];
            v[4 * a + b] = v[4 * b + a];
            v[4 * b + a] = other;
        }
}

/* cos(2 pi m / R) and sin, m = 0 .. R - 1 */
const vec2 CIRCLE_3[3] = vec2[](vec2(1, 0), vec2(-0.5, 0.86602540378443865),
                                vec2(-0.5, -0.86602540378443865));
const vec2 CIRCLE_5[5] =
    vec2[](vec2(1, 0), vec2(0.30901699437494742, 0.95105651629515357),
           vec2(-0.80901699437494742, 0.58778525229247313),
           vec2(-0.80901699437494742, -0.58778525229247313),
           vec2(0.30901699437494742, -0.95105651629515357));
const vec2 CIRCLE_7[7] = vec2[](
    vec2(1, 0),
    vec2(0.62348980185873359, 0.7818314824680298),
    vec2(-0.22252093395631434, 0.97492791218182362),
    vec2(-0.90096886790241903, 0.43388373911755823),
    vec2(-0.90096886790241915, -0.43388373911755801),
    vec2(-0.22252093395631459, -0.97492791218182362),
    vec2(0.62348980185873337, -0.78183148246802991));
const vec2 CIRCLE_11[11] = vec2[](
    vec2(1, 0),
    vec2(0.84125353283118121, 0.54064081745559756),
    vec2(0.41541501300188644, 0.90963199535451833),
    vec2(-0.142314838273285, 0.9898214418809328),
    vec2(-0.65486073394528499, 0.75574957435425827),
    vec2(-0.95949297361449737, 0.28173255684142967),
    vec2(-0.95949297361449748, -0.28173255684142939),
    vec2(-0.65486073394528521, -0.75574957435425816),
    vec2(-0.14231483827328523, -0.98982144188093268),
    vec2(0.41541501300188605, -0.90963199535451855),
    vec2(0.84125353283118121, -0.54064081745559744));
const vec2 CIRCLE_13[13] = vec2[](
    vec2(1, 0),
    vec2(0.88545602565320991, 0.46472317204376851),
    vec2(0.56806474673115592, 0.82298386589365635),
    vec2(0.12053668025532301, 0.99270887409805397),
    vec2(-0.35460488704253545, 0.93501624268541483),
    vec2(-0.74851074817110119, 0.66312265824079519),
    vec2(-0.97094181742605201, 0.23931566428755768),
    vec2(-0.97094181742605212, -0.23931566428755743),
    vec2(-0.7485107481711013, -0.66312265824079497),
    vec2(-0.3546048870425359, -0.93501624268541472),
    vec2(0.1205366802553232, -0.99270887409805397),
    vec2(0.56806474673115481, -0.82298386589365702),
    vec2(0.88545602565321002, -0.4647231720437684));

#define ODD_TRANSFORM(name, R, circle)                                                             \
    void name(inout vec2 v[R])                                                                     \
    {                                                                                              \
        vec2 origin = v[0], total = v[0], even[R / 2], odd[R / 2];                                 \
        UNROLL for (uint m = 0; m < R / 2; m++) {                                                  \
            even[m] = v[m + 1] + v[R - 1 - m];                                                     \
            odd[m] = v[m + 1] - v[R - 1 - m];                                                      \
            total += even[m];                                                                      \
        }                                                                                          \
        v[0] = total;                                                                              \
        UNROLL for (uint k = 1; k <= R / 2; k++) {                                                 \
            vec2 a = origin, b = vec2(0);                                                          \
            UNROLL for (uint m = 1; m <= R / 2; m++) {                                             \
                a += circle[k * m % R].x * even[m - 1];                                            \
                b += circle[k * m % R].y * odd[m - 1];                                             \
            }                                                                                      \
            v[k] = a + times_minus_i(b);                                                           \
            v[R - k] = a - times_minus_i(b);                                                       \
        }                                                                                          \
    }
ODD_TRANSFORM(transform3, 3, CIRCLE_3)
ODD_TRANSFORM(transform5, 5, CIRCLE_5)
ODD_TRANSFORM(transform7, 7, CIRCLE_7)
ODD_TRANSFORM(transform11, 11, CIRCLE_11)
ODD_TRANSFORM(transform13, 13, CIRCLE_13)
