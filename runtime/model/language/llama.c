/*
 * Runs a model as several executables over one set of weights and caches. One is the step, which
 * owns both; the others are chunks, one for each length, compiled when they are first needed. Each
 * run continues with the caches that the last run left, whichever executable it was. Cache rows at
 * and after `position` are never read.
 */
#include "base/system.h"
#include "model/language/llama_internal.h"

#include <rlxvk_symbols.h>

#include <string.h>

static rlxvk_status plan_capacity(llama *m)
{
    uint64_t context = (uint64_t)m->net.config.context;
    uint64_t capacity = m->options.capacity ? m->options.capacity : context;
    if (capacity > context)
        return status_fail(RLXVK_E_RANGE,
                           "llama: a sequence of %llu tokens exceeds the model's context of %llu",
                           (unsigned long long)capacity, (unsigned long long)context);
    m->net.capacity = (int64_t)capacity;
    m->sequences = MAX((int64_t)m->options.sequences, 1);
    size_t many = (size_t)m->sequences;
    m->positions = arena_allocate(&m->memory, many * sizeof *m->positions);
    m->numbers = arena_allocate(&m->memory, 4 * many * sizeof *m->numbers);
    m->stretched = arena_allocate(&m->memory, many * sizeof *m->stretched);
    m->pieces = arena_allocate(&m->memory, many * sizeof *m->pieces);
    m->before = arena_allocate(&m->memory, many * sizeof *m->before);
    m->tokens = arena_allocate(&m->memory, MAX(many, LARGEST_CHUNK) * sizeof *m->tokens);
    return m->positions && m->numbers && m->stretched && m->pieces && m->before && m->tokens
               ? RLXVK_OK
               : status_fail_memory("sequences");
}

/* Decides whether lengths select the divisors. If so, tokens are kept, because they may have to run
 * again. */
static rlxvk_status plan_stretch(llama *m)
{
    const llama_weights *w = &m->net.weights;
    m->net.by_length = !m->options.long_divisors && w->rope_long && w->rope_short &&
                       m->net.capacity > m->net.config.original_context;
    if (!m->net.by_length)
        return RLXVK_OK;
    m->history =
        arena_allocate(&m->memory, (size_t)(m->sequences * m->net.capacity) * sizeof *m->history);
    return m->history ? RLXVK_OK : status_fail_memory("sequences");
}

static uint64_t cache_bytes(const llama *m)
{
    const llama_config *c = &m->net.config;
    return 2 * rlxvk_dtype_size(m->options.cache) *
           (uint64_t)(c->blocks * c->kv_heads * c->head_dim * m->sequences * m->net.capacity);
}

/* Checks memory before anything is uploaded. If this misses something, the driver reports it later.
 */
static rlxvk_status check_memory(const llama *m, uint64_t device_bytes)
{
    uint64_t weights = m->net.file_bytes;
    if (device_bytes == 0 || m->options.device_bytes || weights + cache_bytes(m) <= device_bytes)
        return RLXVK_OK;
    return status_fail(
        RLXVK_E_TOO_LARGE,
        "llama: weights of %llu MiB and a cache of %llu MiB, for %lld tokens, exceed "
        "the device's memory of %llu MiB; ask for a smaller context",
        (unsigned long long)(weights >> 20), (unsigned long long)(cache_bytes(m) >> 20),
        (long long)m->net.capacity, (unsigned long long)(device_bytes >> 20));
}

/* Clears the caches, because every param must be set before a run, even if nothing reads it. */
static rlxvk_status clear_caches(llama *m)
{
    const llama_config *c = &m->net.config;
    rlxvk_status status = RLXVK_OK;
    char name[CACHE_NAME];
    for (int64_t i = 0; i < 2 * c->blocks; i++) {
        llama_cache_name(name, i % 2, i / 2);
        TRY(rlxvk_clear_param(m->decode, name));
    }
error:
    return status;
}

