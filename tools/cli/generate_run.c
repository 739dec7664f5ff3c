/*
 * The runs of rlxvk generate: loading, a prompt and its continuation, and turns of a conversation.
 * The latest token of a sequence may be pending. Then it is already chosen and printed, but it runs
 * only if another token follows.
 */
#include "cli/clock.h"
#include "cli/file.h"
#include "cli/generate.h"
#include "base/new_file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "conform/npy.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONTEXT_UNIT = 64, READ_SIZE = 65536, TURNS_CONTEXT = 4096 };

/* ---- Loading ---- */

static rlxvk_status append(token_text *text, const char *bytes, size_t length)
{
    if (!VECTOR_RESERVE(text, text->count + length + 1))
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
        out->count--;
error:
    file_free(&content);
    return status;
}

/* The second bos is not left out, because the text without it would be another prompt. */
static void warn_of_two_bos(session *s, const char *bytes, size_t length)
{
    if (s->warned || !tokenizer_doubles_bos(s->tokenizer, bytes, length))
        return;
    s->warned = true;
    report_error("warning: the prompt begins with the token that begins every text of this model "
                 "(id %u), and it is put in front once more; leave it out of the prompt",
                 tokenizer_bos(s->tokenizer));
}

static rlxvk_status encode_prompt(session *s, const char *bytes, size_t length, token_list *out)
{
    if (s->chat)
        return chat_begin(s->chat, s->options->system, bytes, length, out);
    warn_of_two_bos(s, bytes, length);
    return tokenizer_encode(s->tokenizer, bytes, length, tokenizer_adds_bos(s->tokenizer), out);
}

/* Makes a prompt of each line that is not empty. */
static rlxvk_status encode_lines(session *s)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t at = 0, end; at < s->text.count; at = end + 1) {
        for (end = at; end < s->text.count && s->text.items[end] != '\n';)
            end++;
        if (end == at)
            continue;
        if (!VECTOR_PUSH(&s->items, ((batch_item){.done = false})))
            TRY(status_fail_memory("prompts"));
        batch_item *item = &s->items.items[s->items.count - 1];
        TRY(encode_prompt(s, s->text.items + at, end - at, &item->prompt));
    }
    if (s->items.count == 0)
        status = status_fail(RLXVK_E_RANGE, "'%s' holds no prompt", s->options->batch);
error:
    return status;
}

