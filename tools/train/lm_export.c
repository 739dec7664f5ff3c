/* See lm_export.h. */
#include "train/lm_export.h"
#include "base/new_file.h"
#include "graph/graph.h"
#include "model/gguf_write.h"
#include "op/packed/quant_format.h"

/* Values of tokenizer.ggml.token_type. */
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_UNUSED, TOKEN_BYTE };

#define BYTES 256

static void put_tokenizer(gguf_writer *w)
{
    enum { LENGTH = 16 };
    static const char *const control[] = {"<unk>", "<s>", "</s>"};
    char names[LM_VOCABULARY][LENGTH];
    const char *tokens[LM_VOCABULARY];
    float scores[LM_VOCABULARY] = {0};
    int32_t types[LM_VOCABULARY];
    for (int i = 0; i < LM_VOCABULARY; i++) {
        bool is_byte = i >= LM_FIRST_BYTE && i < LM_FIRST_BYTE + BYTES;
        snprintf(names[i], LENGTH, is_byte ? "<0x%02X>" : "<unused%d>",
                 is_byte ? i - LM_FIRST_BYTE : i);
        tokens[i] = i < LM_FIRST_BYTE ? control[i] : names[i];
        types[i] = i == 0              ? TOKEN_UNKNOWN
                   : i < LM_FIRST_BYTE ? TOKEN_CONTROL
                   : is_byte           ? TOKEN_BYTE
                                       : TOKEN_UNUSED;
    }
    gguf_put_string(w, "tokenizer.ggml.model", "llama");
    gguf_put_strings(w, "tokenizer.ggml.tokens", tokens, LM_VOCABULARY);
    gguf_put_f32s(w, "tokenizer.ggml.scores", scores, LM_VOCABULARY);
    gguf_put_i32s(w, "tokenizer.ggml.token_type", types, LM_VOCABULARY);
    gguf_put_u32(w, "tokenizer.ggml.bos_token_id", LM_BOS);
    gguf_put_u32(w, "tokenizer.ggml.eos_token_id", LM_EOS);
    gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

static void put_metadata(gguf_writer *w, const lm_shape *s, bool f16)
{
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"llama.context_length", s->context},
                  {"llama.embedding_length", s->width},
                  {"llama.block_count", s->blocks},
                  {"llama.feed_forward_length", s->ffn},
                  {"llama.attention.head_count", s->heads},
                  {"llama.attention.head_count_kv", s->kv_heads},
                  {"llama.rope.dimension_count", s->width / s->heads},
                  {"llama.vocab_size", LM_VOCABULARY},
                  {"general.file_type", f16}, /* 1: mostly f16 */
                  {"general.quantization_version", 2}};
    gguf_put_string(w, "general.architecture", "llama");
    gguf_put_string(w, "general.description", "byte-level language model made by rlxvk train lm");
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
        gguf_put_u32(w, counts[i].key, (uint32_t)counts[i].value);
    gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", LM_EPSILON);
    gguf_put_f32(w, "llama.rope.freq_base", (float)LM_ROPE_BASE);
    put_tokenizer(w);
}

static uint32_t type_of(const lm_tensor *t, bool f16)
{
    return f16 && t->rows ? QUANT_F16 : QUANT_F32;
}

static rlxvk_status put_values(gguf_writer *w, rlxvk_executable *executable, const lm_tensor *t,
                               bool f16)
{
    uint64_t count = (uint64_t)t->columns * (uint64_t)MAX(t->rows, 1);
    uint64_t size = quant_row_bytes(type_of(t, f16), count);
    float *values = memory_allocate(count * sizeof *values);
    void *bytes = memory_allocate(size);
    rlxvk_status status;
    TRY(values && bytes ? RLXVK_OK : status_fail_memory("weights"));
    TRY(rlxvk_read_param(executable, t->name, values, count));
    dtype_narrow(type_of(t, f16) == QUANT_F16 ? RLXVK_F16 : RLXVK_F32, values, count, bytes);
    gguf_put_payload(w, bytes, size);
error:
    memory_free(values);
    memory_free(bytes);
    return status;
}

rlxvk_status lm_export(rlxvk_executable *executable, const lm_shape *shape, bool f16,
                       const char *path)
{
    gguf_writer w = {0};
    new_file file = {0};
    uint32_t count = lm_tensor_count(shape);
    rlxvk_status status;
    put_metadata(&w, shape, f16);
    for (uint32_t i = 0; i < count; i++) {
        lm_tensor t = lm_tensor_at(shape, i);
        gguf_put_tensor(&w, t.name, type_of(&t, f16), (uint64_t)t.columns, (uint64_t)t.rows);
    }
    TRY(new_file_open(path, &file));
    TRY(gguf_begin(&w, file.stream));
    for (uint32_t i = 0; i < count; i++) {
        lm_tensor t = lm_tensor_at(shape, i);
        TRY(put_values(&w, executable, &t, f16));
    }
    gguf_writer_destroy(&w);
    return new_file_close(&file);
error:
    if (file.stream)
        new_file_discard(&file);
    gguf_writer_destroy(&w);
    return status;
}
