/*
 * Checks each real or complex operand of every op. Its gradient must agree with central differences
 * of the host reference. Otherwise rlxvk_grad must refuse it with E_UNSUPPORTED and the op's name,
 * or gradient.def and rlxvk_train.h must say that it has none. Second derivatives are checked in
 * the same way, with the gradients as the function. Operands that are 0 are also tried.
 *
 * Everything is evaluated on the host, because double precision tells a wrong gradient from a
 * rounded one. Kernels are compared by `rlxvk conform --gradients`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "conform/conform.h"
#include "op/gradient.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_OPERANDS 8
#define MOST_WORDS    6500 /* in the nodes of a case */
#define MOST_GRADIENT 60000
#define MOST_PROBES   5 /* words of each leaf */
#define MOST_TRIES    40
#define MOST_ALIKE    2 /* cases that differ only in numbers */

typedef enum outcome { UNSEEN, FLAT, REFUSED, CONFIRMED } outcome;

static outcome first[OP_COUNT][MOST_OPERANDS], second[OP_COUNT];
static uint32_t tries[OP_COUNT][MOST_OPERANDS];
static size_t compared[2], wrong; /* compared: words, by order */

/* Operands that differences cannot check, and the tests that do. If `operands` is 0, all of the
 * op. */
static const struct {
    const char *row;
    uint32_t operands;
    const char *why;
} elsewhere[] = {
    {"round", 0, "an estimate: test_rules"},
    {"quantize", 0, "an estimate: test_rules"},
    {"dequantize", 0, "an estimate: test_rules"},
    {"qmatmul", 0, "an estimate: test_rules"},
    {"qconv2d", 0, "an estimate: test_rules"},
    {"fake_quantize", 0, "an estimate: test_fake_quantize"},
    {"fake_quantize_lsq", 0, "an estimate: test_fake_quantize"},
    {"batch_norm_backward_parameters", 1u << 1, "statistics are no leaves: test_batch_norm"},
    {"batch_norm_backward_input", 1u << 1 | 1u << 3, "statistics are no leaves: test_batch_norm"},
    {"batched_dense_solve", 1u << 0, "matrices are no leaves: conform --gradients"},
    {"projection", 1u << 4, "is operand 3 where there is no codebook"},
    {"attention_backward", 1u << 4, "the forward result, which is found anew"},
    {"gradient", 0, "of graphs with symbols: test_symbolic_gradients"},
    {"loop_carry", 0, "expanded by loop_result: scans and whiles here"},
    {"loop_begin", 0, "expanded by loop_result"},
    {"loop_slice", 0, "expanded by loop_result"},
    {"loop_update", 0, "expanded by loop_result"},
    {"loop_end", 0, "expanded by loop_result"},
    {"loop_result", 0, "expanded by loop_result"},
    {"custom", 0, "the user's: test_rules"},
};

/* ---- A case ---- */

typedef struct trial {
    case_spec spec;
    const char *line;
    void *contents[CASE_MAX_INPUTS];
    rlxvk_graph *graph;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result;
    size_t wrt[CASE_MAX_INPUTS], count; /* leaves that get a gradient from the result */
} trial;

static uint64_t words_of(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    return shape_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

static uint64_t all_words(const rlxvk_graph *g)
{
    uint64_t words = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        words += words_of(g, id);
    return words;
}

/* Weights within +-1, none of which is a multiple of another. */
static float weight(uint64_t i)
{
    return (float)(sin(1.7 * (double)i + 0.3) * 0.7 + 0.2);
}

static rlxvk_tensor weights_like(rlxvk_graph *g, rlxvk_tensor t, uint64_t from)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, t);
    uint64_t count = words_of(g, t.id - 1);
    float *words = memory_zeroed(count + 1, sizeof *words);
    assert_non_null(words);
    for (uint64_t i = 0; i < count; i++)
        words[i] = weight(from + i);
    t = rlxvk_constant(g, rlxvk_tensor_dtype(g, t), shape, words, count * sizeof *words);
    memory_free(words);
    return t;
}

