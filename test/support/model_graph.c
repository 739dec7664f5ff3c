/* The graphs of the model: as data, as calls of the library, and node by node as formulas. */
#include "support/model.h"

#include <math.h>
#include <string.h>

/* ---- The graphs ---- */

#define DIMS(...)                                                                                  \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }        \
    }
#define INPUT(text, type, ...)                                                                     \
    {                                                                                              \
        .op = MODEL_INPUT, .name = text, .dtype = type, .shape = DIMS(__VA_ARGS__)                 \
    }
#define PARAM(text, type, ...)                                                                     \
    {                                                                                              \
        .op = MODEL_PARAM, .name = text, .dtype = type, .shape = DIMS(__VA_ARGS__)                 \
    }
#define INDICES(text, ...)                                                                         \
    {                                                                                              \
        .op = MODEL_INPUT, .name = text, .dtype = RLXVK_I32, .shape = DIMS(__VA_ARGS__),           \
        .kind = MODEL_INDICES                                                                      \
    }
#define NODE(what, type, a, b, c, ...)                                                             \
    {                                                                                              \
        .op = what, .dtype = type, .inputs = {a, b, c}, .shape = DIMS(__VA_ARGS__)                 \
    }
#define NUMBERED(what, value, a, ...)                                                              \
    {                                                                                              \
        .op = what, .inputs = {a}, .shape = DIMS(__VA_ARGS__), .number = value                     \
    }
#define F RLXVK_F32

/* A name has the same shape in most graphs, so that executables of different graphs can share
 * it. */
