/* See rlxvk_language.h: tokenizers and chat templates of models. */
#include "base/sized.h"
#include "model/language/language.h"
#include "model/language/llama.h"
#include "model/model.h"

#include <string.h>

/* ---- Opening ---- */

static rlxvk_status read_day(const rlxvk_tokenizer_options *given, system_day *out)
{
    rlxvk_tokenizer_options o;
    rlxvk_status status;
    TRY(sized_read(SIZED(rlxvk_tokenizer_options), given, &o));
    if (o.year == 0 && o.month == 0 && o.day == 0)
        return system_today(out) ? RLXVK_OK
                                 : status_fail(RLXVK_E_ATTR, "the system does not know the date; "
                                                             "give it in the options");
    if (o.year == 0 || o.year > 9999 || o.month == 0 || o.month > 12 || o.day == 0 || o.day > 31)
        return status_fail(
            RLXVK_E_ATTR,
            "a date of year %u, month %u, day %u; takes 1 to 9999, 1 to 12, 1 to 31, "
            "or zeros for today",
            o.year, o.month, o.day);
    *out = (system_day){(int)o.year, (int)o.month, (int)o.day};
error:
    return status;
}

/* A model may have no template that is recognized. The error is kept for those who need one. */
static rlxvk_status open_chat(rlxvk_tokenizer *t, system_day today)
{
    status_sentence before;
    status_save(&before);
    t->chat_status = chat_open(t->file, t->words, today, &t->chat);
    if (t->chat_status == RLXVK_E_OUT_OF_HOST_MEMORY)
        return t->chat_status;
    status_save(&t->chat_error);
    status_restore(&before);
    return RLXVK_OK;
}

rlxvk_status rlxvk_tokenizer_open(rlxvk_model *model, const rlxvk_tokenizer_options *options,
                                  rlxvk_tokenizer **out_tokenizer)
{
    rlxvk_tokenizer *t = NULL;
    llama_config config;
    system_day today;
    rlxvk_status status;
    TRY(status_require(out_tokenizer, "tokenizer_open", "out_tokenizer"));
    *out_tokenizer = NULL;
    TRY(status_require(model, "tokenizer_open", "model"));
    TRY(read_day(options, &today));
    gguf_file *file = model_language(model);
    if (!file)
        return status_fail(
            RLXVK_E_UNSUPPORTED,
            "the model is an ONNX file, which has no tokenizer; a GGUF file has one");
    t = memory_zeroed(1, sizeof *t);
    if (!t)
        return status_fail_memory("tokenizer");
    t->file = file;
    TRY(llama_read_config(file, &config));
    t->context = (uint64_t)config.context;
    TRY(tokenizer_create(file, &t->words));
    TRY(open_chat(t, today));
    *out_tokenizer = t;
    return RLXVK_OK;
error:
    rlxvk_tokenizer_destroy(t);
    return status;
}

void rlxvk_tokenizer_destroy(rlxvk_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    chat_close(tokenizer->chat);
    tokenizer_destroy(tokenizer->words);
    memory_free(tokenizer);
}

rlxvk_status rlxvk_tokenizer_describe(const rlxvk_tokenizer *tokenizer,
                                      rlxvk_tokenizer_info *out_info)
{
    rlxvk_status status;
    TRY(status_require(tokenizer, "tokenizer_describe", "tokenizer"));
    TRY(status_require(out_info, "tokenizer_describe", "out_info"));
    const chat *c = tokenizer->chat;
    rlxvk_tokenizer_info info = {.vocabulary = tokenizer_size(tokenizer->words),
                                 .begin = tokenizer_bos(tokenizer->words),
                                 .end = tokenizer_eos(tokenizer->words),
                                 .adds_begin = tokenizer_adds_bos(tokenizer->words),
                                 .context = tokenizer->context,
                                 .chat_family = c ? chat_family(c) : NULL,
                                 .chat_version = c ? chat_version(c) : NULL};
    sized_write(SIZED(rlxvk_tokenizer_info), &info, out_info);
error:
    return status;
}

/* ---- Texts and tokens ---- */

