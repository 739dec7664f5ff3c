/* Inspecting graphs node by node, and as DOT pictures, as built and as compiled. A picture is
 * checked against the DOT grammar and, if Graphviz is installed, also by Graphviz. */
#include "graph/symbol.h"
#include "op/op.h"
#include "exec/executable.h"
#include "support/harness.h"

#include <rlxvk_inspect.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROOM = 1 << 16 };

/* Outputs: y = relu(x w + b) reshaped to [8], half of random noise, and y again. */
static rlxvk_graph *mixed(rlxvk_tensor *out_product)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 3));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F16, RLXVK_SHAPE(3, 4));
    rlxvk_tensor b = rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor product = rlxvk_matmul(g, x, w);
    rlxvk_tensor sum = rlxvk_add(g, product, b);
    rlxvk_graph_set_name(g, sum, "sum");
    rlxvk_tensor y = rlxvk_reshape(g, rlxvk_relu(g, sum), RLXVK_SHAPE(8));
    rlxvk_tensor noise = rlxvk_rng_uniform(g, RLXVK_SHAPE(8), 0, 1, NULL);
    rlxvk_tensor half = rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &(float){0.5f}, 4);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, rlxvk_mul(g, noise, half));
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    if (out_product)
        *out_product = product;
    return g;
}

/* ---- Nodes ---- */

static void test_nodes_one_by_one(void **state)
{
    rlxvk_tensor product;
    rlxvk_graph *g = mixed(&product);
    rlxvk_node_info info;
    uint32_t operands[4], node;
    size_t count, kinds[5] = {0}, outputs = 0;
    (void)state;
    for (uint32_t id = 0; id < rlxvk_graph_node_count(g); id++) {
        expect_ok(rlxvk_graph_node(g, id, &info));
        assert_int_equal(info.node, id);
        kinds[info.kind]++;
        outputs += info.output;
        expect_ok(rlxvk_graph_operands(g, id, operands, 4, &count));
        assert_int_equal(count, info.operand_count);
        for (size_t i = 0; i < count; i++)
            assert_true(operands[i] < id);
        expect_ok(rlxvk_tensor_node(g, info.tensor, &node));
        assert_int_equal(node, id);
        assert_true(rlxvk_shape_equal(rlxvk_tensor_shape(g, info.tensor), info.shape));
    }
    assert_true(kinds[RLXVK_NODE_INPUT] == 1 && kinds[RLXVK_NODE_PARAM] == 2 &&
                kinds[RLXVK_NODE_CONSTANT] == 1 && kinds[RLXVK_NODE_STATE] == 1);
    assert_int_equal(kinds[RLXVK_NODE_OP], rlxvk_graph_node_count(g) - 5);
    assert_int_equal(outputs, 2);
    expect_ok(rlxvk_tensor_node(g, product, &node));
    expect_ok(rlxvk_graph_node(g, node, &info));
    assert_string_equal(info.op, "matmul");
    assert_string_equal(info.name, "");
    assert_string_equal(info.shape_text, "2x4");
    assert_int_equal(info.dtype, rlxvk_tensor_dtype(g, product));
    operands[1] = 77;
    expect_ok(rlxvk_graph_operands(g, node, operands, 1, &count));
    assert_true(count == 2 && operands[0] == 0 && operands[1] == 77);
    expect_ok(rlxvk_graph_node(g, node + 1, &info));
    assert_string_equal(info.name, "sum");
    rlxvk_graph_destroy(g);
}

static void test_attributes(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_node_info info;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_I32, RLXVK_SHAPE(2, 3));
    (void)rlxvk_reduce_max(g, x, (int32_t[]){-1}, 1, true);
    expect_ok(rlxvk_graph_node(g, 1, &info));
    assert_string_equal(info.attributes, "axes=1 keep_dim=1");
    expect_ok(rlxvk_graph_node(g, 0, &info));
    assert_string_equal(info.attributes, "");
    assert_string_equal(info.op, "input");
    rlxvk_graph_destroy(g);
}

