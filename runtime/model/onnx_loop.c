/*
 * Loops whose number of rounds data decides: rlxvk_while. The body becomes a graph of its own. What
 * rounds give is collected in slots of the largest number of rounds.
 */
#include "model/host.h"
#include "model/onnx_inner.h"
#include "model/onnx_loop.h"

#include <stdio.h>
#include <string.h>

/* The first inputs of the body, then carried values, the limit of rounds if it is data, values of
 * outer graphs, and slots. */
enum { ROUND, CONDITION, CARRIED };

typedef struct builder {
    call *c; /* of the outer graph */
    call in; /* the same node, with the body's graph */
    onnx_loop_rest *l;
    import_loop loop;
    rlxvk_tensor *next; /* the body's outputs: of each input, its value in the next round */
    size_t limit;       /* indices of inputs */
    size_t *slots;      /* for each collected value; 0: its result is not wanted */
} builder;

/* ---- The body ---- */

static rlxvk_tensor add_input(builder *b, rlxvk_tensor outer)
{
    if (!call_is_fixed(b->c, call_tensor_shape(b->c, outer)))
        return RLXVK_NONE;
    return import_loop_input(b->c->import, &b->loop, outer);
}

static rlxvk_tensor as_scalar(call *c, rlxvk_tensor t, int32_t type)
{
    return call_cast(c, rlxvk_reshape(c->graph, t, RLXVK_SCALAR), type);
}

static rlxvk_tensor integer_scalar(call *c, int64_t value, int32_t type)
{
    return call_cast(c, call_scalar(c, (double)value), type);
}

static onnx_value *value_of(call *c, rlxvk_tensor t, int32_t type)
{
    onnx_value *v = import_make_value(c->import);
    if (v) {
        v->type = type;
        v->tensor = t;
        v->has_tensor = true;
    }
    return v;
}

/* Inputs that do not depend on what the body reads. */
static onnx_value **make_inputs(builder *b)
{
    call *c = b->c;
    onnx_loop_rest *l = b->l;
    onnx_value **values = onnx_inner_values(c, CARRIED + l->carried);
    rlxvk_tensor go_on =
        l->values[1] ? call_tensor_of(c, l->values[1]) : integer_scalar(c, 1, ONNX_BOOL);
    if (!values || c->failed)
        return NULL;
    values[ROUND] = value_of(c, add_input(b, integer_scalar(c, l->done, ONNX_INT64)), ONNX_INT64);
    values[CONDITION] = value_of(c, add_input(b, as_scalar(c, go_on, ONNX_BOOL)), ONNX_BOOL);
    for (size_t i = 0; i < l->carried && !c->failed; i++) {
        rlxvk_tensor t = call_tensor_of(c, l->values[CARRIED + i]);
        if (!c->failed)
            values[CARRIED + i] = value_of(c, add_input(b, t), l->values[CARRIED + i]->type);
        l->types[i] = l->values[CARRIED + i]->type;
    }
    /* If the body needs the number of the round as a size, these inputs settle it. */
    if (!c->failed && c->import->status == RLXVK_OK)
        values[ROUND]->depends =
            (l->rounds ? l->rounds->depends : 0) | (l->values[1] ? l->values[1]->depends : 0);
    b->limit = b->loop.inputs.count;
    if (l->rounds && !c->failed)
        (void)add_input(b, as_scalar(c, call_tensor_of(c, l->rounds), ONNX_INT64));
    return c->failed || c->import->status != RLXVK_OK ? NULL : values;
}

/* What the body gives, as a tensor of its graph. */
static rlxvk_tensor inner_tensor(builder *b, onnx_value *v)
{
    onnx_import *import = b->c->import;
    rlxvk_graph *outer = import->graph;
    rlxvk_tensor t;
    import->graph = b->loop.inner;
    import->loops++;
    t = call_tensor_of(&b->in, v);
    import->graph = outer;
    import->loops--;
    return t;
}

