/*
 * x as floats, for dequant_matvec.glsl. Neighbouring invocations read x at strides of 64 bytes or
 * more, which would cause bank conflicts. So shared memory holds x transposed: vectors with the
 * same place in their units lie side by side. The places are STAGE_STEP apart, so that the stores
 * of a unit's vectors do not conflict either. If AFFINE, the sum of the elements of each vector
 * follows, four sums (one vector) for each run.
 */
const uint RUN_VECTORS = RUN_ELEMENTS / 4, UNIT_VECTORS = 2 * RUN_VECTORS;
const uint STAGE_STEP = CHUNK + (DISTANCE == RUN_ELEMENTS ? 1 : 2);
const uint STAGE_PLACES = UNIT_VECTORS + (AFFINE ? 2 : 0);
const uint STAGE_SIZE = CHUNK == 0 ? 1 : ROWS * STAGE_PLACES * STAGE_STEP;
const uint PARTIAL_SIZE = TEAM == 1 ? 1 : SUMS * gl_WorkGroupSize.x / 4;
/* Used again at the end for the partial sums of the team. */
shared vec4 stage[STAGE_SIZE > PARTIAL_SIZE ? STAGE_SIZE : PARTIAL_SIZE];

/* ---- x ---- */

/* The vectors of the next chunk that this invocation loads. `number` is their index, counted row by
 * row. */
const uint SHARE = (ROWS * CHUNK * UNIT_VECTORS + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
vec4 ahead[SHARE == 0 ? 1 : SHARE];

uint number(uint i)
{
    return i * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

/* Loads the units starting at `first`. Past the last unit it loads the row's last vector. */
void load_ahead(uint first_row, uint first)
{
    uint last = args.units * UNIT_ELEMENTS - 4;
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        uint row = number(i) / (CHUNK * UNIT_VECTORS), v = number(i) % (CHUNK * UNIT_VECTORS);
        ahead[i] = load_x(row_start(first_row + row) + min(first * UNIT_ELEMENTS + 4 * v, last));
    }
}

/* Stores the vectors that load_ahead loaded, the units starting at `first`. */
void store_chunk(uint first)
{
    const uint runs = DISTANCE / RUN_ELEMENTS;
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        uint row = number(i) / (CHUNK * UNIT_VECTORS), v = number(i) % (CHUNK * UNIT_VECTORS);
        uint run = v / RUN_VECTORS, k = v % RUN_VECTORS;
        uint unit = run / (2 * runs) * runs + run % runs, second = run / runs % 2;
        uint at = row * STAGE_PLACES * STAGE_STEP + unit, element = first * UNIT_ELEMENTS + 4 * v;
        if (row < ROWS) {
            if (NORMALIZED && element < args.units * UNIT_ELEMENTS)
                ahead[i] = normalized(ahead[i], element, true);
            stage[at + (second * RUN_VECTORS + k) * STAGE_STEP] = ahead[i];
            if (AFFINE)
                stage[at + (UNIT_VECTORS + second) * STAGE_STEP][k] =
                    (ahead[i].x + ahead[i].y) + (ahead[i].z + ahead[i].w);
        }
    }
}

/* Vector k of one run of a unit: the first run if `second` is 0, the second if it is 1. The unit is
 * number `staged` of the chunk. */
vec4 load_vector(uint first_row, uint r, uint unit, uint staged, uint second, uint k)
{
    if (CHUNK != 0)
        return stage[(r * STAGE_PLACES + second * RUN_VECTORS + k) * STAGE_STEP + staged];
    uint element = unit_position(unit) + second * DISTANCE + 4 * k;
    return normalized(load_x(row_start(first_row + r) + element), element, false);
}

/* ---- Products ---- */

void add_products(inout float sum, vec4 a, vec4 v)
{
    sum += a.x * v.x;
    sum += a.y * v.y;
    sum += a.z * v.z;
    sum += a.w * v.w;
}

/* Nibble formats shift once for the four codes of each run, instead of three times. */
vec4 values(unit_codes w, uint second, uint i)
{
    if (MASK == 15)
        return second == 0 ? low_nibbles(w.first[i], CENTER) : high_nibbles(w.first[i], CENTER);
    return code_values(second == 0 ? w.first[i] : w.second[i]);
}

