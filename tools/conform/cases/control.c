/*
 * Cases of control flow, whose bodies are inlined. They test the results and, with --gradients, the
 * gradients. Every body computes the same: h = carry, times each matrix b..; then h x + h for each
 * x..; then the sine of that.
 *
 * unroll=1: loops of more than one round replay a recorded body. noise=1: bodies add random
 * numbers, which differ from round to round.
 *
 *   scan              length, save=1 (returns the trajectory), checkpoints; in=carry;b..;x.. (x..
 *                     have a leading axis of `length`)
 *   while             limit, bound: continues while all |carry| < bound; in=carry;b..
 *   if                in=predicate;carry;b..;x..; the other branch is exp(carry)
 *   call              in=carry;b..;x..
 *   custom_function   the same with a vjp, which is the body's gradient
 */
#include "conform/cases/cases.h"

#include <string.h>

static const char *const names[] = {"carry", "b0", "b1", "x0", "x1"};

enum { MOST_VALUES = COUNT(names) };

enum body_kind { BODY_OF_STEP, BODY_OF_ROUND, BODY_OF_BRANCH, BODY_OF_OTHER, BODY_OF_GRADIENT };

typedef struct values {
    rlxvk_tensor items[MOST_VALUES];
    size_t count, broadcasts; /* number of b.., after the carry */
    bool noise;
} values;

static values take_values(const case_spec *s, const rlxvk_tensor *inputs)
{
    values v = {.noise = case_integer(s, "noise", 0) != 0};
    for (size_t i = 0; i < MOST_VALUES; i++) {
        rlxvk_tensor t = case_tensor(s, inputs, names[i]);
        if (t.id) {
            v.items[v.count++] = t;
            v.broadcasts += names[i][0] == 'b';
        }
    }
    return v;
}

/* The shape of tensor i inside a body: without the leading axis if it is a sequence. */
static rlxvk_shape body_shape(const rlxvk_graph *g, const values *v, size_t i, bool sequences)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, v->items[i]);
    if (!sequences || i <= v->broadcasts || s.rank == 0)
        return s;
    s.rank--;
    memmove(s.dims, s.dims + 1, s.rank * sizeof *s.dims);
    return s;
}

static rlxvk_tensor apply(rlxvk_graph *body, const values *v, const rlxvk_tensor *in)
{
    rlxvk_tensor h = in[0];
    for (size_t i = 1; i < v->count; i++)
        h = i <= v->broadcasts ? rlxvk_matmul(body, h, in[i]) : rlxvk_fma(body, h, in[i], h);
    if (v->noise)
        h = rlxvk_add(body, h, rlxvk_rng_uniform_like(body, h, -1, 1, NULL));
    return rlxvk_sin(body, h);
}

static rlxvk_graph *make_body(const rlxvk_graph *g, const values *v, enum body_kind kind)
{
    rlxvk_graph *body = NULL;
    rlxvk_tensor in[MOST_VALUES] = {{0}}, d[MOST_VALUES] = {{0}}, h;
    if (rlxvk_graph_create(&body) != RLXVK_OK)
        return NULL;
    for (size_t i = 0; i < v->count; i++)
        in[i] = rlxvk_input(body, names[i], RLXVK_F32, body_shape(g, v, i, kind == BODY_OF_STEP));
    h = kind == BODY_OF_OTHER ? rlxvk_exp(body, in[0]) : apply(body, v, in);
    if (kind != BODY_OF_GRADIENT)
        rlxvk_graph_output(body, h);
    for (size_t i = 1; i < v->count && kind == BODY_OF_ROUND; i++)
        rlxvk_graph_output(body, in[i]);
    if (kind == BODY_OF_GRADIENT) {
        rlxvk_input(body, "y", RLXVK_F32, rlxvk_tensor_shape(body, h));
        rlxvk_tensor dy = rlxvk_input(body, "dy", RLXVK_F32, rlxvk_tensor_shape(body, h));
        rlxvk_grad(body, h, dy, in, v->count, d);
        for (size_t i = 0; i < v->count; i++)
            rlxvk_graph_output(body, d[i]);
    }
    return body;
}

