/* Params in .safetensors and .npz files. Python reads and writes every dtype and strange names for
 * comparison. If a load fails, it changes nothing; if a save fails, the old file stays. Small files
 * are truncated at every length, and each bit is flipped once. */
#include "support/params_file.h"

#include <errno.h>
#include <rlxvk_files.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- Graphs ---- */

static const struct {
    const char *name;
    rlxvk_dtype dtype;
    rlxvk_shape shape;
} every[] = {
    {"w.weight", RLXVK_F32, {2, {4, 2}}},
    {"scalar", RLXVK_F32, {0, {0}}},
    {"none", RLXVK_F32, {2, {3, 0}}},
    {"f16", RLXVK_F16, {1, {5}}},
    {"a \"name\"\\ of\nall/kinds", RLXVK_F32, {3, {1, 2, 1}}},
    {"Gr\303\266\303\237e \360\237\246\200", RLXVK_F32, {1, {3}}},
    {"f64", RLXVK_F64, {1, {2}}},
    {"i8", RLXVK_I8, {2, {3, 1}}},
    {"i16", RLXVK_I16, {1, {3}}},
    {"i32", RLXVK_I32, {2, {2, 2}}},
    {"i64", RLXVK_I64, {1, {2}}},
    {"u8", RLXVK_U8, {1, {7}}},
    {"u32", RLXVK_U32, {1, {2}}},
    {"bool", RLXVK_BOOL, {1, {3}}},
    {"c64", RLXVK_C64, {1, {2}}},
    {"bf16", RLXVK_BF16, {1, {3}}}, /* last, because .npz has no such type */
};

/* All dtypes, or those that both formats have. */
static rlxvk_executable *compile_every(bool bf16)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    for (size_t i = 0; i < ARRAY_COUNT(every) - !bf16; i++)
        rlxvk_graph_output(g, rlxvk_param(g, every[i].name, every[i].dtype, every[i].shape));
    (void)rlxvk_param(g, "dead", RLXVK_F32, RLXVK_SHAPE(2));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* ---- Round trips ---- */

static void test_python_reads_what_is_saved(void **state)
{
    static char got[PARAMS_ROOM], wanted[PARAMS_ROOM];
    (void)state;
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        rlxvk_executable *e = compile_every(x == 0);
        const char *path = params_path("saved", params_extensions[x]);
        params_fill(e, 1);
        expect_ok(rlxvk_save_params(e, path, NULL));
        params_describe(e, wanted);
        params_python_reads(path, got);
        assert_string_equal(got, wanted);
        rlxvk_executable_destroy(e);
    }
}

static void test_what_python_writes_is_loaded(void **state)
{
    static char got[PARAMS_ROOM], wanted[PARAMS_ROOM];
    (void)state;
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        rlxvk_executable *from = compile_every(x == 0), *to = compile_every(x == 0);
        const char *path = params_path("made", params_extensions[x]);
        params_fill(from, 2);
        params_describe(from, wanted);
        params_python_writes(path, wanted, "");
        expect_ok(rlxvk_load_params(to, path, NULL));
        params_describe(to, got);
        assert_string_equal(got, wanted);
        params_fill(to, 3);
        expect_ok(rlxvk_save_params(from, params_path("own", params_extensions[x]), NULL));
        expect_ok(rlxvk_load_params(to, params_path("own", params_extensions[x]), NULL));
        params_describe(to, got);
        assert_string_equal(got, wanted);
        rlxvk_executable_destroy(from);
        rlxvk_executable_destroy(to);
    }
}

/* A file without params is valid. */
static void test_no_params(void **state)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2)));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        char got[PARAMS_ROOM / 8];
        expect_ok(rlxvk_save_params(e, params_path("empty", params_extensions[x]), NULL));
        params_python_reads(params_path("empty", params_extensions[x]), got);
        assert_string_equal(got, "");
        expect_ok(rlxvk_load_params(e, params_path("empty", params_extensions[x]), NULL));
    }
    rlxvk_graph_destroy(g);
    rlxvk_executable_destroy(e);
}

/* ---- A small model: "w" F32 [2, 2] and "b" F32 [2] ---- */