/* Builds the case's graph and its gradients with respect to the leaves in `wrt`. The loss is a
 * weighted sum of the result's words. If `squares`, half of their weighted squares are added to
 * it. */
static rlxvk_graph *differentiate(const trial *t, const size_t *wrt, size_t count, bool squares,
                                  rlxvk_tensor *leaves, rlxvk_tensor *d)
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor y, by[CASE_MAX_INPUTS];
    expect_ok(conform_build(&t->spec, &g, leaves, &y));
    for (size_t i = 0; i < count; i++)
        by[i] = leaves[wrt[i]];
    rlxvk_tensor seed = weights_like(g, y, 0);
    if (squares)
        seed = rlxvk_add(g, seed, rlxvk_mul(g, seed, y));
    rlxvk_grad(g, y, seed, by, count, d);
    return g;
}

/* ---- Cases that are alike ---- */

typedef struct kind {
    char *key;
    uint32_t count;
} kind;

static VECTOR(kind) kinds;

/* The kind of a case: its op, with all attributes whose values are words (modes, activations,
 * formats). */
static void key_of(const case_spec *s, text *out)
{
    text_append(out, "%s", s->row);
    for (size_t i = 0; i < s->pair_count; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyz", *case_word(s, s->pairs[i].key, "0")))
            text_append(out, " %s=%s", s->pairs[i].key, case_word(s, s->pairs[i].key, ""));
    text_append(out, " %zu", s->input_count);
}

/* Whether fewer than MOST_ALIKE cases of this kind have come so far. */
static bool is_new(const case_spec *s)
{
    char buffer[256] = "";
    text key = {buffer, sizeof buffer, 0};
    key_of(s, &key);
    for (size_t i = 0; i < kinds.count; i++)
        if (strcmp(kinds.items[i].key, buffer) == 0)
            return kinds.items[i].count++ < MOST_ALIKE;
    char *copy = memory_allocate(strlen(buffer) + 1);
    assert_non_null(copy);
    strcpy(copy, buffer);
    assert_true(VECTOR_PUSH(&kinds, ((kind){copy, 1})));
    return true;
}

/* ---- Differences ---- */

typedef struct loss {
    evaluation v;
    uint32_t nodes[CASE_MAX_INPUTS]; /* the loss is a weighted sum of their words */
    size_t count;
} loss;

static void loss_create(loss *l, const trial *t, const rlxvk_graph *g, const rlxvk_tensor *leaves)
{
    expect_ok(evaluation_create(g, &l->v));
    l->v.values_only = true;
    for (size_t i = 0; i < t->spec.input_count; i++)
        expect_ok(evaluation_set(&l->v, leaves[i].id - 1, t->contents[i]));
}

static double loss_value(loss *l, double *out_magnitude)
{
    double sum = 0;
    uint64_t at = 0;
    expect_ok(evaluation_run(&l->v));
    *out_magnitude = 0;
    for (size_t k = 0; k < l->count; k++) {
        uint64_t offset = 0, words = words_of(l->v.graph, l->nodes[k]);
        uint32_t id = conform_source(l->v.graph, l->nodes[k], &offset);
        for (uint64_t i = 0; i < words; i++, at++) {
            double word = l->v.exact[id] ? l->v.exact[id][offset + i] : l->v.words[id][offset + i];
            sum += weight(at) * word;
            *out_magnitude += fabs(weight(at) * word);
        }
    }
    return sum;
}

/* Estimates the derivative with respect to a word. `noise` is the relative rounding error of the
 * loss. Returns false if the loss is not smooth enough here. */
static bool derive(loss *l, float *word, double noise, double *out, double *out_unsure)
{
    double middle[2], gap[2], step = *word != 0 ? exp2(floor(log2(fabs(*word))) - 6) : 0x1p-8;
    double size, here = loss_value(l, &size);
    float before = *word;
    step = fmin(step, 0x1p-5);
    for (int k = 0; k < 2; k++, step /= 2) {
        *word = (float)(before + step);
        double forth = (double)*word - before, right = loss_value(l, &size);
        *word = (float)(before - step);
        double back = (double)*word - before, left = loss_value(l, &size);
        *word = before;
        middle[k] = (right - left) / (forth - back);
        gap[k] = (right - here) / forth - (left - here) / back;
    }
    *out = (4 * middle[1] - middle[0]) / 3;
    *out_unsure = 4 * fabs(middle[0] - middle[1]) + noise * size / (2 * step);
    double accepted = 0.004 * fmax(fabs(*out), 0.1);
    return isfinite(*out) && fabs(2 * gap[1] - gap[0]) <= accepted && *out_unsure <= accepted;
}

/* Compares the gradient in `got` with differences, for some words of `leaf`. */
static outcome compare(const trial *t, loss *l, rlxvk_tensor leaf, const float *got, int order)
{
    uint64_t words = words_of(l->v.graph, leaf.id - 1), probes = MIN(words, MOST_PROBES);
    outcome found = FLAT;
    double largest = 0;
    for (uint64_t i = 0; i < words; i++)
        largest = isfinite(got[i]) ? fmax(largest, fabs((double)got[i])) : largest;
    for (uint64_t i = 0; i < probes; i++) {
        uint64_t at = probes == words ? i : (i * words + words / 2) / probes;
        double wanted, unsure;
        if (!derive(l, &l->v.words[leaf.id - 1][at], order == 1 ? 1e-11 : 4e-7, &wanted, &unsure))
            continue;
        double bound = 0.01 * fmax(fabs(wanted), 0.02 * largest) + unsure + 1e-4;
        if (!(fabs(got[at] - wanted) <= bound)) {
            print_message("%s: derivative %d by word %llu of '%s' is %.7g, the differences say "
                          "%.7g (+-%.2g)\n",
                          t->line, order, (unsigned long long)at,
                          graph_node(l->v.graph, leaf.id - 1)->name, (double)got[at], wanted,
                          bound);
            wrong++;
        }
        compared[order - 1]++;
        if (fabs(wanted) > 2 * bound)
            found = CONFIRMED;
    }
    return found;
}

static bool refused(const trial *t, const rlxvk_graph *g)
{
    if (rlxvk_graph_status(g) == RLXVK_E_UNSUPPORTED)
        return true;
    if (rlxvk_graph_status(g) != RLXVK_OK)
        fail_msg("%s: %s", t->line, rlxvk_graph_error(g));
    return false;
}

/* ---- First derivatives ---- */

static void note(op_kind op, uint32_t operand, outcome o)
{
    if (operand < MOST_OPERANDS && o > first[op][operand])
        first[op][operand] = o;
}

static void try_leaf(const trial *t, size_t leaf, op_kind op, uint32_t operand)
{
    rlxvk_tensor leaves[CASE_MAX_INPUTS], d;
    loss l = {.nodes = {t->result.id - 1}, .count = 1};
    rlxvk_graph *g = differentiate(t, &leaf, 1, false, leaves, &d);
    if (refused(t, g)) {
        if (strstr(rlxvk_graph_error(g), op_table[op].name))
            note(op, operand, REFUSED);
    } else if (all_words(g) <= MOST_GRADIENT) {
        loss gradient = {.nodes = {d.id - 1}, .count = 1};
        double size;
        loss_create(&gradient, t, g, leaves);
        (void)loss_value(&gradient, &size);
        loss_create(&l, t, t->graph, t->leaves);
        note(op, operand, compare(t, &l, t->leaves[leaf], gradient.v.words[d.id - 1], 1));
        evaluation_destroy(&l.v);
        evaluation_destroy(&gradient.v);
    }
    rlxvk_graph_destroy(g);
}

static bool is_wrt(const trial *t, size_t leaf)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->wrt[i] == leaf)
            return true;
    return false;
}