/* Elements of the widest tensor in a block, for each row. */
static uint64_t widest_row(const llama_config *c)
{
    int64_t projected = (c->heads + 2 * c->kv_heads) * c->head_dim;
    int64_t gated = c->experts ? 2 * MAX(c->chosen * c->expert_ffn, c->shared_ffn) : 2 * c->ffn;
    return (uint64_t)MAX(projected, gated);
}

/* About the memory that the graphs of chunks take: temporaries, and a row of logits. A graph of
 * half the length is half as large, so all together need about twice as much as the longest.
 * Several sequences have graphs that run all of them, too. */
static uint64_t chunks_bytes(const llama *m)
{
    uint64_t row = 2 * sizeof(float) * widest_row(&m->net.config),
             graphs = m->sequences > 1 ? 2 : 1;
    uint64_t rows = 2 * (uint64_t)(SMALLEST_CHUNK << (m->chunk_lengths - 1));
    uint64_t logits = 4 * sizeof(float) * (uint64_t)(m->net.config.vocabulary * m->sequences);
    return graphs * (row * rows + logits * (uint64_t)m->chunk_lengths);
}

/* Chunks may take a quarter of the memory that the cache leaves of the limit. */
static void plan_limited_chunks(llama *m)
{
    uint64_t limit = m->options.device_bytes, cache = cache_bytes(m);
    uint64_t room = limit > cache ? (limit - cache) / 4 : 0;
    while (m->chunk_lengths > 1 && chunks_bytes(m) > room)
        m->chunk_lengths--;
}

/* Chooses the longest chunk. Long chunks keep a large GPU busier: 4,096 tokens of an 8B model take
 * 9 % less time on an H200. Temporaries need about twice the widest tensor. So the widest tensor
 * may be at most a sixteenth of weights and cache, and a quarter of the memory that these leave. */
static void plan_chunks(llama *m, uint64_t device_bytes)
{
    uint64_t held = m->net.file_bytes + cache_bytes(m),
             row = sizeof(float) * widest_row(&m->net.config);
    uint64_t room = device_bytes > held ? (device_bytes - held) / 4 : 0;
    m->chunk_lengths = MODEST_LENGTHS;
    while (m->chunk_lengths < CHUNK_LENGTHS &&
           row * (uint64_t)(SMALLEST_CHUNK << m->chunk_lengths) <= MIN(held / 16, room))
        m->chunk_lengths++;
    if (m->options.device_bytes)
        plan_limited_chunks(m);
}

static size_t longest_chunk(const llama *m)
{
    return (size_t)SMALLEST_CHUNK << (m->chunk_lengths - 1);
}

/* ---- Graphs ---- */

/* What a graph takes besides the weights and caches that all share. */
static uint64_t used_by(const rlxvk_executable *e)
{
    rlxvk_memory_report memory;
    if (!e)
        return 0;
    rlxvk_executable_memory(e, &memory);
    return memory.prepared_bytes + memory.state_bytes + memory.scratch_bytes;
}

/* What the next graph may take of a limit. The step leaves room for the chunks. */
static uint64_t bytes_left(const llama *m)
{
    uint64_t used = m->decode ? m->shared_bytes + used_by(m->decode) : chunks_bytes(m);
    for (int i = 0; i < CHUNK_LENGTHS; i++)
        used += used_by(m->chunks[i]) + used_by(m->wide[i]);
    return m->options.device_bytes > used ? m->options.device_bytes - used : 1;
}

static rlxvk_status compile(llama *m, llama_rows shape, rlxvk_executable **out)
{
    static const rlxvk_bucket_axis axes[] = {{"tokens", 0, false}, {"last", 0, true}};
    bool limited = m->options.device_bytes > 0;
    rlxvk_compile_options options =
        RLXVK_SIZED(rlxvk_compile_options, .precision = m->options.precision,
                    .share_with = m->decode, .bucket_axes = axes,
                    .bucket_axis_count = shape.every ? 0 : ARRAY_COUNT(axes),
                    .device_memory_bytes = limited ? bytes_left(m) : 0,
                    .host_weights_bytes = limited ? UINT64_MAX : 0);
    rlxvk_graph *graph = NULL;
    uint64_t start = system_nanoseconds();
    rlxvk_status status;
    TRY(llama_build_graph(m, shape, &graph));
    TRY(rlxvk_compile(m->context, graph, &options, out));
error:
    rlxvk_graph_destroy(graph);
    m->compile_seconds += 1e-9 * (double)(system_nanoseconds() - start);
    return status;
}

