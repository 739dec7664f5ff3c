/* Arrays of any element type from files: .npy of NumPy, and .pb, a TensorProto of ONNX. */
#ifndef RLXVK_ARRAY_H
#define RLXVK_ARRAY_H

#include "base/base.h"

/* The elements lie in the host encoding of the dtype. UINT16 becomes U32 and UINT64 becomes I64, as
 * in graphs of models. */
typedef struct array {
    rlxvk_dtype dtype;
    bool short_words; /* it was UINT16, which some files use for the bits of BF16 */
    rlxvk_shape shape;
    uint64_t numel, size; /* elements, bytes */
    void *data;           /* owned */
} array;

/* Reads a file; its extension tells the format. E_FILE, E_DTYPE, E_SHAPE, E_UNSUPPORTED. */
RLXVK_MUST_CHECK rlxvk_status array_read(const char *path, array *out);
/* Makes an array of zeros. */
RLXVK_MUST_CHECK rlxvk_status array_make(rlxvk_dtype dtype, rlxvk_shape shape, array *out);
/* Keeps the first `count` indices of an axis. */
void array_shorten(array *a, uint32_t axis, int64_t count);
/* Takes the words of an array of short words as the bits of BF16. */
void array_take_as_bf16(array *a);
/* Writes a .npy file. BF16, which NumPy lacks, is written as F32. */
RLXVK_MUST_CHECK rlxvk_status array_write(const char *path, const array *a);
void array_destroy(array *a); /* leaves it zeroed */

/* All elements as doubles, owned by the caller; NULL if out of memory. Integers are exact up to
 * 2^53. */
double *array_numbers(const array *a);

#endif
