/* See model.h. */
#include "support/model.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- Leaves and places ---- */

static const model_node *node_of(const model_executable *e, int id)
{
    return &e->graph->nodes[id];
}

static bool is_leaf(const model_node *n)
{
    return n->op == MODEL_INPUT || n->op == MODEL_PARAM;
}

int model_find(const model_executable *e, model_op op, const char *name)
{
    for (int id = 0; name && id < e->graph->node_count; id++)
        if (node_of(e, id)->op == op && strcmp(node_of(e, id)->name, name) == 0)
            return id;
    return -1;
}

static status_set unknown(const char *name)
{
    return STATUS(name ? RLXVK_E_UNKNOWN_NAME : RLXVK_E_NULL);
}

static unsigned operand_count(const model_node *n)
{
    switch (n->op) {
    case MODEL_INPUT:
    case MODEL_PARAM:
    case MODEL_CONSTANT:
    case MODEL_UNIFORM:
        return 0;
    case MODEL_ADD:
    case MODEL_MULTIPLY:
    case MODEL_MATMUL:
    case MODEL_CONCAT:
    case MODEL_GATHER:
    case MODEL_SCATTER_ADD:
    case MODEL_SOLVE:
        return 2;
    default:
        return n->op == MODEL_WRITE_ROWS ? 3 : 1;
    }
}

static bool is_view(const model_node *n)
{
    return n->op == MODEL_RESHAPE || n->op == MODEL_NARROW || n->op == MODEL_WRITE_ROWS;
}

static float *words_of(const model_executable *e, uint8_t id)
{
    size_t offset;
    uint8_t root = model_root(e->graph, id, &offset);
    return e->cells[root]->words + offset;
}

static bool is_read(const model_graph *g, uint8_t id)
{
    for (uint8_t k = 0; k < g->node_count; k++)
        for (unsigned i = 0; i < operand_count(&g->nodes[k]); i++)
            if (g->nodes[k].inputs[i] == id)
                return true;
    for (uint8_t i = 0; i < g->output_count; i++)
        if (g->outputs[i] == id)
            return true;
    return false;
}

static bool is_written_in_place(const model_graph *g, uint8_t id)
{
    for (uint8_t k = 0; k < g->node_count; k++)
        if (g->nodes[k].op == MODEL_WRITE_ROWS && g->nodes[k].inputs[0] == id)
            return true;
    return false;
}

static void mark_written(model_executable *e, int id)
{
    e->cells[id]->written = true;
    e->cells[id]->writes++;
}

static void mark_changed(model_executable *e, int id)
{
    mark_written(e, id);
    e->leaves[id].seen = ++e->cells[id]->changes;
}

/* Whether a run restores the bound value. If another executable has changed it since, it does
 * not. */
static bool is_restored(const model_executable *e, uint8_t id)
{
    const model_leaf *leaf = &e->leaves[id];
    return leaf->bound && !leaf->resident && leaf->seen == e->cells[id]->changes;
}

/* ---- Birth and death ---- */

static void release(model_cell *cell)
{
    if (cell && --cell->references == 0)
        free(cell);
}

static model_cell *new_cell(void)
{
    model_cell *cell = calloc(1, sizeof *cell);
    if (!cell)
        abort();
    cell->references = 1;
    return cell;
}

static bool is_shared(const model_node *n, const rlxvk_compile_options *o)
{
    if (n->op == MODEL_PARAM)
        return true;
    for (size_t i = 0; n->op == MODEL_INPUT && i < o->shared_input_count; i++)
        if (strcmp(n->name, o->shared_inputs[i]) == 0)
            return true;
    return false;
}

