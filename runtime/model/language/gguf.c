/*
 * The GGUF parser: a cursor goes over the bytes once, from the magic to the last tensor info; then
 * the payloads are checked.
 *
 * Invariant: cursor.position <= cursor.available <= cursor.length. Code that takes n bytes first
 * compares n with length - position. Counts are limited to (bytes left) / (smallest encoding)
 * before anything is allocated for them.
 */
#include "model/language/gguf.h"
#include "model/language/gguf_type.h"
#include "model/language/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT "GGUF, byte %" PRIu64 ": "

typedef struct cursor {
    const uint8_t *data;
    uint64_t length, position;
    uint64_t available, needed; /* available: of the length, in memory; needed: above it if a take
                                   asked for more */
    bool narrow;                /* version 1: counts, lengths and dims are u32 */
    gguf_limits limits;
} cursor;

/* The contents of tensor infos, until the alignment and the start of the data are known. */
typedef struct tensor_place {
    uint64_t name_offset, offset_offset, offset;
} tensor_place;

static gguf_status take(cursor *c, uint64_t size, const uint8_t **out)
{
    if (size > c->length - c->position)
        return gguf_fail(GGUF_E_TRUNCATED,
                         AT "%" PRIu64 " bytes needed, %" PRIu64 " left in a file of %" PRIu64,
                         c->position, size, c->length - c->position, c->length);
    if (size > c->available - c->position) {
        c->needed = c->position + size;
        return gguf_fail(GGUF_E_TRUNCATED, AT "%" PRIu64 " bytes needed, not read yet", c->position,
                         size);
    }
    *out = c->data + c->position;
    c->position += size;
    return GGUF_OK;
}

static uint64_t load(const uint8_t *bytes, uint32_t size)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static gguf_status take_integer(cursor *c, uint32_t size, uint64_t *out)
{
    const uint8_t *bytes = NULL;
    gguf_status status = take(c, size, &bytes);
    if (status == GGUF_OK)
        *out = load(bytes, size);
    return status;
}

/* Takes a count, length or dim: u64, or u32 in version 1. */
static gguf_status take_count(cursor *c, uint64_t *out)
{
    return take_integer(c, c->narrow ? 4 : 8, out);
}

/* Takes a count of items that need at least `smallest` bytes each. */
static gguf_status take_bounded(cursor *c, const char *what, uint64_t limit, uint64_t smallest,
                                uint64_t *out)
{
    uint64_t offset = c->position;
    gguf_status status = take_count(c, out);
    if (status != GGUF_OK)
        return status;
    uint64_t left = c->length - c->position;
    if (*out > limit)
        return gguf_fail(GGUF_E_COUNT, AT "%s %" PRIu64 " above the limit of %" PRIu64, offset,
                         what, *out, limit);
    if (*out > left / smallest)
        return gguf_fail(GGUF_E_COUNT,
                         AT "%s %" PRIu64 " cannot fit in the %" PRIu64 " bytes that follow",
                         offset, what, *out, left);
    return GGUF_OK;
}

static gguf_status take_string(cursor *c, const char *what, uint64_t limit, gguf_string *out)
{
    const uint8_t *bytes = NULL;
    gguf_status status;
    TRY(take_bounded(c, what, limit, 1, &out->length));
    TRY(take(c, out->length, &bytes));
    out->data = (const char *)bytes;
error:
    return status;
}

static bool is_utf8(gguf_string string)
{
    const uint8_t *bytes = (const uint8_t *)string.data;
    size_t size;
    for (uint64_t i = 0; i < string.length; i += size)
        if (utf8_decode(bytes + i, (size_t)(string.length - i), &size) == UTF8_INVALID)
            return false;
    return true;
}

/* ---- Key-value pairs ---- */

static gguf_status take_key(cursor *c, gguf_string *out)
{
    uint64_t offset = c->position;
    gguf_status status = take_string(c, "key length", c->limits.key_length, out);
    if (status != GGUF_OK)
        return status;
    if (out->length == 0)
        return gguf_fail(GGUF_E_KEY, AT "empty key", offset);
    for (uint64_t i = 0; i < out->length; i++) {
        uint8_t byte = (uint8_t)out->data[i];
        if (byte < 0x21 || byte > 0x7e)
            return gguf_fail(GGUF_E_KEY, AT "key holds byte 0x%02x; allowed are 0x21 to 0x7e",
                             c->position - out->length + i, byte);
    }
    return GGUF_OK;
}

