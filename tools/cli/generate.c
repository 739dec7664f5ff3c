/*
 * rlxvk generate: continues texts with a language model from a GGUF file. Text goes to standard
 * output as it is generated, followed by a line of measurements.
 */
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/option.h"
#include "cli/output.h"

#include <float.h>
#include <getopt.h>
#include <string.h>

enum { DEFAULT_TOKENS = 128, DEFAULT_PARALLEL = 8, MOST_PARALLEL = 1024 };

/* ---- Options ---- */

static const char help[] =
    "usage: rlxvk generate MODEL.gguf -p TEXT [OPTION]...\n\n"
    "Continues TEXT with a language model.\n\n"
    "  -p, --prompt TEXT    the text to continue\n"
    "      --file FILE      read it from FILE, less a newline at its end; - is standard input\n"
    "      --interactive    answer line after line of standard input, all in one context; without\n"
    "                       --chat, lines are continued as they are\n"
    "      --chat           prompts and lines are a user's turns: the model's chat template is "
    "put\n"
    "                       around them, and the end of a turn ends a reply\n"
    "      --system TEXT    with --chat: what the model is told before the first turn\n"
    "      --batch FILE     continue every line of FILE, less empty ones, several at once; a line\n"
    "                       each in their order, newlines in it written \\n, backslashes \\\\\n"
    "      --parallel N     of a batch N at once (default 8); one that ends makes room for the "
    "next\n"
    "  -n, --tokens N       at most N new tokens (default 128, or what the context leaves)\n"
    "      --ctx N          room for N tokens in all (default: what prompt and new tokens need;\n"
    "                       with --interactive 4096, or the model's context)\n"
    "      --greedy         always the most likely token\n"
    "      --temperature T  divide the logits by T (default 0.8; 0 is greedy)\n"
    "      --top-k K        of the K most likely tokens only (default 40; 0 is all)\n"
    "      --top-p P        of the fewest with probability P together only (default 0.95)\n"
    "      --seed S         for the draws (default 0); the same seed gives the same text\n"
    "      --precision P    of matrix products: f32 (default), f16, bf16, split\n"
    "      --cache T        keys and values are held as f32 (default) or f16, in half the memory\n"
    "      --device-memory N\n"
    "                       take at most N bytes of device memory (NK, NM, NG: KiB, MiB, GiB);\n"
    "                       weights beyond that are read from host memory, which is slower\n"
    "      --device D       index, part of the name, UUID, or PCI address\n"
    "      --logits FILE    write the logits after the prompt's last token, as .npy\n"
    "      --json           ids, text and figures as JSON instead of the text\n\n"
    "The speeds told leave out loading, compiling, and the first run of a prompt and of a token,\n"
    "in which drivers finish their work; the time to the first token has the latter in it.\n";

