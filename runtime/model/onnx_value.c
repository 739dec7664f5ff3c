/* See onnx_value.h. */
#include "model/onnx_value.h"
#include "model/onnx_float8.h"

#include <rlxvk_ops.h>

#include <math.h>
#include <string.h>

#define EXACT_INTEGERS (INT64_C(1) << 24)

bool onnx_value_dtype(int32_t type, rlxvk_dtype *out)
{
    static const int8_t dtypes[ONNX_TYPE_COUNT] = {
        [ONNX_FLOAT] = RLXVK_F32 + 1,     [ONNX_UINT8] = RLXVK_U8 + 1,
        [ONNX_INT8] = RLXVK_I8 + 1,       [ONNX_UINT16] = RLXVK_U32 + 1,
        [ONNX_INT16] = RLXVK_I16 + 1,     [ONNX_INT32] = RLXVK_I32 + 1,
        [ONNX_INT64] = RLXVK_I64 + 1,     [ONNX_BOOL] = RLXVK_BOOL + 1,
        [ONNX_FLOAT16] = RLXVK_F16 + 1,   [ONNX_DOUBLE] = RLXVK_F64 + 1,
        [ONNX_UINT32] = RLXVK_U32 + 1,    [ONNX_UINT64] = RLXVK_I64 + 1,
        [ONNX_BFLOAT16] = RLXVK_BF16 + 1, [ONNX_UINT4] = RLXVK_U8 + 1,
        [ONNX_INT4] = RLXVK_I8 + 1,       [ONNX_UINT2] = RLXVK_U8 + 1,
        [ONNX_INT2] = RLXVK_I8 + 1};
    if (onnx_find_float8(type)) {
        *out = RLXVK_F32;
        return true;
    }
    if (type < 0 || type >= ONNX_TYPE_COUNT || dtypes[type] == 0)
        return false;
    *out = (rlxvk_dtype)(dtypes[type] - 1);
    return true;
}

bool onnx_is_real(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16 ||
           type == ONNX_DOUBLE || onnx_find_float8(type);
}

bool onnx_is_integer(int32_t type)
{
    rlxvk_dtype dtype;
    return onnx_value_dtype(type, &dtype) && !onnx_is_real(type) && type != ONNX_BOOL;
}

bool onnx_is_narrow(int32_t type)
{
    return onnx_is_integer(type) && onnx_type_bits(type) < 32;
}

bool onnx_is_signed(int32_t type)
{
    return type == ONNX_INT2 || type == ONNX_INT4 || type == ONNX_INT8 || type == ONNX_INT16 ||
           type == ONNX_INT32 || type == ONNX_INT64;
}

bool onnx_is_code(const host_array *h, int64_t element)
{
    /* All codes are below that of symbol 0, and none is eight times as far from 0. */
    return h->symbolic && element <= rlxvk_symbol(0) && element > 8 * rlxvk_symbol(0);
}

host_array *onnx_make_host(arena *a, int32_t type, rlxvk_shape shape)
{
    host_array *h = arena_allocate(a, sizeof *h);
    if (!h || rlxvk_shape_elements(shape, &h->numel) != RLXVK_OK)
        return NULL;
    h->type = type;
    h->shape = shape;
    if (onnx_is_real(type))
        h->reals = arena_allocate(a, (size_t)h->numel * sizeof *h->reals);
    else
        h->integers = arena_allocate(a, (size_t)h->numel * sizeof *h->integers);
    return h->reals || h->integers ? h : NULL;
}

/* ---- Elements of the file ---- */

static double half_value(uint64_t bits)
{
    double magnitude, sign = bits >> 15 ? -1 : 1;
    int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return sign * magnitude;
}

static double real_of(int32_t type, uint64_t bits)
{
    switch (type) {
    case ONNX_FLOAT:
        return wire_float(bits);
    case ONNX_BFLOAT16:
        return wire_float(bits << 16);
    case ONNX_FLOAT16:
        return half_value(bits);
    case ONNX_DOUBLE:
        return wire_double(bits);
    default:
        return onnx_float8_value(type, (uint32_t)bits);
    }
}

static int64_t integer_of(int32_t type, uint64_t bits)
{
    switch (type) {
    case ONNX_INT8:
        return (int8_t)bits;
    case ONNX_INT16:
        return (int16_t)bits;
    case ONNX_INT32:
        return (int32_t)bits;
    case ONNX_INT4:
        return (int64_t)(bits ^ 8) - 8;
    case ONNX_INT2:
        return (int64_t)(bits ^ 2) - 2;
    case ONNX_BOOL:
        return bits != 0;
    default:
        return (int64_t)bits;
    }
}

