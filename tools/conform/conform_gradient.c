/*
 * Compares gradients of a conformance case with central differences.
 *
 * The loss is a sum of the result's words with random weights, which are the seed of rlxvk_grad.
 * The host computes its derivative with respect to one word of a leaf, from differences over steps
 * h and h / 2. The steps are powers of two near 2^-7 of the word. Richardson's extrapolation joins
 * both; its error is of order h^4.
 *
 * Host functions compute in double from f32 operands, so only operands are rounded. If a graph has
 * several nodes, the values between them are rounded, too; then the results of both steps disagree.
 * In that case, or at a kink, the word tells nothing and is left out.
 *
 * An opt-in precision makes products less exact, both those of the gradient and those of the
 * forward pass that it depends on. So the bound of a word is wider by the error that this can
 * cause.
 */
#include "conform/conform.h"
#include "exec/executable.h"
#include "op/gradient.h"
#include "op/conv/conv.h"
#include "op/matmul/matmul.h"

#include <rlxvk_train.h>

#include <math.h>
#include <string.h>

#define SEED_NAME    "conform.seed"
#define MOST_WORDS   40000u  /* in all nodes; larger cases are passed over */
#define MOST_WORK    600000u /* words to evaluate for one leaf, at most */
#define MOST_PROBES  24u     /* words to test in one leaf, at most */
#define RELATIVE     2e-4    /* accepted error, relative to the leaf's largest gradient */
#define DISAGREEMENT 2e-3    /* if the two steps disagree by more, the word is left out */

typedef struct check {
    const conform_setup *setup;
    const conform_case *given;
    conform_result *result;
    case_spec spec;
    void *contents[CASE_MAX_INPUTS];
    rlxvk_graph *graph, *plain; /* with gradients; without */
    rlxvk_tensor leaves[CASE_MAX_INPUTS], output;
    rlxvk_tensor variables[CASE_MAX_INPUTS + 1];   /* in `graph`: the leaves, then the seed */
    size_t differentiated[CASE_MAX_INPUTS], count; /* leaves, in the order of the graph's outputs */
    float *seed, *got[CASE_MAX_INPUTS];
    uint64_t length;  /* words of the result */
    double magnitude; /* sum of the last loss's |terms| */
    double largest;   /* the largest |term| */
    bool *reached;    /* for each node of `plain`: find_reached */
    bool special;     /* an operand has NaN or infinities, so a product may be either */
    double allowed[CASE_MAX_INPUTS][MOST_PROBES]; /* for the tested words: error that the precision
                                                     adds */
    evaluation reference;
    rlxvk_executable *executable;
} check;

static uint64_t words_of(const rlxvk_graph *g, rlxvk_tensor t)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, t);
    return shape_numel(&shape) * (rlxvk_tensor_dtype(g, t) == RLXVK_C64 ? 2 : 1);
}

/* Finds the nodes to which the result passes a gradient, according to gradient.def. */
static rlxvk_status find_reached(check *k)
{
    const rlxvk_graph *g = k->plain;
    k->reached = memory_zeroed(g->nodes.count + 1, sizeof *k->reached);
    if (!k->reached)
        return status_fail_memory("nodes with gradients");
    k->reached[k->output.id - 1] = true;
    for (uint32_t id = k->output.id; id-- > 0;) {
        const node *n = graph_node(g, id);
        for (uint32_t i = 0; i < n->input_count && k->reached[id]; i++)
            k->reached[n->inputs[i]] |= gradient_flows((op_kind)n->op, i);
    }
    return RLXVK_OK;
}

static bool is_differentiated(const check *k, size_t leaf)
{
    rlxvk_dtype dtype = k->spec.inputs[leaf].dtype;
    return (dtype == RLXVK_F32 || dtype == RLXVK_C64) && k->reached[k->leaves[leaf].id - 1];
}

/* ---- The host's side ---- */

/* The loss for the present contents of the leaves. */
static rlxvk_status evaluate_loss(check *k, double *out)
{
    evaluation *v = &k->reference;
    uint64_t first;
    uint32_t id = conform_source(k->plain, k->output.id - 1, &first);
    rlxvk_status status = evaluation_run(v);
    *out = k->magnitude = k->largest = 0;
    for (uint64_t i = 0; status == RLXVK_OK && i < k->length; i++) {
        double term =
            k->seed[i] * (v->exact[id] ? v->exact[id][first + i] : (double)v->words[id][first + i]);
        *out += term;
        k->magnitude += fabs(term);
        k->largest = fmax(k->largest, fabs(term));
    }
    return status;
}