static void walk_first(const trial *t, bool fresh)
{
    for (uint32_t id = 0; id < t->graph->nodes.count; id++) {
        const node *n = graph_node(t->graph, id);
        for (uint32_t i = 0; i < MIN(n->input_count, (uint32_t)MOST_OPERANDS); i++) {
            uint64_t offset = 0;
            uint32_t from = conform_source(t->graph, n->inputs[i], &offset);
            for (size_t leaf = 0; leaf < t->spec.input_count; leaf++)
                if (t->leaves[leaf].id - 1 == from && is_wrt(t, leaf) &&
                    gradient_flows((op_kind)n->op, i) &&
                    (fresh || (first[n->op][i] != CONFIRMED && tries[n->op][i] < MOST_TRIES))) {
                    tries[n->op][i]++;
                    try_leaf(t, leaf, (op_kind)n->op, i);
                }
        }
    }
}

/* An op without a gradient rule must be refused, at any size, and also if it writes in place. */
static void walk_refusals(const trial *t, op_kind op)
{
    const op_family *family = op_table[op].family;
    if (family->derivative.vjp || family->derivative.expand || gradient_ends(op) ||
        second[op] == REFUSED)
        return;
    for (size_t i = 0; i < t->count; i++) {
        rlxvk_tensor leaves[CASE_MAX_INPUTS], d;
        rlxvk_graph *g = differentiate(t, &t->wrt[i], 1, false, leaves, &d);
        if (!refused(t, g) || !strstr(rlxvk_graph_error(g), op_table[op].name))
            fail_msg("%s: a gradient of '%s', where the op has no rule", t->line,
                     t->spec.inputs[t->wrt[i]].name);
        for (uint32_t o = 0; o < MOST_OPERANDS; o++)
            note(op, o, REFUSED);
        rlxvk_graph_destroy(g);
    }
    if (t->count)
        second[op] = REFUSED;
}