static uint64_t bits_at(int32_t type, const uint8_t *bytes, uint64_t i)
{
    uint32_t bits = onnx_type_bits(type);
    uint64_t element = 0;
    if (bits < 8)
        return onnx_packed_code(bytes, i, bits);
    memcpy(&element, bytes + i * (bits / 8), bits / 8);
    return element;
}

void onnx_widen(int32_t type, wire_span bytes, uint64_t count, float *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = (float)real_of(type, bits_at(type, bytes.bytes, i));
}

rlxvk_status onnx_decode(arena *a, int32_t type, rlxvk_shape shape, wire_span bytes,
                         host_array **out)
{
    host_array *h;
    if (!onnx_is_real(type) && !onnx_is_integer(type) && type != ONNX_BOOL)
        return status_fail(RLXVK_E_UNSUPPORTED, "values of type %s are not supported",
                           onnx_type_name(type));
    *out = h = onnx_make_host(a, type, shape);
    if (!h)
        return status_fail_memory("values of a model");
    if (divide_up(h->numel * onnx_type_bits(type), 8) != bytes.size)
        return status_fail(RLXVK_E_LENGTH, "%zu bytes for %llu values of type %s", bytes.size,
                           (unsigned long long)h->numel, onnx_type_name(type));
    for (uint64_t i = 0; i < h->numel; i++) {
        uint64_t bits = bits_at(type, bytes.bytes, i);
        if (h->reals)
            h->reals[i] = real_of(type, bits);
        else
            h->integers[i] = integer_of(type, bits);
        if (type == ONNX_UINT64 && bits > INT64_MAX)
            return status_fail(RLXVK_E_RANGE, "the UINT64 value %llu is above 2^63 - 1",
                               (unsigned long long)bits);
    }
    return RLXVK_OK;
}

/* ---- Constants ---- */

/* The nearest number with so many bits behind the leading one, ties to even; `least` is the
 * smallest step. */
static double round_bits(double value, int bits, double least, double largest)
{
    int exponent;
    double step;
    if (!isfinite(value) || value == 0)
        return value;
    frexp(value, &exponent);
    step = fmax(ldexp(1, exponent - 1 - bits), least);
    value = rint(value / step) * step;
    return fabs(value) > largest ? copysign(INFINITY, value) : value;
}

double onnx_round_to(int32_t type, double value)
{
    switch (type) {
    case ONNX_FLOAT:
        return (float)value;
    case ONNX_FLOAT16:
        return round_bits(value, 10, ldexp(1, -24), 65504);
    case ONNX_BFLOAT16:
        return round_bits(value, 7, ldexp(1, -133), ldexp(255, 120));
    default:
        return value;
    }
}

static rlxvk_status check_elements(const host_array *h)
{
    for (uint64_t i = 0; h->integers && i < h->numel; i++) {
        if (onnx_is_code(h, h->integers[i]))
            return status_fail(RLXVK_E_UNSUPPORTED,
                               "a value that depends on a named dim is needed as a tensor; give "
                               "the dim a size");
        if (h->integers[i] > EXACT_INTEGERS || h->integers[i] < -EXACT_INTEGERS)
            return status_fail(RLXVK_E_RANGE,
                               "the constant %lld is beyond 2^24, up to which f32 words hold "
                               "integers exactly",
                               (long long)h->integers[i]);
    }
    return RLXVK_OK;
}

/* Constants are given as F32, then cast. This is exact, because integers are up to 2^24. */
rlxvk_status onnx_add_constant(rlxvk_graph *g, const host_array *h, rlxvk_tensor *out)
{
    float *words = memory_allocate((size_t)MAX(h->numel, 1) * sizeof *words);
    rlxvk_dtype dtype = RLXVK_F32;
    rlxvk_status status = RLXVK_OK;
    if (!words)
        return status_fail_memory("constant");
    TRY(check_elements(h));
    if (!onnx_value_dtype(h->type, &dtype))
        TRY(status_fail(RLXVK_E_UNSUPPORTED, "there are no tensors of type %s",
                        onnx_type_name(h->type)));
    for (uint64_t i = 0; i < h->numel; i++)
        words[i] = h->reals ? (float)h->reals[i] : (float)h->integers[i];
    *out = rlxvk_constant(g, RLXVK_F32, h->shape, words, (size_t)h->numel * sizeof *words);
    if (dtype != RLXVK_F32)
        *out = rlxvk_cast(g, *out, dtype);
error:
    memory_free(words);
    return status;
}
