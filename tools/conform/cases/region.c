/*
 * Cases of elementwise regions. There are three ways to write a program:
 *   steps=relu:i0,add:s0:i1   operands are inputs i and steps s; where:condition:x:y and cast.i8:x
 *                             are steps, too; more=.. and more2=.. continue the list
 *   chain=gelu,20             applies an op 20 times to input 0
 *   random=SEED,20            20 steps of smooth ops on the inputs
 *
 * The row says how the program becomes nodes:
 *   elementwise_region         one node of shape=.. (if absent, that of input 0); the shapes decide
 *                              about the addressing, unless scalars=, modulus=, prologue= or
 *                              prologue_input= does
 *   elementwise_chain          a node for each step, which compiling may join (regions=0 tells
 *                              bench not to)
 *   batch_elementwise_region   one node of all inputs, each read as input 0
 *   batch_chain                a chain for each input, and a concat
 *
 *   shift=n     drops the first n rows of every input by a view
 *   scratch=m   computes the inputs of bit mask m (by copy); the last bit is for all inputs after
 *               it
 *   pieces=n    cuts the only input into n inputs along axis 0, each a view
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By code. */
static const char *const activations[] = {
#define ACTIVATION(code, NAME, row, ...) #row,
#include "args/activation.def"
};
static const char *const binaries[] = {
    "add", "sub", "mul", "div", "max", "min", "pow", "gradient_product", "gradient_quotient"};
static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
static const char *const dtypes[] = {"f32", "f16", "bf16", "f64", "i8",  "i16",
                                     "i32", "i64", "u8",   "u32", "bool"};

enum { MOST_INPUTS = 130 };

/* The operands that the program reads. */
typedef struct operands {
    rlxvk_tensor items[MOST_INPUTS];
    size_t count;
} operands;

typedef struct program {
    rlxvk_region_step steps[64];
    size_t count;
} program;

/* ---- Programs ---- */

static bool find(const char *const *names, size_t count, const char *name, uint32_t *out)
{
    for (*out = 0; *out < count; ++*out)
        if (strcmp(names[*out], name) == 0)
            return true;
    return false;
}

static rlxvk_region_step named_step(const char *name)
{
    rlxvk_region_step s = {.kind = RLXVK_REGION_WHERE};
    if (find(activations, COUNT(activations), name, &s.op))
        s.kind = RLXVK_REGION_ACTIVATION;
    else if (find(binaries, COUNT(binaries), name, &s.op))
        s.kind = RLXVK_REGION_BINARY;
    else if (find(compares, COUNT(compares), name, &s.op))
        s.kind = RLXVK_REGION_COMPARE;
    else if (strncmp(name, "cast.", 5) == 0 && find(dtypes, COUNT(dtypes), name + 5, &s.op))
        s.kind = RLXVK_REGION_CAST;
    else if (sscanf(name, "kind%u.%u", &s.kind, &s.op) != 2) /* for cases that must be refused */
        s.op = 0;
    return s;
}

static uint32_t operand_of(const char *word)
{
    uint32_t index = (uint32_t)strtoul(word + 1, NULL, 10);
    return word[0] == 's' ? RLXVK_REGION_STEP(index) : RLXVK_REGION_INPUT(index);
}

static void parse_steps(program *p, const char *word)
{
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", word);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *inner = NULL, *name = strtok_r(item, ":", &inner), *operand;
        uint32_t operands[3] = {0}, count = 0;
        while (count < 3 && (operand = strtok_r(NULL, ":", &inner)))
            operands[count++] = operand_of(operand);
        rlxvk_region_step s = named_step(name);
        bool where = s.kind == RLXVK_REGION_WHERE;
        s.first = operands[where];
        s.second = operands[where + 1];
        if (where)
            s.op = operands[0];
        p->steps[p->count++] = s;
    }
}

static void repeat_step(program *p, const char *word)
{
    char name[32] = "";
    unsigned times = 0;
    sscanf(word, "%31[^,],%u", name, &times);
    for (unsigned i = 0; i < times && i < COUNT(p->steps); i++) {
        p->steps[i] = named_step(name);
        p->steps[i].first = i ? RLXVK_REGION_STEP(i - 1) : RLXVK_REGION_INPUT(0);
        p->steps[i].second = p->steps[i].first;
    }
    p->count = times;
}

