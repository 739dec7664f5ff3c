/*
 * Control flow by inlining at build time: both branches of an if, `max_iterations` rounds of a
 * while, every step of a scan become ordinary nodes of the graph (core definitions: Where selects,
 * so a discarded branch's NaN never leaks).
 *
 * A body is a graph whose inputs bind by position in id order; its params are those of the parent
 * by name. Each inlining takes the next instance number, and the instances inside the body follow
 * it, so that random ops of a body draw anew each time, in the order of full unrolling.
 */
#include "op/bind.h"
#include "op/compose/composite.h"
#include "op/compose/control.h"
#include "op/random/random.h"

#include <string.h>

#define NODE_LIMIT     1000000u
#define INSTANCE_SHIFT 32

typedef struct inlining {
    rlxvk_graph *g;
    const rlxvk_graph *body;
    const char *what; /* "while body", for errors */
    const rlxvk_tensor *inputs;
    size_t input_count, next_input;
    uint64_t instance;
    uint32_t *map; /* body node -> node; what does not change with the round stays from the first */
} inlining;

static size_t body_inputs(const rlxvk_graph *body)
{
    size_t count = 0;
    for (uint32_t id = 0; id < body->nodes.count; id++)
        count += graph_node(body, id)->op == OP_input && !random_is_state(graph_node(body, id));
    return count;
}

static uint32_t bind_input(inlining *in, const node *n)
{
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    if (random_is_state(n)) {
        uint32_t id = graph_find(in->g, OP_input, RNG_STATE_NAME);
        return id == NODE_NONE ? op_append_leaf(in->g, n) : id;
    }
    rlxvk_tensor t = in->inputs[in->next_input++];
    rlxvk_shape given = rlxvk_tensor_shape(in->g, t);
    rlxvk_dtype dtype = rlxvk_tensor_dtype(in->g, t);
    if (dtype == n->dtype && shape_equal(&given, &n->shape))
        return t.id - 1;
    composite_fail(in->g, in->what, RLXVK_E_SHAPE,
                   "input '%s' is %s %s, given %s %s; cast or reshape the value", n->name,
                   rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                   symbol_shape_text(in->g, &n->shape, want), rlxvk_dtype_name(dtype),
                   symbol_shape_text(in->g, &given, have));
    return NODE_NONE;
}

static uint32_t bind_param(inlining *in, const node *n)
{
    uint32_t id = graph_find(in->g, OP_param, n->name);
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    if (id == NODE_NONE)
        return op_append_given(in->g, n, NULL);
    const node *known = graph_node(in->g, id);
    rlxvk_shape shape = rlxvk_tensor_shape(in->g, tensor_of(in->g, id));
    if (known->dtype == n->dtype && shape_equal(&shape, &n->shape))
        return id;
    composite_fail(in->g, in->what, RLXVK_E_PARAM_CONFLICT,
                   "param '%s' is %s %s in the body and %s %s outside; declare both alike", n->name,
                   rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                   symbol_shape_text(in->g, &n->shape, want),
                   rlxvk_dtype_name((rlxvk_dtype)known->dtype),
                   symbol_shape_text(in->g, &shape, have));
    return NODE_NONE;
}

/* Random ops of an inlined body draw from streams of their own. */
static void shift_stream(const node *n, uint64_t instance, void *attributes)
{
    const op_family *family = node_row(n)->family;
    if (family == op_table[OP_rng_uniform].family)
        ((rng_attributes *)attributes)->stream.key += instance << INSTANCE_SHIFT;
    else if (family == op_table[OP_sample].family)
        ((sample_attributes *)attributes)->options.stream.key += instance << INSTANCE_SHIFT;
}

/* Node `given` of the body, as its builder call gave it. */
static uint32_t copy_node(inlining *in, const node *given, instance_attributes *attributes)
{
    node n = *given;
    uint32_t result = NODE_NONE, *inputs = memory_zeroed(n.input_count + 1, sizeof *inputs);
    if (!inputs) {
        graph_fail(in->g, status_fail_memory("inlined operands"));
    } else {
        for (uint32_t i = 0; i < n.input_count; i++)
            inputs[i] = in->map[n.inputs[i]];
        n.inputs = inputs;
        shift_stream(&n, in->instance, attributes);
        result = op_append_given(in->g, &n, n.attributes ? attributes : NULL);
    }
    memory_free(inputs);
    return result;
}

