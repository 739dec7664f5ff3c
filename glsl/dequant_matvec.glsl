/*
 * y[r][j] = sum over p of x[r][p] * w[j][p]: w packed, n rows of units * 32 elements; made for few
 * rows r. With EXPERTS, w holds such a matrix for each expert, row r is multiplied with that of the
 * expert that index[r] names, and is zeros where it names none; ROWS is 1.
 *
 * A team of TEAM invocations takes COLUMNS outputs j of ROWS rows r, which share one decoding of w;
 * its members walk the rows' units together, so that neighbours read neighbouring bytes. Rows and
 * columns past the last are clamped, and not stored. Per run, scale and bias are applied once:
 * scale * sum(x code) + bias * sum(x). The members' sums are added in shared memory; a team of one
 * needs none.
 *
 * Neighbours want x at distances of 64 bytes and more, which fall on few banks. With CHUNK (ROWS is
 * 1), the workgroup brings x of CHUNK units at a time into shared memory, vectors of the same place
 * in their units side by side; the next chunk is on its way meanwhile.
 */
#include "common.glsl"
#include "experts.glsl"

layout(push_constant) uniform block { dequant_product_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint TEAM = 32; /* power of two that divides the workgroup */
layout(constant_id = 9) const uint COLUMNS = 2;
layout(constant_id = 10) const uint ROWS = 1;
layout(constant_id = 11) const bool EXPERTS = false;
layout(constant_id = 12) const bool LOOKUP = false;
layout(constant_id = 13) const uint CHUNK = 0; /* a multiple of 4, or 0 */
#define DEQUANT_GRID_BINDING 4
#define DEQUANT_LOOKUP       LOOKUP
#include "dequant.glsl"
#include "dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer indices { float index[]; };

const uint SUMS = COLUMNS * ROWS;
const uint UNIT_VECTORS = UNIT_ELEMENTS / 4;
const uint STAGE_STEP = CHUNK + 1; /* odd, so that the vectors of a unit lie on different banks */
shared vec4 stage[CHUNK == 0 ? 1 : UNIT_VECTORS * STAGE_STEP];
shared vec2 totals[CHUNK == 0 ? 1 : CHUNK]; /* of a unit's runs, where AFFINE */
shared float partial[SUMS * gl_WorkGroupSize.x];

struct run {
    vec4 x[RUN_ELEMENTS / 4];
};

/* ---- x ---- */

uint row_start(uint row)
{
    return args.x_offset + min(row, args.m - 1) * args.units * UNIT_ELEMENTS;
}

/* The runs that the invocation brings of the next chunk. */
run ahead[CHUNK == 0 ? 1 : (2 * CHUNK + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x];

run load_run_from(uint element)
{
    return run(vec4[](load_x(element), load_x(element + 4), load_x(element + 8),
                      load_x(element + 12)));
}

/* Of the units from `first` on; past the last, its runs again. */
void load_ahead(uint row, uint first)
{
    uint last = 2 * args.units - 1;
    [[unroll]] for (uint v = 0; v < ahead.length(); v++) {
        uint i = v * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        ahead[v] = load_run_from(row_start(row) + RUN_ELEMENTS * min(2 * first + i, last));
    }
}

float run_sum(run a)
{
    vec4 part = (a.x[0] + a.x[1]) + (a.x[2] + a.x[3]);
    return (part.x + part.y) + (part.z + part.w);
}

void store_ahead()
{
    const uint runs = DISTANCE / RUN_ELEMENTS;
    [[unroll]] for (uint v = 0; v < ahead.length(); v++) {
        uint i = v * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        uint unit = i / (2 * runs) * runs + i % runs, second = i / runs % 2;
        if (i < 2 * CHUNK) {
            uint at = second * (UNIT_VECTORS / 2) * STAGE_STEP + unit;
            [[unroll]] for (uint k = 0; k < RUN_ELEMENTS / 4; k++)
                stage[at + k * STAGE_STEP] = ahead[v].x[k];
            if (AFFINE)
                totals[unit][second] = run_sum(ahead[v]);
        }
    }
}

/* The first or second run of the unit, which lies `staged` units into the chunk. */
run load_run(uint row, uint unit, uint staged, uint second)
{
    if (CHUNK != 0) {
        uint at = 4 * second * STAGE_STEP + staged;
        return run(vec4[](stage[at], stage[at + STAGE_STEP], stage[at + 2 * STAGE_STEP],
                          stage[at + 3 * STAGE_STEP]));
    }
    return load_run_from(row_start(row) + unit_position(unit) + second * DISTANCE);
}

void add_products(inout float sum, vec4 a, vec4 v)
{
    sum += a.x * v.x;
    sum += a.y * v.y;
    sum += a.z * v.z;
    sum += a.w * v.w;
}

/* Nibbles by one shift for both runs' four instead of three. */
vec4 first_values(unit_codes w, uint i)
{
    return MASK == 15 ? low_nibbles(w.first[i], CENTER) : code_values(w.first[i]);
}
vec4 second_values(unit_codes w, uint i)
{
    return MASK == 15 ? high_nibbles(w.first[i], CENTER) : code_values(w.second[i]);
}

float unit_dot(run a, run b, vec2 total, unit_codes w)
{
    float first = 0, second = 0;
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        add_products(first, a.x[i], first_values(w, i));
        add_products(second, b.x[i], second_values(w, i));
    }
    float product = w.scale.x * first + w.scale.y * second;
    return AFFINE ? product + dot(w.bias, total) : product;
}

/* ---- Sums ---- */

/* Adds the products of a unit of every column, `staged` units into the chunk. `packed`: first byte
 * of the matrix. */
void add_unit(uint packed, uint first_column, uint first_row, uint unit, uint staged,
              inout float sum[SUMS])
{
    unit_codes w[COLUMNS];
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        uint column = min(first_column + c, args.n - 1);
        w[c] = decode_row_unit(packed + column * args.row_bytes, unit);
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        run a = load_run(first_row + r, unit, staged, 0);
        run b = load_run(first_row + r, unit, staged, 1);
        vec2 total = vec2(0);
        if (AFFINE)
            total = CHUNK != 0 ? totals[staged] : vec2(run_sum(a), run_sum(b));
        [[unroll]] for (uint c = 0; c < COLUMNS; c++)
            sum[c * ROWS + r] += unit_dot(a, b, total, w[c]);
    }
}

