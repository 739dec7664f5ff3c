/*
 * Copies the bodies of control flow into the graph; see inlining.h. A param of the body is the
 * graph's param of the same name. Each inlining takes the next instance number, and instances
 * inside the body follow it. So random ops of a body draw anew each time, in the order of a fully
 * unrolled loop.
 */
#include "op/bind.h"
#include "op/compose/composite.h"
#include "op/compose/inlining.h"
#include "op/movement/movement.h"
#include "op/random/random.h"

#include <string.h>

#define INSTANCE_SHIFT 32

static size_t body_inputs(const rlxvk_graph *body)
{
    size_t count = 0;
    for (uint32_t id = 0; id < body->nodes.count; id++)
        count += graph_node(body, id)->op == OP_input && !random_is_state(graph_node(body, id));
    return count;
}

static uint32_t bind_state(inlining *in, const node *n)
{
    uint32_t id = in->state.id ? in->state.id - 1 : graph_find(in->g, OP_input, RNG_STATE_NAME);
    return id == NODE_NONE ? op_append_leaf(in->g, n) : id;
}

static uint32_t bind_input(inlining *in, const node *n)
{
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    rlxvk_tensor t = in->inputs[in->next_input];
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

void inlining_shift_stream(const node *n, uint64_t instance, void *attributes)
{
    const op_family *family = node_row(n)->family;
    if (family == op_table[OP_rng_uniform].family)
        ((rng_attributes *)attributes)->stream.key += instance << INSTANCE_SHIFT;
    else if (family == op_table[OP_sample].family)
        ((sample_attributes *)attributes)->options.stream.key += instance << INSTANCE_SHIFT;
}

/* The value as the body of a branch reads it. */
static uint32_t gated(const inlining *in, uint32_t value)
{
    rlxvk_graph *g = in->g;
    if (!in->gate.id || g->status != RLXVK_OK || value == NODE_NONE ||
        !dtype_is_continuous((rlxvk_dtype)graph_node(g, value)->dtype) ||
        op_node_storage(g, value) == STORAGE_RAW)
        return value;
    branch_attributes a = {in->otherwise};
    return op_append(g, OP_branch_input, (uint32_t[]){value, in->gate.id - 1}, 2, &a, NULL);
}

/* The operand that a copied node reads instead of node `id` of the body. Inputs get their gate when
 * they are bound. Params, and nodes that were inlined before the loop, get a gate for each reader.
 */
static uint32_t operand_of(const inlining *in, uint32_t id)
{
    const node *n = graph_node(in->body, id);
    bool earlier = in->part == INLINING_VARYING && !in->varies[id];
    bool outside = (n->op == OP_param || earlier) && n->op != OP_constant && !random_is_state(n);
    return outside ? gated(in, in->map[id]) : in->map[id];
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
            inputs[i] = operand_of(in, n.inputs[i]);
        n.inputs = inputs;
        inlining_shift_stream(&n, in->instance, attributes);
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
    bool state = random_is_state(&n);
    bool same = n.op == OP_param || n.op == OP_constant || state;
    if (same && in->map[id] != NODE_NONE)
        return in->map[id];
    if (n.op == OP_input)
        return state ? bind_state(in, &n) : gated(in, bind_input(in, &n));
    if (n.op == OP_param)
        return bind_param(in, &n);
    return n.op == OP_constant ? op_append_leaf(in->g, &n) : copy_node(in, &n, &room);
}

bool inlining_body_fits(rlxvk_graph *g, const rlxvk_graph *body, const char *what, size_t inputs,
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

bool inlining_writes_nothing(rlxvk_graph *g, const rlxvk_graph *body, const char *what)
{
    for (uint32_t id = 0; id < body->nodes.count && g->status == RLXVK_OK; id++)
        if (node_has_effect(body, graph_node(body, id)))
            composite_fail(g, what, RLXVK_E_ATTR,
                           "%s writes an operand in place, taken or not; write after it",
                           node_row(graph_node(body, id))->name);
    return g->status == RLXVK_OK;
}

bool inlining_tensors_given(rlxvk_graph *g, const rlxvk_tensor *tensors, size_t count,
                            const char *what)
{
    char who[CALL_LABEL];
    graph_fail(g, status_require_items(tensors, count, what, "values"));
    for (size_t i = 0; i < count && g->status == RLXVK_OK; i++)
        graph_fail(g, graph_take(g, tensors[i], op_call_label(g, what, who), "value", i));
    return g->status == RLXVK_OK;
}

bool inlining_rounds_fit(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes,
                         const char *why)
{
    uint64_t total;
    if (!size_multiply(rounds, nodes, &total) || total > INLINING_MOST_NODES - g->inlined)
        composite_fail(g, what, RLXVK_E_TOO_LARGE,
                       "%llu rounds of %llu nodes, and %llu of earlier bodies; at most %u "
                       "in all%s",
                       (unsigned long long)rounds, (unsigned long long)nodes,
                       (unsigned long long)g->inlined, INLINING_MOST_NODES, why);
    else
        g->inlined += total;
    return g->status == RLXVK_OK;
}

bool inlining_create(inlining *in, rlxvk_graph *g, const rlxvk_graph *body, const char *what)
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

/* Whether node `id` of the body is inlined in this part: all nodes, only those that differ from
 * step to step, or only the others. */
static bool is_due(const inlining *in, uint32_t id)
{
    return in->part == INLINING_ALL || in->varies[id] == (in->part == INLINING_VARYING);
}

bool inlining_nodes(inlining *in)
{
    rlxvk_graph *g = in->g;
    in->next_input = 0;
    for (uint32_t id = 0; id < in->body->nodes.count && g->status == RLXVK_OK; id++) {
        const node *n = graph_node(in->body, id);
        if (is_due(in, id))
            in->map[id] = inline_node(in, id);
        in->next_input += n->op == OP_input && !random_is_state(n);
    }
    return g->status == RLXVK_OK;
}

bool inlining_outputs(const inlining *in, rlxvk_tensor *outputs)
{
    rlxvk_graph *g = in->g;
    for (size_t i = 0; i < in->body->outputs.count && g->status == RLXVK_OK; i++)
        outputs[i] = tensor_of(g, in->map[in->body->outputs.items[i]]);
    g->instances += 1 + in->body->instances;
    g->replayed += in->body->replayed;
    return g->status == RLXVK_OK;
}

bool inlining_round(inlining *in, const rlxvk_tensor *inputs, rlxvk_tensor *outputs)
{
    in->inputs = inputs;
    in->instance = in->g->instances + 1;
    return inlining_nodes(in) && inlining_outputs(in, outputs);
}

bool inlining_once(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                   const rlxvk_tensor *inputs, rlxvk_tensor *outputs)
{
    inlining in;
    bool done = inlining_create(&in, g, body, what) && inlining_round(&in, inputs, outputs);
    memory_free(in.map);
    return done;
}

bool inlining_branch(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                     rlxvk_tensor predicate, bool otherwise, const rlxvk_tensor *inputs,
                     rlxvk_tensor *output)
{
    inlining in;
    bool done = inlining_create(&in, g, body, what);
    in.gate = predicate;
    in.otherwise = otherwise;
    done = done && inlining_round(&in, inputs, output);
    memory_free(in.map);
    return done;
}

bool inlining_call(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                   const rlxvk_tensor *inputs, size_t count, rlxvk_tensor *outputs)
{
    return inlining_tensors_given(g, inputs, count, what) &&
           inlining_rounds_fit(g, what, 1, body->nodes.count, "") &&
           inlining_once(g, body, what, inputs, outputs);
}

bool inlining_same_kind(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, const char *what)
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
