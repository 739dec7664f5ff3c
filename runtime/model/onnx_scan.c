/*
 * Loops with a known number of rounds: rlxvk_scan. Its body has one carry, so everything that the
 * rounds carry or collect is packed into one row of f32 words. What rounds collect is their part of
 * the trajectory.
 */
#include "model/onnx_scan.h"
#include "model/host.h"
#include "model/onnx_inner.h"

#include <stdio.h>
#include <string.h>

enum { SHORT_NODES = 4096, MOST_ROUNDS = 1 << 24, MOST_ELEMENTS = INT32_MAX };

/* A value inside of the row. */
typedef struct packed {
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    int64_t offset, numel;
    bool wanted;
} packed;

/* The body is built in loop.inner: it takes carried values, then slices, then captured values. */
typedef struct builder {
    call *c;
    call in; /* the same node, with the body's graph */
    onnx_rounds *r;
    import_loop loop;
    rlxvk_graph *body; /* the same with one carry */
    packed *parts;     /* carried values, then collected ones */
    size_t part_count, slices;
    int64_t row; /* elements of the carry */
} builder;

bool onnx_is_long(const onnx_graph *body, int64_t rounds)
{
    return rounds > 1 && rounds <= MOST_ROUNDS &&
           rounds > SHORT_NODES / ((int64_t)body->node_count + 1);
}

/* ---- The body ---- */

/* Inputs of bytes would be raw; so these cross the border as wider integers. */
static rlxvk_tensor widen(rlxvk_graph *g, rlxvk_tensor t)
{
    rlxvk_dtype dtype = rlxvk_tensor_dtype(g, t);
    return dtype == RLXVK_U8 || dtype == RLXVK_I8 ? rlxvk_cast(g, t, RLXVK_I16) : t;
}

/* Adds an input of the body: a part of `outer`, which has `skipped` axes more. */
static onnx_value *add_input(builder *b, rlxvk_tensor outer, uint32_t skipped, int32_t type)
{
    call *c = b->c;
    rlxvk_shape s = call_tensor_shape(c, outer);
    rlxvk_tensor given = widen(c->graph, outer), t;
    onnx_value *v = import_make_value(c->import);
    char name[32];
    if (c->failed || !v || !call_is_fixed(c, s))
        return NULL;
    s.rank -= skipped;
    memmove(s.dims, s.dims + skipped, s.rank * sizeof *s.dims);
    snprintf(name, sizeof name, "%zu", b->loop.inputs.count);
    t = rlxvk_input(b->loop.inner, name, rlxvk_tensor_dtype(c->graph, given), s);
    if (!VECTOR_PUSH(&b->loop.inputs, t) || !VECTOR_PUSH(&b->loop.given, given))
        import_end(c->import, status_fail_memory("loop of a model"));
    v->type = type;
    v->tensor = call_cast(&b->in, t, type);
    v->has_tensor = true;
    return v;
}

static onnx_value *known_true(call *c)
{
    onnx_value *v = import_make_value(c->import);
    host_array *yes = call_make_host(c, ONNX_BOOL, RLXVK_SCALAR);
    if (!v || !yes)
        return NULL;
    yes->integers[0] = 1;
    v->type = ONNX_BOOL;
    v->host = yes;
    return v;
}

static onnx_value **make_inputs(builder *b)
{
    call *c = b->c;
    const onnx_rounds *r = b->r;
    size_t at = r->numbered ? 2 : 0, count = at + r->carried + r->sliced;
    onnx_value **values = onnx_inner_values(c, count);
    for (size_t i = 0; values && i < r->carried; i++) {
        rlxvk_tensor t = call_tensor_of(c, r->start[i]);
        values[at + i] = c->failed ? NULL : add_input(b, t, 0, r->start[i]->type);
    }
    for (size_t i = 0; values && i < r->sliced; i++)
        values[at + r->carried + i] = add_input(b, r->sequences[i], 1, r->sequence_types[i]);
    if (values && r->numbered) {
        values[0] = add_input(b, rlxvk_arange(c->graph, 0, 1, r->count), 1, ONNX_INT64);
        values[1] = known_true(c);
    }
    b->slices = r->sliced + r->numbered;
    for (size_t i = 0; values && i < count; i++)
        if (!values[i])
            return NULL;
    return c->failed || c->import->status != RLXVK_OK ? NULL : values;
}

