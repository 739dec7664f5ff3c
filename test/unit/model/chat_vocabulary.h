/*
 * Vocabularies with a chat template, as GGUF files in memory. Include it after cmocka.h and
 * golden_numbers.h.
 */
#ifndef RLXVK_TEST_CHAT_VOCABULARY_H
#define RLXVK_TEST_CHAT_VOCABULARY_H

#include "model/language/chat.h"
#include "model/language/chat_formats.h"
#include "model/gguf_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_USER = 4, KIND_BYTE = 6 };

typedef struct vocabulary {
    char **tokens;
    int32_t *kinds;
    float *scores;
    size_t count;
    char *bytes; /* the file */
    size_t length;
    gguf_file *file;
    tokenizer *tokenizer;
} vocabulary;

static inline char *copy_of(const char *text, size_t length)
{
    char *copy = calloc(length + 1, 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return copy;
}

static inline void add_token(vocabulary *v, const char *token, size_t length, int32_t kind,
                             float score)
{
    v->tokens = realloc(v->tokens, (v->count + 1) * sizeof *v->tokens);
    v->kinds = realloc(v->kinds, (v->count + 1) * sizeof *v->kinds);
    v->scores = realloc(v->scores, (v->count + 1) * sizeof *v->scores);
    v->tokens[v->count] = copy_of(token, length);
    v->kinds[v->count] = kind;
    v->scores[v->count++] = score;
}

/* The token's id, or the number of tokens. */
static inline uint32_t id_of(const vocabulary *v, const char *token)
{
    uint32_t id = 0;
    while (id < v->count && strcmp(v->tokens[id], token) != 0)
        id++;
    return id;
}

static inline void add_control(vocabulary *v, const char *token, int32_t kind)
{
    if (id_of(v, token) == v->count)
        add_token(v, token, strlen(token), kind, 0);
}

/* A token for each byte, and nothing else. */
static inline void add_bytes(vocabulary *v)
{
    add_token(v, "<unk>", 5, KIND_UNKNOWN, 0);
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        add_token(v, name, 6, KIND_BYTE, 0);
    }
}

static inline void put_tokens(gguf_writer *w, vocabulary *v)
{
    gguf_put_strings(w, "tokenizer.ggml.tokens", (const char *const *)v->tokens, v->count);
    gguf_put_i32s(w, "tokenizer.ggml.token_type", v->kinds, v->count);
    gguf_put_f32s(w, "tokenizer.ggml.scores", v->scores, v->count);
}

static inline void put_ends(gguf_writer *w, const vocabulary *v, const char *bos, const char *eos)
{
    if (bos)
        gguf_put_u32(w, "tokenizer.ggml.bos_token_id", id_of(v, bos));
    if (eos)
        gguf_put_u32(w, "tokenizer.ggml.eos_token_id", id_of(v, eos));
}

/* Parses the file that a writer has written the keys of, and makes the tokenizer. */
static inline void finish_vocabulary(vocabulary *v, gguf_writer *w)
{
    FILE *stream = tmpfile();
    assert_non_null(stream);
    assert_ok(gguf_begin(w, stream));
    v->length = (size_t)ftell(stream);
    v->bytes = malloc(v->length);
    assert_non_null(v->bytes);
    rewind(stream);
    assert_int_equal(fread(v->bytes, 1, v->length, stream), v->length);
    assert_int_equal(fclose(stream), 0);
    gguf_writer_destroy(w);
    assert_ok(gguf_result(gguf_parse(v->bytes, v->length, NULL, &v->file)));
    assert_ok(tokenizer_create(v->file, &v->tokenizer));
}

/* Makes a vocabulary of bytes and control tokens, with a template (or NULL). */
static inline void finish_bytes(vocabulary *v, const char *template, const char *bos,
                                const char *eos)
{
    gguf_writer w = {0};
    gguf_put_string(&w, "tokenizer.ggml.model", "llama");
    put_tokens(&w, v);
    put_ends(&w, v, bos, eos);
    gguf_put_u32(&w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_put_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    if (template)
        gguf_put_string(&w, "tokenizer.chat_template", template);
    finish_vocabulary(v, &w);
}

/* Copies a vocabulary of test/data/tokenizers, adds control tokens, and gives it a template. */
static inline void copy_vocabulary(vocabulary *v, const char *path, const char *template,
                                   const char *bos, const char *eos)
{
    gguf_file *from;
    gguf_writer w = {0};
    const gguf_string *tokens, *merges;
    gguf_string model, pre, architecture;
    uint64_t count, merge_count, kind, unknown;
    double score = 0;
    bool space;
    assert_ok(gguf_result(gguf_open(path, &from)));
    assert_ok(gguf_get_strings(from, "tokenizer.ggml.tokens", &tokens, &count));
    const gguf_pair *kinds = gguf_find(from, "tokenizer.ggml.token_type"),
                    *scores = gguf_find(from, "tokenizer.ggml.scores");
    for (uint64_t i = 0; i < count; i++) {
        assert_true(gguf_element_u64(kinds, i, &kind));
        assert_true(!scores || gguf_element_f64(scores, i, &score));
        add_token(v, tokens[i].data, tokens[i].length, (int32_t)kind, (float)score);
    }
    add_control(v, bos, KIND_CONTROL);
    add_control(v, eos, KIND_CONTROL);
    for (size_t i = 0; i < chat_word_count; i++)
        if (chat_words[i][0] == '<' && chat_words[i][1] == '|')
            add_control(v, chat_words[i], KIND_USER);
    assert_true(gguf_get_string(from, "tokenizer.ggml.model", &model));
    gguf_put_string(&w, "tokenizer.ggml.model", model.data[0] == 'g' ? "gpt2" : "llama");
    if (gguf_get_string(from, "general.architecture", &architecture))
        gguf_put_string(&w, "general.architecture", architecture.data[0] == 'p' ? "phi3" : "llama");
    if (gguf_get_string(from, "tokenizer.ggml.pre", &pre)) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)pre.length, pre.data);
        gguf_put_string(&w, "tokenizer.ggml.pre", name);
        assert_ok(gguf_get_strings(from, "tokenizer.ggml.merges", &merges, &merge_count));
        char **lines = calloc(merge_count, sizeof *lines);
        for (uint64_t i = 0; i < merge_count; i++)
            lines[i] = copy_of(merges[i].data, merges[i].length);
        gguf_put_strings(&w, "tokenizer.ggml.merges", (const char *const *)lines, merge_count);
        for (uint64_t i = 0; i < merge_count; i++)
            free(lines[i]);
        free(lines);
    }
    if (gguf_get_u64(from, "tokenizer.ggml.unknown_token_id", &unknown))
        gguf_put_u32(&w, "tokenizer.ggml.unknown_token_id", (uint32_t)unknown);
    if (gguf_get_bool(from, "tokenizer.ggml.add_space_prefix", &space))
        gguf_put_bool(&w, "tokenizer.ggml.add_space_prefix", space);
    put_tokens(&w, v);
    put_ends(&w, v, bos, eos);
    gguf_put_string(&w, "tokenizer.chat_template", template);
    finish_vocabulary(v, &w);
    gguf_close(from);
}

static inline void free_vocabulary(vocabulary *v)
{
    tokenizer_destroy(v->tokenizer);
    gguf_close(v->file);
    free(v->bytes);
    for (size_t i = 0; i < v->count; i++)
        free(v->tokens[i]);
    free(v->tokens);
    free(v->kinds);
    free(v->scores);
    *v = (vocabulary){0};
}

#endif
