/* The HTML page of a conformance run, and how files are replaced. */
#include "cli/commands.h"
#include "conform/conform.h"
#include "base/new_file.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static char folder[] = "/tmp/rlxvk-report-XXXXXX", path[64], page[1 << 17];

static void read_page(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
}

static size_t count(const char *wanted)
{
    size_t found = 0;
    for (const char *at = page; (at = strstr(at, wanted)); at++)
        found++;
    return found;
}

static void assert_page_says(const char *wanted)
{
    if (!count(wanted))
        fail_msg("'%s' is missing in the page", wanted);
}

static conform_row rows[] = {
    {"relu", 12, {12}, 0},
    {"mul", 38, {38}, 1},
    {"sqrt", 20, {20}, 0.263},
    {"fused_residual_rms_norm", 78, {70, 8}, 31.5},
    {"softmax", 75, {70, 5}, 3.25},
    {"cast", 486, {480, 6}, INFINITY},
    {"attention", 371, {360, 0, 11}, 0.00664},
    {"dequant_grouped_matmul", 256, {200, 0, 0, 56}, 0.0537},
    {"topk", 3, {0, 0, 3}, 0},
};
static conform_failure failures[] = {
    {"softmax", "softmax axis=-1 in=x:f32:3x5x7", "E_DEVICE_LOST: vkQueueSubmit <lost>",
     "rlxvk conform --seed 1 --op softmax --case 3", 3},
    {"softmax", "softmax axis=0 in=x:f32:3x5x7", "E_DEVICE_LOST: vkQueueSubmit <lost>",
     "rlxvk conform --seed 1 --op softmax --case 4", 4},
    {"softmax", "softmax axis=1 in=x:f32:3x5x7", "E_DEVICE_LOST: vkQueueSubmit <lost>",
     "rlxvk conform --seed 1 --op softmax --case 5", 5},
    {"softmax", "softmax axis=1 in=x:f32:1x1024:special",
     "worst element [2, 0, 5] (flat 35): got 0.25, expected 0.5, error 3.25 of the bound 1e-6; 12 "
     "of 105 elements wrong",
     "rlxvk conform --seed 1 --op softmax --case 9", 9},
    {"cast", "cast in=x:i32:1000:special to=f32",
     "worst element [2, 0, 5] (flat 35): got nan, expected 0.5, bound 0; 12 of 105 elements wrong",
     "rlxvk conform --seed 1 --op cast --case 17", 17},
};

static conform_report some_report(bool failed)
{
    conform_report r = {.device = {.name = "NVIDIA <Test> & Co",
                                   .driver = "NVIDIA 580.159.04",
                                   .api_version = 1u << 22 | 3u << 12 | 277},
                        .command = "rlxvk conform --seed 7",
                        .started = 1780000000,
                        .seed = 7,
                        .seconds = 12.5};
    r.rows.items = rows;
    r.rows.count = failed ? ARRAY_COUNT(rows) : 3;
    r.failures.items = failures;
    r.failures.count = failed ? ARRAY_COUNT(failures) : 0;
    return r;
}

static void write_page(bool failed)
{
    conform_report report = some_report(failed);
    assert_int_equal(conform_write_html(&report, path), RLXVK_OK);
    read_page();
}

static void the_page_says_what_ran_where_and_when(void **state)
{
    char version[64];
    (void)state;
    write_page(true);
    assert_page_says("NVIDIA &lt;Test&gt; &amp; Co");
    assert_page_says("NVIDIA 580.159.04");
    assert_page_says("1.3.277");
    snprintf(version, sizeof version, "<dt>rlxvk<dd>%s\n", rlxvk_version());
    assert_page_says(version);
    assert_page_says("2026-05-28 20:26 UTC");
    assert_page_says("rlxvk conform --seed 7");
    assert_page_says("class=legend");
    assert_int_equal(count("http"), 0); /* the page loads nothing */
    assert_int_equal(count("src="), 0);
}

static void the_page_is_for_every_reader(void **state)
{
    (void)state;
    write_page(true);
    assert_page_says("<!doctype html><html lang=en>");
    assert_page_says("name=viewport");
    assert_page_says("prefers-color-scheme:dark");
    assert_page_says("max-width:640px");
    assert_int_equal(count("<th"), 7 + 1); /* thead matches, too */
    assert_int_equal(count("<button>"), 7);
}

