/* See npy_header.h. */
#include "exec/npy_header.h"

#include <inttypes.h>
#include <string.h>

/* Types are little-endian, because all supported hosts are. NumPy has no bfloat16. */
static const char *const types[RLXVK_DTYPE_COUNT] = {
    [RLXVK_F32] = "<f4", [RLXVK_F16] = "<f2",  [RLXVK_F64] = "<f8", [RLXVK_I8] = "|i1",
    [RLXVK_I16] = "<i2", [RLXVK_I32] = "<i4",  [RLXVK_I64] = "<i8", [RLXVK_U8] = "|u1",
    [RLXVK_U32] = "<u4", [RLXVK_BOOL] = "|b1", [RLXVK_C64] = "<c8"};

/* A position in the header's text; `origin` is its first byte's offset in the file. */
typedef struct cursor {
    const char *text;
    size_t length, position, origin;
} cursor;

static rlxvk_status malformed(const cursor *h, const char *what)
{
    return status_fail(RLXVK_E_FILE, "npy header, byte %zu: %s", h->origin + h->position, what);
}

static void skip_space(cursor *h)
{
    while (h->position < h->length && strchr(" \t\r\n", h->text[h->position]) != NULL &&
           h->text[h->position] != '\0')
        h->position++;
}

/* Takes `character` if it comes next. */
static bool accept(cursor *h, char character)
{
    skip_space(h);
    if (h->position >= h->length || h->text[h->position] != character)
        return false;
    h->position++;
    return true;
}

/* Takes a quoted word of less than `size` characters, if it comes next. */
static bool accept_word(cursor *h, char *out, size_t size)
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

static bool accept_literal(cursor *h, const char *word)
{
    size_t length = strlen(word);
    skip_space(h);
    if (h->length - h->position < length || memcmp(h->text + h->position, word, length) != 0)
        return false;
    h->position += length;
    return true;
}

static rlxvk_status read_descr(cursor *h, npy_header *out)
{
    if (!accept_word(h, out->type, sizeof out->type))
        return malformed(h, "'descr' is not a short string (structured types are not supported)");
    for (out->dtype = 0; out->dtype < RLXVK_DTYPE_COUNT; out->dtype++)
        if (types[out->dtype] && strcmp(types[out->dtype], out->type) == 0)
            break;
    return RLXVK_OK;
}

static rlxvk_status read_order(cursor *h, npy_header *out)
{
    out->column_major = accept_literal(h, "True");
    if (out->column_major || accept_literal(h, "False"))
        return RLXVK_OK;
    return malformed(h, "'fortran_order' is neither True nor False");
}

static rlxvk_status read_dim(cursor *h, rlxvk_shape *shape)
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

static rlxvk_status read_shape(cursor *h, npy_header *out)
{
    rlxvk_status status = RLXVK_OK;
    out->shape.rank = 0;
    if (!accept(h, '('))
        return malformed(h, "'shape' is not a tuple");
    while (!accept(h, ')')) {
        TRY(read_dim(h, &out->shape));
        if (!accept(h, ',') &&
            (skip_space(h), h->position >= h->length || h->text[h->position] != ')'))
            return malformed(h, "expected ',' or ')' in 'shape'");
    }
error:
    return status;
}

static const struct npy_field {
    const char *name;
    rlxvk_status (*read)(cursor *h, npy_header *out);
} fields[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};

static rlxvk_status read_field(cursor *h, npy_header *out, unsigned *seen)
{
    char word[32];
    if (!accept_word(h, word, sizeof word) || !accept(h, ':'))
        return malformed(h, "expected a quoted key and ':'");
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (strcmp(fields[i].name, word) != 0)
            continue;
        *seen |= 1u << i;
        skip_space(h);
        return fields[i].read(h, out);
    }
    return malformed(h, "unknown key");
}

static rlxvk_status read_header(cursor *h, npy_header *out)
{
    rlxvk_status status = RLXVK_OK;
    unsigned seen = 0;
    if (!accept(h, '{'))
        return malformed(h, "expected '{'");
    while (!accept(h, '}')) {
        TRY(read_field(h, out, &seen));
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

/* While the product is checked, a dim of 0 counts as 1, so that the order of the dims does not
 * matter. */
static rlxvk_status count_elements(npy_header *out)
{
    uint64_t product = 1;
    bool empty = false;
    for (uint32_t i = 0; i < out->shape.rank; i++) {
        uint64_t dim = (uint64_t)out->shape.dims[i];
        empty = empty || dim == 0;
        if (!size_multiply(product, MAX(dim, 1), &product))
            return status_fail(RLXVK_E_SHAPE, "npy: the product of the dims overflows at axis %u",
                               i);
    }
    out->numel = empty ? 0 : product;
    return RLXVK_OK;
}

static uint32_t origin_of(const uint8_t *bytes)
{
    return bytes[6] == 1 ? 10 : 12;
}

rlxvk_status npy_header_begin(const uint8_t *bytes, uint64_t length, npy_header *out)
{
    *out = (npy_header){0};
    if (length < NPY_PREFIX || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return status_fail(RLXVK_E_FILE, "npy: no \\x93NUMPY magic at byte 0 (%" PRIu64 " bytes)",
                           length);
    if (bytes[6] < 1 || bytes[6] > 3)
        return status_fail(RLXVK_E_FILE, "npy: version %u at byte 6; known are 1 to 3", bytes[6]);
    uint32_t origin = origin_of(bytes);
    uint64_t size = bytes[8] | (uint64_t)bytes[9] << 8;
    if (origin == 12)
        size |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    if (size > length - origin)
        return status_fail(RLXVK_E_FILE,
                           "npy: header of %" PRIu64 " bytes at byte %u passes the end (%" PRIu64
                           ")",
                           size, origin, length);
    out->start = origin + size;
    return RLXVK_OK;
}

rlxvk_status npy_header_read(const uint8_t *bytes, npy_header *out)
{
    uint32_t origin = origin_of(bytes);
    cursor h = {.text = (const char *)bytes + origin,
                .length = (size_t)(out->start - origin),
                .origin = origin};
    rlxvk_status status;
    TRY(read_header(&h, out));
    TRY(count_elements(out));
error:
    return status;
}

/* ---- Writing ---- */

const char *npy_header_type(rlxvk_dtype dtype)
{
    return (unsigned)dtype < RLXVK_DTYPE_COUNT ? types[dtype] : NULL;
}

size_t npy_header_write(rlxvk_dtype dtype, const rlxvk_shape *shape, uint8_t out[NPY_HEADER_ROOM])
{
    static const uint8_t prefix[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    text t = {.buffer = (char *)out + 10, .size = NPY_HEADER_ROOM - 10};
    text_append(&t, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[dtype]);
    for (uint32_t i = 0; i < shape->rank; i++)
        text_append(&t, "%" PRId64 ",%s", shape->dims[i], i + 1 < shape->rank ? " " : "");
    text_append(&t, "), }");
    while ((10 + t.length + 1) % 64 != 0)
        text_append(&t, " ");
    text_append(&t, "\n");
    memcpy(out, prefix, sizeof prefix);
    out[8] = (uint8_t)t.length;
    out[9] = (uint8_t)(t.length >> 8);
    return 10 + t.length;
}
