/* See fuzz_evaluate.h. */
#include "support/fuzz_evaluate.h"

#include "op/evaluation.h"
#include "op/random/random.h"
#include "support/fuzz_input.h"
#include "support/random_graph.h"

#include <math.h>

enum { PERTURBED_RUNS = 24 };

static uint64_t word_count(const node *n)
{
    return shape_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

/* Fills a leaf by its name, so that it has the same values in both graphs: integers or any
 * numbers. */
static rlxvk_status fill_leaf(evaluation *v, uint32_t id)
{
    const node *n = graph_node(v->graph, id);
    random_source r = {n->op};
    uint64_t count = word_count(n);
    for (const char *c = n->name; *c; c++)
        r.state = r.state * 31 + (uint8_t)*c;
    float *values = malloc((count + 1) * sizeof *values);
    FUZZ_CHECK(values, "out of memory");
    random_fill(&r, dtype_is_integer((rlxvk_dtype)n->dtype) || random_below(&r, 2), values, count);
    if (v->bytes[id])
        for (uint64_t i = 0; i < count; i++)
            ((uint8_t *)values)[i] = (uint8_t)random_next(&r);
    rlxvk_status status = evaluation_set(v, id, values);
    free(values);
    return status;
}

/* Changes each value a little. If `zeros` is set, also adds up to the least normal number, because
 * a value may underflow in only one of the graphs. */
static void perturb(evaluation *v, uint32_t id, random_source *r, bool zeros)
{
    uint64_t count = v->words[id] ? word_count(graph_node(v->graph, id)) : 0;
    for (uint64_t i = 0; i < count; i++) {
        v->words[id][i] *= 1 + random_real(r) * 0x1p-18f;
        if (zeros)
            v->words[id][i] += random_real(r) * 0x1p-126f;
    }
}

/* Evaluates the graph. If `run` is not 0, every value is perturbed with this seed. Returns false if
 * an op's host function fails. */
static bool evaluate(const rlxvk_graph *g, uint64_t run, evaluation *v)
{
    random_source r = {run};
    if (evaluation_create(g, v) != RLXVK_OK)
        return false;
    v->values_only = true;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        bool leaf = n->op == OP_input || n->op == OP_param, state = false;
        if (leaf)
            state = strcmp(n->name, RNG_STATE_NAME) == 0;
        if ((leaf && !state ? fill_leaf(v, id) : evaluation_node(v, id)) != RLXVK_OK) {
            evaluation_destroy(v);
            return false;
        }
        if (run && !state)
            perturb(v, id, &r, run > PERTURBED_RUNS / 2);
    }
    return true;
}

static bool close_to(float got, float wanted, double spread)
{
    if (isnan(wanted) || isnan(got))
        return (isnan(wanted) && isnan(got)) || !isfinite(spread);
    if (got == wanted || !isfinite(spread))
        return true;
    return fabs((double)got - wanted) <= 8 * spread + 1e-6 + 1e-5 * fabs((double)wanted);
}

/* Prints which element of an output is wrong, and ends the program. */
static void refuse(const evaluation *a, const evaluation *b, size_t output)
{
    uint32_t x = a->graph->outputs.items[output], y = b->graph->outputs.items[output];
    for (uint64_t i = 0; a->words[x] && i < word_count(graph_node(a->graph, x)); i++)
        FUZZ_CHECK(close_to(b->words[y][i], a->words[x][i], 0),
                   "output %zu (node %u): element %llu is %g after rewriting, %g before", output, x,
                   (unsigned long long)i, (double)b->words[y][i], (double)a->words[x][i]);
    FUZZ_CHECK(false, "output %zu (node %u): other bytes after rewriting", output, x);
}

static bool outputs_agree(const evaluation *a, const evaluation *b, size_t output,
                          const double *spread)
{
    uint32_t x = a->graph->outputs.items[output], y = b->graph->outputs.items[output];
    const node *n = graph_node(a->graph, x);
    uint64_t count = word_count(n);
    FUZZ_CHECK(!a->words[x] == !b->words[y], "output %zu is held in another way", output);
    if (!a->words[x])
        return count == 0 || memcmp(a->bytes[x], b->bytes[y], count) == 0;
    for (uint64_t i = 0; i < count; i++)
        if (!close_to(b->words[y][i], a->words[x][i], spread ? spread[i] : 0))
            return false;
    return true;
}

/* Raises spread[] to the differences between the output's values and the perturbed ones. */
static void widen(const evaluation *a, const evaluation *perturbed, uint32_t id, double *spread)
{
    uint64_t count = word_count(graph_node(a->graph, id));
    for (uint64_t i = 0; i < count; i++) {
        float was = a->words[id][i], is = perturbed->words[id][i];
        double apart = fabs((double)is - (double)was);
        if (is == was || (isnan(is) && isnan(was)))
            continue;
        spread[i] = isfinite(apart) ? fmax(spread[i], apart) : INFINITY;
    }
}

/* Measures the output's sensitivity, run by run, until it explains the difference. Returns whether
 * it does. */
static bool explained(const evaluation *a, const evaluation *b, size_t output)
{
    uint32_t id = a->graph->outputs.items[output];
    uint64_t count = word_count(graph_node(a->graph, id));
    double *spread = calloc(count + 1, sizeof *spread);
    bool agreed = false;
    FUZZ_CHECK(spread, "out of memory");
    for (uint64_t run = 1; run <= PERTURBED_RUNS && !agreed; run++) {
        evaluation v;
        if (!a->words[id] || !evaluate(a->graph, run, &v))
            break;
        widen(a, &v, id, spread);
        evaluation_destroy(&v);
        agreed = outputs_agree(a, b, output, spread);
    }
    free(spread);
    return agreed;
}

void fuzz_compare(const rlxvk_graph *before, const rlxvk_graph *after)
{
    evaluation a, b;
    if (!evaluate(before, 0, &a))
        return;
    FUZZ_CHECK(evaluate(after, 0, &b), "after rewriting: %s", rlxvk_last_error());
    for (size_t i = 0; i < before->outputs.count; i++)
        if (!outputs_agree(&a, &b, i, NULL) && !explained(&a, &b, i))
            refuse(&a, &b, i);
    evaluation_destroy(&b);
    evaluation_destroy(&a);
}
