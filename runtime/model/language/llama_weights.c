/*
 * The tensors of a model. They are found by name, checked against the metadata, joined and
 * uploaded.
 *
 * Matrices keep the bytes of the file: quantized blocks as raw U8, halves as halves. Vectors
 * (norms, biases, rotary divisors) are small, so the host converts them to f32. If no kernel reads
 * a matrix's type, the type is noted, and the load fails after all matrices were checked. So one
 * message names all such types.
 */
#include "model/language/llama_internal.h"

#include "model/language/gguf_type.h"

#include <rlxvk_quant.h>

#include <stdio.h>
#include <string.h>

enum { NAME_LENGTH = 256 };

/* Types that a param holds as they are. Matrices of all other types are packed rows. */
static const struct float_type {
    uint32_t type;
    rlxvk_dtype dtype;
} float_types[] = {
    {GGUF_TENSOR_F32, RLXVK_F32},
    {GGUF_TENSOR_F16, RLXVK_F16},
    {GGUF_TENSOR_BF16, RLXVK_BF16},
};

/* The state of llama_find_weights. */
typedef struct search {
    const gguf_file *file;
    const llama_config *config;
    uint64_t binding_limit;
    arena *memory;
    uint32_t refused[GGUF_TENSOR_TYPES]; /* matrices of each type that no kernel reads */
    const char *first_refused[GGUF_TENSOR_TYPES];
} search;

static bool has_kernel(uint32_t type)
{
    const gguf_block *format = gguf_find_block(type);
    return format && format->is_weight;
}

bool llama_type_is_packed(uint32_t type, rlxvk_dtype *out_dtype)
{
    for (size_t i = 0; i < ARRAY_COUNT(float_types); i++)
        if (float_types[i].type == type) {
            *out_dtype = float_types[i].dtype;
            return false;
        }
    *out_dtype = RLXVK_U8;
    return has_kernel(type);
}

/* ---- One tensor ---- */

/* Sets *out to NULL if there is no such tensor. block < 0: a tensor outside the blocks. */
static void find_tensor(const search *s, int64_t block, const char *name, const char *suffix,
                        char full[NAME_LENGTH], const gguf_tensor **out)
{
    if (block < 0)
        snprintf(full, NAME_LENGTH, "%s.%s", name, suffix);
    else
        snprintf(full, NAME_LENGTH, "blk.%lld.%s.%s", (long long)block, name, suffix);
    *out = gguf_find_tensor(s->file, full);
}

static rlxvk_status check_dims(const gguf_tensor *t, int64_t columns, int64_t rows, int64_t slabs)
{
    if (t->rank <= 3 && t->dims[0] == (uint64_t)columns && t->dims[1] == (uint64_t)rows &&
        t->dims[2] == (uint64_t)slabs)
        return RLXVK_OK;
    return status_fail(
        RLXVK_E_SHAPE,
        "llama: tensor '%s' has rank %u and dims %llu x %llu x %llu; the metadata ask for %lld x "
        "%lld x %lld",
        t->name, t->rank, (unsigned long long)t->dims[0], (unsigned long long)t->dims[1],
        (unsigned long long)t->dims[2], (long long)columns, (long long)rows, (long long)slabs);
}

/* Counts a matrix whose type no kernel reads. */
static void note_type(search *s, const gguf_tensor *t)
{
    if (!has_kernel(t->type) && t->type < GGUF_TENSOR_TYPES && s->refused[t->type]++ == 0)
        s->first_refused[t->type] = t->name;
}

static rlxvk_status find_vector(const search *s, int64_t block, const char *name,
                                const char *suffix, bool optional, int64_t length,
                                const gguf_tensor **out)
{
    char full[NAME_LENGTH];
    find_tensor(s, block, name, suffix, full, out);
    if (!*out && !optional)
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: tensor '%s' is missing", full);
    return *out ? check_dims(*out, length, 1, 1) : RLXVK_OK;
}

static rlxvk_status find_matrix(search *s, int64_t block, const char *name, int64_t columns,
                                int64_t rows, const gguf_tensor **out)
{
    char full[NAME_LENGTH];
    rlxvk_status status;
    find_tensor(s, block, name, "weight", full, out);
    if (!*out)
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: tensor '%s' is missing", full);
    TRY(check_dims(*out, columns, rows, 1));
    note_type(s, *out);
error:
    return status;
}