static uint32_t inline_node(inlining *in, uint32_t id)
{
    static const binding_list none = {0};
    instance_attributes room;
    const node n = bind_translate(in->body, id, &none, in->g, &room);
    bool same = n.op == OP_param || n.op == OP_constant || random_is_state(&n);
    if (same && in->map[id] != NODE_NONE)
        return in->map[id];
    if (n.op == OP_input)
        return bind_input(in, &n);
    if (n.op == OP_param)
        return bind_param(in, &n);
    return n.op == OP_constant ? op_append_leaf(in->g, &n) : copy_node(in, &n, &room);
}

/* Checks what every body must satisfy before anything is inlined. */
bool control_body_fits(rlxvk_graph *g, const rlxvk_graph *body, const char *what, size_t inputs,
                       size_t outputs)
{
    if (!graph_ready(g, what) || graph_fail(g, status_require(body, what, "body")) != RLXVK_OK)
        return false;
    if (body == g)
        composite_fail(g, what, RLXVK_E_ATTR,
                       "needs a graph of its own; a graph cannot be its own body");
    else if (body->status != RLXVK_OK)
        composite_fail(g, what, body->status, "%s", body->error);
    else if (body_inputs(body) != inputs)
        composite_fail(g, what, RLXVK_E_ARITY, "%zu inputs; %zu values are bound to them",
                       body_inputs(body), inputs);
    else if (body->outputs.count != outputs)
        composite_fail(g, what, RLXVK_E_ARITY, "%zu outputs; needs %zu", body->outputs.count,
                       outputs);
    return g->status == RLXVK_OK;
}

/* Bodies whose result may be thrown away must not leave anything else behind. */
static bool writes_nothing(rlxvk_graph *g, const rlxvk_graph *body, const char *what)
{
    for (uint32_t id = 0; id < body->nodes.count && g->status == RLXVK_OK; id++)
        if (node_writes(graph_node(body, id)))
            composite_fail(g, what, RLXVK_E_ATTR,
                           "%s writes an operand in place, taken or not; write after it",
                           node_row(graph_node(body, id))->name);
    return g->status == RLXVK_OK;
}

static bool tensors_given(rlxvk_graph *g, const rlxvk_tensor *tensors, size_t count,
                          const char *what)
{
    char who[CALL_LABEL];
    graph_fail(g, status_require_items(tensors, count, what, "values"));
    for (size_t i = 0; i < count && g->status == RLXVK_OK; i++)
        graph_fail(g, graph_take(g, tensors[i], op_call_label(g, what, who), "value", i));
    return g->status == RLXVK_OK;
}

/* Counts what is about to be inlined, with all that earlier calls inlined into the graph. */
static bool rounds_fit(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes)
{
    uint64_t total;
    if (!size_multiply(rounds, nodes, &total) || total > NODE_LIMIT - g->inlined)
        composite_fail(g, what, RLXVK_E_TOO_LARGE,
                       "%llu rounds of %llu nodes, and %llu of earlier bodies; at most %u "
                       "in all",
                       (unsigned long long)rounds, (unsigned long long)nodes,
                       (unsigned long long)g->inlined, NODE_LIMIT);
    else
        g->inlined += total;
    return g->status == RLXVK_OK;
}

static bool inlining_create(inlining *in, rlxvk_graph *g, const rlxvk_graph *body, const char *what)
{
    *in = (inlining){.g = g, .body = body, .what = what};
    if (graph_fail(g, graph_keep_all(g, body)) != RLXVK_OK)
        return false;
    in->map = memory_zeroed(body->nodes.count + 1, sizeof *in->map);
    if (in->map)
        memset(in->map, 0xff, body->nodes.count * sizeof *in->map); /* NODE_NONE */
    else
        graph_fail(g, status_fail_memory("inlined body"));
    return in->map;
}