/* The loss at word + step, and the true distance, because the sum is rounded to f32. */
static rlxvk_status probe(check *k, float *word, double step, double *out_loss,
                          double *out_distance)
{
    float before = *word;
    *word = (float)(before + step);
    *out_distance = (double)*word - before;
    rlxvk_status status = evaluate_loss(k, out_loss);
    *word = before;
    return status;
}

typedef struct slopes {
    double middle, gap; /* slope of the central difference; right slope - left slope */
    double noise;       /* rounding error of doubles in the slopes */
} slopes;

static rlxvk_status differences(check *k, float *word, double step, double loss, slopes *out)
{
    double right, left, forth, back;
    rlxvk_status status;
    TRY(probe(k, word, step, &right, &forth));
    TRY(probe(k, word, -step, &left, &back));
    out->middle = (right - left) / (forth - back);
    out->gap = (right - loss) / forth - (left - loss) / back;
    out->noise = 0x1p-50 * k->magnitude / (forth - back);
error:
    return status;
}

typedef struct derivative {
    double value, unsure; /* unsure: four times the disagreement of the steps */
    bool smooth;          /* false at a kink, because the gap does not shrink with the step; also if
                             rounding is too large */
} derivative;

static rlxvk_status derive_over(check *k, float *word, double step, double loss, double scale,
                                derivative *out)
{
    slopes wide, narrow;
    rlxvk_status status;
    TRY(differences(k, word, step, loss, &wide));
    TRY(differences(k, word, step / 2, loss, &narrow));
    out->value = (4 * narrow.middle - wide.middle) / 3;
    out->unsure = 4 * fabs(wide.middle - narrow.middle);
    double accepted = DISAGREEMENT * fmax(scale, fabs(out->value));
    out->smooth = isfinite(out->value) && out->unsure <= 4 * accepted &&
                  fabs(2 * narrow.gap - wide.gap) + narrow.noise <= accepted / 20;
error:
    return status;
}

/* Takes a step proportional to the word. If that fails or gives 0, it tries 2^-10 if that is
 * larger, because a small step may be lost among the loss's other terms. Regions begin with at
 * least 2^-10, because the host rounds their steps, too. */
static rlxvk_status derive(check *k, float *word, double loss, double scale, derivative *out)
{
    double step = *word != 0 ? fmin(exp2(floor(log2(fabs(*word))) - 7), 0x1p-4) : 0x1p-10;
    if (strcmp(k->spec.row, "elementwise_region") == 0 ||
        strcmp(k->spec.row, "batch_elementwise_region") == 0)
        step = fmax(step, 0x1p-10);
    rlxvk_status status = derive_over(k, word, step, loss, scale, out);
    if (status == RLXVK_OK && (!out->smooth || out->value == 0) && step < 0x1p-10)
        status = derive_over(k, word, 0x1p-10, loss, scale, out);
    return status;
}

/* ---- Building ---- */

static rlxvk_status build(check *k)
{
    rlxvk_tensor wrt[CASE_MAX_INPUTS], gradients[CASE_MAX_INPUTS], output;
    rlxvk_status status;
    TRY(conform_build(&k->spec, &k->graph, k->variables, &output));
    for (size_t i = 0; i < k->spec.input_count; i++)
        if (is_differentiated(k, i)) {
            wrt[k->count] = k->variables[i];
            k->differentiated[k->count++] = i;
        }
    rlxvk_tensor seed = rlxvk_input(k->graph, SEED_NAME, rlxvk_tensor_dtype(k->graph, output),
                                    rlxvk_tensor_shape(k->graph, output));
    k->variables[k->spec.input_count] = seed;
    if (k->count)
        rlxvk_grad(k->graph, output, seed, wrt, k->count, gradients);
    for (size_t i = 0; i < k->count; i++)
        rlxvk_graph_output(k->graph, gradients[i]);
    if (rlxvk_graph_status(k->graph) != RLXVK_OK)
        TRY(status_fail(rlxvk_graph_status(k->graph), "%s", rlxvk_graph_error(k->graph)));
error:
    return status;
}

