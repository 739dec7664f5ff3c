/*
 * The runs of rlxvk generate: loading, a prompt and its continuation, and turns of a conversation.
 */
#include "cli/clock.h"
#include "cli/file.h"
#include "cli/generate.h"
#include "base/new_file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "conform/npy.h"
#include "system/program.h"

#include <string.h>

enum { CONTEXT_UNIT = 64, READ_SIZE = 65536, TURNS_CONTEXT = 4096 };

/* ---- Loading ---- */

static rlxvk_status append(token_text *text, const char *bytes, size_t length)
{
    if (!VECTOR_RESERVE(text, length + 1))
        return status_fail_memory("prompt");
    memcpy(text->items + text->count, bytes, length);
    text->count += length;
    return RLXVK_OK;
}

static rlxvk_status read_standard_input(token_text *out)
{
    static char buffer[READ_SIZE];
    rlxvk_status status = RLXVK_OK;
    for (size_t length; (length = fread(buffer, 1, sizeof buffer, stdin)) > 0;)
        TRY(append(out, buffer, length));
    if (ferror(stdin))
        status = status_fail(RLXVK_E_FILE, "standard input cannot be read");
error:
    return status;
}

/* The length of a line without a carriage return at its end. Files of Windows have one there. */
static size_t line_length(const char *line, size_t length)
{
    return length && line[length - 1] == '\r' ? length - 1 : length;
}

static rlxvk_status read_prompt(const generate_options *o, token_text *out)
{
    file_content content = {0};
    rlxvk_status status = RLXVK_OK;
    const char *path = o->batch ? o->batch : o->file;
    if (o->prompt)
        return append(out, o->prompt, strlen(o->prompt));
    if (!path)
        return RLXVK_OK;
    if (strcmp(path, "-") == 0) {
        TRY(read_standard_input(out));
    } else {
        TRY(file_read(path, &content));
        TRY(append(out, (const char *)content.data, content.length));
    }
    if (out->count && out->items[out->count - 1] == '\n')
        out->count = line_length(out->items, out->count - 1);
error:
    file_free(&content);
    return status;
}

/* The second one is not left out, because the text without it would be another prompt. */
static void warn_of_two_begins(session *s, const char *bytes, size_t length)
{
    if (s->warned || !rlxvk_tokenizer_doubles_begin(s->tokenizer, bytes, length))
        return;
    s->warned = true;
    report_error("warning: the prompt begins with the token that begins every text of this model "
                 "(id %u), and it is put in front once more; leave it out of the prompt",
                 s->info.begin);
}

static rlxvk_status encode(const session *s, const char *bytes, size_t length, token_list *out,
                           size_t *out_count)
{
    rlxvk_turn_options turn = {.system = s->options->system};
    return s->options->chat ? rlxvk_tokenizer_turn(s->tokenizer, bytes, length, &turn, out->items,
                                                   out->capacity, out_count)
                            : rlxvk_tokenizer_encode(s->tokenizer, bytes, length, true, out->items,
                                                     out->capacity, out_count);
}

/* There is room for a token a byte at first, because seldom are there more. */
static rlxvk_status encode_prompt(session *s, const char *bytes, size_t length, token_list *out)
{
    size_t count = length + 1;
    rlxvk_status status;
    if (!s->options->chat)
        warn_of_two_begins(s, bytes, length);
    do {
        if (!VECTOR_RESERVE(out, count))
            return status_fail_memory("prompt");
        TRY(encode(s, bytes, length, out, &count));
    } while (count > out->capacity);
    out->count = count;
error:
    return status;
}

/* Makes a prompt of each line that is not empty. */
static rlxvk_status encode_lines(session *s)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t at = 0, end, length; at < s->text.count; at = end + 1) {
        for (end = at; end < s->text.count && s->text.items[end] != '\n';)
            end++;
        length = line_length(s->text.items + at, end - at);
        if (length == 0)
            continue;
        if (!VECTOR_PUSH(&s->items, ((batch_item){.done = false})))
            TRY(status_fail_memory("prompts"));
        batch_item *item = &s->items.items[s->items.count - 1];
        TRY(encode_prompt(s, s->text.items + at, length, &item->prompt));
    }
    if (s->items.count == 0)
        status = status_fail(RLXVK_E_RANGE, "'%s' holds no prompt", s->options->batch);
