/*
 * The memory that host functions take must depend on the size of their operands and results, never
 * on an attribute. Some conformance cases of each op, and calls with the largest possible
 * attributes, run on the host while every byte is counted. If memory runs out, the functions must
 * report that.
 */
#include "base/memory_sizes.h"
#include "conform/conform.h"
#include "op/op.h"
#include "op/random/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum {
    TIMES = 40,       /* bytes for a byte: a splat has its own struct */
    TRANSFORMS = 200, /* of ops that allocate for each transform */
    FREE = 1 << 20,   /* bytes for the result and each operand: tables, state */
    WORDS = 1 << 18,  /* of operands and results; larger cases are left out */
    CASES = 60,       /* of each op */
    FAILURES = 20     /* of an op's memory, one at a time */
};

static uint64_t words_of(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    uint64_t words = op_host_length(g, n);
    for (uint32_t i = 0; i < n->input_count; i++)
        words += op_host_length(g, graph_node(g, n->inputs[i]));
    return words;
}

/* Lets the first, second, ... allocation of a node fail. Each time the node must report that. */
static void fail_node(const char *line, evaluation *v, uint32_t id)
{
    rlxvk_status status = RLXVK_E_OUT_OF_HOST_MEMORY;
    for (uint64_t k = 1; k <= FAILURES && status == RLXVK_E_OUT_OF_HOST_MEMORY; k++) {
        uint64_t before = memory_allocation_count();
        memory_fail_at(k);
        status = evaluation_node(v, id);
        memory_fail_at(0);
        if (status == RLXVK_OK && memory_allocation_count() - before >= k)
            fail_msg("%s: goes on without memory", line);
    }
    if (status != RLXVK_OK && status != RLXVK_E_OUT_OF_HOST_MEMORY)
        fail_msg("%s: %s", line, rlxvk_last_error());
}

/* Runs each node and fails the test if a node asks for too much memory. If `failing`, each node
 * first runs without enough memory. */
static void run_nodes(const char *line, rlxvk_graph *g, evaluation *v, bool failing)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const char *name = op_table[graph_node(g, id)->op].name;
        bool transforms = strstr(name, "fft") || strcmp(name, "welch") == 0;
        uint64_t times = transforms ? TRANSFORMS : TIMES;
        uint64_t allowed = FREE * (1 + (uint64_t)graph_node(g, id)->input_count) +
                           times * sizeof(float) * words_of(g, id);
        if (failing)
            fail_node(line, v, id);
        uint64_t before = memory_requested_bytes();
        if (evaluation_node(v, id) != RLXVK_OK)
            fail_msg("%s: %s", line, rlxvk_last_error());
        uint64_t asked = memory_requested_bytes() - before;
        if (asked > allowed)
            fail_msg("%s: %s asks for %llu bytes, operands and results have %llu words", line, name,
                     (unsigned long long)asked, (unsigned long long)words_of(g, id));
    }
}

static bool is_small(const rlxvk_graph *g)
{
    uint64_t words = 0;
    for (uint32_t id = 0; id < g->nodes.count && words <= WORDS; id++)
        words += words_of(g, id);
    return words <= WORDS;
}

/* Returns whether the case was run. */
static bool run_line(const char *line, bool failing)
{
    case_spec spec;
    rlxvk_graph *g = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result;
    const conform_case given = {.line = line};
    void *contents[CASE_MAX_INPUTS] = {NULL};
    evaluation v = {0};
    assert_int_equal(case_parse(line, &spec), RLXVK_OK);
    if (case_word(&spec, "expect", NULL))
        return false;
    assert_int_equal(conform_build(&spec, &g, leaves, &result), RLXVK_OK);
    bool runs = rlxvk_graph_status(g) == RLXVK_OK && is_small(g) &&
                graph_find(g, OP_input, RNG_STATE_NAME) == NODE_NONE;
    if (runs) {
        assert_int_equal(conform_fill(&spec, &given, 1, contents), RLXVK_OK);
        assert_int_equal(evaluation_create(g, &v), RLXVK_OK);
        for (size_t i = 0; i < spec.input_count; i++)
            assert_int_equal(evaluation_set(&v, leaves[i].id - 1, contents[i]), RLXVK_OK);
        run_nodes(line, g, &v, failing);
        evaluation_destroy(&v);
    }
    for (size_t i = 0; i < CASE_MAX_INPUTS; i++)
        memory_free(contents[i]);
    rlxvk_graph_destroy(g);
    return runs;
}

static void cases_take_what_their_operands_take(void **state)
{
    case_list list;
    size_t ops = 0, taken = 0, cases = 0;
    char op[48] = "";
    (void)state;
    assert_int_equal(case_list_generate(&list), RLXVK_OK);
    /* Backwards, because the last cases of an op are its larger and odd ones. */
    for (size_t i = list.lines.count; i-- > 0;) {
        const char *line = list.lines.items[i];
        size_t length = strcspn(line, " ");
        if (strncmp(op, line, length) != 0 || op[length]) {
            ops += cases > 0;
            cases = 0;
            snprintf(op, sizeof op, "%.*s", (int)length, line);
        }
        if (cases < CASES && run_line(line, cases == 0)) {
            cases++;
            taken++;
        }
    }
    case_list_destroy(&list);
    assert_true(ops > 250 && taken > 2000);
}

static void large_attributes_take_nothing(void **state)
{
    static const char scene[] = "in=positions:f32:2x3:unit;scales:f32:2x3:range:-2:-1;"
                                "rotations:f32:2x4:unit;opacities:f32:2:range:0.1:0.9;"
                                "colors:f32:2x3:range:0:1;sh:f32:2x1x3:unit";
    static const char *const heads[] = {"gaussian_splat_render entries=134217728",
                                        "gaussian_splat_render tile=1 entries=134217728",
                                        "gaussian_splat_render_backward entries=134217728"};
    static const char *const deltas[] = {
        "gated_delta_net in=q:f32:1x2x1x1030:unit;k:f32:1x2x1x1030:range:-0.08:0.08;"
        "v:f32:1x2x1x1030;g:f32:1x2x1:range:-1:0;beta:f32:1x2x1:range:0:1",
        "gated_delta_net_backward in=q:f32:1x10x1x256:unit;k:f32:1x10x1x256:range:-0.08:0.08;"
        "v:f32:1x10x1x256:unit;g:f32:1x10x1:range:-1:0;beta:f32:1x10x1:range:0:1;"
        "dy:f32:1x10x1x256:unit"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        char line[CASE_TEXT];
        snprintf(line, sizeof line, "%s %s%s", heads[i], scene,
                 i == 2 ? ";loss:f32:24x32x4:unit" : "");
        assert_true(run_line(line, false));
    }
    for (size_t i = 0; i < ARRAY_COUNT(deltas); i++)
        assert_true(run_line(deltas[i], false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_take_what_their_operands_take),
        cmocka_unit_test(large_attributes_take_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
