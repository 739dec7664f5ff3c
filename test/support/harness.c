/* See harness.h. */
#include "support/harness.h"
#include "system/program.h"
#include "program/context.h"
#include "op/evaluation.h"
#include "op/random/random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

rlxvk_context *open_context(const rlxvk_context_options *options)
{
    rlxvk_context *c = NULL;
    expect_ok(rlxvk_context_create(options, &c));
    return c;
}

void close_context(rlxvk_context *c)
{
    uint32_t messages = c->device->validation_messages;
    rlxvk_context_destroy(c);
    assert_int_equal(messages, 0);
}

rlxvk_context *shared_context;

int open_shared_context(void **state)
{
    (void)state;
    shared_context = open_context(NULL);
    return 0;
}

int close_shared_context(void **state)
{
    (void)state;
    close_context(shared_context);
    return 0;
}

void expect_ok(rlxvk_status status)
{
    if (status != RLXVK_OK)
        print_error("%s: %s\n", rlxvk_status_name(status), rlxvk_last_error());
    assert_int_equal(status, RLXVK_OK);
}

void expect_error(rlxvk_status status, rlxvk_status wanted, const char *part)
{
    if (status != wanted || !strstr(rlxvk_last_error(), part))
        print_error("got %s '%s', wanted %s with '%s'\n", rlxvk_status_name(status),
                    rlxvk_last_error(), rlxvk_status_name(wanted), part);
    assert_int_equal(status, wanted);
    assert_non_null(strstr(rlxvk_last_error(), part));
}

static float *leaf_content(const node *n, uint64_t seed, bool exact)
{
    uint64_t numel = shape_numel(&n->shape);
    float *values = malloc((numel + 1) * sizeof *values);
    random_source r = {seed};
    for (const char *c = n->name; *c; c++)
        r.state = r.state * 31 + (uint8_t)*c;
    random_fill(&r, exact, values, numel);
    return values;
}

/* Quantized weights: any codes, but the scales are small numbers. */
static void set_bytes(rlxvk_executable *e, const node *n, const float *content)
{
    uint64_t count = shape_numel(&n->shape);
    uint8_t *bytes = malloc(count + 1);
    for (uint64_t i = 0; i < count; i++)
        bytes[i] = ((const uint8_t *)content)[4 * i] & 31;
    expect_ok(rlxvk_set_param_bytes(e, n->name, bytes, count));
    free(bytes);
}

static float *read_outputs(rlxvk_executable *e, const rlxvk_run_input *inputs, size_t input_count,
                           size_t *out_count)
{
    size_t outputs = rlxvk_executable_output_count(e), total = 0, at = 0;
    rlxvk_run_output *items = calloc(outputs + 1, sizeof *items);
    for (size_t i = 0; i < outputs; i++) {
        rlxvk_shape s = rlxvk_executable_output_shape(e, i);
        items[i] = (rlxvk_run_output){.index = i, .length = shape_numel(&s), .f32_words = true};
        total += items[i].length;
    }
    float *values = malloc((total + 1) * sizeof *values);
    for (size_t i = 0; i < outputs; at += items[i++].length)
        items[i].buffer = values + at;
    expect_ok(rlxvk_run(e, inputs, input_count, items, outputs));
    free(items);
    *out_count = total;
    return values;
}

float *run_seeded(rlxvk_executable *e, const rlxvk_graph *g, uint64_t seed, bool exact,
                  size_t *out_count)
{
    rlxvk_run_input *inputs = calloc(g->nodes.count + 1, sizeof *inputs);
    size_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if ((n->op != OP_input && n->op != OP_param) || random_is_state(n))
            continue;
        float *values = leaf_content(n, seed, exact);
        size_t length = shape_numel(&n->shape);
        if (n->op == OP_input) {
            inputs[count++] = (rlxvk_run_input){n->name, values, length, .f32_words = true};
            continue;
        }
        if (n->dtype == RLXVK_U8)
            set_bytes(e, n, values);
        else
            expect_ok(
                rlxvk_set_param_typed(e, n->name, values, length * sizeof *values, RLXVK_F32));
        free(values);
    }
    float *result = read_outputs(e, inputs, count, out_count);
    for (size_t i = 0; i < count; i++)
        free((void *)inputs[i].data);
    free(inputs);
    return result;
}

float *evaluate_seeded(const rlxvk_graph *g, uint64_t seed, bool exact, size_t *out_count)
{
    evaluation v;
    size_t total = 0;
    expect_ok(evaluation_create(g, &v));
    v.values_only = true;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if ((n->op != OP_input && n->op != OP_param) || random_is_state(n))
            continue;
        float *values = leaf_content(n, seed, exact);
        expect_ok(evaluation_set(&v, id, values));
        free(values);
    }
    expect_ok(evaluation_run(&v));
    for (size_t i = 0; i < g->outputs.count; i++)
        total += shape_numel(&graph_node(g, g->outputs.items[i])->shape);
    float *values = malloc((total + 1) * sizeof *values);
    *out_count = total;
    total = 0;
    for (size_t i = 0; i < g->outputs.count; i++) {
        uint64_t numel = shape_numel(&graph_node(g, g->outputs.items[i])->shape);
        memcpy(values + total, v.words[g->outputs.items[i]], numel * sizeof *values);
        total += numel;
    }
    evaluation_destroy(&v);
    return values;
}

int remove_folder(const char *folder)
{
    system_entry entry;
    program_remove_folder(folder);
    return system_look(folder, &entry) == ENOENT ? 0 : -1;
}

uint64_t harness_rounds(uint64_t all)
{
    const char *wanted = getenv("RLXVK_TEST_ALL");
    return wanted && *wanted ? all : (all + 7) / 8;
}

uint64_t hash_floats(const float *values, size_t count)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}

void force_host(rlxvk_compile_options *options, const char *rows, host_rows *room)
{
    if (!rows)
        return;
    if (strcmp(rows, "all") == 0) {
        options->force_host = RLXVK_ON;
        return;
    }
    snprintf(room->text, sizeof room->text, "%s", rows);
    options->host_ops = room->names;
    options->host_op_count = 0;
    for (char *row = strtok(room->text, ","); row; row = strtok(NULL, ","))
        room->names[options->host_op_count++] = row;
}
