/*
 * A model as two executables over one set of weights and caches: the prompt's and the decode
 * step's. Whichever ran last has left the caches' content for the next. Rows of the cache at and
 * after `position` are never read.
 */
#include "cli/clock.h"
#include "model/llama_internal.h"

enum { CAPACITY_UNIT = 64 };

static rlxvk_status plan_lengths(llama *m, uint64_t prompt_length, uint64_t new_tokens)
{
    uint64_t total, context = (uint64_t)m->config.context;
    if (prompt_length == 0)
        return status_fail(RLXVK_E_RANGE, "llama: an empty prompt; give at least one token");
    if (!size_add(prompt_length, new_tokens, &total) || total > context)
        return status_fail(
            RLXVK_E_RANGE,
            "llama: %llu prompt tokens and %llu new ones exceed the model's context of %llu",
            (unsigned long long)prompt_length, (unsigned long long)new_tokens,
            (unsigned long long)context);
    m->prompt_length = (int64_t)prompt_length;
    m->capacity = (int64_t)MIN(round_up(total, CAPACITY_UNIT), context);
    m->tokens = memory_zeroed(prompt_length, sizeof *m->tokens);
    return m->tokens ? RLXVK_OK : status_fail_memory("prompt");
}

/* Rows not yet written are masked, but a mask does not stop what is no number. */
static rlxvk_status clear_caches(llama *m)
{
    const llama_config *c = &m->config;
    size_t count = (size_t)(c->kv_heads * m->capacity * c->head_dim);
    float *zeros = memory_zeroed(count, sizeof *zeros);
    char name[CACHE_NAME];
    rlxvk_status status = RLXVK_OK;
    if (!zeros)
        return status_fail_memory("cache");
    for (int64_t i = 0; i < 2 * c->blocks; i++) {
        llama_cache_name(name, i % 2, i / 2);
        TRY(rlxvk_bind_handle(m->prefill, name, zeros, count));
        TRY(rlxvk_unbind_handle(m->prefill, name)); /* keeps the content, drops the host's copy */
    }
error:
    memory_free(zeros);
    return status;
}

/* Takes the graph over. */
static rlxvk_status compile(llama *m, rlxvk_context *context, rlxvk_graph *graph,
                            const rlxvk_compile_options *options, rlxvk_executable **out)
{
    double start = clock_seconds();
    rlxvk_status status = rlxvk_compile(context, graph, options, out);
    m->compile_seconds += clock_seconds() - start;
    rlxvk_graph_destroy(graph);
    return status;
}

static rlxvk_status compile_prefill(llama *m, rlxvk_context *context)
{
    rlxvk_graph *graph = NULL;
    rlxvk_status status;
    TRY(llama_build_graph(m, m->prompt_length, false, &graph));
    TRY(compile(m, context, graph, NULL, &m->prefill));
error:
    return status;
}

static rlxvk_status cache_names(llama *m, const char ***out)
{
    size_t count = 2 * (size_t)m->config.blocks;
    const char **names = arena_allocate(&m->memory, count * sizeof *names);
    for (size_t i = 0; names && i < count; i++) {
        char *name = arena_allocate(&m->memory, CACHE_NAME);
        if (!name)
            return status_fail_memory("cache names");
        llama_cache_name(name, i % 2, (int64_t)i / 2);
        names[i] = name;
    }
    *out = names;
    return names ? RLXVK_OK : status_fail_memory("cache names");
}

static rlxvk_status compile_decode(llama *m, rlxvk_context *context)
{
    rlxvk_graph *graph = NULL;
    rlxvk_compile_options options = {.share_with = m->prefill,
                                     .shared_input_count = 2 * (size_t)m->config.blocks};
    const char **names;
    rlxvk_status status;
    TRY(cache_names(m, &names));
    options.shared_inputs = names;
    TRY(llama_build_graph(m, 1, true, &graph));
    TRY(compile(m, context, graph, &options, &m->decode));
error:
    return status;
}

rlxvk_status llama_load(rlxvk_context *context, const gguf_file *file, uint64_t prompt_length,
                        uint64_t new_tokens, const rlxvk_sample_options *sampling, uint64_t seed,
                        llama **out)
{
    rlxvk_device_info device;
    rlxvk_plan_report loaded;
    llama *m = memory_zeroed(1, sizeof *m);
    rlxvk_status status;
    if (!m)
        return status_fail_memory("model");
    rlxvk_context_device(context, &device);
    m->seed = seed;
    if (sampling)
        m->sampling = *sampling;
    TRY(llama_read_config(file, &m->config));
    TRY(plan_lengths(m, prompt_length, new_tokens));
    TRY(llama_find_weights(file, &m->config, device.max_binding_bytes, &m->memory, &m->weights));
    TRY(compile_prefill(m, context));
    TRY(llama_upload(m, m->prefill));
    TRY(clear_caches(m));
    TRY(compile_decode(m, context));
    rlxvk_executable_plan(m->decode, &loaded);
    m->loaded_submissions = loaded.submissions;
    m->weights = (llama_weights){0};
    *out = m;
    return RLXVK_OK;
error:
    llama_destroy(m);
    return status;
}

