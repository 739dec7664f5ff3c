/*
 * How sums of a convolution leave the matrix units. Each subgroup stores a matrix of sums to its
 * patch of shared memory, because only there it is known which element is which. A lane then writes
 * elements of one column, whose place it computes only once. Include this after matrix_tiles.glsl.
 *
 * The includer declares
 *   uint column_place(uint column, out bool real)     where a column begins in y
 *   void write(float value, uint row, uint place)
 * and `tile` and `part` in main(): the first row and column of the workgroup, and of the subgroup
 * from there.
 */
const uint SUBGROUP = THREADS / (TILE_M / PART_M * PARTS_N); /* a multiple of UNIT_N */

void leave(uint patch_start, uvec2 at)
{
    bool real;
    uint lane = gl_SubgroupInvocationID, place = column_place(at.y + lane % UNIT_N, real);
    [[dont_unroll]] for (uint e = lane; e < UNIT_M * UNIT_N; e += SUBGROUP) {
        uint row = at.x + e / UNIT_N;
        if (real && row < args.m)
            write(uintBitsToFloat(tile_a[patch_start + e / 4][e % 4]), row, place);
    }
}

/* The loop over the sums must be unrolled, so that they stay in registers. */
#define LEAVE                                                                                      \
    uint patch_start = gl_SubgroupID * UNIT_M * UNIT_N / 4;                                        \
    barrier();                                                                                     \
    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++) {                                        \
        coopMatStore(sums[i], tile_a, patch_start, UNIT_N / 4, gl_CooperativeMatrixLayoutRowMajor);\
        subgroupBarrier();                                                                         \
        leave(patch_start, tile + part + uvec2(i / SUMS_N * UNIT_M, i % SUMS_N * UNIT_N));         \
        subgroupBarrier();                                                                         \
    }