const model_graph model_graphs[] = {
    {"increment", {INPUT("x", F, 4), NODE(MODEL_ADD_ONE, F, 0, 0, 0, 4)}, 2, {0, 1}, 2, {"add"}},
    {"inputs as outputs",
     {INPUT("x", F, 4), NODE(MODEL_RESHAPE, F, 0, 0, 0, 2, 2)},
     2,
     {0, 1, 0},
     3,
     {NULL}},
    {"views",
     {INPUT("t", F, 4, 2), NUMBERED(MODEL_NARROW, 1, 0, 2, 2), NODE(MODEL_RESHAPE, F, 0, 0, 0, 8),
      NUMBERED(MODEL_NARROW, 2, 0, 2, 2), NODE(MODEL_ADD, F, 1, 3, 0, 2, 2),
      NODE(MODEL_CLAMP, F, 4, 0, 0, 2, 2)},
     6,
     {1, 2, 5},
     3,
     {"add", "min"}},
    {"swap",
     {INPUT("x", F, 4), INPUT("h", F, 4), NODE(MODEL_ADD, F, 0, 1, 0, 4)},
     3,
     {0, 1, 2},
     3,
     {"add"}},
    {"state",
     {INPUT("h", F, 4), INPUT("x", F, 4), PARAM("w", F, 4), NODE(MODEL_MULTIPLY, F, 0, 2, 0, 4),
      NODE(MODEL_ADD, F, 3, 1, 0, 4), NODE(MODEL_CLAMP, F, 4, 0, 0, 4)},
     6,
     {5, 0},
     2,
     {"mul"}},
    {"constants",
     {NUMBERED(MODEL_CONSTANT, 3, 0, 4), INPUT("x", F, 4), NODE(MODEL_ADD, F, 0, 1, 0, 4),
      NODE(MODEL_ADD_ONE, F, 0, 0, 0, 4)},
     4,
     {0, 2, 3, 0},
     4,
     {"add"}},
    {"cache",
     {INPUT("cache", F, 1, 4, 2), INPUT("rows", F, 1, 1, 2), INDICES("position", 1),
      NODE(MODEL_COPY, F, 0, 0, 0, 1, 4, 2), NODE(MODEL_WRITE_ROWS, F, 0, 1, 2, 1, 4, 2),
      NODE(MODEL_ADD_ONE, F, 4, 0, 0, 1, 4, 2)},
     6,
     {3, 4, 5},
     3,
     {"write_rows"}},
    {"decode",
     {INPUT("cache", F, 1, 4, 2), INPUT("rows", F, 1, 1, 2), INDICES("position", 1),
      NODE(MODEL_WRITE_ROWS, F, 0, 1, 2, 1, 4, 2), NODE(MODEL_ADD_ONE, RLXVK_I32, 2, 0, 0, 1),
      NODE(MODEL_RESHAPE, F, 3, 0, 0, 4, 2), NUMBERED(MODEL_NARROW, 1, 5, 1, 2),
      NODE(MODEL_ADD_ONE, F, 6, 0, 0, 1, 2)},
     8,
     {4, 6, 7},
     3,
     {"add"}},
    {"cache of a param",
     {PARAM("kv", F, 1, 4, 2), INPUT("rows", F, 1, 1, 2), INDICES("position", 1),
      NODE(MODEL_WRITE_ROWS, F, 0, 1, 2, 1, 4, 2), NODE(MODEL_ADD_ONE, F, 3, 0, 0, 1, 4, 2)},
     5,
     {4, 1},
     2,
     {"write_rows"}},
    {"past and present",
     {INPUT("t", F, 4, 2), INPUT("u", F, 1, 2), NODE(MODEL_ADD_ONE, F, 1, 0, 0, 1, 2),
      NODE(MODEL_CONCAT, F, 0, 2, 0, 5, 2)},
     4,
     {3, 1},
     2,
     {"concat"}},
    {"random",
     {INPUT("x", F, 4), NUMBERED(MODEL_UNIFORM, 0, 0, 4), NODE(MODEL_ADD, F, 0, 1, 0, 4),
      NUMBERED(MODEL_UNIFORM, 1, 0, 6)},
     4,
     {1, 2, 3},
     3,
     {"add"}},
    {"solve",
     {{.op = MODEL_INPUT, .name = "a", .shape = DIMS(2, 2), .kind = MODEL_MATRIX},
      INPUT("y", F, 2),
      {.op = MODEL_SOLVE, .inputs = {0, 1}, .shape = DIMS(2), .kind = MODEL_SOLUTION},
      NODE(MODEL_ADD_ONE, F, 1, 0, 0, 2)},
     4,
     {2, 3},
     2,
     {"dense_solve"}},
    {"gather",
     {INPUT("t", F, 4, 2), INDICES("i", 3), NODE(MODEL_GATHER, F, 0, 1, 0, 3, 2),
      NODE(MODEL_ADD_ONE, RLXVK_I32, 1, 0, 0, 3)},
     4,
     {2, 3, 1},
     3,
     {"gather"}},
    {"gather and solve",
     {INPUT("y", F, 2),
      INDICES("i", 3),
      NODE(MODEL_GATHER, F, 0, 1, 0, 3),
      {.op = MODEL_INPUT, .name = "a", .shape = DIMS(2, 2), .kind = MODEL_MATRIX},
      {.op = MODEL_SOLVE, .inputs = {3, 0}, .shape = DIMS(2), .kind = MODEL_SOLUTION}},
     5,
     {2, 4, 1},
     3,
     {NULL}},
    {"bytes",
     {INPUT("u8", RLXVK_U8, 6), INPUT("v8", RLXVK_U8, 5), PARAM("w8", RLXVK_U8, 6),
      NODE(MODEL_CAST, F, 0, 0, 0, 6), NODE(MODEL_COPY, RLXVK_U8, 1, 0, 0, 5),
      NODE(MODEL_CAST, F, 2, 0, 0, 6), NODE(MODEL_ADD, F, 3, 5, 0, 6)},
     7,
     {0, 4, 6, 1},
     4,
     {"cast"}},
    {"complex",
     {INPUT("z", RLXVK_C64, 2), INPUT("x", F, 4), PARAM("q", RLXVK_C64, 2),
      NODE(MODEL_CONJUGATE, RLXVK_C64, 0, 0, 0, 2), NODE(MODEL_NORM_SQUARED, F, 2, 0, 0, 2),
      NODE(MODEL_ADD_ONE, F, 1, 0, 0, 4)},
     6,
     {3, 4, 5, 0},
     4,
     {"conjugate"}},
    {"halves",
     {INPUT("g", RLXVK_F16, 1, 4), PARAM("m", RLXVK_F16, 4, 2), PARAM("b", RLXVK_BF16, 1, 2),
      NODE(MODEL_MATMUL, RLXVK_F16, 0, 1, 0, 1, 2), NODE(MODEL_CLAMP, F, 3, 0, 0, 1, 2),
      NODE(MODEL_ADD, F, 4, 2, 0, 1, 2)},
     6,
     {5, 2, 0},
     3,
     {"matmul"}},
    {"dead leaves",
     {INPUT("x", F, 4), INPUT("h", F, 4), PARAM("w", F, 4), PARAM("p", F, 4),
      NODE(MODEL_ADD, F, 0, 2, 0, 4)},
     5,
     {4, 0},
     2,
     {NULL}},
    {"between kernels",
     {INPUT("x", F, 4), NODE(MODEL_ADD_ONE, F, 0, 0, 0, 4), NODE(MODEL_CUMSUM, F, 1, 0, 0, 4),
      NODE(MODEL_CLAMP, F, 2, 0, 0, 4), NODE(MODEL_ADD_ONE, F, 3, 0, 0, 4)},
     5,
     {3, 4},
     2,
     {"cumsum"}},
    {"scatter",
     {INPUT("t", F, 4, 2), INDICES("j", 4), NODE(MODEL_SCATTER_ADD, F, 0, 1, 0, 4, 2),
      NODE(MODEL_CLAMP, F, 2, 0, 0, 4, 2)},
     4,
     {3, 0},
     2,
     {"scatter_add"}},
    {"integers",
     {INPUT("k", RLXVK_I64, 4), INPUT("l", RLXVK_BOOL, 4), INPUT("d", RLXVK_F64, 2),
      NODE(MODEL_ADD_ONE, RLXVK_I64, 0, 0, 0, 4), NODE(MODEL_ADD_ONE, RLXVK_F64, 2, 0, 0, 2),
      NODE(MODEL_COPY, RLXVK_BOOL, 1, 0, 0, 4)},
     6,
     {3, 4, 5},
     3,
     {"add"}},
    {"unequal lengths",
     {INPUT("t", F, 4, 2), INPUT("y", F, 2), INPUT("x", F, 4), NUMBERED(MODEL_NARROW, 1, 0, 2, 2),
      NODE(MODEL_ADD_ONE, F, 1, 0, 0, 2)},
     5,
     {3, 4, 2, 1},
     4,
     {NULL}},
    {"failing",
     {INPUT("x", F, 4), INPUT("y", F, 2), NODE(MODEL_ADD_ONE, F, 1, 0, 0, 2),
      NODE(MODEL_CUSTOM, F, 0, 0, 0, 4), NODE(MODEL_ADD_ONE, F, 3, 0, 0, 4)},
     5,
     {4, 2, 0},
     3,
     {NULL}},
    {"nothing",
     {INPUT("n", F, 0), INPUT("y", F, 2), NODE(MODEL_ADD_ONE, F, 1, 0, 0, 2)},
     3,
     {0, 2},
     2,
     {NULL}},
};
const size_t model_graph_count = sizeof model_graphs / sizeof *model_graphs;

