/*
 * Writes GGUF files, version 3. First add all keys and the names of all tensors, then call
 * gguf_begin, then write the payloads in the order of the tensors. Files are little-endian on every
 * machine. If memory runs out, gguf_begin reports it.
 */
#ifndef RLXVK_GGUF_WRITE_H
#define RLXVK_GGUF_WRITE_H

#include "model/language/gguf.h"

#include <stdio.h>

typedef VECTOR(uint8_t) gguf_bytes;

typedef struct gguf_writer {
    gguf_bytes pairs, tensors; /* encoded as in the file */
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

/* Adds a tensor with rows of `columns` elements. `type` is one of quant_format.h. If rows is 0, it
 * is a vector. */
void gguf_put_tensor(gguf_writer *w, const char *name, uint32_t type, uint64_t columns,
                     uint64_t rows);

/* Writes everything before the payloads. E_OUT_OF_HOST_MEMORY. Errors of the stream show when you
 * close it. */
RLXVK_MUST_CHECK rlxvk_status gguf_begin(gguf_writer *w, FILE *stream);
/* Writes a tensor's whole payload, encoded in its type. */
void gguf_put_payload(gguf_writer *w, const void *bytes, uint64_t size);
void gguf_writer_destroy(gguf_writer *w);

#endif