static void test_leaves_and_outputs(void **state)
{
    rlxvk_graph *g = mixed(NULL);
    rlxvk_node_info infos[4];
    size_t count;
    (void)state;
    expect_ok(rlxvk_graph_inputs(g, NULL, 0, &count));
    assert_int_equal(count, 1); /* only x: the random state is not listed */
    expect_ok(rlxvk_graph_params(g, infos, 4, &count));
    assert_int_equal(count, 2);
    assert_string_equal(infos[0].name, "w");
    assert_int_equal(infos[0].dtype, RLXVK_F16);
    assert_string_equal(infos[1].name, "b");
    expect_ok(rlxvk_graph_outputs(g, infos, 4, &count));
    assert_int_equal(count, 3);
    assert_string_equal(infos[0].op, "reshape");
    assert_string_equal(infos[1].op, "mul");
    assert_int_equal(infos[2].node, infos[0].node);
    memset(infos, 0, sizeof infos);
    expect_ok(rlxvk_graph_params(g, infos, 1, &count));
    assert_true(count == 2 && infos[0].op && !infos[1].op);
    rlxvk_graph_destroy(g);
}

static void test_wrong_nodes(void **state)
{
    rlxvk_graph *g = mixed(NULL), *other = mixed(NULL);
    rlxvk_node_info info;
    uint32_t node;
    size_t count;
    (void)state;
    expect_error(rlxvk_graph_node(g, 99, &info), RLXVK_E_INDEX, "graph_node: node 99 of ");
    expect_error(rlxvk_graph_operands(g, 99, NULL, 0, &count), RLXVK_E_INDEX, "graph_operands");
    expect_error(rlxvk_tensor_node(g, RLXVK_NONE, &node), RLXVK_E_ARITY, "tensor_node");
    expect_error(rlxvk_tensor_node(g, rlxvk_graph_output_tensor(other, 0), &node), RLXVK_E_DANGLING,
                 "tensor_node");
    expect_ok(rlxvk_graph_status(g)); /* queries leave no error in the graph */
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(other);
}

/* Shapes show their symbols. Only rlxvk_tensor_shape records that the caller relies on the shape;
 * inspecting does not. */
static void test_symbols(void **state)
{
    static char dot[ROOM];
    rlxvk_graph *g = NULL;
    rlxvk_node_info info;
    size_t length;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), 3));
    rlxvk_tensor y = rlxvk_neg(g, x);
    expect_ok(rlxvk_graph_node(g, 1, &info));
    assert_string_equal(info.shape_text, "BATCHx3");
    assert_int_equal(info.shape.dims[0], rlxvk_symbol(RLXVK_BATCH));
    expect_ok(rlxvk_graph_dot(g, dot, sizeof dot, &length));
    assert_non_null(strstr(dot, "BATCHx3"));
    assert_false(g->symbols->nodes.items[1].told);
    (void)rlxvk_tensor_shape(g, y);
    assert_true(g->symbols->nodes.items[1].told);
    rlxvk_graph_destroy(g);
}

/* ---- DOT ---- */

/* Returns the position behind a quoted string, and fails if no such string begins here. */
static const char *skip_string(const char *at)
{
    assert_int_equal(*at++, '"');
    for (; *at != '"'; at++) {
        assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
        if (*at == '\\') {
            at++;
            assert_true(*at == 'n' || *at == '"' || *at == '\\');
        }
    }
    return at + 1;
}

/* Lines are "  id [attributes];" or "  id -> id [attributes];". The ends of each edge must be
 * nodes. */
