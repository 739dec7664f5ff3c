/*
 * Training with the compile option `precision`. Tests which products of a gradient run on matrix
 * units, that every node keeps its error bound, and that the gradients then keep theirs. If the
 * device has no matrix units, its f32 kernels must keep the same bounds.
 *
 * To test the bounds themselves on such devices too, products are also computed on the host, with
 * operands rounded as matrix units take them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/half.h"
#include "op/evaluation.h"
#include "plan/schedule.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH      2
#define LENGTH     32
#define WIDTH      32
#define HEADS      2
#define HIDDEN     48
#define PARAMS     7
#define MOST_NODES 400
#define TRIALS     8

enum { PRECISIONS = RLXVK_PRECISION_SPLIT + 1 };

/* ---- The net: attention and an MLP, each after a norm ---- */

typedef struct net {
    rlxvk_graph *graph;
    rlxvk_tensor params[PARAMS], gradients[PARAMS];
} net;

static rlxvk_tensor attend(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_tensor *w)
{
    static const rlxvk_attention_options options = {.num_heads = HEADS,
                                                    .num_kv_heads = HEADS,
                                                    .head_dim = WIDTH / HEADS,
                                                    .mask = RLXVK_MASK_CAUSAL,
                                                    .layout = RLXVK_LAYOUT_BSHD};
    rlxvk_tensor side[3];
    for (int i = 0; i < 3; i++)
        side[i] = rlxvk_reshape(g, rlxvk_matmul(g, x, w[i]),
                                RLXVK_SHAPE(BATCH, LENGTH, HEADS, WIDTH / HEADS));
    rlxvk_tensor y = rlxvk_attention(g, side[0], side[1], side[2], RLXVK_NONE, &options);
    y = rlxvk_reshape(g, y, RLXVK_SHAPE(BATCH, LENGTH, WIDTH));
    return rlxvk_matmul(g, y, w[3]);
}

static net build(void)
{
    static const char *const names[PARAMS] = {"q", "k", "v", "o", "up", "down", "gamma"};
    static const int32_t axes[] = {0, 1, 2};
    net n = {0};
    expect_ok(rlxvk_graph_create(&n.graph));
    rlxvk_graph *g = n.graph;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(BATCH, LENGTH, WIDTH));
    for (int i = 0; i < PARAMS; i++)
        n.params[i] = rlxvk_param(g, names[i], RLXVK_F32,
                                  i == 4   ? RLXVK_SHAPE(WIDTH, HIDDEN)
                                  : i == 5 ? RLXVK_SHAPE(HIDDEN, WIDTH)
                                  : i == 6 ? RLXVK_SHAPE(WIDTH)
                                           : RLXVK_SHAPE(WIDTH, WIDTH));
    rlxvk_tensor h = rlxvk_layer_norm(g, x, n.params[6], RLXVK_NONE, -1, 1e-5f);
    h = rlxvk_add(g, x, attend(g, h, n.params));
    rlxvk_tensor y = rlxvk_rms_norm(g, h, n.params[6], RLXVK_NONE, -1, 1e-5f);
    y = rlxvk_matmul(g, rlxvk_gelu(g, rlxvk_matmul(g, y, n.params[4])), n.params[5]);
    h = rlxvk_add(g, h, y);
    rlxvk_tensor loss = rlxvk_reduce_mean(g, rlxvk_mul(g, h, h), axes, 3, false);
    rlxvk_grad(g, loss, RLXVK_NONE, n.params, PARAMS, n.gradients);
    expect_ok(rlxvk_graph_status(g));
    assert_true(g->nodes.count <= MOST_NODES);
    return n;
}

static uint64_t numel(const rlxvk_graph *g, uint32_t id)
{
    return shape_numel(&graph_node(g, id)->shape);
}

/* The result is owned by the caller. */
static float *leaf_values(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    random_source r = {id + 1};
    float *values = malloc((numel(g, id) + 1) * sizeof *values);
    assert_non_null(values);
    for (uint64_t i = 0; i < numel(g, id); i++)
        values[i] = (n->shape.rank == 1) + (n->op == OP_input ? 1 : 0.3f) * random_real(&r);
    return values;
}

static bool is_given(const node *n)
{
    return n->op == OP_input || n->op == OP_param;
}