static rlxvk_executable *compile_small(rlxvk_dtype dtype, int64_t columns, const char *second)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_param(g, "w", dtype, RLXVK_SHAPE(2, columns)));
    rlxvk_graph_output(g, rlxvk_param(g, second, RLXVK_F32, RLXVK_SHAPE(2)));
    (void)rlxvk_param(g, "dead", RLXVK_F32, RLXVK_SHAPE(2));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    params_fill(e, 5);
    return e;
}

static rlxvk_executable *small(void)
{
    return compile_small(RLXVK_F32, 2, "b");
}

/* The load must fail with this status and change nothing. */
static void expect_refused(rlxvk_executable *e, const char *path, rlxvk_status wanted,
                           const char *part)
{
    static char before[PARAMS_ROOM], after[PARAMS_ROOM];
    params_describe(e, before);
    expect_error(rlxvk_load_params(e, path, NULL), wanted, part);
    assert_ptr_equal(strstr(rlxvk_last_error(), "load_params"), rlxvk_last_error());
    params_describe(e, after);
    assert_string_equal(after, before);
}

static void test_names_and_types_must_agree(void **state)
{
    rlxvk_executable *e = small(), *other;
    static const struct {
        rlxvk_dtype dtype;
        int64_t columns;
        const char *second;
        rlxvk_status status;
        const char *part;
    } cases[] = {
        {RLXVK_F32, 3, "b", RLXVK_E_SHAPE, "param 'w' is 2x2, the file has 2x3"},
        {RLXVK_I32, 2, "b", RLXVK_E_DTYPE, "param 'w' is F32, the file has "},
        {RLXVK_F16, 2, "b", RLXVK_E_DTYPE, "`convert` rounds it"},
        {RLXVK_F32, 2, "c", RLXVK_E_UNKNOWN_NAME,
         "1 of the file's 2 names are no params of the executable: 'c'; allow_unknown"},
    };
    (void)state;
    for (size_t x = 0; x < PARAMS_FORMATS; x++)
        for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
            const char *path = params_path("other", params_extensions[x]);
            other = compile_small(cases[i].dtype, cases[i].columns, cases[i].second);
            expect_ok(rlxvk_save_params(other, path, NULL));
            expect_refused(e, path, cases[i].status, cases[i].part);
            rlxvk_executable_destroy(other);
        }
    rlxvk_executable_destroy(e);
}

static void test_what_may_be_left_out(void **state)
{
    const char *names[] = {"w"}, *path = params_path("w", "npz"),
               *both = params_path("both", "npz");
    rlxvk_executable *e = small(), *other = compile_small(RLXVK_F32, 2, "c");
    float b[2], before[2], w[4], w_saved[4];
    (void)state;
    expect_ok(rlxvk_save_params(other, both, NULL));
    expect_ok(rlxvk_set_param(other, "w", (float[]){9, 8, 7, 6}, 4));
    expect_ok(rlxvk_save_params(other, path, &(rlxvk_save_options){names, 1}));
    expect_refused(e, path, RLXVK_E_UNSET_PARAM,
                   "the file lacks 1 of 2 params: 'b'; allow_missing");
    expect_ok(rlxvk_read_param(e, "b", before, 2));
    expect_ok(rlxvk_load_params(e, path, &(rlxvk_load_options){.allow_missing = RLXVK_ON}));
    expect_ok(rlxvk_read_param(e, "w", w, 4));
    expect_ok(rlxvk_read_param(e, "b", b, 2));
    assert_memory_equal(w, ((float[]){9, 8, 7, 6}), sizeof w);
    assert_memory_equal(b, before, sizeof b);
    expect_error(rlxvk_load_params(e, both, &(rlxvk_load_options){.allow_unknown = RLXVK_ON}),
                 RLXVK_E_UNSET_PARAM, "'b'");
    expect_error(rlxvk_load_params(e, both, &(rlxvk_load_options){.allow_missing = RLXVK_ON}),
                 RLXVK_E_UNKNOWN_NAME, "'c'");
    expect_ok(rlxvk_load_params(e, both,
                                &(rlxvk_load_options){.allow_missing = RLXVK_ON,
                                                      .allow_unknown = RLXVK_ON}));
    expect_ok(rlxvk_read_param(e, "w", w, 4));
    expect_ok(rlxvk_load_params(other, both, NULL));
    expect_ok(rlxvk_read_param(other, "w", w_saved, 4));
    assert_memory_equal(w, w_saved, sizeof w);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(other);
}

