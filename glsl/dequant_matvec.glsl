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
const uint CHUNK_VECTORS = CHUNK * UNIT_VECTORS;
const uint STAGE_STEP = CHUNK + 1; /* odd, so that the vectors of a unit lie on different banks */
shared vec4 stage[CHUNK == 0 ? 1 : UNIT_VECTORS * STAGE_STEP];
shared float partial[SUMS * gl_WorkGroupSize.x];

struct run {
    vec4 x[RUN_ELEMENTS / 4];
};

/* ---- x ---- */

uint row_start(uint row)
{
    return args.x_offset + min(row, args.m - 1) * args.units * UNIT_ELEMENTS;
}

/* What the invocation brings of the next chunk. */
vec4 ahead[CHUNK == 0 ? 1 : (CHUNK_VECTORS + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x];

/* Of the units from `first` on; past the last, its vectors again. */
void load_ahead(uint row, uint first)
{
    uint last = args.units * UNIT_VECTORS - 1;
    [[unroll]] for (uint v = 0; v < ahead.length(); v++) {
        uint i = v * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        ahead[v] = load_x(row_start(row) + 4 * min(first * UNIT_VECTORS + i, last));
    }
}

void store_ahead()
{
    [[unroll]] for (uint v = 0; v < ahead.length(); v++) {
        uint i = v * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        uint within = 4 * i % (2 * DISTANCE), q = within % DISTANCE;
        uint unit = 4 * i / (2 * DISTANCE) * (DISTANCE / RUN_ELEMENTS) + q / RUN_ELEMENTS;
        uint place = within / DISTANCE * (UNIT_VECTORS / 2) + q % RUN_ELEMENTS / 4;
        if (i < CHUNK_VECTORS)
            stage[place * STAGE_STEP + unit] = ahead[v];
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
    uint element = row_start(row) + unit_position(unit) + second * DISTANCE;
    return run(vec4[](load_x(element), load_x(element + 4), load_x(element + 8),
                      load_x(element + 12)));
}

float run_sum(run a)
{
    return dot(a.x[0] + a.x[1] + a.x[2] + a.x[3], vec4(1));
}

float run_dot(run a, uvec4 codes)
{
    float sum = 0;
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        vec4 v = unit_values(codes[i]);
        sum += a.x[i].x * v.x;
        sum += a.x[i].y * v.y;
        sum += a.x[i].z * v.z;
        sum += a.x[i].w * v.w;
    }
    return sum;
}

float unit_dot(run a, run b, vec2 total, unit_codes w)
{
    float product = w.scale.x * run_dot(a, w.first) + w.scale.y * run_dot(b, w.second);
    return AFFINE ? product + dot(w.bias, total) : product;
}

/* ---- Sums ---- */

/* Adds the products of one unit of every column. `packed`: first byte of the matrix. */
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
        vec2 total = AFFINE ? vec2(run_sum(a), run_sum(b)) : vec2(0);
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
