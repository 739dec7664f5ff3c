/*
 * The program, tested from outside: exit codes, standard output and error, options, and the files
 * that it writes.
 */
#include "base/base.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#define MODEL "test/data/docs-5m-q4_k_m.gguf"

typedef struct outcome {
    int code;
    char out[1 << 17], err[1 << 14];
} outcome;

static char program[4096], folder[] = "/tmp/rlxvk-cli-XXXXXX";
static outcome got;

/* The path of a file in the test's folder. */
static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t read_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(out, 1, size - 1, file) : 0;
    out[length] = 0;
    if (file)
        fclose(file);
    return length;
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Runs "[VARIABLE=value...] rlxvk arguments" and keeps the printed text. `arguments` may redirect
 * standard output again. */
static int run_with(const char *environment, const char *arguments)
{
    char line[8192];
    snprintf(line, sizeof line, "%s '%s' >%s/out 2>%s/err %s", environment, program, folder, folder,
             arguments);
    int result = system(line);
    assert_true(WIFEXITED(result));
    got.code = WEXITSTATUS(result);
    read_file(in_folder("out"), got.out, sizeof got.out);
    read_file(in_folder("err"), got.err, sizeof got.err);
    return got.code;
}

static int run(const char *arguments)
{
    return run_with("", arguments);
}

static void assert_says(const char *stream, const char *wanted)
{
    if (!strstr(stream, wanted))
        fail_msg("'%s' is missing in:\n%s", wanted, stream);
}

/* ---- Output that is lost ---- */

static void lost_output_fails_every_command(void **state)
{
    static const char *const lines[] = {
        "--help",
        "--version",
        "info",
        "info --json",
        "info --help",
        "ops",
        "ops --help",
        "conform --help",
        "conform --list --op abs",
        "conform --op abs --case 0",
        "conform --op abs --case 0 --json",
        "bench --help",
        "bench --filter '^copy'",
        "bench --filter '^copy' --json",
        "bench --training --filter '^none' --json",
        "bench --inference --filter '^none' --json",
        "run --help",
        "run test/fuzz/seeds/onnx/01",
        "run test/fuzz/seeds/onnx/01 --json",
        "show --help",
        "show test/fuzz/seeds/onnx/01",
        "generate --help",
        "generate " MODEL " -p The -n 2 --greedy",
        "generate " MODEL " -p The -n 2 --greedy --json",
    };
    char line[256];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        snprintf(line, sizeof line, "%s >/dev/full", lines[i]);
        if (run(line) != 1)
            fail_msg("%s: exit code %d", line, got.code);
        assert_says(got.err, "standard output: not all could be written: ");
    }
}

/* ---- info ---- */

static void info_without_a_device_fails_and_says_what_to_install(void **state)
{
    static const char none[] = "VK_ICD_FILENAMES=/nosuch.json VK_DRIVER_FILES=/nosuch.json";
    (void)state;
    assert_int_equal(run_with(none, "info"), 1);
    assert_says(got.err, "rlxvk info: E_NO_DEVICE: ");
    assert_says(got.err, "install");
    assert_says(got.err, "mesa-vulkan-drivers");
    assert_says(got.out, "RLXVK_NO_CACHE ");
    assert_int_equal(run_with(none, "info --json"), 1);
    assert_says(got.out, "\"devices\": [],");
    assert_says(got.err, "rlxvk info: E_NO_DEVICE: ");
    assert_int_equal(run_with("RLXVK_DEVICE=nosuch", "info"), 1);
    assert_says(got.err, "no usable device matches 'nosuch'");
    assert_int_equal(run("train digits --data /nosuch"), 1);
    assert_says(got.err, "by --data");
    assert_int_equal(run("bench --filter nosuch"), 1);
    assert_says(got.err, "cases matches --filter 'nosuch'");
    assert_int_equal(strlen(got.out), 0);
    assert_int_equal(run("conform --op softmax --case 9999"), 1);
    assert_says(got.err, "none of the ");
    assert_int_equal(run("info"), 0);
    assert_string_equal(got.err, "");
}