void llama_destroy(llama *m)
{
    if (!m)
        return;
    rlxvk_executable_destroy(m->decode);
    rlxvk_executable_destroy(m->prefill);
    memory_free(m->tokens);
    arena_destroy(&m->memory);
    memory_free(m);
}

const llama_config *llama_configuration(const llama *m)
{
    return &m->config;
}

static rlxvk_status check_token(const llama *m, uint32_t id)
{
    if (id < (uint64_t)m->config.vocabulary)
        return RLXVK_OK;
    return status_fail(RLXVK_E_INDEX_OOB, "llama: token %u; the vocabulary has %lld", id,
                       (long long)m->config.vocabulary);
}

/* Runs one of the two graphs and reads what is asked for. */
static rlxvk_status run(llama *m, rlxvk_executable *e, const rlxvk_run_input *inputs, size_t count,
                        llama_result result)
{
    float token;
    rlxvk_run_output outputs[2];
    size_t wanted = 0;
    rlxvk_status status;
    if (result.logits)
        outputs[wanted++] = (rlxvk_run_output){.index = 0,
                                               .buffer = result.logits,
                                               .length = (size_t)m->config.vocabulary};
    if (result.token)
        outputs[wanted++] = (rlxvk_run_output){.index = 1, .buffer = &token, .length = 1};
    TRY(rlxvk_run(e, inputs, count, outputs, wanted));
    if (result.token)
        *result.token = (uint32_t)token;
error:
    return status;
}

rlxvk_status llama_prefill(llama *m, const uint32_t *ids, size_t count, llama_result result)
{
    rlxvk_run_input input = {.name = "tokens", .data = m->tokens, .length = count};
    rlxvk_rng_options rng = {.seed = m->seed};
    rlxvk_status status;
    if (count != (size_t)m->prompt_length)
        return status_fail(RLXVK_E_LENGTH,
                           "llama: a prompt of %zu tokens; the model was loaded for %lld", count,
                           (long long)m->prompt_length);
    for (size_t i = 0; i < count; i++) {
        TRY(check_token(m, ids[i]));
        m->tokens[i] = (float)ids[i];
    }
    TRY(rlxvk_set_rng(m->prefill, &rng));
    rng = (rlxvk_rng_options){.seed = m->seed, .step = 1, .advance_per_run = true};
    TRY(rlxvk_set_rng(m->decode, &rng));
    TRY(run(m, m->prefill, &input, 1, result));
    m->position = (int64_t)count;
error:
    return status;
}

rlxvk_status llama_decode(llama *m, uint32_t id, llama_result result)
{
    float token = (float)id, position = (float)m->position;
    rlxvk_run_input inputs[] = {{.name = "tokens", .data = &token, .length = 1},
                                {.name = "position", .data = &position, .length = 1}};
    rlxvk_status status;
    TRY(check_token(m, id));
    if (m->position >= m->capacity)
        return status_fail(RLXVK_E_RANGE,
                           "llama: position %lld; the cache was made for %lld tokens",
                           (long long)m->position, (long long)m->capacity);
    TRY(run(m, m->decode, inputs, ARRAY_COUNT(inputs), result));
    m->position++;
error:
    return status;
}

void llama_usage(const llama *m, llama_report *out)
{
    rlxvk_plan_report prefill, decode;
    rlxvk_memory_report first, second;
    rlxvk_executable_plan(m->prefill, &prefill);
    rlxvk_executable_plan(m->decode, &decode);
    rlxvk_executable_memory(m->prefill, &first);
    rlxvk_executable_memory(m->decode, &second);
    *out = (llama_report){.prefill_dispatches = prefill.dispatches,
                          .decode_dispatches = decode.dispatches,
                          .host_ops = prefill.host_steps + decode.host_steps,
                          .decode_runs = decode.runs,
                          .decode_submissions = decode.submissions - m->loaded_submissions,
                          .device_bytes = first.weight_bytes + first.state_bytes +
                                          first.scratch_bytes + second.scratch_bytes,
                          .compile_seconds = m->compile_seconds};
}
