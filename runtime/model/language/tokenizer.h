/*
 * Converts text to token ids and back, as the tokenizer.ggml.* keys of a GGUF file define it. There
 * are two kinds: `llama` is like SentencePiece and merges by score. `gpt2` is byte-level BPE,
 * merges by rank, and splits the text first as presplit.c says. If a text spells a control token, a
 * user-defined token or the unknown token, it becomes that token.
 */
#ifndef RLXVK_TOKENIZER_H
#define RLXVK_TOKENIZER_H

#include "model/language/gguf.h"

#include <rlxvk_language.h>

typedef VECTOR(uint32_t) token_list;
typedef VECTOR(char) token_text;

typedef struct tokenizer tokenizer;

/* Copies everything that it needs, so the file may be closed afterwards.
 *   E_UNSUPPORTED      another kind of tokenizer, or an unknown pre-split flavour
 *   E_UNKNOWN_NAME     a required key is missing
 *   E_LENGTH, E_RANGE  arrays or ids do not fit the vocabulary */
RLXVK_MUST_CHECK rlxvk_status tokenizer_create(gguf_file *file, tokenizer **out);
void tokenizer_destroy(tokenizer *t); /* accepts NULL */

uint32_t tokenizer_size(const tokenizer *t);
/* These return RLXVK_NO_TOKEN if the file names no such token. */
uint32_t tokenizer_bos(const tokenizer *t);
uint32_t tokenizer_eos(const tokenizer *t);
/* Whether the model wants prompts to begin with bos. */
bool tokenizer_adds_bos(const tokenizer *t);
/* Whether the token ends a generation. Either a key of the file says so (eos, eot, eom, ...), or it
 * has a name with which chat models end their turns. */
bool tokenizer_is_end(const tokenizer *t, uint32_t id);

/* Whether the text begins with bos although the model also wants one in front. There would be two.
 */
bool tokenizer_doubles_bos(const tokenizer *t, const char *bytes, size_t length);

/* Appends the ids of a text to `out`. The text may be any bytes. If `add_bos`, bos is put in front,
 * provided that there is one. E_RANGE: no token stands for a byte, and the vocabulary has no
 * unknown token. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_encode(const tokenizer *t, const char *bytes, size_t length,
                                               bool add_bos, token_list *out);

/* Appends the ids of a text that continues another one: no space is put in front of it. Errors as
 * tokenizer_encode. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_encode_more(const tokenizer *t, const char *bytes,
                                                    size_t length, token_list *out);

/* Appends the ids of a text in which no control token counts, whatever it spells. User-defined
 * tokens do, because they stand for ordinary text. `before` is the token in front of the text:
 * RLXVK_NO_TOKEN or a control token if the text begins there. If it is a token of text, the new
 * text continues that one. Errors as tokenizer_encode. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_encode_plain(const tokenizer *t, uint32_t before,
                                                     const char *bytes, size_t length,
                                                     token_list *out);

/* The token that is written so in the file; RLXVK_NO_TOKEN if there is none. */
uint32_t tokenizer_find(const tokenizer *t, const char *written);
/* Makes a token a control token, because a chat template uses it as one. Some files have it as
 * another kind. */
void tokenizer_make_control(tokenizer *t, uint32_t id);

/* The bytes that one token adds to a text, for streaming. They may be an incomplete UTF-8 sequence.
 * Control tokens and ids outside the vocabulary add none. They live as long as the tokenizer. */
gguf_string tokenizer_token_bytes(const tokenizer *t, uint32_t id);

/* Appends the text of a whole sequence: the bytes of its tokens without the space that encoding put
 * in front. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_decode(const tokenizer *t, const uint32_t *ids,
                                               size_t count, token_text *out);

#endif
