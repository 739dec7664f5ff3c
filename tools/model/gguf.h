/*
 * GGUF model files, versions 1 to 3, read only. The file is trusted in nothing: every count, length
 * and offset is checked against the bytes that are there before it is used, memory stays within a
 * small multiple of the file size, and time is linear in it (one sort by offset apart). Keys,
 * values and tensor payloads are views into the file's bytes; of a file that gguf_open opened, only
 * what stands before the payloads is in memory, and gguf_read_tensor brings the payloads.
 *
 * Errors name the byte offset in the file. Structs here are for reading; only gguf.c and
 * gguf_open.c fill them. A file is used by one thread at a time (the string views are built on
 * first use); payloads may be read by many.
 */
#ifndef RLXVK_GGUF_H
#define RLXVK_GGUF_H

#include "base/base.h"
#include "cli/file.h"

/* What is wrong with a file. One row a status: X(name, number, text). */
#define GGUF_STATUS_TABLE(X)                                                                       \
    X(E_TRUNCATED, 1, "the file ends too early")                                                   \
    X(E_MAGIC, 2, "not a GGUF file")                                                               \
    X(E_VERSION, 3, "version not known")                                                           \
    X(E_ENDIAN, 4, "file of the other byte order")                                                 \
    X(E_COUNT, 5, "count above its limit")                                                         \
    X(E_KEY, 6, "bad key")                                                                         \
    X(E_VALUE, 7, "bad value")                                                                     \
    X(E_ALIGN, 8, "bad alignment")                                                                 \
    X(E_NAME, 9, "bad tensor name")                                                                \
    X(E_SHAPE, 10, "bad tensor shape")                                                             \
    X(E_TYPE, 11, "unknown tensor type")                                                           \
    X(E_OFFSET, 12, "bad tensor offset")                                                           \
    X(E_FILE, 13, "the file cannot be read")                                                       \
    X(E_MEMORY, 14, "out of host memory")

typedef enum gguf_status {
    GGUF_OK = 0,
#define GGUF_STATUS_ENUMERATOR(name, number, text) GGUF_##name = number,
    GGUF_STATUS_TABLE(GGUF_STATUS_ENUMERATOR)
#undef GGUF_STATUS_ENUMERATOR
} gguf_status;

/* "E_MAGIC", "OK", ... and what it means in general. */
const char *gguf_status_name(gguf_status status);
const char *gguf_status_text(gguf_status status);

/* As a status of the library: E_FILE for all that is wrong with a file, with the text in front of
 * the sentence. */
rlxvk_status gguf_result(gguf_status status);

typedef enum gguf_type {
    GGUF_U8 = 0,
    GGUF_I8 = 1,
    GGUF_U16 = 2,
    GGUF_I16 = 3,
    GGUF_U32 = 4,
    GGUF_I32 = 5,
    GGUF_F32 = 6,
    GGUF_BOOL = 7,
    GGUF_STRING = 8,
    GGUF_ARRAY = 9,
    GGUF_U64 = 10,
    GGUF_I64 = 11,
    GGUF_F64 = 12,
    GGUF_TYPE_COUNT
} gguf_type;

/* Bytes without terminator. Values may be broken UTF-8. */
typedef struct gguf_string {
    const char *data;
    uint64_t length;
} gguf_string;

typedef struct gguf_pair {
    gguf_string key;
    gguf_type type;         /* element type where `is_array` */
    bool is_array, is_utf8; /* is_utf8 is false where a string of the value is not valid UTF-8 */
    uint64_t count;         /* elements; 1 for a single value */
    const uint8_t *value;   /* unaligned, little-endian; for a string, after its length */
    uint64_t size;          /* bytes at `value` */
    uint64_t offset;        /* of the value in the file */
    gguf_string *strings;   /* of a string array, once asked for */
} gguf_pair;

typedef struct gguf_tensor {
    const char *name;
    uint32_t rank;
    uint32_t type;            /* an existing row of quant_format.h */
    uint64_t dims[4];         /* dims[0] is contiguous; 1 beyond the rank */
    uint64_t numel, size;     /* elements, payload bytes */
    uint64_t offset;          /* of the payload in its file */
    const uint8_t *data;      /* the payload where it is in memory, else NULL */
    const input_file *source; /* ... and the file to read it from */
} gguf_tensor;

/* Open addressing, linear probing: slot = item + 1, or 0. The table is at least twice as long as
 * the list. */
typedef struct gguf_index {
    uint32_t *slots;
    uint64_t mask;
} gguf_index;

