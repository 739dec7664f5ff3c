/*
 * Makes operands of the matrix units from values that the lanes hold: UNIT_K / (2 MATRIX_LANES)
 * pairs for each of a lane's ROWS rows. In GIVE(matrix, VALUE, layout), VALUE(r, q) is pair q of
 * the lane's row r. Left operands are given by row, right operands by column.
 *
 * The includer declares the constant DIRECT. It is true if the device keeps matrices as in
 * matrix_layout.glsl, which must be included first. Otherwise pairs go through pair_work, an array
 * of words in shared memory. The subgroup's part of it begins at pairs_at.
 */
#ifdef IN_BF16
#define GIVEN_PAIR bf16vec2
uint given_word(bf16vec2 pair)
{
    uvec2 words = floatBitsToUint(vec2(pair));
    return words.x >> 16 | words.y;
}
#else
#define GIVEN_PAIR       f16vec2
#define given_word(pair) packFloat2x16(pair)
#endif
const uint GIVEN = UNIT_K / (2 * MATRIX_LANES);

#define GIVE(matrix, VALUE, layout)                                                                \
    if (DIRECT) {                                                                                  \
        [[unroll]] for (uint r = 0; r < ROWS; r++) {                                               \
            [[unroll]] for (uint q = 0; q < GIVEN; q++) {                                          \
                GIVEN_PAIR given = VALUE(r, q);                                                    \
                matrix[(r * GIVEN + q) * 2] = given.x;                                             \
                matrix[(r * GIVEN + q) * 2 + 1] = given.y;                                         \
            }                                                                                      \
        }                                                                                          \
    } else {                                                                                       \
        subgroupBarrier();                                                                         \
        [[unroll]] for (uint r = 0; r < ROWS; r++)                                                 \
            [[unroll]] for (uint q = 0; q < GIVEN; q++)                                            \
                pair_work[pairs_at + (row_of(r * OWN) * UNIT_K / 2 + q * LANES +                   \
                                      gl_SubgroupInvocationID % LANES)] =                          \
                    given_word(VALUE(r, q));                                                       \
        subgroupBarrier();                                                                         \
        coopMatLoad(matrix, pair_work, pairs_at, UNIT_K / 2, layout);                              \
    }
