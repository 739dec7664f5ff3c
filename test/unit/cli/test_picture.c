/* Pictures of graphs: what the program dot is given, and what is said if it is missing or fails. A
 * script of the test stands in for dot, because Graphviz may not be here. */
#include "cli/commands.h"
#include "cli/picture.h"
#include "support/command.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#define MODEL "test/fuzz/seeds/onnx/00"

static char folder[] = "/tmp/rlxvk-picture-XXXXXX", before[8192];

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Reads a file of the folder; "" if there is none. */
static const char *content_of(const char *name)
{
    static char content[16384];
    FILE *file = fopen(in_folder(name), "r");
    content[file ? fread(content, 1, sizeof content - 1, file) : 0] = 0;
    if (file)
        fclose(file);
    return content;
}

/* Makes the lines the program dot, the only one that is found on PATH. */
static void put_dot(const char *lines)
{
    FILE *file = fopen(in_folder("dot"), "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", lines);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(in_folder("dot"), 0700), 0);
}

static int set_up(void **state)
{
    const char *path = getenv("PATH");
    (void)state;
    snprintf(before, sizeof before, "%s", path ? path : "");
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    return mkdtemp(folder) && setenv("PATH", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    setenv("PATH", before, 1);
    return remove_folder(folder);
}

/* dot gets no more than its options, the path, and the text as its input. No shell sees the path.
 */
static void dot_gets_the_text(void **state)
{
    static const char text[] = "digraph { a -> b }\nnot more";
    char path[160];
    (void)state;
    put_dot("cd \"${0%/*}\"\nprintf '<%s>' \"$@\" >arguments\nread line && echo \"$line\" >input\n"
            "read line || echo \"then $line\" >>input");
    snprintf(path, sizeof path, "%s/a $(b).svg", folder);
    expect_ok(picture_write(path, "-compiled", text, strlen(text)));
    snprintf(path, sizeof path, "<-Tsvg><-o><%s/a $(b)-compiled.svg>", folder);
    assert_string_equal(content_of("arguments"), path);
    assert_string_equal(content_of("input"), "digraph { a -> b }\nthen not more\n");
}

static void a_missing_dot_is_told(void **state)
{
    (void)state;
    expect_error(picture_write(in_folder("a.svg"), "", "digraph {}", 10), RLXVK_E_UNSUPPORTED,
                 "the program dot of Graphviz is not here; name a file that ends in .dot to get "
                 "its input");
    put_dot("exit 1");
    expect_error(picture_write(in_folder("a.svg"), "", "digraph {}", 10), RLXVK_E_UNSUPPORTED,
                 "the program dot of Graphviz failed; name a file");
    expect_ok(picture_write(in_folder("a.dot"), "", "digraph {}", 10));
    assert_string_equal(content_of("a.dot"), "digraph {}");
}

/* rlxvk show hands over the graph as built and as compiled. */
static void show_draws_two_graphs(void **state)
{
    char text[8192], path[160];
    const char *const words[] = {MODEL, "--bind", "N=2", "--svg", path, NULL};
    (void)state;
    snprintf(path, sizeof path, "%s", in_folder("a.svg"));
    assert_int_equal(run_command(command_show, words, text, sizeof text), 1); /* there is no dot */
    put_dot("read line\necho \"$line\" >\"$3\"");
    assert_int_equal(run_command(command_show, words, text, sizeof text), 0);
    assert_ptr_equal(strstr(content_of("a.svg"), "digraph "), content_of("a.svg"));
    assert_ptr_equal(strstr(content_of("a-compiled.svg"), "digraph "),
                     content_of("a-compiled.svg"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dot_gets_the_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_dot_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(show_draws_two_graphs, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