static rlxvk_tensor build_scan(rlxvk_graph *g, const case_spec *s, const values *v)
{
    rlxvk_graph *body = make_body(g, v, BODY_OF_STEP);
    rlxvk_scan_options options = {.length = case_integer(s, "length", 0),
                                  .broadcast_count = v->broadcasts,
                                  .save_trajectory = case_integer(s, "save", 0) != 0,
                                  .checkpoints = case_integer(s, "checkpoints", 0)};
    rlxvk_tensor y = rlxvk_scan(g, body, v->items, v->count, &options);
    rlxvk_graph_destroy(body);
    return y;
}

/* All values are carried, but the matrices do not change. */
static rlxvk_tensor build_while(rlxvk_graph *g, const case_spec *s, const values *v)
{
    rlxvk_graph *body = make_body(g, v, BODY_OF_ROUND), *condition = NULL;
    float bound = (float)case_real(s, "bound", 1e9);
    rlxvk_tensor results[MOST_VALUES] = {{0}};
    if (rlxvk_graph_create(&condition) != RLXVK_OK)
        return RLXVK_NONE;
    for (size_t i = 0; i < v->count; i++) {
        rlxvk_tensor in = rlxvk_input(condition, names[i], RLXVK_F32, body_shape(g, v, i, false));
        if (i == 0)
            rlxvk_graph_output(condition,
                               rlxvk_lt(condition, rlxvk_abs(condition, in),
                                        rlxvk_constant(condition, RLXVK_F32, RLXVK_SCALAR, &bound,
                                                       sizeof bound)));
    }
    rlxvk_while(g, condition, body, (uint32_t)case_integer(s, "limit", 0), v->items, v->count,
                results);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    return results[0];
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    values v = take_values(s, inputs);
    rlxvk_tensor y = RLXVK_NONE;
    rlxvk_graph_set_unroll_limit(g, (uint64_t)case_integer(s, "unroll", 0));
    if (strcmp(s->row, "scan") == 0)
        return build_scan(g, s, &v);
    if (strcmp(s->row, "while") == 0)
        return build_while(g, s, &v);
    bool branches = strcmp(s->row, "if") == 0;
    rlxvk_graph *body = make_body(g, &v, BODY_OF_BRANCH);
    rlxvk_graph *other = make_body(g, &v, branches ? BODY_OF_OTHER : BODY_OF_GRADIENT);
    if (branches)
        y = rlxvk_if(g, case_tensor(s, inputs, "predicate"), body, other, v.items, v.count);
    else if (strcmp(s->row, "custom_function") == 0)
        y = rlxvk_custom_function(g, body, other, v.items, v.count);
    else
        rlxvk_call(g, body, v.items, v.count, &y, 1);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(other);
    return y;
}

/* ---- Cases ---- */