typedef struct gguf_file gguf_file;
struct gguf_file {
    uint32_t version;
    uint64_t alignment, data_start;
    gguf_pair *pairs;
    uint64_t pair_count;
    gguf_tensor *tensors;
    uint64_t tensor_count;
    gguf_index pair_index, tensor_index;
    arena names;
    input_file *source; /* of gguf_open, with its first bytes */
    uint8_t *head;
    gguf_file **parts; /* the further files of a split model; their tensors stand in `tensors` */
    uint64_t part_count;
};

/* Zero means the default. */
typedef struct gguf_limits {
    uint64_t key_length;    /* 65535 */
    uint64_t name_length;   /* 255 */
    uint64_t string_length; /* 1 GiB */
    uint64_t array_count;   /* 2^30 */
    uint64_t pair_count;    /* 2^20 */
    uint64_t tensor_count;  /* 2^20 */
    uint64_t alignment;     /* 2^20 */
} gguf_limits;

/* Parses a byte range that must outlive the result. A split file is parsed as the part that it is.
 */
RLXVK_MUST_CHECK gguf_status gguf_parse(const void *bytes, uint64_t length,
                                        const gguf_limits *limits, gguf_file **out);
/* The same of the first `available` bytes of `length`, which must hold all but the payloads. When
 * they do not, the error is E_TRUNCATED and *out_needed a number above `available`. */
RLXVK_MUST_CHECK gguf_status gguf_parse_head(const void *bytes, uint64_t available, uint64_t length,
                                             const gguf_limits *limits, uint64_t *out_needed,
                                             gguf_file **out);
/*
 * Opens and parses a file. Of a split model (`split.count` above 1, names ending in
 * -00001-of-0000N.gguf) any part may be named: all are opened, the metadata are those of the first,
 * the tensors those of all. E_FILE, or as gguf_parse; a split that does not fit together is
 * E_COUNT (number or count), E_NAME (one tensor twice).
 */
RLXVK_MUST_CHECK gguf_status gguf_open(const char *path, gguf_file **out);
void gguf_close(gguf_file *file); /* takes NULL */

/* Copies a tensor's payload, `size` bytes. E_FILE: it cannot be read, any longer. */
RLXVK_MUST_CHECK rlxvk_status gguf_read_tensor(const gguf_tensor *tensor, void *out);

/* NULL when there is none. */
const gguf_pair *gguf_find(const gguf_file *file, const char *key);
const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name);

/* Single values: false when the key is absent, of another kind, or not representable exactly. */
bool gguf_get_u64(const gguf_file *file, const char *key, uint64_t *out);
bool gguf_get_i64(const gguf_file *file, const char *key, int64_t *out);
bool gguf_get_f64(const gguf_file *file, const char *key, double *out);
bool gguf_get_bool(const gguf_file *file, const char *key, bool *out);
bool gguf_get_string(const gguf_file *file, const char *key, gguf_string *out);

/* Element `index` of an array (index 0 of a single value), with the same conversions. */
bool gguf_element_u64(const gguf_pair *pair, uint64_t index, uint64_t *out);
bool gguf_element_i64(const gguf_pair *pair, uint64_t index, int64_t *out);
bool gguf_element_f64(const gguf_pair *pair, uint64_t index, double *out);
bool gguf_element_bool(const gguf_pair *pair, uint64_t index, bool *out);

/* The views of a string array; they live as long as the file. E_UNKNOWN_NAME: no string array of
 * that key. */
RLXVK_MUST_CHECK rlxvk_status gguf_get_strings(gguf_file *file, const char *key,
                                               const gguf_string **out, uint64_t *out_count);

bool gguf_string_is(gguf_string string, const char *word);

/* Bytes of a fixed-size value type; 0 for strings, arrays and unknown types. */
uint32_t gguf_type_size(uint32_t type);

/* For the parser: leaves the sentence as the thread's last error and returns `status`; the status
 * of what the library or a file could not do. */
gguf_status gguf_fail(gguf_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
gguf_status gguf_from(rlxvk_status status);

/* (Re)build the name indices over `pairs` and `tensors`; *out_twice is the position of the first
 * item whose name an earlier one has, or the count. For the parser. */
RLXVK_MUST_CHECK rlxvk_status gguf_index_pairs(gguf_file *file, uint64_t *out_twice);
RLXVK_MUST_CHECK rlxvk_status gguf_index_tensors(gguf_file *file, uint64_t *out_twice);

#endif
