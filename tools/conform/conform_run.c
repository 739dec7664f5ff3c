/*
 * Runs one conformance case: leaves -> graph -> reference on the host -> compile -> two runs, which
 * must agree bit for bit -> comparison. It keeps nothing between cases.
 */
#include "conform/conform.h"
#include "exec/executable.h"
#include "op/evaluation.h"
#include "op/matmul/matmul.h"
#include "op/random/random.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CHAINED_PRODUCTS = 8 }; /* upper limit in a composite */

typedef struct session {
    const conform_setup *setup;
    const conform_case *given;
    conform_result *result;
    case_spec spec;
    void *contents[CASE_MAX_INPUTS]; /* owned, unless the case is golden */
    rlxvk_graph *graph;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], output;
    rlxvk_tensor whole; /* read after a run: the output, its copy, or what it is the end of */
    evaluation reference;
    uint32_t node;   /* has the reference: the output, or the owner of the view's memory */
    uint64_t offset; /* ... first element of the output in it */
    rlxvk_executable *executable;
    bool raw; /* the output is read as bytes */
    uint64_t count;
    double within; /* the bound of all elements if the case sets one (within=), else 0 */
    double *slack; /* golden: added to each bound because attributes are rounded; NULL: none */
    void *got[2];  /* results of the two runs */
    rlxvk_precision precision;
} session;

/* ---- Comparison ---- */

static double flush(double value)
{
    return fabs(value) < FLT_MIN ? 0 : value;
}

float conform_moved(double reference, double bound, double bounds)
{
    const double rounds_to_infinity = 0x1.ffffffp127;
    double target = reference + bounds * bound, away = fabs(bounds) * bound;
    bool wrong = fabs(bounds) > 1;
    float moved = (float)target;
    if (!isfinite(reference) || fabs(target) + bound >= rounds_to_infinity ||
        fabs(reference) + bound >= rounds_to_infinity)
        return NAN;
    if (wrong && fabs(moved - reference) < away)
        moved = nextafterf(moved, bounds > 0 ? INFINITY : -INFINITY);
    if (!wrong && fabs(moved - reference) > away)
        moved = nextafterf(moved, bounds > 0 ? -INFINITY : INFINITY);
    if (flush(moved) == 0 || (flush(reference) == 0 && reference != 0))
        return NAN;
    return isfinite(moved) && (wrong || fabs(moved - reference) <= away) ? moved : NAN;
}

static float got_element(const session *s, const void *got, uint64_t i)
{
    if (!s->raw)
        return ((const float *)got)[i];
    return s->spec.input_count && rlxvk_tensor_dtype(s->graph, s->output) == RLXVK_I8
               ? ((const int8_t *)got)[i]
               : ((const uint8_t *)got)[i];
}

/* The reference of element i. If the output is a leaf, the reference is the leaf's own word,
 * because it has no exact value. */
static double wanted_element(const session *s, uint64_t i)
{
    const evaluation *v = &s->reference;
    uint64_t at = s->offset + i;
    if (s->given->golden)
        return npy_element(&s->given->golden->expected, i);
    if (s->raw)
        return got_element(s, v->bytes[s->node], at);
    return v->exact[s->node] ? v->exact[s->node][at] : (double)v->words[s->node][at];
}

/* The case's own bound (within=, see cases.h), used if errors of several nodes add up. The last
 * node's own bound may be larger. An opt-in precision adds its relative error (rlxvk_precision)
 * once for each of the few products that a composite chains. */
static double bound_within(const session *s)
{
    double factor = case_real(&s->spec, "within", 0), largest = 0;
    if (factor > 0)
        factor += CHAINED_PRODUCTS * matmul_precision_bound(s->precision, 0, 1, 0, 0);
    for (uint64_t i = 0; factor > 0 && i < s->count; i++)
        if (isfinite(wanted_element(s, i)))
            largest = fmax(largest, fabs(wanted_element(s, i)));
    return factor > 0 ? 1e-6 + factor * largest : 0;
}

static double bound_of(const session *s, uint64_t i)
{
    const double *bounds = s->reference.bounds[s->node];
    double slack = s->slack ? s->slack[i] : 0, own = bounds ? bounds[s->offset + i] : 0;
    return fmax(s->within, own) + slack;
}

/* "[2, 0, 5] (flat 35)" */
static void describe_index(const session *s, uint64_t flat, text *out)
{
    rlxvk_shape shape = rlxvk_tensor_shape(s->graph, s->output);
    uint64_t elements = shape_numel(&shape), rest = flat / MAX(s->count / MAX(elements, 1), 1);
    uint64_t below = elements;
    text_append(out, "[");
    for (uint32_t i = 0; i < shape.rank; i++) {
        below /= (uint64_t)shape.dims[i];
        text_append(out, "%s%llu", i ? ", " : "", (unsigned long long)(rest / below));
        rest %= below;
    }
    text_append(out, "] (flat %llu)", (unsigned long long)flat);
}

