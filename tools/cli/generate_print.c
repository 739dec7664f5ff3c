/* The report of rlxvk generate about a run: a line of measurements, or everything as JSON. */
#include "cli/generate.h"
#include "cli/output.h"
#include "model/language/utf8.h"

#include <string.h>

static double rate(double count, double per)
{
    return per > 0 ? count / per : 0;
}

static void print_ids(const char *key, const token_list *ids)
{
    printf("\"%s\":[", key);
    for (size_t i = 0; i < ids->count; i++)
        printf("%s%u", i ? "," : "", ids->items[i]);
    printf("],");
}

static rlxvk_status decode(const session *s, const token_list *ids, token_text *out)
{
    size_t length;
    rlxvk_status status;
    TRY(rlxvk_tokenizer_decode(s->tokenizer, ids->items, ids->count, NULL, 0, &length));
    if (!VECTOR_RESERVE(out, length + 1))
        return status_fail_memory("text");
    TRY(rlxvk_tokenizer_decode(s->tokenizer, ids->items, ids->count, out->items, length, &length));
    out->count = length;
error:
    return status;
}

/* Invalid UTF-8 becomes U+FFFD, because a generation may end inside a character. */
static rlxvk_status print_text(const token_text *made)
{
    VECTOR(char) clean = {0};
    for (size_t at = 0, size; at < made->count; at += size) {
        const char *from = made->items + at;
        uint32_t point = utf8_decode((const uint8_t *)from, made->count - at, &size);
        bool broken = point == UTF8_INVALID || point == 0;
        size_t length = broken ? 3 : size;
        if (!VECTOR_RESERVE(&clean, length + 1))
            break;
        memcpy(clean.items + clean.count, broken ? "\xef\xbf\xbd" : from, length);
        clean.count += length;
    }
    bool complete = VECTOR_PUSH(&clean, '\0');
    if (complete)
        print_json_string(stdout, clean.items);
    VECTOR_FREE(&clean);
    return complete ? RLXVK_OK : status_fail_memory("text");
}

rlxvk_status generate_print_line(const session *s, const token_list *made)
{
    token_text text = {0};
    rlxvk_status status;
    TRY(decode(s, made, &text));
    for (size_t i = 0; i < text.count; i++) {
        char c = text.items[i];
        if (c == '\n' || c == '\\')
            putchar('\\');
        putchar(c == '\n' ? 'n' : c);
    }
    putchar('\n');
    fflush(stdout);
error:
    VECTOR_FREE(&text);
    return status;
}

/* Prints the JSON members of one answer. */
static rlxvk_status print_answer(const session *s, const token_list *prompt, const token_list *ids)
{
    token_text made = {0};
    rlxvk_status status;
    TRY(decode(s, ids, &made));
    print_ids("prompt_ids", prompt);
    print_ids("ids", ids);
    printf("\"text\":");
    TRY(print_text(&made));
error:
    VECTOR_FREE(&made);
    return status;
}

static rlxvk_status print_answers(const session *s)
{
    rlxvk_status status = RLXVK_OK;
    if (s->items.count == 0)
        return print_answer(s, &s->prompt, &s->made);
    printf("\"answers\":[");
    for (size_t i = 0; i < s->items.count; i++) {
        printf("%s{", i ? "," : "");
        TRY(print_answer(s, &s->items.items[i].prompt, &s->items.items[i].made));
        printf("}");
    }
    printf("]");
error:
    return status;
}

static rlxvk_status print_json(const session *s, const char *device,
                               const rlxvk_language_report *report)
{
    rlxvk_status status;
    printf("{\"device\":");
    print_json_string(stdout, device);
    printf(",");
    TRY(print_answers(s));
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"load_seconds", s->load_seconds},
        {"compile_seconds", report->compile_seconds},
        {"first_run_seconds", s->first_seconds},
        {"first_token_seconds", s->first_token_seconds},
        {"prompt_tokens_per_second", rate((double)s->timed_prompt, s->prompt_seconds)},
        {"decode_tokens_per_second", rate((double)s->timed_steps, s->decode_seconds)},
        {"submissions_per_token",
         rate((double)report->step_submissions, (double)report->step_runs)},
        {"device_bytes", (double)report->device_bytes},
        {"weight_bytes", (double)report->weight_bytes},
        {"prepared_bytes", (double)report->prepared_bytes},
        {"cache_bytes", (double)report->cache_bytes},
        {"state_bytes", (double)report->state_bytes},
        {"scratch_bytes", (double)report->scratch_bytes},
        {"staging_bytes", (double)report->staging_bytes},
        {"host_weight_bytes", (double)report->host_weight_bytes},
    };
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++) {
        printf(",\"%s\":", figures[i].name);
        print_json_number(stdout, figures[i].value);
    }
    printf(",\"speeds_leave_out\":\"loading, compiling, first runs\",\"host_ops\":%u}\n",
           report->host_steps);
error:
    return status;
}

rlxvk_status generate_print(const session *s)
{
    rlxvk_device_info device;
    rlxvk_language_report report = RLXVK_SIZED(rlxvk_language_report, .graphs = 0);
    rlxvk_status status;
    char memory[96] = "";
    size_t prompt = s->prompt.count, made = s->made.count;
    for (size_t i = 0; i < s->items.count; i++) {
        prompt += s->items.items[i].prompt.count;
        made += s->items.items[i].made.count;
    }
    rlxvk_context_device(s->context, &device);
    status = rlxvk_language_usage(s->language, &report);
    if (status)
        return status;
    if (s->options->json)
        return print_json(s, device.name, &report);
    if (s->options->device_bytes)
        text_append(&(text){memory, sizeof memory, 0},
                    "; %.1f MiB of device memory, %.1f MiB of weights in host memory",
                    (double)report.device_bytes / 1048576,
                    (double)report.host_weight_bytes / 1048576);
    printf("\n[load %.2f s, compile %.2f s, first token %.3f s, first runs %.2f s; prompt %zu "
           "tokens, %.1f tokens/s; decode %zu tokens, %.1f tokens/s (without loading, compiling, "
           "first runs); %s; %u + %u GPU dispatches, %u host ops%s]\n",
           s->load_seconds, report.compile_seconds, s->first_token_seconds, s->first_seconds,
           prompt, rate((double)s->timed_prompt, s->prompt_seconds), made,
           rate((double)s->timed_steps, s->decode_seconds), device.name, report.run_dispatches,
           report.step_dispatches, report.host_steps, memory);
    return RLXVK_OK;
}
