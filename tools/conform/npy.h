/* Arrays in NumPy's .npy files: little-endian float32, float64, uint8, int32 or int64 in C order,
 * up to rank 8. */
#ifndef RLXVK_NPY_H
#define RLXVK_NPY_H

#include "base/base.h"

typedef struct npy_array {
    rlxvk_dtype dtype; /* F32, F64, U8, I32 or I64 */
    rlxvk_shape shape;
    uint64_t numel, size; /* elements, bytes */
    void *data;           /* owned */
} npy_array;

/* Reads a file. `out` must not hold an array; it is zeroed if the call fails.
 *   E_FILE    the file cannot be read or is malformed; the text says where
 *   E_DTYPE   another element type, byte order or memory order
 *   E_SHAPE   rank above 8, or the size overflows */
RLXVK_MUST_CHECK rlxvk_status npy_read(const char *path, npy_array *out);
/* Parses a file that is in memory. The data are copied. */
RLXVK_MUST_CHECK rlxvk_status npy_parse(const void *bytes, uint64_t length, npy_array *out);
void npy_destroy(npy_array *array); /* leaves the array zeroed */

/* Element `index`, converted to double. */
double npy_element(const npy_array *array, uint64_t index);

/* Writes a float32 array. E_FILE names the path and the reason. */
RLXVK_MUST_CHECK rlxvk_status npy_write_f32(const char *path, const float *data,
                                            const rlxvk_shape *shape);

#endif
