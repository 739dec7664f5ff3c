/*
 * Byte-level BPE ("gpt2"). If the vocabulary wants it, text is composed first (NFC). Then it is cut
 * into pieces (presplit.c), and each byte of a piece is written as a character. Neighbours are
 * joined in the order of the merge list. Some vocabularies also have tokens for whole pieces that
 * merges do not reach.
 *
 * Byte table: bytes 33..126, 161..172, 174..255 are written as the code point with the same number.
 * The other 68, in increasing order, are written as U+0100, U+0101, ...
 */
#include "model/language/tokenizer_internal.h"
#include "model/language/utf8.h"

#include <stdlib.h>
#include <string.h>

/* The bytes 0..32, 127..160 and 173 are not written as themselves. */
static uint32_t byte_to_point(uint8_t byte)
{
    if (byte <= 32)
        return 0x100u + byte;
    if (byte >= 127 && byte <= 160)
        return 0x100u + 33 + byte - 127;
    return byte == 173 ? 0x100u + 67 : byte;
}

/* The byte for which `point` stands. False if it is not in the table. */
static bool point_to_byte(uint32_t point, uint8_t *out)
{
    uint32_t hidden = point - 0x100;
    if (point >= 0x100 + 68)
        return false;
    if (point >= 0x100)
        point = hidden <= 32 ? hidden : hidden <= 66 ? hidden - 33 + 127 : 173;
    else if (byte_to_point((uint8_t)point) != point)
        return false;
    *out = (uint8_t)point;
    return true;
}

/* Text outside of the table stays as it is. Special and broken tokens have such text. */
static rlxvk_status decode_characters(tokenizer *t, token *item)
{
    const uint8_t *written = (const uint8_t *)item->written.data;
    uint64_t length = item->written.length;
    size_t size;
    char *out = arena_allocate(&t->memory, (size_t)length);
    if (out == NULL)
        return status_fail_memory("tokenizer vocabulary");
    item->decoded = (gguf_string){out, 0};
    for (uint64_t i = 0; i < length; i += size) {
        uint8_t byte;
        uint32_t point = utf8_decode(written + i, (size_t)(length - i), &size);
        if (item->kind != TOKEN_USER_DEFINED && point != UTF8_INVALID &&
            point_to_byte(point, &byte)) {
            out[item->decoded.length++] = (char)byte;
        } else {
            memcpy(out + item->decoded.length, written + i, size);
            item->decoded.length += size;
        }
    }
    return RLXVK_OK;
}

static rlxvk_status read_merges(tokenizer *t, gguf_file *file)
{
    rlxvk_status status;
    const gguf_string *merges;
    uint64_t count;
    TRY(gguf_get_strings(file, "tokenizer.ggml.merges", &merges, &count));
    if (count >= RLXVK_NO_TOKEN / 2)
        return status_fail(RLXVK_E_TOO_LARGE, "tokenizer.ggml.merges: too many");
    t->merges = memory_zeroed((size_t)count, sizeof *t->merges);
    if (t->merges == NULL)
        return status_fail_memory("tokenizer merges");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = merges[i].length;
        t->merges[i] =
            (gguf_string){arena_copy(&t->memory, merges[i].data, (size_t)length), length};
        if (t->merges[i].data == NULL)
            return status_fail_memory("tokenizer merges");
    }
    TRY(tokenizer_build_map(&t->ranks, t->merges, sizeof *t->merges, count));
error:
    return status;
}

static bool rank_key(const tokenizer *t, gguf_string left, gguf_string right, double *out)
{
    gguf_string pieces[3] = {left, {" ", 1}, right};
    uint32_t rank = tokenizer_find_string(&t->ranks, pieces, 3);
    *out = (double)rank;
    return rank != RLXVK_NO_TOKEN;
}

