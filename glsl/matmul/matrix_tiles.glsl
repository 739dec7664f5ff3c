/*
 * The tiles of a product on the device's matrix units, and their multiplication. A workgroup
 * computes TILE_M x TILE_N of y in steps of TILE_K. Both tiles go through shared memory, as rows of
 * K in octets (uvec4) of the 16-bit type ELEMENT. Rows are skewed by one octet to avoid bank
 * conflicts. Subgroups compute PART_M x PART_N each.
 *
 * The includer defines ELEMENT and MATRIX_CONSTANT, the first of eight specialization constants. It
 * declares STAGES and PLANES, whose product is the number of tiles of each operand in shared
 * memory, and fills these tiles. It may define MATRIX_BETWEEN(k), code to run after the products of
 * step k of the units.
 *
 * If it defines MATRIX_TURNED, the tiles are turned: rows are steps of K, and octets are neighbours
 * along M or N.
 */
#ifndef MATRIX_BETWEEN
#define MATRIX_BETWEEN(k)
#endif

layout(constant_id = MATRIX_CONSTANT) const uint TILE_M = 128;
layout(constant_id = MATRIX_CONSTANT + 1) const uint TILE_N = 128;
layout(constant_id = MATRIX_CONSTANT + 2) const uint TILE_K = 32;
layout(constant_id = MATRIX_CONSTANT + 3) const uint PART_M = 64;
layout(constant_id = MATRIX_CONSTANT + 4) const uint PART_N = 64;
layout(constant_id = MATRIX_CONSTANT + 5) const uint UNIT_M = 16; /* one product of the units */
layout(constant_id = MATRIX_CONSTANT + 6) const uint UNIT_N = 16;
layout(constant_id = MATRIX_CONSTANT + 7) const uint UNIT_K = 16;

const uint THREADS = gl_WorkGroupSize.x;
const uint OCTETS = TILE_K / 8;
const uint CARRY_A = TILE_M * OCTETS / THREADS; /* octets of a that an invocation loads per step */
#ifdef MATRIX_TURNED
const uint PITCH_A = TILE_M / 8 + 1, PITCH_B = TILE_N / 8 + 1;
const uint STAGE_A = TILE_K * PITCH_A, STAGE_B = TILE_K * PITCH_B;
#else
const uint PITCH = OCTETS + 1;
const uint STAGE_A = TILE_M * PITCH, STAGE_B = TILE_N * PITCH;
#endif
const uint PARTS_N = TILE_N / PART_N;
const uint SUMS_M = PART_M / UNIT_M, SUMS_N = PART_N / UNIT_N;

shared uvec4 tile_a[STAGES * PLANES * STAGE_A];
shared uvec4 tile_b[STAGES * PLANES * STAGE_B];

#define OPERAND_A coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>

SUM sums[SUMS_M * SUMS_N];

#ifdef MATRIX_TURNED
#define LOAD_A(to, plane, i, k)                                                                    \
    coopMatLoad(to, tile_a, (plane) * STAGE_A + (k) * UNIT_K * PITCH_A + part.x / 8 +              \
                                (i) * UNIT_M / 8,                                                  \
                PITCH_A, gl_CooperativeMatrixLayoutColumnMajor)
#define LOAD_B(to, plane, j, k)                                                                    \
    coopMatLoad(to, tile_b, (plane) * STAGE_B + (k) * UNIT_K * PITCH_B + part.y / 8 +              \
                                (j) * UNIT_N / 8,                                                  \
                PITCH_B, gl_CooperativeMatrixLayoutRowMajor)
#else
#define LOAD_A(to, plane, i, k)                                                                    \
    coopMatLoad(to, tile_a, (plane) * STAGE_A + (part.x + (i) * UNIT_M) * PITCH + (k) * UNIT_K / 8,\
                PITCH, gl_CooperativeMatrixLayoutRowMajor)
#define LOAD_B(to, plane, j, k)                                                                    \
    coopMatLoad(to, tile_b, (plane) * STAGE_B + (part.y + (j) * UNIT_N) * PITCH + (k) * UNIT_K / 8,\
                PITCH, gl_CooperativeMatrixLayoutColumnMajor)
#endif

/* Keep only loops of constant length here and below. With a branch among them, or an array of
 * matrices as a parameter, the matrices leave the registers (six times slower on an H200). */
void multiply(uint plane, uvec2 part)
{
    [[unroll]] for (uint k = 0; k < TILE_K / UNIT_K; k++) {
        OPERAND_A left[SUMS_M];
        [[unroll]] for (uint i = 0; i < SUMS_M; i++)
            LOAD_A(left[i], plane, i, k);
        [[unroll]] for (uint j = 0; j < SUMS_N; j++) {
            OPERAND_B right;
            LOAD_B(right, plane, j, k);
            [[unroll]] for (uint i = 0; i < SUMS_M; i++)
                sums[i * SUMS_N + j] = coopMatMulAdd(left[i], right, sums[i * SUMS_N + j]);
        }
        MATRIX_BETWEEN(k);
    }
}