static const struct option long_options[] = {
    {"prompt", required_argument, NULL, 'p'}, {"tokens", required_argument, NULL, 'n'},
    {"greedy", no_argument, NULL, 'g'},       {"temperature", required_argument, NULL, 't'},
    {"top-k", required_argument, NULL, 'k'},  {"top-p", required_argument, NULL, 'P'},
    {"seed", required_argument, NULL, 's'},   {"device", required_argument, NULL, 'd'},
    {"logits", required_argument, NULL, 'l'}, {"json", no_argument, NULL, 'J'},
    {"file", required_argument, NULL, 'f'},   {"interactive", no_argument, NULL, 'i'},
    {"ctx", required_argument, NULL, 'c'},    {"precision", required_argument, NULL, 'x'},
    {"batch", required_argument, NULL, 'b'},  {"parallel", required_argument, NULL, 'a'},
    {"cache", required_argument, NULL, 'C'},  {"device-memory", required_argument, NULL, 'm'},
    {"chat", no_argument, NULL, 'T'},         {"system", required_argument, NULL, 'S'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

static bool parse_cache(const char *argument, rlxvk_dtype *out)
{
    *out = strcmp(argument, "f16") == 0 ? RLXVK_F16 : RLXVK_F32;
    if (*out == RLXVK_F16 || strcmp(argument, "f32") == 0)
        return true;
    report_error("--cache takes f32 or f16, not '%s'", argument);
    return false;
}

static bool set_number(generate_options *o, int letter)
{
    uint64_t value = 0;
    switch (letter) {
    case 'n':
        return o->tokens_given = parse_number("tokens", optarg, 0, UINT32_MAX, &o->tokens);
    case 'c':
        return parse_number("ctx", optarg, 1, UINT32_MAX, &o->context);
    case 'a':
        return parse_number("parallel", optarg, 1, MOST_PARALLEL, &o->parallel);
    case 'x':
        return parse_precision(optarg, &o->precision);
    case 'C':
        return parse_cache(optarg, &o->cache);
    case 'm':
        return parse_bytes("device-memory", optarg, &o->device_bytes);
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
    default: /* getopt_long has already printed the mistake */
        return false;
    }
}

static bool set_option(generate_options *o, int letter)
{
    const char **const words[128] = {['p'] = &o->prompt, ['d'] = &o->device, ['l'] = &o->logits,
                                     ['f'] = &o->file,   ['b'] = &o->batch,  ['S'] = &o->system};
    bool *const flags[128] = {['g'] = &o->greedy,
                              ['J'] = &o->json,
                              ['h'] = &o->help,
                              ['i'] = &o->interactive,
                              ['T'] = &o->chat};
    if (letter > 0 && letter < 128 && words[letter])
        *words[letter] = optarg;
    else if (letter > 0 && letter < 128 && flags[letter])
        *flags[letter] = true;
    else
        return set_number(o, letter);
    return true;
}

/* Checks that options go together. If not, it prints which do not. */
static bool check_options(const generate_options *o)
{
    int prompts = (o->prompt != NULL) + (o->file != NULL) + (o->batch != NULL);
    const char *several = o->interactive ? "--interactive" : o->batch ? "--batch" : NULL;
    if (!o->model)
        report_error("no model file; name one: rlxvk generate MODEL.gguf -p TEXT");
    else if (prompts > 1)
        report_error("more than one of -p, --file and --batch; give one of them");
    else if (prompts == 0 && !o->interactive)
        report_error("no prompt; give one with -p, --file or --batch");
    else if (o->interactive && (o->json || o->batch))
        report_error("--interactive does not go with %s", o->json ? "--json" : "--batch");
    else if (o->interactive && o->file && strcmp(o->file, "-") == 0)
        report_error("--interactive reads standard input itself; give a prompt in another way");
    else if (o->system && !o->chat)
        report_error("--system is a part of the chat template; give --chat, too");
    else if (o->interactive && o->tokens == 0)
        report_error("--interactive needs at least one token an answer: -n 1");
    else if (several && o->logits)
        report_error("%s does not go with --logits", several);
    else
        return true;
    return false;
}

static bool parse_options(generate_options *o, int argc, char **argv)
{
    *o = (generate_options){.tokens = DEFAULT_TOKENS,
                            .parallel = DEFAULT_PARALLEL,
                            .sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f}};
    for (int letter; (letter = getopt_long(argc, argv, "hp:n:", long_options, NULL)) != -1;)
        if (!set_option(o, letter))
            return false;
    if (o->help)
        return true;
    if (optind < argc)
        o->model = argv[optind++];
    return parse_end(argc, argv, optind) && check_options(o);
}

int command_generate(int argc, char **argv)
{
    generate_options o;
    session s = {.options = &o};
    rlxvk_status status;
    if (!parse_options(&o, argc, argv))
        return EXIT_USAGE;
    if (o.help)
        return print_help(help);
    TRY(generate_open(&s));
    TRY(o.interactive ? generate_turns(&s) : o.batch ? generate_batch(&s) : generate_text(&s));
    TRY(generate_print(&s));
error:
    generate_close(&s);
    if (status == RLXVK_OK)
        return EXIT_OK;
    report_status(status);
    return EXIT_FAILED;
}
