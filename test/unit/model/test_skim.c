/* Large weights stay in the model's file until they are needed. */
#include "model/onnx_data.h"
#include "model/skim.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { LARGE = SKIM_BYTES / 4, SMALL = LARGE - 1 }; /* floats */

static char path[] = "/tmp/rlxvk-skim-XXXXXX";
static float numbers[LARGE];

/* Weights "small", "large" and "last", in this order; the output is "last". */
static onnx_message make_model(void)
{
    onnx_message g = {0};
    for (size_t i = 0; i < LARGE; i++)
        numbers[i] = (float)(i % 1000 + 1);
    onnx_write_floats(&g, "small", (int64_t[]){SMALL}, 1, numbers, SMALL);
    onnx_write_floats(&g, "large", (int64_t[]){LARGE}, 1, numbers, LARGE);
    onnx_write_floats(&g, "last", (int64_t[]){3}, 1, numbers, 3);
    onnx_write_value(&g, 12, "last", 1, "3");
    return onnx_write_model(&g, 17);
}

static void write_model(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void large_weights_are_left_out(void **state)
{
    onnx_message m = make_model();
    uint8_t *bytes = calloc(1, m.size);
    size_t left_out = 0;
    input_file *file;
    onnx_model model;
    onnx_data data;
    arena a = {0};
    (void)state;
    write_model(m.bytes, m.size);
    expect_ok(input_open(path, &file));
    expect_ok(skim_file(file, bytes));
    for (size_t i = 0; i < m.size; i++) {
        left_out += bytes[i] == 0 && m.bytes[i] != 0;
        assert_true(bytes[i] == m.bytes[i] || bytes[i] == 0);
    }
    assert_true(left_out > SKIM_BYTES / 4); /* floats of small integers have many zeros */
    expect_ok(onnx_read((wire_span){bytes, m.size}, &a, &model));
    skim_mark(file, &model);
    for (size_t i = 0; i < 3; i++) {
        const onnx_tensor *t = &model.graph.initializers[i];
        assert_true((t->source != NULL) == (i == 1));
        expect_ok(onnx_data_read(t, NULL, bytes, &data));
        assert_int_equal(data.bytes.size, t->numel * sizeof(float));
        assert_memory_equal(data.bytes.bytes, numbers, data.bytes.size);
        onnx_data_free(&data);
    }
    assert_int_equal(truncate(path, (off_t)m.size - 16), 0);
    expect_ok(onnx_data_read(&model.graph.initializers[1], NULL, bytes, &data));
    onnx_data_free(&data);
    assert_int_equal(truncate(path, SKIM_BYTES), 0);
    expect_error(onnx_data_read(&model.graph.initializers[1], NULL, bytes, &data), RLXVK_E_FILE,
                 path);
    input_close(file);
    arena_destroy(&a);
    message_free(&m);
    free(bytes);
}

/* A file that is cut off or damaged is the same error as its bytes. */
static void damage_is_told_as_of_bytes(void **state)
{
    onnx_message m = make_model();
    (void)state;
    for (size_t i = 0; i < 400; i++) {
        size_t at = i < 100 ? m.size - 1 - i : i < 200 ? i - 100 : SKIM_BYTES - 100 + i - 200;
        bool cut = i % 2;
        rlxvk_model *one = NULL, *two = NULL;
        rlxvk_status wanted;
        char sentence[512];
        m.bytes[at] ^= cut ? 0 : 0x15;
        write_model(m.bytes, cut ? at : m.size);
        wanted = rlxvk_model_open_bytes(m.bytes, cut ? at : m.size, NULL, &one);
        snprintf(sentence, sizeof sentence, "%s", rlxvk_last_error());
        assert_int_equal(rlxvk_model_open(path, NULL, &two), wanted);
        if (wanted != RLXVK_OK)
            assert_non_null(strstr(rlxvk_last_error(), sentence));
        m.bytes[at] ^= cut ? 0 : 0x15;
        rlxvk_model_destroy(one);
        rlxvk_model_destroy(two);
    }
    message_free(&m);
}

/* Pages of the process in memory. */
static long resident_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long whole, resident;
    if (!file)
        skip();
    assert_int_equal(fscanf(file, "%ld %ld", &whole, &resident), 2);
    fclose(file);
    return resident;
}

static void opening_takes_little_memory(void **state)
{
    onnx_message g = {0}, m;
    rlxvk_model *model;
    long before;
    size_t count = (size_t)16 << 20;
    float *zeros = calloc(count, sizeof *zeros);
    (void)state;
    onnx_write_floats(&g, "w", (int64_t[]){(int64_t)count}, 1, zeros, count);
    onnx_write_value(&g, 12, "w", 1, "16777216");
    m = onnx_write_model(&g, 17);
    write_model(m.bytes, m.size);
    before = resident_pages();
    expect_ok(rlxvk_model_open(path, NULL, &model));
    assert_true((resident_pages() - before) * sysconf(_SC_PAGESIZE) < (long)m.size / 4);
    rlxvk_model_destroy(model);
    message_free(&m);
    free(zeros);
}

static int set_up(void **state)
{
    int file = mkstemp(path);
    (void)state;
    return file < 0 ? -1 : close(file);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_weights_are_left_out),
        cmocka_unit_test(damage_is_told_as_of_bytes),
        cmocka_unit_test(opening_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
