/*
 * rlxvk generate: continues a text with a llama-architecture model from a GGUF file. The prompt in
 * one run, then one run a token; text goes to standard output as it comes, and a line of figures
 * after it.
 */
#include "cli/clock.h"
#include "cli/commands.h"
#include "model/llama.h"
#include "cli/new_file.h"
#include "conform/npy.h"
#include "cli/output.h"
#include "cli/option.h"
#include "model/tokenizer.h"
#include "model/utf8.h"

#include <float.h>
#include <getopt.h>
#include <string.h>

enum { DEFAULT_TOKENS = 128, CONTEXT_UNIT = 64 };

typedef struct options {
    const char *model, *prompt, *device, *logits;
    uint64_t tokens;
    bool tokens_given, json, help;
    bool greedy;
    rlxvk_sample_options sampling;
    uint64_t seed;
} options;

/* Everything of one call; zeroed at birth, taken down by session_destroy. */
typedef struct session {
    const options *options;
    gguf_file *file;
    tokenizer *tokenizer;
    rlxvk_context *context;
    llama *model;
    token_list prompt, made;
    float *logits;
    uint32_t next;        /* the latest token, chosen on the device */
    double load_seconds;  /* with compiling */
    double first_seconds; /* of the first run of the prompt and of a step */
    double prompt_seconds, decode_seconds;
    uint64_t timed_steps; /* in decode_seconds */
} session;

/* ---- Options ---- */

static const char help[] =
    "usage: rlxvk generate MODEL.gguf -p TEXT [OPTION]...\n\n"
    "Continues TEXT with a language model of the llama architecture.\n\n"
    "  -p, --prompt TEXT    the text to continue\n"
    "  -n, --tokens N       at most N new tokens (default 128, or what the context leaves)\n"
    "      --greedy         always the most likely token\n"
    "      --temperature T  divide the logits by T (default 0.8; 0 is greedy)\n"
    "      --top-k K        of the K most likely tokens only (default 40; 0 is all)\n"
    "      --top-p P        of the fewest with probability P together only (default 0.95)\n"
    "      --seed S         for the draws (default 0); the same seed gives the same text\n"
    "      --device D       index, part of the name, or UUID\n"
    "      --logits FILE    write the logits after the prompt's last token, as .npy\n"
    "      --json           ids, text and figures as JSON instead of the text\n";