static void check_lines(const char *dot, char (*ids)[16], size_t *out_nodes, size_t *out_edges)
{
    char from[16], to[16];
    int used;
    *out_nodes = *out_edges = 0;
    for (const char *at = strchr(dot, '\n') + 1; *at != '}'; at = strchr(at, '\n') + 1) {
        bool edge = sscanf(at, "  %15[a-z0-9] -> %15[a-z0-9]%n", from, to, &used) == 2;
        used = 0; /* stays 0 if the text does not match */
        bool has_node = !edge && sscanf(at, "  %15[a-z0-9] [label=%n", from, &used) == 1 && used;
        if (has_node)
            snprintf(ids[(*out_nodes)++], 16, "%s", from);
        bool known[2] = {!edge, !edge};
        for (size_t i = 0; edge && i < *out_nodes; i++) {
            known[0] = known[0] || strcmp(ids[i], from) == 0;
            known[1] = known[1] || strcmp(ids[i], to) == 0;
        }
        assert_true(known[0] && known[1]);
        *out_edges += edge;
        int depth = 0;
        for (; *at != '\n'; at++) {
            if (*at == '"')
                at = skip_string(at) - 1;
            depth += (*at == '[') - (*at == ']');
            assert_true(depth >= 0 && depth <= 1 && *at != '{' && *at != '}' && *at);
        }
        assert_true(depth == 0 && at[-1] == ';');
    }
}

static void check_dot(const char *dot, size_t nodes, size_t edges)
{
    static char ids[256][16];
    size_t found_nodes, found_edges;
    assert_int_equal(strncmp(dot, "digraph rlxvk {\n", 16), 0);
    assert_string_equal(dot + strlen(dot) - 3, "\n}\n");
    check_lines(dot, ids, &found_nodes, &found_edges);
    assert_int_equal(found_nodes, nodes);
    assert_int_equal(found_edges, edges);
    if (system("command -v dot >/dev/null 2>&1") != 0)
        return;
    FILE *f = popen("dot -Tcanon >/dev/null", "w");
    assert_non_null(f);
    fputs(dot, f);
    assert_int_equal(pclose(f), 0);
}

static size_t count_edges(const rlxvk_graph *g)
{
    size_t edges = g->outputs.count;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        edges += graph_node(g, id)->input_count;
    return edges;
}

static void test_graph_dot(void **state)
{
    static char dot[ROOM];
    rlxvk_graph *g = mixed(NULL);
    size_t length;
    (void)state;
    expect_ok(rlxvk_graph_dot(g, dot, sizeof dot, &length));
    assert_int_equal(length, strlen(dot));
    check_dot(dot, g->nodes.count + 3, count_edges(g));
    assert_non_null(strstr(dot, "n0 [label=\"%0 input 'x'\\nF32 2x3\", shape=ellipse"));
    assert_non_null(strstr(dot, "n1 [label=\"%1 param 'w'\\nF16 3x4\", style=filled"));
    assert_non_null(strstr(dot, "\\nF32 scalar\\nbytes=4\", style=filled, fillcolor=lightgray"));
    assert_non_null(strstr(dot, "n0 -> n3 [label=\"0\"];\n  n1 -> n3 [label=\"1\"];\n"));
    assert_non_null(strstr(dot, "n4 [label=\"%4 add 'sum'\\nF32 2x4\"];\n"));
    assert_non_null(strstr(dot, "n4 -> n5;\n"));
    assert_non_null(strstr(dot, "out2 [label=\"output 2\", shape=doubleoctagon"));
    assert_non_null(strstr(dot, "n6 -> out2;\n}\n"));
    rlxvk_graph_destroy(g);
}

