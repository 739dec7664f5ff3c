/*
 * Headers of NumPy's .npy files. A file has:
 *   magic         "\x93NUMPY"
 *   version       major, minor
 *   length        of the dictionary: u16 in version 1, u32 in later ones
 *   dictionary    in ASCII: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *   elements
 *
 * The three keys may come in any order.
 */
#ifndef RLXVK_NPY_HEADER_H
#define RLXVK_NPY_HEADER_H

#include "base/base.h"

typedef struct npy_header {
    char type[32];     /* as in the file: "<f4" */
    rlxvk_dtype dtype; /* RLXVK_DTYPE_COUNT if rlxvk has no such type */
    bool column_major; /* fortran_order */
    rlxvk_shape shape;
    uint64_t numel; /* the product of the dims */
    uint64_t start; /* where the elements begin */
} npy_header;

/* How many bytes of a header are enough to know its length. */
enum { NPY_PREFIX = 12 };
/* Sets out->start from the first NPY_PREFIX bytes of a file of `length` bytes. E_FILE if they are
 * malformed. */
RLXVK_MUST_CHECK rlxvk_status npy_header_begin(const uint8_t *bytes, uint64_t length,
                                               npy_header *out);
/* Reads the rest, from the first out->start bytes.
 *   E_FILE    malformed; the sentence says where
 *   E_SHAPE   the rank is above 8, or the number of elements overflows */
RLXVK_MUST_CHECK rlxvk_status npy_header_read(const uint8_t *bytes, npy_header *out);

/* For example "<f4"; NULL if NumPy has no such type. */
const char *npy_header_type(rlxvk_dtype dtype);
/* Writes a header of version 1 and returns its length. It is padded, so that the elements start at
 * a multiple of 64. */
enum { NPY_HEADER_ROOM = 512 };
size_t npy_header_write(rlxvk_dtype dtype, const rlxvk_shape *shape, uint8_t out[NPY_HEADER_ROOM]);

#endif