static void test_conversion(void **state)
{
    static const rlxvk_dtype types[] = {RLXVK_F32, RLXVK_F16, RLXVK_BF16, RLXVK_F64};
    const rlxvk_load_options convert = {.convert = RLXVK_ON};
    const float fine[4] = {1.0009765625f, 3, -0.5f, 2}; /* 1 + 2^-10 is not exact in BF16 */
    const char *path = params_path("real", "safetensors");
    (void)state;
    for (size_t from = 0; from < ARRAY_COUNT(types); from++)
        for (size_t to = 0; to < ARRAY_COUNT(types); to++) {
            rlxvk_executable *a = compile_small(types[from], 2, "b");
            rlxvk_executable *b = compile_small(types[to], 2, "b");
            float got[4];
            expect_ok(rlxvk_set_param_typed(a, "w", fine, sizeof fine, RLXVK_F32));
            expect_ok(rlxvk_save_params(a, path, NULL));
            assert_int_equal(rlxvk_load_params(b, path, NULL),
                             from == to ? RLXVK_OK : RLXVK_E_DTYPE);
            expect_ok(rlxvk_load_params(b, path, &convert));
            expect_ok(rlxvk_read_param_typed(b, "w", got, sizeof got, RLXVK_F32));
            bool coarse = types[from] == RLXVK_BF16 || types[to] == RLXVK_BF16;
            assert_true(got[0] == (coarse ? 1.0f : fine[0]) && got[2] == -0.5f);
            rlxvk_executable_destroy(a);
            rlxvk_executable_destroy(b);
        }
    rlxvk_executable *whole = compile_small(RLXVK_I32, 2, "b"), *e = small();
    expect_ok(rlxvk_save_params(whole, path, NULL));
    expect_error(rlxvk_load_params(e, path, &convert), RLXVK_E_DTYPE, "param 'w' is F32");
    rlxvk_executable_destroy(whole);
    rlxvk_executable_destroy(e);
}

static void test_dead_params_are_discarded(void **state)
{
    static char lines[PARAMS_ROOM];
    rlxvk_executable *e = small();
    (void)state;
    params_describe(e, lines);
    strcat(lines, "64656164 F32 2 0000000000000000\n"); /* "dead" in hex */
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        params_python_writes(params_path("dead", params_extensions[x]), lines, "");
        expect_ok(rlxvk_load_params(e, params_path("dead", params_extensions[x]), NULL));
    }
    rlxvk_executable_destroy(e);
}

/* ---- Arguments and files ---- */

static void test_extensions(void **state)
{
    rlxvk_executable *e = small();
    (void)state;
    expect_error(rlxvk_save_params(e, "w.bin", NULL), RLXVK_E_ATTR,
                 "save_params: 'w.bin' ends neither in .safetensors nor in .npz");
    expect_error(rlxvk_load_params(e, "npz", NULL), RLXVK_E_ATTR, "load_params: 'npz' ends");
    expect_ok(rlxvk_save_params(e, params_path("upper", "NPZ"), NULL));
    expect_ok(rlxvk_load_params(e, params_path("upper", "NPZ"), NULL));
    expect_error(rlxvk_load_params(e, "/nosuch/w.npz", NULL), RLXVK_E_FILE, "'/nosuch/w.npz'");
    expect_error(rlxvk_load_params(e, params_path("upper", "npz"), NULL), RLXVK_E_FILE,
                 "cannot be opened");
    rlxvk_executable_destroy(e);
}

