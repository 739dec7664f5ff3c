/*
 * The vocabulary, and everything that is the same for both kinds of tokenizer. Invariant of a
 * created tokenizer: every id in it, or returned by it, is below `size` or RLXVK_NO_TOKEN. All
 * strings live in its arena.
 */
#include "model/language/tokenizer_internal.h"

#include <inttypes.h>
#include <string.h>

static rlxvk_status read_kinds(tokenizer *t, const gguf_file *file)
{
    const gguf_pair *kinds = gguf_find(file, "tokenizer.ggml.token_type");
    uint64_t kind;
    for (uint32_t i = 0; i < t->size; i++)
        t->tokens[i].kind = TOKEN_NORMAL;
    if (kinds == NULL)
        return RLXVK_OK;
    if (kinds->count != t->size)
        return status_fail(RLXVK_E_LENGTH,
                           "tokenizer.ggml.token_type: %" PRIu64 " entries for %u tokens",
                           kinds->count, t->size);
    for (uint32_t i = 0; i < t->size; i++)
        if (gguf_element_u64(kinds, i, &kind) && kind >= TOKEN_NORMAL && kind <= TOKEN_BYTE)
            t->tokens[i].kind = (uint8_t)kind;
    return RLXVK_OK;
}

static rlxvk_status read_vocabulary(tokenizer *t, gguf_file *file)
{
    rlxvk_status status;
    const gguf_string *strings;
    uint64_t count;
    TRY(gguf_get_strings(file, "tokenizer.ggml.tokens", &strings, &count));
    if (count == 0 || count >= RLXVK_NO_TOKEN / 2)
        return status_fail(RLXVK_E_RANGE, "tokenizer.ggml.tokens: %" PRIu64 " tokens", count);
    t->tokens = memory_zeroed((size_t)count, sizeof *t->tokens);
    if (t->tokens == NULL)
        return status_fail_memory("tokenizer vocabulary");
    t->size = (uint32_t)count;
    for (uint32_t i = 0; i < t->size; i++) {
        uint64_t length = strings[i].length;
        const char *copy = arena_copy(&t->memory, strings[i].data, (size_t)length);
        if (copy == NULL)
            return status_fail_memory("tokenizer vocabulary");
        t->tokens[i].written = (gguf_string){copy, length};
    }
    TRY(read_kinds(t, file));
error:
    return status;
}

rlxvk_status tokenizer_index_vocabulary(tokenizer *t)
{
    return tokenizer_build_map(&t->ids, &t->tokens[0].written, sizeof(token), t->size);
}

static rlxvk_status read_ids(tokenizer *t, const gguf_file *file)
{
    const struct {
        const char *key;
        uint32_t *id;
    } keys[] = {{"tokenizer.ggml.bos_token_id", &t->bos},
                {"tokenizer.ggml.eos_token_id", &t->eos},
                {"tokenizer.ggml.unknown_token_id", &t->unknown}};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        uint64_t value;
        *keys[i].id = RLXVK_NO_TOKEN;
        if (!gguf_get_u64(file, keys[i].key, &value))
            continue;
        if (value >= t->size)
            return status_fail(RLXVK_E_RANGE, "%s: %" PRIu64 " outside the vocabulary of %u",
                               keys[i].key, value, t->size);
        *keys[i].id = (uint32_t)value;
    }
    return RLXVK_OK;
}

static const struct tokenizer_kind {
    const char *name;
    rlxvk_status (*prepare)(tokenizer *t, gguf_file *file);
} kinds_of_tokenizer[] = {{"llama", tokenizer_prepare_spm}, {"gpt2", tokenizer_prepare_bpe}};

static rlxvk_status prepare_kind(tokenizer *t, gguf_file *file)
{
    gguf_string name;
    if (!gguf_get_string(file, "tokenizer.ggml.model", &name))
        return status_fail(RLXVK_E_UNKNOWN_NAME, "GGUF: no key 'tokenizer.ggml.model'");
    for (size_t i = 0; i < ARRAY_COUNT(kinds_of_tokenizer); i++)
        if (gguf_string_is(name, kinds_of_tokenizer[i].name))
            return kinds_of_tokenizer[i].prepare(t, file);
    return status_fail(RLXVK_E_UNSUPPORTED, "tokenizer.ggml.model '%.*s': known are llama and gpt2",
                       (int)MIN(name.length, 100), name.data);
}

static rlxvk_status tokenizer_read(tokenizer *t, gguf_file *file)
{
    rlxvk_status status;
    TRY(read_vocabulary(t, file));
    TRY(read_ids(t, file));
    TRY(tokenizer_prepare_ends(t, file));
    TRY(prepare_kind(t, file));
    TRY(tokenizer_prepare_specials(t));
    gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos);
    gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space);
    for (uint32_t i = 0; i < t->size; i++)
        if (t->tokens[i].kind == TOKEN_CONTROL)
            t->tokens[i].decoded.length = 0;
error:
    return status;
}