/* The slot of a collected value before the rest of the rounds: what earlier ones gave, then 0. */
static rlxvk_tensor first_slot(builder *b, size_t i, rlxvk_shape s, int32_t type)
{
    call *c = b->c;
    rlxvk_tensor *parts = arena_allocate(c->a, (size_t)(b->l->done + 1) * sizeof *parts);
    rlxvk_shape rest = s;
    if (!parts) {
        import_end(c->import, status_fail_memory("loop of a model"));
        return RLXVK_NONE;
    }
    rest.dims[0] = b->l->most - b->l->done;
    parts[b->l->done] = rlxvk_expand(c->graph, integer_scalar(c, 0, type), rest);
    s.dims[0] = 1;
    for (int64_t r = 0; r < b->l->done; r++) {
        rlxvk_tensor t = call_tensor_of(c, b->l->earlier[(size_t)r * b->l->collected + i]);
        parts[r] = c->failed ? t : rlxvk_reshape(c->graph, t, s);
    }
    return c->failed ? RLXVK_NONE : rlxvk_concat(c->graph, parts, (size_t)b->l->done + 1, 0);
}

/* Value i that the round gives goes into its slot. */
static void collect(builder *b, size_t i, onnx_value *given)
{
    rlxvk_graph *g = b->loop.inner;
    rlxvk_tensor t = inner_tensor(b, given), slot, here;
    rlxvk_shape s = {.rank = 1}, column = {.rank = 1}, of = call_tensor_shape(&b->in, t);
    if (b->in.failed || !call_is_fixed(&b->in, of) || of.rank == RLXVK_MAX_RANK)
        return;
    if (b->l->most > INT32_MAX) {
        call_need(b->c, b->l->rounds ? b->l->rounds : b->l->values[1],
                  "the number of rounds, of which there is no largest one for a slot");
        return;
    }
    s.rank = column.rank = of.rank + 1;
    s.dims[0] = column.dims[0] = b->l->most;
    for (uint32_t k = 0; k < of.rank; k++) {
        s.dims[k + 1] = of.dims[k];
        column.dims[k + 1] = 1;
    }
    slot = first_slot(b, i, s, given->type);
    if (b->c->failed || b->c->import->status != RLXVK_OK)
        return;
    slot = add_input(b, slot);
    here = rlxvk_cast(g, b->loop.inputs.items[ROUND], RLXVK_F32);
    here = rlxvk_eq(g, rlxvk_reshape(g, rlxvk_arange(g, 0, 1, b->l->most), column), here);
    column = s;
    column.dims[0] = 1;
    b->slots[i] = b->loop.inputs.count - 1;
    b->next[b->slots[i]] = rlxvk_where(g, here, rlxvk_reshape(g, t, column), slot);
    b->l->types[b->l->carried + i] = given->type;
}

/* Carried values keep their shapes and types. */
static void carry(builder *b, size_t input, onnx_value *given, int32_t type)
{
    rlxvk_tensor t = inner_tensor(b, given), before = b->loop.inputs.items[input];
    if (b->in.failed)
        return;
    if (given->type != type ||
        !rlxvk_shape_equal(call_tensor_shape(&b->in, t), call_tensor_shape(&b->in, before))) {
        call_refuse(b->c, "body",
                    "data decides the number of rounds, but a carried value changes its shape or "
                    "type in a round");
        return;
    }
    b->next[input] = t;
}

static void build_body(builder *b)
{
    onnx_loop_rest *l = b->l;
    rlxvk_graph *g = b->loop.inner;
    onnx_value **values = make_inputs(b), **outputs;
    size_t before;
    outputs = values ? onnx_inner_run(b->c, l->body, &b->loop, values) : NULL;
    if (!outputs)
        return;
    before = b->loop.inputs.count;
    b->next = arena_allocate(b->c->a, (before + l->collected) * sizeof *b->next);
    b->slots = arena_allocate(b->c->a, (l->collected + 1) * sizeof *b->slots);
    if (!b->next || !b->slots) {
        import_end(b->c->import, status_fail_memory("loop of a model"));
        return;
    }
    memcpy(b->next, b->loop.inputs.items, before * sizeof *b->next);
    b->next[ROUND] = rlxvk_add(g, b->next[ROUND], integer_scalar(&b->in, 1, ONNX_INT64));
    b->next[CONDITION] = as_scalar(&b->in, inner_tensor(b, outputs[0]), ONNX_BOOL);
    for (size_t i = 0; i < l->carried && !b->c->failed; i++)
        carry(b, CARRIED + i, outputs[1 + i], l->types[i]);
    for (size_t i = 0; i < l->collected && !b->c->failed; i++)
        if (call_wants(b->c, l->carried + i))
            collect(b, i, outputs[1 + l->carried + i]);
}