/* Remembers the submissions of a new step, which transferred weights. */
static void count_loaded(llama *m)
{
    rlxvk_plan_report plan;
    rlxvk_executable_plan(m->decode, &plan);
    m->loaded_submissions = plan.submissions;
}

rlxvk_status llama_load(rlxvk_context *context, const gguf_file *file,
                        const rlxvk_language_options *options, llama **out)
{
    static const rlxvk_language_options defaults = {0};
    rlxvk_device_info device;
    rlxvk_memory_report memory = RLXVK_SIZED(rlxvk_memory_report, .block_count = 0);
    llama *m = memory_zeroed(1, sizeof *m);
    rlxvk_status status;
    if (!m)
        return status_fail_memory("model");
    if (!options)
        options = &defaults;
    rlxvk_context_device(context, &device);
    m->context = context;
    m->options = *options;
    if (options->sampling)
        m->sampling = *options->sampling;
    for (uint64_t i = 0; i < file->tensor_count; i++)
        m->net.file_bytes += file->tensors[i].size;
    TRY(llama_read_config(file, &m->net.config));
    TRY(plan_capacity(m));
    TRY(check_memory(m, device.device_memory_bytes));
    plan_chunks(m, device.device_memory_bytes);
    m->run_rows = device.kind == RLXVK_DEVICE_CPU ? 4 : 64;
    TRY(llama_find_weights(file, &m->net.config, device.max_binding_bytes, &m->memory,
                           &m->net.weights));
    TRY(plan_stretch(m));
    TRY(compile(m, (llama_rows){1, true}, &m->decode));
    rlxvk_executable_memory(m->decode, &memory);
    m->shared_bytes = memory.weight_bytes - memory.prepared_bytes;
    m->shared_host_bytes = memory.host_weight_bytes;
    TRY(llama_upload(&m->net, m->decode, NULL, &m->options));
    TRY(clear_caches(m));
    llama_rewind(m);
    count_loaded(m);
    *out = m;
    return RLXVK_OK;
error:
    llama_destroy(m);
    return status;
}

static void destroy_chunks(llama *m)
{
    for (int i = 0; i < CHUNK_LENGTHS; i++) {
        rlxvk_executable_destroy(m->chunks[i]);
        rlxvk_executable_destroy(m->wide[i]);
        m->chunks[i] = m->wide[i] = NULL;
    }
    m->last_chunk = NULL;
}

static bool is_same_stream(rlxvk_rng_stream a, rlxvk_rng_stream b)
{
    return a.has_key == b.has_key && a.key == b.key && a.has_op_seed == b.has_op_seed &&
           a.op_seed == b.op_seed;
}

static bool is_same_sampling(const rlxvk_sample_options *a, const rlxvk_sample_options *b)
{
    return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
           a->seed == b->seed && is_same_stream(a->stream, b->stream);
}

rlxvk_status llama_set_sampling(llama *m, const rlxvk_sample_options *sampling, uint64_t seed)
{
    rlxvk_sample_options before = m->sampling;
    rlxvk_executable *step = NULL;
    rlxvk_status status = RLXVK_OK;
    if (!is_same_sampling(&before, sampling)) {
        m->sampling = *sampling;
        TRY(compile(m, (llama_rows){1, true}, &step)); /* over the weights and caches of the old */
        destroy_chunks(m);                             /* each is compiled again if needed */
        rlxvk_executable_destroy(m->decode);
        m->decode = step;
        count_loaded(m);
    }
    m->options.seed = seed;
    return RLXVK_OK;
error:
    m->sampling = before;
    return status;
}

