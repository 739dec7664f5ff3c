/*
 * Looks up keys and tensors that the parser found: name indices, and values, which are converted
 * without loss or not at all.
 */
#include "model/language/gguf.h"

#include <math.h>
#include <string.h>

/* ---- Name indices ---- */

typedef gguf_string (*name_function)(const gguf_file *file, uint64_t i);

static gguf_string pair_name(const gguf_file *file, uint64_t i)
{
    return file->pairs[i].key;
}

static gguf_string tensor_name(const gguf_file *file, uint64_t i)
{
    return (gguf_string){file->tensors[i].name, strlen(file->tensors[i].name)};
}

/* FNV-1a with a final mix, because the table uses the low bits. */
static uint64_t hash(const char *data, uint64_t length)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* The slot that holds `name`, or the free slot in which it belongs. */
static uint32_t *index_slot(const gguf_file *file, const gguf_index *index, name_function name_of,
                            gguf_string name)
{
    for (uint64_t i = hash(name.data, name.length);; i++) {
        uint32_t *slot = &index->slots[i & index->mask];
        if (*slot == 0)
            return slot;
        gguf_string other = name_of(file, *slot - 1);
        if (other.length == name.length && memcmp(other.data, name.data, name.length) == 0)
            return slot;
    }
}

static rlxvk_status index_build(gguf_file *file, gguf_index *index, name_function name_of,
                                uint64_t count, uint64_t *out_twice)
{
    uint64_t size = 4;
    while (size < 2 * count)
        size *= 2;
    memory_free(index->slots);
    index->mask = size - 1;
    index->slots = memory_zeroed((size_t)size, sizeof *index->slots);
    if (index->slots == NULL)
        return status_fail_memory("GGUF name index");
    *out_twice = count;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t *slot = index_slot(file, index, name_of, name_of(file, i));
        if (*slot == 0)
            *slot = (uint32_t)i + 1;
        else
            *out_twice = MIN(*out_twice, i);
    }
    return RLXVK_OK;
}

rlxvk_status gguf_index_pairs(gguf_file *file, uint64_t *out_twice)
{
    return index_build(file, &file->pair_index, pair_name, file->pair_count, out_twice);
}

rlxvk_status gguf_index_tensors(gguf_file *file, uint64_t *out_twice)
{
    return index_build(file, &file->tensor_index, tensor_name, file->tensor_count, out_twice);
}

const gguf_pair *gguf_find(const gguf_file *file, const char *key)
{
    gguf_string name = {key, strlen(key)};
    const uint32_t *slot = index_slot(file, &file->pair_index, pair_name, name);
    return *slot != 0 ? &file->pairs[*slot - 1] : NULL;
}

const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name)
{
    gguf_string string = {name, strlen(name)};
    const uint32_t *slot = index_slot(file, &file->tensor_index, tensor_name, string);
    return *slot != 0 ? &file->tensors[*slot - 1] : NULL;
}

/* ---- Values ---- */

/* How the bytes of each type are read. Types with size 0 have no fixed size. */
enum number_kind { NOT_A_NUMBER, UNSIGNED, SIGNED, FLOATING };
static const struct {
    uint32_t size;
    enum number_kind kind;
} types[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = {1, UNSIGNED},         [GGUF_I8] = {1, SIGNED},
    [GGUF_U16] = {2, UNSIGNED},        [GGUF_I16] = {2, SIGNED},
    [GGUF_U32] = {4, UNSIGNED},        [GGUF_I32] = {4, SIGNED},
    [GGUF_F32] = {4, FLOATING},        [GGUF_BOOL] = {1, NOT_A_NUMBER},
    [GGUF_STRING] = {0, NOT_A_NUMBER}, [GGUF_ARRAY] = {0, NOT_A_NUMBER},
    [GGUF_U64] = {8, UNSIGNED},        [GGUF_I64] = {8, SIGNED},
    [GGUF_F64] = {8, FLOATING},
};

uint32_t gguf_type_size(uint32_t type)
{
    return type < GGUF_TYPE_COUNT ? types[type].size : 0;
}

/* A number of any type: an integer as sign and magnitude, or a floating-point value. */
typedef struct number {
    bool floating, negative;
    uint64_t magnitude;
    double value;
} number;

static double load_float(uint64_t bits, uint32_t size)
{
    uint32_t low = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &low, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return size == 4 ? (double)narrow : wide;
}

static bool load_number(const gguf_pair *pair, uint64_t index, number *out)
{
    if (pair == NULL || index >= pair->count || types[pair->type].kind == NOT_A_NUMBER)
        return false;
    uint32_t size = types[pair->type].size;
    const uint8_t *bytes = pair->value + index * size;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < size; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    *out = (number){.magnitude = bits};
    if (types[pair->type].kind == FLOATING) {
        out->floating = true;
        out->value = load_float(bits, size);
    } else if (types[pair->type].kind == SIGNED && bits >> (8 * size - 1) != 0) {
        out->negative = true;
        out->magnitude = (size < 8 ? (uint64_t)1 << 8 * size : 0) - bits;
    }
    return true;
}