static void test_what_is_saved(void **state)
{
    rlxvk_executable *e = small();
    const char *path = params_path("some", "npz");
    (void)state;
    expect_error(rlxvk_save_params(e, path, &(rlxvk_save_options){(const char *[]){"x"}, 1}),
                 RLXVK_E_UNKNOWN_NAME, "no param named 'x'");
    expect_error(rlxvk_save_params(e, path, &(rlxvk_save_options){(const char *[]){"dead"}, 1}),
                 RLXVK_E_UNKNOWN_NAME, "dropped as dead");
    expect_error(rlxvk_save_params(e, path, &(rlxvk_save_options){(const char *[]){"w", "w"}, 2}),
                 RLXVK_E_DUP_NAME, "'w' stands in names twice");
    expect_error(rlxvk_save_params(e, path, &(rlxvk_save_options){(const char *[]){NULL}, 1}),
                 RLXVK_E_NULL, "save_params");
    expect_error(rlxvk_save_params(e, path, &(rlxvk_save_options){NULL, 1}), RLXVK_E_NULL,
                 "save_params");
    assert_int_equal(access(path, F_OK), -1);
    rlxvk_executable_destroy(e);
}

/* If a param was never set, saving fails. If the options allow unset params, zeros are saved. */
static void test_unset_params(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 2; allowed++) {
        rlxvk_compile_options options = {.allow_unset = allowed ? RLXVK_ON : RLXVK_OFF};
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        static char got[PARAMS_ROOM];
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_graph_output(g, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2)));
        expect_ok(rlxvk_compile(shared_context, g, &options, &e));
        rlxvk_graph_destroy(g);
        if (allowed) {
            expect_ok(rlxvk_save_params(e, params_path("unset", "npz"), NULL));
            params_python_reads(params_path("unset", "npz"), got);
            assert_string_equal(got, "77 F32 2 0000000000000000\n");
        } else {
            expect_error(rlxvk_save_params(e, params_path("unset", "npz"), NULL),
                         RLXVK_E_UNSET_PARAM, "param 'w' was never set");
        }
        rlxvk_executable_destroy(e);
    }
}

/* The old file is still there, and no temporary file is left in its folder. */
static void expect_old_file(const char *path, const uint8_t *old, size_t size)
{
    static uint8_t now[PARAMS_ROOM];
    char beside[160];
    assert_int_equal(params_read_file(path, now), size);
    assert_memory_equal(now, old, size);
    snprintf(beside, sizeof beside, "%s.rlxvk-new", path);
    assert_int_equal(access(beside, F_OK), -1);
}

static void test_a_failed_save_keeps_the_old_file(void **state)
{
    static uint8_t old[PARAMS_ROOM];
    rlxvk_executable *e = small(), *types = compile_every(true);
    struct rlimit limit, short_limit;
    (void)state;
    params_fill(types, 1);
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        const char *path = params_path("kept", params_extensions[x]);
        struct stat info;
        expect_ok(rlxvk_save_params(e, path, NULL));
        assert_int_equal(chmod(path, 0600), 0);
        size_t size = params_read_file(path, old);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        short_limit = (struct rlimit){100, limit.rlim_max};
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &short_limit), 0);
        rlxvk_status status = rlxvk_save_params(types, path, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(status, x ? RLXVK_E_UNSUPPORTED : RLXVK_E_FILE);
        expect_old_file(path, old, size);
        params_fill(e, 6);
        expect_ok(rlxvk_save_params(e, path, NULL));
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
    expect_error(rlxvk_save_params(types, params_path("kept", "npz"), NULL), RLXVK_E_UNSUPPORTED,
                 "param 'bf16' is BF16, which NumPy does not have; save to .safetensors");
    expect_error(rlxvk_save_params(e, "/nosuch/w.npz", NULL), RLXVK_E_FILE,
                 "save_params: '/nosuch/w.npz': cannot be written");
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(types);
}

static void test_a_reserved_name(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_param(g, "__metadata__", RLXVK_F32, RLXVK_SHAPE(2)));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    params_fill(e, 1);
    expect_error(rlxvk_save_params(e, params_path("meta", "safetensors"), NULL),
                 RLXVK_E_UNSUPPORTED, "__metadata__");
    expect_ok(rlxvk_save_params(e, params_path("meta", "npz"), NULL));
    expect_ok(rlxvk_load_params(e, params_path("meta", "npz"), NULL));
    rlxvk_executable_destroy(e);
}

/* ---- Memory ---- */