static void generate_scans(case_list *list)
{
    static const char *const operands[] = {
        "in=carry:f32:3x4:range:0.2:0.9",
        "in=carry:f32:3x4:range:0.2:0.9;b0:f32:4x4:range:0.1:0.4",
        "in=carry:f32:3x4:range:0.2:0.9;x0:f32:%dx3x4:range:0.1:0.4",
        "in=carry:f32:3x4:range:0.2:0.9;b0:f32:4x4:range:0.1:0.4;x0:f32:%dx3x4:range:0.1:0.4",
        "in=carry:f32:3x4:range:0.2:0.9;b0:f32:4x4:range:0.1:0.4;b1:f32:4x4:range:0.1:0.4;x0:f32:%"
        "dx3x4:"
        "range:0.1:0.4;"
        "x1:f32:%dx1x4:range:0.1:0.4",
    };
    static const struct {
        int length;
        const char *options;
    } forms[] = {
        {0, ""},
        {1, ""},
        {5, ""},
        {0, "save=1"},
        {1, "save=1"},
        {5, "save=1"},
        {5, "save=1 checkpoints=1"},
        {5, "save=1 checkpoints=2"},
        {5, "save=1 checkpoints=3"},
        {5, "save=1 checkpoints=5"},
        {5, "unroll=1"},
        {5, "unroll=1 save=1"},
        {5, "unroll=1 save=1 checkpoints=2"},
        {5, "unroll=1 save=1 checkpoints=3"},
        {5, "unroll=1 noise=1"},
    };
    for (size_t i = 0; i < COUNT(forms); i++)
        for (size_t k = 0; k < COUNT(operands); k++) {
            char line[256];
            size_t at = 0;
            for (const char *c = operands[k]; *c; c++)
                if (c[0] == '%' && c[1] == 'd') {
                    line[at++] = (char)('0' + forms[i].length);
                    c++;
                } else
                    line[at++] = *c;
            line[at] = 0;
            case_add(list, "scan within=1e-5 length=%d %s %s", forms[i].length, forms[i].options,
                     line);
        }
    static const char *const refused[] = {
        "length=7 checkpoints=3 expect=E_ATTR in=carry:f32:3x4",
        "length=7 save=1 checkpoints=8 expect=E_ATTR in=carry:f32:3x4",
        "length=-1 expect=E_ATTR in=carry:f32:3x4",
        "length=7 expect=E_SHAPE in=carry:f32:3x4;x0:f32:6x3x4",
        "length=7 save=1 expect=E_SHAPE in=carry:f32:1x1x1x1x1x1x1x2",
    };
    case_add_all(list, "scan", refused, COUNT(refused));
}

#define CARRY    "carry:f32:3x4:range:0.2:0.9"
#define MATRIX   "b0:f32:4x4:range:0.1:0.4"
#define SEQUENCE "x0:f32:3x4:range:0.1:0.4"

static void generate(case_list *list)
{
    static const char *const lines[] = {
        "while within=1e-5 limit=0 in=" CARRY,
        "while within=1e-5 limit=5 in=" CARRY ";" MATRIX,
        "while within=1e-5 limit=5 in=" CARRY ";" MATRIX ";b1:f32:4x4:range:0.1:0.4",
        "while within=1e-5 unroll=1 limit=5 in=" CARRY ";" MATRIX,
        "while within=1e-5 unroll=1 noise=1 limit=5 in=" CARRY ";" MATRIX,
        "while within=1e-5 noise=1 limit=5 in=" CARRY,
        /* the condition is false at once; it becomes false in a later round */
        "while within=1e-5 limit=5 bound=0 in=" CARRY ";" MATRIX,
        "while within=1e-5 limit=9 bound=0.9 in=carry:f32:3x4:range:0.01:0.1;"
        "b0:f32:4x4:range:0.3:0.6",
        "while within=1e-5 unroll=1 limit=5 bound=0 in=" CARRY ";" MATRIX,
        "while within=1e-5 unroll=1 limit=9 bound=0.9 in=carry:f32:3x4:range:0.01:0.1;"
        "b0:f32:4x4:range:0.3:0.6",
        "if within=1e-5 in=predicate:bool:scalar:one;" CARRY ";" MATRIX,
        "if within=1e-5 in=predicate:bool:scalar:zero;" CARRY ";" MATRIX,
        "if within=1e-5 in=predicate:bool:3x1:bool;" CARRY ";" MATRIX ";" SEQUENCE,
        "call within=1e-5 in=" CARRY,
        "call within=1e-5 in=" CARRY ";" MATRIX ";" SEQUENCE ";x1:f32:1x4:range:0.1:0.4",
        "custom_function within=1e-5 in=" CARRY,
        "custom_function within=1e-5 in=" CARRY ";" MATRIX ";" SEQUENCE ";x1:f32:1x4:range:0.1:0.4",
        "custom_function in=carry:f32:0x4",
    };
    generate_scans(list);
    case_add_all(list, "", lines, COUNT(lines));
}

static const char *const rows[] = {"scan", "while", "if", "call", "custom_function", NULL};

const case_family control_cases = {rows, build, generate};
