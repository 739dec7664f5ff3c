/* See onnx.h: the element types. */
#include "model/onnx.h"

static const struct {
    const char *name;
    uint32_t bits;
} types[ONNX_TYPE_COUNT] = {
    [ONNX_UNDEFINED] = {"UNDEFINED", 0},
    [ONNX_FLOAT] = {"FLOAT", 32},
    [ONNX_UINT8] = {"UINT8", 8},
    [ONNX_INT8] = {"INT8", 8},
    [ONNX_UINT16] = {"UINT16", 16},
    [ONNX_INT16] = {"INT16", 16},
    [ONNX_INT32] = {"INT32", 32},
    [ONNX_INT64] = {"INT64", 64},
    [ONNX_STRING] = {"STRING", 0},
    [ONNX_BOOL] = {"BOOL", 8},
    [ONNX_FLOAT16] = {"FLOAT16", 16},
    [ONNX_DOUBLE] = {"DOUBLE", 64},
    [ONNX_UINT32] = {"UINT32", 32},
    [ONNX_UINT64] = {"UINT64", 64},
    [ONNX_COMPLEX64] = {"COMPLEX64", 64},
    [ONNX_COMPLEX128] = {"COMPLEX128", 128},
    [ONNX_BFLOAT16] = {"BFLOAT16", 16},
    [ONNX_FLOAT8E4M3FN] = {"FLOAT8E4M3FN", 8},
    [ONNX_FLOAT8E4M3FNUZ] = {"FLOAT8E4M3FNUZ", 8},
    [ONNX_FLOAT8E5M2] = {"FLOAT8E5M2", 8},
    [ONNX_FLOAT8E5M2FNUZ] = {"FLOAT8E5M2FNUZ", 8},
    [ONNX_UINT4] = {"UINT4", 4},
    [ONNX_INT4] = {"INT4", 4},
    [ONNX_FLOAT4E2M1] = {"FLOAT4E2M1", 4},
    [ONNX_FLOAT8E8M0] = {"FLOAT8E8M0", 8},
    [ONNX_UINT2] = {"UINT2", 2},
    [ONNX_INT2] = {"INT2", 2},
};

const char *onnx_type_name(int32_t type)
{
    return type >= 0 && type < ONNX_TYPE_COUNT ? types[type].name : "?";
}

uint32_t onnx_type_bits(int32_t type)
{
    return type >= 0 && type < ONNX_TYPE_COUNT ? types[type].bits : 0;
}
