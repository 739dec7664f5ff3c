/* Shared by the files of rlxvk generate: its options, and all that one call holds. */
#ifndef RLXVK_GENERATE_H
#define RLXVK_GENERATE_H

#include "model/llama.h"
#include "model/tokenizer.h"

typedef struct generate_options {
    const char *model, *prompt, *file, *batch, *device, *logits;
    uint64_t tokens, context; /* context 0: what prompt and tokens need */
    bool tokens_given, interactive, json, help;
    bool greedy;
    rlxvk_sample_options sampling;
    rlxvk_precision precision;
    rlxvk_dtype cache;
    uint64_t seed, parallel; /* prompts at once */
} generate_options;

/* One prompt of a batch and what follows it. */
typedef struct batch_item {
    token_list prompt, made;
    bool done;
} batch_item;

/* Everything of one call; zeroed at birth. */
typedef struct session {
    const generate_options *options;
    gguf_file *file;
    tokenizer *tokenizer;
    rlxvk_context *context;
    llama *model;
    token_text text; /* the prompt */
    token_list prompt, made;
    VECTOR(batch_item) items; /* instead, of a batch */
    float *logits;
    uint32_t next;              /* the latest token, chosen on the device */
    bool pending;               /* it is not part of the model's sequence yet */
    bool warned;                /* of a prompt with two bos */
    uint64_t turns, steps;      /* prompts and steps that were run */
    double load_seconds;        /* without compiling */
    double first_token_seconds; /* of the first run of a prompt */
    double first_seconds;       /* ... and of a step, too */
    double prompt_seconds, decode_seconds;
    uint64_t timed_prompt, timed_steps; /* tokens in these */
} session;

/* Reads prompt, model and device, and compiles what the prompt needs. */
RLXVK_MUST_CHECK rlxvk_status generate_open(session *s);
void generate_close(session *s);
/* Runs the prompt and what follows it, as text to standard output unless there is to be JSON; then
 * the prompt once more for its speed. */
RLXVK_MUST_CHECK rlxvk_status generate_text(session *s);
/* Answers line after line of standard input, until its end. */
RLXVK_MUST_CHECK rlxvk_status generate_turns(session *s);
/* Appends ids to the model's sequence; the token that follows them is the next. */
RLXVK_MUST_CHECK rlxvk_status generate_run_prompt(session *s, const token_list *ids);
/* Appends pieces to the model's sequences, at once; next[i] follows piece i, unless that is empty.
 */
RLXVK_MUST_CHECK rlxvk_status generate_run_prompts(session *s, const llama_piece *pieces,
                                                   uint32_t count, uint32_t *next);
/* Counts a step that made so many tokens. */
void generate_time_step(session *s, double seconds, uint64_t tokens);
/* Answers all prompts of a batch, some at once; a line each, in order, unless there is to be JSON.
 */
RLXVK_MUST_CHECK rlxvk_status generate_batch(session *s);
/* An answer as a line: a newline in it as \\n, a backslash as two. */
RLXVK_MUST_CHECK rlxvk_status generate_print_line(const session *s, const token_list *made);
/* The figures, and what else JSON says. */
RLXVK_MUST_CHECK rlxvk_status generate_print(const session *s);

#endif
