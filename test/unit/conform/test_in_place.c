/*
 * Every op whose result may take an operand's memory, on the conformance cases. The operands are
 * made by the node before and are not used later. Any two operands of one shape are also tied, that
 * is, made one tensor. Results must have the same bits as in a plan that reuses no memory, and each
 * plan is proven sound.
 */
#include "conform/conform.h"
#include "exec/executable.h"
#include "op/op.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { CASES = 4, MOST_ELEMENTS = 20000, NO_TIE = 32, MOST_TIED = 5 };

/* per row of the op table */
static uint32_t cases_of[OP_COUNT], wanted_of[OP_COUNT], placed_of[OP_COUNT];

static uint32_t in_place_of(const rlxvk_graph *g, const node *n)
{
    const op_family *family = node_row(n)->family;
    return family->memory.in_place && n->input_count > 0 ? family->memory.in_place(g, n) : 0;
}

/* Copies a dense tensor into memory of its own. Raw bytes cannot be copied and stay. */
static uint32_t copied(rlxvk_graph *g, uint32_t id)
{
    return op_node_storage(g, id) == STORAGE_RAW ? id : op_append(g, OP_copy, &id, 1, NULL, NULL);
}

/* Appends node `id` of `from`, after copies of its operands. Operand `tied` becomes the same tensor
 * as operand `to`. Returns NODE_NONE if that is not possible. */
static uint32_t append_alone(rlxvk_graph *g, const rlxvk_graph *from, uint32_t id, uint32_t *ids,
                             uint32_t to, uint32_t tied)
{
    const node *n = graph_node(from, id);
    uint64_t room[64] = {0};
    uint32_t *inputs = calloc(n->input_count, sizeof *inputs), made;
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = node_writes(n) >> i & 1 ? ids[n->inputs[i]] : copied(g, ids[n->inputs[i]]);
    if (tied != NO_TIE)
        inputs[tied] = inputs[to];
    assert_true(n->attribute_size <= sizeof room);
    if (n->attribute_size)
        memcpy(room, n->attributes, n->attribute_size);
    made = op_append(g, (op_kind)n->op, inputs, n->input_count, room, NULL);
    free(inputs);
    return made;
}

/* Builds the case's graph so that each node that may work in place is alone among copies. Returns
 * the number of such nodes, which is 0 if there are none or if the operands cannot be tied. */
static uint32_t isolate(const rlxvk_graph *from, uint32_t to, uint32_t tied, rlxvk_graph **out)
{
    uint32_t *ids = calloc(from->nodes.count + 1, sizeof *ids), found = 0, result = NODE_NONE;
    expect_ok(rlxvk_graph_create(out));
    expect_ok(graph_keep_all(*out, from));
    for (uint32_t id = 0; id < from->nodes.count && rlxvk_graph_status(*out) == RLXVK_OK; id++) {
        const node *n = graph_node(from, id);
        bool alone = in_place_of(from, n) != 0;
        if (n->input_count == 0) {
            ids[id] = op_append_leaf(*out, n);
            continue;
        }
        if (alone && tied != NO_TIE &&
            (tied >= n->input_count || to >= n->input_count ||
             !shape_equal(input_shape(from, n, to), input_shape(from, n, tied)) ||
             input_dtype(from, n, to) != input_dtype(from, n, tied)))
            alone = false;
        ids[id] = append_alone(*out, from, id, ids, to, alone ? tied : NO_TIE);
        if (rlxvk_graph_status(*out) == RLXVK_OK)
            ids[id] = copied(*out, ids[id]);
        wanted_of[n->op] += alone && tied == NO_TIE;
        found += alone;
        result = ids[id];
    }
    if (result != NODE_NONE && rlxvk_graph_status(*out) == RLXVK_OK &&
        graph_node(*out, result)->dtype != RLXVK_F32)
        result = op_append(*out, graph_node(*out, result)->dtype == RLXVK_C64 ? OP_abs : OP_cast,
                           &result, 1, &(uint64_t[8]){RLXVK_F32}, NULL);
    if (result != NODE_NONE && rlxvk_graph_status(*out) == RLXVK_OK)
        rlxvk_graph_output(*out, (rlxvk_tensor){result + 1, (*out)->serial});
    found = rlxvk_graph_status(*out) == RLXVK_OK ? found : 0;
    free(ids);
    return found;
}

