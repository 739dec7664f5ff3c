/* See gguf_write.h. */
#include "model/gguf_write.h"
#include "op/packed/quant_format.h"

#include <string.h>

#define ALIGNMENT 32 /* the format's default */

static uint64_t aligned(uint64_t size)
{
    return divide_up(size, ALIGNMENT) * ALIGNMENT;
}

/* ---- Bytes ---- */

static void put_bytes(gguf_writer *w, gguf_bytes *to, const void *bytes, size_t size)
{
    if (!VECTOR_RESERVE(to, size)) {
        w->out_of_memory = true;
        return;
    }
    memcpy(to->items + to->count, bytes, size);
    to->count += size;
}

static void put_number(gguf_writer *w, gguf_bytes *to, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    put_bytes(w, to, bytes, size);
}

static void put_text(gguf_writer *w, gguf_bytes *to, const char *text)
{
    put_number(w, to, strlen(text), 8);
    put_bytes(w, to, text, strlen(text));
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- Keys ---- */

static void put_key(gguf_writer *w, const char *key, gguf_type type)
{
    put_text(w, &w->pairs, key);
    put_number(w, &w->pairs, type, 4);
    w->pair_count++;
}

static void put_array(gguf_writer *w, const char *key, gguf_type type, uint64_t count)
{
    put_key(w, key, GGUF_ARRAY);
    put_number(w, &w->pairs, type, 4);
    put_number(w, &w->pairs, count, 8);
}

void gguf_put_string(gguf_writer *w, const char *key, const char *value)
{
    put_key(w, key, GGUF_STRING);
    put_text(w, &w->pairs, value);
}

void gguf_put_u32(gguf_writer *w, const char *key, uint32_t value)
{
    put_key(w, key, GGUF_U32);
    put_number(w, &w->pairs, value, 4);
}

void gguf_put_f32(gguf_writer *w, const char *key, float value)
{
    put_key(w, key, GGUF_F32);
    put_number(w, &w->pairs, bits_of(value), 4);
}

void gguf_put_bool(gguf_writer *w, const char *key, bool value)
{
    put_key(w, key, GGUF_BOOL);
    put_number(w, &w->pairs, value, 1);
}

void gguf_put_strings(gguf_writer *w, const char *key, const char *const *values, uint64_t count)
{
    put_array(w, key, GGUF_STRING, count);
    for (uint64_t i = 0; i < count; i++)
        put_text(w, &w->pairs, values[i]);
}

void gguf_put_f32s(gguf_writer *w, const char *key, const float *values, uint64_t count)
{
    put_array(w, key, GGUF_F32, count);
    for (uint64_t i = 0; i < count; i++)
        put_number(w, &w->pairs, bits_of(values[i]), 4);
}

void gguf_put_i32s(gguf_writer *w, const char *key, const int32_t *values, uint64_t count)
{
    put_array(w, key, GGUF_I32, count);
    for (uint64_t i = 0; i < count; i++)
        put_number(w, &w->pairs, (uint32_t)values[i], 4);
}

/* ---- Tensors ---- */

void gguf_put_tensor(gguf_writer *w, const char *name, uint32_t type, uint64_t columns,
                     uint64_t rows)
{
    put_text(w, &w->tensors, name);
    put_number(w, &w->tensors, rows ? 2 : 1, 4);
    put_number(w, &w->tensors, columns, 8);
    if (rows)
        put_number(w, &w->tensors, rows, 8);
    put_number(w, &w->tensors, type, 4);
    put_number(w, &w->tensors, w->data_size, 8);
    w->data_size += aligned(quant_row_bytes(type, columns) * MAX(rows, 1));
    w->tensor_count++;
}

/* ---- The file ---- */

static void pad(gguf_writer *w, uint64_t size)
{
    static const uint8_t zeros[ALIGNMENT] = {0};
    fwrite(zeros, 1, aligned(size) - size, w->stream);
}

rlxvk_status gguf_begin(gguf_writer *w, FILE *stream)
{
    gguf_writer head = {.stream = stream};
    w->stream = stream;
    put_bytes(&head, &head.pairs, "GGUF", 4);
    put_number(&head, &head.pairs, 3, 4);
    put_number(&head, &head.pairs, w->tensor_count, 8);
    put_number(&head, &head.pairs, w->pair_count, 8);
    bool complete = !w->out_of_memory && !head.out_of_memory;
    if (complete) {
        fwrite(head.pairs.items, 1, head.pairs.count, stream);
        if (w->pairs.count)
            fwrite(w->pairs.items, 1, w->pairs.count, stream);
        if (w->tensors.count)
            fwrite(w->tensors.items, 1, w->tensors.count, stream);
        pad(w, head.pairs.count + w->pairs.count + w->tensors.count);
    }
    gguf_writer_destroy(&head);
    return complete ? RLXVK_OK : status_fail_memory("GGUF head");
}

void gguf_put_payload(gguf_writer *w, const void *bytes, uint64_t size)
{
    fwrite(bytes, 1, size, w->stream);
    pad(w, size);
}

void gguf_writer_destroy(gguf_writer *w)
{
    VECTOR_FREE(&w->pairs);
    VECTOR_FREE(&w->tensors);
}
