/* See rlxvk_language.h: languages. Sequences and their caches are in llama.c. */
#include "base/sized.h"
#include "model/language/language.h"
#include "model/language/llama.h"

#include <string.h>

struct rlxvk_language {
    const rlxvk_tokenizer *tokenizer;
    llama *model;
    uint32_t sequences;
    uint64_t capacity;
    llama_piece *pieces; /* of the sequences */
    /* Of sequence 0. The token that was generated last is pending: it runs only if others follow.
     */
    uint32_t next, last; /* the generated token; the text's last token, without its end */
    bool pending;
    token_list tokens; /* those of a call, behind the pending one */
};

/* ---- Creating ---- */

static rlxvk_status read_options(const rlxvk_language_options *given,
                                 rlxvk_sample_options *out_sampling, rlxvk_language_options *out)
{
    rlxvk_status status;
    TRY(sized_read(SIZED(rlxvk_language_options), given, out));
    if (out->cache != RLXVK_F32 && out->cache != RLXVK_F16)
        return status_fail(RLXVK_E_DTYPE, "caches of %s; keys and values are F32 or F16",
                           rlxvk_dtype_name(out->cache));
    if (out->sampling) {
        TRY(sized_read(SIZED(rlxvk_sample_options), out->sampling, out_sampling));
        out->sampling = out_sampling;
    }
    out->sequences = MAX(out->sequences, 1);
error:
    return status;
}

rlxvk_status rlxvk_language_create(const rlxvk_tokenizer *tokenizer, rlxvk_context *context,
                                   const rlxvk_language_options *options,
                                   rlxvk_language **out_language)
{
    rlxvk_language *l = NULL;
    rlxvk_language_options own;
    rlxvk_sample_options sampling;
    rlxvk_status status;
    TRY(status_require(out_language, "language_create", "out_language"));
    *out_language = NULL;
    TRY(status_require(tokenizer, "language_create", "tokenizer"));
    TRY(status_require(context, "language_create", "context"));
    TRY(read_options(options, &sampling, &own));
    l = memory_zeroed(1, sizeof *l);
    if (!l || !(l->pieces = memory_zeroed(own.sequences, sizeof *l->pieces)))
        TRY(status_fail_memory("language"));
    l->tokenizer = tokenizer;
    l->sequences = own.sequences;
    l->last = RLXVK_NO_TOKEN;
    TRY(llama_load(context, tokenizer->file, &own, &l->model));
    l->capacity = llama_room(l->model);
    *out_language = l;
    return RLXVK_OK;
error:
    rlxvk_language_destroy(l);
    return status;
}

rlxvk_status rlxvk_language_set_sampling(rlxvk_language *language,
                                         const rlxvk_sample_options *sampling, uint64_t seed)
{
    rlxvk_sample_options own;
    rlxvk_status status;
    TRY(status_require(language, "language_set_sampling", "language"));
    TRY(sized_read(SIZED(rlxvk_sample_options), sampling, &own));
    TRY(llama_set_sampling(language->model, &own, seed));
error:
    return status;
}

void rlxvk_language_destroy(rlxvk_language *language)
{
    if (!language)
        return;
    llama_destroy(language->model);
    VECTOR_FREE(&language->tokens);
    memory_free(language->pieces);
    memory_free(language);
}

/* ---- Sequences ---- */

static rlxvk_status select_sequence(const rlxvk_language *l, uint32_t sequence)
{
    if (sequence >= l->sequences)
        return status_fail(RLXVK_E_RANGE, "sequence %u; the language has %u, numbered from 0",
                           sequence, l->sequences);
    llama_select(l->model, sequence);
    return RLXVK_OK;
}

/* Whether the pending token goes in front of what a sequence gets. */
static bool has_pending(const rlxvk_language *l, uint32_t sequence)
{
    return sequence == 0 && l->pending;
}

/* Begins the tokens of a call, which sequence 0 gets. */
static rlxvk_status begin_tokens(rlxvk_language *l)
{
    l->tokens.count = 0;
    return !l->pending || VECTOR_PUSH(&l->tokens, l->next) ? RLXVK_OK
                                                           : status_fail_memory("tokens");
}