error:
    return status;
}

static size_t longest_prompt(const session *s)
{
    size_t longest = s->prompt.count;
    for (size_t i = 0; i < s->items.count; i++)
        longest = MAX(longest, s->items.items[i].prompt.count);
    return longest;
}

/* If the context is too short for the default number of tokens, the number is reduced. A number
 * that the user gave is not. */
static uint64_t count_new_tokens(const session *s, size_t prompt, uint64_t context)
{
    if (s->options->tokens_given || prompt >= context)
        return s->options->tokens;
    return MIN(s->options->tokens, context - prompt);
}

/* Chooses the context: as the user asks, otherwise the length that prompt and new tokens need,
 * rounded up. A conversation needs more. */
static rlxvk_status plan_context(const session *s, uint64_t *out)
{
    const generate_options *o = s->options;
    size_t prompt = longest_prompt(s);
    uint64_t context = o->context ? o->context : s->info.context;
    uint64_t tokens = count_new_tokens(s, prompt, context), needed;
    if (prompt == 0 && !o->interactive)
        return status_fail(RLXVK_E_RANGE, "an empty prompt; give at least one token");
    if (!size_add(prompt, tokens, &needed) || (needed > context && !o->interactive))
        return status_fail(RLXVK_E_RANGE,
                           "%zu prompt tokens and %llu new ones exceed the %s of %llu", prompt,
                           (unsigned long long)tokens,
                           o->context ? "room asked for by --ctx," : "model's context",
                           (unsigned long long)context);
    if (o->interactive)
        needed = MAX(needed, TURNS_CONTEXT);
    *out = o->context ? context : MIN(round_up(needed, CONTEXT_UNIT), context);
    return RLXVK_OK;
}

static void show_loading(void *user, uint64_t done, uint64_t total)
{
    char line[64];
    (void)user;
    text_append(&(text){line, sizeof line, 0}, "loading: %llu of %llu MiB",
                (unsigned long long)(done >> 20), (unsigned long long)(total >> 20));
    print_progress(line);
}

static rlxvk_status create_language(session *s)
{
    const generate_options *o = s->options;
    rlxvk_language_options language = {.sampling = o->greedy ? NULL : &o->sampling,
                                       .seed = o->seed,
                                       .precision = o->precision,
                                       .cache = o->cache,
                                       .device_bytes = o->device_bytes,
                                       .sequences =
                                           (uint32_t)MIN(MAX(s->items.count, 1), o->parallel),
                                       .progress = show_loading};
    rlxvk_status status;
    TRY(plan_context(s, &language.capacity));
    print_progress("compiling");
    TRY(rlxvk_language_create(s->tokenizer, s->context, &language, &s->language));
    print_progress("compiling");
    if (s->prompt.count)
        TRY(rlxvk_language_prepare(s->language, s->prompt.count));
error:
    print_progress(NULL);
    return status;
}

static rlxvk_status open_tokenizer(session *s)
{
    rlxvk_tokenizer_info info = RLXVK_SIZED(rlxvk_tokenizer_info, .vocabulary = 0);
    size_t none;
    rlxvk_status status;
    TRY(rlxvk_model_open(s->options->model, NULL, &s->model));
    TRY(rlxvk_tokenizer_open(s->model, NULL, &s->tokenizer));
    TRY(rlxvk_tokenizer_describe(s->tokenizer, &info));
    s->info = info;
    if (s->options->chat && !info.chat_family)
        TRY(rlxvk_tokenizer_turn(s->tokenizer, NULL, 0, NULL, NULL, 0, &none)); /* tells why */
    if (!(s->logits = memory_zeroed(info.vocabulary, sizeof *s->logits)))
        TRY(status_fail_memory("logits"));
error:
    return status;
}