void llama_destroy(llama *m)
{
    if (!m)
        return;
    destroy_chunks(m);
    rlxvk_executable_destroy(m->decode);
    arena_destroy(&m->memory);
    memory_free(m);
}

const llama_config *llama_configuration(const llama *m)
{
    return &m->net.config;
}

/* ---- Runs ---- */

static int64_t *position_of(llama *m)
{
    return &m->positions[m->sequence];
}

void llama_rewind(llama *m)
{
    *position_of(m) = 0;
    m->stretched[m->sequence] = false;
    if (m->sequences == 1)
        m->draws = 0;
}

void llama_select(llama *m, uint32_t sequence)
{
    m->sequence = sequence < m->sequences ? sequence : 0;
}

uint64_t llama_room(const llama *m)
{
    return (uint64_t)(m->net.capacity - m->positions[m->sequence]);
}

static rlxvk_status check_room(const llama *m, size_t count)
{
    if (count > 0 && count <= llama_room(m))
        return RLXVK_OK;
    return status_fail(RLXVK_E_RANGE,
                       "llama: %zu tokens from position %lld on; takes one or more, and the cache "
                       "was made for %lld",
                       count, (long long)m->positions[m->sequence], (long long)m->net.capacity);
}

/* Runs a graph with `rows` rows of logits and the next random numbers. Reads the results that are
 * not NULL. */
static rlxvk_status run(llama *m, rlxvk_executable *e, const rlxvk_run_input *inputs, size_t count,
                        size_t rows, float *logits, float *tokens)
{
    rlxvk_rng_options rng = {.seed = m->options.seed, .step = m->draws};
    rlxvk_run_output outputs[2];
    size_t wanted = 0;
    rlxvk_status status;
    if (logits)
        outputs[wanted++] = (rlxvk_run_output){.index = 0,
                                               .buffer = logits,
                                               .length = rows * (size_t)m->net.config.vocabulary};
    if (tokens)
        outputs[wanted++] =
            (rlxvk_run_output){.index = 1, .buffer = tokens, .length = rows, .f32_words = true};
    TRY(rlxvk_set_rng(e, &rng));
    TRY(rlxvk_run(e, inputs, count, outputs, wanted));
error:
    return status;
}

/* ---- Stretching ---- */

/* The row of the rotary tables that this sequence uses for position 0. */
static float stretch_of(const llama *m, int64_t sequence)
{
    return m->stretched[sequence] ? (float)llama_stretch_offset(&m->net) : 0;
}

static void remember(const llama *m, int64_t sequence, const uint32_t *ids, size_t count)
{
    if (m->net.by_length)
        memmove(m->history + sequence * m->net.capacity + m->positions[sequence], ids,
                count * sizeof *ids);
}

static rlxvk_status extend(llama *m, const uint32_t *ids, size_t count, llama_result result);

/* Call this before `count` more tokens. If they make a sequence longer than the original context,
 * it runs again from the start, because its keys were rotated by other divisors. */
static rlxvk_status stretch(llama *m, uint32_t sequence, size_t count)
{
    uint32_t selected = m->sequence;
    int64_t length = m->positions[sequence];
    rlxvk_status status = RLXVK_OK;
    if (!m->net.by_length || m->stretched[sequence] || count == 0 ||
        length + (int64_t)count <= m->net.config.original_context)
        return RLXVK_OK;
    m->sequence = sequence;
    m->stretched[sequence] = true;
    m->positions[sequence] = 0;
    status = extend(m, m->history + sequence * m->net.capacity, (size_t)length,
                    (llama_result){NULL, NULL});
    m->sequence = selected;
    if (status) {
        m->stretched[sequence] = false; /* the next tokens make it run again */
        m->positions[sequence] = length;
    }
    return status;
}

/* ---- Every sequence at once ---- */

/* Runs `length` rows of every sequence: the first tokens of its piece, then padding with the last
 * of these. The pieces keep the tokens that are left. Rows of idle sequences run, too, but change
 * nothing. Does not count `draws`. */