static evaluation evaluate(const net *n, rlxvk_precision precision)
{
    evaluation v;
    expect_ok(evaluation_create(n->graph, &v));
    v.precision = precision;
    for (uint32_t id = 0; id < n->graph->nodes.count; id++)
        if (is_given(graph_node(n->graph, id))) {
            float *values = leaf_values(n->graph, id);
            expect_ok(evaluation_set(&v, id, values));
            free(values);
        }
    return v;
}

/* Compiles the graph with its present outputs and runs it. There is one buffer for each output. */
static void run(const net *n, rlxvk_precision precision, float *const *buffers)
{
    const rlxvk_graph *g = n->graph;
    rlxvk_compile_options options = {.precision = precision, .forbid_host = RLXVK_ON};
    rlxvk_run_output out[MOST_NODES];
    rlxvk_run_input in = {0};
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *leaf = graph_node(g, id);
        if (!is_given(leaf))
            continue;
        float *values = leaf_values(g, id);
        if (leaf->op == OP_input) {
            in = (rlxvk_run_input){.name = leaf->name, .data = values, .length = numel(g, id)};
            continue;
        }
        expect_ok(rlxvk_set_param(e, leaf->name, values, numel(g, id)));
        free(values);
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        out[i] = (rlxvk_run_output){.index = i,
                                    .buffer = buffers[i],
                                    .length = numel(g, g->outputs.items[i])};
    expect_ok(rlxvk_run(e, &in, 1, out, g->outputs.count));
    free((void *)in.data);
    rlxvk_executable_destroy(e);
}

/* ---- Rounded as for matrix units ---- */

/* Rounds `values` as for a matrix unit: to the nearest f16 or bf16, or to two f16 (SPLIT) after
 * scaling all by one power of two. */
static void round_operand(rlxvk_precision precision, float *values, uint64_t count)
{
    float largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(values[i]));
    int power = 14 - ilogbf(largest > 0 ? largest : 1);
    for (uint64_t i = 0; i < count; i++) {
        float x = ldexpf(values[i], power), high = f16_to_f32(f32_to_f16(x));
        if (precision == RLXVK_PRECISION_F16)
            values[i] = f16_to_f32(f32_to_f16(values[i]));
        if (precision == RLXVK_PRECISION_BF16)
            values[i] = bf16_to_f32(f32_to_bf16(values[i]));
        if (precision == RLXVK_PRECISION_SPLIT)
            values[i] = ldexpf(high + f16_to_f32(f32_to_f16(x - high)), -power);
    }
}

static bool is_product(const node *n, rlxvk_precision precision)
{
    return n->op == OP_matmul || (n->op == OP_attention && precision == RLXVK_PRECISION_F16);
}

/* Computes the node from rounded operands and then restores the operands. */
static void do_as_units(evaluation *v, uint32_t id, rlxvk_precision precision)
{
    const node *n = graph_node(v->graph, id);
    float *kept[4] = {0};
    assert_true(n->input_count <= 4);
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t k = n->inputs[i];
        uint64_t count = numel(v->graph, k);
        kept[i] = v->words[k];
        v->words[k] = malloc((count + 1) * sizeof(float));
        assert_non_null(v->words[k]);
        memcpy(v->words[k], kept[i], count * sizeof(float));
        round_operand(precision, v->words[k], count);
    }
    expect_ok(evaluation_node(v, id));
    for (uint32_t i = n->input_count; i-- > 0;) {
        free(v->words[n->inputs[i]]);
        v->words[n->inputs[i]] = kept[i];
    }
}

/* ---- Node by node ---- */

static double units_of(double got, double exact, double bound)
{
    double off = fabs(got - exact);
    if (bound == 0)
        off = fabs(got - (double)(float)exact);
    if (isnan(off))
        return INFINITY;
    return off == 0 ? 0 : off / fmax(bound, 0x1p-149);
}

/* Returns the largest error of a product, in units of its bound at the evaluation's precision and
 * for unrounded operands. Other nodes must keep their bounds. The results are in `given`, one for
 * each node. If it is NULL, they are computed here, with products rounded as `units` do. */