/* ---- Sizes and places ---- */

model_storage model_storage_of(rlxvk_dtype dtype)
{
    if (dtype == RLXVK_U8 || dtype == RLXVK_I8)
        return MODEL_RAW;
    return dtype == RLXVK_C64 ? MODEL_PAIR : MODEL_WORD;
}

size_t model_numel(const rlxvk_shape *shape)
{
    size_t numel = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        numel *= (size_t)shape->dims[i];
    return numel;
}

size_t model_words(const model_node *n)
{
    return model_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

/* The number of elements in a row, that is, of all axes but the first. */
static size_t row_length(const rlxvk_shape *shape)
{
    return shape->dims[0] ? model_numel(shape) / (size_t)shape->dims[0] : 0;
}

uint8_t model_root(const model_graph *g, uint8_t id, size_t *out_offset)
{
    *out_offset = 0;
    for (;; id = g->nodes[id].inputs[0]) {
        const model_node *n = &g->nodes[id];
        if (n->op == MODEL_NARROW)
            *out_offset += (size_t)n->number * row_length(&n->shape);
        else if (n->op != MODEL_RESHAPE && n->op != MODEL_WRITE_ROWS)
            return id;
    }
}

/* ---- Calls of the library ---- */

static bool custom_infer(const rlxvk_shape *inputs, size_t count, const void *attributes,
                         size_t size, rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)count, (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return true;
}

static int custom_host(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                       size_t size, const rlxvk_shape *shape, float *out)
{
    (void)count, (void)attributes, (void)size;
    memcpy(out, inputs[0].values, model_numel(shape) * sizeof *out);
    return out[0] == 8;
}

const rlxvk_custom_op model_custom = {.name = "model.copy",
                                      .input_count = 1,
                                      .infer = custom_infer,
                                      .host = custom_host};

static rlxvk_tensor number(rlxvk_graph *g, rlxvk_dtype dtype, int value)
{
    const float single = (float)value;
    const double twice = value;
    const int32_t word = value;
    const int64_t long_word = value;
    const void *bytes = dtype == RLXVK_F64   ? (const void *)&twice
                        : dtype == RLXVK_I32 ? (const void *)&word
                        : dtype == RLXVK_I64 ? (const void *)&long_word
                                             : (const void *)&single;
    return rlxvk_constant(g, dtype, RLXVK_SHAPE(1), bytes, rlxvk_dtype_size(dtype));
}

static rlxvk_tensor build_constant(rlxvk_graph *g, const model_node *n)
{
    float values[MODEL_MAX_WORDS];
    for (size_t i = 0; i < model_numel(&n->shape); i++)
        values[i] = (float)(n->number + (int)i);
    return rlxvk_constant(g, n->dtype, n->shape, values, 4 * model_numel(&n->shape));
}

static rlxvk_tensor build_node(rlxvk_graph *g, const model_node *n, const rlxvk_tensor *built)
{
    rlxvk_tensor a = built[n->inputs[0]], b = built[n->inputs[1]], c = built[n->inputs[2]];
    rlxvk_rng_stream stream = {.has_key = true, .key = (uint64_t)n->number};
    switch (n->op) {
    case MODEL_INPUT:
        return rlxvk_input(g, n->name, n->dtype, n->shape);
    case MODEL_PARAM:
        return rlxvk_param(g, n->name, n->dtype, n->shape);
    case MODEL_CONSTANT:
        return build_constant(g, n);
    case MODEL_RESHAPE:
        return rlxvk_reshape(g, a, n->shape);
    case MODEL_NARROW:
        return rlxvk_narrow(g, a, 0, n->number, n->shape.dims[0]);
    case MODEL_COPY:
        return rlxvk_copy(g, a);
    case MODEL_CAST:
        return rlxvk_cast(g, a, n->dtype);
    case MODEL_ADD:
        return rlxvk_add(g, a, b);
    case MODEL_MULTIPLY:
        return rlxvk_mul(g, a, b);
    case MODEL_ADD_ONE:
        return rlxvk_add(g, a, number(g, n->dtype, 1));
    case MODEL_CLAMP:
        return rlxvk_min(g, a, number(g, n->dtype, 100));
    case MODEL_CUMSUM:
        return rlxvk_cumsum(g, a, 0, false);
    case MODEL_MATMUL:
        return rlxvk_matmul(g, a, b);
    case MODEL_CONCAT:
        return rlxvk_concat(g, (rlxvk_tensor[]){a, b}, 2, 0);
    case MODEL_GATHER:
        return rlxvk_gather(g, a, b, 0);
    case MODEL_SCATTER_ADD:
        return rlxvk_scatter_add(g, a, b, n->shape.dims[0]);
    case MODEL_WRITE_ROWS:
        return rlxvk_write_rows(g, a, b, c);
    case MODEL_UNIFORM:
        return rlxvk_rng_uniform(g, n->shape, 0, 1, &stream);
    case MODEL_SOLVE:
        return rlxvk_dense_solve(g, a, b);
    case MODEL_CONJUGATE:
        return rlxvk_conjugate(g, a);
    case MODEL_NORM_SQUARED:
        return rlxvk_complex_norm_sq(g, a);
    case MODEL_CUSTOM:
        return rlxvk_custom(g, model_custom.name, &a, 1, NULL, 0);
    }
    return RLXVK_NONE;
}

rlxvk_status model_build(const model_graph *g, rlxvk_graph **out)
{
    rlxvk_tensor built[MODEL_MAX_NODES] = {{0}};
    rlxvk_status status = rlxvk_graph_create(out);
    if (status != RLXVK_OK)
        return status;
    for (uint8_t id = 0; id < g->node_count; id++) {
        const model_node *n = &g->nodes[id];
        built[id] = build_node(*out, n, built);
        rlxvk_shape shape = rlxvk_tensor_shape(*out, built[id]);
        if (rlxvk_tensor_dtype(*out, built[id]) != n->dtype ||
            model_numel(&shape) != model_numel(&n->shape))
            return RLXVK_E_SHAPE; /* a row of the table is wrong */
    }
    for (uint8_t i = 0; i < g->output_count; i++)
        rlxvk_graph_output(*out, built[g->outputs[i]]);
    return rlxvk_graph_status(*out);
}

/* ---- Formulas ---- */

static void philox(uint32_t c[4], uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t p = UINT64_C(0xD2511F53) * c[0], q = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t c0 = (uint32_t)(q >> 32) ^ c[1] ^ k0, c2 = (uint32_t)(p >> 32) ^ c[3] ^ k1;
        c[0] = c0;
        c[1] = (uint32_t)q;
        c[2] = c2;
        c[3] = (uint32_t)p;
    }
}

