/*
 * The end of main() in a product on matrix units. Each subgroup stores its sums to a patch of
 * shared memory, because only there it is known which element is which. The includer defines
 * MATRIX_PATCHES (the tile that has room for the patches) and MATRIX_WRITE(value, row, column).
 * `tile` is the first row and column of the workgroup. `part` is the first row and column of the
 * subgroup, from there.
 *
 * The loop over the sums must be unrolled, so that they stay in registers. Therefore it contains
 * only this one loop.
 */
    uint patch_start = gl_SubgroupID * UNIT_M * UNIT_N / 4;
    barrier();
    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++) {
        coopMatStore(sums[i], MATRIX_PATCHES, patch_start, UNIT_N / 4,
                     gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        uvec2 at = tile + part + uvec2(i / SUMS_N * UNIT_M, i % SUMS_N * UNIT_N);
        [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < UNIT_M * UNIT_N;
                             e += gl_SubgroupSize)
            MATRIX_WRITE(uintBitsToFloat(MATRIX_PATCHES[patch_start + e / 4][e % 4]),
                         at.x + e / UNIT_N, at.y + e % UNIT_N);
        subgroupBarrier();
    }
