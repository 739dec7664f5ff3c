/*
 * The library must read and write the same text in any locale of the host program. The test makes
 * its locales with localedef. If that is not possible, its tests are reported as skipped.
 */
#include "base/log.h"
#include "base/switches.h"
#include "program/trace.h"
#include "op/packed/quant_format.h"
#include "op/choice/tuning.h"
#include "cli/output.h"
#include "support/harness.h"

#include <rlxvk_inspect.h>
#include <rlxvk_ops.h>

#include <ctype.h>
#include <locale.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static char folder[] = "/tmp/rlxvk-locale-XXXXXX";

/* Makes and sets the locale `name` from the system's sources. If that fails, skips the test. */
static void set_locale_or_skip(const char *name, const char *charset)
{
    char line[256], full[64];
    snprintf(full, sizeof full, "%s.%s", name, charset);
    snprintf(line, sizeof line, "localedef -c -i %s -f %s %s/%s >/dev/null 2>&1", name, charset,
             folder, full);
    int result = system(line);
    setenv("LOCPATH", folder, 1);
    if (setlocale(LC_ALL, full))
        return;
    print_message("skipped: localedef cannot make %s here (%d); install the package locales\n",
                  full, result);
    skip();
}

static void keep_line(void *user, rlxvk_log_level level, const char *line)
{
    (void)level;
    snprintf(user, 64, "%s", line);
}

static void numbers_keep_their_point(void **state)
{
    char buffer[64], *end;
    text t = {buffer, sizeof buffer, 0};
    (void)state;
    set_locale_or_skip("de_DE", "UTF-8");
    snprintf(buffer, sizeof buffer, "%.1f", 1.5);
    assert_string_equal(buffer, "1,5"); /* the test needs this locale */
    text_append(&t, "%g", 0.25);
    assert_string_equal(buffer, "0.25");
    assert_int_equal((status_fail)(RLXVK_E_ATTR, "eps %g", 1.5), RLXVK_E_ATTR);
    assert_string_equal(rlxvk_last_error(), "eps 1.5");
    assert_int_equal(status_fail_within(RLXVK_E_ATTR, "%.2f", 0.5), RLXVK_E_ATTR);
    assert_string_equal(rlxvk_last_error(), "0.50: eps 1.5");
    log_line(&(log_sink){keep_line, buffer}, RLXVK_LOG_INFO, "%.1f MiB", 2.5);
    assert_string_equal(buffer, "2.5 MiB");
    assert_true(text_to_real("1.5e1x", &end) == 15 && *end == 'x');
    snprintf(buffer, sizeof buffer, "%.1f", 1.5);
    assert_string_equal(buffer, "1,5"); /* the host program's locale is back */
}

static void json_keeps_its_point(void **state)
{
    char content[64] = "";
    float value;
    FILE *file = tmpfile();
    (void)state;
    set_locale_or_skip("de_DE", "UTF-8");
    assert_non_null(file);
    print_json_number(file, 0.125);
    rewind(file);
    assert_non_null(fgets(content, sizeof content, file));
    fclose(file);
    assert_string_equal(content, "0.125");
    assert_true(parse_real("top-p", "0.5", 0, 1, &value) && value == 0.5f);
}

static void a_trace_keeps_its_point(void **state)
{
    char path[128], content[4096] = "";
    trace *t = NULL;
    (void)state;
    set_locale_or_skip("de_DE", "UTF-8");
    snprintf(path, sizeof path, "%s/trace", folder);
    assert_int_equal(trace_open(path, &t), RLXVK_OK);
    trace_span(t, "wait", TRACE_HOST, trace_now(), 12.5, NULL);
    trace_close(t, NULL);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(content, "\"dur\":12.500,"));
}

static void values_keep_their_point(void **state)
{
    const double values[3] = {0.1, 1 / 3.0, -2.5}, far[2] = {1e-9, 2.5e10};
    char out[64];
    size_t length;
    (void)state;
    set_locale_or_skip("de_DE", "UTF-8");
    expect_ok(rlxvk_values_text(values, RLXVK_F64, RLXVK_SHAPE(3), NULL, out, sizeof out, &length));
    assert_string_equal(out, "[ 0.1         0.33333333 -2.5       ]");
    expect_ok(rlxvk_values_text(far, RLXVK_F64, RLXVK_SHAPE(2), NULL, out, sizeof out, &length));
    assert_string_equal(out, "[1.0e-09 2.5e+10]");
}

static void a_profile_can_be_read_again(void **state)
{
    char buffer[512] = "";
    text t = {buffer, sizeof buffer, 0};
    const kernel_kind *kind = &choice_kinds[0];
    variant_query query = {.kind = kind, .tag = "nt", .dims = {64, 64, 64, 1}};
    tuning read;
    (void)state;
    set_locale_or_skip("de_DE", "UTF-8");
    text_append(&t, "%s", TUNING_HEADER);
    tuning_write(&query, choice_row_name(kind, 0), 12.345, &t);
    assert_non_null(strstr(buffer, " 12.345\n"));
    assert_int_equal(tuning_create(buffer, "", &read), RLXVK_OK);
    assert_int_equal(read.from_file, 1);
    tuning_destroy(&read);
}

/* In Turkish, the small letter of I is not i. */
static void letters_are_ascii(void **state)
{
    rlxvk_quant_traits traits;
    switches read;
    (void)state;
    set_locale_or_skip("tr_TR", "ISO-8859-9");
    assert_int_not_equal(tolower('I'), 'i'); /* the test needs this locale */
    assert_int_equal(rlxvk_quant_query(256 + RLXVK_IQ4_NL, &traits), RLXVK_OK);
    assert_string_equal(traits.name, "gguf_iq4_nl");
    assert_non_null(quant_format_find_name("iq4_nl"));
    assert_non_null(quant_format_find_name("IQ4_NL"));
    setenv("RLXVK_DUMP", "REWRITE,BARRIERS", 1);
    assert_int_equal(switches_read(&read), RLXVK_OK);
    unsetenv("RLXVK_DUMP");
    assert_int_equal(read.dump, RLXVK_DUMP_REWRITE | RLXVK_DUMP_BARRIERS);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int to_c(void **state)
{
    (void)state;
    return setlocale(LC_ALL, "C") ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(numbers_keep_their_point, to_c),
        cmocka_unit_test_teardown(json_keeps_its_point, to_c),
        cmocka_unit_test_teardown(a_trace_keeps_its_point, to_c),
        cmocka_unit_test_teardown(values_keep_their_point, to_c),
        cmocka_unit_test_teardown(a_profile_can_be_read_again, to_c),
        cmocka_unit_test_teardown(letters_are_ascii, to_c),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