/* ---- Second derivatives ---- */

/* Builds the weighted sum of the words of all gradients. */
static rlxvk_tensor weighted(rlxvk_graph *g, const rlxvk_tensor *d, size_t count)
{
    rlxvk_tensor sum = RLXVK_NONE;
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t axis = 0;
        rlxvk_tensor t = weights_like(g, d[i], at);
        bool pairs = rlxvk_tensor_dtype(g, t) == RLXVK_C64;
        at += words_of(g, d[i].id - 1);
        t = rlxvk_mul(g, d[i], pairs ? rlxvk_conjugate(g, t) : t);
        t = rlxvk_reduce_sum(g, rlxvk_reshape(g, t, RLXVK_SHAPE(-1)), &axis, 1, false);
        t = pairs ? rlxvk_cast(g, t, RLXVK_F32) : t;
        sum = sum.id ? rlxvk_add(g, sum, t) : t;
    }
    return sum;
}

/* Activations with kinks. In a sum of many terms, a step cannot avoid all the kinks. */
static bool has_kinks(const trial *t)
{
    static const char *const names[] = {"relu", "abs",  "hardswish", "hardsigmoid", "elu",
                                        "selu", "sign", "floor",     "ceil"};
    const char *activation = case_word(&t->spec, "activation", "");
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(activation, names[i]) == 0)
            return true;
    return false;
}

/* Functions with a kink at 0, or for which equal zeros are a tie. The derivative there is a matter
 * of the op's contract. */
static bool has_kink_at_zero(const trial *t)
{
    static const char *const names[] = {"abs", "relu", "elu",  "sign", "max",
                                        "min", "sort", "topk", "knn",  "hard"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strstr(t->line, names[i]))
            return true;
    return false;
}

static bool is_all_finite(const loss *l, uint32_t id)
{
    uint64_t offset = 0, words = words_of(l->v.graph, id);
    id = conform_source(l->v.graph, id, &offset);
    for (uint64_t i = 0; i < words; i++)
        if (!isfinite(l->v.words[id][offset + i]))
            return false;
    return true;
}

