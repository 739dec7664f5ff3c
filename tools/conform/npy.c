/*
 * .npy: "\x93NUMPY", version (major, minor), header length (u16 in version 1, u32 above), an ASCII
 * dictionary literal
 * {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, then the elements. The three keys
 * come in any order.
 */
#include "conform/npy.h"
#include "cli/file.h"
#include "cli/new_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct npy_type {
    const char *name;
    rlxvk_dtype dtype;
    uint32_t size;
} types[] = {
    {"<f4", RLXVK_F32, 4}, {"<f8", RLXVK_F64, 8}, {"|u1", RLXVK_U8, 1},
    {"<i4", RLXVK_I32, 4}, {"<i8", RLXVK_I64, 8},
};

/* A position in the header's text; `origin` is its first byte's offset in the file. */
typedef struct header {
    const char *text;
    size_t length, position, origin;
} header;

static rlxvk_status malformed(const header *h, const char *what)
{
    return status_fail(RLXVK_E_FILE, "npy header, byte %zu: %s", h->origin + h->position, what);
}

static void skip_space(header *h)
{
    while (h->position < h->length && strchr(" \t\r\n", h->text[h->position]) != NULL &&
           h->text[h->position] != '\0')
        h->position++;
}

/* Takes `character` if it comes next. */
static bool accept(header *h, char character)
{
    skip_space(h);
    if (h->position >= h->length || h->text[h->position] != character)
        return false;
    h->position++;
    return true;
}

/* A quoted word of less than `size` characters. */
static bool accept_word(header *h, char *out, size_t size)
{
    skip_space(h);
    char quote = h->position < h->length ? h->text[h->position] : '\0';
    if (quote != '\'' && quote != '"')
        return false;
    size_t start = h->position + 1, end = start;
    while (end < h->length && h->text[end] != quote)
        end++;
    if (end == h->length || end - start >= size)
        return false;
    memcpy(out, h->text + start, end - start);
    out[end - start] = '\0';
    h->position = end + 1;
    return true;
}

static bool accept_literal(header *h, const char *word)
{
    size_t length = strlen(word);
    skip_space(h);
    if (h->length - h->position < length || memcmp(h->text + h->position, word, length) != 0)
        return false;
    h->position += length;
    return true;
}

static rlxvk_status read_descr(header *h, npy_array *array)
{
    char word[32];
    if (!accept_word(h, word, sizeof word))
        return malformed(h, "'descr' is not a short string (structured types are not supported)");
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        if (strcmp(types[i].name, word) == 0) {
            array->dtype = types[i].dtype;
            array->size = types[i].size;
            return RLXVK_OK;
        }
    }
    return status_fail(RLXVK_E_DTYPE, "npy: element type '%s'; readable are <f4 <f8 |u1 <i4 <i8",
                       word);
}

static rlxvk_status read_order(header *h, npy_array *array)
{
    (void)array;
    if (accept_literal(h, "False"))
        return RLXVK_OK;
    if (accept_literal(h, "True"))
        return status_fail(RLXVK_E_DTYPE, "npy: fortran_order is True; save the array in C order");
    return malformed(h, "'fortran_order' is neither True nor False");
}

static rlxvk_status read_dim(header *h, rlxvk_shape *shape)
{
    uint64_t value = 0;
    size_t start = h->position;
    for (; h->position < h->length; h->position++) {
        char c = h->text[h->position];
        if (c < '0' || c > '9')
            break;
        if (!size_multiply(value, 10, &value) || !size_add(value, (uint64_t)(c - '0'), &value) ||
            value > INT64_MAX)
            return status_fail(RLXVK_E_SHAPE, "npy: a dim of the shape is above 2^63 - 1");
    }
    if (h->position == start)
        return malformed(h, "'shape' holds something other than numbers");
    if (shape->rank == RLXVK_MAX_RANK)
        return status_fail(RLXVK_E_SHAPE, "npy: rank above %d", RLXVK_MAX_RANK);
    shape->dims[shape->rank++] = (int64_t)value;
    return RLXVK_OK;
}

static rlxvk_status read_shape(header *h, npy_array *array)
{
    rlxvk_status status = RLXVK_OK;
    array->shape.rank = 0;
    if (!accept(h, '('))
        return malformed(h, "'shape' is not a tuple");
    while (!accept(h, ')')) {
        TRY(read_dim(h, &array->shape));
        if (!accept(h, ',') &&
            (skip_space(h), h->position >= h->length || h->text[h->position] != ')'))
            return malformed(h, "expected ',' or ')' in 'shape'");
    }
error:
    return status;
}

static const struct npy_field {
    const char *name;
    rlxvk_status (*read)(header *h, npy_array *array);
} fields[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};

static rlxvk_status read_field(header *h, npy_array *array, unsigned *seen)
{
    char word[32];
    if (!accept_word(h, word, sizeof word) || !accept(h, ':'))
        return malformed(h, "expected a quoted key and ':'");
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (strcmp(fields[i].name, word) != 0)
            continue;
        *seen |= 1u << i;
        skip_space(h);
        return fields[i].read(h, array);
    }
    return malformed(h, "unknown key");
}