/*
 * Leaves sum i of the team at partial[i * workgroup] of its first lane. Eight at a time: a barrier
 * costs more than an addition.
 */
void add_over_team(uint lane, float sum[SUMS])
{
    uint threads = gl_WorkGroupSize.x, local = gl_LocalInvocationID.x, team = local - lane;
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        partial[i * threads + local] = sum[i];
    barrier();
    for (uint width = TEAM; width > 1;) {
        uint next = max(width / 8, 1);
        for (uint i = lane; i < SUMS * next; i += TEAM) {
            uint at = i / next * threads + team + i % next;
            float total = partial[at];
            for (uint j = next; j < width; j += next)
                total += partial[at + j];
            partial[at] = total;
        }
        width = next;
        barrier();
    }
}

void store_sum(uint first_column, uint first_row, uint i, float value)
{
    uint column = first_column + i / ROWS, row = first_row + i % ROWS;
    if (column < args.n && row < args.m)
        y[args.y_offset + row * args.n + column] = value;
}

void main()
{
    uint local = gl_LocalInvocationID.x, lane = local % TEAM;
    uint teams = gl_WorkGroupSize.x / TEAM;
    uint groups_across = (args.n + teams * COLUMNS - 1) / (teams * COLUMNS);
    uint first_column = (group_index() % groups_across * teams + local / TEAM) * COLUMNS;
    uint first_row = group_index() / groups_across * ROWS;
    if (first_row >= args.m)
        return;
    uint expert = EXPERTS ? expert_of(index[args.index_offset + first_row], args.experts) : 0;
    uint units = EXPERTS && expert >= args.experts ? 0 : args.units;
    uint packed = args.w_offset + expert * args.n * args.row_bytes;

    float sum[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        sum[i] = 0;
    fill_levels();

    uint step = CHUNK == 0 ? units : CHUNK;
    if (CHUNK != 0 && units != 0)
        load_ahead(first_row, 0);
    for (uint first = 0; first < units; first += step) {
        if (CHUNK != 0) {
            barrier();
            store_ahead();
            barrier();
            load_ahead(first_row, first + step);
        }
        uint end = min(first + step, units);
        for (uint unit = first + lane; unit < end; unit += TEAM)
            add_unit(packed, first_column, first_row, unit, unit - first, sum);
    }

    if (TEAM > 1) {
        add_over_team(lane, sum);
        for (uint i = lane; i < SUMS; i += TEAM)
            store_sum(first_column, first_row, i, partial[i * gl_WorkGroupSize.x + local - lane]);
    } else
        [[unroll]] for (uint i = 0; i < SUMS; i++)
            store_sum(first_column, first_row, i, sum[i]);
}
