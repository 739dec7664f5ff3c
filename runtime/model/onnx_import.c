/* See onnx_import.h. */
#include "model/onnx_counted.h"
#include "model/onnx_import.h"
#include "model/onnx_ops.h"

#include <rlxvk_inspect.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NODES = 1000000, MOST_DEPTH = 64 };

/* False: there are too many. A round of a loop counts, too. */
static bool count_node(onnx_import *import)
{
    if (++import->node_count <= MOST_NODES)
        return true;
    import_end(import, status_fail(RLXVK_E_TOO_LARGE,
                                   "the model has over %d nodes, those of its functions, inner "
                                   "graphs and rounds of loops included",
                                   MOST_NODES));
    return false;
}

/* ---- Names ---- */

static void define_in(onnx_import *import, import_scope *s, const char *name, onnx_value *v)
{
    rlxvk_status status = RLXVK_OK;
    if (*name == 0)
        return;
    if (!VECTOR_PUSH(&s->values, v))
        status = status_fail_memory("names of a model");
    if (status == RLXVK_OK)
        status = name_put(&s->names, name, (uint32_t)s->values.count - 1);
    if (status != RLXVK_OK)
        import_end(import, status);
}

static void define(onnx_import *import, const char *name, onnx_value *v)
{
    define_in(import, import->scope, name, v);
}

/* The tensor of an outer value becomes an input of the loop's body. */
static void capture_tensor(onnx_import *import, import_loop *loop, onnx_value *outer, onnx_value *v)
{
    rlxvk_graph *present = import->graph;
    rlxvk_tensor t;
    rlxvk_status status;
    import->graph = loop->outer;
    import->loops--;
    status = import_tensor(import, outer, &t);
    import->graph = present;
    import->loops++;
    if (status != RLXVK_OK) {
        import_end(import, status);
        return;
    }
    v->tensor = import_loop_input(import, loop, t);
    v->has_tensor = true;
}

/* A value of a graph around a loop's body, as the body sees it. */
static onnx_value *capture(onnx_import *import, import_scope *s, const char *name,
                           onnx_value *outer)
{
    onnx_value *v = outer->failed || outer->sequence ? NULL : import_make_value(import);
    if (!v)
        return outer;
    *v = *outer;
    v->count = RLXVK_NONE;
    v->has_tensor = false;
    if (outer->count.graph) {
        v->failed = true;
        import_add_problem(import, RLXVK_E_UNSUPPORTED, name, "Loop", "body",
                           "the body reads a value whose size is computed from the data of a run");
    } else if (outer->has_tensor || import_is_param(outer))
        capture_tensor(import, s->loop, outer, v);
    define_in(import, s, name, v);
    return v;
}

static onnx_value *look_up_from(onnx_import *import, import_scope *s, const char *name)
{
    for (; s && *name; s = s->outer) {
        uint32_t i = name_find(&s->names, name);
        if (i != NAME_NONE)
            return s->values.items[i];
        if (s->loop) {
            onnx_value *outer = look_up_from(import, s->outer, name);
            return outer ? capture(import, s, name, outer) : NULL;
        }
    }
    return NULL;
}

/* NULL: a function's input that its caller leaves out, or no such name. */
static onnx_value *look_up(onnx_import *import, const char *name)
{
    return look_up_from(import, import->scope, name);
}

static void begin_scope(onnx_import *import, import_scope *scope, import_scope *outer)
{
    *scope = (import_scope){.outer = outer};
    import->scope = scope;
}

static void end_scope(onnx_import *import, import_scope *scope, import_scope *before)
{
    name_destroy(&scope->names);
    VECTOR_FREE(&scope->values);
    import->scope = before;
}

static void define_initializers(onnx_import *import, const onnx_graph *g)
{
    for (size_t i = 0; i < g->initializer_count; i++) {
        const onnx_tensor *t = &g->initializers[i];
        onnx_value *v = import_make_value(import);
        if (!v)
            return;
        v->type = t->type;
        v->initializer = t;
        define(import, t->name, v);
    }
    if (g->sparse_count)
        import_add_problem(import, RLXVK_E_UNSUPPORTED, "", "", NULL,
                           "the graph has sparse initializers; store the weights as dense ones");
}