static void describe_worst(session *s, uint64_t worst, uint64_t wrong)
{
    text out = {s->result->message, sizeof s->result->message, 0};
    double error = s->result->error, bound = bound_of(s, worst);
    text_append(&out, "worst element ");
    describe_index(s, worst, &out);
    text_append(&out, ": got %.9g, expected %.12g, ", (double)got_element(s, s->got[0], worst),
                wanted_element(s, worst));
    if (isinf(error))
        text_append(&out, "bound %.3g", bound);
    else
        text_append(&out, "error %.4g of the bound %.3g", error, bound);
    text_append(&out, "; %llu of %llu elements wrong", (unsigned long long)wrong,
                (unsigned long long)s->count);
}

static double element_error(const session *s, uint64_t i)
{
    return evaluation_error(got_element(s, s->got[0], i), wanted_element(s, i), bound_of(s, i));
}

static void draw(session *s)
{
    conform_picture_begin(&s->result->picture, s->count);
    for (uint64_t i = 0; i < s->count; i++)
        conform_picture_take(&s->result->picture, i, element_error(s, i));
}

static void compare(session *s)
{
    uint64_t worst = 0, wrong = 0;
    conform_result *result = s->result;
    s->within = bound_within(s);
    for (uint64_t i = 0; i < s->count; i++) {
        double error = element_error(s, i), bound = bound_of(s, i);
        wrong += error > 1;
        result->unjudged += evaluation_is_open(wanted_element(s, i), bound);
        result->bounded += bound > 0 && !isinf(bound);
        if (error > result->error) {
            result->error = error;
            worst = i;
        }
    }
    result->elements += s->count;
    if (wrong) {
        result->verdict = VERDICT_FAILED;
        describe_worst(s, worst, wrong);
        draw(s);
    }
}

/* ---- Are the bounds tight? ---- */

/* Whether element i would pass if it were off by so many bounds. */
static bool takes_moved(const session *s, uint64_t i, double bounds)
{
    double reference = wanted_element(s, i), bound = bound_of(s, i);
    float moved = conform_moved(reference, bound, bounds);
    bool right = fabs(bounds) <= 1;
    return isnan(moved) ? right : evaluation_error(moved, reference, bound) <= 1;
}

/* Whether a result of only zeros would pass, although the reference of some judged element is not
 * zero. Such a case cannot tell the kernel from one that does nothing. */
static bool takes_zeros(const session *s)
{
    bool all_zero = true;
    for (uint64_t i = 0; i < s->count; i++) {
        double wanted = wanted_element(s, i);
        if (evaluation_error(0, wanted, bound_of(s, i)) > 1)
            return false;
        all_zero = all_zero && (flush((float)wanted) == 0 || isinf(bound_of(s, i)));
    }
    return !all_zero;
}

static void fail_bounds(session *s, const char *what, uint64_t i)
{
    text out = {s->result->message, sizeof s->result->message, 0};
    s->result->verdict = VERDICT_FAILED;
    text_append(&out, "%s: element ", what);
    describe_index(s, i, &out);
    text_append(&out, ", expected %.12g, bound %.3g", wanted_element(s, i), bound_of(s, i));
}

/* Tests that the bounds are tight. In every element with a finite bound, a result that is 1.5
 * bounds off must fail, and one that is half a bound off must pass. Also notes whether zeros would
 * pass. */
static void check_bounds(session *s)
{
    static const double moves[] = {1.5, -1.5, 0.5, -0.5};
    for (uint64_t i = 0; i < s->count && s->result->verdict != VERDICT_FAILED; i++)
        for (size_t k = 0; k < ARRAY_COUNT(moves) && bound_of(s, i) > 0; k++)
            if (!isinf(bound_of(s, i)) && takes_moved(s, i, moves[k]) != (fabs(moves[k]) <= 1))
                fail_bounds(s,
                            fabs(moves[k]) > 1 ? "a result 1.5 bounds off passes"
                                               : "a result half a bound off fails",
                            i);
    s->result->takes_zeros = s->result->takes_zeros || takes_zeros(s);
}

/* If the output is a view, its reference comes from the node that owns the memory, because that
 * node has the bounds. The view's own host function must give the same value. */
