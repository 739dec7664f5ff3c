/* Arrays in NumPy's .npy files: little-endian float32, float64, uint8, int32, int64 in C order, up
 * to rank 8. */
#ifndef RLXVK_NPY_H
#define RLXVK_NPY_H

#include "base/base.h"

typedef struct npy_array {
    rlxvk_dtype dtype; /* F32, F64, U8, I32 or I64 */
    rlxvk_shape shape;
    uint64_t numel, size; /* elements, bytes */
    void *data;           /* owned */
} npy_array;

/* `out` must hold no array; it is zeroed on failure. E_FILE: cannot be read, or malformed (the text
 * says where); E_DTYPE: another element type, byte order or memory order; E_SHAPE: rank above 8 or
 * size overflow. */
RLXVK_MUST_CHECK rlxvk_status npy_read(const char *path, npy_array *out);
/* The same from memory; the data are copied. */
RLXVK_MUST_CHECK rlxvk_status npy_parse(const void *bytes, uint64_t length, npy_array *out);
void npy_destroy(npy_array *array); /* leaves it zeroed */

/* Element `index`, converted. */
double npy_element(const npy_array *array, uint64_t index);

/* Writes a float32 array. E_FILE names the path and the reason. */
RLXVK_MUST_CHECK rlxvk_status npy_write_f32(const char *path, const float *data,
                                            const rlxvk_shape *shape);

#endif