static rlxvk_status run_every(llama *m, rlxvk_executable *e, size_t length, llama_piece *pieces,
                              float *logits, uint32_t *tokens)
{
    size_t many = (size_t)m->sequences;
    float *positions = m->numbers, *last = positions + many, *out = last + many;
    float *turns = out + many;
    rlxvk_run_input inputs[4] = {
        {.name = "tokens", .data = m->tokens, .length = many * length, .f32_words = true},
        {.name = "position", .data = positions, .length = many, .f32_words = true}};
    size_t count = 2;
    rlxvk_status status;
    if (m->net.by_length)
        inputs[count++] =
            (rlxvk_run_input){.name = "stretch", .data = turns, .length = many, .f32_words = true};
    if (length > 1)
        inputs[count++] =
            (rlxvk_run_input){.name = "last", .data = last, .length = many, .f32_words = true};
    for (size_t s = 0; s < many; s++) {
        size_t taken = MIN(pieces[s].count, length);
        positions[s] = taken ? (float)m->positions[s] : -1;
        turns[s] = stretch_of(m, (int64_t)s);
        last[s] = (float)(s * length + MAX(taken, 1) - 1);
        for (size_t i = 0; i < length; i++)
            m->tokens[s * length + i] = taken ? (float)pieces[s].ids[MIN(i, taken - 1)] : 0;
    }
    TRY(run(m, e, inputs, count, many, logits, tokens ? out : NULL));
    for (size_t s = 0; s < many; s++) {
        size_t taken = MIN(pieces[s].count, length);
        remember(m, (int64_t)s, pieces[s].ids, taken);
        m->positions[s] += (int64_t)taken;
        pieces[s] = (llama_piece){pieces[s].ids + taken, pieces[s].count - taken};
        if (tokens && taken && pieces[s].count == 0)
            tokens[s] = (uint32_t)out[s];
    }
error:
    return status;
}

static rlxvk_status check_tokens(const llama *m, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= (uint64_t)m->net.config.vocabulary)
            return status_fail(RLXVK_E_INDEX_OOB, "llama: token %u; the vocabulary has %lld",
                               ids[i], (long long)m->net.config.vocabulary);
    return RLXVK_OK;
}

/* Checks room, and tokens if they are to run, before anything runs. */
static rlxvk_status check_pieces(const llama *m, const llama_piece *pieces, bool runs)
{
    rlxvk_status status = RLXVK_OK;
    for (int64_t s = 0; s < m->sequences; s++) {
        uint64_t room = (uint64_t)(m->net.capacity - m->positions[s]);
        if (pieces[s].count > room)
            return status_fail(RLXVK_E_RANGE,
                               "llama: %zu tokens for sequence %lld, which has %lld: the cache was "
                               "made for %lld",
                               pieces[s].count, (long long)s, (long long)m->positions[s],
                               (long long)m->net.capacity);
        if (runs)
            TRY(check_tokens(m, pieces[s].ids, pieces[s].count));
    }
error:
    return status;
}

/* Makes pieces, which may be those of the model, its own. If they are to run, no sequence needs
 * stretching afterwards. */
static rlxvk_status begin_pieces(llama *m, const llama_piece *pieces, bool runs)
{
    rlxvk_status status;
    TRY(check_pieces(m, pieces, runs));
    for (uint32_t s = 0; runs && s < (uint32_t)m->sequences; s++)
        TRY(stretch(m, s, pieces[s].count));
    memmove(m->pieces, pieces, (size_t)m->sequences * sizeof *pieces);
error:
    return status;
}

/* Appends at most one token to each sequence. `pieces` may be those of the model. */
static rlxvk_status step(llama *m, const llama_piece *pieces, float *logits, uint32_t *tokens)
{
    rlxvk_status status;
    TRY(begin_pieces(m, pieces, true));
    TRY(run_every(m, m->decode, 1, m->pieces, logits, tokens));
    m->draws++;
error:
    return status;
}

rlxvk_status llama_step(llama *m, const uint32_t *ids, float *logits, uint32_t *tokens)
{
    for (int64_t s = 0; s < m->sequences; s++)
        m->pieces[s] = (llama_piece){&ids[s], ids[s] != RLXVK_NO_TOKEN};
    return step(m, m->pieces, logits, tokens);
}