/* ---- Nodes ---- */

static int64_t opset_of(const onnx_import *import, const char *domain)
{
    const onnx_function *f = import->function;
    const onnx_opset *opsets = f ? f->opsets : import->model->opsets;
    size_t count = f ? f->opset_count : import->model->opset_count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(opsets[i].domain, domain) == 0)
            return opsets[i].version;
    return f && f->opset_count == 0 ? 0 : 1;
}

/* The key of a function in import->functions. */
static const char *function_key(onnx_import *import, const char *domain, const char *name)
{
    size_t length = strlen(domain) + strlen(name) + 2;
    char *key = arena_allocate(&import->a, length);
    if (key)
        snprintf(key, length, "%s:%s", domain, name);
    else
        import_end(import, status_fail_memory("functions of a model"));
    return key;
}

static void define_functions(onnx_import *import)
{
    const onnx_model *m = import->model;
    for (size_t i = m->function_count; i-- > 0 && import->status == RLXVK_OK;) {
        const char *key = function_key(import, m->functions[i].domain, m->functions[i].name);
        rlxvk_status status = key ? name_put(&import->functions, key, (uint32_t)i) : RLXVK_OK;
        if (status != RLXVK_OK)
            import_end(import, status);
    }
}

static const onnx_function *find_function(onnx_import *import, const onnx_node *n)
{
    const char *key = import->functions.count ? function_key(import, n->domain, n->op) : NULL;
    uint32_t i = key ? name_find(&import->functions, key) : NAME_NONE;
    return i == NAME_NONE ? NULL : &import->model->functions[i];
}

static void walk_nodes(onnx_import *import, const onnx_graph *g);

static bool go_deeper(onnx_import *import, call *c)
{
    if (++import->depth <= MOST_DEPTH)
        return true;
    import->depth--;
    call_refuse(c, NULL,
                "functions and graphs are nested more than %d deep, or a function calls "
                "itself",
                MOST_DEPTH);
    return false;
}

/* The caller's attributes, with those of an outer function in place of references to them. */
static void resolve_attributes(call *c, onnx_node *n)
{
    onnx_attribute *own = arena_allocate(c->a, MAX(n->attribute_count, 1) * sizeof *own);
    size_t count = 0;
    for (size_t i = 0; own && i < n->attribute_count; i++) {
        const onnx_attribute *a = call_attribute(c, n->attributes[i].name, ONNX_UNDEFINED);
        if (a) {
            own[count] = *a;
            own[count++].name = n->attributes[i].name;
        }
    }
    if (!own)
        import_end(c->import, status_fail_memory("function of a model"));
    n->attributes = own;
    n->attribute_count = count;
}

static void inline_function(call *c, const onnx_function *f)
{
    onnx_import *import = c->import;
    const onnx_function *function = import->function;
    call *caller = import->caller;
    import_scope *before = import->scope, inner;
    onnx_node *resolved = arena_copy(c->a, c->node, sizeof *resolved);
    if (!resolved)
        import_end(import, status_fail_memory("function of a model"));
    if (!resolved || !go_deeper(import, c))
        return;
    resolve_attributes(c, resolved);
    c->node = resolved;
    begin_scope(import, &inner, NULL);
    for (size_t i = 0; i < f->input_count; i++)
        define(import, f->inputs[i], i < c->input_count ? c->inputs[i] : NULL);
    import->function = f;
    import->caller = c;
    walk_nodes(import, &f->body);
    for (size_t i = 0; i < f->output_count && i < c->output_count; i++) {
        const onnx_value *v = look_up(import, f->outputs[i]);
        c->failed = c->failed || !v || v->failed;
        call_give_value(c, i, v);
    }
    import->function = function;
    import->caller = caller;
    end_scope(import, &inner, before);
    import->depth--;
}

