/*
 * rlxvk train lm, called in the same way as by the program: that it learns, that the same seed
 * gives the same result, and that it resumes. Also tests refusals, and that rlxvk generate can run
 * the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/commands.h"
#include "support/command.h"
#include "support/harness.h"
#include "train/trainer.h"

#include <math.h>

#define TEXT       "build/test/lm.txt"
#define MODEL      "build/test/lm.gguf"
#define CHECKPOINT "build/test/lm.checkpoint"
#define DAMAGED    "build/test/lm.damaged"
#define SMALL                                                                                      \
    "--width", "32", "--blocks", "1", "--heads", "2", "--kv-heads", "1", "--context", "24",        \
        "--batch", "8"

static char printed[1 << 20];

static int write_text(void **state)
{
    static const char line[] = "one two three four five six seven eight nine ten; ";
    FILE *file = fopen(TEXT, "w");
    (void)state;
    assert_non_null(file);
    for (int i = 0; i < 200; i++)
        assert_true(fputs(line, file) >= 0);
    return fclose(file);
}

static int train(const char *const *words)
{
    return run_command(command_train, words, printed, sizeof printed);
}

/* The held-out loss, in the last line of the results. */
static double held_loss(void)
{
    const char *last = strstr(printed, "{\"steps\":");
    assert_non_null(last);
    return number_after(last, "\"held_loss\":");
}

static void learns_and_is_run(void **state)
{
    static const char *const words[] = {"lm",     "--text", TEXT,    SMALL, "--steps", "150",
                                        "--rate", "0.01",   "--out", MODEL, "--json",  NULL};
    static const char *const prompt[] = {MODEL, "-p", "one two thr", "-n", "8", "--greedy", NULL};
    (void)state;
    assert_int_equal(train(words), EXIT_OK);
    double first = number_after(printed, "\"held_loss\":"), last = held_loss();
    assert_true(first > 1.5 && last < 0.7);
    assert_int_equal(run_command(command_generate, prompt, printed, sizeof printed), EXIT_OK);
    print_message("%.3f, then %.3f nats a byte: %s\n", first, last, printed);
    assert_non_null(strstr(printed, "ee four"));
}

/* Ten steps at once must give the same as five steps and then five more. So must recomputing. */
static void goes_on(void **state)
{
    static const char *const whole[] = {"lm",      "--text", TEXT,     SMALL,
                                        "--steps", "10",     "--json", NULL};
    static const char *const again[] = {"lm",          "--text", TEXT,     SMALL,
                                        "--steps",     "10",     "--save", CHECKPOINT,
                                        "--recompute", "--json", NULL};
    static const char *const resumed[] = {"lm",       TEXT,     SMALL, "--resume",
                                          CHECKPOINT, "--json", NULL};
    (void)state;
    assert_int_equal(train(whole), EXIT_OK);
    double loss = held_loss();
    assert_int_equal(train(again), EXIT_OK);
    assert_true(held_loss() == loss);
    assert_int_equal(train(resumed), EXIT_OK); /* no steps are left */
    assert_true(held_loss() == loss);
}

/* Resumes with the checkpoint's number of steps, or with a given one, which may be larger, equal,
 * or too small. */
static void resumes_to_a_number_of_steps(void **state)
{
    static const char *const begin[] = {"lm",     TEXT,       SMALL,    "--steps", "4",
                                        "--save", CHECKPOINT, "--json", NULL};
    static const struct {
        const char *steps;
        int code, end;
    } cases[] = {{NULL, EXIT_OK, 4}, {"4", EXIT_OK, 4}, {"7", EXIT_OK, 7}, {"3", EXIT_FAILED, 0}};
    (void)state;
    assert_int_equal(train(begin), EXIT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const resumed[] = {"lm",
                                       TEXT,
                                       SMALL,
                                       "--resume",
                                       CHECKPOINT,
                                       "--json",
                                       cases[i].steps ? "--steps" : NULL,
                                       cases[i].steps,
                                       NULL};
        assert_int_equal(train(resumed), cases[i].code);
        if (cases[i].code == EXIT_OK)
            assert_int_equal((int)number_after(strstr(printed, "{\"steps\":"), "\"steps\":"),
                             cases[i].end);
    }
}

static void *read_whole(const char *path, long *out_size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *out_size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)*out_size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)*out_size, file), *out_size);
    fclose(file);
    return bytes;
}

