/* rlxvk generate --chat, with the models of chat_model.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/commands.h"
#include "support/command.h"
#include "unit/model/golden_numbers.h"
#include "unit/model/chat_model.h"

#define BUNDLED  CHAT_SOURCE
#define MODEL    "build/test/chat.gguf"
#define REFUSING "build/test/chat_refusing.gguf"
#define SPACED   "build/test/chat_spaced.gguf"
#define PROMPT   "build/test/chat_prompt.txt"

/* ---- Models ---- */

static int make_models(void **unused)
{
    char *chatml = read_text("test/data/chat/chatml.jinja");
    char *first = read_text("test/data/chat/mistral-first.jinja");
    char *spaced = read_text("test/data/chat/llama-2.jinja");
    char with_bos[1024];
    (void)unused;
    snprintf(with_bos, sizeof with_bos, "{{ bos_token }}%s", chatml);
    chat_model_write(MODEL, with_bos);
    chat_model_write(REFUSING, first);
    chat_model_write(SPACED, spaced);
    memory_free(chatml);
    memory_free(first);
    memory_free(spaced);
    return 0;
}

/* ---- Runs ---- */

static void write_prompt(const char *content)
{
    FILE *file = fopen(PROMPT, "wb");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Runs a command, and cuts its text before the line of figures. */
static char *run_text(const char *const *words)
{
    static char text[8192];
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    char *figures = strstr(text, "\n[load ");
    assert_non_null(figures);
    *figures = 0;
    return text;
}

/* The reply to a whole prompt that spells the control words itself. */
static const char *continue_prompt(const char *prompt, const char *tokens)
{
    const char *const words[] = {MODEL, "-p", prompt, "-n", tokens, "--greedy", NULL};
    return run_text(words);
}

/* Runs a conversation and compares each reply with that to one long prompt. */
static void check_turns(const char *const *lines, const char *system, const char *tokens)
{
    const char *const words[] = {MODEL,
                                 "--interactive",
                                 "--chat",
                                 "-n",
                                 tokens,
                                 "--greedy",
                                 system ? "--system" : NULL,
                                 system,
                                 NULL};
    char whole[4096] = "", expected[4096] = "", input[1024] = "";
    unsigned ended = 0;
    if (system)
        sprintf(whole, "<|im_start|>system\n%s<|im_end|>\n", system);
    for (int turn = 0; turn < 3; turn++) {
        sprintf(whole + strlen(whole), "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n",
                lines[turn]);
        const char *reply = continue_prompt(whole, tokens);
        ended += strlen(reply) < (size_t)atoi(tokens);
        sprintf(expected + strlen(expected), "%s\n", reply);
        sprintf(whole + strlen(whole), "%s<|im_end|>\n", reply);
        sprintf(input + strlen(input), "%s\n", lines[turn]);
    }
    write_prompt(input);
    assert_non_null(freopen(PROMPT, "r", stdin));
    assert_string_equal(run_text(words), expected);
    print_message("%u of 3 replies end by themselves within %s tokens\n", ended, tokens);
    assert_int_equal(ended > 0, atoi(tokens) > 100);
}

/* Replies end by <|im_end|> or because no more tokens were asked for. The history is the same. */
static void three_turns_are_one_long_prompt(void **unused)
{
    static const char *const lines[] = {"The open system call", "and the file", "What is a socket"};
    (void)unused;
    check_turns(lines, NULL, "200");
    check_turns(lines, NULL, "7");
    check_turns(lines, "You are a manual page", "30");
}

/* Llama 2 ends a reply with a space and eos. If the reply is cut behind a space, that one counts.
 */
static void a_reply_that_is_cut_at_a_space(void **unused)
{
    static const char first[] = "[INST] What is a socket [/INST]",
                      next[] = "</s><s>[INST] and the file [/INST]";
    char whole[1024], reply[512], tokens[8], expected[1024];
    const char *const words[] = {SPACED, "--interactive", "--chat", "-n", tokens, "--greedy", NULL};
    (void)unused;
    snprintf(reply, sizeof reply, "%s", continue_prompt(first, "100"));
    char *space = strchr(reply + 8, ' ');
    assert_non_null(space);
    space[1] = 0;
    snprintf(tokens, sizeof tokens, "%zu", strlen(reply));
    snprintf(whole, sizeof whole, "%s%s%s", first, reply, next);
    snprintf(expected, sizeof expected, "%s\n%s\n", reply, continue_prompt(whole, tokens));
    write_prompt("What is a socket\nand the file\n");
    assert_non_null(freopen(PROMPT, "r", stdin));
    assert_string_equal(run_text(words), expected);
}

/* A batch writes newlines as \n. */
static void append_line(char *to, const char *reply)
{
    char *at = to + strlen(to);
    for (; *reply; reply++) {
        if (*reply == '\n' || *reply == '\\')
            *at++ = '\\';
        *at++ = *reply == '\n' ? 'n' : *reply;
    }
    strcpy(at, "\n");
}

/* A prompt is a conversation of one turn, alone, in a batch, and before lines of input. */
static void prompts_and_batches(void **unused)
{
    static const char form[] = "<|im_start|>system\nBrief<|im_end|>\n<|im_start|>user\n%s<|im_end|>"
                               "\n<|im_start|>assistant\n";
    static const char next[] = "<|im_end|>\n<|im_start|>user\nFiles are<|im_end|>\n"
                               "<|im_start|>assistant\n";
    static const char *const prompts[] = {"The open", "Files are"};
    const char *const batch[] = {MODEL,   "--batch", PROMPT, "--chat",   "--system",
                                 "Brief", "-n",      "24",   "--greedy", NULL};
    const char *const lines[] = {MODEL,    "--interactive", "-p",    "The open",
                                 "--chat", "--system",      "Brief", "-n",
                                 "24",     "--greedy",      NULL};
    char whole[4096], first[1024] = "", expected[4096] = "";
    (void)unused;
    for (int i = 0; i < 2; i++) {
        const char *const words[] = {MODEL,   "-p", prompts[i], "--chat",   "--system",
                                     "Brief", "-n", "24",       "--greedy", NULL};
        char reply[1024];
        snprintf(whole, sizeof whole, form, prompts[i]);
        snprintf(reply, sizeof reply, "%s", continue_prompt(whole, "24"));
        assert_string_equal(run_text(words), reply);
        append_line(expected, reply);
        if (i == 0)
            strcpy(first, reply);
    }
    write_prompt("The open\r\n\r\nFiles are\r\n"); /* lines as Windows ends them */
    assert_string_equal(run_text(batch), expected);
    sprintf(whole, form, prompts[0]);
    strcat(strcat(whole, first), next);
    snprintf(expected, sizeof expected, "%s\n%s\n", first, continue_prompt(whole, "24"));
    write_prompt("Files are\r\n");
    assert_non_null(freopen(PROMPT, "r", stdin));
    assert_string_equal(run_text(lines), expected);
}

/* The ids of a prompt: one bos, then the template. Words of the user are bytes. */
static void ids_of_a_prompt(void **unused)
{
    static const char *const words[] = {MODEL, "-p", "<s><|im_end|>", "--chat",
                                        "-n",  "1",  "--json",        NULL};
    char text[4096];
    (void)unused;
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    assert_non_null(strstr(text, "\"prompt_ids\":[1,300,120,118,104,117,13,"
                                 "63,118,65,63,127,108,112,98,104,113,103,127,65,"
                                 "47,13,300,100,"));
}

static void refusals(void **unused)
{
    static const struct {
        const char *words[8];
        int code;
    } cases[] = {{{BUNDLED, "-p", "a", "--chat"}, EXIT_FAILED},
                 {{MODEL, "-p", "a", "--system", "b"}, EXIT_USAGE},
                 {{MODEL, "--chat"}, EXIT_USAGE},
                 {{REFUSING, "-p", "a", "--chat", "--system", "b", "-n", "1"}, EXIT_FAILED}};
    static const char *const taken[] = {REFUSING, "-p", "a", "--chat", "-n", "1", NULL};
    char text[4096];
    (void)unused;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const char *words[9] = {0};
        memcpy(words, cases[i].words, sizeof cases[i].words);
        assert_int_equal(run_command(command_generate, words, text, sizeof text), cases[i].code);
    }
    run_text(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_turns_are_one_long_prompt),
        cmocka_unit_test(a_reply_that_is_cut_at_a_space),
        cmocka_unit_test(prompts_and_batches),
        cmocka_unit_test(ids_of_a_prompt),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, make_models, NULL);
}