/* Whether differences cannot judge the op's gradient. The gradient is an estimate or zero on
 * purpose, or the op writes a leaf, which then has other contents before and after it. */
static bool is_estimated(const node *n)
{
    static const char *const rows[] = {"round", "quantize", "dequantize", "fake_quantize",
                                       "fake_quantize_lsq"};
    const matmul_attributes *m = n->attributes;
    const conv_attributes *c = n->attributes;
    if (gradient_ends((op_kind)n->op) || node_writes(n) ||
        (n->op == OP_fused_matmul_bias_act && m->activation == RLXVK_ACTIVATION_ROUND) ||
        (n->op == OP_fused_conv && c->activation == RLXVK_ACTIVATION_ROUND))
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (strcmp(node_row(n)->name, rows[i]) == 0)
            return true;
    return false;
}

/* Whether the case can be tested: its result is real or complex, depends on leaves and is small. */
static bool is_suitable(const check *k)
{
    if (case_real(&k->spec, "differences", 1) == 0)
        return false;
    uint64_t words = 0;
    const char *steps = case_word(&k->spec, "steps", case_word(&k->spec, "chain", ""));
    if (strstr(steps, "round"))
        return false;
    for (uint32_t id = 0; id < k->plain->nodes.count; id++)
        if (is_estimated(graph_node(k->plain, id)))
            return false;
    rlxvk_dtype dtype = rlxvk_tensor_dtype(k->plain, k->output);
    for (uint32_t id = 0; id < k->plain->nodes.count; id++)
        words += words_of(k->plain, tensor_of(k->plain, id));
    return words <= MOST_WORDS && (dtype == RLXVK_F32 || dtype == RLXVK_C64) &&
           words_of(k->plain, k->output) > 0;
}

/* Makes denormals 0, because drivers may treat them so and then take another branch. */
static void flush_leaves(check *k)
{
    for (size_t i = 0; i < k->spec.input_count && !k->given->golden; i++)
        for (uint64_t w = 0;
             !case_is_raw(&k->spec.inputs[i]) && w < case_length(&k->spec.inputs[i]); w++) {
            float *word = (float *)k->contents[i] + w;
            *word = (float)flush_denormal(*word);
        }
}

static rlxvk_status prepare(check *k)
{
    rlxvk_status status;
    flush_leaves(k);
    TRY(evaluation_create(k->plain, &k->reference));
    k->reference.values_only = true;
    for (size_t i = 0; i < k->spec.input_count; i++)
        TRY(evaluation_set(&k->reference, k->leaves[i].id - 1, k->contents[i]));
    k->length = words_of(k->plain, k->output);
    k->seed = memory_zeroed(k->length + 1, sizeof *k->seed);
    for (size_t i = 0; i < k->count; i++)
        for (uint64_t w = 0; w < case_length(&k->spec.inputs[k->differentiated[i]]); w++)
            k->special |= !isfinite(((const float *)k->contents[k->differentiated[i]])[w]);
    TRY(k->seed ? RLXVK_OK : status_fail_memory("seed"));
    TRY(fill_words("unit", k->result->seed + k->given->number, k->length, k->seed));
error:
    return status;
}

/* ---- The device's side ---- */

