/*
 * The compressed modules in the library. Packing and unpacking must give the same words, and
 * damaged data must be refused.
 */
#include "build/pack.c" /* part of the generator, not of the library */
#include "cli/clock.h"
#include "kernel/kernel.h"
#include "kernel/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_WORDS = 200000 };

static uint32_t roll(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Random instructions, some of which repeat. */
static uint32_t random_module(uint64_t *state, uint32_t *words)
{
    static const uint32_t lengths[] = {1, 2, 3, 4, 5, 5, 6, 7, 40, 9000, 65535};
    uint32_t count = 0, instructions = roll(state, 300);
    for (; count < SPIRV_HEADER_WORDS; count++)
        words[count] = roll(state, 2) ? UINT32_MAX : roll(state, 300);
    while (instructions-- > 0 && count + 65535 < MOST_WORDS) {
        uint32_t length = lengths[roll(state, roll(state, 20) ? 8 : 11)];
        uint32_t same = roll(state, 3) ? 0 : roll(state, count) + 1;
        words[count] = length << 16 | roll(state, roll(state, 9) ? 300 : 65536);
        for (uint32_t i = 1; i < length; i++)
            words[count + i] = same             ? words[(same + i) % count]
                               : roll(state, 4) ? roll(state, 5000)
                                                : 0x80000000u + roll(state, UINT32_MAX);
        count += length;
    }
    return count;
}

static bool unpacks(const packed_module *m, uint32_t *words)
{
    void *room = malloc(kernel_unpack_bytes(m));
    bool good = kernel_unpack(m, room, words);
    free(room);
    return good;
}

static void what_is_packed_comes_back(void **state)
{
    uint32_t *words = calloc(MOST_WORDS, sizeof *words), *back = calloc(MOST_WORDS, sizeof *back);
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t source = seed;
        packed_module m;
        uint32_t count = seed == 1 ? 0 : random_module(&source, words);
        assert_true(pack_module(words, count, &m));
        assert_int_equal(m.word_count, count);
        memset(back, 0xaa, count * sizeof *back);
        assert_true(unpacks(&m, back));
        assert_memory_equal(back, words, count * sizeof *back);
        free((void *)m.bytes);
    }
    free(words);
    free(back);
}

/* The data is cut off, or a byte is changed. It must be refused or give another module. Sanitizers
 * check that nothing is read or written outside the sizes. */
static void damage_is_no_danger(void **state)
{
    const packed_module *whole = &kernel_table[KERNEL_CUMSUM].packed;
    uint32_t *words = malloc(whole->word_count * sizeof *words), refused = 0;
    uint8_t *bytes = malloc(whole->byte_count);
    uint64_t dice = 7;
    (void)state;
    for (uint32_t size = 0; size < whole->byte_count; size += 17) {
        packed_module m = *whole;
        m.byte_count = size;
        assert_false(unpacks(&m, words));
    }
    for (int i = 0; i < 1000; i++) {
        packed_module m = *whole;
        memcpy(bytes, whole->bytes, whole->byte_count);
        bytes[roll(&dice, whole->byte_count)] ^= (uint8_t)(1 + roll(&dice, 255));
        m.bytes = bytes;
        refused += !unpacks(&m, words);
    }
    assert_true(refused > 250);
    free(words);
    free(bytes);
}

/* Unpacks all kernels within the time that a program may take to start. A program uses only a
 * few. */
static void every_kernel_unpacks(void **state)
{
    double begin = clock_seconds();
    uint64_t packed = 0, unpacked = 0;
    (void)state;
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        const kernel_info *kernel = &kernel_table[k];
        uint32_t *words = kernel_words(kernel);
        assert_non_null(words);
        assert_int_equal(words[0], SpvMagicNumber);
        packed += kernel->packed.byte_count;
        unpacked += kernel->word_count * sizeof *words;
        memory_free(words);
    }
    print_message("%d kernels, %.2f MB in %.2f MB, unpacked in %.1f ms\n", KERNEL_COUNT,
                  (double)unpacked / 1e6, (double)packed / 1e6, (clock_seconds() - begin) * 1e3);
    assert_true(packed * 4 < unpacked);
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        memory_fail_at(nth);
        assert_null(kernel_words(&kernel_table[KERNEL_COPY]));
    }
    memory_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(damage_is_no_danger),
        cmocka_unit_test(every_kernel_unpacks),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