/* Bodies give what they take: the same dtypes. */
static void finish_body(builder *b)
{
    rlxvk_graph *g = b->loop.inner;
    for (size_t i = 0; i < b->loop.inputs.count; i++) {
        rlxvk_dtype dtype = rlxvk_tensor_dtype(g, b->loop.inputs.items[i]);
        rlxvk_tensor t = b->next[i];
        rlxvk_graph_output(g, rlxvk_tensor_dtype(g, t) == dtype ? t : rlxvk_cast(g, t, dtype));
    }
}

/* ---- The condition ---- */

static rlxvk_status build_condition(const builder *b, rlxvk_graph **out)
{
    const rlxvk_graph *body = b->loop.inner;
    rlxvk_graph *g;
    rlxvk_tensor first[CARRIED] = {{0}}, limit = RLXVK_NONE, on;
    rlxvk_status status;
    TRY(rlxvk_graph_create(out));
    g = *out;
    for (size_t i = 0; i < b->loop.inputs.count; i++) {
        rlxvk_tensor like = b->loop.inputs.items[i], t;
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        t = rlxvk_input(g, name, rlxvk_tensor_dtype(body, like), rlxvk_tensor_shape(body, like));
        if (i < CARRIED)
            first[i] = t;
        if (i == b->limit)
            limit = t;
    }
    on = first[CONDITION];
    if (b->l->rounds)
        on = rlxvk_min(g, on, rlxvk_lt(g, first[ROUND], limit));
    rlxvk_graph_output(g, on);
error:
    return status;
}

/* ---- The loop ---- */

static void run(builder *b)
{
    call *c = b->c;
    onnx_loop_rest *l = b->l;
    rlxvk_graph *condition = NULL;
    size_t count = b->loop.inputs.count;
    rlxvk_tensor *out = arena_allocate(c->a, count * sizeof *out);
    int64_t most = l->most == INT64_MAX ? UINT32_MAX : l->most - l->done;
    rlxvk_status status;
    finish_body(b);
    status = out ? build_condition(b, &condition) : status_fail_memory("loop of a model");
    if (status != RLXVK_OK) {
        import_end(c->import, status);
    } else {
        rlxvk_while(c->graph, condition, b->loop.inner, (uint32_t)MIN(most, UINT32_MAX),
                    b->loop.given.items, count, out);
        l->count = out[ROUND];
        for (size_t i = 0; i < l->carried; i++)
            l->results[i] = out[CARRIED + i];
        for (size_t i = 0; i < l->collected; i++)
            l->results[l->carried + i] = out[b->slots[i]];
    }
    rlxvk_graph_destroy(condition);
}

bool onnx_run_loop(call *c, onnx_loop_rest *l)
{
    builder b = {.c = c, .l = l};
    size_t results = l->carried + l->collected;
    onnx_import *import = c->import;
    rlxvk_status status = rlxvk_graph_create(&b.loop.inner);
    l->results = arena_allocate(c->a, (results + 1) * sizeof *l->results);
    l->types = arena_allocate(c->a, (results + 1) * sizeof *l->types);
    if (status == RLXVK_OK && (!l->results || !l->types))
        status = status_fail_memory("loop of a model");
    if (status != RLXVK_OK)
        import_end(import, status);
    b.loop.outer = c->graph;
    b.in = *c;
    b.in.graph = b.loop.inner;
    if (import->status == RLXVK_OK) {
        build_body(&b);
        c->failed = c->failed || b.in.failed;
    }
    if (import->status == RLXVK_OK && !c->failed)
        run(&b);
    rlxvk_graph_destroy(b.loop.inner);
    VECTOR_FREE(&b.loop.inputs);
    VECTOR_FREE(&b.loop.given);
    return import->status == RLXVK_OK && !c->failed;
}