static void walk_second(const trial *t, op_kind op)
{
    rlxvk_tensor leaves[CASE_MAX_INPUTS], d[CASE_MAX_INPUTS], dd[CASE_MAX_INPUTS];
    rlxvk_tensor by[CASE_MAX_INPUTS];
    rlxvk_graph *once = differentiate(t, t->wrt, t->count, true, leaves, d), *twice;
    if (refused(t, once) || all_words(once) > MOST_GRADIENT / 4) {
        rlxvk_graph_destroy(once);
        return;
    }
    loss l = {.count = t->count};
    for (size_t i = 0; i < t->count; i++)
        l.nodes[i] = d[i].id - 1;
    rlxvk_tensor again[CASE_MAX_INPUTS];
    twice = differentiate(t, t->wrt, t->count, true, again, dd);
    for (size_t i = 0; i < t->count; i++)
        by[i] = again[t->wrt[i]];
    rlxvk_grad(twice, weighted(twice, dd, t->count), RLXVK_NONE, by, t->count, dd);
    if (refused(t, twice)) {
        second[op] = MAX(second[op], REFUSED);
    } else if (all_words(twice) <= MOST_GRADIENT) {
        loss gradient = {.count = 0};
        double size;
        loss_create(&gradient, t, twice, again);
        (void)loss_value(&gradient, &size);
        loss_create(&l, t, once, leaves);
        (void)loss_value(&l, &size);
        for (size_t i = 0; i < t->count && is_all_finite(&l, t->result.id - 1); i++) {
            outcome o = compare(t, &l, leaves[t->wrt[i]], gradient.v.words[dd[i].id - 1], 2);
            second[op] = MAX(second[op], o);
        }
        evaluation_destroy(&l.v);
        evaluation_destroy(&gradient.v);
    }
    rlxvk_graph_destroy(once);
    rlxvk_graph_destroy(twice);
}

/* ---- The walk ---- */

/* Differences do not apply to estimates, to gradients that are stopped on purpose, and to leaves
 * that are written. */
static bool is_estimated(const trial *t)
{
    static const char *const rows[] = {"round",         "quantize",          "dequantize",
                                       "fake_quantize", "fake_quantize_lsq", "stop_gradient",
                                       "accumulate"};
    if (strstr(t->line, "round") || strstr(t->line, ":constant") ||
        case_word(&t->spec, "expect", NULL) || case_word(&t->spec, "run", NULL))
        return true;
    for (uint32_t id = 0; id < t->graph->nodes.count; id++) {
        const node *n = graph_node(t->graph, id);
        if (node_writes(n))
            return true;
        for (size_t i = 0; i < COUNT(rows); i++)
            if (strcmp(node_row(n)->name, rows[i]) == 0)
                return true;
    }
    return false;
}

static void find_wrt(trial *t)
{
    const rlxvk_graph *g = t->graph;
    bool *reached = memory_zeroed(g->nodes.count + 1, sizeof *reached);
    assert_non_null(reached);
    reached[t->result.id - 1] = true;
    for (uint32_t id = t->result.id; id-- > 0;) {
        const node *n = graph_node(g, id);
        for (uint32_t i = 0; i < n->input_count && reached[id]; i++)
            reached[n->inputs[i]] |= gradient_flows((op_kind)n->op, i);
    }
    for (size_t i = 0; i < t->spec.input_count; i++)
        if ((t->spec.inputs[i].dtype == RLXVK_F32 || t->spec.inputs[i].dtype == RLXVK_C64) &&
            reached[t->leaves[i].id - 1])
            t->wrt[t->count++] = i;
    memory_free(reached);
}

