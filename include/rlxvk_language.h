/*
 * rlxvk: text from language models. A model from a GGUF file (rlxvk_model.h) has a tokenizer. With
 * caches of keys and values it becomes a language, which generates text:
 *
 *   rlxvk_model *model = NULL;
 *   rlxvk_tokenizer *tokenizer = NULL;
 *   rlxvk_language *language = NULL;
 *   rlxvk_language_options options = {.capacity = 4096};
 *   if (rlxvk_model_open("model.gguf", NULL, &model) ||
 *       rlxvk_tokenizer_open(model, NULL, &tokenizer) ||
 *       rlxvk_language_create(tokenizer, context, &options, &language) ||
 *       rlxvk_language_write(language, "Once upon a time", 16, NULL))
 *       puts(rlxvk_last_error());
 *
 * rlxvk_language_write continues a text, and rlxvk_language_reply answers a user's turn. Both hand
 * each token to a reader as soon as it is known. Programs that choose tokens themselves, or run
 * several texts at once, call rlxvk_language_extend or rlxvk_language_extend_each.
 *
 * MODELS.md lists architectures, tokenizers and chat templates. All of this header is since 0.3.
 */
#ifndef RLXVK_LANGUAGE_H
#define RLXVK_LANGUAGE_H

#include <rlxvk_model.h>
#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stands for no token. */
#define RLXVK_NO_TOKEN UINT32_MAX

/* ---- Texts and tokens ---- */

/* A tokenizer does not change. Several threads may use it. */
typedef struct rlxvk_tokenizer rlxvk_tokenizer;

typedef struct rlxvk_tokenizer_options {
    uint32_t year, month, day; /* some chat templates tell it to the model; 0: today */
    size_t struct_size;
} rlxvk_tokenizer_options;

/*
 * Reads the tokenizer and the chat template of a GGUF file. No device is needed. The model must
 * outlive the tokenizer. If the template is missing or not recognized, only rlxvk_tokenizer_turn
 * and rlxvk_language_reply fail. `options` may be NULL.
 *   E_UNSUPPORTED      the file has another format than GGUF, or another kind of tokenizer
 *   E_UNKNOWN_NAME     a key that the tokenizer needs is missing
 *   E_LENGTH, E_RANGE  arrays or ids do not fit the vocabulary
 *   E_ATTR             a date with a member that is 0 or too large, or a bad struct_size
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_tokenizer_open(rlxvk_model *model,
                                                   const rlxvk_tokenizer_options *options,
                                                   rlxvk_tokenizer **out_tokenizer);
void rlxvk_tokenizer_destroy(rlxvk_tokenizer *tokenizer);

/* Facts of the file. Strings live as long as the tokenizer. */
typedef struct rlxvk_tokenizer_info {
    uint32_t vocabulary;     /* number of tokens */
    uint32_t begin, end;     /* tokens; RLXVK_NO_TOKEN if the file names none */
    bool adds_begin;         /* texts begin with `begin` */
    uint64_t context;        /* tokens of the longest text that the model was made for */
    const char *chat_family; /* of the chat template, as in MODELS.md; NULL: it is missing or not
                                recognized */
    const char *chat_version;
    size_t struct_size;
} rlxvk_tokenizer_info;

/* Errors: E_NULL. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_tokenizer_describe(const rlxvk_tokenizer *tokenizer,
                                                       rlxvk_tokenizer_info *out_info);

/*
 * Converts bytes, which are usually UTF-8, to tokens. If they spell a control token, they become
 * it. If `begins`, the token `begin` is put in front, provided that the model wants it. Writes at
 * most `capacity` tokens (`tokens` may be NULL if it is 0). *out_count is how many there are.
 *   E_RANGE  no token stands for a byte, and the vocabulary has no unknown token
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_tokenizer_encode(const rlxvk_tokenizer *tokenizer,
                                                     const char *bytes, size_t length, bool begins,
                                                     uint32_t *tokens, size_t capacity,
                                                     size_t *out_count);
/* Converts tokens to bytes, without a 0 at the end. The last character may be incomplete. Control
 * tokens and numbers outside the vocabulary add no bytes. Writes at most `capacity` bytes (`bytes`
 * may be NULL if it is 0). *out_length is how many there are. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_tokenizer_decode(const rlxvk_tokenizer *tokenizer,
                                                     const uint32_t *tokens, size_t count,
                                                     char *bytes, size_t capacity,
                                                     size_t *out_length);
/* Whether a token ends a text or a reply. */
bool rlxvk_tokenizer_is_end(const rlxvk_tokenizer *tokenizer, uint32_t token);
/* Whether a text that begins spells the token `begin` although rlxvk_tokenizer_encode puts it in
 * front. Then the tokens have it twice, which models are not made for. */