/* Gives part i of the row: a value that the body gives. */
static bool add_part(builder *b, size_t i, onnx_value *given)
{
    onnx_import *import = b->c->import;
    rlxvk_graph *outer = import->graph;
    packed *p = &b->parts[i];
    rlxvk_tensor t;
    import->graph = b->loop.inner;
    import->loops++;
    t = call_tensor_of(&b->in, given);
    import->graph = outer;
    import->loops--;
    if (b->in.failed || given->count.graph || rlxvk_graph_status(b->loop.inner) != RLXVK_OK)
        return false;
    *p = (packed){.shape = call_tensor_shape(&b->in, t),
                  .dtype = rlxvk_tensor_dtype(b->loop.inner, t),
                  .offset = b->row,
                  .numel = 1,
                  .wanted = i < b->r->carried || call_wants(b->c, i)};
    if (p->shape.rank == RLXVK_MAX_RANK || !call_is_fixed(&b->in, p->shape))
        return false;
    for (uint32_t k = 0; k < p->shape.rank; k++)
        if (p->shape.dims[k] < 1 || (p->numel *= p->shape.dims[k]) > MOST_ELEMENTS / b->r->count)
            return false;
    b->row += p->wanted ? p->numel : 0;
    b->r->types[i] = given->type;
    if (p->wanted)
        rlxvk_graph_output(b->loop.inner, t);
    return b->row <= MOST_ELEMENTS / b->r->count;
}

/* Carried values keep their shapes and types, and a condition stays true. */
static bool build_inner(builder *b)
{
    onnx_rounds *r = b->r;
    onnx_value **inputs = make_inputs(b), **outputs;
    const host_array *condition = NULL;
    size_t at = r->numbered;
    outputs = inputs ? onnx_inner_run(b->c, r->body, &b->loop, inputs) : NULL;
    if (!outputs)
        return false;
    if (r->numbered &&
        (import_host(b->c->import, outputs[0], &condition) != RLXVK_OK || !condition ||
         condition->numel != 1 || !condition->integers || !condition->integers[0]))
        return false;
    for (size_t i = 0; i < b->part_count; i++) {
        if (!add_part(b, i, outputs[at + i]))
            return false;
        if (i < r->carried &&
            (r->types[i] != r->start[i]->type ||
             !rlxvk_shape_equal(b->parts[i].shape,
                                rlxvk_tensor_shape(b->loop.inner, b->loop.inputs.items[i]))))
            return false;
    }
    return b->row > 0 && rlxvk_graph_status(b->loop.inner) == RLXVK_OK;
}

/* ---- One carry ---- */

static rlxvk_tensor to_row(rlxvk_graph *g, rlxvk_tensor t, int64_t numel)
{
    return rlxvk_reshape(g, rlxvk_cast(g, widen(g, t), RLXVK_F32), RLXVK_SHAPE(numel));
}

static rlxvk_tensor input_like(builder *b, rlxvk_shape s, rlxvk_dtype dtype, size_t number)
{
    char name[32];
    snprintf(name, sizeof name, "%zu", number);
    return rlxvk_input(b->body, name, dtype, s);
}

/* Takes the carry, captured values and slices, in this order, as rlxvk_scan gives them. */
static void build_body(builder *b, rlxvk_tensor *arguments, rlxvk_tensor *rows)
{
    rlxvk_graph *g = b->body, *inner = b->loop.inner;
    size_t carried = b->r->carried, count = b->loop.inputs.count, results = 0;
    rlxvk_tensor carry = input_like(b, RLXVK_SHAPE(b->row), RLXVK_F32, 0);
    for (size_t n = 1; n <= count - carried; n++) {
        size_t captured = count - carried - b->slices;
        size_t i = n <= captured ? carried + b->slices + n - 1 : carried + n - 1 - captured;
        rlxvk_tensor like = b->loop.inputs.items[i];
        arguments[i] =
            input_like(b, rlxvk_tensor_shape(inner, like), rlxvk_tensor_dtype(inner, like), n);
    }
    for (size_t i = 0; i < carried; i++) {
        const packed *p = &b->parts[i];
        rlxvk_tensor t = rlxvk_narrow(g, carry, 0, p->offset, p->numel);
        arguments[i] = rlxvk_cast(g, rlxvk_reshape(g, t, p->shape),
                                  rlxvk_tensor_dtype(inner, b->loop.inputs.items[i]));
    }
    for (size_t i = 0; i < b->part_count; i++)
        results += b->parts[i].wanted;
    rlxvk_call(g, inner, arguments, count, rows, results);
    results = 0;
    for (size_t i = 0; i < b->part_count; i++)
        if (b->parts[i].wanted) {
            rows[results] = to_row(g, rows[results], b->parts[i].numel);
            results++;
        }
    rlxvk_graph_output(g, results == 1 ? rows[0] : rlxvk_concat(g, rows, results, 0));
}

/* Collected values begin as zeros, which no round reads. */
static rlxvk_tensor first_carry(builder *b, rlxvk_tensor *rows)
{
    rlxvk_graph *g = b->c->graph;
    int64_t used = 0;
    size_t count = b->r->carried;
    for (size_t i = 0; i < count; i++) {
        rows[i] = to_row(g, b->loop.given.items[i], b->parts[i].numel);
        used += b->parts[i].numel;
    }
    if (used < b->row)
        rows[count++] = rlxvk_full(g, RLXVK_SHAPE(b->row - used), 0);
    return count == 1 ? rows[0] : rlxvk_concat(g, rows, count, 0);
}