/* ---- One sequence ---- */

/* A run of some tokens of one sequence. It is a chunk; or a step if there is one token and the
 * model has one sequence. */
typedef struct chunk {
    size_t tokens;
    int64_t rows; /* 0: a step */
    int length;   /* the chunk has 8 << length rows, or fewer if the cache has */
} chunk;

/* The shortest chunk for so many tokens, whatever rows the cache has. */
static chunk shortest(size_t tokens)
{
    chunk c = {.tokens = tokens};
    while (tokens > (size_t)SMALLEST_CHUNK << c.length)
        c.length++;
    c.rows = (int64_t)SMALLEST_CHUNK << c.length;
    return c;
}

/* Takes half a chunk if that and another for the rest take less time. Products compute whole bands
 * of tiles, so a long chunk computes most rows of its padding, too. */
static chunk next_chunk(const llama *m, size_t count)
{
    if (m->sequences == 1 && count == 1)
        return (chunk){.tokens = 1};
    chunk next = shortest(MIN(count, longest_chunk(m)));
    int64_t half = next.rows / 2;
    next.rows = MIN(next.rows, m->net.capacity);
    if (half >= LEAST_HALF &&
        m->run_rows + half + shortest(next.tokens - (size_t)half).rows < next.rows)
        return shortest((size_t)half);
    return next;
}

static rlxvk_status find(llama *m, rlxvk_executable **kept, llama_rows shape,
                         rlxvk_executable **out)
{
    rlxvk_status status = RLXVK_OK;
    if (!*kept)
        TRY(compile(m, shape, kept));
    *out = *kept;
error:
    return status;
}

static rlxvk_status find_chunk(llama *m, chunk c, rlxvk_executable **out)
{
    return find(m, c.rows ? &m->chunks[c.length] : &m->decode, (llama_rows){c.rows, false}, out);
}

/* The next chunk and its graph. If the limit leaves no room for it, shorter ones are taken. */
static rlxvk_status take_chunk(llama *m, size_t count, chunk *c, rlxvk_executable **out)
{
    status_sentence before;
    rlxvk_status status;
    status_save(&before);
    while (true) {
        *c = next_chunk(m, count);
        status = find_chunk(m, *c, out);
        if (status != RLXVK_E_OUT_OF_DEVICE_MEMORY || !m->options.device_bytes || c->length == 0)
            break;
        m->chunk_lengths = c->length;
    }
    TRY(status);
    status_restore(&before);
error:
    return status;
}

/* Pads with the last token, which is as good as any, because padding has no effect. Rows of padding
 * are not computed as long as the graph keeps rows apart. */
static rlxvk_status run_chunk(llama *m, rlxvk_executable *e, const uint32_t *ids, chunk c,
                              llama_result result)
{
    float place[2] = {(float)*position_of(m), (float)m->sequence};
    float last = (float)c.tokens - 1, turn = stretch_of(m, m->sequence), token = 0;
    const rlxvk_run_input inputs[] = {
        {.name = "tokens", .data = m->tokens, .length = (size_t)c.rows, .f32_words = true},
        {.name = "position", .data = place, .length = ARRAY_COUNT(place), .f32_words = true},
        {.name = "last", .data = &last, .length = 1, .f32_words = true},
        {.name = "stretch", .data = &turn, .length = 1, .f32_words = true}};
    rlxvk_status status;
    if (c.rows == 0)
        return run_every(m, m->decode, 1, &(llama_piece){ids, 1}, result.logits, result.token);
    for (size_t i = 0; i < (size_t)c.rows; i++)
        m->tokens[i] = (float)ids[MIN(i, c.tokens - 1)];
    TRY(rlxvk_set_active_extent(e, (int64_t)c.tokens, c.rows));
    TRY(run(m, e, inputs, ARRAY_COUNT(inputs) - !m->net.by_length, 1, result.logits,
            result.token ? &token : NULL));
    remember(m, m->sequence, ids, c.tokens);
    if (result.token)
        *result.token = (uint32_t)token;
    m->last_chunk = e;
    *position_of(m) += (int64_t)c.tokens;
error:
    return status;
}

