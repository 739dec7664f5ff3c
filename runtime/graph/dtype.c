/*
 * Element types: a table of names and sizes, promotion, and conversion between host bytes and
 * device words. On the device a tensor is f32 words, whatever its dtype (C64: pairs of words). So
 * host bytes are converted when data are uploaded or read back. Raw bytes and packed halves are the
 * exceptions; only leaves and views of leaves have them.
 */
#include "graph/graph.h"
#include "graph/half.h"

#include <math.h>
#include <string.h>

/* `rank` orders promotion. If a float is converted, it saturates to the limits. */
static const struct dtype_info {
    const char *name;
    uint8_t size, rank;
    bool integer;
    double low, high;
} dtypes[RLXVK_DTYPE_COUNT] = {
    [RLXVK_F32] = {"F32", 4, 6, false, 0, 0},
    [RLXVK_F16] = {"F16", 2, 3, false, 0, 0},
    [RLXVK_BF16] = {"BF16", 2, 2, false, 0, 0},
    [RLXVK_F64] = {"F64", 8, 7, false, 0, 0},
    [RLXVK_I8] = {"I8", 1, 1, true, -128, 127},
    [RLXVK_I16] = {"I16", 2, 2, true, -32768, 32767},
    [RLXVK_I32] = {"I32", 4, 4, true, -2147483648.0, 2147483647.0},
    [RLXVK_I64] = {"I64", 8, 5, true, -9223372036854775808.0, 9223372036854775807.0},
    [RLXVK_U8] = {"U8", 1, 1, true, 0, 255},
    [RLXVK_U32] = {"U32", 4, 4, true, 0, 4294967295.0},
    [RLXVK_BOOL] = {"BOOL", 1, 0, false, 0, 1},
    [RLXVK_C64] = {"C64", 8, 8, false, 0, 0},
};

const char *rlxvk_dtype_name(rlxvk_dtype dtype)
{
    return (unsigned)dtype < RLXVK_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

size_t rlxvk_dtype_size(rlxvk_dtype dtype)
{
    return (unsigned)dtype < RLXVK_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

bool dtype_is_integer(rlxvk_dtype t)
{
    return dtypes[t].integer;
}

bool dtype_is_continuous(rlxvk_dtype t)
{
    return !dtype_is_integer(t) && t != RLXVK_BOOL;
}

/* BOOL gives way to all others, and all give way to C64. An integer and a float give F32, or F64 if
 * either has 64 bits. Otherwise the higher rank wins. F16 and BF16 give F32, because neither holds
 * all values of the other. */
rlxvk_dtype dtype_promote(rlxvk_dtype a, rlxvk_dtype b)
{
    if (a == b)
        return a;
    if (a == RLXVK_C64 || b == RLXVK_C64)
        return RLXVK_C64;
    if (a == RLXVK_BOOL || b == RLXVK_BOOL)
        return a == RLXVK_BOOL ? b : a;
    if (dtypes[a].integer != dtypes[b].integer) {
        rlxvk_dtype integer = dtypes[a].integer ? a : b, real = dtypes[a].integer ? b : a;
        return real == RLXVK_F64 || integer == RLXVK_I64 ? RLXVK_F64 : RLXVK_F32;
    }
    if (!dtypes[a].integer && dtypes[a].size == 2 && dtypes[b].size == 2)
        return RLXVK_F32;
    return dtypes[b].rank > dtypes[a].rank ? b : a;
}

uint32_t dtype_storage_element_bytes(storage s)
{
    static const uint8_t bytes[] = {
        [STORAGE_WORD] = 4, [STORAGE_PAIR] = 8, [STORAGE_RAW] = 1, [STORAGE_HALF] = 2};
    return bytes[s];
}

/* Whole words, because kernels read raw bytes and halves by the word. At least one word, because
 * Vulkan allows no empty binding. */
uint64_t dtype_storage_bytes(storage s, uint64_t numel)
{
    return MAX(round_up(numel * dtype_storage_element_bytes(s), 4), 4);
}

/* memcpy, because host data may be unaligned. */
#define LOAD(T, bytes, i)                                                                          \
    (*(const T *)memcpy(&(T){0}, (const uint8_t *)(bytes) + (i) * sizeof(T), sizeof(T)))

/* Rounds to nearest. For I32, U32, I64 and F64, f32 keeps 24 bits. */
static float widen_one(rlxvk_dtype from, const void *bytes, uint64_t i)
{
    switch (from) {
    case RLXVK_F16:
        return f16_to_f32(LOAD(uint16_t, bytes, i));
    case RLXVK_BF16:
        return bf16_to_f32(LOAD(uint16_t, bytes, i));
    case RLXVK_F64:
        return (float)LOAD(double, bytes, i);
    case RLXVK_I8:
        return LOAD(int8_t, bytes, i);
    case RLXVK_I16:
        return LOAD(int16_t, bytes, i);
    case RLXVK_I32:
        return (float)LOAD(int32_t, bytes, i);
    case RLXVK_I64:
        return (float)LOAD(int64_t, bytes, i);
    case RLXVK_U8:
        return LOAD(uint8_t, bytes, i);
    case RLXVK_U32:
        return (float)LOAD(uint32_t, bytes, i);
    case RLXVK_BOOL:
        return LOAD(uint8_t, bytes, i) != 0;
    default:
        return LOAD(float, bytes, i);
    }
}

void dtype_widen(rlxvk_dtype from, const void *bytes, uint64_t count, float *words)
{
    if (from == RLXVK_F32 || from == RLXVK_C64) {
        if (count)
            memcpy(words, bytes, count * dtypes[from].size);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        words[i] = widen_one(from, bytes, i);
}

/* Truncates toward zero and saturates; NaN gives 0. */
static int64_t to_integer(rlxvk_dtype to, float v)
{
    double low = dtypes[to].low, high = dtypes[to].high;
    if (v != v)
        return 0;
    if ((double)v <= low)
        return (int64_t)low;
    return (double)v >= high ? (to == RLXVK_I64 ? INT64_MAX : (int64_t)high) : (int64_t)v;
}

/* The element is in the lowest bytes; its type says how many. */
static uint64_t narrow_bits(rlxvk_dtype to, float v)
{
    switch (to) {
    case RLXVK_F16:
        return f32_to_f16(v);
    case RLXVK_BF16:
        return f32_to_bf16(v);
    case RLXVK_F64: {
        uint64_t bits;
        memcpy(&bits, &(double){v}, sizeof bits);
        return bits;
    }
    case RLXVK_BOOL:
        return v != 0;
    default:
        return (uint64_t)to_integer(to, v);
    }
}

void dtype_narrow(rlxvk_dtype to, const float *words, uint64_t count, void *bytes)
{
    size_t size = dtypes[to].size;
    if (to == RLXVK_F32 || to == RLXVK_C64) {
        if (count)
            memcpy(bytes, words, count * size);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits =
            narrow_bits(to, words[i]); /* little-endian hosts only, like the file formats */
        memcpy((uint8_t *)bytes + i * size, &bits, size);
    }
}

/* The same as narrowing and widening, but without bytes in between. */
void dtype_round(rlxvk_dtype to, float *words, uint64_t count)
{
    if (to != RLXVK_F16 && to != RLXVK_BF16)
        return;
    for (uint64_t i = 0; i < count; i++)
        words[i] =
            to == RLXVK_F16 ? f16_to_f32(f32_to_f16(words[i])) : bf16_to_f32(f32_to_bf16(words[i]));
}