/* Infinities, NaN and overflow are not tested here, so such words are replaced. */
static void make_finite(trial *t)
{
    for (size_t k = 0; k < t->count; k++)
        for (uint64_t w = 0; w < case_length(&t->spec.inputs[t->wrt[k]]); w++) {
            float *word = (float *)t->contents[t->wrt[k]] + w;
            *word = fabs(*word) < 1e4 ? *word : weight(w);
        }
}

/* Sets some words of the leaves with gradients to 0. */
static void put_zeros(trial *t)
{
    for (size_t k = 0; k < t->count; k++)
        for (uint64_t w = k; w < case_length(&t->spec.inputs[t->wrt[k]]); w += 3 + w % 2)
            ((float *)t->contents[t->wrt[k]])[w] = 0;
}

/* The contents depend on the number of the case within its op, so that cases of other ops do not
 * change them. */
static void walk_case(const char *line)
{
    static uint64_t numbers[OP_COUNT + 1];
    trial t = {.line = line};
    rlxvk_dtype dtype = RLXVK_I32;
    expect_ok(case_parse(line, &t.spec));
    op_kind op = op_find(t.spec.row);
    const conform_case given = {.line = line, .number = numbers[op]++};
    expect_ok(conform_build(&t.spec, &t.graph, t.leaves, &t.result));
    if (rlxvk_graph_status(t.graph) == RLXVK_OK)
        dtype = rlxvk_tensor_dtype(t.graph, t.result);
    bool suits = (dtype == RLXVK_F32 || dtype == RLXVK_C64) &&
                 words_of(t.graph, t.result.id - 1) > 0 && !case_word(&t.spec, "expect", NULL);
    if (suits)
        find_wrt(&t);
    if (suits && op != OP_COUNT)
        walk_refusals(&t, op);
    suits = suits && all_words(t.graph) <= MOST_WORDS;
    if (suits && t.count && !is_estimated(&t)) {
        expect_ok(conform_fill(&t.spec, &given, 1, t.contents));
        bool fresh = is_new(&t.spec);
        make_finite(&t);
        walk_first(&t, fresh);
        if (op != OP_COUNT && fresh && !has_kinks(&t)) {
            walk_second(&t, op);
            put_zeros(&t);
            if (!has_kink_at_zero(&t))
                walk_second(&t, op);
        }
        for (size_t i = 0; i < CASE_MAX_INPUTS; i++)
            memory_free(t.contents[i]);
    }
    rlxvk_graph_destroy(t.graph);
}

/* Small forms of conformance cases that are too large here, and cases that stay within a domain. */
static const char *const more_cases[] = {
    "acosh in=x:f32:20:range:1.5:9",
    "attention layout=bhsd mask=bias in=q:f32:1x2x3x4;k:f32:1x2x5x4;v:f32:1x2x5x4;mask:f32:1x2x3x5",
    "attention_backward layout=bhsd mask=bias bias=1 "
    "in=q:f32:1x2x3x4;k:f32:1x2x5x4;v:f32:1x2x5x4;mask:f32:1x2x3x5;dy:f32:1x2x3x4",
};

static bool is_elsewhere(const char *row, uint32_t operand)
{
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        if (strcmp(elsewhere[i].row, row) == 0 &&
            (!elsewhere[i].operands || elsewhere[i].operands >> operand & 1))
            return true;
    return false;
}

