/* The trace file: rows have names, it is JSON, and it can be loaded even if the process was killed.
 * It has the host work of a program, with a row for each thread. */
#include "program/trace.h"
#include "support/harness.h"

#include <pthread.h>
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

/* Every line after the bracket is one whole event. Only the last line has no comma. */
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

/* ---- Traces read back ---- */

enum { MOST_EVENTS = 256 };

typedef struct event {
    char name[64], phase, named[64]; /* named: args.name */
    double begin, duration, number;  /* the first number in args */
    int thread;
} event;

static event events[MOST_EVENTS];
static size_t event_count;

/* The position of the parser. It rejects invalid JSON and removes escapes from strings. */
static const char *at;

static void pass(char c)
{
    while (*at == ' ' || *at == '\n')
        at++;
    if (*at != c)
        fail_msg("wanted %c before: %.60s", c, at);
    at++;
}

static bool comes(char c)
{
    while (*at == ' ' || *at == '\n')
        at++;
    return *at == c;
}

static void take_string(char *out, size_t size)
{
    size_t length = 0;
    pass('"');
    for (; *at != '"'; at++) {
        assert_true((unsigned char)*at >= 0x20);
        if (*at == '\\')
            at += at[1] == 'u' ? 5 : 1;
        if (length + 1 < size)
            out[length++] = *at;
    }
    out[length] = 0;
    at++;
}

static double take_number(void)
{
    char *end;
    double value = strtod(at, &end);
    assert_true(end != at);
    at = end;
    return value;
}

static void take_arguments(event *e)
{
    char key[32];
    pass('{');
    while (!comes('}')) {
        take_string(key, sizeof key);
        pass(':');
        if (comes('"')) {
            assert_string_equal(key, "name");
            take_string(e->named, sizeof e->named);
        } else {
            e->number = take_number();
        }
        if (!comes('}'))
            pass(',');
    }
    pass('}');
}

static void take_member(event *e)
{
    char key[32], word[32];
    take_string(key, sizeof key);
    pass(':');
    if (strcmp(key, "name") == 0) {
        take_string(e->name, sizeof e->name);
    } else if (strcmp(key, "args") == 0) {
        take_arguments(e);
    } else if (comes('"')) {
        take_string(word, sizeof word);
        e->phase = strcmp(key, "ph") == 0 ? word[0] : e->phase;
    } else {
        double value = take_number();
        if (strcmp(key, "tid") == 0)
            e->thread = (int)value;
        if (strcmp(key, "ts") == 0)
            e->begin = value;
        if (strcmp(key, "dur") == 0)
            e->duration = value;
    }
}

static void read_events(void)
{
    read_content();
    event_count = 0;
    at = content;
    pass('[');
    while (!comes(']')) {
        assert_true(event_count < MOST_EVENTS);
        event *e = &events[event_count++];
        *e = (event){.thread = -1};
        pass('{');
        do {
            take_member(e);
            if (!comes('}'))
                pass(',');
        } while (!comes('}'));
        pass('}');
        assert_true(e->phase == 'M' || (e->phase == 'X' && e->begin >= 0 && e->duration >= 0));
        if (!comes(']'))
            pass(',');
    }
    pass(']');
    assert_string_equal(at, "\n");
}

static const char *row_name(int thread)
{
    for (size_t i = 0; i < event_count; i++)
        if (events[i].thread == thread && strcmp(events[i].name, "thread_name") == 0)
            return events[i].named;
    return "";
}

static size_t count_of(const char *name, const char *row)
{
    size_t count = 0;
    for (size_t i = 0; i < event_count; i++)
        count += events[i].phase == 'X' && strcmp(events[i].name, name) == 0 &&
                 strcmp(row_name(events[i].thread), row) == 0;
    return count;
}

static const event *find_event(const char *name)
{
    for (size_t i = 0; i < event_count; i++)
        if (events[i].phase == 'X' && strcmp(events[i].name, name) == 0)
            return &events[i];
    fail_msg("no span '%s'", name);
    return NULL;
}

/* Spans of a thread nest: a span ends before or together with the span that contains it. */
static void expect_nested(void)
{
    const double rounding = 0.002;
    for (size_t i = 0; i < event_count; i++)
        for (size_t k = 0; k < event_count; k++) {
            const event *a = &events[i], *b = &events[k];
            if (a->phase != 'X' || b->phase != 'X' || a->thread != b->thread ||
                a->thread == TRACE_GPU || b->begin < a->begin + rounding ||
                b->begin > a->begin + a->duration - rounding)
                continue;
            if (b->begin + b->duration > a->begin + a->duration + rounding)
                fail_msg("%s of %s does not nest in %s", b->name, row_name(b->thread), a->name);
        }
}

