/*
 * Convolution on the device's matrix units, as an implicit matrix product: M channels of a group
 * times N positions. See conv.glsl for the sums and phases. The includer defines ELEMENT, the
 * 16-bit type of the operands. Sums are f32.
 *
 * Both operands are packed to octets of channels. K is a list of octets, each of one tap. For each
 * of them, `places` tells where it lies from the window's first tap. Rows of w are in this order,
 * padded with zeros to whole steps of each phase. x is [images, groups, cells, channels], or blocks
 * of channels instead of groups. An invocation loads the same octet of K for all its positions, so
 * it reads one entry of `places` for each step. A tap outside x counts as 0.
 *
 * If FORM is not PACKED, x is f32 words [images, channels, cells]. Then an invocation loads octets
 * of one position, so that neighbours load neighbours, and rounds them on the way into shared
 * memory. If FORM is WORDS, channels of a block must be whole octets.
 *
 * Tiles and steps are as in matrix_product.glsl. Grid, fastest first: tiles of channels, tiles of
 * positions, phases, groups, splits of K. With splits, y is [splits, y].
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "args/conv_matrix.h"

layout(constant_id = 11) const uint STAGES = 1;
layout(constant_id = 12) const uint FORM = CONV_MATRIX_PACKED;
layout(constant_id = 15) const bool HALF_ROUNDING = false; /* f32 to f16 rounds to nearest even */
const uint PLANES = 1;