static bool same_shape(const rlxvk_shape *a, const rlxvk_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* The leaf of the other executable whose memory node `id` uses, or -1. */
static int shared_leaf(const model_executable *e, uint8_t id, const rlxvk_compile_options *o,
                       const model_executable *other)
{
    const model_node *n = node_of(e, id);
    int theirs =
        other && e->leaves[id].live && is_shared(n, o) ? model_find(other, n->op, n->name) : -1;
    if (theirs < 0 || !other->leaves[theirs].live || node_of(other, theirs)->dtype != n->dtype ||
        !same_shape(&node_of(other, theirs)->shape, &n->shape))
        return -1;
    return theirs;
}

status_set model_sharing_allows(const model_graph *g, const rlxvk_compile_options *options,
                                const model_executable *other)
{
    for (size_t i = 0; i < options->shared_input_count; i++) {
        model_executable here = {.graph = g};
        int mine = model_find(&here, MODEL_INPUT, options->shared_inputs[i]);
        int theirs = model_find(other, MODEL_INPUT, options->shared_inputs[i]);
        if (mine < 0 || theirs < 0)
            return STATUS(RLXVK_E_UNKNOWN_NAME);
        const model_node *n = &g->nodes[mine], *o = node_of(other, theirs);
        if (n->dtype != o->dtype)
            return STATUS(RLXVK_E_DTYPE);
        if (!same_shape(&n->shape, &o->shape))
            return STATUS(RLXVK_E_SHAPE);
        bool live = options->keep_all == RLXVK_ON || is_read(g, (uint8_t)mine);
        if (live && !other->leaves[theirs].live)
            return STATUS(RLXVK_E_UNKNOWN_NAME);
    }
    return ACCEPTED;
}

model_executable *model_compile(const model_graph *g, const rlxvk_compile_options *options,
                                const model_executable *other)
{
    model_executable *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->graph = g;
    e->allow_unset = options->allow_unset == RLXVK_ON;
    e->check_index = options->check_index == RLXVK_ON;
    e->keep_all = options->keep_all == RLXVK_ON;
    e->max_in_flight = options->max_in_flight ? options->max_in_flight : 2;
    e->rng = options->rng ? *options->rng : (rlxvk_rng_options){.seed = 42};
    for (uint8_t id = 0; id < g->node_count; id++) {
        model_leaf *leaf = &e->leaves[id];
        leaf->feed = leaf->row_feed = -1;
        leaf->live = e->keep_all || is_read(g, id);
        leaf->in_place = is_written_in_place(g, id);
        int theirs = shared_leaf(e, id, options, other);
        e->cells[id] = theirs >= 0 ? other->cells[theirs] : new_cell();
        if (theirs >= 0) {
            e->cells[id]->references++;
            leaf->resident = node_of(e, id)->op == MODEL_INPUT &&
                             (other->leaves[theirs].bound || other->leaves[theirs].resident);
            leaf->seen = e->cells[id]->changes;
        }
        if (node_of(e, id)->op == MODEL_CONSTANT)
            model_evaluate(g, id, (const float *const[3]){0}, &e->rng, e->cells[id]->words, NULL);
    }
    return e;
}

model_executable *model_clone(const model_executable *e)
{
    model_executable *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *e;
    copy->in_flight = 0;
    for (uint8_t id = 0; id < e->graph->node_count; id++) {
        copy->cells[id] = new_cell();
        *copy->cells[id] = *e->cells[id];
        copy->cells[id]->references = 1;
    }
    return copy;
}

void model_destroy(model_executable *e)
{
    for (uint8_t id = 0; id < e->graph->node_count; id++)
        release(e->cells[id]);
    free(e);
}

bool model_shares(const model_executable *a, const model_executable *b)
{
    for (uint8_t i = 0; i < a->graph->node_count; i++)
        for (uint8_t k = 0; k < b->graph->node_count; k++)
            if (a->cells[i] == b->cells[k])
                return true;
    return false;
}

/* ---- Encodings ---- */

static model_type input_type(const rlxvk_run_input *item)
{
    return (model_type){item->dtype, item->f32_words};
}

static model_type output_type(const rlxvk_run_output *item)
{
    return (model_type){item->dtype, item->f32_words};
}

/* Checks the values that a caller gives or gets for a tensor. */
static status_set check_length(const model_node *n, model_type type, size_t length,
                               const void *data)
{
    size_t needed = type.f32_words ? model_words(n) : model_numel(&n->shape);
    status_set refused = (length != needed ? STATUS(RLXVK_E_LENGTH) : 0) |
                         (length && !data ? STATUS(RLXVK_E_NULL) : 0);
    if (type.f32_words ? model_storage_of(n->dtype) == MODEL_RAW : type.dtype != n->dtype)
        refused |= STATUS(RLXVK_E_DTYPE);
    return refused;
}

static void encode(const model_node *n, model_type type, const void *data, float *words)
{
    if (!type.f32_words)
        dtype_widen(n->dtype, data, model_numel(&n->shape), words);
    else if (model_words(n))
        memcpy(words, data, 4 * model_words(n));
}

static void decode(const model_node *n, model_type type, const float *words, model_bytes *out)
{
    size_t count = model_words(n), numel = model_numel(&n->shape);
    out->size = !type.f32_words ? numel * rlxvk_dtype_size(n->dtype) : 4 * count;
    if (!type.f32_words)
        dtype_narrow(n->dtype, words, numel, out->bytes);
    else
        memcpy(out->bytes, words, out->size);
}

/* ---- Params ---- */

static status_set check_item(const model_executable *e, const rlxvk_param_item *item)
{
    int id = model_find(e, MODEL_PARAM, item->name);
    if ((unsigned)item->dtype >= RLXVK_DTYPE_COUNT)
        return STATUS(RLXVK_E_DTYPE) | (id < 0 ? unknown(item->name) : 0);
    if (id < 0)
        return unknown(item->name);
    const model_node *n = node_of(e, id);
    bool raw = model_storage_of(n->dtype) == MODEL_RAW;
    size_t needed = model_numel(&n->shape) * rlxvk_dtype_size(item->dtype);
    status_set refused =
        raw && model_storage_of(item->dtype) != MODEL_RAW ? STATUS(RLXVK_E_DTYPE) : 0;
    if (n->dtype == RLXVK_C64 && item->dtype == RLXVK_F32)
        needed = 2 * model_numel(&n->shape) * sizeof(float);
    else if ((n->dtype == RLXVK_C64) != (item->dtype == RLXVK_C64))
        refused |= STATUS(RLXVK_E_DTYPE);
    if (item->length != needed)
        refused |= STATUS(RLXVK_E_LENGTH);
    if (item->length && !item->bytes)
        refused |= STATUS(RLXVK_E_NULL);
    return refused;
}

status_set model_set_params(model_executable *e, const rlxvk_param_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        status_set refused = check_item(e, &items[i]);
        for (size_t k = i + 1; k < count && refused; k++)
            refused |= check_item(e, &items[k]);
        if (refused)
            return refused;
    }
    for (size_t i = 0; i < count; i++) {
        int id = model_find(e, MODEL_PARAM, items[i].name);
        const model_node *n = node_of(e, id);
        float *words = e->cells[id]->words;
        dtype_widen(items[i].dtype, items[i].bytes,
                    items[i].dtype == RLXVK_F32 ? model_words(n) : model_numel(&n->shape), words);
        dtype_round(n->dtype, words, model_numel(&n->shape));
        mark_written(e, id);
    }
    return ACCEPTED;
}