static void take_results(builder *b, rlxvk_tensor y, bool trajectory)
{
    rlxvk_graph *g = b->c->graph;
    onnx_rounds *r = b->r;
    rlxvk_tensor last = y;
    if (trajectory)
        last = rlxvk_reshape(g, rlxvk_narrow(g, y, 0, r->count - 1, 1), RLXVK_SHAPE(b->row));
    for (size_t i = 0; i < b->part_count; i++) {
        const packed *p = &b->parts[i];
        rlxvk_shape s = p->shape;
        rlxvk_tensor t;
        if (!p->wanted)
            continue;
        if (i < r->carried) {
            t = rlxvk_narrow(g, last, 0, p->offset, p->numel);
        } else {
            memmove(s.dims + 1, s.dims, s.rank++ * sizeof *s.dims);
            s.dims[0] = r->count;
            t = rlxvk_narrow(g, y, 1, p->offset, p->numel);
        }
        r->results[i] = rlxvk_cast(g, rlxvk_reshape(g, t, s), p->dtype);
    }
}

static void build_scan(builder *b)
{
    call *c = b->c;
    size_t inputs = b->loop.inputs.count, carried = b->r->carried;
    size_t captured = inputs - carried - b->slices, count = 1 + captured + b->slices;
    rlxvk_tensor *arguments = arena_allocate(c->a, (inputs + 1) * sizeof *arguments);
    rlxvk_tensor *rows = arena_allocate(c->a, (b->part_count + 1) * sizeof *rows);
    rlxvk_tensor *given = arena_allocate(c->a, count * sizeof *given), y;
    rlxvk_scan_options o = {.length = b->r->count, .broadcast_count = captured};
    rlxvk_status status = rlxvk_graph_create(&b->body);
    if (status == RLXVK_OK && (!arguments || !rows || !given))
        status = status_fail_memory("loop of a model");
    if (status != RLXVK_OK) {
        import_end(c->import, status);
        return;
    }
    build_body(b, arguments, rows);
    given[0] = first_carry(b, rows);
    memcpy(given + 1, b->loop.given.items + carried + b->slices, captured * sizeof *given);
    memcpy(given + 1 + captured, b->loop.given.items + carried, b->slices * sizeof *given);
    for (size_t i = carried; i < b->part_count; i++)
        o.save_trajectory = o.save_trajectory || b->parts[i].wanted;
    y = rlxvk_scan(c->graph, b->body, given, count, &o);
    take_results(b, y, o.save_trajectory);
}

/* ---- An attempt ---- */

/* What an attempt may change in the import besides graphs. */
typedef struct saved {
    size_t problems;
    bool failed, stuck, *needs_value;
    uint64_t nodes;
} saved;

static void undo(call *c, const saved *s)
{
    onnx_import *import = c->import;
    import->problems.count = s->problems;
    import->stuck = s->stuck;
    import->node_count = s->nodes;
    memcpy(import->needs_value, s->needs_value, import->model->graph.input_count);
    c->failed = s->failed;
}

bool onnx_try_scan(call *c, onnx_rounds *r)
{
    onnx_import *import = c->import;
    size_t inputs = import->model->graph.input_count;
    builder b = {.c = c, .in = *c, .r = r, .part_count = r->carried + r->collected};
    saved before = {import->problems.count, c->failed, import->stuck,
                    arena_copy(c->a, import->needs_value, inputs + 1), import->node_count};
    bool built = false;
    rlxvk_status status = rlxvk_graph_create(&b.loop.inner);
    b.loop.outer = c->graph;
    b.in.graph = b.loop.inner;
    b.parts = arena_allocate(c->a, (b.part_count + 1) * sizeof *b.parts);
    r->results = arena_allocate(c->a, (b.part_count + 1) * sizeof *r->results);
    r->types = arena_allocate(c->a, (b.part_count + 1) * sizeof *r->types);
    if (status == RLXVK_OK && (!b.parts || !r->results || !r->types || !before.needs_value))
        status = status_fail_memory("loop of a model");
    if (status != RLXVK_OK)
        import_end(import, status);
    else if ((built = build_inner(&b)))
        build_scan(&b);
    if (!built && before.needs_value)
        undo(c, &before);
    rlxvk_graph_destroy(b.body);
    rlxvk_graph_destroy(b.loop.inner);
    VECTOR_FREE(&b.loop.inputs);
    VECTOR_FREE(&b.loop.given);
    c->failed = c->failed || import->status != RLXVK_OK;
    return built && !c->failed;
}