/* The arguments of a conversion of `count` items to at most `capacity` others. */
static rlxvk_status require_lists(const char *call, const rlxvk_tokenizer *tokenizer,
                                  const void *items, size_t count, const char *items_name,
                                  const void *made, size_t capacity, const char *made_name,
                                  const size_t *out_count, const char *count_name)
{
    rlxvk_status status;
    TRY(status_require(tokenizer, call, "tokenizer"));
    TRY(status_require_items(items, count, call, items_name));
    TRY(status_require_items(made, capacity, call, made_name));
    TRY(status_require(out_count, call, count_name));
error:
    return status;
}

/* Copies what fits. *out_count is how many items there are. */
static void copy_items(const void *items, size_t count, size_t size, void *out, size_t capacity,
                       size_t *out_count)
{
    if (MIN(count, capacity))
        memcpy(out, items, MIN(count, capacity) * size);
    *out_count = count;
}

rlxvk_status rlxvk_tokenizer_encode(const rlxvk_tokenizer *tokenizer, const char *bytes,
                                    size_t length, bool begins, uint32_t *tokens, size_t capacity,
                                    size_t *out_count)
{
    token_list list = {0};
    rlxvk_status status;
    TRY(require_lists("tokenizer_encode", tokenizer, bytes, length, "bytes", tokens, capacity,
                      "tokens", out_count, "out_count"));
    TRY(language_encode(tokenizer, bytes, length, begins, &list));
    copy_items(list.items, list.count, sizeof *tokens, tokens, capacity, out_count);
error:
    VECTOR_FREE(&list);
    return status;
}

rlxvk_status rlxvk_tokenizer_decode(const rlxvk_tokenizer *tokenizer, const uint32_t *tokens,
                                    size_t count, char *bytes, size_t capacity, size_t *out_length)
{
    token_text text = {0};
    rlxvk_status status;
    TRY(require_lists("tokenizer_decode", tokenizer, tokens, count, "tokens", bytes, capacity,
                      "bytes", out_length, "out_length"));
    TRY(tokenizer_decode(tokenizer->words, tokens, count, &text));
    copy_items(text.items, text.count, 1, bytes, capacity, out_length);
error:
    VECTOR_FREE(&text);
    return status;
}

bool rlxvk_tokenizer_is_end(const rlxvk_tokenizer *tokenizer, uint32_t token)
{
    return tokenizer && tokenizer_is_end(tokenizer->words, token);
}

bool rlxvk_tokenizer_doubles_begin(const rlxvk_tokenizer *tokenizer, const char *bytes,
                                   size_t length)
{
    return tokenizer && bytes && tokenizer_doubles_bos(tokenizer->words, bytes, length);
}

rlxvk_status rlxvk_tokenizer_turn(const rlxvk_tokenizer *tokenizer, const char *bytes,
                                  size_t length, const rlxvk_turn_options *options,
                                  uint32_t *tokens, size_t capacity, size_t *out_count)
{
    rlxvk_turn_options own;
    token_list list = {0};
    rlxvk_status status;
    TRY(require_lists("tokenizer_turn", tokenizer, bytes, length, "bytes", tokens, capacity,
                      "tokens", out_count, "out_count"));
    TRY(sized_read(SIZED(rlxvk_turn_options), options, &own));
    TRY(language_turn(tokenizer, bytes, length, &own, &list));
    copy_items(list.items, list.count, sizeof *tokens, tokens, capacity, out_count);
error:
    VECTOR_FREE(&list);
    return status;
}

rlxvk_status language_encode(const rlxvk_tokenizer *t, const char *bytes, size_t length,
                             bool begins, token_list *out)
{
    if (!begins)
        return tokenizer_encode_more(t->words, bytes, length, out);
    return tokenizer_encode(t->words, bytes, length, tokenizer_adds_bos(t->words), out);
}

rlxvk_status language_turn(const rlxvk_tokenizer *t, const char *bytes, size_t length,
                           const rlxvk_turn_options *options, token_list *out)
{
    if (!t->chat) {
        status_restore(&t->chat_error);
        return t->chat_status;
    }
    if (!options->follows)
        return chat_begin(t->chat, options->system, bytes, length, out);
    if (options->system)
        return status_fail(RLXVK_E_ATTR, "a system text with a turn that follows a reply; it goes "
                                         "with the first turn");
    return chat_continue(t->chat, options->last, bytes, length, out);
}