static rlxvk_status check_types(const search *s)
{
    char buffer[384] = "";
    text list = {buffer, sizeof buffer, 0};
    for (uint32_t type = 0; type < GGUF_TENSOR_TYPES; type++)
        if (s->refused[type])
            text_append(&list, "%s%s (%u, first '%s')", list.length ? ", " : "",
                        gguf_find_block(type)->name, s->refused[type], s->first_refused[type]);
    if (list.length == 0)
        return RLXVK_OK;
    return status_fail(
        RLXVK_E_UNSUPPORTED,
        "llama: tensors of types without a kernel: %s; takes F32, F16, BF16 and the block "
        "formats of enum rlxvk_quant_format",
        buffer);
}

/* ---- Products ---- */

static bool can_join(const search *s, const linear *l, const gguf_tensor *next)
{
    uint64_t bytes = next->size;
    for (uint32_t i = 0; i < l->part_count; i++)
        if (!size_add(bytes, l->parts[i]->size, &bytes))
            return false;
    return l->type == next->type && bytes <= s->binding_limit;
}

/* Names the params after the tensors that they hold. */
static rlxvk_status name_linear(const search *s, linear *l)
{
    char buffer[NAME_LENGTH] = "";
    text name = {buffer, sizeof buffer, 0};
    for (uint32_t i = 0; i < l->part_count; i++)
        text_append(&name, "%s%s", i ? "+" : "", l->parts[i]->name);
    l->name = arena_copy_string(s->memory, buffer);
    text_append(&name, ".bias");
    l->bias_name = arena_copy_string(s->memory, buffer);
    return l->name && l->bias_name ? RLXVK_OK : status_fail_memory("weight names");
}

/* Adds the matrix `name`, with `rows` rows, to the group's last product, or makes a new product. */
static rlxvk_status add_linear(search *s, int64_t block, const char *name, int64_t columns,
                               int64_t rows, linear_group *group)
{
    const gguf_tensor *matrix, *bias;
    linear *l = group->count ? &group->items[group->count - 1] : NULL;
    rlxvk_status status;
    TRY(find_matrix(s, block, name, columns, rows, &matrix));
    TRY(find_vector(s, block, name, "bias", true, rows, &bias));
    if (!l || !can_join(s, l, matrix)) {
        l = &group->items[group->count++];
        *l = (linear){.type = matrix->type, .inputs = columns};
    }
    l->parts[l->part_count] = matrix;
    l->biases[l->part_count++] = bias;
    l->roles++;
    l->outputs += rows;
    l->has_bias = l->has_bias || bias;
    TRY(name_linear(s, l));
error:
    return status;
}

static rlxvk_status single_linear(search *s, int64_t block, const char *name, int64_t columns,
                                  int64_t rows, linear *out)
{
    linear_group group = {.count = 0};
    rlxvk_status status;
    TRY(add_linear(s, block, name, columns, rows, &group));
    *out = group.items[0];
error:
    return status;
}

/* ---- The model ---- */

/* Finds the matrices of a group. Each role has its own, or all are in the one called `joined`. */
static rlxvk_status find_group(search *s, int64_t block, const char *joined,
                               const char *const *names, const int64_t *rows, uint32_t count,
                               linear_group *group)
{
    int64_t all = 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < count; all += rows[i++])
        if (!joined)
            TRY(add_linear(s, block, names[i], s->config->width, rows[i], group));
    if (joined) {
        TRY(add_linear(s, block, joined, s->config->width, all, group));
        group->items[0].roles = count;
    }
error:
    return status;
}

static rlxvk_status find_experts(search *s, int64_t block, const char *name, int64_t columns,
                                 int64_t rows, expert_matrices *out)
{
    char full[NAME_LENGTH];
    const gguf_tensor *t;
    rlxvk_status status;
    find_tensor(s, block, name, "weight", full, &t);
    if (!t)
        return status_fail(RLXVK_E_UNKNOWN_NAME, "llama: tensor '%s' is missing", full);
    TRY(check_dims(t, columns, rows, s->config->experts));
    note_type(s, t);
    *out = (expert_matrices){.tensor = t, .inputs = columns, .outputs = rows};
error:
    return status;
}