static void uniform(const rlxvk_rng_options *rng, int key, float *out, size_t count)
{
    uint64_t seed = rng->seed + (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = (uint32_t)(rng->seed + (uint64_t)key) % 2147483647u;
    x = x ? x : 1;
    for (size_t i = 0; i < count; i++) {
        uint32_t c[4] = {(uint32_t)(i / 4), 0, (uint32_t)rng->step, (uint32_t)(rng->step >> 32)};
        philox(c, seed);
        x = x * 16807 % 2147483647u;
        if (rng->backend == RLXVK_RNG_PHILOX)
            out[i] = (float)(c[i % 4] >> 8) * 0x1p-24f;
        else if (rng->backend == RLXVK_RNG_MINSTD)
            out[i] = fminf((float)((double)(x - 1) / 2147483646.0), 1 - 0x1p-24f);
        else
            out[i] = 0;
    }
}

/* The row that an index selects, or SIZE_MAX if it is out of range. */
static size_t row_of(float index, size_t rows)
{
    double at = floor((double)index + 0.5);
    return at >= 0 && at < (double)rows ? (size_t)at : SIZE_MAX;
}

static void gather(const model_node *n, const model_node *data, const model_node *indices,
                   const float *const operands[2], float *out, model_events *events)
{
    size_t rows = (size_t)data->shape.dims[0], length = row_length(&data->shape);
    (void)n;
    for (size_t i = 0; i < model_numel(&indices->shape); i++) {
        float index = operands[1][i];
        size_t row = row_of(index, rows);
        events->index_outside = events->index_outside || row == SIZE_MAX;
        if (row == SIZE_MAX)
            row = index > 0 ? rows - 1 : 0;
        memcpy(out + i * length, operands[0] + row * length, length * sizeof *out);
    }
}

static void scatter_add(const model_node *n, const model_node *indices,
                        const float *const operands[2], float *out, model_events *events)
{
    size_t rows = (size_t)n->shape.dims[0], length = row_length(&n->shape);
    memset(out, 0, rows * length * sizeof *out);
    for (size_t u = 0; u < model_numel(&indices->shape); u++) {
        size_t row = row_of(operands[1][u], rows);
        events->index_outside = events->index_outside || row == SIZE_MAX;
        for (size_t t = 0; t < length && row != SIZE_MAX; t++)
            out[row * length + t] += operands[0][u * length + t];
    }
}

static void write_rows(const model_node *n, const model_node *rows, const float *const operands[3],
                       float *cache, model_events *events)
{
    size_t length = (size_t)n->shape.dims[2];
    double first = floor((double)operands[2][0] + 0.5);
    for (int64_t r = 0; r < rows->shape.dims[1]; r++)
        if (first + (double)r >= 0 && first + (double)r < (double)n->shape.dims[1])
            memcpy(cache + (size_t)(first + (double)r) * length, operands[1] + (size_t)r * length,
                   length * sizeof *cache);
        else
            events->index_outside = true;
}

static void solve(const float *a, const float *b, float x[2], model_events *events)
{
    int p = fabsf(a[2]) > fabsf(a[0]);
    float pivot = a[2 * p], factor = pivot ? a[2 - 2 * p] / pivot : 0;
    float last = a[3 - 2 * p] - factor * a[2 * p + 1];
    if (pivot == 0 || last == 0) {
        events->singular = true;
        x[0] = x[1] = NAN;
        return;
    }
    x[1] = (b[1 - p] - factor * b[p]) / last;
    x[0] = (b[p] - a[2 * p + 1] * x[1]) / pivot;
}

static void matmul(const model_node *n, const model_node *a, const float *const operands[2],
                   float *out)
{
    size_t columns = (size_t)n->shape.dims[1], inner = (size_t)a->shape.dims[1];
    for (size_t i = 0; i < model_numel(&n->shape); i++) {
        out[i] = 0;
        for (size_t k = 0; k < inner; k++)
            out[i] += operands[0][i / columns * inner + k] * operands[1][k * columns + i % columns];
    }
}

static float elementwise(model_op op, float a, float b)
{
    switch (op) {
    case MODEL_ADD:
        return a + b;
    case MODEL_MULTIPLY:
        return a * b;
    case MODEL_ADD_ONE:
        return a + 1;
    case MODEL_CLAMP:
        return isnan(a) || a < 100 ? a : 100;
    default:
        return a;
    }
}

void model_evaluate(const model_graph *g, uint8_t id, const float *const operands[3],
                    const rlxvk_rng_options *rng, float *out, model_events *events)
{
    const model_node *n = &g->nodes[id], *a = &g->nodes[n->inputs[0]], *b = &g->nodes[n->inputs[1]];
    size_t count = model_words(n), part = model_words(a);
    const float *x = operands[0], *y = operands[1];
    switch (n->op) {
    case MODEL_GATHER:
        gather(n, a, b, operands, out, events);
        break;
    case MODEL_SCATTER_ADD:
        scatter_add(n, b, operands, out, events);
        break;
    case MODEL_WRITE_ROWS:
        write_rows(n, b, operands, out, events);
        break;
    case MODEL_UNIFORM:
        uniform(rng, n->number, out, count);
        break;
    case MODEL_SOLVE:
        solve(x, y, out, events);
        break;
    case MODEL_MATMUL:
        matmul(n, a, operands, out);
        break;
    default:
        if (n->op == MODEL_CUSTOM && x[0] == 8)
            events->custom_failed = true;
        for (size_t i = 0; i < count; i++)
            if (n->op == MODEL_CUMSUM)
                out[i] = x[i] + (i ? out[i - 1] : 0);
            else if (n->op == MODEL_CONCAT)
                out[i] = i < part ? x[i] : y[i - part];
            else if (n->op == MODEL_CONJUGATE)
                out[i] = i % 2 ? -x[i] : x[i];
            else if (n->op == MODEL_NORM_SQUARED)
                out[i] = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1];
            else if (n->op == MODEL_CONSTANT)
                out[i] = (float)(n->number + (int)i);
            else
                out[i] = elementwise(n->op, x[i], y[i]);
    }
}