static void test_strange_names(void **state)
{
    static char dot[ROOM];
    static const struct {
        const char *name, *label;
    } names[] = {
        {"a \"quoted\" one", "'a \\\"quoted\\\" one'"},
        {"back\\slash\\n", "'back\\\\slash\\\\n'"},
        {"two\nlines", "'two\\nlines'"},
        {"tab\tand\x7f", "'tab\\\\x09and\\\\x7f'"},
        {"Gr\303\266\303\237e \360\237\246\200", "'Gr\303\266\303\237e \360\237\246\200'"},
        {"\"];}\n{[", "'\\\"];}\\n{['"},
        {"bad \303( \377 \360\237", "'bad \\\\xc3( \\\\xff \\\\xf0\\\\x9f'"},
    };
    rlxvk_graph *g = NULL;
    size_t length;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_input(g, "x\"\\\n", RLXVK_F32, RLXVK_SHAPE(2));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        rlxvk_graph_set_name(g, t = rlxvk_neg(g, t), names[i].name);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_graph_dot(g, dot, sizeof dot, &length));
    check_dot(dot, g->nodes.count, count_edges(g));
    assert_non_null(strstr(dot, "input 'x\\\"\\\\\\n'\\nF32 2"));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_non_null(strstr(dot, names[i].label));
    rlxvk_graph_destroy(g);
}

/* A long name is cut, but the rest of the label stays. */
static void test_a_long_name(void **state)
{
    static char dot[ROOM], name[5000];
    rlxvk_graph *g = NULL;
    size_t length;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2)));
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\303\266", 3);
    rlxvk_graph_set_name(g, t, name);
    expect_ok(rlxvk_graph_dot(g, dot, sizeof dot, &length));
    check_dot(dot, 2, 1);
    assert_non_null(strstr(dot, "\303\266'\\nF32 2\"];"));
    rlxvk_graph_destroy(g);
}

/* If the buffer is too short, it gets the beginning. The length is always that of the whole text.
 */
static void test_short_buffers(void **state)
{
    static char whole[ROOM], part[ROOM];
    rlxvk_graph *g = mixed(NULL);
    size_t length, again;
    (void)state;
    expect_ok(rlxvk_graph_dot(g, whole, sizeof whole, &length));
    for (size_t size = 0; size <= length + 1; size++) {
        memset(part, 'x', size + 1);
        expect_ok(rlxvk_graph_dot(g, size ? part : NULL, size, &again));
        assert_int_equal(again, length);
        assert_memory_equal(part, whole, size ? size - 1 : 0);
        assert_true(!size || part[size - 1] == 0);
        assert_int_equal(part[size], 'x');
    }
    rlxvk_graph_destroy(g);
}

/* ---- As compiled ---- */

