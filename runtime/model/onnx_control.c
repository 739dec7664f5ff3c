/* Lowerings of control flow: graphs inside nodes are inlined. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <string.h>

static const onnx_graph *graph_of(call *c, const char *name)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_GRAPH);
    if (!a && !c->failed)
        call_refuse(c, name, "it is required");
    return a ? a->graph : NULL;
}

/* Room for the values that a graph gives or takes; NULL after a problem. */
static onnx_value **make_values(call *c, size_t count)
{
    onnx_value **values = arena_allocate(c->a, MAX(count, 1) * sizeof *values);
    if (!values)
        import_end(c->import, status_fail_memory("graph inside a node"));
    return values;
}

static onnx_value **run_graph(call *c, const onnx_graph *g, onnx_value *const *inputs)
{
    onnx_value **outputs = make_values(c, g->output_count);
    if (!outputs)
        return NULL;
    c->import->inline_graph(c->import, c, g, inputs, outputs);
    return c->failed || c->import->status != RLXVK_OK ? NULL : outputs;
}

static rlxvk_tensor tensor_of(call *c, onnx_value *v)
{
    rlxvk_tensor t = RLXVK_NONE;
    rlxvk_status status = import_tensor(c->import, v, &t);
    if (status != RLXVK_OK)
        call_fail(c, NULL, status);
    return t;
}

static onnx_value *value_of(call *c, const host_array *h)
{
    onnx_value *v = import_make_value(c->import);
    if (v && h) {
        v->type = h->type;
        v->host = h;
    }
    return v;
}

/* ---- If ---- */

/* Both branches are computed, and each result is chosen. */
static void choose(call *c, const onnx_graph *then_branch, const onnx_graph *else_branch)
{
    onnx_value **yes = run_graph(c, then_branch, NULL), **no;
    no = yes ? run_graph(c, else_branch, NULL) : NULL;
    for (size_t i = 0; no && i < c->output_count; i++) {
        rlxvk_tensor a = tensor_of(c, yes[i]), b = tensor_of(c, no[i]);
        if (c->failed)
            return;
        if (yes[i]->type != no[i]->type ||
            !rlxvk_shape_equal(call_tensor_shape(c, a), call_tensor_shape(c, b))) {
            call_refuse(c, NULL,
                        "the condition is computed in a run, and its branches give result "
                        "%zu in two types or shapes",
                        i);
            return;
        }
        call_give_as(c, i, rlxvk_where(c->graph, call_tensor(c, 0), a, b), yes[i]->type);
    }
}

void onnx_if(call *c)
{
    const onnx_graph *then_branch = graph_of(c, "then_branch");
    const onnx_graph *else_branch = graph_of(c, "else_branch"), *taken;
    onnx_value **outputs;
    if (!then_branch || !else_branch)
        return;
    if (then_branch->output_count != c->output_count ||
        else_branch->output_count != c->output_count) {
        call_refuse(c, NULL, "its branches have another number of results than the node");
        return;
    }
    if (!call_is_known(c, 0)) {
        choose(c, then_branch, else_branch);
        return;
    }
    taken = call_host_integer(c, 0, "the branch", 0) ? then_branch : else_branch;
    outputs = c->failed ? NULL : run_graph(c, taken, NULL);
    for (size_t i = 0; outputs && i < c->output_count; i++)
        call_give_value(c, i, outputs[i]);
}

/* ---- Loops ---- */

/* Values of all rounds, which become one tensor with a new axis. */
typedef struct collected {
    onnx_value **values; /* [rounds][count] */
    size_t count, rounds, capacity;
} collected;

static bool collect(call *c, collected *k, onnx_value *const *values)
{
    if (k->rounds == k->capacity) {
        size_t capacity = MAX(2 * k->capacity, 16);
        onnx_value **larger = make_values(c, capacity * k->count);
        if (!larger)
            return false;
        if (k->rounds)
            memcpy(larger, k->values, k->rounds * k->count * sizeof *larger);
        k->values = larger;
        k->capacity = capacity;
    }
    if (k->count)
        memcpy(k->values + k->rounds * k->count, values, k->count * sizeof *values);
    k->rounds++;
    return true;
}

static rlxvk_shape with_axis(rlxvk_shape s, uint32_t axis)
{
    memmove(s.dims + axis + 1, s.dims + axis, (s.rank - axis) * sizeof *s.dims);
    s.dims[axis] = 1;
    s.rank++;
    return s;
}

