/* The struct of rlxvk_tokenizer, which languages read. See rlxvk_language.h. */
#ifndef RLXVK_LANGUAGE_FILE_H
#define RLXVK_LANGUAGE_FILE_H

#include "model/language/chat.h"

struct rlxvk_tokenizer {
    const gguf_file *file; /* the model's */
    uint64_t context;
    tokenizer *words;
    chat *chat; /* NULL: there is none, because of this error */
    rlxvk_status chat_status;
    status_sentence chat_error;
};

/* Appends the tokens of a text, as rlxvk_tokenizer_encode. */
RLXVK_MUST_CHECK rlxvk_status language_encode(const rlxvk_tokenizer *t, const char *bytes,
                                              size_t length, bool begins, token_list *out);
/* Appends the tokens of a user's turn, as rlxvk_tokenizer_turn. */
RLXVK_MUST_CHECK rlxvk_status language_turn(const rlxvk_tokenizer *t, const char *bytes,
                                            size_t length, const rlxvk_turn_options *options,
                                            token_list *out);

#endif
