/*
 * The loop of a tiled product through shared memory, for any operands: y = a b. A workgroup
 * computes a tile of TILE_M x TILE_N, an invocation a register block of REG_M x REG_N (`sum`, the
 * columns of a row in quads). The includer declares REG_M and REG_N and defines TILE_CONSTANT, the
 * first of four specialization constants. It also defines two functions. fetch(k) loads the
 * invocation's share of elements k .. k + STEP - 1 of both operands into registers. store() writes
 * them to `tile` with the store_ functions. The elements of a step are fetched while the previous
 * step is multiplied.
 *
 * `tile` holds the quads of M, then those of N, K-major. There are 32 / STEP quads of padding after
 * every fourth k. This avoids bank conflicts if neighbouring invocations store quads along K, which
 * are scattered over four k. 32 consecutive invocations form a patch of 4 x 8 quads of y. Their
 * order lets pairs of neighbours read the same quad, which is good for memory banks. Nothing else
 * depends on it.
 */
#include "args/matmul.h"

layout(constant_id = TILE_CONSTANT) const uint TILE_M = 64;
layout(constant_id = TILE_CONSTANT + 1) const uint TILE_N = 64;
layout(constant_id = TILE_CONSTANT + 2) const uint STEP = 16; /* along K: 8, 16 or 32 */
layout(constant_id = TILE_CONSTANT + 3) const uint LOOP = 0;  /* bits of TILE_LOOP_... */

const uint THREADS_M = TILE_M / REG_M, THREADS_N = TILE_N / REG_N;
const uint THREADS = THREADS_M * THREADS_N;
const uint ROW_A = TILE_M / 4, ROW_B = TILE_N / 4; /* quads for each k */
const uint PADDING = 32 / STEP;
const uint SIZE_A = STEP * ROW_A + 8, SIZE_B = STEP * ROW_B + 8;
const uint PARTS_M = REG_M / 4, PARTS_N = REG_N / 4;

shared vec4 tile[SIZE_A + SIZE_B];
vec4 sum[REG_M * PARTS_N];

/* Defined by the includer. */
void fetch(uint k);
void store();

/* ---- Shared memory ---- */

uint tile_row_a(uint k)
{
    return k * ROW_A + k / 4 * PADDING;
}
uint tile_row_b(uint k)
{
    return SIZE_A + k * ROW_B + k / 4 * PADDING;
}

/* Stores four neighbours along M (N) of element k. */
void store_across_a(uint m, uint k, vec4 v)
{
    tile[tile_row_a(k) + m / 4] = v;
}
void store_across_b(uint n, uint k, vec4 v)
{
    tile[tile_row_b(k) + n / 4] = v;
}

/* Stores one element. */
void store_one_a(uint m, uint k, float v)
{
    tile[tile_row_a(k) + m / 4][m % 4] = v;
}
void store_one_b(uint n, uint k, float v)
{
    tile[tile_row_b(k) + n / 4][n % 4] = v;
}

/* Stores elements k .. k + 3 of row m (column n). k must be a multiple of four. */
void store_along_a(uint m, uint k, vec4 v)
{
    uint at = tile_row_a(k) + m / 4;
    [[unroll]] for (uint i = 0; i < 4; i++)
        tile[at + i * ROW_A][m % 4] = v[i];
}
void store_along_b(uint n, uint k, vec4 v)
{
    uint at = tile_row_b(k) + n / 4;
    [[unroll]] for (uint i = 0; i < 4; i++)
        tile[at + i * ROW_B][n % 4] = v[i];
}

/* ---- The product ---- */

/* The first quads of M and N of the invocation: (down, across). Its other quads follow at a stride
 * of THREADS_M (THREADS_N). */
uvec2 tile_thread()
{
    uint lane = gl_LocalInvocationID.x, group = lane / 32;
    uint few = (lane & 1) + (lane >> 4 & 1) * 2, many = lane >> 1 & 7;
    if (THREADS_M % 4 == 0 && THREADS_N % 8 == 0)
        return uvec2(group / (THREADS_N / 8) * 4 + few, group % (THREADS_N / 8) * 8 + many);
    if (THREADS_M % 8 == 0 && THREADS_N % 4 == 0)
        return uvec2(group / (THREADS_N / 4) * 8 + many, group % (THREADS_N / 4) * 4 + few);
    return uvec2(lane / THREADS_N, lane % THREADS_N);
}

/* Multiplies element k of the step. */
void tile_multiply_one(uvec2 thread, uint k)
{
    vec4 a[PARTS_M], b[PARTS_N];
    [[unroll]] for (uint j = 0; j < PARTS_N; j++)
        b[j] = tile[tile_row_b(k) + thread.y + j * THREADS_N];
    [[unroll]] for (uint i = 0; i < PARTS_M; i++)
        a[i] = tile[tile_row_a(k) + thread.x + i * THREADS_M];
    /* Zigzag order: an operand that is used twice in a row is read from its register once. */
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        [[unroll]] for (uint step = 0; step < REG_N; step++) {
            uint j = (LOOP & TILE_LOOP_ZIGZAG) != 0 && i % 2 != 0 ? REG_N - 1 - step : step;
            uint at = i * PARTS_N + j / 4;
            sum[at][j % 4] = fma(a[i / 4][i % 4], b[j / 4][j % 4], sum[at][j % 4]);
        }
}

void tile_multiply(uvec2 thread)
{
    if ((LOOP & TILE_LOOP_ROLLED) != 0) {
        [[dont_unroll]] for (uint k = 0; k < STEP; k += 4)
            [[unroll]] for (uint e = 0; e < 4; e++)
                tile_multiply_one(thread, k + e);
    } else {
        [[unroll]] for (uint k = 0; k < STEP; k++)
            tile_multiply_one(thread, k);
    }
}

/* sum = the products of elements k_begin .. k_end - 1. */
void tile_product(uint k_begin, uint k_end)
{
    uvec2 thread = tile_thread();
    bool peeled = (LOOP & TILE_LOOP_PEELED) != 0;
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++)
        sum[i] = vec4(0.0);
    if (k_begin >= k_end)
        return;
    fetch(k_begin);
    barrier(); /* fetch may have read what store writes */
    store();
    barrier();
    [[dont_unroll]] for (uint k = k_begin + STEP; !peeled || k < k_end; k += STEP) {
        bool more = peeled || k < k_end;
        if (more)
            fetch(k);
        tile_multiply(thread);
        if (!more)
            break;
        barrier();
        store();
        barrier();
    }
    if (peeled)
        tile_multiply(thread);
}
