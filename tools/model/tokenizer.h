/*
 * Text to token ids and back, as a GGUF file's tokenizer.ggml.* keys define it: `llama`
 * (SentencePiece-like, merges by score) and `gpt2` (byte-level BPE, merges by rank) with the
 * pre-split flavours of presplit.c. Control tokens, user-defined tokens and the unknown token stand
 * for themselves wherever a text has their spelling.
 */
#ifndef RLXVK_TOKENIZER_H
#define RLXVK_TOKENIZER_H

#include "model/gguf.h"

#define TOKEN_NONE UINT32_MAX

typedef VECTOR(uint32_t) token_list;
typedef VECTOR(char) token_text;

typedef struct tokenizer tokenizer;

/* Copies what it needs: the file may be closed afterwards. E_UNSUPPORTED: another model or flavour;
 * E_UNKNOWN_NAME: a key that must be there is not; E_LENGTH, E_RANGE: arrays or ids that do not fit
 * the vocabulary. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_create(gguf_file *file, tokenizer **out);
void tokenizer_destroy(tokenizer *t); /* takes NULL */

uint32_t tokenizer_size(const tokenizer *t);
/* TOKEN_NONE where the file names none. */
uint32_t tokenizer_bos(const tokenizer *t);
uint32_t tokenizer_eos(const tokenizer *t);
/* The model's own wish whether prompts begin with bos. */
bool tokenizer_adds_bos(const tokenizer *t);
/* Ends a generation: a key of the file says so (eos, eot, eom, ...), or its name is one that chat
 * models end their turns with. */
bool tokenizer_is_end(const tokenizer *t, uint32_t id);

/* Whether the text begins with bos although the model wants one put in front: there would be two.
 */
bool tokenizer_doubles_bos(const tokenizer *t, const char *bytes, size_t length);

/* Appends the ids of `length` bytes of text, any bytes, to `out`; `add_bos` puts bos in front (if
 * there is one). E_RANGE: a byte that no token stands for, in a vocabulary without unknown token.
 */
RLXVK_MUST_CHECK rlxvk_status tokenizer_encode(const tokenizer *t, const char *bytes, size_t length,
                                               bool add_bos, token_list *out);

/* The bytes that one token adds to a text: for streaming. Possibly an incomplete UTF-8 sequence;
 * none for control tokens and for ids outside the vocabulary. Lives as long as the tokenizer. */
gguf_string tokenizer_token_bytes(const tokenizer *t, uint32_t id);

/* Appends the text of a whole sequence: the tokens' bytes, less the space that encoding put in
 * front. */
RLXVK_MUST_CHECK rlxvk_status tokenizer_decode(const tokenizer *t, const uint32_t *ids,
                                               size_t count, token_text *out);

#endif