static rlxvk_status add_tokens(rlxvk_language *l, const uint32_t *tokens, size_t count)
{
    if (!VECTOR_RESERVE(&l->tokens, count))
        return status_fail_memory("tokens");
    if (count)
        memcpy(l->tokens.items + l->tokens.count, tokens, count * sizeof *tokens);
    l->tokens.count += count;
    return RLXVK_OK;
}

/* What a sequence gets with these tokens. */
static rlxvk_status find_piece(rlxvk_language *l, uint32_t sequence, const uint32_t *tokens,
                               size_t count, llama_piece *out)
{
    rlxvk_status status = RLXVK_OK;
    *out = (llama_piece){tokens, count};
    if (count && has_pending(l, sequence)) {
        TRY(begin_tokens(l));
        TRY(add_tokens(l, tokens, count));
        *out = (llama_piece){l->tokens.items, l->tokens.count};
    }
error:
    return status;
}

/* Sequence 0 has got tokens. */
static void took(rlxvk_language *l, llama_piece piece)
{
    l->pending = false;
    l->last = piece.ids[piece.count - 1];
}

rlxvk_status rlxvk_language_extend(rlxvk_language *language, uint32_t sequence,
                                   const uint32_t *tokens, size_t count, float *logits,
                                   uint32_t *next)
{
    llama_piece piece;
    rlxvk_status status;
    TRY(status_require(language, "language_extend", "language"));
    TRY(status_require_items(tokens, count, "language_extend", "tokens"));
    TRY(select_sequence(language, sequence));
    TRY(find_piece(language, sequence, tokens, count, &piece));
    TRY(llama_extend(language->model, piece.ids, piece.count, (llama_result){logits, next}));
    if (sequence == 0)
        took(language, piece);
error:
    return status;
}

static rlxvk_status find_pieces(rlxvk_language *l, const uint32_t *const *tokens,
                                const size_t *counts)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t s = 0; s < l->sequences; s++) {
        TRY(status_require_items(tokens[s], counts[s], "language_extend_each", "tokens[..]"));
        TRY(find_piece(l, s, tokens[s], counts[s], &l->pieces[s]));
    }
error:
    return status;
}

rlxvk_status rlxvk_language_extend_each(rlxvk_language *language, const uint32_t *const *tokens,
                                        const size_t *counts, uint32_t *next)
{
    rlxvk_status status;
    TRY(status_require(language, "language_extend_each", "language"));
    TRY(status_require(tokens, "language_extend_each", "tokens"));
    TRY(status_require(counts, "language_extend_each", "counts"));
    TRY(find_pieces(language, tokens, counts));
    TRY(llama_extend_each(language->model, language->pieces, next));
    if (counts[0])
        took(language, language->pieces[0]);
error:
    return status;
}

rlxvk_status rlxvk_language_prepare(rlxvk_language *language, size_t count)
{
    rlxvk_status status;
    TRY(status_require(language, "language_prepare", "language"));
    llama_select(language->model, 0);
    TRY(llama_prepare(language->model, count + language->pending));
error:
    return status;
}

rlxvk_status rlxvk_language_prepare_each(rlxvk_language *language, const size_t *counts)
{
    rlxvk_status status;
    TRY(status_require(language, "language_prepare_each", "language"));
    TRY(status_require(counts, "language_prepare_each", "counts"));
    for (uint32_t s = 0; s < language->sequences; s++)
        language->pieces[s] =
            (llama_piece){NULL, counts[s] + (counts[s] && has_pending(language, s))};
    TRY(llama_prepare_each(language->model, language->pieces));
error:
    return status;
}

rlxvk_status rlxvk_language_rewind(rlxvk_language *language, uint32_t sequence)
{
    rlxvk_status status;
    TRY(status_require(language, "language_rewind", "language"));
    TRY(select_sequence(language, sequence));
    llama_rewind(language->model);
    if (sequence == 0) {
        language->pending = false;
        language->last = RLXVK_NO_TOKEN;
    }
error:
    return status;
}

rlxvk_status rlxvk_language_room(const rlxvk_language *language, uint32_t sequence,
                                 uint64_t *out_tokens)
{
    rlxvk_status status;
    TRY(status_require(language, "language_room", "language"));
    TRY(status_require(out_tokens, "language_room", "out_tokens"));
    TRY(select_sequence(language, sequence));
    *out_tokens = llama_room(language->model) - has_pending(language, sequence);
error:
    return status;
}