/* Joins value `i` of all rounds along a new axis; `backwards`: the last round comes first. */
static void give_collected(call *c, size_t result, const collected *k, size_t i, int64_t axis,
                           bool backwards)
{
    rlxvk_tensor *parts = arena_allocate(c->a, MAX(k->rounds, 1) * sizeof *parts);
    int32_t type = k->rounds ? k->values[i]->type : ONNX_FLOAT;
    if (!parts || k->rounds == 0) {
        call_refuse(c, NULL, "a loop of no rounds gives result %zu, whose shape is not known",
                    result);
        return;
    }
    for (size_t r = 0; r < k->rounds && !c->failed; r++) {
        rlxvk_tensor t = tensor_of(c, k->values[r * k->count + i]);
        rlxvk_shape s = call_tensor_shape(c, t);
        int32_t at = call_axis(c, "scan_output_axes", axis, s.rank + 1);
        if (s.rank == RLXVK_MAX_RANK) {
            call_refuse(c, NULL, "its result has more than %d axes", RLXVK_MAX_RANK);
            return;
        }
        parts[backwards ? k->rounds - 1 - r : r] =
            rlxvk_reshape(c->graph, t, with_axis(s, (uint32_t)at));
        axis = at;
    }
    if (!c->failed)
        call_give_as(c, result, rlxvk_concat(c->graph, parts, k->rounds, (int32_t)axis), type);
}

/* The condition of a loop, which must be known. */
static bool goes_on(call *c, onnx_value *condition, bool *out)
{
    const host_array *h = NULL;
    rlxvk_status status;
    if (condition->host || condition->initializer) {
        status = import_host(c->import, condition, &h);
        if (status != RLXVK_OK)
            call_fail(c, NULL, status);
    } else
        call_refuse(c, "body",
                    "its condition is computed from the data of a run; a loop has a "
                    "number of rounds that is known before");
    *out = h && h->numel == 1 && h->integers && h->integers[0];
    return !c->failed;
}

/* Rounds are unrolled: inputs are the number of the round, the condition, and the carried values.
 */
static void run_rounds(call *c, const onnx_graph *body, int64_t most, onnx_value **values,
                       size_t carried, collected *k)
{
    bool on = true;
    if (values[1] && !goes_on(c, values[1], &on))
        return;
    for (int64_t round = 0; on && round < most && !c->failed; round++) {
        host_array *number = host_row(c, &round, 1);
        onnx_value **outputs;
        values[0] = value_of(c, host_reshape(c, number, RLXVK_SCALAR));
        if (!values[1]) {
            host_array *yes = call_make_host(c, ONNX_BOOL, RLXVK_SCALAR);
            if (yes)
                yes->integers[0] = 1;
            values[1] = value_of(c, yes);
        }
        outputs = run_graph(c, body, values);
        if (!outputs || !collect(c, k, outputs + 1 + carried))
            return;
        for (size_t i = 0; i < carried; i++)
            values[2 + i] = outputs[1 + i];
        values[1] = outputs[0];
        if (round + 1 < most && !goes_on(c, values[1], &on))
            return;
    }
}

void onnx_loop(call *c)
{
    const onnx_graph *body = graph_of(c, "body");
    size_t carried = c->input_count > 2 ? c->input_count - 2 : 0;
    int64_t most = call_host_integer(c, 0, "the number of rounds", INT64_MAX);
    collected k = {0};
    onnx_value **values = make_values(c, carried + 2);
    if (!body || !values || c->failed)
        return;
    if (body->input_count != carried + 2 || body->output_count < carried + 1 ||
        c->output_count > body->output_count - 1) {
        call_refuse(c, "body", "it does not have the inputs and outputs that the node needs");
        return;
    }
    k.count = body->output_count - 1 - carried;
    values[1] = call_has(c, 1) ? c->inputs[1] : NULL;
    for (size_t i = 0; i < carried; i++)
        values[2 + i] = c->inputs[2 + i];
    run_rounds(c, body, most, values, carried, &k);
    for (size_t i = 0; i < carried && !c->failed; i++)
        call_give_value(c, i, values[2 + i]);
    for (size_t i = 0; i < k.count && !c->failed; i++)
        if (call_wants(c, carried + i))
            give_collected(c, carried + i, &k, i, 0, false);
}

