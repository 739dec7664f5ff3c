/*
 * The epilogue of a convolution (conv/finish.glsl) with all activations. See there for what the
 * includer declares.
 */
#include "elementwise/activation.glsl"
#include "conv/finish.glsl"

/* Activations that are not light have long code, which should not be repeated for each element. */
const bool LONG_EPILOGUE = ACTIVATION != UNARY_NONE
#define LIGHT_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel)   \
    &&ACTIVATION != number
#include "args/activation.def"
    ;