/* After Ctrl-C the current work ends, and the report contains everything that has run. */
static void interrupted_commands_report(void **state)
{
    static const char soon[] = "timeout --foreground --preserve-status -s INT 2";
    (void)state;
    assert_int_equal(run_with(soon, "conform --jobs 2 --seed 1,2,3,4"), 1);
    assert_says(got.err, "rlxvk conform: interrupted; ");
    assert_says(got.out, " passed, 0 failed");
    assert_int_equal(run_with(soon, "conform --jobs 1 --json --op conv --seed 1,2,3,4,5,6,7,8"), 1);
    assert_says(got.err, "interrupted; ");
    assert_says(got.out, "\"failures\"");
    assert_int_equal(run_with(soon, "train digits --epochs 1000"), 0);
    assert_says(got.err, "rlxvk train: interrupted; what was learned is lost: --save keeps it");
}

static void unknown_switches_are_warned_of_once(void **state)
{
    (void)state;
    assert_int_equal(run_with("RLXVK_NOCAHCE=1 RLXVK_TEST_X=1", "info"), 0);
    const char *first = strstr(got.err, "RLXVK_NOCAHCE is no switch");
    assert_non_null(first);
    assert_null(strstr(first + 1, "RLXVK_NOCAHCE"));
    assert_null(strstr(got.err, "RLXVK_TEST_X"));
}

/* ---- Memory ---- */

/* The text that was generated, without the line of figures. */
static size_t text_length(void)
{
    char *figures = strstr(got.out, "\n[load ");
    assert_non_null(figures);
    return (size_t)(figures - got.out);
}

/* The model needs 3.6 MiB of device memory, 2.4 MiB of it for weights that may lie on the host. */
static void a_smaller_device_gives_the_same_text(void **state)
{
    static const char *const limits[] = {"2400K", "1228800", "1G"};
    static char wanted[4096], line[256];
    (void)state;
    assert_int_equal(run("generate " MODEL " -p 'The plan of the' -n 16 --greedy"), 0);
    size_t length = text_length();
    assert_null(strstr(got.out, "host memory"));
    assert_true(length > 10 && length < sizeof wanted);
    memcpy(wanted, got.out, length);
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        snprintf(line, sizeof line,
                 "generate " MODEL " -p 'The plan of the' -n 16 --greedy --device-memory %s",
                 limits[i]);
        assert_int_equal(run(line), 0);
        assert_int_equal(text_length(), length);
        assert_memory_equal(got.out, wanted, length);
        assert_says(got.out, " MiB of weights in host memory]");
        assert_int_equal(strstr(got.out, " 0.0 MiB of weights in host memory]") != NULL, i == 2);
    }
    assert_int_equal(run("generate " MODEL " -p 'The plan of the' -n 16 --device-memory 100K"), 1);
    assert_says(got.err, "bytes of weights lie on the host already");
    assert_int_equal(run("info --json"), 0);
    assert_says(got.out, "\"memory_budget_bytes\": ");
}

/* ---- Files ---- */

static void a_bad_path_fails_before_any_work(void **state)
{
    static const char *const lines[] = {
        "conform --html /nosuch/page.html",
        "conform --html /tmp --op abs",
        "run test/fuzz/seeds/onnx/01 --output /nosuch",
        "generate " MODEL " -p The --logits /nosuch/logits.npy -n 100000000",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        if (run(lines[i]) != 1)
            fail_msg("%s: exit code %d", lines[i], got.code);
        assert_says(got.err, "E_FILE: '/");
        assert_says(got.err, "cannot be written: ");
        assert_string_equal(got.out, "");
    }
}

static void a_page_replaces_the_old_one_when_it_is_complete(void **state)
{
    char line[256], page[1 << 15], path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", in_folder("page.html"));
    write_file(path, "old page");
    snprintf(line, sizeof line, "conform --op abs --case 0 --device nosuch --html %s", path);
    assert_int_equal(run(line), 1);
    read_file(path, page, sizeof page);
    assert_string_equal(page, "old page");
    snprintf(line, sizeof line, "conform --op abs,neg --case 0 --html %s", path);
    assert_int_equal(run(line), 2);
    snprintf(line, sizeof line, "conform --op abs,neg --sparse=10 --html %s", path);
    assert_int_equal(run(line), 0);
    read_file(path, page, sizeof page);
    assert_says(page, "<dd>rlxvk conform --seed 1 --op abs,neg --sparse=10 --phase 0\n");
    assert_int_equal(run("conform --op abs --case 0 --html /dev/stdout"), 0);
    assert_says(got.out, "1 passed, 0 failed\n<!doctype html>");
    assert_int_equal(run("conform --op abs --case 0 --html /dev/full"), 1);
    assert_says(got.err, "rlxvk conform: E_FILE: '/dev/full': cannot be written: ");
}