static const struct option long_options[] = {
    {"prompt", required_argument, NULL, 'p'}, {"tokens", required_argument, NULL, 'n'},
    {"greedy", no_argument, NULL, 'g'},       {"temperature", required_argument, NULL, 't'},
    {"top-k", required_argument, NULL, 'k'},  {"top-p", required_argument, NULL, 'P'},
    {"seed", required_argument, NULL, 's'},   {"device", required_argument, NULL, 'd'},
    {"logits", required_argument, NULL, 'l'}, {"json", no_argument, NULL, 'J'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

static bool set_number(options *o, int letter)
{
    uint64_t value = 0;
    switch (letter) {
    case 'n':
        return o->tokens_given = parse_number("tokens", optarg, 0, UINT32_MAX, &o->tokens);
    case 's':
        return parse_number("seed", optarg, 0, UINT64_MAX, &o->seed);
    case 'k':
        if (!parse_number("top-k", optarg, 0, UINT32_MAX, &value))
            return false;
        o->sampling.top_k = (uint32_t)value;
        return true;
    case 't':
        return parse_real("temperature", optarg, 0, FLT_MAX, &o->sampling.temperature);
    case 'P':
        return parse_real("top-p", optarg, 0, 1, &o->sampling.top_p);
    default: /* getopt_long has said what is wrong */
        return false;
    }
}

static bool set_option(options *o, int letter)
{
    const char **const words[128] = {['p'] = &o->prompt, ['d'] = &o->device, ['l'] = &o->logits};
    bool *const flags[128] = {['g'] = &o->greedy, ['J'] = &o->json, ['h'] = &o->help};
    if (letter > 0 && letter < 128 && words[letter])
        *words[letter] = optarg;
    else if (letter > 0 && letter < 128 && flags[letter])
        *flags[letter] = true;
    else
        return set_number(o, letter);
    return true;
}

static bool parse_options(options *o, int argc, char **argv)
{
    *o = (options){.tokens = DEFAULT_TOKENS,
                   .sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f}};
    for (int letter; (letter = getopt_long(argc, argv, "hp:n:", long_options, NULL)) != -1;)
        if (!set_option(o, letter))
            return false;
    if (o->help)
        return true;
    if (optind < argc)
        o->model = argv[optind++];
    if (!parse_end(argc, argv, optind))
        return false;
    if (!o->model)
        report_error("no model file; name one: rlxvk generate MODEL.gguf -p TEXT");
    else if (!o->prompt)
        report_error("no prompt; give one with -p");
    else
        return true;
    return false;
}

/* ---- Running ---- */

/* The default number of tokens gives way to a short context; a number asked for does not. */
static uint64_t count_new_tokens(const session *s, const llama_config *config)
{
    uint64_t context = (uint64_t)config->context, prompt = s->prompt.count;
    if (s->options->tokens_given || prompt >= context)
        return s->options->tokens;
    return MIN(s->options->tokens, context - prompt);
}

/* What prompt and new tokens need, rounded up. */
static rlxvk_status plan_context(const session *s, const llama_config *config, uint64_t *out)
{
    uint64_t tokens = count_new_tokens(s, config), context = (uint64_t)config->context;
    if (s->prompt.count == 0)
        return status_fail(RLXVK_E_RANGE, "an empty prompt; give at least one token");
    if (!size_add(s->prompt.count, tokens, out) || *out > context)
        return status_fail(RLXVK_E_RANGE,
                           "%zu prompt tokens and %llu new ones exceed the model's context of %llu",
                           s->prompt.count, (unsigned long long)tokens,
                           (unsigned long long)context);
    *out = MIN(round_up(*out, CONTEXT_UNIT), context);
    return RLXVK_OK;
}

static rlxvk_status open_session(session *s)
{
    const options *o = s->options;
    rlxvk_context_options device = {0};
    rlxvk_device_info found;
    llama_config config;
    uint64_t capacity = 0;
    double start = clock_seconds();
    rlxvk_status status;
    if (o->logits)
        TRY(new_file_check(o->logits));
    TRY(gguf_result(gguf_open(o->model, &s->file)));
    TRY(llama_read_config(s->file, &config));
    TRY(tokenizer_create(s->file, &s->tokenizer));
    TRY(tokenizer_encode(s->tokenizer, o->prompt, strlen(o->prompt),
                         tokenizer_adds_bos(s->tokenizer), &s->prompt));
    if (!(s->logits = memory_zeroed((size_t)config.vocabulary, sizeof *s->logits)))
        TRY(status_fail_memory("logits"));
    TRY(option_device(o->device, &found, &device));
    TRY(rlxvk_context_create(&device, &s->context));
    TRY(plan_context(s, &config, &capacity));
    const llama_options model = {.capacity = capacity,
                                 .sampling = o->greedy ? NULL : &o->sampling,
                                 .seed = o->seed};
    TRY(llama_load(s->context, s->file, &model, &s->model));
    TRY(llama_prepare(s->model, s->prompt.count));
    s->load_seconds = clock_seconds() - start;
error:
    return status;
}

static rlxvk_status run_prompt(session *s)
{
    const char *path = s->options->logits;
    rlxvk_status status;
    double start = clock_seconds();
    TRY(llama_extend(s->model, s->prompt.items, s->prompt.count,
                     (llama_result){path ? s->logits : NULL, &s->next}));
    s->first_seconds = clock_seconds() - start;
    if (path) {
        rlxvk_shape shape = RLXVK_SHAPE(llama_configuration(s->model)->vocabulary);
        TRY(npy_write_f32(path, s->logits, &shape));
    }
error:
    return status;
}

/* Once more, after the text, for its speed: drivers put off compiling to the first run, and memory
 * is touched then. */
static rlxvk_status time_prompt(session *s)
{
    uint32_t token;
    double start = clock_seconds();
    rlxvk_status status;
    llama_rewind(s->model);
    TRY(llama_extend(s->model, s->prompt.items, s->prompt.count, (llama_result){NULL, &token}));
    s->prompt_seconds = clock_seconds() - start;
error:
    return status;
}

static rlxvk_status run_step(session *s)
{
    double start = clock_seconds();
    rlxvk_status status;
    TRY(llama_decode(s->model, s->next, (llama_result){NULL, &s->next}));
    if (s->made.count == 1) {
        s->first_seconds += clock_seconds() - start;
    } else {
        s->decode_seconds += clock_seconds() - start;
        s->timed_steps++;
    }
error:
    return status;
}

static void stream(const session *s, uint32_t id)
{
    gguf_string bytes = tokenizer_token_bytes(s->tokenizer, id);
    if (s->options->json)
        return;
    fwrite(bytes.data, 1, bytes.length, stdout);
    fflush(stdout);
}

static rlxvk_status run_tokens(session *s)
{
    uint64_t tokens = count_new_tokens(s, llama_configuration(s->model));
    rlxvk_status status = RLXVK_OK;
    while (s->made.count < tokens) {
        if (s->made.count)
            TRY(run_step(s));
        if (!VECTOR_PUSH(&s->made, s->next))
            TRY(status_fail_memory("tokens"));
        stream(s, s->next);
        if (tokenizer_is_end(s->tokenizer, s->next))
            break;
    }
error:
    return status;
}

/* ---- Results ---- */

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

/* What is no UTF-8 (a generation may end inside a character) becomes U+FFFD. */
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

static rlxvk_status print_json(const session *s, const char *device, const llama_report *report)
{
    token_text made = {0};
    rlxvk_status status;
    TRY(tokenizer_decode(s->tokenizer, s->made.items, s->made.count, &made));
    printf("{\"device\":");
    print_json_string(stdout, device);
    printf(",");
    print_ids("prompt_ids", &s->prompt);
    print_ids("ids", &s->made);
    printf("\"text\":");
    TRY(print_text(&made));
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"load_seconds", s->load_seconds - report->compile_seconds},
        {"compile_seconds", report->compile_seconds},
        {"first_run_seconds", s->first_seconds},
        {"prompt_tokens_per_second", rate((double)s->prompt.count, s->prompt_seconds)},
        {"decode_tokens_per_second", rate((double)s->timed_steps, s->decode_seconds)},
        {"submissions_per_token",
         rate((double)report->decode_submissions, (double)report->decode_runs)},
    };
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++) {
        printf(",\"%s\":", figures[i].name);
        print_json_number(stdout, figures[i].value);
    }
    printf(",\"host_ops\":%u}\n", report->host_ops);
