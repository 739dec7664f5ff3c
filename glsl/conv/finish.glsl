/*
 * The epilogue of a convolution: activation(sum scale + bias + residual), or the residual is added
 * after the activation. Scale and bias have one element for each channel. The residual has the
 * shape of y. Bits and activation are specialization constants, so that unused parts are not
 * compiled.
 *
 * The includer declares args, with bias_offset, residual_offset and y_offset, and
 * activation(code, v) for the codes that it gets. Kernels of matrix units have few of them: their
 * checked-in SPIR-V must not depend on the list of activations.
 */
#include "args/elementwise.h"

layout(constant_id = 13) const uint BITS = 0; /* of CONV_EPILOGUE_... */
layout(constant_id = 14) const uint ACTIVATION = UNARY_NONE;

layout(set = 0, binding = EPILOGUE_BINDING) readonly restrict buffer vectors { float bias[]; };
layout(set = 0, binding = EPILOGUE_BINDING + 1) readonly restrict buffer addends {
    float residual[];
};
layout(set = 0, binding = EPILOGUE_BINDING + 1) readonly restrict buffer addends4 {
    vec4 residual_quads[];
};

const bool ADDS_RESIDUAL = (BITS & CONV_EPILOGUE_RESIDUAL) != 0;
/* The scale and bias of one of `channels` channels. All scales come before the biases. */
vec2 channel_terms(uint channel, uint channels)
{
    bool scaled = (BITS & CONV_EPILOGUE_SCALE) != 0;
    uint at = args.bias_offset + channel;
    return vec2(scaled ? bias[at] : 1.0,
                (BITS & CONV_EPILOGUE_BIAS) != 0 ? bias[scaled ? at + channels : at] : 0.0);
}

/* `added`: the element of the residual. */
float finish_with(float sum, vec2 terms, float added)
{
    float v = (BITS & CONV_EPILOGUE_SCALE) != 0 ? fma(sum, terms.x, terms.y) : sum + terms.y;
    bool late = (BITS & CONV_EPILOGUE_RESIDUAL_LAST) != 0;
    if (ADDS_RESIDUAL && !late)
        v += added;
    if (ACTIVATION != UNARY_NONE)
        v = activation(ACTIVATION, v);
    return ADDS_RESIDUAL && late ? v + added : v;
}

/* What belongs to element `at` of the buffer that contains y. */
float residual_at(uint at)
{
    float added = 0.0;
    if (ADDS_RESIDUAL)
        added = residual[at - args.y_offset + args.residual_offset];
    return added;
}

/* Applies the epilogue to element `at` of the buffer that contains y, or to four elements starting
 * there. */
float finish(float sum, vec2 terms, uint at)
{
    return finish_with(sum, terms, residual_at(at));
}
vec4 finish_quad(vec4 sum, vec2 terms, uint at)
{
    vec4 added = vec4(0.0);
    if (ADDS_RESIDUAL)
        added = residual_quads[(at - args.y_offset + args.residual_offset) >> 2];
    [[unroll]] for (uint e = 0; e < 4; e++)
        sum[e] = finish_with(sum[e], terms, added[e]);
    return sum;
}