vec4 total_of(uint first_row, uint r, uint unit, uint staged, uint second)
{
    if (!AFFINE || CHUNK == 0)
        return vec4(0);
    return load_vector(first_row, r, unit, staged, 2, second);
}

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

struct run {
    vec4 x[RUN_VECTORS], total; /* elements; if AFFINE, four partial sums of them */
};

run load_run(uint row, uint unit, uint staged, uint second)
{
    run a;
    a.total = total_of(row, 0, unit, staged, second);
    [[unroll]] for (uint k = 0; k < RUN_VECTORS; k++) {
        a.x[k] = load_vector(row, 0, unit, staged, second, k);
        if (AFFINE && CHUNK == 0)
            a.total += a.x[k];
    }
    return a;
}

/* Adds the products of one unit of every column with one row of x. The unit is number `staged` of
 * the chunk. */
void add_unit_row(unit_codes w[COLUMNS], uint row, uint unit, uint staged, inout float sum[SUMS])
{
    run a = load_run(row, unit, staged, 0), b = load_run(row, unit, staged, 1);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        float first = 0, second = 0;
        [[unroll]] for (uint k = 0; k < RUN_VECTORS; k++) {
            add_products(first, a.x[k], values(w[c], 0, k));
            add_products(second, b.x[k], values(w[c], 1, k));
        }
        sum[c] += w[c].scale.x * first + w[c].scale.y * second;
        if (AFFINE)
            sum[c] += w[c].bias.x * sum_of(a.total) + w[c].bias.y * sum_of(b.total);
    }
}

/* The same for several rows. Four codes of a column are converted to floats once and used for all
 * rows. */
void add_unit_rows(unit_codes w[COLUMNS], uint first_row, uint unit, uint staged,
                   inout float sum[SUMS])
{
    [[unroll]] for (uint second = 0; second < 2; second++) {
        float part[SUMS];
        vec4 total[ROWS];
        [[unroll]] for (uint i = 0; i < SUMS; i++)
            part[i] = 0;
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            total[r] = total_of(first_row, r, unit, staged, second);
        [[unroll]] for (uint k = 0; k < RUN_VECTORS; k++) {
            vec4 a[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                a[r] = load_vector(first_row, r, unit, staged, second, k);
                if (AFFINE && CHUNK == 0)
                    total[r] += a[r];
            }
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                vec4 v = values(w[c], second, k);
                [[unroll]] for (uint r = 0; r < ROWS; r++)
                    add_products(part[c * ROWS + r], a[r], v);
            }
        }
        [[unroll]] for (uint i = 0; i < SUMS; i++) {
            sum[i] += w[i / ROWS].scale[second] * part[i];
            if (AFFINE)
                sum[i] += w[i / ROWS].bias[second] * sum_of(total[i % ROWS]);
        }
    }
}

/* The words to decode next. AHEAD loads them while the previous unit is multiplied. It is on only
 * if measurements show a gain, because another copy of the decoder is much code. */
#if DEQUANT_GROUP == DEQUANT_COMMON
const bool AHEAD = SHARED_ROWS;
#else
const bool AHEAD = false;
#endif
unit_words next_w[COLUMNS];

void load_words(uint packed, uint first_column, uint unit)
{
    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        next_w[c] = load_row_unit(column_start(packed, first_column, c),
                                  min(unit, args.units - 1));
}

/* Adds the products of the units of a chunk. `end` is one past its last unit. */
void add_chunk(uint packed, uint first_column, uint first_row, uint first, uint end, uint lane,
               inout float sum[SUMS])
{
    for (uint unit = first + lane; unit < end; unit += TEAM) {
        unit_words words[COLUMNS];
        unit_codes w[COLUMNS];
        if (AHEAD)
            [[unroll]] for (uint c = 0; c < COLUMNS; c++)
                words[c] = next_w[c];
        load_words(packed, first_column, AHEAD ? unit + TEAM : unit);
        if (!AHEAD)
            [[unroll]] for (uint c = 0; c < COLUMNS; c++)
                words[c] = next_w[c];
        [[unroll]] for (uint c = 0; c < COLUMNS; c++)
            w[c] = decode_row_words(words[c], unit);
        if (ROWS == 1)
            add_unit_row(w, first_row, unit, unit - first, sum);
        else
            add_unit_rows(w, first_row, unit, unit - first, sum);
    }
}

