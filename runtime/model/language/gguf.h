/*
 * Reads GGUF model files, versions 1 to 3. The parser trusts nothing in the file: it checks each
 * count, length and offset against the bytes that are there before it uses it. Memory stays within
 * a small multiple of the file size. Time is linear in the file size, except for one sort by
 * offset.
 *
 * Keys, values and payloads of tensors are views into the file's bytes. If gguf_open opened the
 * file, only the part before the payloads is in memory, and gguf_read_tensor reads a payload.
 *
 * Errors name the byte offset in the file. Do not write to these structs; only gguf.c and
 * gguf_open.c fill them. Only one thread at a time may use a file, because the views of string
 * arrays are built at their first use. Several threads may read payloads.
 */
#ifndef RLXVK_GGUF_H
#define RLXVK_GGUF_H

#include "base/base.h"
#include "base/input.h"

/* The ways in which a file can be wrong. One status a row: X(name, number, text). */
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

/* gguf_status_name returns for example "E_MAGIC" or "OK"; the other one its general meaning. */
const char *gguf_status_name(gguf_status status);
const char *gguf_status_text(gguf_status status);

/* Converts to a status of the library. If the file is wrong, this is E_FILE, and the status's text
 * is put before the sentence. */
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

/* Bytes without a terminator. Strings of values may be invalid UTF-8. */
typedef struct gguf_string {
    const char *data;
    uint64_t length;
} gguf_string;

typedef struct gguf_pair {
    gguf_string key;
    gguf_type type;         /* type of the elements if `is_array` */
    bool is_array, is_utf8; /* is_utf8: all strings of the value are valid UTF-8 */
    uint64_t count;         /* number of elements; 1 for a single value */
    const uint8_t *value;   /* unaligned, little-endian; of a string, the bytes after its length */
    uint64_t size;          /* bytes at `value` */
    uint64_t offset;        /* of the value, in the file */
    gguf_string *strings;   /* views of a string array, after they were first requested */
} gguf_pair;

typedef struct gguf_tensor {
    const char *name;
    uint32_t rank;
    uint32_t type;            /* a type of gguf_type.h */
    uint64_t dims[4];         /* dims[0] is contiguous; dims beyond the rank are 1 */
    uint64_t numel, size;     /* elements, payload bytes */
    uint64_t offset;          /* of the payload, in its file */
    const uint8_t *data;      /* the payload if it is in memory, else NULL */
    const input_file *source; /* ... then the file that has it */
} gguf_tensor;

/* A hash table with open addressing and linear probing. A slot is the item's index + 1, or 0 if it
 * is free. The table is at least twice as long as the list. */
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
    input_file *source; /* if gguf_open opened it; the first bytes are in memory */
    uint8_t *head;
    gguf_file **parts; /* the other files of a split model; `tensors` has their tensors, too */
    uint64_t part_count;
};

/* Limits for the parser. Zero means the default, which stands at each member. */
typedef struct gguf_limits {
    uint64_t key_length;    /* 65535 */
    uint64_t name_length;   /* 255 */
    uint64_t string_length; /* 1 GiB */
    uint64_t array_count;   /* 2^30 */
    uint64_t pair_count;    /* 2^20 */
    uint64_t tensor_count;  /* 2^20 */
    uint64_t alignment;     /* 2^20 */
} gguf_limits;

/* Parses a range of bytes, which must outlive the result. One part of a split model is parsed as a
 * file of its own. */
RLXVK_MUST_CHECK gguf_status gguf_parse(const void *bytes, uint64_t length,
                                        const gguf_limits *limits, gguf_file **out);
/* Parses a file of `length` bytes of which only the first `available` are in memory. They must hold
 * everything before the payloads. If they do not, the error is E_TRUNCATED, and *out_needed is a
 * number above `available`. */
RLXVK_MUST_CHECK gguf_status gguf_parse_head(const void *bytes, uint64_t available, uint64_t length,
                                             const gguf_limits *limits, uint64_t *out_needed,
                                             gguf_file **out);
/*
 * Opens and parses a file. A model may be split into files whose names end in -00001-of-0000N.gguf
 * (`split.count` is above 1). Then `path` may be any part, and all are opened. The metadata are
 * those of the first part; the tensors are those of all parts.
 *   E_FILE    the file cannot be opened or read
 *   E_COUNT   the number of a part or the count of parts or tensors is wrong
 *   E_NAME    two parts have a tensor of the same name
 *   and the errors of gguf_parse.
 */
RLXVK_MUST_CHECK gguf_status gguf_open(const char *path, gguf_file **out);
void gguf_close(gguf_file *file); /* accepts NULL */

/* Copies a tensor's payload, which has `size` bytes. E_FILE: it can no longer be read. */
RLXVK_MUST_CHECK rlxvk_status gguf_read_tensor(const gguf_tensor *tensor, void *out);

/* Both return NULL if there is no such name. */
const gguf_pair *gguf_find(const gguf_file *file, const char *key);
const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name);

/* Read single values. They return false if the key is absent, its value is of another kind, or the
 * value cannot be represented exactly. */
bool gguf_get_u64(const gguf_file *file, const char *key, uint64_t *out);
bool gguf_get_i64(const gguf_file *file, const char *key, int64_t *out);
bool gguf_get_f64(const gguf_file *file, const char *key, double *out);
bool gguf_get_bool(const gguf_file *file, const char *key, bool *out);
bool gguf_get_string(const gguf_file *file, const char *key, gguf_string *out);

/* Read element `index` of an array, with the same conversions. For a single value, the index is 0.
 */
bool gguf_element_u64(const gguf_pair *pair, uint64_t index, uint64_t *out);
bool gguf_element_i64(const gguf_pair *pair, uint64_t index, int64_t *out);
bool gguf_element_f64(const gguf_pair *pair, uint64_t index, double *out);
bool gguf_element_bool(const gguf_pair *pair, uint64_t index, bool *out);

/* Returns views of a string array, which live as long as the file. E_UNKNOWN_NAME: the key is
 * absent or not a string array. */
RLXVK_MUST_CHECK rlxvk_status gguf_get_strings(gguf_file *file, const char *key,
                                               const gguf_string **out, uint64_t *out_count);

bool gguf_string_is(gguf_string string, const char *word);

/* Size in bytes of a value type; 0 for strings, arrays and unknown types. */
uint32_t gguf_type_size(uint32_t type);

/* For the parser. gguf_fail stores the sentence as the thread's last error and returns `status`.
 * gguf_from gives the status for a library or file call that failed. */
gguf_status gguf_fail(gguf_status status, const char *format, ...) FORMATS(2, 3);
gguf_status gguf_from(rlxvk_status status);

/* For the parser: builds the name indices over `pairs` or `tensors`, also again. *out_twice is the
 * index of the first item that has the same name as an earlier one. If there is none, it is the
 * count. */
RLXVK_MUST_CHECK rlxvk_status gguf_index_pairs(gguf_file *file, uint64_t *out_twice);
RLXVK_MUST_CHECK rlxvk_status gguf_index_tensors(gguf_file *file, uint64_t *out_twice);

#endif
