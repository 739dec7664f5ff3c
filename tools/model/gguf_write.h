/*
 * Writing GGUF files, version 3: first all keys and the names of all tensors, then gguf_begin, then
 * the payloads in the tensors' order. Little-endian on every machine. Running out of memory is
 * noted and reported by gguf_begin.
 */
#ifndef RLXVK_GGUF_WRITE_H
#define RLXVK_GGUF_WRITE_H

#include "model/gguf.h"

#include <stdio.h>

typedef VECTOR(uint8_t) gguf_bytes;

typedef struct gguf_writer {
    gguf_bytes pairs, tensors; /* as they stand in the file */
    uint64_t pair_count, tensor_count, data_size;
    bool out_of_memory;
    FILE *stream;
} gguf_writer;

void gguf_put_string(gguf_writer *w, const char *key, const char *value);
void gguf_put_u32(gguf_writer *w, const char *key, uint32_t value);
void gguf_put_f32(gguf_writer *w, const char *key, float value);
void gguf_put_bool(gguf_writer *w, const char *key, bool value);
void gguf_put_strings(gguf_writer *w, const char *key, const char *const *values, uint64_t count);
void gguf_put_f32s(gguf_writer *w, const char *key, const float *values, uint64_t count);
void gguf_put_i32s(gguf_writer *w, const char *key, const int32_t *values, uint64_t count);

/* `type` of quant_format.h; rows of `columns` elements, 0 rows: a vector. */
void gguf_put_tensor(gguf_writer *w, const char *name, uint32_t type, uint64_t columns,
                     uint64_t rows);

/* Writes all that stands before the payloads. E_OUT_OF_HOST_MEMORY. What the stream could not take
 * is told by closing it. */
RLXVK_MUST_CHECK rlxvk_status gguf_begin(gguf_writer *w, FILE *stream);
/* A tensor's whole payload, in its type's bytes. */
void gguf_put_payload(gguf_writer *w, const void *bytes, uint64_t size);
void gguf_writer_destroy(gguf_writer *w);

#endif