static rlxvk_status prepare(llama *m, size_t count)
{
    rlxvk_executable *e;
    rlxvk_status status = RLXVK_OK;
    for (chunk c; count > 0; count -= c.tokens) {
        TRY(take_chunk(m, count, &c, &e));
    }
error:
    return status;
}

rlxvk_status llama_prepare(llama *m, size_t count)
{
    rlxvk_status status;
    TRY(check_room(m, count));
    TRY(prepare(m, count));
error:
    return status;
}

/* Does not count `draws`. */
static rlxvk_status extend(llama *m, const uint32_t *ids, size_t count, llama_result result)
{
    rlxvk_executable *e;
    rlxvk_status status = RLXVK_OK;
    for (chunk c; count > 0; count -= c.tokens, ids += c.tokens) {
        TRY(take_chunk(m, count, &c, &e));
        TRY(run_chunk(m, e, ids, c, c.tokens == count ? result : (llama_result){NULL, NULL}));
    }
error:
    return status;
}

rlxvk_status llama_extend(llama *m, const uint32_t *ids, size_t count, llama_result result)
{
    int64_t before = *position_of(m);
    rlxvk_status status;
    TRY(check_room(m, count));
    TRY(check_tokens(m, ids, count));
    TRY(prepare(m, count));
    TRY(stretch(m, m->sequence, count));
    status = extend(m, ids, count, result);
    if (status)
        *position_of(m) = before;
    else
        m->draws++;
error:
    return status;
}

rlxvk_status llama_decode(llama *m, uint32_t id, llama_result result)
{
    return llama_extend(m, &id, 1, result);
}

/* ---- Pieces of several sequences ---- */

/* The next run: SMALLEST_CHUNK << length rows of every sequence, or all tokens of one sequence. */
typedef struct run_plan {
    bool every;
    int length;
    uint32_t sequence;
} run_plan;

static double rate_of(const llama *m, size_t tokens, size_t rows)
{
    return (double)tokens / (double)(m->run_rows + rows);
}

/* Chooses the run that handles the most tokens in a unit of time: only the longest piece, or some
 * tokens of all pieces. Returns false if nothing is left. */
static bool next_round(const llama *m, run_plan *out)
{
    const llama_piece *pieces = m->pieces;
    run_plan best = {.every = false};
    size_t many = (size_t)m->sequences;
    for (uint32_t s = 1; s < many; s++)
        if (pieces[s].count > pieces[best.sequence].count)
            best.sequence = s;
    size_t longest = MIN(pieces[best.sequence].count, longest_chunk(m));
    double most = rate_of(m, longest, longest);
    for (int i = 0; i < m->chunk_lengths && many << i <= longest_chunk(m) / SMALLEST_CHUNK; i++) {
        size_t length = (size_t)SMALLEST_CHUNK << i, tokens = 0;
        for (size_t s = 0; s < many; s++)
            tokens += MIN(pieces[s].count, length);
        if (rate_of(m, tokens, many * length) > most) {
            most = rate_of(m, tokens, many * length);
            best.every = true;
            best.length = i;
        }
    }
    *out = best;
    return longest > 0;
}

static rlxvk_status round_of_one(llama *m, uint32_t sequence, bool runs, uint32_t *token)
{
    llama_piece *piece = &m->pieces[sequence];
    uint32_t selected = m->sequence;
    rlxvk_status status;
    m->sequence = sequence;
    status = runs ? extend(m, piece->ids, piece->count, (llama_result){NULL, token})
                  : prepare(m, piece->count);
    m->sequence = selected;
    piece->count = 0;
    return status;
}

