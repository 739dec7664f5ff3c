/*
 * Fuzzes the loading of model files: parser, metadata, tokenizer, text to ids and back,
 * configuration, tensors and graphs of a language model. No weight is uploaded. Any file may be
 * refused, but if it is accepted, it must be consistent.
 */
#include "fuzz.h"
#include "model/language/llama_internal.h"
#include "op/op.h"
#include "support/fuzz_input.h"
#include "model/language/chat.h"
#include "model/language/tokenizer.h"

enum { MOST_BLOCKS = 4, MOST_VALUES = 1 << 16 };

/* How many inputs got how far. */
static struct {
    uint64_t files, tokenizers, chats, models, graphs;
} reached;

static void read_values(gguf_file *file)
{
    for (uint64_t i = 0; i < file->pair_count; i++) {
        const gguf_pair *p = &file->pairs[i];
        uint64_t u, count = MIN(p->count, 4);
        int64_t s;
        double d;
        for (uint64_t k = 0; k < count; k++) {
            (void)gguf_element_u64(p, k, &u);
            (void)gguf_element_i64(p, k, &s);
            (void)gguf_element_f64(p, k, &d);
        }
        FUZZ_CHECK(count == 0 || !gguf_element_u64(p, p->count, &u), "an element past the last");
    }
}

/* ---- Tokenizer ---- */

static void encode(const tokenizer *t, const char *text, size_t length)
{
    token_list ids = {0};
    token_text back = {0};
    uint32_t size = tokenizer_size(t);
    rlxvk_status status = tokenizer_encode(t, text, length, true, &ids);
    FUZZ_CHECK(status == RLXVK_OK || status == RLXVK_E_RANGE, "encode: %s", rlxvk_last_error());
    for (size_t i = 0; i < ids.count; i++) {
        FUZZ_CHECK(ids.items[i] < size, "token %u of %u", ids.items[i], size);
        (void)tokenizer_token_bytes(t, ids.items[i]);
        (void)tokenizer_is_end(t, ids.items[i]);
    }
    status = tokenizer_decode(t, ids.items, ids.count, &back);
    FUZZ_CHECK(status == RLXVK_OK, "decode: %s", rlxvk_last_error());
    FUZZ_CHECK(tokenizer_token_bytes(t, size).length == 0, "bytes of no token");
    VECTOR_FREE(&ids);
    VECTOR_FREE(&back);
}

/* The file's template may be anything. If it is known, a turn has its tokens. */
static void check_chat(gguf_file *file, tokenizer *t, const char *text, size_t length)
{
    token_list ids = {0};
    chat *c = NULL;
    if (chat_open(file, t, (system_day){2025, 1, 1}, &c) == RLXVK_OK) {
        reached.chats++;
        rlxvk_status status = chat_begin(c, "x", text, length, &ids);
        if (status == RLXVK_OK)
            status =
                chat_continue(c, ids.count ? ids.items[0] : RLXVK_NO_TOKEN, text, length, &ids);
        for (size_t i = 0; i < ids.count; i++)
            FUZZ_CHECK(ids.items[i] < tokenizer_size(t), "token %u", ids.items[i]);
        FUZZ_CHECK(status == RLXVK_OK || status == RLXVK_E_RANGE || status == RLXVK_E_UNSUPPORTED,
                   "chat: %s", rlxvk_last_error());
    }
    VECTOR_FREE(&ids);
    chat_close(c);
}

static void check_tokenizer(gguf_file *file, const uint8_t *bytes, size_t size)
{
    static const char text[] = "Hello  w\xc3\xa9rld, it's 2024\n<|end|>x \xe2\x96\x81 ab \xff\xc3";
    tokenizer *t = NULL;
    size_t tail = MIN(size, 48);
    if (tokenizer_create(file, &t) == RLXVK_OK) {
        reached.tokenizers++;
        encode(t, text, sizeof text - 1);
        encode(t, (const char *)bytes + size - tail, tail);
        check_chat(file, t, (const char *)bytes + size - tail, tail);
    }
    tokenizer_destroy(t);
}

/* ---- Model ---- */

/* Verifies and destroys a graph, if it was built. */
static void check_built(rlxvk_status status, rlxvk_graph **built)
{
    if (status == RLXVK_OK) {
        reached.graphs++;
        status = op_verify(*built);
        FUZZ_CHECK(status == RLXVK_OK, "the model's graph: %s", rlxvk_last_error());
    }
    rlxvk_graph_destroy(*built);
}

static void check_step(const llama *m, llama_rows rows)
{
    rlxvk_graph *g = NULL;
    check_built(llama_build_graph(m, rows, &g), &g);
}

static void check_whole(const llama_net *net, int64_t batch, int64_t length)
{
    rlxvk_graph *g = NULL;
    check_built(llama_build_whole_graph(net, batch, length, &g), &g);
}

static bool is_small(const llama_config *c)
{
    return c->blocks <= MOST_BLOCKS && c->context <= MOST_VALUES && c->width <= MOST_VALUES &&
           c->ffn <= MOST_VALUES && c->vocabulary <= MOST_VALUES && c->head_dim <= 256 &&
           c->heads <= 256;
}

static void check_model(gguf_file *file)
{
    llama m = {.net.capacity = 4, .sequences = 1};
    llama_net *net = &m.net;
    if (llama_read_config(file, &net->config) == RLXVK_OK) {
        const llama_config *c = &net->config;
        reached.models++;
        FUZZ_CHECK(c->blocks > 0 && c->width > 0 && c->heads > 0 && c->kv_heads > 0 &&
                       c->heads % c->kv_heads == 0 && c->rotated % 2 == 0,
                   "an impossible model is accepted");
        if (llama_find_weights(file, c, UINT32_MAX, &m.memory, &net->weights) == RLXVK_OK &&
            is_small(c)) {
            for (m.sequences = 1; m.sequences <= 2; m.sequences++)
                for (int64_t length = 1; length <= 2; length++) {
                    check_step(&m, (llama_rows){length, true});
                    check_step(&m, (llama_rows){length, false});
                }
            check_whole(net, 2, 3);
            check_whole(net, rlxvk_symbol(RLXVK_USER_SYMBOL), rlxvk_symbol(RLXVK_USER_SYMBOL + 1));
        }
    }
    arena_destroy(&m.memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_file *file = NULL;
    gguf_status status = gguf_parse(data, size, NULL, &file);
    FUZZ_CHECK(status == GGUF_OK || *rlxvk_last_error(), "no file and no sentence");
    if (status == GGUF_OK) {
        reached.files++;
        read_values(file);
        check_tokenizer(file, data, size);
        check_model(file);
    }
    gguf_close(file);
    return 0;
}

void fuzz_report(void)
{
    printf("accepted: %llu files, %llu tokenizers, %llu chats, %llu models, %llu graphs\n",
           (unsigned long long)reached.files, (unsigned long long)reached.tokenizers,
           (unsigned long long)reached.chats, (unsigned long long)reached.models,
           (unsigned long long)reached.graphs);
}