static bool says_the_same(const session *s, uint64_t i)
{
    const evaluation *v = &s->reference;
    uint32_t view = s->output.id - 1;
    if (s->raw)
        return v->bytes[view][i] == v->bytes[s->node][s->offset + i];
    float said = v->words[view][i], meant = v->words[s->node][s->offset + i];
    return said == meant || (isnan(said) && isnan(meant));
}

static void check_view(session *s)
{
    for (uint64_t i = 0; s->node != s->output.id - 1 && i < s->count; i++)
        if (s->result->verdict != VERDICT_FAILED && !says_the_same(s, i))
            fail_bounds(s, "the host function of a view differs from its source", i);
}

/* ---- Steps ---- */

/* Judges a case that must not build. It passes if the status is the expected one and the text names
 * the op. */
static void judge_refusal(session *s, const char *expected)
{
    rlxvk_status status = rlxvk_graph_status(s->graph);
    const char *sentence = rlxvk_graph_error(s->graph);
    if (strcmp(rlxvk_status_name(status), expected) == 0 && strstr(sentence, s->spec.row)) {
        s->result->verdict = VERDICT_PASSED;
        return;
    }
    text out = {s->result->message, sizeof s->result->message, 0};
    text_append(&out, "expected %s with a text that names the op; got %s: %s", expected,
                rlxvk_status_name(status), sentence);
}

static rlxvk_rng_options case_rng(const session *s)
{
    static const char *const names[] = {"philox", "minstd", "zero"};
    rlxvk_rng_options rng = rng_defaults;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcmp(case_word(&s->spec, "backend", names[0]), names[i]) == 0)
            rng.backend = (rlxvk_rng_backend)i;
    return rng;
}

static rlxvk_status set_rng_state(session *s)
{
    uint32_t id = graph_find(s->graph, OP_input, RNG_STATE_NAME);
    rlxvk_rng_options rng = case_rng(s);
    float words[RNG_STATE_WORDS];
    if (id == NODE_NONE)
        return RLXVK_OK;
    random_state_write(&rng, words);
    return evaluation_set(&s->reference, id, words);
}

static rlxvk_status run_reference(session *s, float open_as)
{
    rlxvk_status status;
    s->reference.open_as = open_as;
    TRY(set_rng_state(s));
    for (size_t i = 0; i < s->spec.input_count; i++) /* again, because ops may have written them */
        TRY(evaluation_set(&s->reference, s->leaves[i].id - 1, s->contents[i]));
    TRY(evaluation_run(&s->reference));
error:
    return status;
}

/* Whether a node before the judged one has an element that its reference leaves open. */
static bool has_open_operands(const session *s)
{
    const evaluation *v = &s->reference;
    for (uint32_t id = 0; id < s->node; id++)
        for (uint64_t i = 0;
             v->bounds[id] && i < op_host_length(s->graph, graph_node(s->graph, id)); i++)
            if (evaluation_is_open(v->exact[id][i], v->bounds[id][i]))
                return true;
    return false;
}

/* Elements that depend on open elements are open, too. To find them, this gives open elements other
 * values and looks which results change. */
static rlxvk_status spread_open(session *s)
{
    static const float others[] = {NAN, INFINITY, -INFINITY, 1};
    const evaluation *v = &s->reference;
    double *first = NULL, *exact = v->exact[s->node];
    bool *open = NULL;
    rlxvk_status status = RLXVK_OK;
    if (!exact || !has_open_operands(s))
        return RLXVK_OK;
    exact += s->offset;
    first = memory_zeroed(s->count + 1, sizeof *first);
    open = memory_zeroed(s->count + 1, sizeof *open);
    TRY(first && open ? RLXVK_OK : status_fail_memory("open elements"));
    memcpy(first, exact, s->count * sizeof *first);
    for (size_t k = 0; k < ARRAY_COUNT(others); k++) {
        TRY(run_reference(s, others[k]));
        for (uint64_t i = 0; i < s->count; i++)
            open[i] |= exact[i] != first[i] && !(isnan(exact[i]) && isnan(first[i]));
    }
    TRY(run_reference(s, 0));
    for (uint64_t i = 0; i < s->count; i++)
        if (open[i]) {
            exact[i] = 0;
            v->bounds[s->node][s->offset + i] = INFINITY;
        }
error:
    memory_free(first);
    memory_free(open);
    return status;
}