static void note_placed(const rlxvk_executable *e)
{
    const schedule *s = &e->program->schedule;
    const plan *p = &e->program->plan;
    for (uint32_t i = 0; i < s->steps.count; i++) {
        const step *at = &s->steps.items[i];
        const slot *y = &p->slots[at->node];
        operand o;
        for (uint32_t k = 0; !at->host && schedule_step_operand(s, at, k, &o); k++) {
            const slot *x = &p->slots[o.value];
            placed_of[graph_node(s->graph, at->node)->op] +=
                o.value != at->node && o.overlap == OVERLAP_FIRST && y->block != SLOT_NONE &&
                x->class == y->class && x->block == y->block && x->offset == y->offset;
        }
    }
}

static bool takes_reals(const case_spec *spec)
{
    uint64_t numel = 0;
    for (size_t i = 0; i < spec->input_count; i++) {
        rlxvk_dtype t = spec->inputs[i].dtype;
        if (t == RLXVK_U8 || t == RLXVK_I8 || t == RLXVK_C64)
            return false;
        numel += shape_numel(&spec->inputs[i].shape);
    }
    return numel <= MOST_ELEMENTS;
}

static void check_graph(rlxvk_context *c, const rlxvk_graph *g, const char *line)
{
    float *got[2];
    size_t counts[2];
    for (int k = 0; k < 2; k++) {
        rlxvk_compile_options o = {.check_plan = RLXVK_ON,
                                   .fusion = RLXVK_OFF,
                                   .reuse_memory = k ? RLXVK_OFF : RLXVK_DEFAULT};
        rlxvk_executable *e = NULL;
        rlxvk_status status = rlxvk_compile(c, g, &o, &e);
        if (status != RLXVK_OK)
            print_error("%s\n", line);
        expect_ok(status);
        if (k == 0)
            note_placed(e);
        got[k] = run_seeded(e, g, 1, false, &counts[k]);
        rlxvk_executable_destroy(e);
    }
    assert_int_equal(counts[0], counts[1]);
    if (memcmp(got[0], got[1], counts[0] * sizeof(float)) != 0)
        print_error("%s: differs from a plan that reuses no memory\n", line);
    assert_memory_equal(got[0], got[1], counts[0] * sizeof(float));
    free(got[0]);
    free(got[1]);
}

/* Checks the case without ties, and with any two operands of one shape tied. */
static void check_case(rlxvk_context *c, const case_spec *spec, const char *line)
{
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result;
    rlxvk_graph *from = NULL, *g = NULL;
    if (conform_build(spec, &from, leaves, &result) != RLXVK_OK ||
        rlxvk_graph_status(from) != RLXVK_OK) {
        rlxvk_graph_destroy(from);
        return;
    }
    for (uint32_t tied = 0; tied < MOST_TIED; tied++)
        for (uint32_t to = 0; to < MAX(tied, 1); to++) {
            if (isolate(from, to, tied ? tied : NO_TIE, &g))
                check_graph(c, g, line);
            rlxvk_graph_destroy(g);
        }
    rlxvk_graph_destroy(from);
}

static void results_in_place_are_those_apart(void **state)
{
    rlxvk_context *c = open_context(NULL);
    case_list list;
    uint32_t rows = 0;
    (void)state;
    assert_int_equal(case_list_generate(&list), RLXVK_OK);
    for (size_t i = 0; i < list.lines.count; i++) {
        case_spec spec;
        expect_ok(case_parse(list.lines.items[i], &spec));
        op_kind kind = op_find(spec.row);
        if (kind == OP_COUNT || !op_table[kind].family->memory.in_place || !takes_reals(&spec) ||
            cases_of[kind] >= CASES)
            continue;
        cases_of[kind]++;
        check_case(c, &spec, list.lines.items[i]);
    }
    for (uint32_t k = 0; k < OP_COUNT; k++) {
        rows += placed_of[k] > 0;
        if (wanted_of[k] && !placed_of[k])
            print_error("never in place: %s\n", op_table[k].name);
        assert_true(!wanted_of[k] || placed_of[k]);
    }
    assert_true(rows >= 90);
    print_message("%u ops in place\n", rows);
    case_list_destroy(&list);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_in_place_are_those_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