static rlxvk_status run(check *k)
{
    rlxvk_run_input inputs[CASE_MAX_INPUTS + 1];
    rlxvk_run_output outputs[CASE_MAX_INPUTS];
    rlxvk_compile_options options = {.precision = case_precision(&k->spec, k->setup->precision),
                                     .timeout_ns = k->setup->timeout_ns};
    size_t input_count = 0;
    rlxvk_status status;
    TRY(rlxvk_compile(k->setup->context, k->graph, &options, &k->executable));
    rlxvk_plan_report plan;
    rlxvk_executable_plan(k->executable, &plan);
    k->result->verdict = plan.host_steps ? VERDICT_HOST_ONLY : VERDICT_PASSED;
    for (size_t i = 0; i < k->spec.input_count; i++) {
        const case_input *leaf = &k->spec.inputs[i];
        if (case_is_raw(leaf))
            TRY(rlxvk_set_param_bytes(k->executable, leaf->name, k->contents[i],
                                      case_length(leaf)));
        else if (case_is_param(leaf))
            TRY(rlxvk_set_param_typed(k->executable, leaf->name, k->contents[i],
                                      case_length(leaf) * sizeof(float), RLXVK_F32));
        else
            inputs[input_count++] =
                (rlxvk_run_input){leaf->name, k->contents[i], case_length(leaf), .f32_words = true};
    }
    inputs[input_count++] = (rlxvk_run_input){SEED_NAME, k->seed, k->length, .f32_words = true};
    for (size_t i = 0; i < k->count; i++) {
        uint64_t length = case_length(&k->spec.inputs[k->differentiated[i]]);
        k->got[i] = memory_zeroed(length + 1, sizeof(float));
        TRY(k->got[i] ? RLXVK_OK : status_fail_memory("gradients"));
        outputs[i] = (rlxvk_run_output){.index = i,
                                        .buffer = k->got[i],
                                        .length = length,
                                        .f32_words = true};
    }
    TRY(rlxvk_run(k->executable, inputs, input_count, outputs, k->count));
error:
    return status;
}

/* ---- Comparison ---- */

static double largest_of(const float *words, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++)
        if (isfinite(words[i]))
            largest = fmax(largest, fabs((double)words[i]));
    return largest;
}

static void judge(check *k, size_t index, uint64_t word, const derivative *wanted, double bound)
{
    conform_result *result = k->result;
    double got = k->got[index][word];
    double error = isfinite(got) ? fabs(got - wanted->value) / bound : INFINITY;
    result->elements++;
    if (error > result->error) {
        result->error = error;
        if (error > 1) {
            text out = {result->message, sizeof result->message, 0};
            result->verdict = VERDICT_FAILED;
            text_append(&out,
                        "gradient of '%s' at %llu: got %.9g, the differences say %.9g; bound %.3g",
                        k->spec.inputs[k->differentiated[index]].name, (unsigned long long)word,
                        got, wanted->value, bound);
        }
    }
}

/* How many words of the leaf to test, within the budget. They are spread over the leaf. */
static uint64_t probe_count(const check *k, size_t index)
{
    uint64_t words = 1, count = case_length(&k->spec.inputs[k->differentiated[index]]);
    for (uint32_t id = 0; id < k->plain->nodes.count; id++)
        words += words_of(k->plain, tensor_of(k->plain, id));
    return MIN(MIN(count, MOST_PROBES), MAX(MOST_WORK / (4 * words), 3));
}

static uint64_t probed_word(const check *k, size_t index, uint64_t probe)
{
    uint64_t count = case_length(&k->spec.inputs[k->differentiated[index]]);
    return MIN((probe * count + count / 2) / probe_count(k, index), count - 1);
}

static rlxvk_status allow_for_precision(check *k)
{
    rlxvk_precision precision = k->executable->program->options.precision;
    conform_word words[CASE_MAX_INPUTS * MOST_PROBES];
    double allowed[ARRAY_COUNT(words)], *next = allowed;
    evaluation v = {0};
    size_t count = 0;
    rlxvk_status status = RLXVK_OK;
    if (precision == RLXVK_PRECISION_F32)
        return RLXVK_OK;
    for (size_t i = 0; i < k->count; i++)
        for (uint64_t p = 0; p < probe_count(k, i); p++)
            words[count++] = (conform_word){k->graph->outputs.items[i], probed_word(k, i, p)};
    TRY(evaluation_create(k->graph, &v));
    for (size_t i = 0; i < k->spec.input_count; i++)
        TRY(evaluation_set(&v, k->variables[i].id - 1, k->contents[i]));
    TRY(evaluation_set(&v, k->variables[k->spec.input_count].id - 1, k->seed));
    TRY(conform_precision_errors(&v, precision, words, count, allowed));
    for (size_t i = 0; i < k->count; next += probe_count(k, i++))
        memcpy(k->allowed[i], next, probe_count(k, i) * sizeof *next);
error:
    evaluation_destroy(&v);
    return status;
}