/* The n-th allocation fails, for every n. Nothing may change or leak. */
static void test_without_memory(void **state)
{
    static char before[PARAMS_ROOM], wanted[PARAMS_ROOM], after[PARAMS_ROOM];
    static uint8_t old[PARAMS_ROOM];
    rlxvk_executable *from = compile_every(false), *to = compile_every(false);
    (void)state;
    params_fill(from, 1);
    params_fill(to, 2);
    params_describe(from, wanted);
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        const char *path = params_path("memory", params_extensions[x]);
        rlxvk_status status = RLXVK_E_OUT_OF_HOST_MEMORY;
        expect_ok(rlxvk_save_params(from, path, NULL));
        size_t size = params_read_file(path, old);
        params_fill(to, 2);
        params_describe(to, before);
        for (uint64_t n = 1; status; n++) {
            memory_fail_at(n);
            status = rlxvk_save_params(to, path, NULL);
            memory_fail_at(0);
            assert_true(!status || status == RLXVK_E_OUT_OF_HOST_MEMORY || status == RLXVK_E_FILE);
            if (status)
                expect_old_file(path, old, size);
        }
        expect_ok(rlxvk_save_params(from, path, NULL));
        status = RLXVK_E_OUT_OF_HOST_MEMORY;
        for (uint64_t n = 1; status; n++) {
            memory_fail_at(n);
            status = rlxvk_load_params(to, path, NULL);
            memory_fail_at(0);
            assert_true(!status || status == RLXVK_E_OUT_OF_HOST_MEMORY);
            params_describe(to, after);
            assert_string_equal(after, status ? before : wanted);
        }
    }
    rlxvk_executable_destroy(from);
    rlxvk_executable_destroy(to);
}

/* ---- Damaged files ---- */

static void test_every_truncation(void **state)
{
    static uint8_t bytes[PARAMS_ROOM];
    rlxvk_executable *e = small();
    (void)state;
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        const char *path = params_path("whole", params_extensions[x]),
                   *cut = params_path("cut", params_extensions[x]);
        params_fill(e, 4);
        expect_ok(rlxvk_save_params(e, path, NULL));
        params_fill(e, 5);
        size_t size = params_read_file(path, bytes);
        for (size_t n = 0; n < size; n++) {
            params_write_file(cut, bytes, n);
            expect_refused(e, cut, RLXVK_E_FILE, "cut.");
        }
        bytes[size] = 0;
        params_write_file(cut, bytes, size + 1); /* also one byte too long */
        expect_refused(e, cut, RLXVK_E_FILE, "cut.");
    }
    rlxvk_executable_destroy(e);
}

/* A flipped bit either gives an error that changes nothing, or values. In .npz these are the saved
 * values, because the file has checksums. In .safetensors they may differ by as many bits as were
 * flipped. */
static void test_every_flipped_bit(void **state)
{
    static uint8_t bytes[PARAMS_ROOM];
    static char before[PARAMS_ROOM], saved[PARAMS_ROOM], after[PARAMS_ROOM];
    rlxvk_executable *e = small();
    (void)state;
    for (size_t x = 0; x < PARAMS_FORMATS; x++) {
        const char *path = params_path("sound", params_extensions[x]),
                   *bad = params_path("bad", params_extensions[x]);
        size_t loaded = 0, refused = 0, elements = 6 * 4;
        params_fill(e, 4);
        params_describe(e, saved);
        expect_ok(rlxvk_save_params(e, path, NULL));
        params_fill(e, 5);
        params_describe(e, before);
        size_t size = params_read_file(path, bytes);
        for (size_t at = 0; at < size; at++)
            for (int bit = 0; bit < 8; bit++) {
                bytes[at] ^= (uint8_t)(1u << bit);
                params_write_file(bad, bytes, size);
                bytes[at] ^= (uint8_t)(1u << bit);
                rlxvk_status status = rlxvk_load_params(e, bad, NULL);
                refused += status != RLXVK_OK;
                loaded += status == RLXVK_OK;
                params_describe(e, after);
                bool content = x == 0 && at >= size - elements;
                if (status)
                    assert_string_equal(after, before);
                else if (!content)
                    assert_string_equal(after, saved);
                assert_true(!content || !status);
                if (!status)
                    params_fill(e, 5);
            }
        assert_true(refused > 200 && loaded > 0);
    }
    rlxvk_executable_destroy(e);
}