/* See inline_graph in import.h. */
static void inline_graph(onnx_import *import, call *c, const onnx_graph *g, import_loop *loop,
                         onnx_value *const *inputs, onnx_value **outputs)
{
    import_scope *before = import->scope, inner;
    rlxvk_graph *graph = import->graph;
    if (!count_node(import) || !go_deeper(import, c))
        return;
    begin_scope(import, &inner, before);
    inner.loop = loop;
    if (loop) {
        import->graph = loop->inner;
        import->loops++;
    }
    define_initializers(import, g);
    for (size_t i = 0; i < g->input_count; i++)
        define(import, g->inputs[i].name, inputs[i]);
    walk_nodes(import, g);
    for (size_t i = 0; i < g->output_count; i++) {
        outputs[i] = look_up(import, g->outputs[i].name);
        c->failed = c->failed || !outputs[i] || outputs[i]->failed;
    }
    import->graph = graph;
    import->loops -= loop != NULL;
    end_scope(import, &inner, before);
    import->depth--;
}

/* Refuses attributes that the lowering did not ask for, and results that it did not give. */
static void check_complete(call *c)
{
    for (size_t i = 0; i < c->node->attribute_count && !c->failed; i++)
        if (i >= CALL_ATTRIBUTES || !(c->used >> i & 1))
            call_refuse(c, c->node->attributes[i].name,
                        "the attribute is not supported in opset %lld", (long long)c->opset);
    for (size_t i = 0; i < c->output_count && !c->failed; i++)
        if (c->outputs[i] && c->outputs[i]->type == ONNX_UNDEFINED)
            call_refuse(c, NULL, "its result %zu is not supported", i);
}

static void check_operands(call *c, const onnx_op *op)
{
    for (size_t i = 0; i < op->operands && !c->failed; i++)
        if (!call_has(c, i))
            call_refuse(c, NULL, "operand %zu is missing", i);
}

static void check_graph(call *c)
{
    rlxvk_status status = rlxvk_graph_status(c->graph);
    if (status == RLXVK_OK)
        return;
    c->import->stuck = true;
    if (!c->failed)
        import_add_problem(c->import, status, c->text, c->node->op, NULL,
                           rlxvk_graph_error(c->graph));
    c->failed = true;
}

/* Ops that pass values on keep their counts. */
static bool passes_on(const onnx_node *n)
{
    static const char *const names[] = {
        "Identity",    "If",      "Loop",           "Optional",         "SequenceAt",
        "SequenceMap", "Dropout", "SequenceInsert", "SequenceConstruct"};
    for (size_t i = 0; *n->domain == 0 && i < ARRAY_COUNT(names); i++)
        if (strcmp(names[i], n->op) == 0)
            return true;
    return false;
}

static void lower_op(call *c, const onnx_op *op)
{
    onnx_counts counts = {0};
    check_operands(c, op);
    if (!c->failed && !passes_on(c->node))
        onnx_counts_begin(c, &counts);
    if (!c->failed)
        op->lower(c);
    onnx_counts_end(c, &counts);
    check_complete(c);
}

static void lower(call *c, bool operands_failed)
{
    const onnx_function *f = find_function(c->import, c->node);
    const onnx_op *op = onnx_find_op(c->node->domain, c->node->op, c->opset);
    char buffer[256];
    text why = {buffer, sizeof buffer, 0};
    c->failed = operands_failed;
    if (!f && !op) {
        onnx_explain_missing(c->node->domain, c->node->op, c->opset, &why);
        c->failed = false; /* told even if operands are bad */
        call_refuse(c, NULL, "%s", buffer);
    } else if (operands_failed || c->import->stuck) {
        c->failed = true;
    } else if (f) {
        inline_function(c, f);
    } else {
        lower_op(c, op);
    }
    if (!c->import->stuck)
        check_graph(c);
}

static bool make_call(onnx_import *import, const onnx_node *n, call *c)
{
    *c = (call){.import = import, .graph = import->graph, .a = &import->a, .node = n};
    c->text = *n->name ? n->name : n->output_count ? n->outputs[0] : "";
    c->opset = opset_of(import, n->domain);
    c->inputs = arena_allocate(c->a, MAX(n->input_count, 1) * sizeof *c->inputs);
    c->outputs = arena_allocate(c->a, MAX(n->output_count, 1) * sizeof *c->outputs);
    c->input_count = n->input_count;
    c->output_count = n->output_count;
    if (!c->inputs || !c->outputs)
        import_end(import, status_fail_memory("node of a model"));
    for (size_t i = 0; i < n->output_count && import->status == RLXVK_OK; i++)
        c->outputs[i] = *n->outputs[i] ? import_make_value(import) : NULL;
    return import->status == RLXVK_OK;
}

