/*
 * Special tokens in a text: control tokens, user-defined tokens and the unknown token. They are cut
 * out before anything is merged. The leftmost one comes first; if several begin at one place, the
 * longest wins. Their spellings are sorted, so that a search narrows by one byte at a time.
 */
#include "model/language/tokenizer_internal.h"
#include "model/language/unicode.h"
#include "model/language/utf8.h"

#include <stdlib.h>
#include <string.h>

static int compare_spellings(const void *a, const void *b)
{
    const spelling *x = a, *y = b;
    int order = memcmp(x->text.data, y->text.data, (size_t)MIN(x->text.length, y->text.length));
    if (order != 0)
        return order;
    if (x->text.length != y->text.length)
        return x->text.length > y->text.length ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool stands_for_itself(const token *item)
{
    return item->written.length > 0 &&
           (item->kind == TOKEN_CONTROL || item->kind == TOKEN_UNKNOWN ||
            item->kind == TOKEN_USER_DEFINED);
}

rlxvk_status tokenizer_prepare_specials(tokenizer *t)
{
    for (uint32_t i = 0; i < t->size; i++) {
        const token *item = &t->tokens[i];
        if (!stands_for_itself(item))
            continue;
        t->starts[(uint8_t)item->written.data[0]] = true;
        if (!VECTOR_PUSH(&t->spellings, ((spelling){item->written, i})))
            return status_fail_memory("tokenizer special tokens");
    }
    if (t->spellings.count > 0)
        qsort(t->spellings.items, t->spellings.count, sizeof *t->spellings.items,
              compare_spellings);
    return RLXVK_OK;
}

/* Searches the sorted spellings from `low` to `high`, which have their first `depth` bytes in
 * common. Returns the first one whose next byte is at least `byte`. A spelling that ends there
 * sorts before all others. */
static size_t first_from(const tokenizer *t, size_t low, size_t high, size_t depth, unsigned byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        gguf_string spelled = t->spellings.items[middle].text;
        if (spelled.length <= depth || (uint8_t)spelled.data[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of tokens with the same spelling, the first one counts. */
static uint32_t first_of_kind(const tokenizer *t, size_t low, size_t high, size_t length,
                              bool plain)
{
    for (; low < high && t->spellings.items[low].text.length == length; low++) {
        uint32_t id = t->spellings.items[low].id;
        if (!plain || t->tokens[id].kind == TOKEN_USER_DEFINED)
            return id;
    }
    return RLXVK_NO_TOKEN;
}

uint32_t tokenizer_special_at(const tokenizer *t, const char *bytes, size_t length, bool plain)
{
    uint32_t found = RLXVK_NO_TOKEN;
    size_t low = 0, high = t->spellings.count;
    if (length == 0 || !t->starts[(uint8_t)bytes[0]])
        return RLXVK_NO_TOKEN;
    for (size_t depth = 0; depth < length && low < high; depth++) {
        unsigned byte = (uint8_t)bytes[depth];
        low = first_from(t, low, high, depth, byte);
        high = first_from(t, low, high, depth, byte + 1);
        uint32_t id = first_of_kind(t, low, high, depth + 1, plain);
        found = id != RLXVK_NO_TOKEN ? id : found;
    }
    return found;
}

/* ---- Ends of a generation ---- */

/* Files name one or two tokens that end a generation, but chat models have more. These are known by
 * name, as in llama.cpp. */
static bool is_end_name(gguf_string name)
{
    static const char *const names[] = {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|end|>",
        "<end_of_turn>",
        "<eos>",
        "<EOT>",
        "\xe2\x96\x81<EOT>",
        "_<EOT>",
        "<end_of_utterance>",
        "<|fim_pad|>",
        "<|repo_name|>",
        "<|file_sep|>",
        ("<\xef\xbd\x9c"
         "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (gguf_string_is(name, names[i]))
            return true;
    return false;
}

static rlxvk_status read_end(tokenizer *t, const gguf_file *file, const char *key)
{
    const gguf_pair *pair = gguf_find(file, key);
    uint64_t id;
    for (uint64_t i = 0; pair != NULL && i < pair->count; i++) {
        if (!gguf_element_u64(pair, i, &id))
            continue;
        if (id >= t->size)
            return status_fail(RLXVK_E_RANGE, "%s: %llu outside the vocabulary of %u", key,
                               (unsigned long long)id, t->size);
        t->tokens[id].ends = true;
    }
    return RLXVK_OK;
}

rlxvk_status tokenizer_prepare_ends(tokenizer *t, const gguf_file *file)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id",
                                       "tokenizer.ggml.fim_pad_token_id",
                                       "tokenizer.ggml.fim_rep_token_id",
                                       "tokenizer.ggml.fim_sep_token_id"};
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        TRY(read_end(t, file, keys[i]));
    /* Some files have such a token as an ordinary one, by mistake. */
    for (uint32_t i = 0; i < t->size; i++)
        if (is_end_name(t->tokens[i].written)) {
            t->tokens[i].ends = true;
            t->tokens[i].kind = TOKEN_CONTROL;
        }
error:
    return status;
}

/* ---- White space behind special tokens ---- */

/* GGUF has no flag for this. Phi 3's SentencePiece vocabulary drops white space after its special
 * tokens, except for three of them. */
static bool special_strips(const tokenizer *t, uint32_t id)
{
    static const char *const kept[] = {"<unk>", "<s>", "<|endoftext|>"};
    if (!t->strips_space)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(kept); i++)
        if (gguf_string_is(t->tokens[id].written, kept[i]))
            return false;
    return true;
}

static size_t skip_space(const char *bytes, size_t at, size_t length)
{
    for (size_t size; at < length; at += size) {
        uint32_t point = utf8_decode((const uint8_t *)bytes + at, length - at, &size);
        if (point == UTF8_INVALID || !unicode_is_space(point))
            break;
    }
    return at;
}

size_t tokenizer_drops_special(const tokenizer *t, uint32_t id, const char *bytes, size_t length)
{
    return special_strips(t, id) ? skip_space(bytes, 0, length) : 0;
}

/* ---- Cutting ---- */

rlxvk_status tokenizer_cut_specials(const tokenizer *t, const char *bytes, size_t length,
                                    size_t from, encode_mode mode, encode_function encode,
                                    token_list *out)
{
    rlxvk_status status = RLXVK_OK;
    size_t start = 0;
    for (size_t i = from; i < length;) {
        uint32_t id = tokenizer_special_at(t, bytes + i, length - i, mode.plain);
        if (id == RLXVK_NO_TOKEN) {
            i++;
            continue;
        }
        if (i > start)
            TRY(encode(t, bytes + start, i - start, mode, out));
        TRY(tokenizer_append_token(out, id));
        mode.continued = false;
        i += (size_t)t->tokens[id].written.length;
        i += tokenizer_drops_special(t, id, bytes + i, length - i);
        start = i;
    }
    if (length > start)
        TRY(encode(t, bytes + start, length - start, mode, out));
error:
    return status;
}