/* If a symbol is not a token, its characters become tokens, or the unknown token. */
static rlxvk_status emit_symbol(const tokenizer *t, gguf_string written, token_list *out)
{
    rlxvk_status status = RLXVK_OK;
    uint32_t id = tokenizer_find_token(t, &written, 1);
    size_t size;
    if (id != RLXVK_NO_TOKEN)
        return tokenizer_append_token(out, id);
    for (uint64_t i = 0; i < written.length; i += size) {
        utf8_decode((const uint8_t *)written.data + i, (size_t)(written.length - i), &size);
        gguf_string character = {written.data + i, size};
        id = tokenizer_find_token(t, &character, 1);
        id = id != RLXVK_NO_TOKEN ? id : t->unknown;
        if (id == RLXVK_NO_TOKEN)
            return status_fail(RLXVK_E_RANGE,
                               "tokenizer: no token for '%.*s', and no unknown token", (int)size,
                               character.data);
        TRY(tokenizer_append_token(out, id));
    }
error:
    return status;
}

static rlxvk_status merge_piece(const tokenizer *t, gguf_string written, token_list *out)
{
    rlxvk_status status = RLXVK_OK;
    symbol_list symbols = {0};
    for (size_t i = 0, size; i < written.length; i += size) {
        utf8_decode((const uint8_t *)written.data + i, (size_t)(written.length - i), &size);
        TRY(tokenizer_append_symbol(&symbols, written.data + i, size));
    }
    TRY(tokenizer_merge_symbols(t, &symbols, rank_key));
    for (uint32_t i = 0; i != RLXVK_NO_TOKEN; i = symbols.items[i].next)
        TRY(emit_symbol(t, (gguf_string){symbols.items[i].data, symbols.items[i].length}, out));
error:
    VECTOR_FREE(&symbols);
    return status;
}

static rlxvk_status encode_piece(const tokenizer *t, const char *bytes, size_t length,
                                 token_list *out)
{
    uint32_t whole = RLXVK_NO_TOKEN;
    rlxvk_status status;
    uint8_t *written = memory_allocate(2 * length), *end = written;
    if (written == NULL)
        return status_fail_memory("tokenizer piece");
    for (size_t i = 0; i < length; i++)
        end += utf8_encode(byte_to_point((uint8_t)bytes[i]), end);
    gguf_string text_of_piece = {(const char *)written, (uint64_t)(end - written)};
    if (presplit_keeps_whole(t->flavour))
        whole = tokenizer_find_token(t, &text_of_piece, 1);
    status = whole != RLXVK_NO_TOKEN ? tokenizer_append_token(out, whole)
                                     : merge_piece(t, text_of_piece, out);
    memory_free(written);
    return status;
}

static rlxvk_status encode_pieces(const tokenizer *t, const char *bytes, size_t length,
                                  token_list *out)
{
    rlxvk_status status = RLXVK_OK;
    presplit p = {.flavour = t->flavour, .bytes = bytes, .length = length};
    for (size_t i = 0; i < length;) {
        size_t end = presplit_step(&p, i);
        TRY(encode_piece(t, bytes + i, end - i, out));
        i = end;
    }
error:
    return status;
}

static rlxvk_status bpe_encode(const tokenizer *t, const char *bytes, size_t length,
                               encode_mode mode, token_list *out)
{
    token_text composed = {0};
    rlxvk_status status;
    (void)mode;
    if (!presplit_composes(t->flavour))
        return encode_pieces(t, bytes, length, out);
    TRY(tokenizer_append_nfc(&composed, bytes, length));
    TRY(encode_pieces(t, composed.items, composed.count, out));
error:
    VECTOR_FREE(&composed);
    return status;
}

static rlxvk_status refuse_flavour(gguf_string name)
{
    char known[512] = "";
    presplit_names(&(text){known, sizeof known, 0});
    return status_fail(RLXVK_E_UNSUPPORTED, "tokenizer.ggml.pre '%.*s': known are %s",
                       (int)MIN(name.length, 100), name.data, known);
}

rlxvk_status tokenizer_prepare_bpe(tokenizer *t, gguf_file *file)
{
    rlxvk_status status;
    gguf_string name = {"default", 7};
    gguf_get_string(file, "tokenizer.ggml.pre", &name);
    t->flavour = presplit_find(name);
    if (t->flavour == NULL)
        return refuse_flavour(name);
    TRY(tokenizer_index_vocabulary(t));
    TRY(read_merges(t, file));
    for (uint32_t i = 0; i < t->size; i++)
        TRY(decode_characters(t, &t->tokens[i]));
    t->add_bos = presplit_adds_bos(t->flavour);
    t->encode = bpe_encode;
error:
    return status;
}
