/*
 * The headers of NumPy's .npy files: "\x93NUMPY", version (major, minor), header length (u16 in
 * version 1, u32 above), an ASCII dictionary literal
 * {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, then the elements. The three keys
 * come in any order.
 */
#ifndef RLXVK_NPY_HEADER_H
#define RLXVK_NPY_HEADER_H

#include "base/base.h"

typedef struct npy_header {
    char type[32];     /* as the file has it: "<f4" */
    rlxvk_dtype dtype; /* RLXVK_DTYPE_COUNT: the type is none of rlxvk's */
    bool column_major; /* fortran_order */
    rlxvk_shape shape;
    uint64_t numel; /* the product of the dims */
    uint64_t start; /* where the elements begin */
} npy_header;

/* A header's first bytes, from which its length follows. */
enum { NPY_PREFIX = 12 };
/* Sets out->start from the first NPY_PREFIX bytes of a file of `length`; E_FILE. */
RLXVK_MUST_CHECK rlxvk_status npy_header_begin(const uint8_t *bytes, uint64_t length,
                                               npy_header *out);
/* The rest, from the first out->start bytes. E_FILE: malformed (the text says where); E_SHAPE: rank
 * above 8, or a number of elements that overflows. */
RLXVK_MUST_CHECK rlxvk_status npy_header_read(const uint8_t *bytes, npy_header *out);

/* "<f4"; NULL: NumPy has no such type. */
const char *npy_header_type(rlxvk_dtype dtype);
/* Writes a header of version 1, padded so that the elements start at a multiple of 64; returns its
 * length. */
enum { NPY_HEADER_ROOM = 512 };
size_t npy_header_write(rlxvk_dtype dtype, const rlxvk_shape *shape, uint8_t out[NPY_HEADER_ROOM]);

#endif