static rlxvk_executable *compiled(rlxvk_graph *g, const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* Copies the line of the node whose label contains this text. */
static void line_with(const char *dot, const char *part, char line[1024])
{
    const char *at = strstr(dot, part);
    assert_non_null(at);
    while (at > dot && at[-1] != '\n')
        at--;
    snprintf(line, 1024, "%.*s", (int)strcspn(at, "\n"), at);
}

static void test_what_was_fused(void **state)
{
    static char dot[ROOM];
    char line[1024];
    rlxvk_executable *e = compiled(mixed(NULL), NULL);
    const rlxvk_graph *g = e->program->graph;
    size_t length;
    (void)state;
    expect_ok(rlxvk_executable_dot(e, dot, sizeof dot, &length));
    assert_int_equal(length, strlen(dot));
    check_dot(dot, g->nodes.count + 3, count_edges(g));
    assert_non_null(strstr(dot, "label=\"as compiled: "));
    assert_non_null(strstr(dot, "\\nmatmul: 1 -> 0\\n"));
    assert_non_null(strstr(dot, "\\nfused_matmul_bias_act: 0 -> 1"));
    line_with(dot, "fused_matmul_bias_act\\nF32", line);
    assert_non_null(strstr(line, "penwidth=3"));
    assert_non_null(strstr(line, "\\nmat")); /* its kernel */
    line_with(dot, " reshape\\n", line);
    assert_non_null(strstr(line, "\\nview\", style=dashed];"));
    rlxvk_executable_destroy(e);
}

static void test_steps_on_the_host(void **state)
{
    static char dot[ROOM];
    char line[1024];
    const char *const host[] = {"relu"};
    rlxvk_executable *e = compiled(mixed(NULL), &(rlxvk_compile_options){.fusion = RLXVK_OFF,
                                                                         .regions = RLXVK_OFF,
                                                                         .host_ops = host,
                                                                         .host_op_count = 1});
    size_t length;
    (void)state;
    expect_ok(rlxvk_executable_dot(e, dot, sizeof dot, &length));
    line_with(dot, " relu", line);
    assert_non_null(strstr(line, "\\non the host\", color=red];"));
    line_with(dot, " add 'sum'", line);
    assert_null(strstr(line, "penwidth"));
    rlxvk_executable_destroy(e);
}

/* The picture shows a write in place at its edge. If two nodes run as one step, it says so at the
 * second node. */
static void test_writes_and_pairs(void **state)
{
    static char dot[ROOM];
    rlxvk_graph *g = NULL;
    size_t length;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor cache = rlxvk_input(g, "cache", RLXVK_F32, RLXVK_SHAPE(1, 4, 8));
    rlxvk_tensor rows = rlxvk_input(g, "rows", RLXVK_F32, RLXVK_SHAPE(1, 1, 8));
    rlxvk_tensor at = rlxvk_input(g, "at", RLXVK_I32, RLXVK_SHAPE(1));
    rlxvk_graph_output(g, rlxvk_write_rows(g, cache, rows, at));
    rlxvk_tensor x = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(4, 64));
    rlxvk_tensor sum = rlxvk_add(g, x, rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(4, 64)));
    rlxvk_tensor gamma = rlxvk_param(g, "gamma", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_graph_output(g, sum);
    rlxvk_graph_output(g, rlxvk_rms_norm(g, sum, gamma, RLXVK_NONE, -1, 1e-5f));
    rlxvk_executable *e = compiled(g, NULL);
    expect_ok(rlxvk_executable_dot(e, dot, sizeof dot, &length));
    check_dot(dot, e->program->graph->nodes.count + 3, count_edges(e->program->graph));
    assert_non_null(strstr(dot, "[label=\"0\", dir=both];"));
    assert_int_equal(e->program->pairs.count, 1);
    assert_non_null(strstr(dot, "\\none step with %"));
    rlxvk_executable_destroy(e);
}

static void test_bindings(void **state)
{
    static char dot[ROOM];
    rlxvk_graph *g = NULL;
    size_t length;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32,
                                                   RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), 3))));
    rlxvk_executable *e = compiled(g, NULL);
    expect_error(rlxvk_executable_dot(e, dot, sizeof dot, &length), RLXVK_E_UNBOUND_SYMBOL,
                 "executable_dot");
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_BATCH, 7}, 1));
    expect_ok(rlxvk_executable_dot(e, dot, sizeof dot, &length));
    assert_non_null(strstr(dot, "F32 7x3"));
    rlxvk_executable_destroy(e);
}

static void test_without_memory(void **state)
{
    static char dot[ROOM];
    rlxvk_executable *e = compiled(mixed(NULL), NULL);
    rlxvk_status status = RLXVK_E_OUT_OF_HOST_MEMORY;
    size_t length;
    (void)state;
    for (uint64_t n = 1; status; n++) {
        memory_fail_at(n);
        status = rlxvk_executable_dot(e, dot, sizeof dot, &length);
        memory_fail_at(0);
        assert_true(!status || status == RLXVK_E_OUT_OF_HOST_MEMORY);
        assert_true(n < 10);
    }
    rlxvk_executable_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_one_by_one),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_leaves_and_outputs),
        cmocka_unit_test(test_wrong_nodes),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_graph_dot),
        cmocka_unit_test(test_strange_names),
        cmocka_unit_test(test_a_long_name),
        cmocka_unit_test(test_short_buffers),
        cmocka_unit_test(test_what_was_fused),
        cmocka_unit_test(test_steps_on_the_host),
        cmocka_unit_test(test_writes_and_pairs),
        cmocka_unit_test(test_bindings),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
