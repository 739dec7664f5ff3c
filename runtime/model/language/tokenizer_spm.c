/*
 * A tokenizer like SentencePiece ("llama"). Every space becomes U+2581. Characters are joined while
 * the joined text is a token, and the highest score comes first. If a symbol is not a token at the
 * end, it is spelled in byte tokens <0xHH>.
 *
 * If the model wants a space in front, each part between special tokens gets one. Transformers (in
 * its "legacy" mode) and llama.cpp do the same. Files have no key for this.
 */
#include "model/language/tokenizer_internal.h"
#include "model/language/utf8.h"

#include <stdio.h>
#include <string.h>

#define SPACE_MARK        "\xe2\x96\x81" /* U+2581 */
#define SPACE_MARK_LENGTH 3

/* Replaces spaces by marks, because files spell user-defined tokens in both ways. */
static rlxvk_status mark_written(tokenizer *t, token *item)
{
    const char *bytes = item->written.data;
    size_t length = (size_t)item->written.length, spaces = 0, used = 0;
    for (size_t i = 0; i < length; i++)
        spaces += bytes[i] == ' ';
    if (spaces == 0)
        return RLXVK_OK;
    char *out = arena_allocate(&t->memory, length + spaces * (SPACE_MARK_LENGTH - 1));
    if (out == NULL)
        return status_fail_memory("tokenizer vocabulary");
    for (size_t i = 0; i < length; i++) {
        bool mark = bytes[i] == ' ';
        memcpy(out + used, mark ? SPACE_MARK : bytes + i, mark ? SPACE_MARK_LENGTH : 1);
        used += mark ? SPACE_MARK_LENGTH : 1;
    }
    item->written = (gguf_string){out, used};
    return RLXVK_OK;
}

/* Replaces marks by spaces. */
static rlxvk_status decode_marks(tokenizer *t, token *item)
{
    char *out = arena_allocate(&t->memory, (size_t)item->written.length);
    if (out == NULL)
        return status_fail_memory("tokenizer vocabulary");
    item->decoded = (gguf_string){out, 0};
    for (uint64_t i = 0; i < item->written.length;) {
        bool mark = item->written.length - i >= SPACE_MARK_LENGTH &&
                    memcmp(item->written.data + i, SPACE_MARK, SPACE_MARK_LENGTH) == 0;
        out[item->decoded.length++] = mark ? ' ' : item->written.data[i];
        i += mark ? SPACE_MARK_LENGTH : 1;
    }
    return RLXVK_OK;
}

static rlxvk_status find_byte_tokens(tokenizer *t)
{
    char *bytes = arena_allocate(&t->memory, 256);
    if (bytes == NULL)
        return status_fail_memory("tokenizer byte tokens");
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        gguf_string string = {name, (uint64_t)snprintf(name, sizeof name, "<0x%02X>", i)};
        uint32_t id = tokenizer_find_string(&t->ids, &string, 1);
        bytes[i] = (char)i;
        t->byte_ids[i] = id;
        if (id != RLXVK_NO_TOKEN)
            t->tokens[id].decoded = (gguf_string){bytes + i, 1};
    }
    return RLXVK_OK;
}

static rlxvk_status read_scores(tokenizer *t, const gguf_file *file)
{
    const gguf_pair *scores = gguf_find(file, "tokenizer.ggml.scores");
    if (scores == NULL || scores->type != GGUF_F32 || scores->count != t->size)
        return status_fail(scores ? RLXVK_E_LENGTH : RLXVK_E_UNKNOWN_NAME,
                           "tokenizer.ggml.scores: a score for each of the %u tokens is needed",
                           t->size);
    for (uint32_t i = 0; i < t->size; i++) {
        double score;
        if (!gguf_element_f64(scores, i, &score) || score != score)
            return status_fail(RLXVK_E_RANGE, "tokenizer.ggml.scores: the score of token %u is NaN",
                               i);
        t->tokens[i].score = (float)score;
    }
    return RLXVK_OK;
}

static bool score_key(const tokenizer *t, gguf_string left, gguf_string right, double *out)
{
    gguf_string pieces[2] = {left, right};
    uint32_t id = tokenizer_find_token(t, pieces, 2);
    if (id == RLXVK_NO_TOKEN)
        return false;
    *out = -(double)t->tokens[id].score;
    return true;
}

/* Copies the text with marks for spaces, and with one mark in front if `add_space`. The caller
 * frees it. */