static void every_operand_is_told(void **state)
{
    static const char *const names[] = {"unseen", "flat", "refused", "confirmed"};
    struct case_list list = {0};
    size_t counts[4] = {0}, twice[4] = {0};
    (void)state;
    expect_ok(case_list_generate(&list));
    for (size_t i = 0; i < COUNT(more_cases); i++)
        walk_case(more_cases[i]);
    for (size_t i = 0; i < list.lines.count; i++)
        walk_case(list.lines.items[i]);
    case_list_destroy(&list);
    for (size_t i = 0; i < kinds.count; i++)
        memory_free(kinds.items[i].key);
    VECTOR_FREE(&kinds);
    for (size_t op = 0; op < OP_COUNT; op++) {
        const op_row *row = &op_table[op];
        uint32_t operands = row->most_inputs == UINT16_MAX ? 2 : row->most_inputs; /* all alike */
        for (uint32_t i = 0; i < MIN(operands, (uint32_t)MOST_OPERANDS); i++) {
            if (!gradient_flows((op_kind)op, i))
                continue;
            counts[first[op][i]]++;
            if (first[op][i] <= FLAT && !is_elsewhere(row->name, i)) {
                print_message("%s, operand %u: %s\n", row->name, i, names[first[op][i]]);
                wrong++;
            }
        }
        twice[second[op]]++;
    }
    print_message("operands: %zu confirmed, %zu refused; second derivatives of ops: %zu confirmed, "
                  "%zu refused, %zu zero; %zu and %zu words compared\n",
                  counts[CONFIRMED], counts[REFUSED], twice[CONFIRMED], twice[REFUSED], twice[FLAT],
                  compared[0], compared[1]);
    assert_int_equal(wrong, 0);
}

/* ---- The header's list ---- */

static char *read_header(void)
{
    FILE *file = fopen("include/rlxvk_train.h", "r");
    char *all = memory_zeroed(1 << 17, 1);
    assert_non_null(file);
    assert_non_null(all);
    assert_true(fread(all, 1, (1 << 17) - 1, file) > 1000);
    fclose(file);
    char *begin = strstr(all, "Operands without a gradient"), *end = strstr(begin, "*/");
    assert_non_null(end);
    *end = 0;
    memmove(all, begin, strlen(begin) + 1);
    return all;
}

/* Joins the lines of an item, for example "choose: where (condition), gather (indices) ..". */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == '\n' && strncmp(from, "\n *     ", 8) == 0) {
            from += 7; /* the item goes on */
            *to++ = ' ';
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

static const char *const whys[] = {"choose", "constant", "random", "estimated",
                                   "packed", "given",    "stopped"};
enum { SELECTS, CONSTANT, RANDOM, ESTIMATE, PACKED, STATE, STOPPED };

static const struct {
    const char *row, *names;
    uint32_t operands;
    int why;
} listed[] = {
#define NO_GRADIENT(row, operands, why, names) {#row, names, operands, why},
#include "op/gradient.def"
};

static void the_header_has_the_same_list(void **state)
{
    char *all = read_header();
    size_t items = 0, commas = 0;
    (void)state;
    join_lines(all);
    for (size_t i = 0; i < COUNT(listed); i++) {
        char line[32], item[128];
        snprintf(line, sizeof line, "\n *   %s: ", whys[listed[i].why]);
        const char *begin = strstr(all, line);
        assert_non_null(begin);
        begin += strlen(line) - 1;
        size_t length = strcspn(begin, "\n");
        snprintf(item, sizeof item, *listed[i].names ? " %s (%s)" : " %s", listed[i].row,
                 listed[i].names);
        const char *found = strstr(begin, item);
        while (found && !strchr(",\n", found[strlen(item)]))
            found = strstr(found + 1, item);
        if (!found || found >= begin + length)
            fail_msg("rlxvk_train.h does not list '%s' under '%s'", item + 1, line + 5);
        assert_true((listed[i].operands == EVERY_OPERAND) == !*listed[i].names);
        items++;
    }
    for (size_t w = 0; w < COUNT(whys); w++) { /* nothing else: count commas outside () */
        char line[32];
        int depth = 0;
        snprintf(line, sizeof line, "\n *   %s: ", whys[w]);
        const char *p = strstr(all, line);
        for (p += strlen(line); *p && *p != '\n'; p++) {
            depth += (*p == '(') - (*p == ')');
            commas += *p == ',' && depth == 0;
        }
    }
    assert_int_equal(commas + COUNT(whys), items);
    print_message("%zu ops listed\n", items);
    memory_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_has_the_same_list),
        cmocka_unit_test(every_operand_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