static rlxvk_status find_expert_layer(search *s, int64_t b, llama_block *out)
{
    static const char *const names[] = {"ffn_gate_shexp", "ffn_up_shexp"};
    const llama_config *c = s->config;
    const int64_t shared[] = {c->shared_ffn, c->shared_ffn};
    rlxvk_status status;
    TRY(single_linear(s, b, "ffn_gate_inp", c->width, c->experts, &out->router));
    TRY(find_experts(s, b, "ffn_gate_exps", c->width, c->expert_ffn, &out->expert_gate));
    TRY(find_experts(s, b, "ffn_up_exps", c->width, c->expert_ffn, &out->expert_up));
    TRY(find_experts(s, b, "ffn_down_exps", c->expert_ffn, c->width, &out->expert_down));
    if (c->shared_ffn == 0)
        return RLXVK_OK;
    TRY(single_linear(s, b, "ffn_gate_inp_shexp", c->width, 1, &out->shared_router));
    TRY(find_group(s, b, NULL, names, shared, ARRAY_COUNT(names), &out->shared_gate_up));
    TRY(single_linear(s, b, "ffn_down_shexp", c->shared_ffn, c->width, &out->shared_down));
error:
    return status;
}

/* Finds the norm if the architecture has one (`name` is not NULL). */
static rlxvk_status find_norm(const search *s, int64_t block, const char *name, int64_t length,
                              const gguf_tensor **out)
{
    return name ? find_vector(s, block, name, "weight", false, length, out) : RLXVK_OK;
}

static rlxvk_status find_block(search *s, int64_t b, llama_block *out)
{
    static const char *const attention[] = {"attn_q", "attn_k", "attn_v"};
    static const char *const ffn[] = {"ffn_gate", "ffn_up"};
    const llama_config *c = s->config;
    const llama_architecture *a = c->architecture;
    int64_t queries = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
    const int64_t attention_rows[] = {queries, keys, keys}, ffn_rows[] = {c->ffn, c->ffn};
    rlxvk_status status;
    TRY(find_norm(s, b, "attn_norm", c->width, &out->attention_norm));
    TRY(find_norm(s, b, "ffn_norm", c->width, &out->ffn_norm));
    TRY(find_norm(s, b, a->query_norm, c->head_dim, &out->query_norm));
    TRY(find_norm(s, b, a->key_norm, c->head_dim, &out->key_norm));
    TRY(find_norm(s, b, a->after_attention, c->width, &out->after_attention));
    TRY(find_norm(s, b, a->after_ffn, c->width, &out->after_ffn));
    TRY(find_group(s, b, a->joined_attention, attention, attention_rows, ARRAY_COUNT(attention),
                   &out->query_key_value));
    TRY(single_linear(s, b, "attn_output", queries, c->width, &out->attention_output));
    if (c->experts)
        return find_expert_layer(s, b, out);
    TRY(find_group(s, b, a->joined_ffn, ffn, ffn_rows, ARRAY_COUNT(ffn), &out->gate_up));
    TRY(single_linear(s, b, "ffn_down", c->ffn, c->width, &out->down));
error:
    return status;
}

/* If a model has no output matrix, the embedding serves as one. */
static rlxvk_status find_ends(search *s, llama_weights *out)
{
    const llama_config *c = s->config;
    bool tied = !gguf_find_tensor(s->file, "output.weight");
    rlxvk_status status;
    TRY(find_matrix(s, -1, "token_embd", c->width, c->vocabulary, &out->embedding));
    TRY(single_linear(s, -1, tied ? "token_embd" : "output", c->width, c->vocabulary,
                      &out->output));
    TRY(find_vector(s, -1, "output_norm", "weight", false, c->width, &out->output_norm));
    TRY(find_vector(s, -1, "rope_freqs", "weight", true, c->rotated / 2, &out->rope_divisors));
    TRY(find_vector(s, -1, "rope_factors_long", "weight", true, c->rotated / 2, &out->rope_long));
    TRY(find_vector(s, -1, "rope_factors_short", "weight", true, c->rotated / 2, &out->rope_short));
error:
    return status;
}

