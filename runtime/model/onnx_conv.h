/* The convolution of onnx_conv.c, for other lowerings. */
#ifndef RLXVK_ONNX_CONV_H
#define RLXVK_ONNX_CONV_H

#include "model/call.h"

/* Convolves as the node's attributes say; RLXVK_NONE after a problem. */
rlxvk_tensor onnx_convolve(call *c, rlxvk_tensor x, rlxvk_tensor weight, rlxvk_tensor bias);

#endif