static rlxvk_status evaluate(session *s)
{
    rlxvk_status status;
    TRY(evaluation_create(s->graph, &s->reference));
    s->reference.precision = s->precision;
    TRY(run_reference(s, 0));
    rlxvk_shape shape = rlxvk_tensor_shape(s->graph, s->output);
    s->node = conform_source(s->graph, s->output.id - 1, &s->offset);
    s->raw = s->reference.bytes[s->output.id - 1] != NULL;
    s->count = shape_numel(&shape);
    s->count *= rlxvk_tensor_dtype(s->graph, s->output) == RLXVK_C64 ? 2 : 1;
    TRY(spread_open(s));
    if (s->given->golden && !golden_has_length(s->given->golden, s->count))
        TRY(status_fail(RLXVK_E_SHAPE, "the golden output has %llu elements, the graph's %llu",
                        (unsigned long long)s->given->golden->expected.numel,
                        (unsigned long long)s->count));
    if (s->given->golden && !s->raw && s->reference.exact[s->node]) {
        const golden_reference r = {s->contents, s->precision,
                                    s->reference.exact[s->node] + s->offset, s->count};
        TRY(golden_rounding(&s->spec, &r, &s->slack));
    }
error:
    return status;
}

static uint64_t count_dispatches(const rlxvk_executable *e, const char *row)
{
    uint64_t count = 0;
    for (size_t i = 0; i < e->program->schedule.dispatches.count; i++)
        count += e->program->schedule.dispatches.items[i].variant == row;
    return count;
}

static void pass_over(conform_result *result)
{
    result->passed_over = true;
    result->verdict = VERDICT_UNSUPPORTED;
}

static rlxvk_status compile(session *s)
{
    rlxvk_rng_options rng = case_rng(s);
    rlxvk_compile_options options = {.rng = &rng};
    option_variants variants;
    rlxvk_status status = conform_compile_options(&s->spec, s->setup, &variants, &options);
    if (status != RLXVK_OK)
        return status;
    status = rlxvk_compile(s->setup->context, s->graph, &options, &s->executable);
    if (status != RLXVK_OK)
        return status;
    s->precision =
        s->executable->program->options.precision; /* RLXVK_PRECISION's, if the case has none */
    if (s->setup->row) {
        s->result->dispatches = count_dispatches(s->executable, s->setup->row);
        if (!s->result->dispatches) {
            pass_over(s->result);
            return RLXVK_OK;
        }
    }
    rlxvk_plan_report plan;
    rlxvk_executable_plan(s->executable, &plan);
    s->result->verdict = plan.host_steps ? VERDICT_HOST_ONLY : VERDICT_PASSED;
    return RLXVK_OK;
}

static rlxvk_status set_params(session *s)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < s->spec.input_count && status == RLXVK_OK; i++) {
        const case_input *leaf = &s->spec.inputs[i];
        if (case_is_raw(leaf))
            status =
                rlxvk_set_param_bytes(s->executable, leaf->name, s->contents[i], case_length(leaf));
        else if (case_is_param(leaf))
            status = rlxvk_set_param_typed(s->executable, leaf->name, s->contents[i],
                                           case_length(leaf) * sizeof(float), RLXVK_F32);
    }
    return status;
}

static uint64_t elements_before(const session *s)
{
    rlxvk_shape whole = rlxvk_tensor_shape(s->graph, s->whole);
    rlxvk_shape own = rlxvk_tensor_shape(s->graph, s->output);
    return shape_numel(&whole) - shape_numel(&own);
}

static rlxvk_status run_once(session *s, int turn)
{
    rlxvk_run_input inputs[CASE_MAX_INPUTS];
    size_t input_count = 0, size = s->raw ? 1 : sizeof(float);
    uint64_t length = s->count + elements_before(s);
    s->got[turn] = memory_zeroed(length + 1, size);
    if (!s->got[turn])
        return status_fail_memory("case output");
    memset(s->got[turn], 0xff, length * size);
    for (size_t i = 0; i < s->spec.input_count; i++)
        if (!case_is_param(&s->spec.inputs[i]))
            inputs[input_count++] =
                (rlxvk_run_input){s->spec.inputs[i].name, s->contents[i],
                                  case_length(&s->spec.inputs[i]), .f32_words = true};
    rlxvk_run_output output = {.index = 0,
                               .buffer = s->got[turn],
                               .length = length,
                               .dtype = rlxvk_executable_output_dtype(s->executable, 0),
                               .f32_words = !s->raw};
    rlxvk_status status = rlxvk_run(s->executable, inputs, input_count, &output, 1);
    const char *wanted = case_word(&s->spec, "run", rlxvk_status_name(RLXVK_OK));
    memmove(s->got[turn], (char *)s->got[turn] + (length - s->count) * size, s->count * size);
    if (strcmp(rlxvk_status_name(status), wanted) == 0)
        return RLXVK_OK;
    return status != RLXVK_OK ? status
                              : status_fail(RLXVK_E_CUSTOM, "the run did not end with %s", wanted);
}