static uint32_t next(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* Draws ops whose results stay small and which do not magnify a small error. The last three ops
 * take software drivers long to compile. So they occur only in short programs and with seeds from
 * 1000 on. */
static void random_steps(program *p, const char *word, uint32_t inputs)
{
    static const char *const ops[] = {"gelu",     "silu", "relu",  "sigmoid", "tanh",
                                      "neg",      "abs",  "where", "lt",      "gelu_approx",
                                      "cast.f32", "add",  "sub",   "mul",     "max",
                                      "min",      "sin",  "cos",   "atan"};
    unsigned seed = 0, count = 0;
    sscanf(word, "%u,%u", &seed, &count);
    uint32_t state = seed * 2654435761u + 1;
    uint32_t most = (uint32_t)COUNT(ops) - (count <= 8 || seed >= 1000 ? 0 : 3);
    for (uint32_t i = 0; i < count && i < COUNT(p->steps); i++) {
        uint32_t operands[3];
        rlxvk_region_step s = named_step(ops[next(&state, most)]);
        for (int k = 0; k < 3; k++) { /* mostly recent results */
            uint32_t at = next(&state, inputs + i);
            operands[k] = at < inputs ? RLXVK_REGION_INPUT(at) : RLXVK_REGION_STEP(at - inputs);
        }
        s.first = i && next(&state, 4) ? RLXVK_REGION_STEP(i - 1) : operands[0];
        s.second = operands[1];
        if (s.kind == RLXVK_REGION_WHERE)
            s.op = operands[2];
        p->steps[i] = s;
    }
    p->count = count;
}

static program program_of(const case_spec *s)
{
    static const char *const keys[] = {"steps", "more", "more2", "more3"};
    program p = {.count = 0};
    if (*case_word(s, "chain", ""))
        repeat_step(&p, case_word(s, "chain", ""));
    if (*case_word(s, "random", ""))
        random_steps(&p, case_word(s, "random", ""), (uint32_t)s->input_count);
    for (size_t i = 0; i < COUNT(keys); i++)
        parse_steps(&p, case_word(s, keys[i], ""));
    return p;
}

/* ---- Graphs ---- */

static uint64_t numel(const rlxvk_shape *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= (uint64_t)s->dims[i];
    return n;
}

static bool batch_of(const case_spec *s)
{
    return strncmp(s->row, "batch_", 6) == 0;
}

static void choose_addressing(const rlxvk_graph *g, const rlxvk_tensor *x, size_t count,
                              rlxvk_region *r)
{
    for (size_t i = 0; i < count; i++) {
        rlxvk_shape shape = rlxvk_tensor_shape(g, x[i]);
        uint64_t mine = numel(&shape);
        if (mine == 1)
            r->scalar_mask |= 1u << i;
        if (mine != numel(&r->shape) && !(r->prologue && r->prologue_input == i))
            r->modulus[i] = (uint32_t)mine;
    }
}

static rlxvk_tensor build_region(rlxvk_graph *g, const case_spec *s, const program *p,
                                 const operands *o)
{
    const rlxvk_tensor *x = o->items;
    int32_t modulus[RLXVK_REGION_MAX_INPUTS];
    bool shaped = *case_word(s, "shape", "");
    int64_t batch = batch_of(s) ? (int64_t)o->count : 1;
    rlxvk_region r = {.shape = shaped ? case_shape(s, "shape") : rlxvk_tensor_shape(g, x[0]),
                      .steps = p->steps,
                      .step_count = p->count,
                      .prologue = (rlxvk_region_prologue)case_integer(s, "prologue", 0),
                      .prologue_input = (uint32_t)case_integer(s, "prologue_input", 0)};
    int64_t whole = r.shape.dims[0];
    r.shape.dims[0] = whole / batch;
    choose_addressing(g, x, batch > 1 ? 1 : o->count, &r);
    r.shape.dims[0] = whole;
    r.scalar_mask = (uint32_t)case_integer(s, "scalars", r.scalar_mask);
    size_t count = case_integers(s, "modulus", modulus, COUNT(modulus));
    for (size_t i = 0; i < count; i++)
        r.modulus[i] = (uint32_t)modulus[i];
    return batch_of(s) ? rlxvk_batch_elementwise_region(g, x, o->count, &r)
                       : rlxvk_elementwise_region(g, x, o->count, &r);
}

static rlxvk_tensor build_activation(rlxvk_graph *g, uint32_t op, rlxvk_tensor x)
{
    static rlxvk_tensor (*const builders[])(rlxvk_graph *, rlxvk_tensor) = {
        rlxvk_gelu, rlxvk_gelu_approx, rlxvk_silu, rlxvk_relu,  rlxvk_sigmoid, rlxvk_tanh,
        rlxvk_exp,  rlxvk_log,         rlxvk_sqrt, rlxvk_rsqrt, rlxvk_neg,     rlxvk_abs,
        rlxvk_sin,  rlxvk_cos,         rlxvk_tan,  rlxvk_atan,  rlxvk_round};
    return builders[op](g, x);
}

static rlxvk_tensor build_step(rlxvk_graph *g, const rlxvk_region_step *s, const rlxvk_tensor *x,
                               const rlxvk_tensor *made)
{
    typedef rlxvk_tensor binary(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor);
    static binary *const arithmetic[] = {rlxvk_add,
                                         rlxvk_sub,
                                         rlxvk_mul,
                                         rlxvk_div,
                                         rlxvk_max,
                                         rlxvk_min,
                                         rlxvk_pow,
                                         rlxvk_gradient_product,
                                         rlxvk_gradient_quotient};
    static binary *const comparisons[] = {rlxvk_eq, rlxvk_ne, rlxvk_lt,
                                          rlxvk_le, rlxvk_gt, rlxvk_ge};
    uint32_t words[] = {s->first, s->second, s->kind == RLXVK_REGION_WHERE ? s->op : 0};
    rlxvk_tensor v[3];
    for (int i = 0; i < 3; i++)
        v[i] = words[i] >> 31 ? made[words[i] & 0x7fffffffu] : x[words[i]];
    switch (s->kind) {
    case RLXVK_REGION_ACTIVATION:
        return build_activation(g, s->op, v[0]);
    case RLXVK_REGION_CAST:
        return rlxvk_cast(g, v[0], (rlxvk_dtype)s->op);
    case RLXVK_REGION_BINARY:
        return arithmetic[s->op](g, v[0], v[1]);
    case RLXVK_REGION_COMPARE:
        return comparisons[s->op](g, v[0], v[1]);
    default:
        return rlxvk_where(g, v[2], v[0], v[1]);
    }
}

static rlxvk_tensor build_chain(rlxvk_graph *g, const program *p, const rlxvk_tensor *x)
{
    rlxvk_tensor made[64];
    for (size_t i = 0; i < p->count; i++)
        made[i] = build_step(g, &p->steps[i], x, made);
    return p->count ? made[p->count - 1] : RLXVK_NONE;
}

static operands operands_of(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int64_t shift = case_integer(s, "shift", 0), scratch = case_integer(s, "scratch", 0);
    int64_t asked = case_integer(s, "pieces", 0);
    int64_t pieces = asked > MOST_INPUTS ? MOST_INPUTS : asked < 0 ? 0 : asked;
    int64_t rows = pieces ? rlxvk_tensor_shape(g, inputs[0]).dims[0] / pieces : 0;
    operands o = {.count = pieces ? (size_t)pieces : s->input_count};
    for (size_t i = 0; i < o.count; i++) {
        rlxvk_tensor x =
            pieces ? rlxvk_narrow(g, inputs[0], 0, (int64_t)i * rows, rows) : inputs[i];
        if (shift)
            x = rlxvk_narrow(g, x, 0, shift, rlxvk_tensor_shape(g, x).dims[0] - shift);
        o.items[i] = scratch >> (i < 63 ? i : 63) & 1 ? rlxvk_copy(g, x) : x;
    }
    return o;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    operands o = operands_of(g, s, inputs);
    program p = program_of(s);
    if (strstr(s->row, "elementwise_region"))
        return build_region(g, s, &p, &o);
    for (size_t k = 0; batch_of(s) && k < o.count; k++)
        o.items[k] = build_chain(g, &p, &o.items[k]);
    return batch_of(s) ? rlxvk_concat(g, o.items, o.count, 0) : build_chain(g, &p, o.items);
}

/* ---- Lines ---- */

/* Every op by itself, with values that are hard for it. */
static void generate_ops(case_list *list)
{
    static const char *const fills[] = {"uniform", "special", "large", "integers", "range:-20:20"};
    for (size_t i = 0; i < COUNT(activations); i++)
        for (size_t k = 0; k < COUNT(fills); k++)
            case_add(list, "elementwise_region steps=%s:i0 in=x:f32:301:%s", activations[i],
                     fills[k]);
    for (size_t i = 0; i < COUNT(binaries); i++)
        for (size_t k = 0; k < COUNT(fills); k++)
            case_add(list, "elementwise_region steps=%s:i0:i1 in=x:f32:400:%s;y:f32:400:%s",
                     binaries[i], fills[k], fills[(k + i) % COUNT(fills)]);
    for (size_t i = 0; i < COUNT(compares); i++)
        for (size_t k = 0; k < COUNT(fills); k++)
            case_add(list, "elementwise_region steps=%s:i0:i1 in=x:f32:201:%s;y:f32:201:%s",
                     compares[i], fills[k], fills[k % 2 ? k : 3]);
    for (size_t i = 0; i < COUNT(dtypes); i++)
        for (size_t k = 0; k < COUNT(fills); k++)
            case_add(list, "elementwise_region steps=cast.%s:i0 in=x:f32:500:%s", dtypes[i],
                     k == 4 ? "range:-70000:70000" : fills[k]);
    case_add(list, "elementwise_region steps=where:i0:i1:i2 "
                   "in=c:f32:300:special;x:f32:300:special;y:f32:300:large");
}

/* Ways in which inputs are read: shapes of the result, of x and of y. */
static void generate_addressing(case_list *list)
{
    static const char *const shapes[][3] = {
        {"scalar", "scalar", "1"},
        {"1", "1", "scalar"},
        {"5", "5", "1"},
        {"0", "0", "1"},
        {"2x0x3", "2x0x3", "3"},
        {"2x3", "2x3", "3"},
        {"2x3", "3", "2x3"},
        {"7x8", "7x8", "8"},
        {"7x8", "8", "scalar"},
        {"3x4x5", "4x5", "5"},
        {"3x4x5", "1x4x5", "1x1x5"},
        {"2x2x2x2x2x2x2x2", "2x2x2", "2x2x2x2x2x2x2x2"},
        {"6x10", "6x10", "10"},
        {"4099", "4099", "scalar"},
        {"33x129", "129", "33x129"},
        {"64x256", "64x256", "256"},
        {"3x7", "1", "scalar"},
        {"1x9", "9", "1x9"},
        {"700x501", "501", "1"},
    };
    for (size_t i = 0; i < COUNT(shapes); i++) {
        case_add(
            list,
            "elementwise_region shape=%s steps=mul:i0:i1,add:s0:i0,relu:s1 in=x:f32:%s;y:f32:%s",
            shapes[i][0], shapes[i][1], shapes[i][2]);
        case_add(
            list,
            "elementwise_region scratch=3 shape=%s steps=sub:i1:i0,tanh:s0 in=x:f32:%s;y:f32:%s",
            shapes[i][0], shapes[i][1], shapes[i][2]);
        case_add(list, "elementwise_chain steps=mul:i0:i1,add:s0:i0,relu:s1 in=x:f32:%s;y:f32:%s",
                 shapes[i][1], shapes[i][2]);
    }
    for (int shift = 1; shift < 5; shift++) {
        case_add(list,
                 "elementwise_region shift=%d steps=add:i0:i1,neg:s0 in=x:f32:12x6;y:f32:12x6",
                 shift);
        case_add(list,
                 "elementwise_region shift=%d steps=add:i0:i1,neg:s0 in=x:f32:12x4;y:f32:12x4",
                 shift);
        case_add(list,
                 "elementwise_chain scratch=1 shift=%d steps=add:i0:i1,neg:s0,mul:s1:i0 "
                 "in=x:f32:12x3;y:f32:12x3",
                 shift);
    }
    case_add(list, "elementwise_region steps=add:i0:i1,where:i2:s0:i0 "
                   "in=x:f16:4x9;y:bf16:9;c:bool:4x9:bool");
    case_add(list, "elementwise_region steps=add:i0:i1,cast.i32:s0 in=x:i32:40:integers;y:i16:40:"
                   "integers");
}

static void generate_prologues(case_list *list)
{
    static const char *const images[][2] = {{"1x1x2x2", "1x1x1x1"},     {"2x3x4x6", "2x3x2x3"},
                                            {"2x3x4x8", "2x3x2x4"},     {"1x5x14x10", "1x5x7x5"},
                                            {"3x2x64x32", "3x2x32x16"}, {"0x2x4x4", "0x2x2x2"}};
    for (size_t i = 0; i < COUNT(images); i++) {
        case_add(list,
                 "elementwise_region shape=%s prologue=1 scalars=0 modulus=0 steps=relu:i0 "
                 "in=x:f32:%s",
                 images[i][0], images[i][1]);
        case_add(list,
                 "elementwise_region shape=%s prologue=1 prologue_input=1 scalars=0 modulus=0,0 "
                 "scratch=3 steps=add:i0:i1,silu:s0 in=x:f32:%s;small:f32:%s",
                 images[i][0], images[i][0], images[i][1]);
    }
    case_add(list, "elementwise_region shape=2x3x4x8 prologue=1 steps=mul:i0:i1,add:s0:i2 "
                   "in=x:f32:2x3x2x4;y:f32:4x8;z:f32:1");
    case_add(list, "batch_elementwise_region shape=3x2x4x8 prologue=1 scalars=0 modulus=0 "
                   "steps=silu:i0,neg:s0 in=x:f32:1x2x2x4;y:f32:1x2x2x4;z:f32:1x2x2x4");
    case_add(list, "batch_elementwise_region shape=4x3x6x2 prologue=1 scalars=0 modulus=0 "
                   "steps=relu:i0 in=x:f32:2x3x3x1;y:f32:2x3x3x1");
}

/* Programs as long and as wide as regions and kernels allow. */
static void generate_programs(case_list *list)
{
    static const int lengths[] = {2, 8, 9, 31, 32};
    static const char *const chains[] = {"tanh", "gelu", "round", "atan", "sin"};
    static const char few[] = "a:f32:6x50;b:f32:50;c:f32:1";
    static const char seven[] = "a:f32:6x50;b:f32:50;c:f32:1;d:f32:6x50;e:f32:6x50;f:f32:50;"
                                "g:f32:scalar";
    static const char sixteen[] = "a:f32:6x50;b:f32:50;c:f32:1;d:f32:6x50;e:f32:6x50;f:f32:50;"
                                  "g:f32:scalar;h:f32:6x50;i:f32:50;j:f32:6x50;k:f32:6x50;"
                                  "l:f32:6x50;m:f32:50;n:f32:50;o:f32:1;p:f32:6x50";
    for (size_t k = 0; k < COUNT(lengths); k++)
        case_add(list, "elementwise_region chain=neg,%d in=x:f32:130", lengths[k]);
    for (size_t i = 0; i < COUNT(chains); i++)
        case_add(list, "elementwise_region chain=%s,8 in=x:f32:130", chains[i]);
    for (int seed = 1; seed <= 6; seed++) {
        case_add(list, "elementwise_region random=%d,%d in=%s", seed, seed + 2, few);
        case_add(list, "elementwise_region random=%d,8 in=%s", seed + 100, seven);
    }
    /* One of each kernel that software drivers compile slowly. */
    case_add(list, "elementwise_region random=1,32 in=%s", seven);
    case_add(list, "elementwise_region random=2,12 in=%s", sixteen);
    case_add(list, "elementwise_region random=1000,9 in=%s", few);
    case_add(list, "elementwise_chain chain=neg,60 in=x:f32:77");
    case_add(list, "elementwise_chain chain=add,40 in=x:f32:77:integers");
    case_add(list, "elementwise_chain steps=add:i0:i1,add:s0:i2,add:s1:i3,add:s2:i4,add:s3:i5,"
                   "add:s4:i6 more=add:s5:i7,add:s6:i8,add:s7:i9 "
                   "in=a:f32:9:integers;b:f32:9:integers;c:f32:9:integers;d:f32:9:integers;"
                   "e:f32:9:integers;f:f32:9:integers;g:f32:9:integers;h:f32:9:integers;"
                   "i:f32:9:integers;j:f32:9:integers");
    /* Many steps or inputs, with a sine or cosine. */
    case_add(list, "elementwise_region chain=sin,12 in=x:f32:5x37");
    case_add(list, "elementwise_region steps=sin:i0,add:s0:i1,add:s1:i2,add:s2:i3,mul:s3:i4 "
                   "more=add:s4:i5,sub:s5:i6,add:s6:i7,add:s7:i8,cos:s8 "
                   "in=a:f32:7x9;b:f32:9;c:f32:9;d:f32:7x9;e:f32:1;f:f32:7x9;g:f32:9;h:f32:7x9;"
                   "i:f32:9");
}

static void generate_refusals(case_list *list)
{
    static const char *const wrong[] = {
        "steps=relu:i1 in=x:f32:4",
        "steps=relu:s0 in=x:f32:4",
        "steps=relu:i0,add:s0:s1 in=x:f32:4",
        "steps=relu:i16 in=x:f32:4",
        "steps=relu:i0,where:s0:s1:s0 in=x:f32:4",
        "steps=kind5.0:i0 in=x:f32:4",
        "steps=kind0.99:i0 in=x:f32:4",
        "steps=kind1.11:i0 in=x:f32:4",
        "steps=kind2.9:i0:i0 in=x:f32:4",
        "steps=kind3.6:i0:i0 in=x:f32:4",
        "chain=relu,0 in=x:f32:4",
        "chain=relu,33 in=x:f32:4",
        "shape=4x4 modulus=4 steps=relu:i0 in=x:f32:4x1",
        "shape=4x4 modulus=2 steps=relu:i0 in=x:f32:4",
        "shape=4x4 modulus=0 steps=relu:i0 in=x:f32:4",
        "shape=4x4 modulus=8 steps=relu:i0 in=x:f32:2x4",
        "shape=4x4 modulus=0 steps=relu:i0 in=x:f32:2x8",
        "shape=4x4 modulus=0 steps=relu:i0 in=x:f32:16",
        "shape=4 scalars=1 steps=relu:i0 in=x:f32:4",
        "shape=8x8 prologue=1 modulus=0 steps=relu:i0 in=x:f32:4x4",
        "shape=1x1x4x4 prologue=1 prologue_input=1 modulus=0 steps=relu:i0 in=x:f32:1x1x2x2",
        "shape=1x1x4x4 prologue=2 modulus=0 steps=relu:i0 in=x:f32:1x1x2x2",
        "shape=1x1x3x4 prologue=1 modulus=0 steps=relu:i0 in=x:f32:1x1x1x2",
        "shape=1x2x4x4 prologue=1 modulus=0 steps=relu:i0 in=x:f32:1x1x2x2",
    };
    static const char *const wrong_batch[] = {
        "shape=9 modulus=0 steps=relu:i0 in=x:f32:4;y:f32:4",
        "shape=scalar modulus=0 steps=relu:i0 in=x:f32:scalar;y:f32:scalar",
        "shape=8 modulus=0 steps=add:i0:i1 in=x:f32:4;y:f32:4",
        "shape=8 modulus=4 steps=relu:i0 in=x:f32:4;y:f32:4",
        "shape=2x4x4 modulus=0 prologue=1 steps=relu:i0 in=x:f32:4;y:f32:4",
        ("shape=2x1x4x4 modulus=0 prologue=1 prologue_input=1 steps=relu:i0 "
         "in=x:f32:1x1x2x2;y:f32:1x1x2x2"),
    };
    case_add_all(list, "elementwise_region expect=E_ATTR", wrong, COUNT(wrong));
    case_add(list, "elementwise_region expect=E_DTYPE steps=relu:i0 in=x:c64:4");
    case_add(list, "elementwise_region expect=E_DTYPE steps=relu:i0 in=x:u8:4:bytes");
    case_add_all(list, "batch_elementwise_region expect=E_ATTR", wrong_batch, COUNT(wrong_batch));
    case_add(list, "batch_elementwise_region expect=E_SHAPE shape=2x4 modulus=0 steps=relu:i0 "
                   "in=x:f32:4;y:f32:1x4");
    case_add(list, "batch_elementwise_region expect=E_DTYPE shape=8 modulus=0 steps=relu:i0 "
                   "in=x:f32:4;y:i32:4");
}

/* Batches, and chains that compiling joins into one. Shapes are those of the result and of each of
 * `count` inputs. */
static void generate_batches(case_list *list)
{
    static const struct {
        const char *whole, *part;
        int count;
    } sizes[] = {{"5", "5", 1},          {"6x1", "2x1", 3},   {"0x3", "0x3", 2},
                 {"8x4", "4x4", 2},      {"21x5", "3x5", 7},  {"16x3x4", "2x3x4", 8},
                 {"18x2", "2x2", 9},     {"48x7", "3x7", 16}, {"4098", "1366", 3},
                 {"300x64", "50x64", 6}, {"12x8", "8", 4},    {"6x10", "1", 2},
                 {"6x10", "scalar", 3}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char inputs[CASE_MAX_INPUTS * 16] = "";
        for (int k = 0; k < sizes[i].count; k++)
            snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%c:f32:%s",
                     k ? ";" : "", 'a' + k, sizes[i].part);
        case_add(list,
                 "batch_elementwise_region shape=%s steps=neg:i0,add:s0:i0,tanh:s1,mul:s2:i0 in=%s",
                 sizes[i].whole, inputs);
        case_add(list, "batch_elementwise_region scratch=65535 shape=%s steps=sigmoid:i0 in=%s",
                 sizes[i].whole, inputs);
        if (strcmp(sizes[i].part, "scalar") != 0)
            case_add(list, "batch_chain steps=abs:i0,neg:s0 in=%s", inputs);
    }
}

