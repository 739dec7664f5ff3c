/* The options of rlxvk generate and the state of one call. Shared by its files. */
#ifndef RLXVK_GENERATE_H
#define RLXVK_GENERATE_H

#include "base/base.h"

#include <rlxvk_language.h>

typedef VECTOR(uint32_t) token_list;
typedef VECTOR(char) token_text;

typedef struct generate_options {
    const char *model, *prompt, *file, *batch, *device, *logits, *system;
    uint64_t tokens, context; /* context 0: the length that prompt and tokens need */
    bool tokens_given, interactive, chat, json, help;
    bool greedy;
    rlxvk_sample_options sampling;
    rlxvk_precision precision;
    rlxvk_dtype cache;
    uint64_t seed, parallel; /* parallel: prompts at once */
    uint64_t device_bytes;   /* most device memory; 0: no limit */
} generate_options;

/* One prompt of a batch and its answer. */
typedef struct batch_item {
    token_list prompt, made;
    bool done;
} batch_item;

/* The state of one call. Begins zeroed. */
typedef struct session {
    const generate_options *options;
    rlxvk_model *model;
    rlxvk_tokenizer *tokenizer;
    rlxvk_tokenizer_info info;
    rlxvk_context *context;
    rlxvk_language *language;
    token_text text; /* the prompt */
    token_list prompt, made;
    VECTOR(batch_item) items; /* with a batch: used instead of text */
    float *logits;
    bool warned;                /* a prompt with two begin tokens was reported */
    double since;               /* when the latest run began */
    uint64_t turns, steps;      /* prompts and steps that ran */
    double load_seconds;        /* without compiling */
    double first_token_seconds; /* of the first run of a prompt */
    double first_seconds;       /* ... and of a step */
    double prompt_seconds, decode_seconds;
    uint64_t timed_prompt, timed_steps; /* tokens in the timed runs */
} session;

/* Reads prompt, model and device, and compiles the graphs that the prompt needs. */
RLXVK_MUST_CHECK rlxvk_status generate_open(session *s);
void generate_close(session *s);
/* Runs the prompt and generates text, which goes to standard output unless JSON is wanted. Then
 * runs the prompt again to measure its speed. */
RLXVK_MUST_CHECK rlxvk_status generate_text(session *s);
/* Answers each line of standard input. */
RLXVK_MUST_CHECK rlxvk_status generate_turns(session *s);
/* Adds the run of a prompt, or a step that made `tokens` tokens, to the measurements. */
void generate_time_prompt(session *s, double seconds, uint64_t tokens);
void generate_time_step(session *s, double seconds, uint64_t tokens);
/* Answers all prompts of a batch, several at once. Prints a line for each, in order, unless JSON is
 * wanted. */
RLXVK_MUST_CHECK rlxvk_status generate_batch(session *s);
/* Prints an answer as one line: newlines as \n, backslashes as two. */
RLXVK_MUST_CHECK rlxvk_status generate_print_line(const session *s, const token_list *made);
/* Prints the measurements; as JSON, also the texts and the rest. */
RLXVK_MUST_CHECK rlxvk_status generate_print(const session *s);

#endif