static double worst_product(evaluation *v, float *const *given, rlxvk_precision units)
{
    const rlxvk_graph *g = v->graph;
    double worst = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        uint64_t count = numel(g, id);
        if (n->input_count == 0)
            continue;
        expect_ok(evaluation_node(v, id));
        double *exact = malloc((count + 1) * sizeof *exact);
        double *bounds = malloc((count + 1) * sizeof *bounds);
        assert_true(exact && bounds);
        memcpy(exact, v->exact[id], count * sizeof *exact);
        memcpy(bounds, v->bounds[id], count * sizeof *bounds);
        if (given)
            memcpy(v->words[id], given[id], count * sizeof(float));
        else if (is_product(n, units))
            do_as_units(v, id, units);
        for (uint64_t i = 0; i < count; i++) {
            double off = units_of(v->words[id][i], exact[i], bounds[i]);
            if (is_product(n, RLXVK_PRECISION_F16))
                worst = fmax(worst, off);
            else
                assert_true(off <= 1);
        }
        free(exact);
        free(bounds);
    }
    return worst;
}

/* Every node is an output, so that its operands and its result can be compared. */
static void nodes_keep_their_bounds(void **state)
{
    net n = build();
    rlxvk_graph *g = n.graph;
    float *values[MOST_NODES] = {0}, *buffers[MOST_NODES];
    size_t count = 0;
    (void)state;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (graph_node(g, id)->input_count) {
            rlxvk_graph_output(g, tensor_of(g, id));
            buffers[count++] = values[id] = malloc((numel(g, id) + 1) * sizeof(float));
        }
    assert_int_equal(count, g->outputs.count);
    for (int p = 0; p < PRECISIONS; p++) {
        evaluation v = evaluate(&n, (rlxvk_precision)p);
        run(&n, (rlxvk_precision)p, buffers);
        double device = worst_product(&v, values, RLXVK_PRECISION_F32);
        double units = worst_product(&v, NULL, (rlxvk_precision)p);
        print_message("%s: worst product %.3g of its bound; as units do it %.3g\n",
                      rlxvk_precision_name((rlxvk_precision)p), device, units);
        assert_true(device <= 1 && units <= 1);
        v.precision = RLXVK_PRECISION_F32; /* other precisions do not keep these bounds */
        units = worst_product(&v, NULL, (rlxvk_precision)p);
        assert_true(p == RLXVK_PRECISION_F32 || p == RLXVK_PRECISION_SPLIT || units > 1);
        evaluation_destroy(&v);
    }
    for (size_t i = 0; i < count; i++)
        free(buffers[i]);
    rlxvk_graph_destroy(g);
}

/* ---- The gradients ---- */

/* Evaluates all nodes. Then each word is moved by its bound, up or down as `sides` says. If `sides`
 * is NULL, nothing is moved. */
static void evaluate_off(evaluation *v, random_source *sides)
{
    for (uint32_t id = 0; id < v->graph->nodes.count; id++) {
        expect_ok(evaluation_node(v, id));
        for (uint64_t i = 0;
             sides && graph_node(v->graph, id)->input_count && i < numel(v->graph, id); i++) {
            double bound = v->bounds[id][i];
            v->words[id][i] = (float)(v->exact[id][i] + (random_below(sides, 2) ? bound : -bound));
        }
    }
}

static double distance(const float *a, const float *b, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return isnan(sum) ? INFINITY : sqrt(sum);
}

/* Finds a limit for the distance (norm of the difference) between each gradient and the reference.
 * In each trial, all nodes are off by as much as their contracts allow; the limit is the largest
 * distance over some trials. Errors of a device are not larger, and go to either side equally
 * often. */
static void find_limits(const net *n, rlxvk_precision precision, float *const *wanted,
                        double limits[PARAMS])
{
    evaluation v = evaluate(n, precision);
    random_source sides = {1 + (uint64_t)precision};
    memset(limits, 0, PARAMS * sizeof *limits);
    for (int trial = 0; trial < TRIALS; trial++) {
        evaluate_off(&v, &sides);
        for (int i = 0; i < PARAMS; i++) {
            uint32_t id = n->gradients[i].id - 1;
            limits[i] = fmax(limits[i], distance(v.words[id], wanted[i], numel(n->graph, id)));
        }
    }
    evaluation_destroy(&v);
}

/* The largest distance, in units of its limit. */
static double worst_gradient(const net *n, float *const *got, float *const *wanted,
                             const double limits[PARAMS])
{
    double worst = 0;
    for (int i = 0; i < PARAMS; i++) {
        uint64_t count = numel(n->graph, n->gradients[i].id - 1);
        worst = fmax(worst, distance(got[i], wanted[i], count) / limits[i]);
    }
    return worst;
}

