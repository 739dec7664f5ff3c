/*
 * x as it is, for dequant_matvec.glsl. Neighbours want it at distances of 64 bytes and more, which
 * fall on few banks: in shared memory, vectors of the same place in their units lie side by side.
 */
const uint UNIT_VECTORS = UNIT_ELEMENTS / 4;
const uint STAGE_STEP = CHUNK + 1; /* odd, so that the vectors of a unit lie on different banks */
shared vec4 stage[CHUNK == 0 ? 1 : UNIT_VECTORS * STAGE_STEP];
shared vec2 totals[CHUNK == 0 ? 1 : CHUNK]; /* of a unit's runs, where AFFINE */
shared float partial[SUMS * gl_WorkGroupSize.x];

/* What was loaded last. */
void store_chunk()
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

/* Adds the products of a unit of every column, `staged` units into the chunk. */
void add_unit(uint packed, uint first_column, uint first_row, uint unit, uint staged,
              inout float sum[SUMS])
{
    unit_codes w[COLUMNS];
    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        w[c] = decode_row_unit(column_start(packed, first_column + c), unit);
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

void add_units(uint packed, uint first_column, uint first_row, uint units, uint lane,
               inout float sum[SUMS])
{
    uint step = CHUNK == 0 ? units : CHUNK;
    if (CHUNK != 0 && units != 0)
        load_ahead(first_row, 0);
    for (uint first = 0; first < units; first += step) {
        if (CHUNK != 0) {
            barrier();
            store_chunk();
            barrier();
            load_ahead(first_row, first + step); /* a condition would cost more than the loads */
        }
        uint end = min(first + step, units);
        for (uint unit = first + lane; unit < end; unit += TEAM)
            add_unit(packed, first_column, first_row, unit, unit - first, sum);
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

void store_sums(uint first_column, uint first_row, uint lane, float sum[SUMS])
{
    uint first = gl_LocalInvocationID.x - lane;
    if (TEAM > 1) {
        add_over_team(lane, sum);
        for (uint i = lane; i < SUMS; i += TEAM)
            store_sum(first_column, first_row, i, partial[i * gl_WorkGroupSize.x + first]);
    } else
        [[unroll]] for (uint i = 0; i < SUMS; i++)
            store_sum(first_column, first_row, i, sum[i]);
}