static void run_in(rlxvk_context *c)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float x[4] = {1, 2, 3, 4}, w[4] = {0, 1, 2, 3}, y[4];
    const rlxvk_compile_options options = {.host_ops = (const char *[]){"cumsum"},
                                           .host_op_count = 1};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_add(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4)),
                               rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4)));
    rlxvk_graph_output(g, rlxvk_cumsum(g, rlxvk_softmax(g, t, 0), 0, false));
    expect_ok(rlxvk_compile(c, g, &options, &e));
    expect_ok(rlxvk_set_param(e, "w", w, 4));
    const rlxvk_run_input in = {.name = "x", .data = x, .length = 4};
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = 4};
    for (int turn = 0; turn < 2; turn++)
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    expect_ok(rlxvk_read_param(e, "w", w, 4));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void *run_elsewhere(void *context)
{
    run_in(context);
    return NULL;
}

static rlxvk_context *traced_context(void)
{
    setenv("RLXVK_TRACE", path, 1);
    rlxvk_context *c = open_context(NULL);
    unsetenv("RLXVK_TRACE");
    return c;
}

static void what_a_program_does_has_spans(void **state)
{
    static const char *const phases[] = {"rewrite",   "lower",    "extent", "plan",
                                         "pipelines", "allocate", "record"};
    rlxvk_context *c = traced_context();
    (void)state;
    run_in(c);
    close_context(c);
    read_events();
    expect_nested();
    const event *whole = find_event("compile");
    double last = whole->begin;
    for (size_t i = 0; i < ARRAY_COUNT(phases); i++) {
        const event *phase = find_event(phases[i]);
        assert_int_equal(count_of(phases[i], "host"), 1);
        assert_true(phase->begin >= last - 0.002); /* in order and within the whole */
        last = phase->begin + phase->duration;
    }
    assert_true(last <= whole->begin + whole->duration + 0.002);
    static const char *const twice[] = {"upload", "submit", "wait", "readback", "cumsum"};
    for (size_t i = 0; i < ARRAY_COUNT(twice); i++)
        assert_int_equal(count_of(twice[i], "host"), 2);
    assert_string_equal(find_event("upload")->named, "x");
    assert_true(find_event("upload")->number == 4);
    assert_string_equal(find_event("set_param")->named, "w");
    assert_true(find_event("set_param")->number == 16);
    assert_string_equal(find_event("read_param")->named, "w");
    assert_int_equal(count_of("softmax", "host"), 0);
}

/* If a compile fails, the trace still shows how long each stage took. */
static void failed_compiles_have_spans(void **state)
{
    const rlxvk_compile_options options = {.force_host = RLXVK_ON, .forbid_host = RLXVK_ON};
    rlxvk_context *c = traced_context();
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4))));
    expect_error(rlxvk_compile(c, g, &options, &e), RLXVK_E_UNSUPPORTED, "neg (node 1)");
    rlxvk_graph_destroy(g);
    close_context(c);
    read_events();
    expect_nested();
    assert_int_equal(count_of("lower", "host"), 1);
    assert_int_equal(count_of("compile", "host"), 1);
    assert_int_equal(count_of("plan", "host"), 0);
}

static void every_thread_has_its_row(void **state)
{
    rlxvk_context *c = traced_context();
    pthread_t threads[2];
    (void)state;
    run_in(c);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_elsewhere, c), 0);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    close_context(c);
    read_events();
    expect_nested();
    assert_int_equal(count_of("compile", "host"), 1);
    size_t others = count_of("compile", "host 2") + count_of("compile", "host 3");
    assert_int_equal(others, 2); /* they share a row if the second began after the first was done */
    for (size_t i = 0; i < event_count; i++)
        assert_true(events[i].thread == 0 || row_name(events[i].thread)[0]);
}

/* If there are more threads than rows, the rest share the last row. */
static trace *crowded;
static pthread_barrier_t all_there;

static void *one_span(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_there); /* all spans overlap, so no two threads can share a row */
    trace_end(crowded, "work", trace_begin(crowded), NULL);
    pthread_barrier_wait(&all_there);
    return NULL;
}

static void crowds_share_a_row(void **state)
{
    enum { CROWD = 70 };
    pthread_t threads[CROWD];
    (void)state;
    crowded = opened(path);
    pthread_barrier_init(&all_there, NULL, CROWD);
    for (size_t i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, one_span, NULL), 0);
    for (size_t i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all_there);
    trace_close(crowded, NULL);
    read_events();
    assert_int_equal(count_of("work", "host 64"), CROWD - 62);
    assert_int_equal(count_of("work", "host 2"), 1);
    trace_end(NULL, "nothing", trace_begin(NULL), NULL);
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
        cmocka_unit_test(what_a_program_does_has_spans),
        cmocka_unit_test(failed_compiles_have_spans),
        cmocka_unit_test(every_thread_has_its_row),
        cmocka_unit_test(crowds_share_a_row),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
