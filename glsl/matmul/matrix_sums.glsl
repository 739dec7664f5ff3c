/*
 * The sums of a subgroup as separate variables: SUMS_M x SUMS_N of them. Both numbers are at most
 * four. An array stays in registers only if the driver unrolls all loops that index it. An H200's
 * driver does not if there is much else to unroll, and then the kernel is six times slower. The
 * constants tell which variables are in use, so that the others vanish. Include this after
 * matrix_tiles.glsl, whose macros use `part`.
 */
#define EACH_SUM(X)                                                                                \
    X(sum00, 0, 0)                                                                                 \
    X(sum01, 0, 1)                                                                                 \
    X(sum02, 0, 2)                                                                                 \
    X(sum03, 0, 3)                                                                                 \
    X(sum10, 1, 0)                                                                                 \
    X(sum11, 1, 1)                                                                                 \
    X(sum12, 1, 2)                                                                                 \
    X(sum13, 1, 3)                                                                                 \
    X(sum20, 2, 0)                                                                                 \
    X(sum21, 2, 1)                                                                                 \
    X(sum22, 2, 2)                                                                                 \
    X(sum23, 2, 3)                                                                                 \
    X(sum30, 3, 0)                                                                                 \
    X(sum31, 3, 1)                                                                                 \
    X(sum32, 3, 2)                                                                                 \
    X(sum33, 3, 3)

#define CLEAR_SUM(sum, i, j) SUM sum = SUM(0.0);

#define MULTIPLY_COLUMN(plane, k, j, s0, s1, s2, s3)                                               \
    if (j < SUMS_N) {                                                                              \
        OPERAND_B right;                                                                           \
        LOAD_B(right, plane, j, k);                                                                \
        s0 = coopMatMulAdd(left0, right, s0);                                                      \
        if (SUMS_M > 1)                                                                            \
            s1 = coopMatMulAdd(left1, right, s1);                                                  \
        if (SUMS_M > 2)                                                                            \
            s2 = coopMatMulAdd(left2, right, s2);                                                  \
        if (SUMS_M > 3)                                                                            \
            s3 = coopMatMulAdd(left3, right, s3);                                                  \
    }

/* The products of step k of the units, if the tile has such a step. */
#define MULTIPLY(plane, k)                                                                         \
    if (k < TILE_K / UNIT_K) {                                                                     \
        OPERAND_A left0, left1, left2, left3;                                                      \
        LOAD_A(left0, plane, 0, k);                                                                \
        if (SUMS_M > 1)                                                                            \
            LOAD_A(left1, plane, 1, k);                                                            \
        if (SUMS_M > 2)                                                                            \
            LOAD_A(left2, plane, 2, k);                                                            \
        if (SUMS_M > 3)                                                                            \
            LOAD_A(left3, plane, 3, k);                                                            \
        MULTIPLY_COLUMN(plane, k, 0, sum00, sum10, sum20, sum30)                                   \
        MULTIPLY_COLUMN(plane, k, 1, sum01, sum11, sum21, sum31)                                   \
        MULTIPLY_COLUMN(plane, k, 2, sum02, sum12, sum22, sum32)                                   \
        MULTIPLY_COLUMN(plane, k, 3, sum03, sum13, sum23, sum33)                                   \
    }

/*
 * Writes a sum through the subgroup's patch of shared memory, because only there it is known which
 * element is which. The includer defines MATRIX_PATCHES (the tile that has room for the patches)
 * and MATRIX_WRITE(value, row, column). It declares `patch_start`, and `tile`: the first row and
 * column of the workgroup.
 */
#define LEAVE_SUM(sum, i, j)                                                                       \
    if (i < SUMS_M && j < SUMS_N) {                                                                \
        coopMatStore(sum, MATRIX_PATCHES, patch_start, UNIT_N / 4,                                 \
                     gl_CooperativeMatrixLayoutRowMajor);                                          \
        subgroupBarrier();                                                                         \
        uvec2 at = tile + part + uvec2(i * UNIT_M, j * UNIT_N);                                    \
        [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < UNIT_M * UNIT_N;                \
                             e += gl_SubgroupSize)                                                 \
            MATRIX_WRITE(uintBitsToFloat(MATRIX_PATCHES[patch_start + e / 4][e % 4]),              \
                         at.x + e / UNIT_N, at.y + e % UNIT_N);                                    \
        subgroupBarrier();                                                                         \
    }