static rlxvk_status read_header(header *h, npy_array *array)
{
    rlxvk_status status = RLXVK_OK;
    unsigned seen = 0;
    if (!accept(h, '{'))
        return malformed(h, "expected '{'");
    while (!accept(h, '}')) {
        TRY(read_field(h, array, &seen));
        if (!accept(h, ',')) {
            if (!accept(h, '}'))
                return malformed(h, "expected ',' or '}'");
            break;
        }
    }
    if (seen != (1u << ARRAY_COUNT(fields)) - 1)
        return malformed(h, "one of 'descr', 'fortran_order', 'shape' is missing");
error:
    return status;
}

/* The product is checked with every dim of 0 counted as 1, so that the order of the dims does not
 * matter. */
static rlxvk_status count_elements(npy_array *array)
{
    uint64_t product = 1, bytes;
    bool empty = false;
    for (uint32_t i = 0; i < array->shape.rank; i++) {
        uint64_t dim = (uint64_t)array->shape.dims[i];
        empty = empty || dim == 0;
        if (!size_multiply(product, MAX(dim, 1), &product))
            return status_fail(RLXVK_E_SHAPE, "npy: the product of the dims overflows at axis %u",
                               i);
    }
    if (!size_multiply(product, array->size, &bytes))
        return status_fail(RLXVK_E_SHAPE, "npy: %" PRIu64 " elements overflow a size", product);
    array->numel = empty ? 0 : product;
    array->size = empty ? 0 : bytes;
    return RLXVK_OK;
}

/* Finds the header's text and the first byte of the data. */
static rlxvk_status read_prefix(const uint8_t *bytes, uint64_t length, header *h)
{
    if (length < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return status_fail(RLXVK_E_FILE, "npy: no \\x93NUMPY magic at byte 0 (%" PRIu64 " bytes)",
                           length);
    if (bytes[6] < 1 || bytes[6] > 3)
        return status_fail(RLXVK_E_FILE, "npy: version %u at byte 6; known are 1 to 3", bytes[6]);
    h->origin = bytes[6] == 1 ? 10 : 12;
    h->length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        h->length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    h->text = (const char *)bytes + h->origin;
    if (h->length > length - h->origin)
        return status_fail(RLXVK_E_FILE,
                           "npy: header of %zu bytes at byte %zu passes the end (%" PRIu64 ")",
                           h->length, h->origin, length);
    return RLXVK_OK;
}

rlxvk_status npy_parse(const void *bytes, uint64_t length, npy_array *out)
{
    header h = {0};
    npy_array array = {0};
    rlxvk_status status;
    *out = array;
    TRY(read_prefix(bytes, length, &h));
    TRY(read_header(&h, &array));
    TRY(count_elements(&array));
    uint64_t start = h.origin + h.length;
    if (array.size != length - start)
        return status_fail(RLXVK_E_FILE,
                           "npy: the shape needs %" PRIu64 " bytes of data, the file has %" PRIu64
                           " from byte %" PRIu64,
                           array.size, length - start, start);
    array.data = memory_allocate((size_t)MAX(array.size, 1));
    if (array.data == NULL)
        return status_fail_memory("npy array");
    memcpy(array.data, (const uint8_t *)bytes + start, (size_t)array.size);
    *out = array;
error:
    return status;
}

rlxvk_status npy_read(const char *path, npy_array *out)
{
    file_content content = {0};
    rlxvk_status status;
    memset(out, 0, sizeof *out);
    TRY(file_read(path, &content));
    status = npy_parse(content.data, content.length, out);
    if (status != RLXVK_OK)
        status = status_fail_within(status, "'%s'", path);
error:
    file_free(&content);
    return status;
}

void npy_destroy(npy_array *array)
{
    memory_free(array->data);
    memset(array, 0, sizeof *array);
}

double npy_element(const npy_array *array, uint64_t index)
{
    switch (array->dtype) {
    case RLXVK_F32:
        return ((const float *)array->data)[index];
    case RLXVK_F64:
        return ((const double *)array->data)[index];
    case RLXVK_I32:
        return ((const int32_t *)array->data)[index];
    case RLXVK_I64:
        return (double)((const int64_t *)array->data)[index];
    default:
        return ((const uint8_t *)array->data)[index];
    }
}

/* The header's text for `shape`, padded so that the data start at a multiple of 64; returns its
 * length. */
static size_t write_header(const rlxvk_shape *shape, char *buffer, size_t size)
{
    text t = {.buffer = buffer, .size = size};
    text_append(&t, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (uint32_t i = 0; i < shape->rank; i++)
        text_append(&t, "%" PRId64 ",%s", shape->dims[i], i + 1 < shape->rank ? " " : "");
    text_append(&t, "), }");
    while ((10 + t.length + 1) % 64 != 0)
        text_append(&t, " ");
    text_append(&t, "\n");
    return t.length;
}

rlxvk_status npy_write_f32(const char *path, const float *data, const rlxvk_shape *shape)
{
    char dictionary[512];
    size_t length = write_header(shape, dictionary, sizeof dictionary);
    uint8_t prefix[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    size_t numel = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        numel *= (size_t)shape->dims[i];
    prefix[8] = (uint8_t)length;
    prefix[9] = (uint8_t)(length >> 8);
    new_file file;
    rlxvk_status status = new_file_open(path, &file);
    if (status != RLXVK_OK)
        return status;
    fwrite(prefix, 1, sizeof prefix, file.stream);
    fwrite(dictionary, 1, length, file.stream);
    fwrite(data, sizeof(float), numel, file.stream);
    return new_file_close(&file);
}
