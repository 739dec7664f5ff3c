/*
 * The bottom layer: statuses and error sentences, host memory with fault injection, checked sizes,
 * a bump arena, threads, growable arrays and text. It knows nothing about the layers above.
 */
#ifndef RLXVK_BASE_H
#define RLXVK_BASE_H

#include "base/compiler.h"

#include <rlxvk.h>

#include <stdarg.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b)          ((a) < (b) ? (a) : (b))
#define MAX(a, b)          ((a) > (b) ? (a) : (b))

/* The pattern for cleanup. A function that uses TRY has one `error:` label. It declares `status`,
 * whose type is rlxvk_status or another type in which 0 means success. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status)                                                                                \
            goto error;                                                                            \
    } while (0)

/* Stores the formatted sentence as the thread's last error and returns `status`. */
rlxvk_status status_fail(rlxvk_status status, const char *format, ...) FORMATS(2, 3);
/* status_fail(E_OUT_OF_HOST_MEMORY); `what` names the thing that was to be allocated. */
rlxvk_status status_fail_memory(const char *what);
/* Puts a formatted prefix before the thread's last error, so that it names the caller, too. */
rlxvk_status status_fail_within(rlxvk_status status, const char *format, ...) FORMATS(2, 3);

/* Saves and restores the last error, if an attempt may fail without making the call fail. */
#define LAST_ERROR_SIZE 1024
typedef struct status_sentence {
    char text[LAST_ERROR_SIZE];
} status_sentence;
void status_save(status_sentence *out);
void status_restore(const status_sentence *saved);

/* E_NULL, which names the call and its argument, if the pointer is NULL. An array may be NULL if it
 * has no items. */
rlxvk_status status_require(const void *pointer, const char *call, const char *argument);
rlxvk_status status_require_items(const void *items, size_t count, const char *call,
                                  const char *argument);

/* ---- Host memory. All allocations of the library go through here, so that tests can count and
 * fail them. ---- */

void *memory_allocate(size_t size);              /* uninitialized; NULL if out of memory */
void *memory_zeroed(size_t count, size_t size);  /* overflow of the product gives NULL */
void *memory_resize(void *pointer, size_t size); /* as realloc; if it fails, the old block stays */
void memory_free(void *pointer);
/* Like memcpy, but uses several threads if `size` is many megabytes (spread.c). */
void spread_copy(void *to, const void *from, size_t size);
char *memory_copy_string(const char *text); /* NULL in, NULL out */

/* Hooks for tests, for the whole process. The first makes the n-th allocation from now fail (1 =
 * the next, 0 = never). The second returns the number of allocations so far. */
void memory_fail_at(uint64_t nth);
uint64_t memory_allocation_count(void);
/* Blocks that are not freed yet. Blocks passed to memory_keep do not count, because they stay until
 * the process ends. */
int64_t memory_live_count(void);
void memory_keep(const void *pointer);

/* ---- Checked sizes: on overflow they return false and leave *out as it is. ---- */

static inline bool size_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !add_overflows(a, b, out);
}
static inline bool size_multiply(uint64_t a, uint64_t b, uint64_t *out)
{
    return !multiply_overflows(a, b, out);
}
/* The same, but UINT64_MAX stands for everything beyond. */
static inline uint64_t saturated_sum(uint64_t a, uint64_t b)
{
    uint64_t out;
    return size_add(a, b, &out) ? out : UINT64_MAX;
}
static inline uint64_t saturated_product(uint64_t a, uint64_t b)
{
    uint64_t out;
    return size_multiply(a, b, &out) ? out : UINT64_MAX;
}
static inline uint64_t round_up(uint64_t value,
                                uint64_t multiple) /* value + multiple must not overflow */
{
    return (value + multiple - 1) / multiple * multiple;
}
static inline uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}
/* The least power of two from `value` on, but not more than the first one from `most` on. */
static inline uint32_t power_of_two_from(uint64_t value, uint32_t most)
{
    uint32_t power = 1;
    while (power < value && power < most)
        power *= 2;
    return power;
}
/* The largest power of two up to `limit`, which is below 2^32; 1 if it is 0. */
static inline uint32_t power_of_two_within(uint64_t limit)
{
    uint32_t power = 1;
    while (power <= limit / 2)
        power *= 2;
    return power;
}
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- Bump arena: many small objects that die together. ---- */