/* ---- Scan ---- */

typedef struct scan {
    const onnx_graph *body;
    size_t states, sequences, outputs;
    int64_t rounds;
    const int64_t *input_axes, *output_axes, *input_backwards, *output_backwards;
} scan;

/* Lists of attributes have one number for each sequence, or are left out. */
static const int64_t *read_list(call *c, const char *name, size_t count)
{
    size_t given;
    const int64_t *items = call_integers(c, name, &given);
    if (items && given != count)
        call_refuse(c, name, "it has %zu numbers instead of %zu", given, count);
    return items;
}

static bool begin_scan(call *c, scan *s)
{
    int64_t sequences = call_integer(c, "num_scan_inputs", 0);
    *s = (scan){.body = graph_of(c, "body")};
    if (!s->body || sequences < 1 || (size_t)sequences > c->input_count) {
        call_refuse(c, "num_scan_inputs", "it does not fit the operands");
        return false;
    }
    s->sequences = (size_t)sequences;
    s->states = c->input_count - s->sequences;
    if (s->body->input_count != c->input_count || s->body->output_count < s->states ||
        c->output_count > s->body->output_count) {
        call_refuse(c, "body", "it does not have the inputs and outputs that the node needs");
        return false;
    }
    s->outputs = s->body->output_count - s->states;
    s->input_axes = read_list(c, "scan_input_axes", s->sequences);
    s->output_axes = read_list(c, "scan_output_axes", s->outputs);
    s->input_backwards = read_list(c, "scan_input_directions", s->sequences);
    s->output_backwards = read_list(c, "scan_output_directions", s->outputs);
    return !c->failed;
}

/* Element `round` of sequence i, without its axis. */
static onnx_value *take_element(call *c, const scan *s, size_t i, int64_t round)
{
    rlxvk_tensor x = call_tensor(c, s->states + i);
    rlxvk_shape shape = call_tensor_shape(c, x);
    int32_t axis =
        call_axis(c, "scan_input_axes", s->input_axes ? s->input_axes[i] : 0, shape.rank);
    bool backwards = s->input_backwards && s->input_backwards[i];
    onnx_value *v = import_make_value(c->import);
    if (c->failed || !v)
        return NULL;
    x = rlxvk_narrow(c->graph, x, axis, backwards ? s->rounds - 1 - round : round, 1);
    for (uint32_t k = (uint32_t)axis; k + 1 < shape.rank; k++)
        shape.dims[k] = shape.dims[k + 1];
    shape.rank--;
    v->type = call_type(c, s->states + i);
    v->tensor = rlxvk_reshape(c->graph, x, shape);
    v->has_tensor = true;
    return v;
}

static void run_scan(call *c, const scan *s, onnx_value **values, collected *k)
{
    for (int64_t round = 0; round < s->rounds && !c->failed; round++) {
        onnx_value **outputs;
        for (size_t i = 0; i < s->sequences; i++) {
            values[s->states + i] = take_element(c, s, i, round);
            if (!values[s->states + i])
                return;
        }
        outputs = run_graph(c, s->body, values);
        if (!outputs || !collect(c, k, outputs + s->states))
            return;
        memcpy(values, outputs, s->states * sizeof *values);
    }
}

void onnx_scan(call *c)
{
    scan s;
    collected k = {0};
    onnx_value **values = make_values(c, c->input_count);
    rlxvk_shape shape;
    int32_t axis;
    if (!values || !begin_scan(c, &s))
        return;
    shape = call_shape(c, s.states);
    axis = call_axis(c, "scan_input_axes", s.input_axes ? s.input_axes[0] : 0, shape.rank);
    if (c->failed || !call_is_fixed(c, shape))
        return;
    s.rounds = shape.dims[axis];
    k.count = s.outputs;
    memcpy(values, c->inputs, s.states * sizeof *values);
    run_scan(c, &s, values, &k);
    for (size_t i = 0; i < s.states && !c->failed; i++)
        call_give_value(c, i, values[i]);
    for (size_t i = 0; i < s.outputs && !c->failed; i++)
        if (call_wants(c, s.states + i))
            give_collected(c, s.states + i, &k, i, s.output_axes ? s.output_axes[i] : 0,
                           s.output_backwards && s.output_backwards[i]);
}