static rlxvk_status compare_leaf(check *k, size_t index, double loss)
{
    size_t leaf = k->differentiated[index];
    uint64_t probes = probe_count(k, index);
    double scale = largest_of(k->got[index], case_length(&k->spec.inputs[leaf]));
    rlxvk_status status = RLXVK_OK;
    for (uint64_t i = 0; i < probes && status == RLXVK_OK; i++) {
        uint64_t word = probed_word(k, index, i);
        float *at = &k->reference.words[k->leaves[leaf].id - 1][word];
        derivative d = {0};
        status = derive(k, at, loss, scale, &d);
        bool judged = d.smooth && (!k->special || isfinite(k->got[index][word]));
        double bound = RELATIVE * fmax(scale, fabs(d.value)) + d.unsure + k->allowed[index][i] +
                       1e-6 * fmax(k->largest, 1);
        if (status == RLXVK_OK && judged)
            judge(k, index, word, &d, bound);
    }
    return status;
}

static rlxvk_status execute(check *k)
{
    double loss;
    rlxvk_status status;
    bool refusal = case_word(&k->spec, "expect", NULL) || case_word(&k->spec, "run", NULL);
    k->result->passed_over = true;
    k->result->verdict = VERDICT_UNSUPPORTED;
    if (refusal)
        return RLXVK_OK;
    TRY(conform_fill(&k->spec, k->given, k->result->seed, k->contents));
    TRY(conform_build(&k->spec, &k->plain, k->leaves, &k->output));
    TRY(rlxvk_graph_status(k->plain));
    if (!is_suitable(k))
        return RLXVK_OK;
    TRY(find_reached(k));
    TRY(build(k));
    if (!k->count)
        return RLXVK_OK;
    TRY(prepare(k));
    TRY(evaluate_loss(k, &loss));
    if (!isfinite(loss) || fabs(loss) > 1e12)
        return RLXVK_OK;
    k->result->passed_over = false;
    TRY(run(k));
    status = allow_for_precision(k);
    k->result->passed_over = status == RLXVK_E_TOO_LARGE;
    if (status != RLXVK_OK)
        return k->result->passed_over ? RLXVK_OK : status;
    for (size_t i = 0; i < k->count; i++)
        TRY(compare_leaf(k, i, loss));
    k->result->passed_over = k->result->elements == 0;
error:
    return status;
}

static void check_destroy(check *k)
{
    for (size_t i = 0; i < CASE_MAX_INPUTS; i++) {
        if (!k->given->golden)
            memory_free(k->contents[i]);
        memory_free(k->got[i]);
    }
    memory_free(k->seed);
    memory_free(k->reached);
    rlxvk_executable_destroy(k->executable);
    if (k->reference.graph)
        evaluation_destroy(&k->reference);
    rlxvk_graph_destroy(k->graph);
    rlxvk_graph_destroy(k->plain);
}

static void run_seed(const conform_setup *setup, const conform_case *c, uint64_t seed,
                     conform_result *out)
{
    check k = {.setup = setup, .given = c, .result = out};
    rlxvk_status status = RLXVK_OK;
    *out = (conform_result){.verdict = VERDICT_FAILED, .seed = seed};
    if (c->golden)
        k.spec = c->golden->spec;
    else
        status = case_parse(c->line, &k.spec);
    if (status == RLXVK_OK)
        status = execute(&k);
    if (status != RLXVK_OK) {
        text message = {out->message, sizeof out->message, 0};
        out->passed_over = false;
        out->verdict = status == RLXVK_E_UNSUPPORTED ? VERDICT_UNSUPPORTED : VERDICT_FAILED;
        text_append(&message, "%s: %s", rlxvk_status_name(status), rlxvk_last_error());
    }
    check_destroy(&k);
}

/* Seeds whose values cannot be tested are passed over. If all are, so is the case. */
void conform_run_gradients(const conform_setup *setup, const conform_case *c, conform_result *out)
{
    conform_result one;
    run_seed(setup, c, setup->seeds[0], out);
    for (size_t i = 1; i < setup->seed_count && !c->golden; i++) {
        if (out->verdict == VERDICT_FAILED && !out->passed_over)
            return;
        run_seed(setup, c, setup->seeds[i], &one);
        if (one.passed_over)
            continue;
        one.error = MAX(one.error, out->error);
        one.elements += out->elements;
        *out = one;
    }
}