typedef struct arena_chunk arena_chunk;
typedef struct arena {
    arena_chunk *chunks;
} arena;

void *arena_allocate(arena *a, size_t size); /* zeroed, 16-byte aligned; NULL if out of memory */
void *arena_copy(arena *a, const void *bytes, size_t size);
char *arena_copy_string(arena *a, const char *text);
void arena_destroy(arena *a);

/* ---- Threads (spread.c) ---- */

/* Calls work(argument, part) for parts 0 .. count - 1 on up to `most` threads, and waits for all. A
 * part must not report errors with status_fail, because each thread has its own last error. */
typedef void spread_work(void *argument, size_t part);
void spread_over_threads(size_t count, size_t most, spread_work *work, void *argument);
#define SPREAD_BYTES ((size_t)4 << 20) /* as many bytes are worth a part */

/* ---- Growable arrays: struct { T *items; size_t count, capacity; } ---- */

#define VECTOR(T)                                                                                  \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t count, capacity;                                                                    \
    }

bool memory_grow_vector(void **items, size_t *capacity, size_t needed, size_t item_size);

/* Makes room for `extra` more items; false if out of memory. */
#define VECTOR_RESERVE(v, extra)                                                                   \
    ((v)->count + (extra) <= (v)->capacity ||                                                      \
     memory_grow_vector((void **)&(v)->items, &(v)->capacity, (v)->count + (extra),                \
                        sizeof(*(v)->items)))
/* Appends a value; false if out of memory. */
#define VECTOR_PUSH(v, ...)                                                                        \
    (VECTOR_RESERVE(v, 1) ? ((v)->items[(v)->count++] = (__VA_ARGS__), true) : false)
/* Moves the items of a vector to an empty one. */
#define VECTOR_MOVE(to, from)                                                                      \
    ((to)->items = (from)->items, (to)->count = (from)->count, (to)->capacity = (from)->capacity,  \
     (from)->items = NULL, (from)->count = 0, (from)->capacity = 0)
#define VECTOR_FREE(v)                                                                             \
    do {                                                                                           \
        memory_free((v)->items);                                                                   \
        (v)->items = NULL;                                                                         \
        (v)->count = (v)->capacity = 0;                                                            \
    } while (0)

/* FNV-1a hash, for checksums and tables. Continues from `hash`; begin with BASE_HASH_START. */
#define BASE_HASH_START 0xcbf29ce484222325ull
uint64_t base_hash(uint64_t hash, const void *bytes, size_t size);

/* ---- Text built piece by piece in a fixed buffer: cut if too long, always terminated. ---- */

typedef struct text {
    char *buffer;
    size_t size, length;
} text;
void text_append(text *t, const char *format, ...) FORMATS(2, 3);

/* Text of any length in a caller's buffer. It fills the buffer as far as it fits and always
 * terminates it. `length` is the length of the whole text, without the terminator. */
typedef struct text_output {
    char *buffer; /* may be NULL if size is 0 */
    size_t size;
    uint64_t length;
} text_output;
text_output text_output_begin(char *buffer, size_t size);
void text_output_bytes(text_output *t, const char *bytes, size_t count);
/* Appends a piece of less than 1024 bytes. */
void text_output_format(text_output *t, const char *format, ...) FORMATS(2, 3);

/* ---- Text that does not depend on the locale of the host program: the decimal point is '.', and
 * letters are ASCII. ---- */

/* Like vsnprintf and strtod in the C locale. */
int text_format(char *buffer, size_t size, const char *format, va_list arguments) FORMATS(3, 0);
double text_to_real(const char *string, char **out_end);
static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}
/* Compares without case, up to the terminator or `length` characters. */
bool text_ascii_equal(const char *a, const char *b, size_t length);

#endif
