/*
 * The cells of recurrent nets. CELL is a specialization constant of the kernel. x and h are the
 * parts of the gates from the input and from the previous state, with the biases already added.
 */
#include "args/sequence.h"

uint gate_count()
{
    return CELL == RECURRENT_LSTM ? 4u : CELL == RECURRENT_GRU ? 3u : 1u;
}

/* tanh, computed by the same function as the gates, because only its absolute error matters here
 * and not its relative error near 0. */
float squash(float z)
{
    return 2.0 * logistic(2.0 * z) - 1.0;
}

/* Computes the new h from the previous one, and updates c (LSTM). The gates are in a loop, which
 * drivers may unroll. Software drivers compile slowly if every function is expanded. */
float cell(vec4 x, vec4 h, float previous, inout float c)
{
    if (CELL == RECURRENT_LSTM) {
        vec4 z = x + h;
        for (uint gate = 0u; gate < 4u; gate++) {
            float s = gate == 2u ? 2.0 : 1.0;
            z[gate] = s * logistic(s * z[gate]) - (s - 1.0);
        }
        c = z.y * c + z.x * z.z;
        return z.w * squash(c);
    }
    if (CELL == RECURRENT_GRU) {
        vec2 gates = x.xy + h.xy; /* reset, keep */
        for (uint gate = 0u; gate < 2u; gate++)
            gates[gate] = logistic(gates[gate]);
        float fresh = squash(x.z + gates.x * h.z);
        return (1.0 - gates.y) * fresh + gates.y * previous;
    }
    float z = x.x + h.x;
    if (CELL == RECURRENT_RNN)
        return squash(z);
    return is_nan(z) || z > 0.0 ? z : 0.0;
}
