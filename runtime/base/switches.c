/*
 * The table of environment switches. A row has a name, its effect (rlxvk info prints it), and a
 * function that reads the value into a member.
 *
 * A truth value is off if it is unset, "", 0, false, off or no, in any case; anything else is on. A
 * switch with a fixed set of words takes those words, or a word for off. Every other value is
 * E_ATTR, which names the variable. If reading fails, *out stays as it was.
 */
#include "base/switches.h"
#include "base/nearest.h"
#include "base/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX      "RLXVK_"
#define TEST_PREFIX "RLXVK_TEST_"
/* The Python package reads it before it loads the library. */
#define PATH_OF_LIBRARY "RLXVK_LIBRARY"

typedef struct word {
    const char *name;
    unsigned value;
} word;

static const word dump_words[] = {
    {"graph", RLXVK_DUMP_GRAPH},
    {"rewrite", RLXVK_DUMP_REWRITE},
    {"plan", RLXVK_DUMP_PLAN},
    {"barriers", RLXVK_DUMP_BARRIERS},
};
static const word check_words[] = {{"plan", CHECK_PLAN},       {"index", CHECK_INDEX},
                                   {"packed", CHECK_PACKED},   {"canary", CHECK_CANARY},
                                   {"results", CHECK_RESULTS}, {"loss", CHECK_LOSS}};
static const word plan_words[] = {{"bump", 1}};
static const word order_words[] = {{"reversed", INVOCATIONS_REVERSED},
                                   {"permuted", INVOCATIONS_PERMUTED}};

static bool is_off(const char *value)
{
    static const char *const words[] = {"", "0", "false", "off", "no"};
    if (!value)
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (text_ascii_equal(value, words[i], SIZE_MAX))
            return true;
    return false;
}

static const word *word_find(const word *words, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i].name) == length && text_ascii_equal(words[i].name, name, length))
            return &words[i];
    return NULL;
}

static rlxvk_status fail_word(const char *what, const char *value, size_t length, const word *words,
                              size_t count)
{
    char allowed[128] = "";
    text t = {.buffer = allowed, .size = sizeof(allowed)};
    for (size_t i = 0; i < count; i++)
        text_append(&t, "%s%s", i ? ", " : "", words[i].name);
    return status_fail(RLXVK_E_ATTR, "%s: unknown value '%.*s'; it takes %s", what,
                       (int)MIN(length, 200), value, allowed);
}

/* Parses a comma-separated list of words into the union of their bits. Empty items are skipped. */
static rlxvk_status parse_set(const char *value, const char *what, const word *words, size_t count,
                              unsigned *out)
{
    unsigned bits = 0;
    if (!is_off(value))
        for (const char *item = value, *end; *item; item = *end ? end + 1 : end) {
            end = item + strcspn(item, ",");
            const word *found = word_find(words, count, item, (size_t)(end - item));
            if (!found && end != item)
                return fail_word(what, item, (size_t)(end - item), words, count);
            bits |= found ? found->value : 0;
        }
    *out = bits;
    return RLXVK_OK;
}

static rlxvk_status parse_word(const char *value, const char *what, const word *words, size_t count,
                               unsigned *out)
{
    const word *found = is_off(value) ? NULL : word_find(words, count, value, strlen(value));
    if (!found && !is_off(value))
        return fail_word(what, value, strlen(value), words, count);
    *out = found ? found->value : 0;
    return RLXVK_OK;
}

/* ---- Functions that read one value, which may be NULL, into a member of `size` bytes ---- */

static rlxvk_status read_truth(const char *value, const char *name, void *out, size_t size)
{
    (void)name, (void)size;
    *(bool *)out = !is_off(value);
    return RLXVK_OK;
}

static rlxvk_status read_dump(const char *value, const char *name, void *out, size_t size)
{
    (void)size;
    return parse_set(value, name, dump_words, ARRAY_COUNT(dump_words), out);
}

static rlxvk_status read_check(const char *value, const char *name, void *out, size_t size)
{
    (void)size;
    return parse_set(value, name, check_words, ARRAY_COUNT(check_words), out);
}

static rlxvk_status read_precision(const char *value, const char *name, void *out, size_t size)
{
    word words[RLXVK_PRECISION_SPLIT + 1];
    unsigned precision;
    (void)size;
    for (unsigned i = 0; i < ARRAY_COUNT(words); i++)
        words[i] = (word){rlxvk_precision_name((rlxvk_precision)i), i};
    rlxvk_status status = parse_word(value, name, words, ARRAY_COUNT(words), &precision);
    if (status == RLXVK_OK)
        *(rlxvk_precision *)out = (rlxvk_precision)precision;
    return status;
}