static void exact_ops_have_no_bar_and_failed_ones_a_red_one(void **state)
{
    (void)state;
    write_page(false);
    assert_page_says("<tr><td data-sort=relu>relu");
    assert_page_says("<span class=exact>exact</span></tr>");
    assert_int_equal(count("<tr class=failed>"), 0);
    assert_page_says("<td data-sort=1>1<span class=bar><i style='width:100.0%'>");
    assert_int_equal(count("class='verdict bad'"), 0);
    assert_int_equal(count("id=failures"), 0);
    assert_page_says("<th class=none><button>On the host");
    write_page(true);
    assert_int_equal(count("<tr class=failed>"), 3);
    assert_page_says("<td data-sort=1e999>beyond");
    assert_page_says("<th><button>On the host");
    assert_page_says("<span class=exact>&ndash;</span>"); /* nothing was compared */
}

static void a_reason_stands_once(void **state)
{
    (void)state;
    write_page(true);
    assert_int_equal(count("E_DEVICE_LOST: vkQueueSubmit &lt;lost&gt;"), 1);
    assert_int_equal(count("<li>case "), ARRAY_COUNT(failures));
    assert_int_equal(count("--op softmax --case"), 1);
    assert_page_says("<h3 id='softmax'>softmax: <b>5 of 75 failed</b>");
}

/* ---- Files ---- */

static void write_text(const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Fails if the folder has other files than the test made. */
static void assert_folder_holds(const char *name)
{
    char line[160];
    snprintf(line, sizeof line, "test \"$(ls %s)\" = '%s'", folder, name);
    assert_int_equal(system(line), 0);
}

static void an_old_file_stays_until_the_new_one_is_complete(void **state)
{
    new_file f;
    struct stat info;
    (void)state;
    write_text("old");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(new_file_check(path), RLXVK_OK);
    assert_int_equal(new_file_open(path, &f), RLXVK_OK);
    fputs("new", f.stream);
    read_page();
    assert_string_equal(page, "old");
    new_file_discard(&f);
    read_page();
    assert_string_equal(page, "old");
    assert_int_equal(new_file_open(path, &f), RLXVK_OK);
    fputs("new", f.stream);
    assert_int_equal(new_file_close(&f), RLXVK_OK);
    read_page();
    assert_string_equal(page, "new");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_folder_holds("page");
}

static void links_are_followed(void **state)
{
    char link[80];
    struct stat info;
    new_file f;
    (void)state;
    snprintf(link, sizeof link, "%s.link", path);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(new_file_open(link, &f), RLXVK_OK);
    fputs("through", f.stream);
    assert_int_equal(new_file_close(&f), RLXVK_OK);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    read_page();
    assert_string_equal(page, "through");
    assert_int_equal(unlink(link), 0);
}

static void bad_places_are_refused(void **state)
{
    new_file f;
    (void)state;
    assert_int_equal(new_file_check(folder), RLXVK_E_FILE);
    assert_int_equal(new_file_check("/nosuch/page.html"), RLXVK_E_FILE);
    assert_non_null(strstr(rlxvk_last_error(), "/nosuch/page.html"));
    assert_int_equal(new_file_check(""), RLXVK_E_FILE);
    assert_int_equal(new_file_check("/dev/full"), RLXVK_OK);
    assert_int_equal(new_file_open("/dev/full", &f), RLXVK_OK);
    fputs("x", f.stream);
    assert_int_equal(new_file_close(&f), RLXVK_E_FILE);
    assert_non_null(strstr(rlxvk_last_error(), "'/dev/full': cannot be written: No space left"));
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/page", folder);
    return 0;
}

static int tear_down(void **state)
{
    const char *keep = getenv("RLXVK_TEST_KEEP_PAGE"); /* to look at the page */
    char line[4096];
    (void)state;
    write_page(true);
    if (keep) {
        snprintf(line, sizeof line, "mv %s/page '%s'", folder, keep);
        if (system(line))
            return -1;
    }
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_says_what_ran_where_and_when),
        cmocka_unit_test(the_page_is_for_every_reader),
        cmocka_unit_test(exact_ops_have_no_bar_and_failed_ones_a_red_one),
        cmocka_unit_test(a_reason_stands_once),
        cmocka_unit_test(an_old_file_stays_until_the_new_one_is_complete),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(bad_places_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