bool rlxvk_tokenizer_doubles_begin(const rlxvk_tokenizer *tokenizer, const char *bytes,
                                   size_t length);

typedef struct rlxvk_turn_options {
    const char *system; /* what the model is told before the first turn; NULL: the template's own,
                           if it has one */
    bool follows;       /* the turn follows a reply */
    uint32_t last;      /* ... of which this is the last token before its end; RLXVK_NO_TOKEN: there
                           is none */
    size_t struct_size;
} rlxvk_turn_options;

/*
 * Converts a user's turn to tokens, together with the words of the chat template, up to the place
 * of the reply. Control tokens that the texts spell stay text. Writes as rlxvk_tokenizer_encode.
 * `options` may be NULL: the turn begins a conversation.
 *   E_UNKNOWN_NAME  the file has no template, or the vocabulary lacks the token that ends a reply
 *   E_UNSUPPORTED   the template is not recognized, has no place for a system text, or needs one
 *   E_ATTR          a system text with a turn that follows; or a bad struct_size
 *   and the errors of rlxvk_tokenizer_encode
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_tokenizer_turn(const rlxvk_tokenizer *tokenizer,
                                                   const char *bytes, size_t length,
                                                   const rlxvk_turn_options *options,
                                                   uint32_t *tokens, size_t capacity,
                                                   size_t *out_count);

/* ---- Languages ---- */

/* A language is used by one thread at a time. It has sequences: texts as tokens, each with its own
 * part of the caches. Functions that take no sequence use sequence 0. After an error, sequences are
 * as before. */
typedef struct rlxvk_language rlxvk_language;

/* Called from time to time while weights are uploaded. */
typedef void rlxvk_language_progress(void *user, uint64_t done_bytes, uint64_t total_bytes);

typedef struct rlxvk_language_options {
    uint64_t capacity;  /* most tokens of a sequence; 0: the model's context. Caches for all of them
                           are allocated at once */
    uint32_t sequences; /* 0: 1 */
    const rlxvk_sample_options *sampling; /* how tokens are chosen; NULL: always the most likely */
    uint64_t seed;             /* of random numbers. The same calls then choose the same tokens */
    rlxvk_precision precision; /* of matrix products */
    rlxvk_dtype cache;         /* of keys and values: F32 or F16 */
    uint64_t device_bytes;     /* most device memory; 0: no limit. Weights beyond it stay in host
                                  memory,     which the device reads */
    /* For models with two sets of rotary divisors (Phi 3, Phi 4 mini), if the capacity exceeds
     * their original context. False: a sequence uses the short divisors while it fits that context.
     * Once it is longer, all its tokens run again with the long ones, as in transformers. True: it
     * uses the long ones from its first token on. */
    bool long_divisors;
    rlxvk_language_progress *progress; /* may be NULL */
    void *user;                        /* for `progress` */
    size_t struct_size;
} rlxvk_language_options;

/*
 * Compiles the graph of one step, and uploads the weights. The tokenizer, its model and the context
 * must outlive the language. `options` may be NULL.
 *   E_RANGE         the capacity is above the model's context
 *   E_DTYPE         caches cannot have this dtype
 *   E_TOO_LARGE     weights and caches exceed the device's memory, and device_bytes is 0
 *   E_UNKNOWN_NAME  a tensor is missing
 *   E_SHAPE         the dims of a tensor do not fit the metadata
 *   E_UNSUPPORTED   no kernel reads the types of some tensors (the text lists them)
 *   and the errors of rlxvk_compile and rlxvk_set_params
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_create(const rlxvk_tokenizer *tokenizer,
                                                    rlxvk_context *context,
                                                    const rlxvk_language_options *options,
                                                    rlxvk_language **out_language);
void rlxvk_language_destroy(rlxvk_language *language);
/*
 * Changes how tokens are chosen from now on; both arguments are as in rlxvk_language_options.
 * Sequences, weights and caches stay. If only the seed is another, it takes no time. Otherwise
 * graphs are compiled again: the step at once, others when they are next needed.
 *   E_ATTR  the temperature is negative or not finite, top_p is above 1, or a bad struct_size
 *   and the errors of rlxvk_compile. After an error, nothing has changed
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_set_sampling(rlxvk_language *language,
                                                          const rlxvk_sample_options *sampling,
                                                          uint64_t seed);

/* Takes a token that was just generated, and the bytes that it adds to the text: none if it ends
 * the text. The bytes live during the call, and the last character may be incomplete. To end the
 * generation, return false. It must not call functions of this language. */
