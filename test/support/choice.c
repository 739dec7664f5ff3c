/* See choice.h. */
#include "support/choice.h"
#include "graph/graph.h"

struct choices choices;

uint32_t choose(uint32_t n)
{
    return fuzz_below(&choices.in, n);
}

bool seldom(uint32_t n)
{
    return choose(n) == n - 1;
}

void *block(size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    FUZZ_CHECK(bytes, "out of memory");
    memset(bytes, 0xa5, size ? size : 1);
    return bytes;
}

static void fill_words(const model_node *n, float *words)
{
    static const float matrices[][4] = {{1, 0, 0, 2}, {0, 4, 2, 0},     {1, 2, 2, 4},
                                        {0, 0, 0, 0}, {0.5f, 0, 0, -1}, {1, 0, 0, 1}};
    uint8_t v = choices.calm ? 0 : fuzz_byte(&choices.in);
    for (size_t i = 0; i < model_words(n); i++)
        if (n->kind == MODEL_MATRIX)
            words[i] = matrices[v % 6][i];
        else if (n->kind == MODEL_INDICES)
            words[i] = (float)((v + (int)i) % 7 - 1);
        else
            words[i] = (float)((v % 4) * 8 + (int)i + (n->dtype == RLXVK_BF16 && v > 192) * 1000);
}

void *fill(const model_node *n, rlxvk_dtype dtype, bool bytes, size_t *length)
{
    float words[MODEL_MAX_WORDS];
    size_t numel = model_numel(&n->shape);
    *length = bytes ? numel * rlxvk_dtype_size(dtype) : model_words(n);
    void *data = block(bytes ? *length : 4 * *length);
    fill_words(n, words);
    if (bytes)
        dtype_narrow(dtype, words, numel, data);
    else
        memcpy(data, words, 4 * *length);
    return data;
}

void choose_type(const model_node *n, rlxvk_dtype *dtype, bool *f32_words)
{
    bool raw = model_storage_of(n->dtype) == MODEL_RAW;
    *f32_words = raw ? seldom(8) : choose(2);
    *dtype = *f32_words || seldom(12) ? RLXVK_F32 : n->dtype;
}

rlxvk_dtype node_dtype(const model_node *n)
{
    return n && !seldom(12) ? n->dtype : RLXVK_F32;
}

const char *type_name(rlxvk_dtype dtype, bool f32_words)
{
    return f32_words ? "words" : rlxvk_dtype_name(dtype);
}

status_set also_null(status_set allowed)
{
    return (allowed & ~ACCEPTED) | STATUS(RLXVK_E_NULL);
}

void *seldom_null(void *data)
{
    if (choices.calm || !seldom(48))
        return data;
    free(data);
    return NULL;
}

const char *choose_name(const model_executable *m, model_op op)
{
    const char *names[MODEL_MAX_NODES + 1];
    uint32_t count = 0;
    for (uint8_t id = 0; id < m->graph->node_count; id++)
        if (m->graph->nodes[id].op == op)
            names[count++] = m->graph->nodes[id].name;
    if (count == 0 || seldom(24))
        return seldom(3) ? NULL : "none";
    return names[choose(count)];
}

const model_node *node_named(const model_executable *m, model_op op, const char *name)
{
    int id = model_find(m, op, name);
    return id < 0 ? NULL : &m->graph->nodes[id];
}

size_t choose_output(const model_executable *m)
{
    return choose(seldom(24) ? m->graph->output_count + 2u : m->graph->output_count);
}

const char *text_of(const char *name)
{
    return name ? name : "NULL";
}

bool may_feed(const model_executable *m, const char *name, size_t index)
{
    const model_node *to = node_named(m, MODEL_INPUT, name);
    if (!to || index >= m->graph->output_count)
        return true; /* the call is refused */
    return to->kind != MODEL_MATRIX &&
           m->graph->nodes[m->graph->outputs[index]].kind != MODEL_SOLUTION;
}

rlxvk_rng_options choose_rng(void)
{
    static const uint64_t numbers[] = {0, 42, 1, UINT64_MAX, 2147483647u, 1ull << 32};
    return (rlxvk_rng_options){.seed = numbers[choose(6)],
                               .backend = (rlxvk_rng_backend)choose(3),
                               .step = numbers[choose(6)],
                               .advance_per_run = choose(2)};
}

rlxvk_compile_options choose_options(const model_graph *g, rlxvk_rng_options *rng)
{
    uint8_t bits = fuzz_byte(&choices.in), more = fuzz_byte(&choices.in);
    rlxvk_compile_options o = {.allow_unset = more % 8 == 7 ? RLXVK_ON : RLXVK_OFF,
                               .host_ops = more / 8 % 4 == 3 ? g->on_host : NULL,
                               .host_op_count = more / 8 % 4 == 3 ? model_host_ops(g) : 0,
                               .keep_all = more / 32 == 7 ? RLXVK_ON : RLXVK_OFF,
                               .max_in_flight = choose(5),
                               .rng = seldom(4) ? rng : NULL};
    o.cached = bits & 1 && bits & 2 ? RLXVK_OFF : RLXVK_ON;
    o.full_barrier = bits & 4 && bits & 2 ? RLXVK_ON : RLXVK_OFF;
    o.reuse_memory = bits & 8 && bits & 4 ? RLXVK_OFF : RLXVK_ON;
    o.reorder = bits & 16 ? RLXVK_OFF : RLXVK_ON;
    o.check_index = bits & 32 ? RLXVK_ON : RLXVK_OFF;
    o.fusion = bits & 64 ? RLXVK_OFF : RLXVK_ON;
    o.check_plan = bits & 2 ? RLXVK_ON : RLXVK_OFF;
    o.profile = (bits & 0x8f) == 0x80 ? RLXVK_ON : RLXVK_OFF;
    *rng = choose_rng();
    return o;
}