bool gguf_element_u64(const gguf_pair *pair, uint64_t index, uint64_t *out)
{
    number n;
    if (!load_number(pair, index, &n) || n.floating || n.negative)
        return false;
    *out = n.magnitude;
    return true;
}

bool gguf_element_i64(const gguf_pair *pair, uint64_t index, int64_t *out)
{
    number n;
    if (!load_number(pair, index, &n))
        return false;
    if (n.floating) {
        if (!(n.value >= -9223372036854775808.0 && n.value < 9223372036854775808.0) ||
            trunc(n.value) != n.value)
            return false;
        *out = (int64_t)n.value;
    } else if (n.negative) {
        *out = -(int64_t)(n.magnitude - 1) - 1; /* because int64_t has no +2^63 */
    } else if (n.magnitude > INT64_MAX) {
        return false;
    } else {
        *out = (int64_t)n.magnitude;
    }
    return true;
}

bool gguf_element_f64(const gguf_pair *pair, uint64_t index, double *out)
{
    number n;
    if (!load_number(pair, index, &n))
        return false;
    if (!n.floating) {
        n.value = (double)n.magnitude;
        /* Values next to 2^64 round to 2^64, which is outside u64. */
        if (n.value >= 0x1p64 || (uint64_t)n.value != n.magnitude)
            return false;
        n.value = n.negative ? -n.value : n.value;
    }
    *out = n.value;
    return true;
}

/* The pair of a single value; NULL for an array. */
static const gguf_pair *find_single(const gguf_file *file, const char *key)
{
    const gguf_pair *pair = gguf_find(file, key);
    return pair != NULL && !pair->is_array ? pair : NULL;
}

bool gguf_get_u64(const gguf_file *file, const char *key, uint64_t *out)
{
    return gguf_element_u64(find_single(file, key), 0, out);
}

bool gguf_get_i64(const gguf_file *file, const char *key, int64_t *out)
{
    return gguf_element_i64(find_single(file, key), 0, out);
}

bool gguf_get_f64(const gguf_file *file, const char *key, double *out)
{
    return gguf_element_f64(find_single(file, key), 0, out);
}

bool gguf_element_bool(const gguf_pair *pair, uint64_t index, bool *out)
{
    if (pair == NULL || pair->type != GGUF_BOOL || index >= pair->count)
        return false;
    *out = pair->value[index] != 0;
    return true;
}

bool gguf_get_bool(const gguf_file *file, const char *key, bool *out)
{
    return gguf_element_bool(find_single(file, key), 0, out);
}

bool gguf_get_string(const gguf_file *file, const char *key, gguf_string *out)
{
    const gguf_pair *pair = find_single(file, key);
    if (pair == NULL || pair->type != GGUF_STRING)
        return false;
    *out = (gguf_string){(const char *)pair->value, pair->size};
    return true;
}

/* The lengths were checked by the parser. */
static rlxvk_status build_strings(const gguf_file *file, gguf_pair *pair)
{
    uint32_t width = file->version == 1 ? 4 : 8;
    const uint8_t *bytes = pair->value;
    pair->strings = memory_zeroed((size_t)MAX(pair->count, 1), sizeof *pair->strings);
    if (pair->strings == NULL)
        return status_fail_memory("GGUF string views");
    for (uint64_t i = 0; i < pair->count; i++) {
        uint64_t length = 0;
        for (uint32_t j = 0; j < width; j++)
            length |= (uint64_t)bytes[j] << 8 * j;
        pair->strings[i] = (gguf_string){(const char *)bytes + width, length};
        bytes += width + length;
    }
    return RLXVK_OK;
}

rlxvk_status gguf_get_strings(gguf_file *file, const char *key, const gguf_string **out,
                              uint64_t *out_count)
{
    const gguf_pair *found = gguf_find(file, key);
    rlxvk_status status = RLXVK_OK;
    if (found == NULL || !found->is_array || found->type != GGUF_STRING)
        return status_fail(RLXVK_E_UNKNOWN_NAME, "GGUF: %s '%s'",
                           found ? "no string array, but something else, at key" : "no key", key);
    gguf_pair *pair = &file->pairs[found - file->pairs];
    if (pair->strings == NULL)
        TRY(build_strings(file, pair));
    *out = pair->strings;
    *out_count = pair->count;
error:
    return status;
}

bool gguf_string_is(gguf_string string, const char *word)
{
    return string.length == strlen(word) && memcmp(string.data, word, string.length) == 0;
}
