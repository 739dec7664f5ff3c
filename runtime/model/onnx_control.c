/* Lowerings of control flow: graphs inside nodes are inlined. */
#include "model/host.h"
#include "model/onnx_inner.h"
#include "model/onnx_counted.h"
#include "model/onnx_loop.h"
#include "model/onnx_ops.h"
#include "model/onnx_scan.h"

#include <string.h>

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

/* Both branches are computed, and each result is chosen. If that is not possible, perhaps one of
 * them is, so asks for what decides. */
static void choose(call *c, const onnx_graph *then_branch, const onnx_graph *else_branch)
{
    static const char what[] = "which branch is taken, and they cannot both be";
    onnx_value **yes = onnx_inner_run(c, then_branch, NULL, NULL), **no;
    no = yes ? onnx_inner_run(c, else_branch, NULL, NULL) : NULL;
    if (!no && c->import->status == RLXVK_OK) {
        c->failed = false; /* beside the problem of the branch, it has its own */
        (void)call_need_inputs(c, c->inputs[0], what);
        c->failed = true;
    }
    for (size_t i = 0; no && i < c->output_count; i++) {
        rlxvk_tensor a = call_tensor_of(c, yes[i]), b = call_tensor_of(c, no[i]);
        if (c->failed)
            return;
        if (yes[i]->type != no[i]->type ||
            !rlxvk_shape_equal(call_tensor_shape(c, a), call_tensor_shape(c, b))) {
            if (!call_need_inputs(c, c->inputs[0], what))
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
    const onnx_graph *then_branch = onnx_inner_graph(c, "then_branch");
    const onnx_graph *else_branch = onnx_inner_graph(c, "else_branch"), *taken;
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
    outputs = c->failed ? NULL : onnx_inner_run(c, taken, NULL, NULL);
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
        onnx_value **larger = onnx_inner_values(c, capacity * k->count);
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

/* Value `i` of all rounds, joined along a new axis; `backwards`: the last round comes first. */
static rlxvk_tensor join(call *c, const collected *k, size_t i, int64_t axis, bool backwards)
{
    rlxvk_tensor *parts = arena_allocate(c->a, MAX(k->rounds, 1) * sizeof *parts);
    if (!parts || k->rounds == 0) {
        call_refuse(c, NULL, "a loop of no rounds gives value %zu, whose shape is not known", i);
        return RLXVK_NONE;
    }
    for (size_t r = 0; r < k->rounds && !c->failed; r++) {
        rlxvk_tensor t = call_tensor_of(c, k->values[r * k->count + i]);
        rlxvk_shape s = call_tensor_shape(c, t);
        int32_t at = call_axis(c, "scan_output_axes", axis, s.rank + 1);
        if (s.rank == RLXVK_MAX_RANK) {
            call_refuse(c, NULL, "its result has more than %d axes", RLXVK_MAX_RANK);
            return RLXVK_NONE;
        }
        parts[backwards ? k->rounds - 1 - r : r] =
            rlxvk_reshape(c->graph, t, with_axis(s, (uint32_t)at));
        axis = at;
    }
    return c->failed ? RLXVK_NONE : rlxvk_concat(c->graph, parts, k->rounds, (int32_t)axis);
}

static void give_collected(call *c, size_t result, const collected *k, size_t i, int64_t axis,
                           bool backwards)
{
    rlxvk_tensor t = join(c, k, i, axis, backwards);
    if (!c->failed)
        call_give_as(c, result, t, k->values[i]->type);
}

static bool is_known(const onnx_value *v)
{
    return v->host || v->initializer;
}

/* Refuses a node that leaves out an operand from number `first` on. */
static bool has_all(call *c, size_t first)
{
    for (size_t i = first; i < c->input_count && !c->failed; i++)
        if (!c->inputs[i])
            call_refuse(c, NULL, "operand %zu is missing", i);
    return !c->failed;
}

/* A condition that is known. */
static bool goes_on(call *c, onnx_value *condition)
{
    const host_array *h = NULL;
    rlxvk_status status = import_host(c->import, condition, &h);
    if (status != RLXVK_OK)
        call_fail(c, NULL, status);
    return h && h->numel == 1 && h->integers && h->integers[0];
}

/* Unrolls rounds until the loop ends, or until data decides whether it goes on. Inputs are the
 * number of the round, the condition, and the carried values. False: data decides. */
static bool run_rounds(call *c, const onnx_graph *body, int64_t most, onnx_value **values,
                       size_t carried, collected *k)
{
    for (int64_t round = 0; round < most && !c->failed; round++) {
        host_array *number;
        onnx_value **outputs;
        if (values[1] && !is_known(values[1]))
            return false;
        if (values[1] && !goes_on(c, values[1]))
            return true;
        number = host_row(c, &round, 1);
        values[0] = value_of(c, host_reshape(c, number, RLXVK_SCALAR));
        if (!values[1]) {
            host_array *yes = call_make_host(c, ONNX_BOOL, RLXVK_SCALAR);
            if (yes)
                yes->integers[0] = 1;
            values[1] = value_of(c, yes);
        }
        outputs = onnx_inner_run(c, body, NULL, values);
        if (!outputs || !collect(c, k, outputs + 1 + carried))
            return true;
        for (size_t i = 0; i < carried; i++)
            values[2 + i] = outputs[1 + i];
        values[1] = outputs[0];
    }
    return true;
}

/* The rest of the rounds, and the results. */
static void run_rest(call *c, onnx_loop_rest *l)
{
    if (!onnx_run_loop(c, l))
        return;
    for (size_t i = 0; i < l->carried; i++)
        call_give_as(c, i, l->results[i], l->types[i]);
    for (size_t i = l->carried; i < l->carried + l->collected; i++)
        if (call_wants(c, i))
            onnx_give_counted(c, i, l->results[i], l->count, 0, l->types[i]);
}

static void give_rounds(call *c, onnx_value *const *values, size_t carried, const collected *k)
{
    for (size_t i = 0; i < carried && !c->failed; i++)
        call_give_value(c, i, values[2 + i]);
    for (size_t i = 0; i < k->count && !c->failed; i++)
        if (call_wants(c, carried + i))
            give_collected(c, carried + i, k, i, 0, false);
}

/* A loop whose condition, if it has one, is true at first and stays so: it has `most` rounds.
 * False: it is to be unrolled. */
static bool run_long(call *c, const onnx_graph *body, int64_t most, onnx_value **values,
                     size_t carried, size_t count)
{
    onnx_rounds r = {.body = body,
                     .count = most,
                     .numbered = true,
                     .carried = carried,
                     .collected = count,
                     .start = values + 2};
    if (!onnx_is_long(body, most) ||
        (values[1] && (!is_known(values[1]) || !goes_on(c, values[1]))))
        return false;
    if (!onnx_try_scan(c, &r))
        return false;
    for (size_t i = 0; i < carried + count; i++)
        if (call_wants(c, i))
            call_give_as(c, i, r.results[i], r.types[i]);
    return true;
}

void onnx_loop(call *c)
{
    const onnx_graph *body = onnx_inner_graph(c, "body");
    size_t carried = c->input_count > 2 ? c->input_count - 2 : 0;
    bool limited = !call_has(c, 0) || call_is_known(c, 0);
    int64_t most = limited ? call_host_integer(c, 0, "the number of rounds", INT64_MAX) : INT64_MAX;
    collected k = {0};
    onnx_value **values = onnx_inner_values(c, carried + 2);
    onnx_loop_rest rest;
    if (!body || !values || c->failed)
        return;
    if (body->input_count != carried + 2 || body->output_count < carried + 1 ||
        c->output_count > body->output_count - 1) {
        call_refuse(c, "body", "it does not have the inputs and outputs that the node needs");
        return;
    }
    if (!has_all(c, 2))
        return;
    k.count = body->output_count - 1 - carried;
    values[1] = call_has(c, 1) ? c->inputs[1] : NULL;
    for (size_t i = 0; i < carried; i++)
        values[2 + i] = c->inputs[2 + i];
    if (run_long(c, body, most, values, carried, k.count) || c->failed)
        return;
    if (limited && run_rounds(c, body, most, values, carried, &k)) {
        give_rounds(c, values, carried, &k);
        return;
    }
    rest = (onnx_loop_rest){.body = body,
                            .carried = carried,
                            .collected = k.count,
                            .values = values,
                            .rounds = limited ? NULL : c->inputs[0],
                            .done = (int64_t)k.rounds,
                            .most = most,
                            .earlier = k.values};
    if (!c->failed)
        run_rest(c, &rest);
}

/* ---- Scan ---- */

typedef struct scan {
    const onnx_graph *body;
    size_t states, sequences, outputs;
    int64_t rounds;
    onnx_value **operands; /* states, then sequences */
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

/* `first`: the operand with which states begin. */
static bool begin_scan(call *c, size_t first, scan *s)
{
    int64_t sequences = call_integer(c, "num_scan_inputs", 0);
    size_t operands = c->input_count - first;
    *s = (scan){.body = onnx_inner_graph(c, "body"), .operands = c->inputs + first};
    if (!s->body || sequences < 1 || c->input_count < first || (size_t)sequences > operands) {
        call_refuse(c, "num_scan_inputs", "it does not fit the operands");
        return false;
    }
    s->sequences = (size_t)sequences;
    s->states = operands - s->sequences;
    if (s->body->input_count != operands || s->body->output_count < s->states ||
        c->output_count > s->body->output_count) {
        call_refuse(c, "body", "it does not have the inputs and outputs that the node needs");
        return false;
    }
    s->outputs = s->body->output_count - s->states;
    return has_all(c, first);
}

/* Index `at` of an axis, without the axis. */
static onnx_value *take(call *c, onnx_value *from, int64_t axis, int64_t at)
{
    rlxvk_tensor x = call_tensor_of(c, from);
    rlxvk_shape shape = call_tensor_shape(c, x);
    int32_t i = call_axis(c, "scan_input_axes", axis, shape.rank);
    onnx_value *v = import_make_value(c->import);
    if (c->failed || !v)
        return NULL;
    x = rlxvk_narrow(c->graph, x, i, at, 1);
    for (uint32_t k = (uint32_t)i; k + 1 < shape.rank; k++)
        shape.dims[k] = shape.dims[k + 1];
    shape.rank--;
    v->type = from->type;
    v->tensor = rlxvk_reshape(c->graph, x, shape);
    v->has_tensor = true;
    return v;
}

/* The length of a value along an axis, which must be a number. */
static int64_t length_of(call *c, onnx_value *v, int64_t axis)
{
    rlxvk_shape s = call_tensor_shape(c, call_tensor_of(c, v));
    int32_t i = call_axis(c, "scan_input_axes", axis, s.rank);
    return c->failed || !call_is_fixed(c, s) ? 0 : s.dims[i];
}

/* Index t of the result is what round t takes: [rounds, ..]. */
static rlxvk_tensor in_order(call *c, rlxvk_tensor x, int64_t axis, bool backwards)
{
    rlxvk_shape shape = call_tensor_shape(c, x);
    int32_t i = call_axis(c, "scan_input_axes", axis, shape.rank), order[RLXVK_MAX_RANK] = {i};
    if (c->failed)
        return x;
    for (int32_t k = 0, n = 1; k < (int32_t)shape.rank; k++)
        if (k != i)
            order[n++] = k;
    if (i)
        x = rlxvk_transpose(c->graph, x, order, shape.rank);
    return backwards ? rlxvk_reverse(c->graph, x, (int32_t[]){0}, 1) : x;
}

/* The inverse, for a result. */
static rlxvk_tensor along(call *c, rlxvk_tensor x, int64_t axis, bool backwards)
{
    rlxvk_shape shape = call_tensor_shape(c, x);
    int32_t i = call_axis(c, "scan_output_axes", axis, shape.rank), order[RLXVK_MAX_RANK];
    if (c->failed)
        return x;
    if (backwards)
        x = rlxvk_reverse(c->graph, x, (int32_t[]){0}, 1);
    for (int32_t k = 0, n = 1; k < (int32_t)shape.rank; k++)
        order[k] = k == i ? 0 : n++;
    return i ? rlxvk_transpose(c->graph, x, order, shape.rank) : x;
}

/* False: the scan is to be unrolled. */
static bool scan_long(call *c, const scan *s)
{
    onnx_rounds r = {.body = s->body,
                     .count = s->rounds,
                     .carried = s->states,
                     .sliced = s->sequences,
                     .collected = s->outputs,
                     .start = s->operands};
    if (!onnx_is_long(s->body, s->rounds))
        return false;
    r.sequences = arena_allocate(c->a, s->sequences * sizeof *r.sequences);
    r.sequence_types = arena_allocate(c->a, s->sequences * sizeof *r.sequence_types);
    if (!r.sequences || !r.sequence_types)
        return false;
    for (size_t i = 0; i < s->sequences; i++) {
        onnx_value *v = s->operands[s->states + i];
        if (length_of(c, v, s->input_axes ? s->input_axes[i] : 0) != s->rounds)
            return false;
        r.sequence_types[i] = v->type;
        r.sequences[i] = in_order(c, call_tensor_of(c, v), s->input_axes ? s->input_axes[i] : 0,
                                  s->input_backwards && s->input_backwards[i]);
    }
    if (c->failed || !onnx_try_scan(c, &r))
        return false;
    for (size_t i = 0; i < s->states; i++)
        if (call_wants(c, i))
            call_give_as(c, i, r.results[i], r.types[i]);
    for (size_t i = 0; i < s->outputs && !c->failed; i++)
        if (call_wants(c, s->states + i))
            call_give_as(c, s->states + i,
                         along(c, r.results[s->states + i], s->output_axes ? s->output_axes[i] : 0,
                               s->output_backwards && s->output_backwards[i]),
                         r.types[s->states + i]);
    return true;
}

/* `values` are the states at first, and at the end. */
static void run_scan(call *c, const scan *s, onnx_value **values, collected *k)
{
    for (int64_t round = 0; round < s->rounds && !c->failed; round++) {
        onnx_value **outputs;
        for (size_t i = 0; i < s->sequences; i++) {
            bool backwards = s->input_backwards && s->input_backwards[i];
            onnx_value *v =
                take(c, s->operands[s->states + i], s->input_axes ? s->input_axes[i] : 0,
                     backwards ? s->rounds - 1 - round : round);
            if (!v)
                return;
            values[s->states + i] = v;
        }
        outputs = onnx_inner_run(c, s->body, NULL, values);
        if (!outputs || !collect(c, k, outputs + s->states))
            return;
        memcpy(values, outputs, s->states * sizeof *values);
    }
}

void onnx_scan(call *c)
{
    scan s;
    collected k = {0};
    onnx_value **values = onnx_inner_values(c, c->input_count);
    if (!values || !begin_scan(c, 0, &s))
        return;
    s.input_axes = read_list(c, "scan_input_axes", s.sequences);
    s.output_axes = read_list(c, "scan_output_axes", s.outputs);
    s.input_backwards = read_list(c, "scan_input_directions", s.sequences);
    s.output_backwards = read_list(c, "scan_output_directions", s.outputs);
    if (!c->failed)
        s.rounds = length_of(c, s.operands[s.states], s.input_axes ? s.input_axes[0] : 0);
    if (c->failed || scan_long(c, &s) || c->failed)
        return;
    k.count = s.outputs;
    memcpy(values, s.operands, s.states * sizeof *values);
    run_scan(c, &s, values, &k);
    for (size_t i = 0; i < s.states && !c->failed; i++)
        call_give_value(c, i, values[i]);
    for (size_t i = 0; i < s.outputs && !c->failed; i++)
        if (call_wants(c, s.states + i))
            give_collected(c, s.states + i, &k, i, s.output_axes ? s.output_axes[i] : 0,
                           s.output_backwards && s.output_backwards[i]);
}

/* ---- Scan of opset 8 ---- */

/* The scan of one index of the batch; `whole` has operands with a batch axis in front. Replaces
 * `values` by the results: states, then outputs. */
static void run_scan_of(call *c, const scan *whole, int64_t batch, onnx_value **values)
{
    scan s = *whole;
    collected k = {.count = s.outputs};
    s.operands = onnx_inner_values(c, s.states + s.sequences);
    for (size_t i = 0; s.operands && i < s.states + s.sequences; i++) {
        s.operands[i] = take(c, whole->operands[i], 0, batch);
        if (!s.operands[i])
            return;
    }
    if (!s.operands)
        return;
    memcpy(values, s.operands, s.states * sizeof *values);
    run_scan(c, &s, values, &k);
    for (size_t i = 0; i < s.outputs && !c->failed; i++) {
        rlxvk_tensor t = join(c, &k, i, 0, false);
        onnx_value *v = import_make_value(c->import);
        if (c->failed || !v)
            return;
        v->type = k.values[i]->type;
        v->tensor = t;
        v->has_tensor = true;
        values[s.states + i] = v;
    }
}

/* Operand 0 may have the lengths of the sequences; then come states and sequences, all of them with
 * a batch axis in front. */
void onnx_scan_8(call *c)
{
    scan s;
    collected k = {0};
    int64_t batches;
    if (!begin_scan(c, 1, &s))
        return;
    if (call_has(c, 0))
        call_refuse(c, NULL, "lengths of the sequences (operand 0) are not supported");
    s.input_backwards = read_list(c, "directions", s.sequences);
    batches = c->failed ? 0 : length_of(c, s.operands[s.states], 0);
    s.rounds = c->failed ? 0 : length_of(c, s.operands[s.states], 1);
    k.count = s.states + s.outputs;
    for (int64_t b = 0; b < batches && !c->failed; b++) {
        onnx_value **values = onnx_inner_values(c, s.states + MAX(s.sequences, s.outputs));
        if (!values)
            return;
        run_scan_of(c, &s, b, values);
        if (c->failed || !collect(c, &k, values))
            return;
    }
    for (size_t i = 0; i < k.count && !c->failed; i++)
        if (call_wants(c, i))
            give_collected(c, i, &k, i, 0, false);
}