rlxvk_param_item model_item_of_values(const model_executable *e, const char *name,
                                      const float *values, size_t length, status_set *refused)
{
    int id = model_find(e, MODEL_PARAM, name);
    *refused = id >= 0 && node_of(e, id)->dtype != RLXVK_F32 ? STATUS(RLXVK_E_DTYPE) : 0;
    return (rlxvk_param_item){name, values, 4 * length, RLXVK_F32};
}

rlxvk_param_item model_item_of_bytes(const model_executable *e, const char *name, const void *bytes,
                                     size_t length, status_set *refused)
{
    int id = model_find(e, MODEL_PARAM, name);
    rlxvk_dtype dtype = id >= 0 ? node_of(e, id)->dtype : RLXVK_F32;
    bool stored = model_storage_of(dtype) != MODEL_WORD || dtype == RLXVK_F16 ||
                  dtype == RLXVK_BF16 || dtype == RLXVK_F32;
    *refused = stored ? 0 : STATUS(RLXVK_E_DTYPE);
    return (rlxvk_param_item){name, bytes, length, dtype};
}

status_set model_read_param(const model_executable *e, const char *name, model_type type,
                            size_t length, model_bytes *out)
{
    int id = model_find(e, MODEL_PARAM, name);
    if (id < 0 || !e->leaves[id].live)
        return unknown(name);
    status_set refused = check_length(node_of(e, id), type, length, out);
    if (refused)
        return refused;
    decode(node_of(e, id), type, e->cells[id]->words, out);
    return ACCEPTED;
}