static void check_repeatable(session *s)
{
    size_t size = s->raw ? 1 : sizeof(float);
    const uint8_t *first = s->got[0], *second = s->got[1];
    for (uint64_t i = 0; i < s->count && s->result->verdict != VERDICT_FAILED; i++)
        if (memcmp(first + i * size, second + i * size, size) != 0) {
            text out = {s->result->message, sizeof s->result->message, 0};
            s->result->verdict = VERDICT_FAILED;
            s->result->error = INFINITY;
            text_append(&out, "two runs differ: %.9g and %.9g at element ",
                        (double)got_element(s, first, i), (double)got_element(s, second, i));
            describe_index(s, i, &out);
        }
}

/* Frees everything that belongs to one seed's run. */
static void clear_seed(session *s)
{
    for (size_t i = 0; i < CASE_MAX_INPUTS; i++) {
        if (!s->given->golden)
            memory_free(s->contents[i]);
        s->contents[i] = NULL;
    }
    for (size_t i = 0; i < ARRAY_COUNT(s->got); i++) {
        memory_free(s->got[i]);
        s->got[i] = NULL;
    }
    memory_free(s->slack);
    s->slack = NULL;
    if (s->reference.graph)
        evaluation_destroy(&s->reference);
    s->reference = (evaluation){0};
}

static rlxvk_status execute_seed(session *s)
{
    rlxvk_status status;
    TRY(conform_fill(&s->spec, s->given, s->result->seed, s->contents));
    TRY(set_params(s));
    TRY(evaluate(s));
    TRY(run_once(s, 0));
    TRY(run_once(s, 1));
    check_repeatable(s);
    if (s->result->verdict != VERDICT_FAILED)
        compare(s);
    check_view(s);
    if (s->setup->bounds && s->result->verdict != VERDICT_FAILED)
        check_bounds(s);
error:
    return status;
}

/* The tensor to read. A graph's output has memory of its own. So where operands are computed
 * (scratch=m), the result is copied, and may take their memory itself. */
static rlxvk_tensor result_of(session *s)
{
    return case_integer(&s->spec, "scratch", 0) ? rlxvk_copy(s->graph, s->output) : s->output;
}

static rlxvk_status execute(session *s)
{
    const char *expected = case_word(&s->spec, "expect", NULL);
    rlxvk_status status;
    if (expected && s->setup->row) {
        pass_over(s->result);
        return RLXVK_OK;
    }
    if (s->setup->shifted && !expected && !s->given->golden) {
        TRY(conform_build_shifted(&s->spec, s->given->number, &s->graph, s->leaves, &s->output,
                                  &s->whole));
    } else {
        TRY(conform_build(&s->spec, &s->graph, s->leaves, &s->output));
        s->whole = expected ? s->output : result_of(s);
    }
    rlxvk_graph_output(s->graph, s->whole);
    if (expected) {
        judge_refusal(s, expected); /* before contents are made, because they may be gigabytes */
        return RLXVK_OK;
    }
    if (rlxvk_graph_status(s->graph) != RLXVK_OK)
        TRY(status_fail(rlxvk_graph_status(s->graph), "%s", rlxvk_graph_error(s->graph)));
    TRY(compile(s));
    if (s->result->passed_over)
        return RLXVK_OK;
    size_t seeds = s->given->golden ? 1 : s->setup->seed_count;
    for (size_t i = 0; i < seeds && s->result->verdict != VERDICT_FAILED; i++) {
        clear_seed(s);
        s->result->seed = s->setup->seeds[i];
        TRY(execute_seed(s));
    }
error:
    return status;
}

static void session_destroy(session *s)
{
    clear_seed(s);
    rlxvk_executable_destroy(s->executable);
    rlxvk_graph_destroy(s->graph);
}

void conform_run(const conform_setup *setup, const conform_case *c, conform_result *out)
{
    session s = {.setup = setup, .given = c, .result = out};
    rlxvk_status status = RLXVK_OK;
    *out = (conform_result){.verdict = VERDICT_FAILED, .seed = setup->seeds[0]};
    if (c->golden)
        s.spec = c->golden->spec;
    else
        status = case_parse(c->line, &s.spec);
    if (status == RLXVK_OK)
        status = execute(&s);
    if (status != RLXVK_OK) {
        text message = {out->message, sizeof out->message, 0};
        out->verdict = status == RLXVK_E_UNSUPPORTED ? VERDICT_UNSUPPORTED : VERDICT_FAILED;
        text_append(&message, "%s: %s", rlxvk_status_name(status), rlxvk_last_error());
    }
    session_destroy(&s);
}
