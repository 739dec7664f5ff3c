/*
 * Reads the bytes of a fuzz input from front to back. Past the end all bytes are 0. So every input
 * is valid, and a longer one does more.
 */
#ifndef RLXVK_FUZZ_INPUT_H
#define RLXVK_FUZZ_INPUT_H

#include <rlxvk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fuzz_input {
    const uint8_t *bytes;
    size_t left;
} fuzz_input;

static inline uint8_t fuzz_byte(fuzz_input *in)
{
    return in->left ? (in->left--, *in->bytes++) : 0;
}

/* A number below n. It takes two bytes if n is above 256. */
static inline uint32_t fuzz_below(fuzz_input *in, uint32_t n)
{
    uint32_t value = fuzz_byte(in);
    if (n > 256)
        value = value << 8 | fuzz_byte(in);
    return n ? value % n : 0;
}

static inline bool fuzz_bool(fuzz_input *in)
{
    return fuzz_byte(in) & 1;
}

/* The bits of the next `size` bytes, at most 8. */
static inline uint64_t fuzz_bits(fuzz_input *in, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)fuzz_byte(in) << 8 * i;
    return value;
}

/* If the condition does not hold, prints the message and ends the program. */
#define FUZZ_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
