/*
 * Statuses of the GGUF parser, and how they convert to and from the library's. Invariant: after a
 * failure, the thread's last error has the sentence, whichever kind of status is returned.
 */
#include "model/language/gguf.h"

static const struct {
    const char *name, *text;
} rows[] = {[GGUF_OK] = {"OK", "success"},
#define GGUF_STATUS_ROW(name, number, text) [GGUF_##name] = {#name, text},
            GGUF_STATUS_TABLE(GGUF_STATUS_ROW)
#undef GGUF_STATUS_ROW
};

static bool is_status(gguf_status status)
{
    return (size_t)status < ARRAY_COUNT(rows) && rows[status].name;
}

const char *gguf_status_name(gguf_status status)
{
    return is_status(status) ? rows[status].name : "?";
}

const char *gguf_status_text(gguf_status status)
{
    return is_status(status) ? rows[status].text : "no such status";
}

gguf_status gguf_fail(gguf_status status, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    text_format(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    (void)status_fail(RLXVK_E_FILE, "%s", sentence);
    return status;
}

gguf_status gguf_from(rlxvk_status status)
{
    return status == RLXVK_OK                     ? GGUF_OK
           : status == RLXVK_E_OUT_OF_HOST_MEMORY ? GGUF_E_MEMORY
                                                  : GGUF_E_FILE;
}

rlxvk_status gguf_result(gguf_status status)
{
    if (status == GGUF_OK)
        return RLXVK_OK;
    if (status == GGUF_E_MEMORY)
        return RLXVK_E_OUT_OF_HOST_MEMORY;
    if (status == GGUF_E_FILE)
        return RLXVK_E_FILE;
    return status_fail_within(RLXVK_E_FILE, "%s", gguf_status_text(status));
}