static char *mark_spaces(const char *bytes, size_t length, bool add_space, size_t *out_length)
{
    size_t spaces = add_space ? 1 : 0, used = 0;
    for (size_t i = 0; i < length; i++)
        spaces += bytes[i] == ' ';
    char *marked = memory_allocate(length + spaces * SPACE_MARK_LENGTH);
    if (marked == NULL)
        return NULL;
    if (add_space) {
        memcpy(marked, SPACE_MARK, SPACE_MARK_LENGTH);
        used = SPACE_MARK_LENGTH;
    }
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == ' ') {
            memcpy(marked + used, SPACE_MARK, SPACE_MARK_LENGTH);
            used += SPACE_MARK_LENGTH;
        } else {
            marked[used++] = bytes[i];
        }
    }
    *out_length = used;
    return marked;
}

static rlxvk_status spell_byte(const tokenizer *t, uint8_t byte, token_list *out)
{
    uint32_t id = t->byte_ids[byte] != RLXVK_NO_TOKEN ? t->byte_ids[byte] : t->unknown;
    if (id == RLXVK_NO_TOKEN)
        return status_fail(RLXVK_E_RANGE,
                           "tokenizer: no token for byte 0x%02x, and no unknown token", byte);
    return tokenizer_append_token(out, id);
}

/* Adds a symbol's token, or its bytes. If a mark is not a token, it is spelled as a space, so that
 * decoding returns the original text. */
static rlxvk_status emit_symbol(const tokenizer *t, gguf_string text_of_symbol, token_list *out)
{
    rlxvk_status status = RLXVK_OK;
    uint32_t id = tokenizer_find_token(t, &text_of_symbol, 1);
    if (id != RLXVK_NO_TOKEN)
        return tokenizer_append_token(out, id);
    if (text_of_symbol.length == SPACE_MARK_LENGTH &&
        memcmp(text_of_symbol.data, SPACE_MARK, SPACE_MARK_LENGTH) == 0)
        return spell_byte(t, ' ', out);
    for (uint64_t i = 0; i < text_of_symbol.length; i++)
        TRY(spell_byte(t, (uint8_t)text_of_symbol.data[i], out));
error:
    return status;
}

static rlxvk_status merge_marked(const tokenizer *t, const char *marked, size_t length,
                                 encode_mode mode, token_list *out)
{
    (void)mode;
    rlxvk_status status = RLXVK_OK;
    symbol_list symbols = {0};
    for (size_t i = 0, size; i < length; i += size) {
        utf8_decode((const uint8_t *)marked + i, length - i, &size);
        TRY(tokenizer_append_symbol(&symbols, marked + i, size));
    }
    TRY(tokenizer_merge_symbols(t, &symbols, score_key));
    for (uint32_t i = 0; i != RLXVK_NO_TOKEN; i = symbols.items[i].next)
        TRY(emit_symbol(t, (gguf_string){symbols.items[i].data, symbols.items[i].length}, out));
error:
    VECTOR_FREE(&symbols);
    return status;
}

/* Marking the spaces may create user-defined tokens that consist of marks, for example runs of
 * spaces. */
static rlxvk_status spm_encode(const tokenizer *t, const char *bytes, size_t length,
                               encode_mode mode, token_list *out)
{
    bool add_space = t->add_space && !mode.continued;
    size_t marked_length, prefix = add_space ? SPACE_MARK_LENGTH : 0;
    char *marked = mark_spaces(bytes, length, add_space, &marked_length);
    if (marked == NULL)
        return status_fail_memory("tokenizer text");
    rlxvk_status status =
        tokenizer_cut_specials(t, marked, marked_length, prefix, mode, merge_marked, out);
    memory_free(marked);
    return status;
}

rlxvk_status tokenizer_prepare_spm(tokenizer *t, gguf_file *file)
{
    gguf_string architecture;
    rlxvk_status status;
    TRY(read_scores(t, file));
    for (uint32_t i = 0; i < t->size; i++) {
        TRY(mark_written(t, &t->tokens[i]));
        TRY(decode_marks(t, &t->tokens[i]));
    }
    TRY(tokenizer_index_vocabulary(t));
    TRY(find_byte_tokens(t));
    t->strips_space = gguf_get_string(file, "general.architecture", &architecture) &&
                      gguf_string_is(architecture, "phi3");
    t->add_bos = true;
    t->add_space = true;
    t->encode = spm_encode;
error:
    return status;
}
