/*
 * Products of one row of x with many columns of weights. A team of invocations keeps the row in
 * registers while it goes through the columns. Include lib/projection.glsl first. A team is TEAM
 * invocations, which are whole subgroups. It computes COLUMNS outputs at a time, ROUNDS times. The
 * sums of each subgroup stay in shared memory until the last round is done. In each round, the
 * teams of all workgroups take neighbouring columns. The includer writes to y[].
 */
layout(constant_id = 8) const uint TEAM = 32;
layout(constant_id = 9) const uint COLUMNS = 2; /* a power of two */
layout(constant_id = 10) const uint ROUNDS = 1;
layout(constant_id = 16) const uint ACROSS = 1;    /* workgroups for a row of x */
layout(constant_id = 17) const uint SUBGROUPS = 1; /* in a workgroup */

const uint TEAMS = gl_WorkGroupSize.x / TEAM;
const uint OUTPUTS = GATED ? COLUMNS / 2 : COLUMNS;
uint team, lane;    /* of this invocation */
uint group;         /* index, below ACROSS */
uint batches;       /* number of batches of COLUMNS columns */

shared float partial[ROUNDS * COLUMNS * SUBGROUPS]; /* by round, column and subgroup */
shared float square_sums[NORMALIZED ? SUBGROUPS : 1];

uint thread()
{
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

/* n: the number of columns of weights. Returns the row of x. */
uint find_team(uint n)
{
    batches = (n + COLUMNS - 1) / COLUMNS;
    group = group_index() % ACROSS;
    team = thread() / TEAM;
    lane = thread() % TEAM;
    return group_index() / ACROSS;
}

uint batch_of(uint t, uint round)
{
    return (round * TEAMS + t) * ACROSS + group;
}

/* The batch after that of the round. If the round's is the last one, returns that one. */
uint following_batch(uint round)
{
    uint next = batch_of(team, round + 1);
    return round + 1 < ROUNDS && next < batches ? next : batch_of(team, round);
}

/* The weight row for column c of a batch. Columns past the last one repeat it. */
uint column_of(uint batch, uint c, uint n)
{
    return min(weight_row(batch * COLUMNS, c, COLUMNS, n), n - 1);
}

/* Sums over the subgroup; invocation c gets the sum of column c. In each step, two invocations
 * exchange half of their columns. */
void put_partial(uint round, float sum[COLUMNS])
{
    [[unroll]] for (uint width = COLUMNS / 2; width > 0; width /= 2) {
        bool upper = (gl_SubgroupInvocationID & width) != 0;
        [[unroll]] for (uint i = 0; i < width; i++) {
            float kept = upper ? sum[i + width] : sum[i], given = upper ? sum[i] : sum[i + width];
            sum[i] = kept + subgroupShuffleXor(given, width);
        }
    }
    for (uint reach = gl_SubgroupSize / 2; reach >= COLUMNS; reach /= 2)
        sum[0] += subgroupShuffleXor(sum[0], reach);
    uint c = gl_SubgroupInvocationID;
    if (c < COLUMNS)
        partial[(round * COLUMNS + c) * SUBGROUPS + gl_SubgroupID] = sum[0];
}

/* Adds up the squares of the subgroup. Over all invocations of the workgroup, each square must be
 * counted once. */
void put_squares(float sum)
{
    for (uint reach = gl_SubgroupSize / 2; reach > 0; reach /= 2)
        sum += subgroupShuffleXor(sum, reach);
    if (gl_SubgroupInvocationID == 0)
        square_sums[gl_SubgroupID] = sum;
}

/* The sum of column c of team t in a round. */
float team_sum(uint round, uint t, uint c)
{
    float sum = 0;
    uint width = TEAM / gl_SubgroupSize;
    for (uint s = t * width; s < (t + 1) * width; s++)
        sum += partial[(round * COLUMNS + c) * SUBGROUPS + s];
    return sum;
}

/* Defined by the includer: the index in y of output `column` of the row. */
uint place_output(uint column);

/* Call this after a barrier. The residual of the row begins at residual_offset; a row has k
 * elements. */
void store_outputs(uint n, uint k, uint residual_offset, float epsilon)
{
    float square_sum = 0;
    for (uint i = 0; NORMALIZED && i < SUBGROUPS; i++)
        square_sum += square_sums[i];
    if (NORMALIZED)
        set_factor(square_sum, k, epsilon);
    for (uint i = thread(); i < ROUNDS * TEAMS * OUTPUTS; i += gl_WorkGroupSize.x) {
        uint c = i % OUTPUTS, t = i / OUTPUTS % TEAMS, round = i / OUTPUTS / TEAMS;
        uint column = batch_of(t, round) * OUTPUTS + c;
        if (column < (GATED ? n / 2 : n))
            y[place_output(column)] =
                projected(team_sum(round, t, c), GATED ? team_sum(round, t, c + OUTPUTS) : 0.0,
                          residual_offset + column);
    }
}