error:
    VECTOR_FREE(&made);
    return status;
}

static rlxvk_status print_results(const session *s)
{
    rlxvk_device_info device;
    llama_report report;
    rlxvk_context_device(s->context, &device);
    llama_usage(s->model, &report);
    if (s->options->json)
        return print_json(s, device.name, &report);
    printf("\n[load %.2f s, compile %.2f s, first runs %.2f s; prompt %zu tokens, %.1f tokens/s; "
           "decode %zu tokens, %.1f tokens/s; %s; %u + %u GPU dispatches, %u host ops]\n",
           s->load_seconds - report.compile_seconds, report.compile_seconds, s->first_seconds,
           s->prompt.count, rate((double)s->prompt.count, s->prompt_seconds), s->made.count,
           rate((double)s->timed_steps, s->decode_seconds), device.name, report.chunk_dispatches,
           report.decode_dispatches, report.host_ops);
    return RLXVK_OK;
}

static void session_destroy(session *s)
{
    VECTOR_FREE(&s->prompt);
    VECTOR_FREE(&s->made);
    memory_free(s->logits);
    llama_destroy(s->model);
    rlxvk_context_destroy(s->context);
    tokenizer_destroy(s->tokenizer);
    gguf_close(s->file);
}

int command_generate(int argc, char **argv)
{
    options o;
    session s = {.options = &o};
    rlxvk_status status;
    if (!parse_options(&o, argc, argv))
        return EXIT_USAGE;
    if (o.help)
        return print_help(help);
    TRY(open_session(&s));
    TRY(run_prompt(&s));
    TRY(run_tokens(&s));
    TRY(time_prompt(&s));
    TRY(print_results(&s));
error:
    session_destroy(&s);
    if (status == RLXVK_OK)
        return EXIT_OK;
    report_status(status);
    return EXIT_FAILED;
}