static gguf_status check_bools(const cursor *c, const gguf_pair *pair)
{
    (void)c;
    for (uint64_t i = 0; i < pair->size; i++)
        if (pair->value[i] > 1)
            return gguf_fail(GGUF_E_VALUE, AT "'%.*s': bool is %u, neither 0 nor 1",
                             pair->offset + i, (int)MIN(pair->key.length, 200), pair->key.data,
                             pair->value[i]);
    return GGUF_OK;
}

static gguf_status take_strings(cursor *c, gguf_pair *pair)
{
    gguf_status status = GGUF_OK;
    gguf_string string = {0};
    uint64_t start = c->position;
    for (uint64_t i = 0; i < pair->count; i++) {
        TRY(take_string(c, "string length", c->limits.string_length, &string));
        pair->is_utf8 = pair->is_utf8 && is_utf8(string);
    }
    pair->value = c->data + start;
    pair->size = c->position - start;
    if (!pair->is_array) {
        pair->value = (const uint8_t *)string.data;
        pair->size = string.length;
    }
error:
    return status;
}

static gguf_status take_type(cursor *c, bool array_allowed, gguf_type *out)
{
    uint64_t offset = c->position, type;
    gguf_status status = take_integer(c, 4, &type);
    if (status != GGUF_OK)
        return status;
    if (type == GGUF_ARRAY && !array_allowed)
        return gguf_fail(GGUF_E_VALUE, AT "array of arrays", offset);
    if (type >= GGUF_TYPE_COUNT)
        return gguf_fail(GGUF_E_VALUE, AT "unknown value type %" PRIu64, offset, type);
    *out = (gguf_type)type;
    return GGUF_OK;
}

static gguf_status take_value(cursor *c, gguf_pair *pair)
{
    gguf_status status;
    TRY(take_type(c, true, &pair->type));
    pair->count = 1;
    pair->is_utf8 = true;
    pair->is_array = pair->type == GGUF_ARRAY;
    if (pair->is_array) {
        TRY(take_type(c, false, &pair->type));
        uint32_t smallest = gguf_type_size(pair->type);
        if (smallest == 0)
            smallest = c->narrow ? 4 : 8;
        TRY(take_bounded(c, "array count", c->limits.array_count, smallest, &pair->count));
    }
    pair->offset = c->position;
    if (pair->type == GGUF_STRING)
        return take_strings(c, pair);
    pair->size = pair->count * gguf_type_size(pair->type);
    TRY(take(c, pair->size, &pair->value));
    if (pair->type == GGUF_BOOL)
        TRY(check_bools(c, pair));
error:
    return status;
}

static gguf_status take_pairs(cursor *c, gguf_file *file, uint64_t count)
{
    gguf_status status;
    uint64_t twice;
    file->pairs = memory_zeroed((size_t)count, sizeof *file->pairs);
    if (file->pairs == NULL)
        return gguf_from(status_fail_memory("GGUF key-value pairs"));
    for (uint64_t i = 0; i < count; i++) {
        TRY(take_key(c, &file->pairs[i].key));
        TRY(take_value(c, &file->pairs[i]));
        file->pair_count = i + 1;
    }
    TRY(gguf_from(gguf_index_pairs(file, &twice)));
    if (twice < count) {
        gguf_string key = file->pairs[twice].key;
        uint64_t offset = (uint64_t)((const uint8_t *)key.data - c->data);
        return gguf_fail(GGUF_E_KEY, AT "second key '%.*s'", offset, (int)MIN(key.length, 200),
                         key.data);
    }
error:
    return status;
}