static void copy_golden(const char *name)
{
    char line[256];
    snprintf(line, sizeof line, "cp test/golden/%s %s/%s", name, folder, name);
    assert_int_equal(system(line), 0);
}

/* Golden vectors whose expected element 3 is wrong. The page must show that in a picture, but only
 * for the case that failed. */
static void a_failed_case_has_a_picture(void **state)
{
    static const double wrong = 123;
    char line[512], page[1 << 16];
    (void)state;
    copy_golden("activation.0.x.npy");
    copy_golden("activation.0.y.npy");
    write_file(in_folder("cases.txt"), "good op=activation kind=relu in=x:activation.0.x.npy "
                                       "out=y:activation.0.y.npy\n"
                                       "bad op=activation kind=relu in=x:activation.0.x.npy "
                                       "out=y:bad.npy\n");
    snprintf(line, sizeof line, "cp %s/activation.0.y.npy %s/bad.npy", folder, folder);
    assert_int_equal(system(line), 0);
    FILE *file = fopen(in_folder("bad.npy"), "r+");
    unsigned char header[10];
    assert_int_equal(fread(header, 1, sizeof header, file), sizeof header);
    assert_int_equal(fseek(file, 10 + header[8] + 256L * header[9] + 3 * 8L, SEEK_SET), 0);
    assert_int_equal(fwrite(&wrong, sizeof wrong, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    for (int jobs = 1; jobs <= 2; jobs++) { /* two jobs: another process sends the pictures */
        int length =
            snprintf(line, sizeof line, "conform --op relu --golden %s --jobs %d", folder, jobs);
        snprintf(line + length, sizeof line - (size_t)length, " --html %s", in_folder("bad.html"));
        assert_int_equal(run(line), 1);
        read_file(in_folder("bad.html"), page, sizeof page);
        assert_says(page, "<svg class=errors ");
        assert_says(page, "worst: element 3, ");
        assert_null(strstr(strstr(page, "<svg") + 1, "<svg"));
        assert_null(strstr(page, "http"));
    }
}

/* ---- Options ---- */

static void numbers_are_decimal_and_within_limits(void **state)
{
    static const struct {
        const char *line, *sentence;
    } refused[] = {
        {"conform --op abs --case 0x1 --list", "--case takes a decimal number from 0 to"},
        {"conform --op abs --case ' 1' --list", "not ' 1'"},
        {"conform --op abs --case +1 --list", "not '+1'"},
        {"conform --op abs --case -1 --list", "not '-1'"},
        {"conform --op abs --case '' --list", "not ''"},
        {"conform --op abs --seed 18446744073709551616 --list", "18446744073709551615, not"},
        {"conform --jobs -1 --list", "--jobs takes a decimal number from 0 to 64, not '-1'"},
        {"conform --jobs 65 --list", "not '65'"},
        {"conform --timeout -1", "--timeout takes a decimal number from 0 to 1000000, not '-1'"},
        {"conform --resume a --list", "--resume goes with no --each-variant or --list"},
        {"conform --resume a --each-variant", "--resume goes with no --each-variant or --list"},
        {"conform --sparse=0 --list", "--sparse takes a decimal number from 1 to"},
        {"conform --pipelines=0 --list", "--pipelines takes a decimal number from 1 to"},
        {"conform --pipelines=3:3 --list", "from 0 to 2, not '3'"},
        {"conform --pipelines=2 --gradients", "--pipelines goes with no --golden, --gradients"},
        {"generate " MODEL " -p x --device-memory 0", "--device-memory takes a number of bytes"},
        {"generate " MODEL " -p x --device-memory M", "not 'M'"},
        {"generate " MODEL " -p x --device-memory 1T", "not '1T'"},
        {"generate " MODEL " -p x --device-memory 17179869184G", "not '17179869184G'"},
        {"run x --repeat -1", "--repeat takes a decimal number from 0 to 1000000, not '-1'"},
        {"run x --rtol nan", "--rtol takes a number from 0 to"},
        {"generate " MODEL " -p x -n 4294967296", "--tokens takes a decimal number"},
        {"generate " MODEL " -p x --temperature -1", "--temperature takes a number from 0 to"},
        {"generate " MODEL " -p x --temperature nan", "not 'nan'"},
        {"generate " MODEL " -p x --temperature 0x1p3", "not '0x1p3'"},
        {"generate " MODEL " -p x --temperature 1e400", "not '1e400'"},
        {"generate " MODEL " -p x --top-p 1,5", "--top-p takes a number from 0 to 1, not '1,5'"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        if (run(refused[i].line) != 2)
            fail_msg("%s: exit code %d", refused[i].line, got.code);
        assert_says(got.err, refused[i].sentence);
    }
    assert_int_equal(run("conform --op abs --case 010 --list"), 0);
    assert_int_equal(strncmp(got.out, "abs 10:", 7), 0);
    assert_int_equal(run("conform --op abs --case 1 --seed 18446744073709551615 --list"), 0);
}

/* A driver may tell statistics or not. */
static void pipelines_are_surveyed(void **state)
{
    (void)state;
    assert_int_equal(run("bench --pipelines --each-variant --filter '^softmax ' --sparse 100"), 0);
    assert_says(got.out, "rows=shared_words (named)");
    assert_says(got.out, " pipelines, 0 failed, 0 with spills");
    assert_int_equal(
        run("bench --pipelines --each-variant --filter '^softmax ' --sparse 100 --json"), 0);
    assert_says(got.out, "\"failures\": []}");
    assert_says(got.out, "\"chosen\": false, \"variant\": \"rows=shared_words\"");
    assert_int_equal(
        run("bench --pipelines --each-variant --at-most 1 --filter '^softmax ' --sparse 10"), 0);
    assert_says(got.out, " (named)  softmax ");
    assert_says(got.out, " pipelines were left out");
    assert_null(strstr(got.out, "\n0 pipelines were left out"));
    assert_int_equal(run("bench --pipelines --each-variant --filter nosuch"), 1);
    assert_says(got.err, "no conformance case matches --filter");
    assert_int_equal(run("bench --pipelines --filter '^softmax ' --sparse 100"), 0);
    assert_says(got.out, " cases with any above ");
    if (run("bench --pipelines --statistics --filter '^softmax ' --sparse 100") != 0) {
        assert_says(got.err, "E_UNSUPPORTED: device '");
        return;
    }
    assert_int_equal(run("bench --pipelines --statistics --chosen --filter '^welch variant='"), 0);
    assert_null(strstr(got.out, "(named)"));
}

static void shapes_are_surveyed(void **state)
{
    char line[256];
    (void)state;
    write_file(in_folder("shapes"), "softmax axis=1 in=x:f32:3x4096\n\nneg in=x:f32:7");
    snprintf(line, sizeof line, "bench --pipelines --each-variant --json --shapes %s",
             in_folder("shapes"));
    assert_int_equal(run(line), 0);
    assert_says(got.out, "\"dispatches\": [");
    assert_says(got.out, "\"case\": \"softmax axis=1 in=x:f32:3x4096\"");
    assert_says(got.out, "\"variant\": \"rows=shared_words\", \"lowering\": ");
    assert_says(got.out, ", 1, 1], \"prepares\": false");
    assert_null(strstr(got.out, "batch_norm"));
    assert_int_equal(run("bench --pipelines --each-variant --shapes /nosuch"), 1);
    assert_says(got.err, "E_FILE: '/nosuch'");
}

static void modules_are_written(void **state)
{
    static char list[1 << 16];
    char line[256], path[256];
    (void)state;
    snprintf(line, sizeof line, "bench --pipelines --modules %s --filter '^softmax ' --sparse 50",
             folder);
    assert_int_equal(run(line), 0);
    assert_says(got.out, " pipelines, 0 failed, ");
    read_file(in_folder("modules.txt"), list, sizeof list);
    assert_says(list, "> softmax ");
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)strcspn(list, " "), list);
    assert_true(read_file(path, list, sizeof list) > 20);
    assert_memory_equal(list, "\3\2\043\7", 4); /* the magic number of SPIR-V */
    assert_int_equal(run("bench --pipelines --modules /nosuch"), 1);
    assert_says(got.err, "E_FILE: '/nosuch/modules.txt'");
}

static void info_tells_whether_a_device_executes(void **state)
{
    (void)state;
    assert_int_equal(run("info --json"), 0);
    assert_says(got.out, "\"executes\": true");
    assert_int_equal(run("info"), 0);
    assert_null(strstr(got.out, "executes nothing"));
}

static void errors_begin_with_the_program_and_the_command(void **state)
{
    static const struct {
        const char *line, *begin;
        int code;
    } rows[] = {
        {"confrom", "rlxvk: no command 'confrom'; did you mean conform?", 2},
        {"info x", "rlxvk info: unexpected argument 'x'", 2},
        {"info --nosuch", "rlxvk info: unrecognized option '--nosuch'", 2},
        {"ops x", "rlxvk ops: unexpected argument 'x'", 2},
        {"ops --golden /nosuch", "rlxvk ops: E_FILE: ", 1},
        {"conform --golden /nosuch", "rlxvk conform: E_FILE: ", 1},
        {"conform --case 1", "rlxvk conform: --case needs one --op", 2},
        {"conform --nosuch", "rlxvk conform: unrecognized option '--nosuch'", 2},
        {"conform --case", "rlxvk conform: option '--case' requires an argument", 2},
        {"bench --filter '('", "rlxvk bench: --filter '('", 2},
        {"bench --statistics", "rlxvk bench: --statistics, --each-variant, --sparse and --mod", 2},
        {"bench --pipelines --chosen", "rlxvk bench: --chosen needs --statistics without --e", 2},
        {"bench --pipelines --at-most 1", "rlxvk bench: --at-most needs --each-variant with", 2},
        {"bench --pipelines --shapes x", "rlxvk bench: --shapes needs --statistics or --ea", 2},
        {"bench --pipelines --subgroups 32", "rlxvk bench: --subgroups needs --modules", 2},
        {"bench --pipelines --sparse 0", "rlxvk bench: --sparse takes", 2},
        {"bench --seconds 0", "rlxvk bench: --seconds takes", 2},
        {"bench --precision f31", "rlxvk bench: --precision takes f32, f16, bf16 or split", 2},
        {"run", "rlxvk run: name a model file", 2},
        {"run x --list y", "rlxvk run: name a model file", 2},
        {"run /nosuch", "rlxvk run: E_FILE: '/nosuch'", 1},
        {"run README.md", "rlxvk run: E_FILE: 'README.md'", 1},
        {"run test/fuzz/seeds/onnx/00", "rlxvk run: E_UNBOUND_SYMBOL: dim 0 of input 'x'", 1},
        {"run test/fuzz/seeds/onnx/00 --bind M=1", "rlxvk run: E_UN", 1},
        {"run test/fuzz/seeds/onnx/01 --input z=random",
         "rlxvk run: E_UNKNOWN_NAME: the model has no input 'z'", 1},
        {"run x --fit pad", "rlxvk run: --fit takes stretch or crop, not 'pad'", 2},
        {"run x --mean 1,2", "rlxvk run: --mean takes one number or three, not '1,2'", 2},
        {"run test/fuzz/seeds/onnx/08 --input x=test/data/neighbours.png",
         "rlxvk run: E_SHAPE: input 'x': a picture fits an input of 2 to 4 axes; this one has 1",
         1},
        {"run test/fuzz/seeds/onnx/08 --input x=README.wav",
         "rlxvk run: E_FILE: input 'x': 'README.wav': cannot be opened", 1},
        {"show", "rlxvk show: name a model file", 2},
        {"show /nosuch", "rlxvk show: E_FILE: '/nosuch'", 1},
        {"show test/fuzz/seeds/onnx/01 --svg /nosuch/x.dot", "rlxvk show: E_FILE: ", 1},
        {"generate", "rlxvk generate: no model file", 2},
        {"generate /nosuch -p x", "rlxvk generate: E_FILE: '/nosuch'", 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (run(rows[i].line) != rows[i].code)
            fail_msg("%s: exit code %d", rows[i].line, got.code);
        if (strncmp(got.err, rows[i].begin, strlen(rows[i].begin)) != 0)
            fail_msg("%s: %s", rows[i].line, got.err);
    }
}

#define ONNX "test/fuzz/seeds/onnx/"

/* Outputs are written, read as inputs and expected results, and compared. */
static void a_model_runs_and_compares(void **state)
{
    char folder[] = "/tmp/rlxvk-run-XXXXXX", line[512];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(line, sizeof line, "run " ONNX "08 --output %s", folder);
    assert_int_equal(run(line), 0);
    assert_says(got.out, "y  F32 4  min");
    assert_says(got.out, "load ");
    snprintf(line, sizeof line, "run " ONNX "08 --compare %s --repeat 3 --json", folder);
    assert_int_equal(run(line), 0);
    assert_says(got.out, "\"name\": \"y\", \"dtype\": \"F32\", \"shape\": [4]");
    /* Quantized numbers stay as they are. */
    snprintf(line, sizeof line, "run " ONNX "08 --input x=%s/output_0.npy --compare %s", folder,
             folder);
    assert_int_equal(run(line), 0);
    snprintf(line, sizeof line, "run " ONNX "04 --compare %s", folder);
    assert_int_equal(run(line), 1);
    assert_says(got.err, "output 'y' is F32 2 instead of F32 4");
    assert_int_equal(remove_folder(folder), 0);
    assert_int_equal(run("run " ONNX "04 --compare test/golden"), 1);
    assert_says(got.err, "test/golden has no output_0");
    assert_int_equal(run("run " ONNX "00 --bind N=2"), 0);
    assert_says(got.out, "y  F32 2x2  min");
}

/* Times and checks tell the nodes of the file. */
static void a_model_is_profiled_and_checked(void **state)
{
    (void)state;
    assert_int_equal(run("run " ONNX "00 --bind N=2 --profile --check"), 0);
    assert_says(got.out, "ceilings: copy ");
    assert_says(got.out, "share  ceiling  op ");
    assert_says(got.out, " total");
    assert_says(got.out, "agree with their references");
    assert_int_equal(run("run " ONNX "00 --bind N=2 --profile --json"), 0);
    assert_says(got.out, "\"nodes\": [{\"name\": ");
    assert_says(got.out, ", \"ceiling\": ");
    assert_says(got.out, "}], \"copy_bytes_per_second\": ");
}

/* dot is a program that only copies its input, because Graphviz may not be here. */
static void a_model_is_shown_and_drawn(void **state)
{
    char folder[] = "/tmp/rlxvk-show-XXXXXX", line[4608], path[64], before[4096];
    FILE *file;
    (void)state;
    assert_int_equal(run("show " ONNX "00"), 0);
    assert_says(got.out, "inputs:\n  x  FLOAT Nx");
    assert_says(got.out, "all is supported");
    assert_says(got.out, "memory: depends on named dims");
    assert_non_null(mkdtemp(folder));
    snprintf(line, sizeof line, "show " ONNX "00 --bind N=2 --svg %s/a.dot", folder);
    assert_int_equal(run(line), 0);
    assert_says(got.out, "memory: weights ");
    assert_says(got.out, " dispatches, 0 host steps");
    snprintf(path, sizeof path, "%s/dot", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\ncat >\"$3\"\n", file);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    snprintf(line, sizeof line, "%s:%.3900s", folder, before);
    setenv("PATH", line, 1);
    snprintf(line, sizeof line, "show " ONNX "00 --bind N=2 --svg %s/a.svg", folder);
    assert_int_equal(run(line), 0);
    setenv("PATH", before, 1);
    snprintf(line, sizeof line, "cmp %s/a.dot %s/a.svg && cmp %s/a-compiled.dot %s/a-compiled.svg",
             folder, folder, folder, folder);
    assert_int_equal(system(line), 0);
    assert_int_equal(remove_folder(folder), 0);
}

/* What keeps a model from running is listed, and the exit status says so. */
static void what_is_not_supported_is_shown(void **state)
{
    char path[] = "/tmp/rlxvk-show-XXXXXX", line[128];
    onnx_message g = {0}, bytes;
    int file = mkstemp(path);
    (void)state;
    onnx_write_op(&g, "Frobnicate", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", 1, "2");
    onnx_write_value(&g, 12, "y", 1, "2");
    bytes = onnx_write_model(&g, 17);
    assert_true(file >= 0 && write(file, bytes.bytes, bytes.size) == (ssize_t)bytes.size);
    close(file);
    message_free(&bytes);
    snprintf(line, sizeof line, "show %s", path);
    assert_int_equal(run(line), 1);
    assert_says(got.out, "not supported:\nFrobnicate 'y': there is no such op");
    unlink(path);
}

static void several_ops_can_be_named(void **state)
{
    (void)state;
    assert_int_equal(run("conform --op softmax,abs --list"), 0);
    assert_says(got.out, "\nsoftmax 0:");
    assert_says(got.out, "abs 0:");
    assert_null(strstr(got.out, "\nadd 0:"));
    assert_int_equal(run("conform --op abs,softmx --list"), 2);
    assert_says(got.err, "rlxvk conform: --op 'softmx': no op of this name has cases; did you mean "
                         "softmax?");
    assert_int_equal(run("conform --op abs,,neg --list"), 2);
    assert_int_equal(run("conform --op '' --list"), 2);
    assert_int_equal(run("conform --op abs,neg --case 0"), 2);
}

/* How many cases are listed with these options. */
static size_t count_listed(const char *options)
{
    char line[256];
    size_t count = 0;
    snprintf(line, sizeof line, "conform --op softmax,abs %s --list", options);
    assert_int_equal(run(line), 0);
    assert_says(got.out, "\nsoftmax 0:");
    assert_says(got.out, "abs 0:");
    for (const char *at = got.out; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

static void each_case_has_a_turn(void)
{
    char parts[sizeof got.out] = "";
    for (int part = 0; part < 3; part++) {
        char options[32];
        snprintf(options, sizeof options, "--pipelines=3:%d", part);
        assert_true(count_listed(options) > 0);
        assert_true(strlen(parts) + strlen(got.out) < sizeof parts);
        strcat(parts, got.out);
    }
    count_listed("");
    for (char *line = strtok(got.out, "\n"); line; line = strtok(NULL, "\n"))
        if (strchr(line, ':')) /* not the line with the number of cases */
            assert_says(parts, line);
}

static void cases_are_left_out_by_their_pipelines(void **state)
{
    (void)state;
    size_t all = count_listed(""), half = count_listed("--pipelines=2"),
           first = count_listed("--pipelines=1000");
    assert_int_equal(count_listed("--pipelines=1"), all);
    assert_true(half < all);
    assert_true(first < half);
    assert_true(first > all / 10); /* cases with equal pipelines stay */
    each_case_has_a_turn();
}

/* Returns the last line of the printed text, and cuts the text off before it. */
static const char *last_line(void)
{
    char *end = strrchr(got.out, '\n');
    assert_non_null(end);
    *end = 0;
    const char *before = strrchr(got.out, '\n');
    return before ? before + 1 : got.out;
}

/* If there are several processes, the first one must not run any case itself. Processes that it
 * started later would wait for driver threads that they do not have. */
static void variants_end_in_several_processes(void **state)
{
    static const char line[] = "conform --op softmax --each-variant --sparse=20 --jobs";
    char arguments[128], alone[64];
    (void)state;
    snprintf(arguments, sizeof arguments, "%s 1", line);
    assert_int_equal(run(arguments), 1); /* some variants are only of other ops */
    snprintf(alone, sizeof alone, "%s", last_line());
    snprintf(arguments, sizeof arguments, "%s 2", line);
    assert_int_equal(run_with("timeout 120", arguments), 1);
    assert_says(got.out, " 1      0 "); /* a variant of one case */
    assert_string_equal(last_line(), alone);
}

static void training_is_timed_in_json(void **state)
{
    (void)state;
    assert_int_equal(run("bench --training --filter '^byte' --precision f16 --json"), 0);
    assert_string_equal(got.err, "");
    assert_ptr_equal(strstr(got.out, "[\n  {\"net\": \"byte model\", "), got.out);
    assert_says(got.out, "\"precision\": \"f16\", \"recompute\": false, ");
    assert_says(got.out, "},\n  {\"net\": \"byte model\", ");
    assert_says(got.out, "\"precision\": \"f16\", \"recompute\": true, ");
    assert_says(got.out, ", \"host_steps\": 0, ");
    assert_says(got.out, "}\n]\n");
}

static void inference_is_timed_in_json(void **state)
{
    (void)state;
    assert_int_equal(run("bench --inference --filter '^resnet' --json"), 0);
    assert_string_equal(got.err, "");
    assert_ptr_equal(strstr(got.out, "[\n  {\"net\": \"resnet50\", "), got.out);
    assert_says(got.out, "\"items\": \"images\", \"precision\": \"f32\", ");
    assert_says(got.out, ", \"host_steps\": 0, ");
    assert_says(got.out, "}\n]\n");
}

static void info_tells_of_limits(void **state)
{
    (void)state;
    assert_int_equal(run_with("RLXVK_LIMITS=v3d", "info"), 0);
    assert_says(got.out, "   limits   in force: the device is seen through 'v3d' (RLXVK_LIMITS)");
    assert_says(got.out, "256 invocations a workgroup");
    assert_says(got.out, "the device allows 256\n"); /* what opening it chose */
    assert_int_equal(run_with("RLXVK_LIMITS=v3d", "info --json"), 0);
    assert_says(got.out, "\"limits\": \"v3d\",");
    assert_says(got.out, "\"storage_buffers_per_stage\": 8,");
    assert_int_equal(run("info"), 0);
    assert_null(strstr(got.out, "in force"));
    assert_int_equal(run_with("RLXVK_LIMITS=v3", "info"), 1);
    assert_says(got.err, "RLXVK_LIMITS: no limits have the name 'v3'; it takes vulkan-1.2, ");
}

static void conform_runs_under_limits(void **state)
{
    (void)state;
    assert_int_equal(run("conform --limits vulkan-1.2 --op rms_norm --case 0"), 0);
    assert_says(got.out, ", seen through limits vulkan-1.2, seed 1");
    assert_says(got.out, "1 ran on the host only\n0 passed, 0 failed\n"); /* it has 5 buffers */
    assert_int_equal(run_with("RLXVK_LIMITS=v3d", "conform --op rms_norm --case 0"), 0);
    assert_says(got.out, ", seen through limits v3d, seed 1");
    assert_says(got.out, "1 passed, 0 failed\n");
    assert_int_equal(run("conform --limits v3d --op abs --case 0 --json"), 0);
    assert_says(got.out, "\"limits\": \"v3d\",");
    assert_int_equal(run("conform --limits nosuch --op abs"), 2);
    assert_says(got.err, "--limits: no limits have the name 'nosuch'; it takes vulkan-1.2, ");
}

static void the_version_is_the_library_s(void **state)
{
    char wanted[64];
    (void)state;
    snprintf(wanted, sizeof wanted, "rlxvk %s\n", rlxvk_version());
    assert_int_equal(run("--version"), 0);
    assert_string_equal(got.out, wanted);
}

static int set_up(void **state)
{
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 32);
    (void)state;
    if (length < 0 || !mkdtemp(folder))
        return -1;
    program[length] = 0;
    strcpy(strrchr(program, '/'), "/rlxvk"); /* the build that checks for leaks at its end */
    return access(program, X_OK);
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_output_fails_every_command),
        cmocka_unit_test(info_without_a_device_fails_and_says_what_to_install),
        cmocka_unit_test(interrupted_commands_report),
        cmocka_unit_test(unknown_switches_are_warned_of_once),
        cmocka_unit_test(a_smaller_device_gives_the_same_text),
        cmocka_unit_test(a_bad_path_fails_before_any_work),
        cmocka_unit_test(a_page_replaces_the_old_one_when_it_is_complete),
        cmocka_unit_test(a_failed_case_has_a_picture),
        cmocka_unit_test(numbers_are_decimal_and_within_limits),
        cmocka_unit_test(pipelines_are_surveyed),
        cmocka_unit_test(shapes_are_surveyed),
        cmocka_unit_test(modules_are_written),
        cmocka_unit_test(info_tells_whether_a_device_executes),
        cmocka_unit_test(errors_begin_with_the_program_and_the_command),
        cmocka_unit_test(a_model_runs_and_compares),
        cmocka_unit_test(a_model_is_profiled_and_checked),
        cmocka_unit_test(a_model_is_shown_and_drawn),
        cmocka_unit_test(what_is_not_supported_is_shown),
        cmocka_unit_test(several_ops_can_be_named),
        cmocka_unit_test(cases_are_left_out_by_their_pipelines),
        cmocka_unit_test(variants_end_in_several_processes),
        cmocka_unit_test(training_is_timed_in_json),
        cmocka_unit_test(inference_is_timed_in_json),
        cmocka_unit_test(info_tells_of_limits),
        cmocka_unit_test(conform_runs_under_limits),
        cmocka_unit_test(the_version_is_the_library_s),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
