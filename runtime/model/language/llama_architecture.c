/* The table of architectures: a row has only the differences from plain llama. */
#include "model/language/llama_internal.h"

static const llama_architecture architectures[] = {
    {.name = "llama", .neighbours = true, .experts = true, .even_shares = true},
    {.name = "qwen2"},
    {.name = "qwen2moe", .experts = true, .shared_expert = true},
    {.name = "qwen3", .query_norm = "attn_q_norm", .key_norm = "attn_k_norm"},
    {.name = "qwen3moe",
     .query_norm = "attn_q_norm",
     .key_norm = "attn_k_norm",
     .experts = true,
     .even_shares = true},
    {.name = "gemma2",
     .after_attention = "post_attention_norm",
     .after_ffn = "post_ffw_norm",
     .gelu = true,
     .embedding_root = true,
     .window_period = 2,
     .window = 4096,
     .attention_cap = 50,
     .logit_cap = 30,
     .wide_blocks = 46},
    {.name = "gemma3",
     .query_norm = "attn_q_norm",
     .key_norm = "attn_k_norm",
     .after_attention = "post_attention_norm",
     .after_ffn = "post_ffw_norm",
     .gelu = true,
     .embedding_root = true,
     .window_period = 6,
     .local_base = 10000,
     .wide_blocks = 62},
    {.name = "phi3", .joined_attention = "attn_qkv", .joined_ffn = "ffn_up"},
    {.name = "granite", .neighbours = true, .scaled = true},
};

rlxvk_status llama_find_architecture(const gguf_file *file, const llama_architecture **out)
{
    char known[256] = "";
    text list = {known, sizeof known, 0};
    gguf_string name;
    if (!gguf_get_string(file, "general.architecture", &name))
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: key 'general.architecture' is missing");
    for (size_t i = 0; i < ARRAY_COUNT(architectures); i++) {
        *out = &architectures[i];
        if (gguf_string_is(name, architectures[i].name))
            return RLXVK_OK;
        text_append(&list, "%s%s", i ? ", " : "", architectures[i].name);
    }
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "llama: the model's architecture is '%.*s'; those that run are %s",
                       (int)MIN(name.length, 40), name.data, known);
}