static rlxvk_status read_plan(const char *value, const char *name, void *out, size_t size)
{
    unsigned bump;
    (void)size;
    rlxvk_status status = parse_word(value, name, plan_words, ARRAY_COUNT(plan_words), &bump);
    if (status == RLXVK_OK)
        *(bool *)out = bump;
    return status;
}

/* Reads a whole decimal number of 0 or more. If the variable is unset or empty, *out keeps its
 * default. */
static rlxvk_status read_number(const char *value, const char *name, void *out, size_t size)
{
    (void)size;
    if (!value || !*value)
        return RLXVK_OK;
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || *end || end == value || number < 0)
        return status_fail(RLXVK_E_ATTR, "%s: '%.200s' is no whole number of 0 or more", name,
                           value);
    *(int64_t *)out = number;
    return RLXVK_OK;
}

/* The value is a word, or "permuted:" and a seed. */
rlxvk_status switches_parse_invocations(const char *value, const char *what, invocation_choice *out)
{
    static const char with_seed[] = "permuted:";
    invocation_choice choice = {.seed = 1};
    size_t length = sizeof with_seed - 1;
    int64_t seed = 0;
    rlxvk_status status;
    if (!value || !text_ascii_equal(value, with_seed, length)) {
        TRY(parse_word(value, what, order_words, ARRAY_COUNT(order_words), &choice.order));
    } else {
        TRY(value[length] ? read_number(value + length, what, &seed, sizeof seed)
                          : status_fail(RLXVK_E_ATTR, "%s: no seed behind '%s'", what, value));
        choice = (invocation_choice){INVOCATIONS_PERMUTED, (uint32_t)seed};
    }
    *out = choice;
error:
    return status;
}

static rlxvk_status read_invocations(const char *value, const char *name, void *out, size_t size)
{
    (void)size;
    return switches_parse_invocations(value, name, out);
}

static rlxvk_status read_string(const char *value, const char *name, void *out, size_t size)
{
    if (!value)
        return RLXVK_OK;
    if (strlen(value) >= size)
        return status_fail(RLXVK_E_ATTR, "%s: '%.100s...' is longer than %zu bytes", name, value,
                           size - 1);
    strcpy(out, value);
    return RLXVK_OK;
}

static rlxvk_status read_limits(const char *value, const char *name, void *out, size_t size)
{
    return read_string(is_off(value) ? NULL : value, name, out, size);
}

/* ---- The table ---- */

#define MEMBER(member) offsetof(switches, member), sizeof(((switches *)0)->member)

static const struct switch_row {
    const char *name, *effect;
    rlxvk_status (*read)(const char *value, const char *name, void *out, size_t size);
    size_t offset, size;
} rows[] = {
    {"RLXVK_DEVICE", "choose the device: index, name or part of it, UUID, or PCI address",
     read_string, MEMBER(device)},
    {"RLXVK_LIMITS", "see every device through a smaller one, such as v3d; a wrong name lists all",
     read_limits, MEMBER(limits)},
    {"RLXVK_VALIDATION", "the Khronos validation layer with synchronization validation", read_truth,
     MEMBER(validation)},
    {"RLXVK_DEBUG", "print what a compile made: dispatches, host steps, kernels", read_truth,
     MEMBER(debug)},
    {"RLXVK_DUMP", "print stages of a compile: graph, rewrite, plan, barriers", read_dump,
     MEMBER(dump)},
    {"RLXVK_CHECK",
     "plan: prove every plan sound; index: out-of-range indices fail the run; packed: refuse "
     "params with bad scales; canary: a kernel that writes outside its operands fails the run; "
     "results: compare each node with its host reference, log those outside their bounds; "
     "loss: mark each dispatch, so that the error of a lost device says where it was",
     read_check, MEMBER(check)},
    {"RLXVK_NO_CACHE", "record command buffers again for every run", read_truth, MEMBER(no_cache)},
    {"RLXVK_FULL_BARRIER", "a barrier between every two dispatches", read_truth,
     MEMBER(full_barrier)},
    {"RLXVK_NO_BARRIER", "no barriers between dispatches; results undefined, for diagnosis only",
     read_truth, MEMBER(no_barrier)},
    {"RLXVK_PLAN", "bump: no two tensors share memory", read_plan, MEMBER(bump_plan)},
    {"RLXVK_PRECISION", "of matrix products that ask for none: f32, f16, bf16 or split",
     read_precision, MEMBER(precision)},
    {"RLXVK_PREPARED_BYTES", "device memory for weights in the forms that kernels want",
     read_number, MEMBER(prepared_bytes)},
    {"RLXVK_VARIANT", "use these kernel variants: kind=row, separated by commas", read_string,
     MEMBER(variant)},
    {"RLXVK_NO_TUNING", "choose kernel variants by table alone, not by what was measured",
     read_truth, MEMBER(no_tuning)},
    {"RLXVK_NO_SPECIALIZATION",
     "leave specialization constants to the driver, but not if they choose the bindings",
     read_truth, MEMBER(no_specialization)},
    {"RLXVK_INVOCATIONS",
     "reversed, permuted or permuted:SEED: order of invocations in kernels without subgroups; what "
     "it changes lacks a barrier",
     read_invocations, MEMBER(invocations)},
    {"RLXVK_FORCE_HOST", "run ops on the host: all, or row names", read_string, MEMBER(force_host)},
    {"RLXVK_FORCE_INPUT_UPLOAD", "upload what a run is given, even if it did not change",
     read_truth, MEMBER(force_input_upload)},
    {"RLXVK_NO_FUSION", "no pattern fusions", read_truth, MEMBER(no_fusion)},
    {"RLXVK_NO_REGIONS", "no elementwise regions", read_truth, MEMBER(no_regions)},
    {"RLXVK_NO_STRIDED_ACCESS",
     "no tensors read at strides, no products in parts: parts and transposes are copied",
     read_truth, MEMBER(no_strided_access)},
    {"RLXVK_NAN_TRACE",
     "after each run, the first nodes with NaN or Inf: how many, where, and beside what",
     read_truth, MEMBER(nan_trace)},
    {"RLXVK_DUMP_NODES", "after each run, statistics of every computed node", read_truth,
     MEMBER(dump_nodes)},
    {"RLXVK_DUMP_NODES_LIMIT", "of at most so many nodes (40)", read_number,
     MEMBER(dump_nodes_limit)},
    {"RLXVK_DUMP_NODES_FLAT", "and the element at this flat index", read_number,
     MEMBER(dump_nodes_flat)},
    {"RLXVK_TRACE", "write a trace of events to this file", read_string, MEMBER(trace)},
    {"RLXVK_DISPATCH_ONLY", "read no outputs of runs back: their buffers get zeros", read_truth,
     MEMBER(dispatch_only)},
};