/* Appends the body's nodes with its inputs bound; fills outputs (as many as the body has). */
static bool inline_round(inlining *in, const rlxvk_tensor *inputs, size_t count,
                         rlxvk_tensor *outputs)
{
    rlxvk_graph *g = in->g;
    const rlxvk_graph *body = in->body;
    in->inputs = inputs;
    in->input_count = count;
    in->next_input = 0;
    in->instance = g->instances + 1;
    for (uint32_t id = 0; id < body->nodes.count && g->status == RLXVK_OK; id++)
        in->map[id] = inline_node(in, id);
    for (size_t i = 0; i < body->outputs.count && g->status == RLXVK_OK; i++)
        outputs[i] = tensor_of(g, in->map[body->outputs.items[i]]);
    g->instances += 1 + body->instances;
    return g->status == RLXVK_OK;
}

static bool inline_once(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                        const rlxvk_tensor *inputs, size_t count, rlxvk_tensor *outputs)
{
    inlining in;
    bool done = inlining_create(&in, g, body, what) && inline_round(&in, inputs, count, outputs);
    memory_free(in.map);
    return done;
}

bool control_inline(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                    const rlxvk_tensor *inputs, size_t count, rlxvk_tensor *outputs)
{
    return tensors_given(g, inputs, count, what) && rounds_fit(g, what, 1, body->nodes.count) &&
           inline_once(g, body, what, inputs, count, outputs);
}

static bool same_kind(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, const char *what)
{
    rlxvk_shape x = rlxvk_tensor_shape(g, a), y = rlxvk_tensor_shape(g, b);
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    if (shape_equal(&x, &y) && rlxvk_tensor_dtype(g, a) == rlxvk_tensor_dtype(g, b))
        return true;
    composite_fail(g, what, RLXVK_E_SHAPE,
                   "%s %s against %s %s; both must have one shape and dtype",
                   rlxvk_dtype_name(rlxvk_tensor_dtype(g, a)), shape_text(&x, left),
                   rlxvk_dtype_name(rlxvk_tensor_dtype(g, b)), shape_text(&y, right));
    return false;
}

/* False when there is nowhere to put the results or nothing to do. */
static bool results_given(rlxvk_graph *g, const rlxvk_tensor *results, size_t count,
                          const char *call, const char *argument)
{
    return graph_ready(g, call) &&
           graph_fail(g, status_require_items(results, count, call, argument)) == RLXVK_OK;
}

/* After a failure there are no results. Not before: they may be written over the operands. */
static void settle_results(const rlxvk_graph *g, rlxvk_tensor *results, size_t count)
{
    if (results && count && (!g || g->status != RLXVK_OK))
        memset(results, 0, count * sizeof *results);
}

/* ---- if, call ---- */

void rlxvk_call(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *inputs, size_t count,
                rlxvk_tensor *out_results, size_t result_count)
{
    if (results_given(g, out_results, result_count, "call", "out_results") &&
        control_body_fits(g, body, "call", count, result_count))
        (void)control_inline(g, body, "call", inputs, count, out_results);
    settle_results(g, out_results, result_count);
}

rlxvk_tensor rlxvk_if(rlxvk_graph *g, rlxvk_tensor predicate, const rlxvk_graph *then_body,
                      const rlxvk_graph *else_body, const rlxvk_tensor *captures, size_t count)
{
    rlxvk_tensor a, b;
    rlxvk_shape both;
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    if (!control_body_fits(g, then_body, "if: then", count, 1) ||
        !control_body_fits(g, else_body, "if: else", count, 1) ||
        !writes_nothing(g, then_body, "if: then") || !writes_nothing(g, else_body, "if: else") ||
        !tensors_given(g, captures, count, "if") || !tensors_given(g, &predicate, 1, "if") ||
        !rounds_fit(g, "if", 1, then_body->nodes.count + else_body->nodes.count) ||
        !inline_once(g, then_body, "if: then", captures, count, &a) ||
        !inline_once(g, else_body, "if: else", captures, count, &b) ||
        !same_kind(g, a, b, "if: the branches differ"))
        return RLXVK_NONE;
    rlxvk_shape p = rlxvk_tensor_shape(g, predicate), out = rlxvk_tensor_shape(g, a);
    if (!shape_broadcast(&p, &out, &both) || !shape_equal(&both, &out)) {
        composite_fail(g, "if", RLXVK_E_SHAPE,
                       "predicate %s does not broadcast to the result %s; its dims are 1 "
                       "or the result's",
                       shape_text(&p, left), shape_text(&out, right));
        return RLXVK_NONE;
    }
    return rlxvk_where(g, predicate, a, b);
}

