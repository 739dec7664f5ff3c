/*
 * Names and texts of statuses, and the thread's last error. Invariant: the buffer always holds a
 * terminated sentence. Arguments of status_fail() may point into it, because the new sentence is
 * formatted in another buffer first.
 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[LAST_ERROR_SIZE];

static const struct {
    const char *name, *text;
} status_rows[] = {[RLXVK_OK] = {"OK", "success"},
#define STATUS_ROW(name, number, text) [number] = {#name, text},
                   RLXVK_STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};

/* Numbers without a status have an empty row. */
static bool is_status(rlxvk_status status)
{
    return (size_t)status < ARRAY_COUNT(status_rows) && status_rows[status].name;
}

const char *rlxvk_status_name(rlxvk_status status)
{
    return is_status(status) ? status_rows[status].name : "?";
}

const char *rlxvk_status_text(rlxvk_status status)
{
    return is_status(status) ? status_rows[status].text : "no such status";
}

const char *rlxvk_last_error(void)
{
    return last_error;
}

rlxvk_status status_fail(rlxvk_status status, const char *format, ...)
{
    char sentence[LAST_ERROR_SIZE];
    va_list arguments;
    va_start(arguments, format);
    text_format(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    memcpy(last_error, sentence, sizeof(sentence));
    return status;
}

rlxvk_status status_fail_memory(const char *what)
{
    return status_fail(RLXVK_E_OUT_OF_HOST_MEMORY, "%s: out of host memory", what);
}

rlxvk_status status_fail_within(rlxvk_status status, const char *format, ...)
{
    char sentence[LAST_ERROR_SIZE];
    text t = {.buffer = sentence, .size = sizeof(sentence)};
    va_list arguments;
    va_start(arguments, format);
    text_format(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    t.length = strlen(sentence);
    text_append(&t, ": %s", last_error);
    memcpy(last_error, sentence, t.length + 1);
    return status;
}

void status_save(status_sentence *out)
{
    memcpy(out->text, last_error, sizeof(last_error));
}

void status_restore(const status_sentence *saved)
{
    memcpy(last_error, saved->text, sizeof(last_error));
}

rlxvk_status status_require(const void *pointer, const char *call, const char *argument)
{
    return pointer ? RLXVK_OK
                   : status_fail(RLXVK_E_NULL, "%s: %s is NULL; this call cannot do without it",
                                 call, argument);
}

rlxvk_status status_require_items(const void *items, size_t count, const char *call,
                                  const char *argument)
{
    return items || count == 0
               ? RLXVK_OK
               : status_fail(RLXVK_E_NULL,
                             "%s: %s is NULL with a count of %zu; pass as many, or count 0", call,
                             argument, count);
}