layout(push_constant) uniform block { conv_matrix_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { uvec4 x[]; };
layout(set = 0, binding = 0) readonly buffer x_word_view { float x_words[]; };
layout(set = 0, binding = 1) readonly buffer w_view { uvec4 w[]; };
layout(set = 0, binding = 2) readonly buffer place_view { ivec4 places[]; };
layout(set = 0, binding = 3) writeonly buffer y_view { float y[]; };
#define EPILOGUE_BINDING 4
float activation(uint code, float v) /* RELU, the only one */
{
    return is_nan(v) || v > 0.0 ? v : 0.0;
}
#include "conv/finish.glsl"
#include "conv/positions.glsl"
#include "lib/narrow.glsl"
#define MATRIX_CONSTANT 3
#include "matmul/matrix_tiles.glsl"

const uint CARRY_X = TILE_N * OCTETS / THREADS, LINES = THREADS / OCTETS;
const bool WORDS = FORM != CONV_MATRIX_PACKED, SCATTERED = FORM == CONV_MATRIX_SCATTERED;
/* Positions of an invocation, its octets of one of them, and with WORDS the distance of these. */
const uint POSITIONS = WORDS ? 1 : CARRY_X, TURNS = WORDS ? CARRY_X : 1;
const uint SPREAD = THREADS > TILE_N ? THREADS / TILE_N : 1;

uvec4 next_w[CARRY_A], next_x[CARRY_X];
float next_words[WORDS ? CARRY_X * 8 : 1];
ivec4 next_place[TURNS];
ivec3 origin[POSITIONS]; /* coordinates in x of a position's first tap, perhaps outside */
int x_at[POSITIONS];     /* where they are in x */
uint w_at, y_base, group;

/* The row of the tile of x, and the octet in it, of an invocation's first octet. */
uvec2 first_slot()
{
    uint lane = gl_LocalInvocationID.x;
    return WORDS ? uvec2(lane % TILE_N, lane / TILE_N) : uvec2(lane / OCTETS, lane % OCTETS);
}

void find_places(uint octet)
{
    if (SCATTERED)
        return;
    [[unroll]] for (uint i = 0; i < TURNS; i++)
        next_place[i] = places[2 * args.phases + octet + first_slot().y + i * SPREAD];
}

/* Positions past the last one repeat it. */
void start(uint m0, uint n0)
{
    uint line = gl_LocalInvocationID.x / OCTETS;
    ivec3 size = ivec3(in_size());
    [[unroll]] for (uint i = 0; i < POSITIONS; i++) {
        uvec3 at;
        uint image = locate(min(n0 + first_slot().x + i * LINES, args.positions - 1), at);
        origin[i] = window_origin(at);
        x_at[i] = int(args.x_offset + image * args.image + group * args.group) +
                  ((origin[i].x * size.y + origin[i].y) * size.z + origin[i].z) * int(args.cell);
    }
    w_at = (group * args.w_rows + m0 + line) * args.k_octets + gl_LocalInvocationID.x % OCTETS;
}

bool is_inside(uint i, ivec4 place)
{
    uvec3 at = uvec3(origin[i] + place.xyz), size = in_size();
    return at.z < size.z && at.y < size.y && (DEPTH == 0 || at.x < size.x);
}

void fetch_words(uint i)
{
    bool inside = is_inside(0, next_place[i]);
    int at = x_at[0] + next_place[i].w, plane = int(volume(in_size()));
    [[unroll]] for (uint c = 0; c < 8; c++)
        next_words[i * 8 + c] = inside ? x_words[at + int(c) * plane] : 0.0;
}

void fetch_scattered(uint i, uint octet)
{
    uint first = 2 * args.phases + (octet + first_slot().y + i * SPREAD) * 8;
    [[unroll]] for (uint c = 0; c < 8; c++) {
        ivec4 place = places[first + c];
        /* A load in any case, because many branches take long to compile. */
        bool inside = is_inside(0, place);
        float word = x_words[inside ? x_at[0] + place.w : 0];
        next_words[i * 8 + c] = inside ? word : 0.0;
    }
}

/* Loads a step, and finds the places of the next one. */
void fetch(uint octet)
{
    [[unroll]] for (uint i = 0; i < CARRY_A; i++)
        next_w[i] = w[w_at + octet + i * LINES * args.k_octets];
    [[unroll]] for (uint i = 0; i < CARRY_X; i++) {
        if (SCATTERED)
            fetch_scattered(i, octet);
        else if (WORDS)
            fetch_words(i);
        else
            next_x[i] = is_inside(i, next_place[0]) ? x[x_at[i] + next_place[0].w] : uvec4(0);
    }
    find_places(octet + OCTETS);
}

uint narrow_pair(uint i)
{
    float low = next_words[i], high = next_words[i + 1];
#ifdef IN_BF16
    return bf16_pair(low, high);
#else
    return HALF_ROUNDING ? packFloat2x16(f16vec2(low, high)) : f16_pair(low, high);
#endif
}

void store(uint stage)
{
    uint at = gl_LocalInvocationID.x / OCTETS * PITCH + gl_LocalInvocationID.x % OCTETS;
    [[unroll]] for (uint i = 0; i < CARRY_A; i++)
        tile_a[stage * STAGE_A + at + i * LINES * PITCH] = next_w[i];
    at = stage * STAGE_B + first_slot().x * PITCH + first_slot().y;
    [[unroll]] for (uint i = 0; i < CARRY_X; i++) {
        uint word = WORDS ? i * 8 : 0;
        if (WORDS)
            tile_b[at + i * SPREAD] = uvec4(narrow_pair(word), narrow_pair(word + 2),
                                            narrow_pair(word + 4), narrow_pair(word + 6));
        else
            tile_b[at + i * LINES * PITCH] = next_x[i];
    }
}

uint column_place(uint column, out bool real)
{
    uint n = min(column, args.positions - 1), image, cell;
    real = column < args.positions;
    if (TRANSPOSED != 0) {
        uvec3 at;
        image = locate(n, at);
        real = target_cell(at, cell) && real;
    } else {
        image = divide(n, volume(out_size()), args.divide[0]);
        cell = n - image * volume(out_size());
    }
    return y_base + (image * args.groups + group) * args.m * volume(out_size()) + cell;
}

const bool HAS_TERMS = BITS != 0;
/* Scale, bias and residual. */
vec3 terms_of(uint row, uint place)
{
    return vec3(channel_terms(group * args.m + row, args.groups * args.m),
                residual_at(place + row * volume(out_size())));
}

void write(float sum, vec3 terms, uint row, uint place)
{
    y[place + row * volume(out_size())] = finish_with(sum, terms.xy, terms.z);
}

#include "conv/conv_matrix_leave.glsl"

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M;
    uint tiles_n = (args.positions + TILE_N - 1) / TILE_N;
    uint index = group_index(), rest = index / tiles_m;
    uvec2 tile = uvec2(index % tiles_m * TILE_M, rest % tiles_n * TILE_N);
    rest /= tiles_n;
    uint phase_index = rest % args.phases;
    rest /= args.phases;
    group = rest % args.groups;
    uint split = rest / args.groups;
    if (split >= args.splits)
        return;
    uvec3 phases = min(triple(args.stride), out_size());
    phase = uvec3(phase_index / phases.z / phases.y, phase_index / phases.z % phases.y,
                  phase_index % phases.z);
    base = places[2 * phase_index + 1].xyz;
    uvec2 range = uvec2(places[2 * phase_index].xy);
    uint images = args.positions / volume(grid_size());
    y_base = args.y_offset + split * (images * args.groups * args.m * volume(out_size()));
    uint first = range.x + split * args.k_slice, last = min(range.y, first + args.k_slice);
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);
    start(tile.x, tile.y);

    EACH_SUM(CLEAR_SUM)
    if (first < last) {
        find_places(first);
        fetch(first);
    }
    uint stage = 0;
    [[dont_unroll]] for (uint octet = first; octet < last; octet += OCTETS) {
        if (STAGES == 1)
            barrier();
        store(stage);
        barrier();
        if (octet + OCTETS < last)
            fetch(octet + OCTETS);
        MULTIPLY_STEP(stage)
        if (STAGES == 2)
            stage ^= 1;
    }
    uint patch_start = gl_SubgroupID * UNIT_M * UNIT_N / 4;
    barrier();
    EACH_SUM(LEAVE)
}
