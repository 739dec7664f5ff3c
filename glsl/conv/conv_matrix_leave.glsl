/*
 * How sums of a convolution leave the matrix units. Each subgroup stores a matrix of sums to its
 * patch of shared memory, because only there it is known which element is which. A lane then writes
 * elements of one column, whose place it computes only once. Include this after matrix_tiles.glsl.
 *
 * The includer declares
 *   uint column_place(uint column, out bool real)     where a column begins in y
 *   bool HAS_TERMS                                    whether terms_of() reads memory
 *   vec3 terms_of(uint row, uint place)               what an element needs beside its sum
 *   void write(float sum, vec3 terms, uint row, uint place)
 * and in main(): `tile` and `part`, the first row and column of the workgroup, and of the subgroup
 * from there; and `patch_start`.
 */
#include "matmul/matrix_sums.glsl"

const uint SUBGROUP = THREADS / (TILE_M / PART_M * PARTS_N); /* a multiple of UNIT_N */
/* A lane's elements of a matrix. It loads the terms of up to eight of them together, because it
 * would wait as long for those of one. */
const uint ELEMENTS = UNIT_M * UNIT_N / SUBGROUP;
const uint AT_ONCE = HAS_TERMS ? (ELEMENTS > 8 ? 8 : ELEMENTS) : 1;

void leave(uint patch_start, uvec2 at)
{
    bool real;
    vec3 terms[AT_ONCE];
    uint lane = gl_SubgroupInvocationID, place = column_place(at.y + lane % UNIT_N, real);
    [[dont_unroll]] for (uint e = lane; e < UNIT_M * UNIT_N; e += AT_ONCE * SUBGROUP) {
        [[unroll]] for (uint i = 0; i < AT_ONCE; i++) {
            uint row = at.x + (e + i * SUBGROUP) / UNIT_N;
            terms[i] = real && row < args.m ? terms_of(row, place) : vec3(0.0);
        }
        [[unroll]] for (uint i = 0; i < AT_ONCE; i++) {
            uint from = e + i * SUBGROUP, row = at.x + from / UNIT_N;
            if (real && row < args.m)
                write(uintBitsToFloat(tile_b[patch_start + from / 4][from % 4]), terms[i], row,
                      place);
        }
    }
}

#define LEAVE(sum, i, j)                                                                           \
    if (i < SUMS_M && j < SUMS_N) {                                                                \
        coopMatStore(sum, tile_b, patch_start, UNIT_N / 4, gl_CooperativeMatrixLayoutRowMajor);    \
        subgroupBarrier();                                                                         \
        leave(patch_start, tile + part + uvec2(i * UNIT_M, j * UNIT_N));                           \
        subgroupBarrier();                                                                         \
    }

/* The products of one step: up to eight of the units. */
#define MULTIPLY_STEP(stage)                                                                       \
    MULTIPLY(stage, 0)                                                                             \
    MULTIPLY(stage, 1)                                                                             \
    MULTIPLY(stage, 2)                                                                             \
    MULTIPLY(stage, 3)                                                                             \
    MULTIPLY(stage, 4)                                                                             \
    MULTIPLY(stage, 5)                                                                             \
    MULTIPLY(stage, 6)                                                                             \
    MULTIPLY(stage, 7)
