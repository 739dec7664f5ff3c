/* The numbers of the packed formats, by name: Q4_K, F16. */
#ifndef RLXVK_FORMAT_GLSL
#define RLXVK_FORMAT_GLSL

#define QUANT_FORMAT(type, NAME, elements, bytes, encode) const uint NAME = type;
#include "args/format.def"

#endif
