/* Writes small GGUF files into a buffer, valid or not, and remembers the position of the fault. */
#ifndef GGUF_BUILDER_H
#define GGUF_BUILDER_H

#include "model/language/gguf.h"

#include <stdlib.h>
#include <string.h>

typedef struct builder {
    uint8_t bytes[1 << 17];
    size_t length;
    bool narrow;    /* version 1 */
    uint64_t fault; /* the offset that the error must name */
} builder;

static inline void put(builder *b, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        b->bytes[b->length++] = (uint8_t)(value >> 8 * i);
}

static inline void put_count(builder *b, uint64_t count)
{
    put(b, count, b->narrow ? 4 : 8);
}

static inline void put_bytes(builder *b, const char *data, size_t length)
{
    put_count(b, length);
    memcpy(b->bytes + b->length, data, length);
    b->length += length;
}

static inline void put_string(builder *b, const char *string)
{
    put_bytes(b, string, strlen(string));
}

static inline void put_header(builder *b, uint32_t version, uint64_t tensors, uint64_t pairs)
{
    memcpy(b->bytes, "GGUF", 4);
    b->length = 4;
    b->narrow = version == 1;
    put(b, version, 4);
    put_count(b, tensors);
    put_count(b, pairs);
}

/* Writes a key and its type. The caller then writes the value. */
static inline void put_key(builder *b, const char *key, uint32_t type)
{
    put_string(b, key);
    put(b, type, 4);
}

static inline void put_u32(builder *b, const char *key, uint32_t value)
{
    put_key(b, key, GGUF_U32);
    put(b, value, 4);
}

static inline void put_text(builder *b, const char *key, const char *value)
{
    put_key(b, key, GGUF_STRING);
    put_string(b, value);
}

static inline void put_bool(builder *b, const char *key, bool value)
{
    put_key(b, key, GGUF_BOOL);
    put(b, value, 1);
}

static inline void put_array(builder *b, const char *key, uint32_t type, uint64_t count)
{
    put_key(b, key, GGUF_ARRAY);
    put(b, type, 4);
    put_count(b, count);
}

static inline void put_tensor(builder *b, const char *name, uint32_t type, uint64_t offset,
                              uint32_t rank, const uint64_t *dims)
{
    put_string(b, name);
    put(b, rank, 4);
    for (uint32_t i = 0; i < rank; i++)
        put_count(b, dims[i]);
    put(b, type, 4);
    put(b, offset, 8);
}

/* Writes padding, then `size` bytes of data: 0, 1, 2, ... */
static inline void put_data(builder *b, size_t alignment, size_t size)
{
    while (b->length % alignment != 0)
        put(b, 0xee, 1);
    for (size_t i = 0; i < size; i++)
        put(b, i, 1);
}

/* Parses the first `length` bytes in a block of exactly that size, so that a sanitizer sees every
 * overrun. The caller closes the file first and then frees *copy. */
static inline gguf_file *parse_copy(const builder *b, size_t length, gguf_status *status,
                                    uint8_t **copy)
{
    gguf_file *file = NULL;
    *copy = malloc(length ? length : 1);
    memcpy(*copy, b->bytes, length);
    *status = gguf_parse(*copy, length, NULL, &file);
    return file;
}

#endif