/* Nodes of the graph that follow are made for this node. Those of a loop's body are not told. */
static uint32_t begin_span(onnx_import *import, const call *c)
{
    uint32_t first = (uint32_t)rlxvk_graph_node_count(import->graph);
    model_span span = {.first = first, .op = c->node->op, .name = c->text};
    bool same = import->spans.count && import->spans.items[import->spans.count - 1].first == first;
    if (import->loops)
        return first;
    if (same)
        import->spans.items[import->spans.count - 1] = span;
    else if (!VECTOR_PUSH(&import->spans, span))
        import_end(import, status_fail_memory("nodes of a model"));
    return first;
}

/* A tensor that the node has made gets the name that it has in the file. Leaves have names. */
static void name_result(onnx_import *import, const char *name, const onnx_value *v, uint32_t first)
{
    rlxvk_node_info info = {0};
    uint32_t node;
    if (v->has_tensor && !v->failed && !import->stuck &&
        rlxvk_tensor_node(import->graph, v->tensor, &node) == RLXVK_OK && node >= first &&
        rlxvk_graph_node(import->graph, node, &info) == RLXVK_OK && info.kind == RLXVK_NODE_OP)
        rlxvk_graph_set_name(import->graph, v->tensor, name);
}

static void walk_node(onnx_import *import, const onnx_node *n)
{
    call c;
    bool failed = false;
    uint64_t depends = 0;
    uint32_t first;
    if (!make_call(import, n, &c))
        return;
    for (size_t i = 0; i < n->input_count; i++) {
        c.inputs[i] = look_up(import, n->inputs[i]);
        failed = failed || (c.inputs[i] && c.inputs[i]->failed);
    }
    first = begin_span(import, &c);
    lower(&c, failed);
    for (size_t i = 0; i < n->input_count; i++)
        depends |= c.inputs[i] ? c.inputs[i]->depends : 0;
    for (size_t i = 0; i < n->output_count; i++) {
        if (!c.outputs[i])
            continue;
        c.outputs[i]->depends |= c.outputs[i]->host ? 0 : depends;
        c.outputs[i]->failed = c.outputs[i]->failed || c.failed;
        name_result(import, n->outputs[i], c.outputs[i], first);
        define(import, n->outputs[i], c.outputs[i]);
    }
}

static void walk_nodes(onnx_import *import, const onnx_graph *g)
{
    for (size_t i = 0; i < g->node_count && import->status == RLXVK_OK; i++)
        if (count_node(import))
            walk_node(import, &g->nodes[i]);
}

/* ---- Inputs and outputs ---- */

static void refuse_input(onnx_import *import, onnx_value *v, const char *name, const char *why)
{
    v->failed = true;
    import_add_problem(import, RLXVK_E_UNSUPPORTED, name, "input", NULL, why);
}

static void define_input(onnx_import *import, uint32_t index, const onnx_import_input *given)
{
    const onnx_value_info *info = &import->model->graph.inputs[index];
    onnx_value *v = import_make_value(import);
    rlxvk_dtype dtype;
    if (!v)
        return;
    v->type = info->type;
    v->input = index;
    if (given->value)
        v->host = given->value;
    else if (info->kind != ONNX_TENSOR)
        refuse_input(import, v, info->name, "sequences, maps and optionals are not supported");
    else if (!onnx_value_dtype(info->type, &dtype))
        refuse_input(import, v, info->name,
                     info->type == ONNX_STRING ? "strings are not supported"
                                               : "its element type is not supported; export the "
                                                 "model with floats of 16 or 32 bits");
    else if (!info->has_shape || info->rank > RLXVK_MAX_RANK)
        refuse_input(import, v, info->name,
                     info->has_shape ? "it has more than 8 axes"
                                     : "the file does not tell its rank");
    else {
        v->tensor = rlxvk_input(import->graph, info->name, dtype, given->shape);
        /* Bytes become numbers by a cast to another dtype. */
        if (dtype == RLXVK_U8 || dtype == RLXVK_I8)
            v->tensor =
                rlxvk_cast(import->graph, rlxvk_cast(import->graph, v->tensor, RLXVK_I16), dtype);
        v->has_tensor = true;
        v->depends = index < 64 ? UINT64_C(1) << index : 0;
    }
    define(import, info->name, v);
}

