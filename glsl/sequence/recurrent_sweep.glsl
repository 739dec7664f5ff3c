/*
 * Shared by the sweeps back over the steps of a recurrent net. recurrent_factors.comp has computed
 * the slopes of all pre-activations. Therefore a step is linear in its inputs: dh, from y and from
 * the step after it, and `state`:
 *
 *   lstm  state is dc: dc = dh c_slope + state, d = slope dc (of o: slope dh), state' = kept dc
 *   gru   state goes to the h before past all weights: d = slope (dh + state), state' = kept (dh +
 *         state); slopes are r, z, n from x, and n from h
 *   rnn   d = slope dh
 *
 * Bindings: d (slopes in, gradients out), kept, dy. args has `hidden` and `second`.
 */
const uint GATES = CELL == RECURRENT_LSTM ? 4 : CELL == RECURRENT_GRU ? 3 : 1;

struct cell_parts {
    vec4 slopes;
    float kept, c_slope, arrived;
};

/* Loads everything that does not depend on the product, before the product begins. */
cell_parts fetch_parts(uint d_at, uint kept_at, uint c_at, uint dy_at)
{
    cell_parts p = cell_parts(vec4(0.0), 0.0, 0.0, dy[dy_at]);
    [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
        p.slopes[gate] = d[d_at + gate * args.hidden];
    if (CELL == RECURRENT_GRU)
        p.slopes.w = d[d_at + args.second + 2u * args.hidden];
    if (CELL == RECURRENT_LSTM || CELL == RECURRENT_GRU)
        p.kept = kept[kept_at];
    if (CELL == RECURRENT_LSTM)
        p.c_slope = kept[c_at];
    return p;
}

vec4 step_back(cell_parts p, float carry, inout float state)
{
    float dh = p.arrived + carry;
    if (CELL == RECURRENT_LSTM) {
        float dc = fma(dh, p.c_slope, state);
        state = p.kept * dc;
        return p.slopes * vec4(dc, dc, dc, dh);
    }
    if (CELL == RECURRENT_GRU) {
        dh += state;
        state = p.kept * dh;
    }
    return p.slopes * dh;
}

void store_gradients(uint d_at, vec4 gradients)
{
    [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
        d[d_at + gate * args.hidden] = gradients[gate];
    if (CELL == RECURRENT_GRU) {
        uint at = d_at + args.second;
        d[at] = gradients.x;
        d[at + args.hidden] = gradients.y;
        d[at + 2u * args.hidden] = gradients.w;
    }
}

/* The gate's gradient that is multiplied by W_hh. */
float from_h(vec4 gradients, uint gate)
{
    return CELL == RECURRENT_GRU && gate == 2u ? gradients.w : gradients[gate];
}