/* ---- Runs ---- */

static bool is_given(const model_node *n, const rlxvk_run_input *inputs, size_t count)
{
    for (size_t i = 0; n->op == MODEL_INPUT && i < count; i++)
        if (inputs[i].name && strcmp(inputs[i].name, n->name) == 0)
            return true;
    return false;
}

/* E_UNSET_PARAM or E_MISSING_INPUT for a leaf that no executable with its memory has written. */
static status_set check_content(const model_executable *e, const rlxvk_run_input *inputs, size_t n)
{
    status_set refused = 0;
    for (uint8_t id = 0; id < e->graph->node_count && !e->allow_unset; id++) {
        const model_node *leaf = node_of(e, id);
        if (is_leaf(leaf) && !e->cells[id]->written && e->leaves[id].live &&
            !is_given(leaf, inputs, n))
            refused |=
                STATUS(leaf->op == MODEL_PARAM ? RLXVK_E_UNSET_PARAM : RLXVK_E_MISSING_INPUT);
    }
    return refused;
}

status_set model_refusals(const model_executable *e, const rlxvk_run_input *inputs, size_t n,
                          const rlxvk_run_output *outputs, size_t m)
{
    status_set refused = 0;
    for (size_t i = 0; i < n; i++) {
        int id = model_find(e, MODEL_INPUT, inputs[i].name);
        refused |= id < 0 ? unknown(inputs[i].name)
                          : check_length(node_of(e, id), input_type(&inputs[i]), inputs[i].length,
                                         inputs[i].data);
    }
    for (size_t i = 0; i < m; i++)
        refused |=
            outputs[i].index >= e->graph->output_count
                ? STATUS(RLXVK_E_INDEX)
                : check_length(node_of(e, e->graph->outputs[outputs[i].index]),
                               output_type(&outputs[i]), outputs[i].length, outputs[i].buffer);
    status_set content = check_content(e, inputs, n);
    return refused | content;
}

static void take_inputs(model_executable *e, const rlxvk_run_input *inputs, size_t n)
{
    for (uint8_t id = 0; id < e->graph->node_count; id++)
        if (is_restored(e, id)) {
            memcpy(e->cells[id]->words, e->leaves[id].mirror, sizeof e->leaves[id].mirror);
            mark_written(e, id);
        }
    for (size_t i = 0; i < n; i++) {
        int id = model_find(e, MODEL_INPUT, inputs[i].name);
        encode(node_of(e, id), input_type(&inputs[i]), inputs[i].data, e->cells[id]->words);
        mark_changed(e, id);
    }
}