/* Some templates tell the model the date. */
static rlxvk_status open_chat(session *s)
{
    time_t now = time(NULL);
    struct tm day = {0};
    if (!localtime_r(&now, &day))
        return status_fail(RLXVK_E_RANGE, "the date of the day is not known");
    return chat_open(s->file, s->tokenizer,
                     (chat_day){day.tm_year + 1900, day.tm_mon + 1, day.tm_mday}, &s->chat);
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
static rlxvk_status plan_context(const session *s, const llama_config *config, uint64_t *out)
{
    const generate_options *o = s->options;
    size_t prompt = longest_prompt(s);
    uint64_t context = o->context ? o->context : (uint64_t)config->context;
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

static void show_loading(uint64_t done, uint64_t total)
{
    char line[64];
    text_append(&(text){line, sizeof line, 0}, "loading: %llu of %llu MiB",
                (unsigned long long)(done >> 20), (unsigned long long)(total >> 20));
    print_progress(line);
}

static rlxvk_status load_model(session *s, const llama_config *config)
{
    const generate_options *o = s->options;
    llama_options model = {.sampling = o->greedy ? NULL : &o->sampling,
                           .seed = o->seed,
                           .precision = o->precision,
                           .cache = o->cache,
                           .device_bytes = o->device_bytes,
                           .sequences = (uint32_t)MIN(MAX(s->items.count, 1), o->parallel),
                           .stretch_by_length = true,
                           .progress = show_loading};
    rlxvk_status status;
    TRY(plan_context(s, config, &model.capacity));
    print_progress("compiling");
    TRY(llama_load(s->context, s->file, &model, &s->model));
    print_progress("compiling");
    if (s->prompt.count)
        TRY(llama_prepare(s->model, s->prompt.count));
error:
    print_progress(NULL);
    return status;
}

rlxvk_status generate_open(session *s)
{
    const generate_options *o = s->options;
    rlxvk_context_options device = {0};
    rlxvk_device_info found;
    llama_config config;
    llama_report loaded;
    double start = clock_seconds();
    rlxvk_status status;
    if (o->logits)
        TRY(new_file_check(o->logits));
    TRY(gguf_result(gguf_open(o->model, &s->file)));
    TRY(llama_read_config(s->file, &config));
    TRY(tokenizer_create(s->file, &s->tokenizer));
    if (o->chat)
        TRY(open_chat(s));
    TRY(read_prompt(o, &s->text));
    if (o->batch)
        TRY(encode_lines(s));
    else if (s->text.count || !o->interactive)
        TRY(encode_prompt(s, s->text.items, s->text.count, &s->prompt));
    if (!(s->logits = memory_zeroed((size_t)config.vocabulary, sizeof *s->logits)))
        TRY(status_fail_memory("logits"));
    TRY(option_device(o->device, &found, &device));
    TRY(rlxvk_context_create(&device, &s->context));
    TRY(load_model(s, &config));
    llama_usage(s->model, &loaded);
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
    llama_destroy(s->model);
    rlxvk_context_destroy(s->context);
    chat_close(s->chat);
    tokenizer_destroy(s->tokenizer);
    gguf_close(s->file);
}

/* ---- Runs ---- */

static void stream(const session *s, uint32_t id)
{
    gguf_string bytes = tokenizer_token_bytes(s->tokenizer, id);
    if (s->options->json)
        return;
    fwrite(bytes.data, 1, bytes.length, stdout);
    fflush(stdout);
}

static void time_prompt(session *s, double seconds, uint64_t tokens)
{
    if (s->turns++ == 0) {
        s->first_token_seconds = s->first_seconds = seconds;
    } else {
        s->prompt_seconds += seconds;
        s->timed_prompt += tokens;
    }
}

rlxvk_status generate_run_prompt(session *s, const token_list *ids)
{
    float *logits = s->options->logits ? s->logits : NULL;
    double start;
    rlxvk_status status;
    TRY(llama_prepare(s->model, ids->count));
    start = clock_seconds();
    TRY(llama_extend(s->model, ids->items, ids->count, (llama_result){logits, &s->next}));
    time_prompt(s, clock_seconds() - start, ids->count);
error:
    return status;
}

rlxvk_status generate_run_prompts(session *s, const llama_piece *pieces, uint32_t count,
                                  uint32_t *next)
{
    uint64_t tokens = 0;
    double start;
    rlxvk_status status;
    for (uint32_t i = 0; i < count; i++)
        tokens += pieces[i].count;
    TRY(llama_prepare_each(s->model, pieces));
    start = clock_seconds();
    TRY(llama_extend_each(s->model, pieces, next));
    time_prompt(s, clock_seconds() - start, tokens);
error:
    return status;
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

static rlxvk_status run_step(session *s)
{
    double start = clock_seconds();
    rlxvk_status status;
    TRY(llama_decode(s->model, s->next, (llama_result){NULL, &s->next}));
    generate_time_step(s, clock_seconds() - start, 1);
error:
    return status;
}

/* Generates at most `tokens` tokens, including the one that follows the prompt. */
static rlxvk_status run_tokens(session *s, uint64_t tokens)
{
    rlxvk_status status = RLXVK_OK;
    s->pending = false;
    s->last = TOKEN_NONE;
    for (uint64_t made = 0; made < tokens; made++) {
        if (made)
            TRY(run_step(s));
        if (!VECTOR_PUSH(&s->made, s->next))
            TRY(status_fail_memory("tokens"));
        stream(s, s->next);
        s->pending = !tokenizer_is_end(s->tokenizer, s->next);
        if (!s->pending)
            break;
        s->last = s->next;
    }
error:
    return status;
}

rlxvk_status generate_text(session *s)
{
    const char *path = s->options->logits;
    uint64_t context = s->prompt.count + llama_room(s->model);
    rlxvk_status status;
    TRY(generate_run_prompt(s, &s->prompt));
    if (path) {
        rlxvk_shape shape = RLXVK_SHAPE(llama_configuration(s->model)->vocabulary);
        TRY(npy_write_f32(path, s->logits, &shape));
    }
    TRY(run_tokens(s, count_new_tokens(s, s->prompt.count, context)));
    /* Drivers may compile only at the first run, and it touches memory for the first time. */
    llama_rewind(s->model);
    TRY(generate_run_prompt(s, &s->prompt));
error:
    return status;
}

/* ---- Turns ---- */

/* Encodes the part of the last answer that the sequence does not have yet, and the next line. With
 * a chat template, the line is a turn; otherwise a newline stands before it. */
static rlxvk_status encode_turn(session *s, const char *line, size_t length, token_list *out)
{
    bool first = s->turns == 0;
    token_text turn = {0};
    rlxvk_status status = RLXVK_OK;
    out->count = 0;
    if (s->pending && !VECTOR_PUSH(out, s->next))
        TRY(status_fail_memory("tokens"));
    if (s->chat)
        return first ? encode_prompt(s, line, length, out)
                     : chat_continue(s->chat, s->last, line, length, out);
    if (!first)
        TRY(append(&turn, "\n", 1));
    TRY(append(&turn, line, length));
    if (first)
        warn_of_two_bos(s, turn.items, turn.count);
    TRY(tokenizer_encode(s->tokenizer, turn.items, turn.count,
                         first && tokenizer_adds_bos(s->tokenizer), out));
error:
    VECTOR_FREE(&turn);
    return status;
}

static rlxvk_status answer(session *s, const token_list *turn)
{
    uint64_t room = llama_room(s->model);
    rlxvk_status status;
    if (turn->count == 0)
        return RLXVK_OK;
    if (turn->count >= room)
        return status_fail(RLXVK_E_RANGE,
                           "the context is full: %llu tokens are left, and the line has %zu; --ctx "
                           "makes room for more",
                           (unsigned long long)room, turn->count);
    TRY(generate_run_prompt(s, turn));
    TRY(run_tokens(s, MIN(s->options->tokens, room - turn->count)));
    printf("\n");
error:
    return status;
}

rlxvk_status generate_turns(session *s)
{
    bool asked = isatty(STDIN_FILENO);
    char *line = NULL;
    size_t size = 0;
    rlxvk_status status;
    TRY(answer(s, &s->prompt));
    for (ssize_t length;;) {
        if (asked)
            printf("> ");
        fflush(stdout);
        if ((length = getline(&line, &size, stdin)) < 0)
            break;
        if (length && line[length - 1] == '\n')
            length--;
        if (length == 0)
            continue;
        TRY(encode_turn(s, line, (size_t)length, &s->prompt));
        TRY(answer(s, &s->prompt));
    }
error:
    free(line);
    return status;
}