static void define_inputs(onnx_import *import, const onnx_import_input *inputs)
{
    const onnx_graph *g = &import->model->graph;
    for (size_t i = 0; i < g->input_count; i++)
        if (!g->inputs[i].is_weight)
            define_input(import, (uint32_t)i, &inputs[i]);
    if (rlxvk_graph_status(import->graph) != RLXVK_OK)
        import_add_problem(import, rlxvk_graph_status(import->graph), "", "input", NULL,
                           rlxvk_graph_error(import->graph));
}

static onnx_value *find_output(onnx_import *import, const char *name)
{
    onnx_value *v = look_up(import, name);
    if (!v)
        import_end(import, status_fail(RLXVK_E_UNKNOWN_NAME,
                                       "no value of the model is called '%.80s'", name));
    return v && !v->failed && !import->stuck ? v : NULL;
}

static void add_output(onnx_import *import, const char *name)
{
    onnx_value *v = find_output(import, name);
    rlxvk_tensor t;
    rlxvk_status status;
    if (!v)
        return;
    status = import_tensor(import, v, &t);
    if (status != RLXVK_OK)
        import_add_problem(import, status, name, "output", NULL, rlxvk_last_error());
    else
        rlxvk_graph_output(import->graph, t);
}

/* Counts of outputs are outputs behind all others, each of them once. */
static void add_counts(onnx_import *import, const char *const *names, size_t count)
{
    size_t added = 0;
    for (size_t i = 0; i < count && import->status == RLXVK_OK; i++) {
        const onnx_value *v = find_output(import, names[i]);
        if (!v || !v->count.graph)
            continue;
        for (size_t k = 0; k < i && import->counts[i].output == 0; k++)
            if (import->counts[k].count == v->count.id)
                import->counts[i].output = import->counts[k].output;
        import->counts[i].count = v->count.id;
        import->counts[i].axis = v->counted;
        if (import->counts[i].output)
            continue;
        import->counts[i].output = (uint32_t)(count + added++);
        rlxvk_graph_output(import->graph, v->count);
    }
}

static void check_opsets(onnx_import *import)
{
    int64_t version = opset_of(import, "");
    char buffer[160];
    text t = {buffer, sizeof buffer, 0};
    text_append(&t, "the model is of opset %lld; this version of rlxvk knows those up to %d",
                (long long)version, ONNX_NEWEST_OPSET);
    if (version > ONNX_NEWEST_OPSET)
        import_add_problem(import, RLXVK_E_UNSUPPORTED, "", "", NULL, buffer);
}

rlxvk_status onnx_import_model(onnx_import *import, const onnx_import_input *inputs,
                               const char *const *outputs, size_t output_count)
{
    const onnx_graph *g = &import->model->graph;
    import_scope scope;
    import->inline_graph = inline_graph;
    begin_scope(import, &scope, NULL);
    check_opsets(import);
    define_functions(import);
    define_initializers(import, g);
    define_inputs(import, inputs);
    walk_nodes(import, g);
    for (size_t i = 0; i < output_count && import->status == RLXVK_OK; i++)
        add_output(import, outputs[i]);
    import->counts = arena_allocate(&import->a, (output_count + 1) * sizeof *import->counts);
    if (import->counts)
        add_counts(import, outputs, output_count);
    else
        import_end(import, status_fail_memory("outputs of a model"));
    if (import->status == RLXVK_OK && import->problems.count == 0 &&
        rlxvk_graph_status(import->graph) != RLXVK_OK)
        import_add_problem(import, rlxvk_graph_status(import->graph), "", "output", NULL,
                           rlxvk_graph_error(import->graph));
    end_scope(import, &scope, NULL);
    return import->status;
}
