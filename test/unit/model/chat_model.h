/*
 * Models that answer: the bundled one with a chat template. Its comma is renamed to <|im_end|>, so
 * a reply ends where the model would write one. Include it after cmocka.h and golden_numbers.h.
 */
#ifndef RLXVK_TEST_CHAT_MODEL_H
#define RLXVK_TEST_CHAT_MODEL_H

#include "unit/model/chat_vocabulary.h"

#define CHAT_SOURCE "test/data/docs-5m-q4_k_m.gguf"

enum { CHAT_STOP = ',' + 3, CHAT_FREE = 300 }; /* ids: the byte of a comma; a token without use */

static inline void copy_numbers(gguf_writer *w, const gguf_file *from)
{
    static const char *const counts[] = {"llama.context_length",
                                         "llama.embedding_length",
                                         "llama.block_count",
                                         "llama.feed_forward_length",
                                         "llama.attention.head_count",
                                         "llama.attention.head_count_kv",
                                         "llama.rope.dimension_count",
                                         "llama.vocab_size",
                                         "tokenizer.ggml.bos_token_id",
                                         "tokenizer.ggml.eos_token_id",
                                         "tokenizer.ggml.unknown_token_id"};
    static const char *const reals[] = {"llama.attention.layer_norm_rms_epsilon",
                                        "llama.rope.freq_base"};
    uint64_t count;
    double real;
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        assert_true(gguf_get_u64(from, counts[i], &count));
        gguf_put_u32(w, counts[i], (uint32_t)count);
    }
    for (size_t i = 0; i < ARRAY_COUNT(reals); i++) {
        assert_true(gguf_get_f64(from, reals[i], &real));
        gguf_put_f32(w, reals[i], (float)real);
    }
    gguf_put_string(w, "general.architecture", "llama");
    gguf_put_string(w, "tokenizer.ggml.model", "llama");
    gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

static inline void copy_tokens(gguf_writer *w, gguf_file *from)
{
    vocabulary v = {0};
    const gguf_string *tokens;
    uint64_t count, kind;
    assert_ok(gguf_get_strings(from, "tokenizer.ggml.tokens", &tokens, &count));
    for (uint64_t i = 0; i < count; i++) {
        const char *name = i == CHAT_STOP ? "<|im_end|>" : i == CHAT_FREE ? "<|im_start|>" : NULL;
        assert_true(gguf_element_u64(gguf_find(from, "tokenizer.ggml.token_type"), i, &kind));
        add_token(&v, name ? name : tokens[i].data, name ? strlen(name) : tokens[i].length,
                  name ? KIND_CONTROL : (int32_t)kind, 0);
    }
    put_tokens(w, &v);
    free_vocabulary(&v);
}

static inline void chat_model_write(const char *path, const char *template)
{
    gguf_file *from;
    gguf_writer w = {0};
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_ok(gguf_result(gguf_open(CHAT_SOURCE, &from)));
    copy_numbers(&w, from);
    copy_tokens(&w, from);
    gguf_put_string(&w, "tokenizer.chat_template", template);
    for (uint64_t i = 0; i < from->tensor_count; i++) {
        const gguf_tensor *t = &from->tensors[i];
        gguf_put_tensor(&w, t->name, t->type, t->dims[0], t->rank > 1 ? t->dims[1] : 0);
    }
    assert_ok(gguf_begin(&w, stream));
    for (uint64_t i = 0; i < from->tensor_count; i++) {
        void *payload = malloc(from->tensors[i].size);
        assert_non_null(payload);
        assert_ok(gguf_read_tensor(&from->tensors[i], payload));
        gguf_put_payload(&w, payload, from->tensors[i].size);
        free(payload);
    }
    assert_int_equal(fclose(stream), 0);
    gguf_writer_destroy(&w);
    gguf_close(from);
}

#endif
