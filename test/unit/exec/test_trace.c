/* The trace file: its rows have names, and it can be loaded however the process ended. */
#include "exec/trace.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static char path[] = "/tmp/rlxvk-trace-XXXXXX", content[1 << 16];

static void read_content(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = 0;
    fclose(file);
}

static trace *opened(const char *name)
{
    trace *t = NULL;
    assert_int_equal(trace_open(name, &t), RLXVK_OK);
    return t;
}

static void rows_are_named(void **state)
{
    trace *t = opened(path);
    (void)state;
    trace_close(t, NULL);
    read_content();
    assert_string_equal(content, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,"
                                 "\"args\":{\"name\":\"rlxvk\"}},"
                                 "\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,"
                                 "\"args\":{\"name\":\"host\"}},"
                                 "\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,"
                                 "\"args\":{\"name\":\"GPU\"}}\n]\n");
}

/* Every line behind the bracket is one whole event, and only the last has no comma. */
static void a_killed_process_leaves_whole_events(void **state)
{
    enum { EVENTS = 50 };
    pid_t child = fork();
    int result, lines = 0;
    (void)state;
    if (child == 0) {
        trace *t = opened(path);
        for (int i = 0; i < EVENTS; i++)
            trace_span(t, "softmax \"x\"\n", TRACE_GPU, trace_now(), i, "\"node\":3");
        raise(SIGKILL);
    }
    assert_true(child > 0 && waitpid(child, &result, 0) == child);
    assert_true(WIFSIGNALED(result));
    read_content();
    for (char *line = strtok(content, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        size_t length = strlen(line);
        bool last = lines == 3 + EVENTS;
        if (lines == 0)
            assert_string_equal(line, "[");
        else
            assert_true(line[0] == '{' && strcmp(line + length - 2, last ? "}}" : "},") == 0);
        if (lines > 3)
            assert_non_null(strstr(line, "{\"name\":\"softmax \\\"x\\\"\\u000a\",\"cat\""));
    }
    assert_int_equal(lines, 4 + EVENTS);
}

static void keep_line(void *user, rlxvk_log_level level, const char *line)
{
    assert_int_equal(level, RLXVK_LOG_ERROR);
    snprintf(user, 128, "%s", line);
}

static void lost_events_are_told(void **state)
{
    char line[128] = "";
    (void)state;
    trace_close(opened("/dev/full"), &(log_sink){keep_line, line});
    assert_string_equal(line, "rlxvk: RLXVK_TRACE: the trace is cut off: No space left on device");
}

static int set_up(void **state)
{
    (void)state;
    return close(mkstemp(path));
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_named),
        cmocka_unit_test(a_killed_process_leaves_whole_events),
        cmocka_unit_test(lost_events_are_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