/* ---- while ---- */

static rlxvk_tensor scalar_constant(rlxvk_graph *g, float value)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &value, sizeof value);
}

/* Whether every element is non-zero, as a scalar 0 or 1. */
static rlxvk_tensor truth(rlxvk_graph *g, rlxvk_tensor t)
{
    static const int32_t axes[RLXVK_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    rlxvk_shape s = rlxvk_tensor_shape(g, t);
    rlxvk_tensor p = rlxvk_cast(g, rlxvk_ne(g, t, scalar_constant(g, 0)), RLXVK_F32);
    if (dim_elements(g, &s) == 1)
        return rlxvk_reshape(g, p, RLXVK_SCALAR);
    /* min with 1: nothing to reduce is true */
    return rlxvk_min(g, rlxvk_reduce_min(g, p, axes, s.rank, false), scalar_constant(g, 1));
}

void rlxvk_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                 uint32_t max_iterations, const rlxvk_tensor *carried, size_t count,
                 rlxvk_tensor *out_values)
{
    inlining test = {0}, work = {0};
    rlxvk_tensor active = RLXVK_NONE, goes_on, *next;
    if (!results_given(g, out_values, count, "while", "out_values")) {
        settle_results(g, out_values, count);
        return;
    }
    if (!(next = memory_zeroed(count + 1, sizeof *next)))
        graph_fail(g, status_fail_memory("while"));
    if (count == 0)
        composite_fail(g, "while", RLXVK_E_ARITY, "nothing is carried; needs one value at least");
    if (control_body_fits(g, condition, "while: condition", count, 1) &&
        control_body_fits(g, body, "while: body", count, count) &&
        tensors_given(g, carried, count, "while") &&
        rounds_fit(g, "while", max_iterations,
                   condition->nodes.count + body->nodes.count + count + 5) &&
        writes_nothing(g, condition, "while: condition") &&
        writes_nothing(g, body, "while: body") &&
        inlining_create(&test, g, condition, "while: condition") &&
        inlining_create(&work, g, body, "while: body"))
        memmove(out_values, carried, count * sizeof *carried);
    for (uint32_t i = 0; i < max_iterations && g->status == RLXVK_OK; i++) {
        if (!inline_round(&test, out_values, count, &goes_on) ||
            !inline_round(&work, out_values, count, next))
            break;
        rlxvk_tensor p = truth(g, goes_on);
        active = active.id ? rlxvk_mul(g, active, p) : p;
        for (size_t k = 0; k < count && same_kind(g, next[k], out_values[k], "while: body"); k++)
            out_values[k] = rlxvk_where(g, active, next[k], out_values[k]);
    }
    settle_results(g, out_values, count);
    memory_free(next);
    memory_free(test.map);
    memory_free(work.map);
}

/* ---- scan ---- */

/* Row t of [L, ...] without its leading axis. */
static rlxvk_tensor row_of(rlxvk_graph *g, rlxvk_tensor x, int64_t t)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x), row = {.rank = s.rank - 1};
    for (uint32_t i = 1; i < s.rank; i++)
        row.dims[i - 1] = s.dims[i];
    return rlxvk_reshape(g, rlxvk_narrow(g, x, 0, t, 1), row);
}

/* [rows, x's dims]; x has a rank below the largest. */
static rlxvk_shape rows_like(const rlxvk_graph *g, rlxvk_tensor x, int64_t rows)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x), result = {.rank = s.rank + 1, .dims = {rows}};
    memcpy(result.dims + 1, s.dims, s.rank * sizeof *s.dims);
    return result;
}