/* Computes the gradients with products rounded as matrix units do. */
static void gradients_by_units(const net *n, rlxvk_precision units, float *const *out)
{
    evaluation v = evaluate(n, units);
    worst_product(&v, NULL, units);
    for (int i = 0; i < PARAMS; i++) {
        uint32_t id = n->gradients[i].id - 1;
        memcpy(out[i], v.words[id], numel(n->graph, id) * sizeof(float));
    }
    evaluation_destroy(&v);
}

/* Uses the graph as it is trained, with all fusions. */
static void gradients_keep_the_bounds_of_their_products(void **state)
{
    net n = build();
    float *got[PARAMS], *wanted[PARAMS];
    double limits[PRECISIONS][PARAMS];
    (void)state;
    evaluation v = evaluate(&n, RLXVK_PRECISION_F32);
    evaluate_off(&v, NULL);
    for (int i = 0; i < PARAMS; i++) {
        rlxvk_graph_output(n.graph, n.gradients[i]);
        got[i] = malloc(HIDDEN * WIDTH * sizeof(float));
        wanted[i] = v.words[n.gradients[i].id - 1];
    }
    for (int p = 0; p < PRECISIONS; p++) {
        find_limits(&n, (rlxvk_precision)p, wanted, limits[p]);
        run(&n, (rlxvk_precision)p, got);
        double device = worst_gradient(&n, got, wanted, limits[p]);
        gradients_by_units(&n, (rlxvk_precision)p, got);
        double units = worst_gradient(&n, got, wanted, limits[p]);
        print_message("%s: worst gradient %.3g of its limit; as units do it %.3g\n",
                      rlxvk_precision_name((rlxvk_precision)p), device, units);
        assert_true(device <= 1 && units <= 1);
    }
    /* The limits must be tight enough to tell one precision from another. */
    gradients_by_units(&n, RLXVK_PRECISION_BF16, got);
    assert_true(worst_gradient(&n, got, wanted, limits[RLXVK_PRECISION_SPLIT]) > 1);
    gradients_by_units(&n, RLXVK_PRECISION_F16, got);
    assert_true(worst_gradient(&n, got, wanted, limits[RLXVK_PRECISION_SPLIT]) > 1);
    for (int i = 0; i < PARAMS; i++)
        free(got[i]);
    evaluation_destroy(&v);
    rlxvk_graph_destroy(n.graph);
}

/* ---- Which kernels ---- */

/* Whether matrix units compute node `id`. */
static bool goes_to_units(const schedule *s, uint32_t id)
{
    for (size_t i = 0; i < s->dispatches.count; i++) {
        const dispatch *d = &s->dispatches.items[i];
        if (d->node == id &&
            (d->kernel == KERNEL_MATRIX_PRODUCT_F16 || d->kernel == KERNEL_MATRIX_PRODUCT_BF16 ||
             d->kernel == KERNEL_MATRIX_PRODUCT_F32))
            return true;
    }
    return false;
}

/* On a made-up device with matrix units: these compute all products, also those of gradients. At
 * f32 they do so only if the units take f32 operands (`words`). */
static void check_units(bool words)
{
    device_profile gpu = ORDINARY_GPU;
    net n = build();
    gpu.matrix_f16 = gpu.matrix_bf16 = (matrix_shape){16, 16, 16};
    gpu.matrix_f32 = (matrix_shape){words ? 8 : 0, 8, 8};
    gpu.shared_memory_bytes = 49152;
    for (int i = 0; i < PARAMS; i++)
        rlxvk_graph_output(n.graph, n.gradients[i]);
    for (int p = 0; p < PRECISIONS; p++) {
        schedule_options options = {.profile = &gpu, .precision = (rlxvk_precision)p};
        schedule s;
        uint32_t products = 0;
        expect_ok(schedule_create(n.graph, &options, &s));
        for (uint32_t id = 0; id < n.graph->nodes.count; id++)
            if (graph_node(n.graph, id)->op == OP_matmul) {
                products++;
                assert_int_equal(goes_to_units(&s, id), words || p != RLXVK_PRECISION_F32);
            }
        assert_int_equal(products, 3 * 6); /* forward, and the gradients of both operands */
        schedule_destroy(&s);
    }
    rlxvk_graph_destroy(n.graph);
}

static void products_of_gradients_go_to_units(void **state)
{
    (void)state;
    check_units(false);
    check_units(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_keep_their_bounds),
        cmocka_unit_test(gradients_keep_the_bounds_of_their_products),
        cmocka_unit_test(products_of_gradients_go_to_units),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