/* Batches with as many inputs as a dispatch takes, on devices with few and with many bindings; also
 * one more and one less. Pieces of 4 elements are read in quads if they begin at a multiple of
 * four. */
static void generate_many(case_list *list)
{
    static const int counts[] = {16, 17, 31, 32, 33, 63, 64, 65, 70, 130};
    static const struct {
        int rows; /* of each piece */
        const char *columns, *program;
    } pieces[] = {{1, "x5", "neg:i0,add:s0:i0,tanh:s1,mul:s2:i0"},
                  {3, "", "silu:i0"},
                  {2, "x2", "abs:i0,neg:s0"},
                  {21, "x64", "mul:i0:i0,sub:s0:i0"}};
    for (size_t i = 0; i < COUNT(counts); i++)
        for (size_t k = 0; k < COUNT(pieces); k++) {
            int n = counts[i], rows = n * pieces[k].rows;
            case_add(list, "batch_elementwise_region pieces=%d shape=%d%s steps=%s in=x:f32:%d%s",
                     n, rows, pieces[k].columns, pieces[k].program, rows, pieces[k].columns);
            case_add(list, "batch_chain pieces=%d scratch=-1 steps=abs:i0,neg:s0 in=x:f32:%d%s", n,
                     rows, pieces[k].columns);
        }
    /* Inputs with one element, inputs that repeat every 6 elements, inputs of half the resolution;
     * many steps, with a sine. */
    case_add(list, "batch_elementwise_region pieces=40 shape=80x6 steps=exp:i0 in=x:f32:40");
    case_add(list, "batch_elementwise_region pieces=40 shape=160x6 steps=exp:i0 in=x:f32:240");
    case_add(list,
             "batch_elementwise_region pieces=36 shape=36x3x4x6 prologue=1 scalars=0 modulus=0 "
             "steps=silu:i0 in=x:f32:36x3x2x3");
    case_add(list, "batch_elementwise_region pieces=40 shape=80x3 chain=sin,12 in=x:f32:80x3");
    case_add(list, "batch_elementwise_region pieces=66 shape=66x4 chain=neg,32 in=x:f32:66x4");
    case_add(list, "batch_elementwise_region pieces=40 shape=80x3 chain=sin,8 in=x:f32:80x3");
}

static void generate(case_list *list)
{
    generate_ops(list);
    generate_addressing(list);
    generate_prologues(list);
    generate_programs(list);
    generate_batches(list);
    generate_many(list);
    generate_refusals(list);
}

static const char *const rows[] = {"elementwise_region", "elementwise_chain",
                                   "batch_elementwise_region", "batch_chain", NULL};

const case_family region_cases = {rows, build, generate};