/* Files that are written by hand. */
static const struct {
    const char *header;
    size_t elements;
    rlxvk_status status;
    const char *part;
} headers[] = {
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
     "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}",
     24, RLXVK_E_DUP_NAME, "'w' stands there twice"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,12]}}", 12, RLXVK_E_FILE,
     "data_offsets are 12 bytes apart, its dtype and shape need 16"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
     16, RLXVK_E_FILE, "the tensor before ends at 16"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]}}", 24, RLXVK_E_FILE,
     "'w' lies at bytes 8 to 24"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}", 0,
     RLXVK_E_FILE, "overflows"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
     RLXVK_E_FILE, "overflows"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0,
     RLXVK_E_FILE, "above 2^63"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, RLXVK_E_FILE,
     "not negative"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     RLXVK_E_SHAPE, "rank above 8"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, RLXVK_E_FILE,
     "begin and an end"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     RLXVK_E_FILE, "there before"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, RLXVK_E_FILE, "is missing"},
    {"{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12, RLXVK_E_DTYPE, "param 'w' is F32, the file has F8_E4M3"},
    {"{\"w\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, RLXVK_E_FILE,
     "no such escape"},
    {"{\"\\ud83e\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, RLXVK_E_FILE,
     "no such escape"},
    {"{\"\\ud83e\\udd80\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     RLXVK_E_UNKNOWN_NAME, "'\360\237\246\200'"},
    {"{\"w\":[]}", 0, RLXVK_E_FILE, "expected '{'"},
    {"{} {}", 0, RLXVK_E_FILE, "behind the header's end"},
    {"{\"__metadata__\":{\"a\":1}}", 0, RLXVK_E_FILE, "expected a string"},
    {"{}", 4, RLXVK_E_FILE, "the tensors end at byte 0"},
    {"", 0, RLXVK_E_FILE, "expected '{'"},
};

static void test_hostile_headers(void **state)
{
    rlxvk_executable *e = small();
    const char *path = params_path("hostile", "safetensors");
    uint8_t bytes[1024] = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(headers); i++) {
        size_t length = strlen(headers[i].header);
        memset(bytes, 0, sizeof bytes);
        bytes[0] = (uint8_t)length;
        memcpy(bytes + 8, headers[i].header, length);
        params_write_file(path, bytes, 8 + length + headers[i].elements);
        expect_refused(e, path, headers[i].status, headers[i].part);
    }
    memset(bytes, 0xff, 8); /* a header of 2^64 - 1 bytes */
    params_write_file(path, bytes, 64);
    expect_refused(e, path, RLXVK_E_FILE, "a header of 18446744073709551615 bytes");
    rlxvk_executable_destroy(e);
}

static void test_arrays_that_are_refused(void **state)
{
    static char lines[PARAMS_ROOM];
    rlxvk_executable *e = small();
    const char *path = params_path("compressed", "npz");
    (void)state;
    params_describe(e, lines);
    params_python_writes(path, lines, "--compressed");
    expect_refused(e, path, RLXVK_E_UNSUPPORTED, "is compressed (method 8)");
    assert_non_null(strstr(rlxvk_last_error(), "numpy.savez instead of savez_compressed"));
    params_python_writes(path, lines, "--fortran");
    expect_refused(e, path, RLXVK_E_UNSUPPORTED, "'b' is in Fortran's order");
    rlxvk_executable_destroy(e);
}

/* ---- Symbols ---- */