rlxvk_status generate_open(session *s)
{
    const generate_options *o = s->options;
    rlxvk_language_report loaded = RLXVK_SIZED(rlxvk_language_report, .graphs = 0);
    rlxvk_context_options device = {0};
    rlxvk_device_info found;
    double start = clock_seconds();
    rlxvk_status status;
    if (o->logits)
        TRY(new_file_check(o->logits));
    TRY(open_tokenizer(s));
    TRY(read_prompt(o, &s->text));
    if (o->batch)
        TRY(encode_lines(s));
    else if (s->text.count || !o->interactive)
        TRY(encode_prompt(s, s->text.items, s->text.count, &s->prompt));
    TRY(option_device(o->device, &found, &device));
    TRY(rlxvk_context_create(&device, &s->context));
    TRY(create_language(s));
    TRY(rlxvk_language_usage(s->language, &loaded));
    s->load_seconds = clock_seconds() - start - loaded.compile_seconds;
error:
    return status;
}

void generate_close(session *s)
{
    VECTOR_FREE(&s->text);
    VECTOR_FREE(&s->prompt);
    VECTOR_FREE(&s->made);
    for (size_t i = 0; i < s->items.count; i++) {
        VECTOR_FREE(&s->items.items[i].prompt);
        VECTOR_FREE(&s->items.items[i].made);
    }
    VECTOR_FREE(&s->items);
    memory_free(s->logits);
    rlxvk_language_destroy(s->language);
    rlxvk_context_destroy(s->context);
    rlxvk_tokenizer_destroy(s->tokenizer);
    rlxvk_model_destroy(s->model);
}

/* ---- Runs ---- */

void generate_time_prompt(session *s, double seconds, uint64_t tokens)
{
    if (s->turns++ == 0) {
        s->first_token_seconds = s->first_seconds = seconds;
    } else {
        s->prompt_seconds += seconds;
        s->timed_prompt += tokens;
    }
}

void generate_time_step(session *s, double seconds, uint64_t tokens)
{
    if (s->steps++ == 0) {
        s->first_seconds += seconds;
    } else {
        s->decode_seconds += seconds;
        s->timed_steps += tokens;
    }
}

/* One answer. */
typedef struct answer {
    session *session;
    uint64_t made, kept;   /* tokens; those that do not end the text */
    uint64_t room;         /* of the sequence, before the answer */
    double compiled;       /* seconds, before the answer */
    double prompt_seconds; /* until the first token was there */
    bool failed;
} answer;

/* Takes a generated token. The time since the last one was given is that of a run. */
static bool take_token(void *user, uint32_t token, const char *bytes, size_t length)
{
    answer *a = user;
    session *s = a->session;
    double seconds = clock_seconds() - s->since;
    if (a->made++ == 0)
        a->prompt_seconds = seconds;
    else
        generate_time_step(s, seconds, 1);
    a->kept += !rlxvk_tokenizer_is_end(s->tokenizer, token);
    a->failed = !VECTOR_PUSH(&s->made, token);
    if (!s->options->json) {
        fwrite(bytes, 1, length, stdout);
        fflush(stdout);
    }
    s->since = clock_seconds();
    return !a->failed;
}

static rlxvk_status measure(const session *s, double *out_compiled, uint64_t *out_room)
{
    rlxvk_language_report report = RLXVK_SIZED(rlxvk_language_report, .graphs = 0);
    rlxvk_status status;
    TRY(rlxvk_language_usage(s->language, &report));
    TRY(rlxvk_language_room(s->language, 0, out_room));
    *out_compiled = report.compile_seconds;
error:
    return status;
}

static rlxvk_status begin_answer(answer *a, session *s, rlxvk_generate_options *out_options)
{
    *a = (answer){.session = s};
    *out_options = (rlxvk_generate_options){.reader = take_token, .user = a};
    s->since = clock_seconds();
    return measure(s, &a->compiled, &a->room);
}

