/* See params_file.h. */
#include "support/params_file.h"
#include "system/program.h"

#include <rlxvk_symbols.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 32 };

static char folder[96];
const char *const params_extensions[PARAMS_FORMATS] = {"safetensors", "npz"};

const char *params_path(const char *name, const char *extension)
{
    static char path[4][128];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s.%s", folder, name, extension);
    return out;
}

size_t params_read_file(const char *path, uint8_t *out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(out, 1, PARAMS_ROOM, f);
    fclose(f);
    assert_true(size < PARAMS_ROOM);
    return size;
}

void params_write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

void params_python_reads(const char *path, char *out)
{
    char line[256];
    snprintf(line, sizeof line, "python3 test/support/params_file.py read '%s'", path);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    out[fread(out, 1, PARAMS_ROOM - 1, f)] = 0;
    assert_int_equal(pclose(f), 0);
}

void params_python_writes(const char *path, const char *lines, const char *option)
{
    char line[256];
    snprintf(line, sizeof line, "python3 test/support/params_file.py write '%s' %s", path, option);
    FILE *f = popen(line, "w");
    assert_non_null(f);
    fputs(lines, f);
    assert_int_equal(pclose(f), 0);
}

/* Lists the params. If dims are symbols, they become 3. */
static size_t params_list(rlxvk_executable *e, rlxvk_tensor_info infos[MOST])
{
    size_t count;
    expect_ok(rlxvk_executable_params(e, infos, MOST, &count));
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < infos[i].shape.rank; k++)
            if (infos[i].shape.dims[k] < 0)
                infos[i].shape.dims[k] = 3;
    return count;
}

void params_fill(rlxvk_executable *e, int seed)
{
    rlxvk_tensor_info infos[MOST];
    size_t count = params_list(e, infos);
    for (size_t i = 0; i < count; i++) {
        float values[16];
        int8_t bytes[16];
        uint64_t numel;
        expect_ok(rlxvk_shape_elements(infos[i].shape, &numel));
        bool raw = infos[i].dtype == RLXVK_U8 || infos[i].dtype == RLXVK_I8;
        uint64_t words = infos[i].dtype == RLXVK_C64 ? 2 * numel : numel;
        for (uint64_t k = 0; k < 16; k++)
            values[k] = (float)(bytes[k] = (int8_t)((k * 5 + i + (uint64_t)seed * 3) % 17));
        if (raw)
            expect_ok(rlxvk_set_param_bytes(e, infos[i].name, bytes, numel));
        else
            expect_ok(rlxvk_set_param_typed(e, infos[i].name, values, words * 4, RLXVK_F32));
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void params_describe(rlxvk_executable *e, char *out)
{
    rlxvk_tensor_info infos[MOST];
    char *lines[MOST];
    size_t count = params_list(e, infos), live = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[128];
        char shape[128];
        uint64_t numel;
        if (!infos[i].live)
            continue;
        expect_ok(rlxvk_shape_elements(infos[i].shape, &numel));
        size_t size = numel * rlxvk_dtype_size(infos[i].dtype);
        expect_ok(rlxvk_read_param_bytes(e, infos[i].name, bytes, size));
        text t = {.buffer = lines[live++] = test_malloc(1024), .size = 1024};
        for (const char *c = infos[i].name; *c; c++)
            text_append(&t, "%02x", (unsigned char)*c);
        expect_ok(rlxvk_shape_text(NULL, infos[i].shape, shape, sizeof shape));
        text_append(&t, " %s %s %s", rlxvk_dtype_name(infos[i].dtype), shape, size ? "" : "-");
        for (size_t k = 0; k < size; k++)
            text_append(&t, "%02x", bytes[k]);
        text_append(&t, "\n");
    }
    qsort(lines, live, sizeof *lines, by_text);
    text t = {.buffer = out, .size = PARAMS_ROOM};
    out[0] = 0;
    for (size_t i = 0; i < live; i++) {
        text_append(&t, "%s", lines[i]);
        test_free(lines[i]);
    }
}

int params_set_up(void **state)
{
    return program_make_temporary(folder, sizeof folder) ? open_shared_context(state) : -1;
}

int params_tear_down(void **state)
{
    close_shared_context(state);
    return remove_folder(folder);
}