static model_events compute(model_executable *e)
{
    model_events events = {0};
    for (uint8_t id = 0; id < e->graph->node_count; id++) {
        const model_node *n = node_of(e, id);
        const float *operands[3] = {words_of(e, n->inputs[0]), words_of(e, n->inputs[1]),
                                    words_of(e, n->inputs[2])};
        if (is_leaf(n) || (is_view(n) && n->op != MODEL_WRITE_ROWS))
            continue;
        model_evaluate(e->graph, id, operands, &e->rng, words_of(e, id), &events);
    }
    return events;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void become_resident(model_executable *e, int id)
{
    e->leaves[id].resident = true;
    mark_changed(e, id);
}

static unsigned *writes_to(const model_executable *e, size_t output)
{
    size_t offset;
    return &e->cells[model_root(e->graph, e->graph->outputs[output], &offset)]->writes;
}

bool model_is_settled(const model_executable *e, size_t index)
{
    return e->ran && e->writes[index] == *writes_to(e, index);
}

/* The words that a feed copies. For a prefix feed, these are the active rows of upper + 1. */
static size_t feed_words(const model_executable *e, uint8_t to, uint8_t from)
{
    size_t words = model_words(node_of(e, from));
    if (!e->leaves[to].feed_prefix || e->extent_upper == 0)
        return words;
    return words / (size_t)(e->extent_upper + 1) * (size_t)e->extent_actual;
}

/* Reads all sources before it writes any target. */
static void apply_feeds(model_executable *e)
{
    float sources[MODEL_MAX_NODES][MODEL_MAX_WORDS];
    for (int pass = 0; pass < 2; pass++)
        for (uint8_t id = 0; id < e->graph->node_count; id++) {
            if (e->leaves[id].feed < 0)
                continue;
            uint8_t from = e->graph->outputs[e->leaves[id].feed];
            size_t count = smaller(feed_words(e, id, from), model_words(node_of(e, id)));
            float *to = pass ? e->cells[id]->words : sources[id];
            if (e->leaves[id].live)
                memcpy(to, pass ? sources[id] : words_of(e, from), count * sizeof *to);
            if (pass)
                become_resident(e, id);
        }
}

status_set model_run(model_executable *e, const rlxvk_run_input *inputs, size_t n,
                     const rlxvk_run_output *outputs, size_t m, model_bytes *results)
{
    model_executable *trial = model_clone(e);
    take_inputs(trial, inputs, n);
    model_events events = compute(trial);
    model_destroy(trial);
    if (events.custom_failed)
        return STATUS(RLXVK_E_CUSTOM);
    take_inputs(e, inputs, n);
    (void)compute(e);
    for (size_t i = 0; i < m; i++) {
        uint8_t id = e->graph->outputs[outputs[i].index];
        decode(node_of(e, id), output_type(&outputs[i]), words_of(e, id), &results[i]);
    }
    for (size_t i = 0; i < e->graph->output_count; i++)
        memcpy(e->outputs[i], words_of(e, e->graph->outputs[i]),
               4 * model_words(node_of(e, e->graph->outputs[i])));
    apply_feeds(e);
    for (uint8_t id = 0; id < e->graph->node_count; id++)
        if (e->leaves[id].in_place && node_of(e, id)->op == MODEL_INPUT)
            become_resident(e, id);
        else if (e->leaves[id].in_place) /* does not count as setting the param */
            e->cells[id]->writes++;
    for (size_t i = 0; i < e->graph->output_count; i++)
        e->writes[i] = *writes_to(e, i);
    e->rng.step += e->rng.advance_per_run;
    e->ran = true;
    status_set end = events.singular ? STATUS(RLXVK_E_SINGULAR) : 0;
    if (events.index_outside && e->check_index)
        end |= STATUS(RLXVK_E_INDEX_OOB);
    return end ? end : ACCEPTED;
}

/* ---- Handles ---- */

status_set model_bind(model_executable *e, const char *name, const void *data, size_t length,
                      model_type type)
{
    int id = model_find(e, MODEL_INPUT, name);
    if (id < 0)
        return unknown(name);
    model_leaf *leaf = &e->leaves[id];
    status_set refused = check_length(node_of(e, id), type, length, data);
    if (refused)
        return refused;
    encode(node_of(e, id), type, data, leaf->mirror);
    memcpy(e->cells[id]->words, leaf->mirror, sizeof leaf->mirror);
    leaf->bound = true;
    leaf->resident = false;
    mark_changed(e, id);
    return ACCEPTED;
}

status_set model_unbind(model_executable *e, const char *name)
{
    int id = model_find(e, MODEL_INPUT, name);
    if (id < 0)
        return unknown(name);
    e->leaves[id].bound = e->leaves[id].resident = false;
    return ACCEPTED;
}

bool model_has_handle(const model_executable *e, const char *name)
{
    int id = model_find(e, MODEL_INPUT, name);
    return id >= 0 && (e->leaves[id].bound || e->leaves[id].resident);
}

status_set model_read_handle(const model_executable *e, const char *name, model_type type,
                             size_t length, model_bytes *out)
{
    int id = model_find(e, MODEL_INPUT, name);
    if (id < 0)
        return unknown(name);
    if (!model_has_handle(e, name))
        return STATUS(RLXVK_E_UNBOUND_HANDLE);
    if (!e->leaves[id].live)
        return STATUS(RLXVK_E_UNKNOWN_NAME);
    status_set refused = check_length(node_of(e, id), type, length, out);
    if (refused)
        return refused;
    decode(node_of(e, id), type, e->cells[id]->words, out);
    return ACCEPTED;
}

status_set model_read_fed_output(const model_executable *e, const char *name, model_type type,
                                 size_t length, model_bytes *out)
{
    int id = model_find(e, MODEL_INPUT, name);
    if (id < 0)
        return unknown(name);
    if (e->leaves[id].feed < 0)
        return STATUS(RLXVK_E_UNBOUND_HANDLE);
    uint8_t from = e->graph->outputs[e->leaves[id].feed];
    status_set refused = check_length(node_of(e, from), type, length, out);
    if (refused)
        return refused;
    decode(node_of(e, from), type, e->outputs[e->leaves[id].feed], out);
    return ACCEPTED;
}

/* ---- Feeds ---- */

static status_set check_feed(const model_executable *e, const char *name, size_t index, bool rows)
{
    int id = model_find(e, MODEL_INPUT, name);
    status_set refused = id < 0 ? unknown(name) : 0;
    if (index >= e->graph->output_count)
        refused |= STATUS(RLXVK_E_INDEX);
    if (refused)
        return refused;
    model_storage to = model_storage_of(node_of(e, id)->dtype);
    model_storage from = model_storage_of(node_of(e, e->graph->outputs[index])->dtype);
    bool wrong = e->leaves[id].live ? to != from || (rows && to != MODEL_WORD) : rows;
    return wrong ? STATUS(RLXVK_E_DTYPE) : 0;
}

static bool has_rows(const model_executable *e, size_t output, int64_t upper)
{
    size_t numel = model_numel(&node_of(e, e->graph->outputs[output])->shape);
    return upper == 0 || numel % (size_t)(upper + 1) == 0;
}

status_set model_set_feed(model_executable *e, const char *name, size_t index, bool prefix)
{
    status_set refused = check_feed(e, name, index, false);
    if (!refused && !prefix &&
        model_numel(&node_of(e, model_find(e, MODEL_INPUT, name))->shape) !=
            model_numel(&node_of(e, e->graph->outputs[index])->shape))
        refused = STATUS(RLXVK_E_LENGTH);
    if (!refused && prefix && !has_rows(e, index, e->extent_upper))
        refused = STATUS(RLXVK_E_EXTENT);
    if (refused)
        return refused;
    model_leaf *leaf = &e->leaves[model_find(e, MODEL_INPUT, name)];
    leaf->feed = (int)index;
    leaf->feed_prefix = prefix;
    return ACCEPTED;
}

status_set model_set_extent(model_executable *e, int64_t actual, int64_t upper)
{
    bool fits = upper > 0 ? actual >= 0 && actual <= upper : upper == 0 && actual == 0;
    for (uint8_t id = 0; id < e->graph->node_count && fits; id++)
        if (e->leaves[id].feed >= 0 && e->leaves[id].feed_prefix)
            fits = has_rows(e, (size_t)e->leaves[id].feed, upper);
    if (!fits)
        return STATUS(RLXVK_E_EXTENT);
    e->extent_actual = actual;
    e->extent_upper = upper;
    return ACCEPTED;
}

status_set model_clear_feed(model_executable *e, const char *name)
{
    int id = model_find(e, MODEL_INPUT, name);
    if (id < 0)
        return unknown(name);
    e->leaves[id].feed = e->leaves[id].row_feed = -1;
    return ACCEPTED;
}

status_set model_register_row_feed(model_executable *e, const char *name, size_t index)
{
    status_set refused = check_feed(e, name, index, true);
    if (refused)
        return refused;
    e->leaves[model_find(e, MODEL_INPUT, name)].row_feed = (int)index;
    return ACCEPTED;
}

static bool row_fits(const model_node *n, size_t row, size_t row_elements)
{
    size_t numel = model_numel(&n->shape);
    return row_elements == 0 || (row < numel && (row + 1) <= numel / row_elements);
}

/* If an output was settled, it stays so, even if row feeds write to its memory. */
static void settle_sources(model_executable *e, const bool settled[MODEL_MAX_OUTPUTS])
{
    for (uint8_t id = 0; id < e->graph->node_count; id++)
        if (e->leaves[id].row_feed >= 0 && settled[e->leaves[id].row_feed])
            e->writes[e->leaves[id].row_feed] = *writes_to(e, (size_t)e->leaves[id].row_feed);
}

/* Reads all rows before it writes any, as feeds do. */
status_set model_feed_rows(model_executable *e, size_t source_row, size_t target_row,
                           size_t row_elements)
{
    float rows[MODEL_MAX_NODES][MODEL_MAX_WORDS];
    bool any = false, fits = true, settled[MODEL_MAX_OUTPUTS];
    for (size_t i = 0; i < e->graph->output_count; i++)
        settled[i] = model_is_settled(e, i);
    for (uint8_t id = 0; id < e->graph->node_count; id++) {
        if (e->leaves[id].row_feed < 0)
            continue;
        uint8_t from = e->graph->outputs[e->leaves[id].row_feed];
        any = true;
        fits = fits && row_fits(node_of(e, from), source_row, row_elements) &&
               row_fits(node_of(e, id), target_row, row_elements);
        if (fits && row_elements)
            memcpy(rows[id], e->outputs[e->leaves[id].row_feed] + source_row * row_elements,
                   row_elements * sizeof **rows);
    }
    if (!any || !fits)
        return STATUS(any ? RLXVK_E_RANGE : RLXVK_E_UNBOUND_HANDLE);
    for (uint8_t id = 0; id < e->graph->node_count; id++) {
        if (e->leaves[id].row_feed < 0)
            continue;
        if (row_elements)
            memcpy(e->cells[id]->words + target_row * row_elements, rows[id],
                   row_elements * sizeof **rows);
        become_resident(e, id);
    }
    settle_sources(e, settled);
    return ACCEPTED;
}

status_set model_read_output_row(const model_executable *e, size_t index, size_t row,
                                 size_t row_elements, rlxvk_dtype dtype, model_bytes *out)
{
    if (index >= e->graph->output_count)
        return STATUS(RLXVK_E_INDEX);
    uint8_t id = e->graph->outputs[index];
    const model_node *n = node_of(e, id);
    status_set refused = n->dtype == dtype ? 0 : STATUS(RLXVK_E_DTYPE);
    if (!row_fits(node_of(e, id), row, row_elements))
        refused |= STATUS(RLXVK_E_RANGE);
    if (refused)
        return refused;
    size_t words = n->dtype == RLXVK_C64 ? 2 : 1;
    out->size = row_elements * rlxvk_dtype_size(dtype);
    if (row_elements)
        dtype_narrow(dtype, e->outputs[index] + row * row_elements * words, row_elements,
                     out->bytes);
    return ACCEPTED;
}