rlxvk_status llama_find_weights(const gguf_file *file, const llama_config *config,
                                uint64_t binding_limit, arena *memory, llama_weights *out)
{
    search s = {.file = file, .config = config, .binding_limit = binding_limit, .memory = memory};
    rlxvk_status status;
    out->blocks = arena_allocate(memory, (size_t)config->blocks * sizeof *out->blocks);
    if (!out->blocks)
        return status_fail_memory("model blocks");
    TRY(find_ends(&s, out));
    for (int64_t b = 0; b < config->blocks; b++)
        TRY(find_block(&s, b, &out->blocks[b]));
    TRY(check_types(&s));
error:
    return status;
}

/* ---- Upload ---- */

/* Payloads pass through one buffer, which is as large as the largest payload. */
typedef struct upload {
    const llama_net *net;
    rlxvk_executable *executable;
    const name_map *wanted;                /* params to set; NULL: all */
    const rlxvk_language_options *options; /* may be NULL */
    VECTOR(uint8_t) bytes;
    uint64_t done; /* bytes of matrices uploaded so far */
} upload;

/* Reads the payloads of some tensors, one after the other. *out may point to payloads that are
 * already in memory. It is valid until the next call. */
static rlxvk_status read_tensors(upload *u, const gguf_tensor *const *tensors, uint32_t count,
                                 const uint8_t **out, uint64_t *out_size)
{
    uint64_t size = 0, at = 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < count; i++)
        size += tensors[i]->size; /* cannot overflow, because joined params stay within the binding
                                     limit */
    *out_size = size;
    if (count == 1 && tensors[0]->data) {
        *out = tensors[0]->data;
        return RLXVK_OK;
    }
    if (!VECTOR_RESERVE(&u->bytes, MAX(size, 1)))
        return status_fail_memory("weights");
    for (uint32_t i = 0; i < count; at += tensors[i++]->size)
        TRY(gguf_read_tensor(tensors[i], u->bytes.items + at));
    *out = u->bytes.items;
error:
    return status;
}

static rlxvk_status read_values(upload *u, const gguf_tensor *t, uint64_t count, float *out)
{
    const uint8_t *bytes;
    uint64_t size;
    rlxvk_status status;
    TRY(read_tensors(u, &t, 1, &bytes, &size));
    TRY(rlxvk_quant_decode_row((rlxvk_quant_format)t->type, bytes, count, out));
error:
    return status;
}

static bool is_wanted(const upload *u, const char *param)
{
    return !u->wanted || name_find(u->wanted, param) != NAME_NONE;
}

static rlxvk_status upload_vector(upload *u, const gguf_tensor *t)
{
    float *values;
    rlxvk_status status;
    if (!is_wanted(u, t->name))
        return RLXVK_OK;
    values = memory_zeroed(t->numel, sizeof *values);
    if (!values)
        return status_fail_memory("weight vector");
    TRY(read_values(u, t, t->numel, values));
    TRY(rlxvk_set_param(u->executable, t->name, values, t->numel));
error:
    memory_free(values);
    return status;
}

static rlxvk_status upload_biases(upload *u, const linear *l)
{
    uint64_t at = 0;
    float *values;
    rlxvk_status status = RLXVK_OK;
    if (!is_wanted(u, l->bias_name))
        return RLXVK_OK;
    values = memory_zeroed((size_t)l->outputs, sizeof *values);
    if (!values)
        return status_fail_memory("biases");
    for (uint32_t i = 0; i < l->part_count; at += l->parts[i++]->dims[1])
        if (l->biases[i])
            TRY(read_values(u, l->biases[i], l->biases[i]->numel, values + at));
    TRY(rlxvk_set_param(u->executable, l->bias_name, values, at));
error:
    memory_free(values);
    return status;
}

static rlxvk_status upload_matrix(upload *u, const char *name, const gguf_tensor *const *parts,
                                  uint32_t count)
{
    const uint8_t *bytes;
    uint64_t size;
    rlxvk_status status;
    if (!is_wanted(u, name))
        return RLXVK_OK;
    TRY(read_tensors(u, parts, count, &bytes, &size));
    TRY(rlxvk_set_param_bytes(u->executable, name, bytes, size));
    u->done += size;
    if (u->options && u->options->progress)
        u->options->progress(u->options->user, u->done, u->net->file_bytes);
error:
    return status;
}

static rlxvk_status upload_linear(upload *u, const linear *l)
{
    rlxvk_status status;
    TRY(upload_matrix(u, l->name, l->parts, l->part_count));
    if (l->has_bias)
        TRY(upload_biases(u, l));
error:
    return status;
}