typedef bool rlxvk_language_reader(void *user, uint32_t token, const char *bytes, size_t length);

typedef struct rlxvk_generate_options {
    uint64_t tokens; /* at most so many are generated; 0: until the text ends or is full */
    rlxvk_language_reader *reader; /* may be NULL */
    void *user;                    /* for `reader` */
    float
        *logits; /* gets those after the tokens that are given: `vocabulary` numbers. May be NULL */
    size_t struct_size;
} rlxvk_generate_options;

/*
 * Appends tokens to sequence 0, and generates those that follow. It ends after a token that ends
 * the text, after `tokens` tokens, if the reader returns false, or if the sequence is full. The
 * token that was generated last becomes part of the sequence with the next call, unless it ends the
 * text. A call without tokens goes on from it. After an error between two tokens, the sequence has
 * those that the reader got. `options` may be NULL.
 *   E_RANGE      no tokens are given and none is to go on from; or the sequence is too full
 *   E_INDEX_OOB  a token is outside the vocabulary
 *   and the errors of rlxvk_compile and rlxvk_run
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_generate(rlxvk_language *language,
                                                      const uint32_t *tokens, size_t count,
                                                      const rlxvk_generate_options *options);
/* The same for a text. It continues the sequence, or begins it if the sequence is empty. Errors as
 * rlxvk_language_generate and rlxvk_tokenizer_encode. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_write(rlxvk_language *language, const char *bytes,
                                                   size_t length,
                                                   const rlxvk_generate_options *options);
/* Generates the reply to a user's turn. `system` is used if the sequence is empty, and may be NULL.
 * Errors as rlxvk_language_generate and rlxvk_tokenizer_turn. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_reply(rlxvk_language *language, const char *system,
                                                   const char *bytes, size_t length,
                                                   const rlxvk_generate_options *options);

/* Compiles the graphs that a call needs if it appends `count` tokens to sequence 0. Otherwise that
 * call compiles them. Errors as rlxvk_language_generate. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_prepare(rlxvk_language *language, size_t count);
/* Empties a sequence. E_RANGE: the number is too large. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_rewind(rlxvk_language *language, uint32_t sequence);
/* How many more tokens a sequence can take. E_RANGE: the number is too large. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_room(const rlxvk_language *language, uint32_t sequence,
                                                  uint64_t *out_tokens);

/* Appends tokens to one sequence. `logits`, `vocabulary` numbers, are those after the last token;
 * `next` is the token chosen from them. Both may be NULL. Errors as rlxvk_language_generate.
 * E_RANGE: the number of the sequence is too large. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_extend(rlxvk_language *language, uint32_t sequence,
                                                    const uint32_t *tokens, size_t count,
                                                    float *logits, uint32_t *next);
/*
 * Appends counts[s] tokens, tokens[s], to each sequence s. Both arrays have an item for each
 * sequence. Then next[s] is the token that follows, but if counts[s] is 0, both sequence and
 * next[s] stay. `next` may be NULL. Sequences run together, or one after the other, whichever is
 * faster. Errors as rlxvk_language_generate.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_extend_each(rlxvk_language *language,
                                                         const uint32_t *const *tokens,
                                                         const size_t *counts, uint32_t *next);
/* Compiles the graphs that rlxvk_language_extend_each needs for such counts. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_prepare_each(rlxvk_language *language,
                                                          const size_t *counts);

typedef struct rlxvk_language_report {
    uint32_t run_dispatches, step_dispatches; /* of the last run of several tokens; of one token */
    uint32_t graphs, host_steps;              /* compiled so far; in all of them */
    uint32_t longest_run;                     /* most tokens of a text that run at once */
    uint64_t step_runs, step_submissions;     /* so far, of steps */
    uint64_t device_bytes;                    /* everything except staging */
    uint64_t weight_bytes, cache_bytes;       /* shared by all graphs */
    uint64_t prepared_bytes;                  /* computed from weights and kept */
    uint64_t state_bytes, scratch_bytes;      /* inputs and results; temporaries of a run */
    uint64_t host_weight_bytes;               /* weights in host memory, no part of the others */
    uint64_t staging_bytes; /* for transfers between host and device; some is in host memory */
    double compile_seconds; /* for plans, pipelines and recordings of all graphs so far */
    size_t struct_size;
} rlxvk_language_report;

/* Errors: E_NULL. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_language_usage(const rlxvk_language *language,
                                                   rlxvk_language_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