static gguf_status read_alignment(const cursor *c, gguf_file *file)
{
    const gguf_pair *pair = gguf_find(file, "general.alignment");
    file->alignment = 32;
    if (pair == NULL)
        return GGUF_OK;
    if (pair->is_array || pair->type != GGUF_U32)
        return gguf_fail(GGUF_E_ALIGN, AT "general.alignment is not a u32", pair->offset);
    uint64_t alignment = load(pair->value, 4);
    if (alignment < 8 || alignment > c->limits.alignment || (alignment & (alignment - 1)) != 0)
        return gguf_fail(GGUF_E_ALIGN,
                         AT "general.alignment %" PRIu64 " is no power of two from 8 to %" PRIu64,
                         pair->offset, alignment, c->limits.alignment);
    file->alignment = alignment;
    return GGUF_OK;
}

/* ---- Tensor infos ---- */

static gguf_status take_name(cursor *c, arena *names, const char **out)
{
    uint64_t offset = c->position;
    gguf_string name;
    gguf_status status = take_string(c, "tensor name length", UINT64_MAX, &name);
    if (status != GGUF_OK)
        return status;
    if (name.length == 0 || name.length > c->limits.name_length)
        return gguf_fail(GGUF_E_NAME,
                         AT "tensor name of %" PRIu64 " bytes; allowed are 1 to %" PRIu64, offset,
                         name.length, c->limits.name_length);
    if (memchr(name.data, '\0', (size_t)name.length) != NULL || !is_utf8(name))
        return gguf_fail(GGUF_E_NAME, AT "tensor name holds a NUL or is not UTF-8", offset);
    char *copy = arena_allocate(names, (size_t)name.length + 1);
    if (copy == NULL)
        return gguf_from(status_fail_memory("GGUF tensor name"));
    memcpy(copy, name.data, (size_t)name.length);
    *out = copy;
    return GGUF_OK;
}

/* In the product every 0 counts as 1, so that the result of the check does not depend on the order
 * of the dims. */
static gguf_status take_dims(cursor *c, gguf_tensor *tensor)
{
    gguf_status status;
    uint64_t offset = c->position, rank, product = 1;
    bool empty = false;
    TRY(take_integer(c, 4, &rank));
    if (rank > 4)
        return gguf_fail(GGUF_E_SHAPE, AT "tensor '%s': rank %" PRIu64 " above 4", offset,
                         tensor->name, rank);
    tensor->rank = (uint32_t)rank;
    for (uint32_t i = 0; i < 4; i++) {
        tensor->dims[i] = 1;
        if (i >= rank)
            continue;
        offset = c->position;
        TRY(take_count(c, &tensor->dims[i]));
        empty = empty || tensor->dims[i] == 0;
        if (!size_multiply(product, MAX(tensor->dims[i], 1), &product) || product > INT64_MAX)
            return gguf_fail(GGUF_E_SHAPE,
                             AT "tensor '%s': dim %u is %" PRIu64 ", too many elements", offset,
                             tensor->name, i, tensor->dims[i]);
    }
    tensor->numel = empty ? 0 : product;
error:
    return status;
}

static gguf_status take_format(cursor *c, gguf_tensor *tensor)
{
    gguf_status status;
    uint64_t offset = c->position, type;
    TRY(take_integer(c, 4, &type));
    const gguf_block *format = gguf_find_block((uint32_t)type);
    if (format == NULL)
        return gguf_fail(GGUF_E_TYPE, AT "tensor '%s': type %" PRIu64 " is unknown or withdrawn",
                         offset, tensor->name, type);
    if (tensor->dims[0] % format->elements != 0)
        return gguf_fail(GGUF_E_SHAPE,
                         AT "tensor '%s': innermost dim %" PRIu64 " is not whole %s blocks of %u",
                         offset, tensor->name, tensor->dims[0], format->name, format->elements);
    if (!size_multiply(tensor->numel / format->elements, format->bytes, &tensor->size))
        return gguf_fail(GGUF_E_SHAPE, AT "tensor '%s': %" PRIu64 " elements of %s overflow a size",
                         offset, tensor->name, tensor->numel, format->name);
    tensor->type = (uint32_t)type;
error:
    return status;
}