/* The run of the prompt may have compiled graphs, too. */
static rlxvk_status end_answer(const answer *a)
{
    double compiled;
    uint64_t room;
    rlxvk_status status;
    TRY(measure(a->session, &compiled, &room));
    if (a->failed)
        return status_fail_memory("tokens");
    generate_time_prompt(a->session, a->prompt_seconds - (compiled - a->compiled),
                         a->room - room - a->kept);
error:
    return status;
}

/* ---- A prompt ---- */

/* Runs the prompt alone. */
static rlxvk_status run_prompt(session *s, float *logits)
{
    uint32_t next;
    rlxvk_status status;
    s->since = clock_seconds();
    TRY(rlxvk_language_extend(s->language, 0, s->prompt.items, s->prompt.count, logits, &next));
    generate_time_prompt(s, clock_seconds() - s->since, s->prompt.count);
error:
    return status;
}

/* Runs the prompt and generates at most so many tokens. */
static rlxvk_status run_and_generate(session *s, uint64_t tokens, float *logits)
{
    rlxvk_generate_options o;
    answer a;
    rlxvk_status status;
    TRY(begin_answer(&a, s, &o));
    o.tokens = tokens;
    o.logits = logits;
    TRY(rlxvk_language_generate(s->language, s->prompt.items, s->prompt.count, &o));
    TRY(end_answer(&a));
error:
    return status;
}

rlxvk_status generate_text(session *s)
{
    const char *path = s->options->logits;
    float *logits = path ? s->logits : NULL;
    uint64_t room, tokens;
    rlxvk_status status;
    TRY(rlxvk_language_room(s->language, 0, &room));
    tokens = count_new_tokens(s, s->prompt.count, room);
    TRY(tokens ? run_and_generate(s, tokens, logits) : run_prompt(s, logits));
    if (path) {
        rlxvk_shape shape = RLXVK_SHAPE(s->info.vocabulary);
        TRY(npy_write_f32(path, s->logits, &shape));
    }
    /* Drivers may compile only at the first run, and it touches memory for the first time. */
    TRY(rlxvk_language_rewind(s->language, 0));
    TRY(run_prompt(s, NULL));
error:
    return status;
}

/* ---- Turns ---- */

/* With a chat template, the line is a turn; otherwise a newline stands before it. */
static rlxvk_status answer_line(session *s, const char *line, size_t length)
{
    rlxvk_generate_options o;
    token_text text = {0};
    answer a;
    rlxvk_status status;
    TRY(begin_answer(&a, s, &o));
    o.tokens = s->options->tokens;
    if (s->options->chat) {
        TRY(rlxvk_language_reply(s->language, s->options->system, line, length, &o));
    } else {
        if (s->turns)
            TRY(append(&text, "\n", 1));
        TRY(append(&text, line, length));
        TRY(rlxvk_language_write(s->language, text.items, text.count, &o));
    }
    TRY(end_answer(&a));
    printf("\n");
error:
    VECTOR_FREE(&text);
    return status;
}

/* Reads a line of standard input, without its end. *out_more is false at the end of the input. */
static rlxvk_status read_line(token_text *out, bool *out_more)
{
    rlxvk_status status = RLXVK_OK;
    int letter;
    out->count = 0;
    while ((letter = fgetc(stdin)) != EOF && letter != '\n')
        TRY(append(out, &(char){(char)letter}, 1));
    *out_more = letter != EOF || out->count;
    out->count = line_length(out->items, out->count);
error:
    return status;
}

rlxvk_status generate_turns(session *s)
{
    bool asked = program_has_terminal_input(), more = true;
    token_text line = {0};
    rlxvk_status status = RLXVK_OK;
    if (s->prompt.count) {
        TRY(run_and_generate(s, s->options->tokens, NULL));
        printf("\n");
    }
    while (more) {
        if (asked)
            printf("> ");
        fflush(stdout);
        TRY(read_line(&line, &more));
        if (line.count)
            TRY(answer_line(s, line.items, line.count));
    }
error:
    VECTOR_FREE(&line);
    return status;
}