/* The names of 0.1. They still work if the present name is not set. */
static const struct former_name {
    const char *name, *now;
} former_names[] = {
    {"RLXVK_NOCACHE", "RLXVK_NO_CACHE"},
    {"RLXVK_FULLBARRIER", "RLXVK_FULL_BARRIER"},
    {"RLXVK_NOBARRIER", "RLXVK_NO_BARRIER"},
    {"RLXVK_NO_PACKED_ATTN", "RLXVK_NO_STRIDED_ACCESS"},
};

static const char *value_of(const char *name)
{
    const char *value = system_environment(name);
    for (size_t i = 0; i < ARRAY_COUNT(former_names) && !value; i++)
        if (strcmp(former_names[i].now, name) == 0)
            value = system_environment(former_names[i].name);
    return value;
}

static bool is_former_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(former_names); i++)
        if (strcmp(former_names[i].name, name) == 0)
            return true;
    return false;
}

const char *switches_name(size_t index)
{
    return index < ARRAY_COUNT(rows) ? rows[index].name : NULL;
}

const char *switches_effect(size_t index)
{
    return index < ARRAY_COUNT(rows) ? rows[index].effect : NULL;
}

rlxvk_status switches_read(switches *out)
{
    rlxvk_status status = RLXVK_OK;
    switches s = {.dump_nodes_limit = 40, .dump_nodes_flat = -1};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        TRY(rows[i].read(value_of(rows[i].name), rows[i].name, (char *)&s + rows[i].offset,
                         rows[i].size));
    *out = s;
error:
    return status;
}

rlxvk_status switches_read_limits(switches *out)
{
    *out = (switches){0};
    return read_limits(value_of("RLXVK_LIMITS"), "RLXVK_LIMITS", out->limits, sizeof out->limits);
}

static void warn_unless_known(const log_sink *log, const char *variable)
{
    char name[64] = "";
    size_t length = MIN(strcspn(variable, "="), sizeof name - 1);
    memcpy(name, variable, length);
    nearest known = nearest_to(name + strlen(PREFIX));
    if (is_former_name(name) || strcmp(name, PATH_OF_LIBRARY) == 0)
        return;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (strcmp(name, rows[i].name) == 0)
            return;
        nearest_consider(&known, rows[i].name + strlen(PREFIX));
    }
    log_line(log, RLXVK_LOG_WARNING,
             "rlxvk: the environment variable %s is no switch and does nothing; %s%s%s`rlxvk info` "
             "lists the switches",
             name, known.word ? "did you mean " PREFIX : "", known.word ? known.word : "",
             known.word ? "? " : "");
}

void switches_warn_unknown(const log_sink *log)
{
    const char *variable;
    for (size_t i = 0; (variable = system_environment_entry(i)); i++)
        if (strncmp(variable, PREFIX, strlen(PREFIX)) == 0 &&
            strncmp(variable, TEST_PREFIX, strlen(TEST_PREFIX)) != 0)
            warn_unless_known(log, variable);
}