static gguf_status take_tensors(cursor *c, gguf_file *file, uint64_t count, tensor_place *places)
{
    gguf_status status = GGUF_OK;
    file->tensors = memory_zeroed((size_t)count, sizeof *file->tensors);
    if (file->tensors == NULL)
        return gguf_from(status_fail_memory("GGUF tensor list"));
    for (uint64_t i = 0; i < count; i++) {
        gguf_tensor *tensor = &file->tensors[i];
        places[i].name_offset = c->position;
        TRY(take_name(c, &file->names, &tensor->name));
        TRY(take_dims(c, tensor));
        TRY(take_format(c, tensor));
        places[i].offset_offset = c->position;
        TRY(take_integer(c, 8, &places[i].offset));
        file->tensor_count = i + 1;
    }
error:
    return status;
}

/* ---- Payloads ---- */

static gguf_status place_tensor(const cursor *c, const gguf_file *file, const tensor_place *place,
                                gguf_tensor *tensor)
{
    uint64_t end;
    if (place->offset % file->alignment != 0)
        return gguf_fail(GGUF_E_OFFSET,
                         AT "tensor '%s': offset %" PRIu64
                            " is no multiple of the alignment %" PRIu64,
                         place->offset_offset, tensor->name, place->offset, file->alignment);
    if (!size_add(file->data_start, place->offset, &tensor->offset) ||
        !size_add(tensor->offset, tensor->size, &end) || end > c->length)
        return gguf_fail(GGUF_E_OFFSET,
                         AT "tensor '%s': data at %" PRIu64 " + %" PRIu64 ", %" PRIu64
                            " bytes, pass the end of the file (%" PRIu64 ")",
                         place->offset_offset, tensor->name, file->data_start, place->offset,
                         tensor->size, c->length);
    if (c->available == c->length)
        tensor->data = c->data + tensor->offset;
    return GGUF_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const gguf_tensor *const *x = a, *const *y = b;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

static gguf_status check_overlap(const gguf_file *file, const tensor_place *places)
{
    gguf_status status = GGUF_OK;
    uint64_t count = 0;
    const gguf_tensor **sorted = memory_zeroed((size_t)file->tensor_count, sizeof *sorted);
    if (sorted == NULL)
        return gguf_from(status_fail_memory("GGUF payload order"));
    for (uint64_t i = 0; i < file->tensor_count; i++)
        if (file->tensors[i].size > 0)
            sorted[count++] = &file->tensors[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_offsets);
    for (uint64_t i = 1; i < count && status == GGUF_OK; i++) {
        const gguf_tensor *a = sorted[i - 1], *b = sorted[i];
        if (a->offset + a->size > b->offset)
            status = gguf_fail(GGUF_E_OFFSET,
                               AT "tensor '%s': data at %" PRIu64 " overlap those of '%s' (%" PRIu64
                                  " bytes at %" PRIu64 ")",
                               places[b - file->tensors].offset_offset, b->name, b->offset, a->name,
                               a->size, a->offset);
    }
    memory_free(sorted);
    return status;
}

static gguf_status read_tensors(cursor *c, gguf_file *file, uint64_t count)
{
    gguf_status status;
    uint64_t twice;
    tensor_place *places = memory_zeroed((size_t)count, sizeof *places);
    if (places == NULL)
        return gguf_from(status_fail_memory("GGUF tensor places"));
    TRY(take_tensors(c, file, count, places));
    TRY(gguf_from(gguf_index_tensors(file, &twice)));
    if (twice < count) {
        status = gguf_fail(GGUF_E_NAME, AT "second tensor named '%s'", places[twice].name_offset,
                           file->tensors[twice].name);
        goto error;
    }
    file->data_start = round_up(c->position, file->alignment);
    for (uint64_t i = 0; i < count; i++)
        TRY(place_tensor(c, file, &places[i], &file->tensors[i]));
    TRY(check_overlap(file, places));
error:
    memory_free(places);
    return status;
}

/* ---- The file ---- */

static gguf_status take_version(cursor *c, gguf_file *file)
{
    uint64_t version;
    const uint8_t *magic = NULL;
    gguf_status status;
    if (c->length < 16)
        return gguf_fail(GGUF_E_TRUNCATED, AT "a GGUF file has at least 16 bytes", c->length);
    TRY(take(c, 4, &magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return gguf_fail(GGUF_E_MAGIC, AT "%02x %02x %02x %02x instead of 'GGUF'", (uint64_t)0,
                         magic[0], magic[1], magic[2], magic[3]);
    TRY(take_integer(c, 4, &version));
    if ((version & 0xffff) == 0 && version != 0)
        return gguf_fail(GGUF_E_ENDIAN, AT "big-endian file (version 0x%08" PRIx64 ")", (uint64_t)4,
                         version);
    if (version < 1 || version > 3)
        return gguf_fail(GGUF_E_VERSION, AT "version %" PRIu64 "; known are 1 to 3", (uint64_t)4,
                         version);
    if (version > 1 && c->length < 24)
        return gguf_fail(GGUF_E_TRUNCATED, AT "a file of version %" PRIu64 " has at least 24 bytes",
                         c->length, version);
    file->version = (uint32_t)version;
    c->narrow = version == 1;
error:
    return status;
}

static gguf_status parse(cursor *c, gguf_file *file)
{
    gguf_status status;
    uint64_t tensor_count, pair_count;
    TRY(take_version(c, file));
    TRY(take_bounded(c, "tensor count", c->limits.tensor_count, c->narrow ? 21 : 25,
                     &tensor_count));
    TRY(take_bounded(c, "key-value count", c->limits.pair_count, c->narrow ? 10 : 14, &pair_count));
    TRY(take_pairs(c, file, pair_count));
    TRY(read_alignment(c, file));
    TRY(read_tensors(c, file, tensor_count));
error:
    return status;
}

static gguf_limits complete_limits(const gguf_limits *given)
{
    gguf_limits limits = given ? *given : (gguf_limits){0};
    limits.key_length = limits.key_length ? limits.key_length : 65535;
    limits.name_length = limits.name_length ? limits.name_length : 255;
    limits.string_length = limits.string_length ? limits.string_length : (uint64_t)1 << 30;
    limits.array_count = limits.array_count ? limits.array_count : (uint64_t)1 << 30;
    limits.pair_count = limits.pair_count ? limits.pair_count : 1 << 20;
    limits.tensor_count = limits.tensor_count ? limits.tensor_count : 1 << 20;
    limits.alignment = limits.alignment ? limits.alignment : 1 << 20;
    return limits;
}

gguf_status gguf_parse_head(const void *bytes, uint64_t available, uint64_t length,
                            const gguf_limits *limits, uint64_t *out_needed, gguf_file **out)
{
    cursor c = {.data = bytes,
                .length = length,
                .available = available,
                .limits = complete_limits(limits)};
    gguf_file *file = memory_zeroed(1, sizeof *file);
    gguf_status status;
    *out = NULL;
    *out_needed = 0;
    if (file == NULL)
        return gguf_from(status_fail_memory("GGUF file"));
    TRY(parse(&c, file));
    *out = file;
    return GGUF_OK;
error:
    *out_needed = c.needed;
    gguf_close(file);
    return status;
}

gguf_status gguf_parse(const void *bytes, uint64_t length, const gguf_limits *limits,
                       gguf_file **out)
{
    uint64_t needed;
    return gguf_parse_head(bytes, length, length, limits, &needed, out);
}

rlxvk_status gguf_read_tensor(const gguf_tensor *tensor, void *out)
{
    if (!tensor->data)
        return input_read(tensor->source, tensor->offset, tensor->size, out);
    memcpy(out, tensor->data, (size_t)tensor->size);
    return RLXVK_OK;
}

void gguf_close(gguf_file *file)
{
    if (file == NULL)
        return;
    for (uint64_t i = 0; i < file->part_count; i++)
        gguf_close(file->parts[i]);
    for (uint64_t i = 0; i < file->pair_count; i++)
        memory_free(file->pairs[i].strings);
    memory_free(file->parts);
    memory_free(file->pairs);
    memory_free(file->tensors);
    memory_free(file->pair_index.slots);
    memory_free(file->tensor_index.slots);
    arena_destroy(&file->names);
    memory_free(file->head);
    input_close(file->source);
    memory_free(file);
}