static rlxvk_executable *symbolic(void)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = NULL;
    int64_t batch = rlxvk_symbol(RLXVK_BATCH);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, 2));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2, 2));
    rlxvk_tensor b = rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(batch, 2));
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_matmul(g, x, w), b));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void test_symbols(void **state)
{
    const rlxvk_binding one = {RLXVK_BATCH, 1}, three = {RLXVK_BATCH, 3};
    const char *path = params_path("bound", "npz"), *fixed = params_path("fixed", "npz");
    const rlxvk_load_options missing = {.allow_missing = RLXVK_ON};
    static char wanted[PARAMS_ROOM], got[PARAMS_ROOM];
    rlxvk_executable *e = symbolic(), *other = symbolic();
    float w[4], same[4];
    (void)state;
    expect_error(rlxvk_save_params(e, path, NULL), RLXVK_E_UNBOUND_SYMBOL, "save_params");
    expect_ok(rlxvk_bind_symbols(e, &three, 1));
    params_fill(e, 1);
    expect_ok(rlxvk_save_params(e, path, NULL));
    expect_ok(rlxvk_save_params(e, fixed, &(rlxvk_save_options){(const char *[]){"w"}, 1}));
    params_describe(e, wanted);
    params_python_reads(path, got);
    assert_string_equal(got, wanted);

    expect_error(rlxvk_load_params(other, path, NULL), RLXVK_E_UNBOUND_SYMBOL, "BATCHx2");
    expect_error(rlxvk_load_params(other, fixed, NULL), RLXVK_E_UNSET_PARAM, "'b'");
    expect_ok(rlxvk_load_params(other, fixed, &missing)); /* kept until the first binding */
    expect_ok(rlxvk_bind_symbols(other, &one, 1));
    expect_ok(rlxvk_read_param(other, "w", w, 4));
    expect_ok(rlxvk_read_param(e, "w", same, 4));
    assert_memory_equal(w, same, sizeof w);
    expect_error(rlxvk_load_params(other, path, NULL), RLXVK_E_SHAPE, "is 1x2, the file has 3x2");
    expect_ok(rlxvk_bind_symbols(other, &three, 1));
    expect_ok(rlxvk_load_params(other, path, NULL));
    params_describe(other, got);
    assert_string_equal(got, wanted);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(other);
}

/* A save writes the values that a kernel has written in place, and training can go on from them. */
static void test_training_goes_on(void **state)
{
    const char *path = params_path("training", "safetensors");
    rlxvk_executable *first = NULL, *second = NULL;
    rlxvk_graph *g = NULL;
    float one[2], two[2];
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_tensor m = rlxvk_param(g, "m", RLXVK_F32, RLXVK_SHAPE(2)), gradient;
    rlxvk_tensor loss = rlxvk_reduce_sum(g, rlxvk_mul(g, w, w), (int32_t[]){0}, 1, false);
    rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &gradient);
    rlxvk_sgd(g, w, gradient, m, &(rlxvk_sgd_options){.learning_rate = .1f, .momentum = .9f}, NULL,
              NULL);
    rlxvk_graph_output(g, loss);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &first));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &second));
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_set_param(first, "w", (float[]){1, 2}, 2));
    expect_ok(rlxvk_set_param(first, "m", (float[]){0, 0}, 2));
    for (int i = 0; i < 3; i++)
        expect_ok(rlxvk_run(first, NULL, 0, NULL, 0));
    expect_ok(rlxvk_save_params(first, path, NULL));
    expect_ok(rlxvk_load_params(second, path, NULL));
    for (int i = 0; i < 3; i++) {
        expect_ok(rlxvk_run(first, NULL, 0, NULL, 0));
        expect_ok(rlxvk_run(second, NULL, 0, NULL, 0));
    }
    expect_ok(rlxvk_read_param(first, "w", one, 2));
    expect_ok(rlxvk_read_param(second, "w", two, 2));
    assert_memory_equal(one, two, sizeof one);
    assert_true(one[0] != 1);
    rlxvk_executable_destroy(first);
    rlxvk_executable_destroy(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python_reads_what_is_saved),
        cmocka_unit_test(test_what_python_writes_is_loaded),
        cmocka_unit_test(test_no_params),
        cmocka_unit_test(test_names_and_types_must_agree),
        cmocka_unit_test(test_what_may_be_left_out),
        cmocka_unit_test(test_conversion),
        cmocka_unit_test(test_dead_params_are_discarded),
        cmocka_unit_test(test_extensions),
        cmocka_unit_test(test_what_is_saved),
        cmocka_unit_test(test_unset_params),
        cmocka_unit_test(test_a_failed_save_keeps_the_old_file),
        cmocka_unit_test(test_a_reserved_name),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_arrays_that_are_refused),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_training_goes_on),
    };
    return cmocka_run_group_tests(tests, params_set_up, params_tear_down);
}
