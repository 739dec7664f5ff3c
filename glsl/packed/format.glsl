/* The numbers of the packed formats, by name, for example Q4_K or F16. */
#ifndef RLXVK_FORMAT_GLSL
#define RLXVK_FORMAT_GLSL

#define QUANT_FORMAT(type, NAME, elements, bytes, encode) const uint NAME = type;
#include "args/format.def"

#endif