static rlxvk_status upload_group(upload *u, const linear_group *group)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < group->count; i++)
        TRY(upload_linear(u, &group->items[i]));
error:
    return status;
}

/* The divisors for positions up to the capacity. */
static const gguf_tensor *rope_divisors(const llama_net *net)
{
    const llama_weights *w = &net->weights;
    if (w->rope_long && w->rope_short)
        return net->capacity > net->config.original_context ? w->rope_long : w->rope_short;
    return w->rope_divisors;
}

static rlxvk_status fill_rotations(const llama_net *net, upload *u, bool local, float *table,
                                   float *divisor)
{
    const gguf_tensor *divisors = rope_divisors(net);
    size_t half = (size_t)net->config.rotated / 2;
    int64_t offset = llama_stretch_offset(net);
    rlxvk_status status = RLXVK_OK;
    if (net->by_length) {
        TRY(read_values(u, net->weights.rope_short, half, divisor));
        llama_fill_table(net, local, divisor, 0, offset, table);
    }
    if (divisors)
        TRY(read_values(u, divisors, half, divisor));
    llama_fill_table(net, local, divisors ? divisor : NULL, offset, net->capacity, table);
error:
    return status;
}

static rlxvk_status upload_rotations(const llama_net *net, upload *u, bool local, const char *name)
{
    size_t half = (size_t)net->config.rotated / 2, count = (size_t)llama_table_rows(net) * 2 * half;
    float *table;
    rlxvk_status status = RLXVK_OK;
    if (!llama_has_table(&net->config, local) || !is_wanted(u, name))
        return RLXVK_OK;
    if (!(table = memory_zeroed(count + half, sizeof *table)))
        return status_fail_memory("rotary table");
    TRY(fill_rotations(net, u, local, table, table + count));
    TRY(rlxvk_set_param(u->executable, name, table, count));
error:
    memory_free(table);
    return status;
}

static rlxvk_status upload_experts(upload *u, const llama_block *block)
{
    const expert_matrices *const matrices[] = {&block->expert_gate, &block->expert_up,
                                               &block->expert_down};
    rlxvk_status status;
    TRY(upload_linear(u, &block->router));
    for (size_t i = 0; i < ARRAY_COUNT(matrices); i++)
        TRY(upload_matrix(u, matrices[i]->tensor->name, &matrices[i]->tensor, 1));
    if (u->net->config.shared_ffn) {
        TRY(upload_linear(u, &block->shared_router));
        TRY(upload_group(u, &block->shared_gate_up));
        TRY(upload_linear(u, &block->shared_down));
    }
error:
    return status;
}

static rlxvk_status upload_block(upload *u, const llama_block *block)
{
    rlxvk_status status = RLXVK_OK;
    const gguf_tensor *const vectors[] = {block->attention_norm,  block->ffn_norm,
                                          block->query_norm,      block->key_norm,
                                          block->after_attention, block->after_ffn};
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++)
        if (vectors[i])
            TRY(upload_vector(u, vectors[i]));
    TRY(upload_group(u, &block->query_key_value));
    TRY(upload_linear(u, &block->attention_output));
    if (u->net->config.experts)
        return upload_experts(u, block);
    TRY(upload_group(u, &block->gate_up));
    TRY(upload_linear(u, &block->down));
error:
    return status;
}

rlxvk_status llama_upload(const llama_net *net, rlxvk_executable *executable,
                          const name_map *wanted, const rlxvk_language_options *options)
{
    const llama_weights *w = &net->weights;
    upload u = {.net = net, .executable = executable, .wanted = wanted, .options = options};
    rlxvk_status status;
    TRY(upload_matrix(&u, w->embedding->name, &w->embedding, 1));
    TRY(upload_vector(&u, w->output_norm));
    if (w->output.parts[0] != w->embedding)
        TRY(upload_linear(&u, &w->output));
    for (int64_t b = 0; b < net->config.blocks; b++)
        TRY(upload_block(&u, &w->blocks[b]));
    TRY(upload_rotations(net, &u, false, ROPE_TABLE));
    TRY(upload_rotations(net, &u, true, LOCAL_ROPE_TABLE));
error:
    VECTOR_FREE(&u.bytes);
    return status;
}
