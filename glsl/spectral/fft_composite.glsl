/*
 * Forward transforms of composite lengths in registers, built from those of fft_butterfly.glsl. If
 * the factors A and B are coprime, no twiddles are needed. The input is (B a + A b) mod R and the
 * output (EA a' + EB b') mod R. EA is 1 mod A and 0 mod B, and EB is the other way round. Other
 * lengths multiply by roots of unity between the transforms of the columns and of the rows.
 */
#define COPRIME(name, R, A, B, EA, EB, transform_a, transform_b)                                   \
    void name(inout vec2 v[R])                                                                     \
    {                                                                                              \
        vec2 t[R];                                                                                 \
        [[unroll]] for (uint b = 0; b < B; b++) {                                                  \
            vec2 u[A];                                                                             \
            [[unroll]] for (uint a = 0; a < A; a++)                                                \
                u[a] = v[(B * a + A * b) % R];                                                     \
            transform_a(u);                                                                        \
            [[unroll]] for (uint a = 0; a < A; a++)                                                \
                t[a * B + b] = u[a];                                                               \
        }                                                                                          \
        [[unroll]] for (uint a = 0; a < A; a++) {                                                  \
            vec2 u[B];                                                                             \
            [[unroll]] for (uint b = 0; b < B; b++)                                                \
                u[b] = t[a * B + b];                                                               \
            transform_b(u);                                                                        \
            [[unroll]] for (uint b = 0; b < B; b++)                                                \
                v[(EA * a + EB * b) % R] = u[b];                                                   \
        }                                                                                          \
    }
COPRIME(transform6, 6, 2, 3, 3, 4, transform2, transform3)
COPRIME(transform10, 10, 2, 5, 5, 6, transform2, transform5)
COPRIME(transform12, 12, 4, 3, 9, 4, transform4, transform3)
COPRIME(transform14, 14, 2, 7, 7, 8, transform2, transform7)
COPRIME(transform15, 15, 3, 5, 10, 6, transform3, transform5)

/* exp(-2 pi i m / 9), m = 1, 2, 4 */
const vec2 ROOT_9_1 = vec2(0.76604444311897804, -0.64278760968653933);
const vec2 ROOT_9_2 = vec2(0.17364817766693035, -0.98480775301220806);
const vec2 ROOT_9_4 = vec2(-0.93969262078590838, -0.34202014332566873);

void transform9(inout vec2 v[9])
{
    vec2 t[9];
    [[unroll]] for (uint b = 0; b < 3; b++) {
        vec2 u[3] = vec2[](v[b], v[3 + b], v[6 + b]);
        transform3(u);
        [[unroll]] for (uint a = 0; a < 3; a++)
            t[3 * a + b] = u[a];
    }
    t[4] = complex_product(t[4], ROOT_9_1);
    t[5] = complex_product(t[5], ROOT_9_2);
    t[7] = complex_product(t[7], ROOT_9_2);
    t[8] = complex_product(t[8], ROOT_9_4);
    [[unroll]] for (uint a = 0; a < 3; a++) {
        vec2 u[3] = vec2[](t[3 * a], t[3 * a + 1], t[3 * a + 2]);
        transform3(u);
        [[unroll]] for (uint b = 0; b < 3; b++)
            v[a + 3 * b] = u[b];
    }
}