rlxvk_status tokenizer_create(gguf_file *file, tokenizer **out)
{
    tokenizer *t = memory_zeroed(1, sizeof *t);
    *out = NULL;
    if (t == NULL)
        return status_fail_memory("tokenizer");
    rlxvk_status status = tokenizer_read(t, file);
    if (status == RLXVK_OK)
        *out = t;
    else
        tokenizer_destroy(t);
    return status;
}

void tokenizer_destroy(tokenizer *t)
{
    if (t == NULL)
        return;
    memory_free(t->tokens);
    memory_free(t->ids.slots);
    memory_free(t->merges);
    memory_free(t->ranks.slots);
    VECTOR_FREE(&t->spellings);
    arena_destroy(&t->memory);
    memory_free(t);
}

uint32_t tokenizer_size(const tokenizer *t)
{
    return t->size;
}

uint32_t tokenizer_bos(const tokenizer *t)
{
    return t->bos;
}

uint32_t tokenizer_eos(const tokenizer *t)
{
    return t->eos;
}

bool tokenizer_adds_bos(const tokenizer *t)
{
    return t->add_bos;
}

bool tokenizer_is_end(const tokenizer *t, uint32_t id)
{
    return id < t->size && t->tokens[id].ends;
}

bool tokenizer_doubles_bos(const tokenizer *t, const char *bytes, size_t length)
{
    return t->add_bos && t->bos != RLXVK_NO_TOKEN &&
           tokenizer_special_at(t, bytes, length, false) == t->bos;
}

uint32_t tokenizer_find_token(const tokenizer *t, const gguf_string *pieces, size_t count)
{
    uint32_t id = tokenizer_find_string(&t->ids, pieces, count);
    bool is_text = id != RLXVK_NO_TOKEN && t->tokens[id].kind != TOKEN_CONTROL &&
                   t->tokens[id].kind != TOKEN_UNKNOWN && t->tokens[id].kind != TOKEN_BYTE;
    return is_text ? id : RLXVK_NO_TOKEN;
}

/* Appends the ids of a text. After an error, `out` has `kept` ids. */
static rlxvk_status encode(const tokenizer *t, const char *bytes, size_t length, encode_mode mode,
                           size_t kept, token_list *out)
{
    rlxvk_status status = tokenizer_cut_specials(t, bytes, length, 0, mode, t->encode, out);
    if (status)
        out->count = kept;
    return status;
}

rlxvk_status tokenizer_encode(const tokenizer *t, const char *bytes, size_t length, bool add_bos,
                              token_list *out)
{
    rlxvk_status status;
    size_t count = out->count;
    if (add_bos && t->bos != RLXVK_NO_TOKEN)
        TRY(tokenizer_append_token(out, t->bos));
    TRY(encode(t, bytes, length, (encode_mode){0}, count, out));
error:
    return status;
}

rlxvk_status tokenizer_encode_more(const tokenizer *t, const char *bytes, size_t length,
                                   token_list *out)
{
    return encode(t, bytes, length, (encode_mode){.continued = true}, out->count, out);
}

rlxvk_status tokenizer_encode_plain(const tokenizer *t, uint32_t before, const char *bytes,
                                    size_t length, token_list *out)
{
    bool text = before < t->size && t->tokens[before].kind != TOKEN_CONTROL;
    encode_mode mode = {.plain = true, .continued = text};
    size_t dropped =
        before < t->size && !text ? tokenizer_drops_special(t, before, bytes, length) : 0;
    return encode(t, bytes + dropped, length - dropped, mode, out->count, out);
}

/* ---- Control tokens ---- */

uint32_t tokenizer_find(const tokenizer *t, const char *written)
{
    gguf_string string = {written, strlen(written)};
    return tokenizer_find_string(&t->ids, &string, 1);
}

void tokenizer_make_control(tokenizer *t, uint32_t id)
{
    t->tokens[id].kind = TOKEN_CONTROL;
    t->tokens[id].decoded.length = 0;
}

/* ---- Decoding ---- */

gguf_string tokenizer_token_bytes(const tokenizer *t, uint32_t id)
{
    return id < t->size ? t->tokens[id].decoded : (gguf_string){"", 0};
}

rlxvk_status tokenizer_decode(const tokenizer *t, const uint32_t *ids, size_t count,
                              token_text *out)
{
    bool drop_space = t->add_space;
    for (size_t i = 0; i < count; i++) {
        gguf_string bytes = tokenizer_token_bytes(t, ids[i]);
        bool dropped = drop_space && bytes.length && bytes.data[0] == ' ';
        drop_space = drop_space && bytes.length == 0;
        bytes.data += dropped;
        bytes.length -= dropped;
        if (bytes.length == 0)
            continue; /* *out may still have no memory */
        if (!VECTOR_RESERVE(out, (size_t)bytes.length))
            return status_fail_memory("decoded text");
        memcpy(out->items + out->count, bytes.data, (size_t)bytes.length);
        out->count += (size_t)bytes.length;
    }
    return RLXVK_OK;
}