rlxvk_status rlxvk_language_usage(const rlxvk_language *language, rlxvk_language_report *out_report)
{
    rlxvk_language_report report;
    rlxvk_status status;
    TRY(status_require(language, "language_usage", "language"));
    TRY(status_require(out_report, "language_usage", "out_report"));
    llama_usage(language->model, &report);
    sized_write(SIZED(rlxvk_language_report), &report, out_report);
error:
    return status;
}

/* ---- Generating ---- */

static bool is_empty(const rlxvk_language *l)
{
    llama_select(l->model, 0);
    return !l->pending && llama_room(l->model) == l->capacity;
}

/* Hands over the token that was just generated. Returns whether generation may go on. */
static bool hand_over(rlxvk_language *l, const rlxvk_generate_options *o)
{
    gguf_string bytes = {"", 0};
    l->pending = !tokenizer_is_end(l->tokenizer->words, l->next);
    if (l->pending) {
        bytes = tokenizer_token_bytes(l->tokenizer->words, l->next);
        l->last = l->next;
    }
    bool more = !o->reader || o->reader(o->user, l->next, bytes.data, bytes.length);
    return more && l->pending;
}

/* Appends the tokens of this call, and generates. */
static rlxvk_status generate(rlxvk_language *l, const rlxvk_generate_options *given)
{
    rlxvk_generate_options o;
    rlxvk_status status;
    TRY(sized_read(SIZED(rlxvk_generate_options), given, &o));
    llama_select(l->model, 0);
    if (l->tokens.count == 0)
        return status_fail(RLXVK_E_RANGE, "no tokens, and none was generated last that others "
                                          "could follow; give at least one");
    if (l->tokens.count >= llama_room(l->model))
        return status_fail(RLXVK_E_RANGE,
                           "%zu tokens, and the sequence has room for %llu of its %llu, of which "
                           "one is for a new token; a larger capacity makes room",
                           l->tokens.count, (unsigned long long)llama_room(l->model),
                           (unsigned long long)l->capacity);
    bool goes_on = l->tokens.count == l->pending; /* behind the token that was generated last */
    TRY(llama_extend(l->model, l->tokens.items, l->tokens.count,
                     (llama_result){o.logits, &l->next}));
    if (!goes_on)
        l->last = RLXVK_NO_TOKEN;
    for (uint64_t made = 1;; made++) {
        if (!hand_over(l, &o) || made == o.tokens || llama_room(l->model) == 1)
            break;
        TRY(llama_decode(l->model, l->next, (llama_result){NULL, &l->next}));
    }
error:
    return status;
}

rlxvk_status rlxvk_language_generate(rlxvk_language *language, const uint32_t *tokens, size_t count,
                                     const rlxvk_generate_options *options)
{
    rlxvk_status status;
    TRY(status_require(language, "language_generate", "language"));
    TRY(status_require_items(tokens, count, "language_generate", "tokens"));
    TRY(begin_tokens(language));
    TRY(add_tokens(language, tokens, count));
    TRY(generate(language, options));
error:
    return status;
}

rlxvk_status rlxvk_language_write(rlxvk_language *language, const char *bytes, size_t length,
                                  const rlxvk_generate_options *options)
{
    rlxvk_status status;
    TRY(status_require(language, "language_write", "language"));
    TRY(status_require_items(bytes, length, "language_write", "bytes"));
    TRY(begin_tokens(language));
    TRY(language_encode(language->tokenizer, bytes, length, is_empty(language), &language->tokens));
    TRY(generate(language, options));
error:
    return status;
}

rlxvk_status rlxvk_language_reply(rlxvk_language *language, const char *system, const char *bytes,
                                  size_t length, const rlxvk_generate_options *options)
{
    rlxvk_turn_options turn = {0};
    rlxvk_status status;
    TRY(status_require(language, "language_reply", "language"));
    TRY(status_require_items(bytes, length, "language_reply", "bytes"));
    if (is_empty(language))
        turn.system = system;
    else
        turn = (rlxvk_turn_options){.follows = true, .last = language->last};
    TRY(begin_tokens(language));
    TRY(language_turn(language->tokenizer, bytes, length, &turn, &language->tokens));
    TRY(generate(language, options));
error:
    return status;
}