void add_units(uint packed, uint first_column, uint first_row, uint units, uint lane,
               inout float sum[SUMS])
{
    uint step = CHUNK == 0 ? units : CHUNK;
    if (NORMALIZED && CHUNK == 0)
        for (uint v = gl_LocalInvocationID.x; v < units * UNIT_VECTORS; v += gl_WorkGroupSize.x)
            add_squares(load_x(args.x_offset + 4 * v));
    if (CHUNK != 0 && units != 0)
        load_ahead(first_row, 0);
#if DEQUANT_GROUP == DEQUANT_COMMON
    if (AHEAD && units != 0)
        load_words(packed, first_column, lane);
#endif
    for (uint first = 0; first < units; first += step) {
        if (CHUNK != 0) {
            barrier();
            store_chunk(first);
            barrier();
            load_ahead(first_row, first + step); /* unconditional: a branch costs more */
        }
        add_chunk(packed, first_column, first_row, first, min(first + step, units), lane, sum);
    }
}

/* ---- Sums ---- */

void put_partial(uint at, float value)
{
    stage[at / 4][at % 4] = value;
}
float partial(uint at)
{
    return stage[at / 4][at % 4];
}

/* The sums of squares of all invocations. Only the first square_width of them still have to be
 * added. */
shared float square_sums[NORMALIZED ? gl_WorkGroupSize.x : 1];
uint square_width = gl_WorkGroupSize.x;

/* Call these between barriers. */
void put_squares()
{
    if (NORMALIZED)
        square_sums[gl_LocalInvocationID.x] = squares;
}
void fold_squares()
{
    uint next = square_width > 8 ? square_width / 8 : 1;
    if (NORMALIZED && gl_LocalInvocationID.x < next)
        for (uint j = gl_LocalInvocationID.x + next; j < square_width; j += next)
            square_sums[gl_LocalInvocationID.x] += square_sums[j];
    square_width = next;
}
void take_factor()
{
    float sum = 0;
    for (uint i = 0; NORMALIZED && i < square_width; i++)
        sum += square_sums[i];
    if (NORMALIZED)
        set_factor(sum, args.units * UNIT_ELEMENTS, args.parts.epsilon);
}

/*
 * Reduces over the team. Sum i ends at partial(i * workgroup size + first lane of the team). Each
 * round adds up eight values, because a barrier costs more than an addition.
 */
void add_over_team(uint first, uint lane, float sum[SUMS])
{
    uint threads = gl_WorkGroupSize.x;
    barrier(); /* x was read from the same memory */
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        put_partial(i * threads + first + lane, sum[i]);
    put_squares();
    barrier();
    for (uint width = TEAM; width > 1;) {
        uint next = width > 8 ? width / 8 : 1; /* max(width / 8, 1) is 0 on a SwiftShader */
        for (uint i = lane; i < SUMS * next; i += TEAM) {
            uint at = i / next * threads + first + i % next;
            float total = partial(at);
            for (uint j = next; j < width; j += next)
                total += partial(at + j);
            put_partial(at, total);
        }
        fold_squares();
        width = next;
        barrier();
    }
}

void store_sums(uint first_column, uint first_row, uint team, uint lane, float sum[SUMS])
{
    if (TEAM > 1) {
        uint first = team * TEAM;
        add_over_team(first, lane, sum);
        take_factor();
        for (uint i = lane; i < OUTPUTS; i += TEAM)
            store_sum(first_column, first_row, i, partial(i * gl_WorkGroupSize.x + first),
                      GATED ? partial((i + OUTPUTS) * gl_WorkGroupSize.x + first) : 0.0);
        return;
    }
    put_squares();
    if (NORMALIZED)
        barrier();
    take_factor();
    [[unroll]] for (uint i = 0; i < OUTPUTS; i++)
        store_sum(first_column, first_row, i, sum[i], GATED ? sum[i + OUTPUTS] : 0.0);
}