static void write_whole(const char *path, const void *bytes, long size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Damages every byte of the head and some of the rest, and cuts the file off: each must be refused.
 * Then each field gets values out of its range, with a correct checksum. */
static void damaged_checkpoints_are_refused(void **state)
{
    enum { LINE = 19, HEAD = 40 };
    static const uint64_t huge[] = {0, 1ull << 56, UINT64_MAX};
    trainer t;
    long size;
    (void)state;
    expect_ok(trainer_create(&t, 1));
    unsigned char *bytes = read_whole(CHECKPOINT, &size);
    for (long at = 0; at < size; at += at < LINE + HEAD + 8 ? 1 : size / 50) {
        bytes[at] ^= 0x40;
        write_whole(DAMAGED, bytes, size);
        assert_int_equal(trainer_load(&t, DAMAGED), RLXVK_E_FILE);
        bytes[at] ^= 0x40;
    }
    for (long cut = 1; cut < size; cut += size / 10) {
        write_whole(DAMAGED, bytes, size - cut);
        assert_int_equal(trainer_load(&t, DAMAGED), RLXVK_E_FILE);
    }
    for (size_t field = 0; field < HEAD / 8; field++)
        for (size_t i = 0; i < 3 && field != 2 /* random bits */; i++) {
            unsigned char copy[LINE + HEAD + 8];
            memcpy(copy, bytes, LINE + HEAD);
            memcpy(copy + LINE + 8 * field, &huge[i], 8);
            uint64_t sum = base_hash(BASE_HASH_START, copy, LINE + HEAD);
            memcpy(copy + LINE + HEAD, &sum, 8);
            write_whole(DAMAGED, copy, sizeof copy);
            assert_int_not_equal(trainer_load(&t, DAMAGED), RLXVK_OK);
            assert_true(t.step == 0 && t.steps == 0);
        }
    free(bytes);
    trainer_destroy(&t);
}

/* A checkpoint that is intact, except for too many steps, or NaN or infinity among its numbers. */
static void numbers_out_of_range_are_refused(void **state)
{
    enum { LINE = 19, HEAD = 40 };
    static const char *const resumed[] = {"lm", TEXT, SMALL, "--resume", DAMAGED, "--json", NULL};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    long size;
    (void)state;
    unsigned char *bytes = read_whole(CHECKPOINT, &size);
    for (size_t i = 0; i < 4; i++) {
        unsigned char *copy = malloc((size_t)size);
        memcpy(copy, bytes, (size_t)size);
        if (i < 3)
            memcpy(copy + LINE + HEAD + 400 * i, &bad[i], sizeof *bad);
        else
            copy[LINE + 15] = 0x7f; /* the high byte of the number of steps */
        uint64_t sum = base_hash(BASE_HASH_START, copy, (size_t)size - 8);
        memcpy(copy + size - 8, &sum, 8);
        write_whole(DAMAGED, copy, size);
        assert_int_equal(train(resumed), EXIT_FAILED);
        assert_non_null(strstr(rlxvk_last_error(), i < 3 ? "number" : "steps"));
        free(copy);
    }
    free(bytes);
}

/* Whichever allocation fails, the error must say "out of host memory". */
static void out_of_memory_is_said(void **state)
{
    static const char *const words[] = {"lm", TEXT, SMALL, "--steps", "1", NULL};
    int failed = 0;
    (void)state;
    for (uint64_t nth = 1; nth < 1u << 20; nth += nth < 120 ? 1 : nth / 4) {
        memory_fail_at(nth);
        int code = train(words);
        memory_fail_at(0);
        if (code == EXIT_OK)
            continue;
        failed++;
        if (!strstr(rlxvk_last_error(), "out of host memory"))
            fail_msg("allocation %llu: %s", (unsigned long long)nth, rlxvk_last_error());
    }
    print_message("%d failed allocations\n", failed);
    assert_true(failed > 100);
}

static void refusals(void **state)
{
    static const char *const usage[][6] = {{"lm", "--width", "0", NULL},
                                           {"lm", "--steps", "x", NULL},
                                           {"poet", NULL}};
    static const char *const failed[][8] = {{"lm", NULL},
                                            {"lm", "--text", "no/such/file", NULL},
                                            {"lm", "--text", TEXT, "--context", "4096", NULL},
                                            {"lm", "--text", TEXT, "--heads", "5", NULL},
                                            {"lm", "--text", TEXT, "--kv-heads", "3", NULL},
                                            {"lm", "--text", TEXT, "--out",
                                             "no/such/folder/model.gguf", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++)
        assert_int_equal(train(usage[i]), EXIT_USAGE);
    for (size_t i = 0; i < sizeof failed / sizeof *failed; i++)
        assert_int_equal(train(failed[i]), EXIT_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_and_is_run),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(resumes_to_a_number_of_steps),
        cmocka_unit_test(damaged_checkpoints_are_refused),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(out_of_memory_is_said),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, write_text, NULL);
}