static bool scan_fits(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_scan_options *o,
                      const rlxvk_tensor *values, size_t count)
{
    size_t constants = 1 + o->broadcast_count;
    if (!control_body_fits(g, body, "scan: body", count, 1) ||
        !tensors_given(g, values, count, "scan") ||
        !composite_number(g, "scan", "length", o->length) ||
        !rounds_fit(g, "scan", (uint64_t)MAX(o->length, 0), body->nodes.count + 2 * count + 2))
        return false;
    if (o->length < 0 || o->broadcast_count >= count || o->checkpoints > o->length ||
        o->checkpoints < 0 || (o->checkpoints && !o->save_trajectory))
        composite_fail(g, "scan", RLXVK_E_ATTR,
                       "length %lld, %zu broadcast of %zu values, %lld checkpoints; 0 <= "
                       "checkpoints <= length, checkpoints only of a saved trajectory, and the "
                       "first value is the carry",
                       (long long)o->length, o->broadcast_count, count, (long long)o->checkpoints);
    else if (o->save_trajectory && rlxvk_tensor_shape(g, values[0]).rank == RLXVK_MAX_RANK)
        composite_fail(g, "scan", RLXVK_E_SHAPE,
                       "a trajectory has one axis more than its carry, of rank %d; "
                       "ranks end at %d",
                       RLXVK_MAX_RANK, RLXVK_MAX_RANK);
    for (size_t i = constants; i < count && g->status == RLXVK_OK; i++) {
        rlxvk_shape s = rlxvk_tensor_shape(g, values[i]);
        if (s.rank && !composite_number(g, "scan", "a sequence's first dim", s.dims[0]))
            break;
        if (s.rank == 0 || s.dims[0] != o->length)
            composite_fail(g, "scan", RLXVK_E_SHAPE,
                           "sequence %zu has %lld steps, not %lld; its first dim is the length",
                           i - constants, s.rank ? (long long)s.dims[0] : 0LL,
                           (long long)o->length);
    }
    return g->status == RLXVK_OK;
}

/* Whether the carry after step t is a row of the trajectory: all, or those of ceil((k+1) L / K)
 * - 1. */
static bool is_saved(const rlxvk_scan_options *o, int64_t t)
{
    if (o->checkpoints == 0 || o->checkpoints == o->length)
        return true;
    int64_t k = (t + 1) * o->checkpoints / o->length - 1;
    return k >= 0 && ((k + 1) * o->length + o->checkpoints - 1) / o->checkpoints - 1 == t;
}

static rlxvk_tensor empty_trajectory(rlxvk_graph *g, rlxvk_tensor carry)
{
    return rlxvk_constant(g, rlxvk_tensor_dtype(g, carry), rows_like(g, carry, 0), "", 0);
}

rlxvk_tensor rlxvk_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                        size_t count, const rlxvk_scan_options *options)
{
    rlxvk_scan_options o = options ? *options : (rlxvk_scan_options){0};
    rlxvk_tensor carry, result = RLXVK_NONE, *now, *rows = NULL;
    size_t saved = 0, constants = 1 + o.broadcast_count;
    inlining in;
    if (!scan_fits(g, body, &o, values, count))
        return RLXVK_NONE;
    carry = values[0];
    now = memory_zeroed(count, sizeof *now);
    rows = memory_zeroed((size_t)o.length + 1, sizeof *rows);
    if (!inlining_create(&in, g, body, "scan: body") || !now || !rows)
        graph_fail(g, status_fail_memory("scan"));
    for (int64_t t = 0; t < o.length && g->status == RLXVK_OK; t++) {
        rlxvk_tensor next;
        memcpy(now, values, constants * sizeof *now);
        now[0] = carry;
        for (size_t i = constants; i < count; i++)
            now[i] = row_of(g, values[i], t);
        if (!inline_round(&in, now, count, &next) ||
            !same_kind(g, next, carry, "scan: body result and carry"))
            break;
        carry = next;
        if (o.save_trajectory && is_saved(&o, t))
            rows[saved++] = rlxvk_reshape(g, carry, rows_like(g, carry, 1));
    }
    if (g->status == RLXVK_OK)
        result = !o.save_trajectory ? carry
                 : saved            ? rlxvk_concat(g, rows, saved, 0)
                                    : empty_trajectory(g, carry);
    memory_free(now);
    memory_free(rows);
    memory_free(in.map);
    return result;
}