static rlxvk_status round_of_every(llama *m, int index, bool runs, uint32_t *tokens)
{
    size_t length = (size_t)SMALLEST_CHUNK << index;
    rlxvk_executable *e;
    rlxvk_status status;
    TRY(find(m, &m->wide[index], (llama_rows){(int64_t)length, true}, &e));
    if (runs) {
        TRY(run_every(m, e, length, m->pieces, NULL, tokens));
        m->last_chunk = e;
    } else {
        for (int64_t s = 0; s < m->sequences; s++)
            m->pieces[s].count -= MIN(m->pieces[s].count, length);
    }
error:
    return status;
}

/* Goes through all rounds that the pieces need. If `runs`, it runs them; otherwise it only compiles
 * for them. Does not count `draws`. */
static rlxvk_status take_pieces(llama *m, const llama_piece *pieces, bool runs, uint32_t *tokens)
{
    run_plan r;
    rlxvk_status status;
    TRY(begin_pieces(m, pieces, runs));
    while (next_round(m, &r))
        TRY(r.every ? round_of_every(m, r.length, runs, tokens)
                    : round_of_one(m, r.sequence, runs, tokens ? &tokens[r.sequence] : NULL));
error:
    return status;
}

/* Whether one step of all sequences handles the pieces. */
static bool is_step(const llama *m, const llama_piece *pieces)
{
    size_t longest = 0;
    for (int64_t s = 0; s < m->sequences; s++)
        longest = MAX(longest, pieces[s].count);
    return longest == 1;
}

rlxvk_status llama_extend_each(llama *m, const llama_piece *pieces, uint32_t *tokens)
{
    rlxvk_status status;
    if (is_step(m, pieces))
        return step(m, pieces, NULL, tokens);
    TRY(take_pieces(m, pieces, false, NULL));
    memcpy(m->before, m->positions, (size_t)m->sequences * sizeof *m->positions);
    status = take_pieces(m, pieces, true, tokens);
    if (status)
        memcpy(m->positions, m->before, (size_t)m->sequences * sizeof *m->positions);
    else
        m->draws++;
error:
    return status;
}

rlxvk_status llama_prepare_each(llama *m, const llama_piece *pieces)
{
    return is_step(m, pieces) ? check_pieces(m, pieces, false)
                              : take_pieces(m, pieces, false, NULL);
}

/* ---- Report ---- */

static void add_report(rlxvk_executable *e, rlxvk_language_report *out)
{
    rlxvk_plan_report plan;
    rlxvk_memory_report memory = RLXVK_SIZED(rlxvk_memory_report, .block_count = 0);
    if (!e)
        return;
    rlxvk_executable_plan(e, &plan);
    rlxvk_executable_memory(e, &memory);
    out->graphs++;
    out->host_steps += plan.host_steps;
    out->state_bytes += memory.state_bytes;
    out->scratch_bytes += memory.scratch_bytes;
    out->staging_bytes += memory.staging_bytes;
    out->prepared_bytes += memory.prepared_bytes;
    out->host_weight_bytes += memory.host_weight_bytes;
}

void llama_usage(const llama *m, rlxvk_language_report *out)
{
    rlxvk_plan_report step, chunk = {0};
    rlxvk_executable_plan(m->decode, &step);
    if (m->last_chunk)
        rlxvk_executable_plan(m->last_chunk, &chunk);
    *out = (rlxvk_language_report){.run_dispatches = chunk.dispatches,
                                   .step_dispatches = step.dispatches,
                                   .longest_run = (uint32_t)longest_chunk(m),
                                   .step_runs = step.runs,
                                   .step_submissions = step.submissions - m->loaded_submissions,
                                   .weight_bytes = m->shared_bytes - cache_bytes(m),
                                   .cache_bytes = cache_bytes(m),
                                   .compile_seconds = m->compile_seconds};
    add_report(m->decode, out);
    out->host_weight_bytes = m->shared_host_bytes;
    for (int i = 0; i < CHUNK_LENGTHS; i++) {
        add_report(m->chunks[i], out);
        add_report(m->wide[i], out);
    }
    out->device_bytes = out->weight_bytes + out->prepared_bytes + out->cache_bytes +
                        out->state_bytes + out->scratch_bytes;
}
