/* See fuzz_graph.h. fuzz_calls*.c choose the operands of each builder. */
#include "support/fuzz_graph.h"

#include "graph/graph.h"

#include <math.h>

/* ---- Operands and attributes ---- */

void fuzz_keep(fuzz_maker *m, rlxvk_tensor t)
{
    if (t.id && t.id <= m->g->nodes.count && m->count < FUZZ_POOL)
        m->pool[m->count++] = t;
}

/* Counts this number. Returns whether it is replaced by `extreme` or 0. */
static bool is_changed(fuzz_maker *m, int64_t *out)
{
    m->numbers++;
    *out = m->numbers == m->extreme_at ? m->extreme : 0;
    return m->numbers == m->extreme_at || m->numbers == m->zero_at;
}

/* Small numbers for most bytes. The last few bytes give limits of types and of the library. */
static int64_t number_from(fuzz_maker *m, const int8_t *usual, uint32_t count)
{
    static const int64_t odd[] = {-1,        -2,         INT32_MAX, INT32_MIN, INT64_MAX,
                                  INT64_MIN, UINT32_MAX, 1 << 24,   1 << 16,   (1 << 24) + 1,
                                  65535,     1 << 30,    100,       1000,      4096};
    uint32_t byte = fuzz_byte(m->in);
    int64_t changed;
    if (is_changed(m, &changed))
        return changed;
    if (byte < 250)
        return usual[byte % count];
    if (byte < 254)
        return odd[fuzz_below(m->in, sizeof odd / sizeof *odd)];
    return (int64_t)fuzz_bits(m->in, byte == 254 ? 2 : 8);
}

int64_t fuzz_number(fuzz_maker *m)
{
    static const int8_t usual[] = {0, 1, 2, 3, 1, 0, 4, 2, 1, 0, 8};
    return number_from(m, usual, sizeof usual);
}

int64_t fuzz_dim(fuzz_maker *m)
{
    static const int8_t usual[] = {2, 3, 1, 4, 2, 1, 3, 4, 2, 5, 1, 8, 2, 6, 3, 16, 0, 33, 7, 2};
    return number_from(m, usual, sizeof usual);
}

int64_t fuzz_from(fuzz_maker *m, int64_t low, uint32_t count)
{
    int64_t number = low + fuzz_below(m->in, count), changed;
    return is_changed(m, &changed) ? changed : number;
}

int32_t fuzz_axis(fuzz_maker *m, uint32_t rank)
{
    uint32_t byte = fuzz_byte(m->in);
    int64_t changed;
    if (is_changed(m, &changed))
        return (int32_t)changed;
    if (byte >= 252)
        return (int32_t)fuzz_number(m);
    int32_t axis = (int32_t)(byte / 2 % (rank ? rank : 1));
    return byte & 1 ? axis - (int32_t)(rank ? rank : 1) : axis;
}

float fuzz_real(fuzz_maker *m)
{
    static const float usual[] = {1, 0.5f, 0, -1, 2, 1e-5f, 0.1f, 3, -0.5f, 1e-12f};
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e38f, -1e-40f, 16777216, 4e9f};
    uint32_t byte = fuzz_byte(m->in), bits;
    float value;
    if (byte < 240)
        return usual[byte % (sizeof usual / sizeof *usual)];
    if (byte < 250)
        return odd[byte % (sizeof odd / sizeof *odd)];
    bits = (uint32_t)fuzz_bits(m->in, 4);
    memcpy(&value, &bits, sizeof value);
    return value;
}

rlxvk_shape fuzz_shape(fuzz_maker *m, uint32_t rank)
{
    rlxvk_shape s = {.rank = rank};
    for (uint32_t i = 0; i < rank && i < RLXVK_MAX_RANK; i++)
        s.dims[i] = fuzz_dim(m);
    return s;
}

/* A constant of small numbers. If it is large, and seldom otherwise, only one byte is given, which
 * is an error for most shapes. */
static rlxvk_tensor constant(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape)
{
    _Alignas(8) uint8_t bytes[4096];
    uint64_t numel = 0, first = fuzz_byte(m->in), size;
    bool counted = shape.rank <= RLXVK_MAX_RANK && shape_numel_checked(&shape, &numel);
    size = numel * rlxvk_dtype_size(dtype);
    if (!counted || size > sizeof bytes || first == 255)
        return rlxvk_constant(m->g, dtype, shape, bytes, 1);
    for (uint64_t i = 0; i < sizeof bytes / 4; i++) {
        float value = (float)((first + i * 3) % 7) - 2;
        memcpy(bytes + 4 * i, &value, 4);
    }
    if (rlxvk_dtype_size(dtype) != 4)
        for (uint64_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(first + i * 5) & 63;
    return rlxvk_constant(m->g, dtype, shape, bytes, size);
}

rlxvk_tensor fuzz_leaf(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape)
{
    char name[24];
    uint32_t kind = fuzz_byte(m->in), number = m->leaves++;
    rlxvk_tensor t;
    snprintf(name, sizeof name, "%s%u", m->depth ? "b" : "t", kind >= 250 ? 0 : number);
    if (kind % 8 < 3)
        t = rlxvk_input(m->g, name, dtype, shape);
    else if (kind % 8 < 6)
        t = rlxvk_param(m->g, name, dtype, shape);
    else
        t = constant(m, dtype, shape);
    fuzz_keep(m, t);
    return t;
}

static rlxvk_tensor take(fuzz_maker *m, rlxvk_tensor t)
{
    m->taken[m->takes++ % FUZZ_TAKEN] = t;
    return t;
}

/* Takes recent results more often than old ones. */
rlxvk_tensor fuzz_any(fuzz_maker *m)
{
    uint32_t byte = fuzz_byte(m->in);
    if (byte >= 254)
        return byte == 255 ? RLXVK_NONE : (rlxvk_tensor){.id = UINT32_MAX};
    if (m->count == 0)
        return take(m, fuzz_leaf(m, RLXVK_F32, fuzz_shape(m, byte % 5)));
    if (byte % 4 == 3 && m->takes)
        return m->taken[byte / 4 % MIN(m->takes, FUZZ_TAKEN)];
    return take(m, m->pool[m->count - 1 - byte / 2 % (byte & 1 ? m->count : (m->count + 3) / 4)]);
}

/* A tensor with these properties: one of the last operands, or any. The search begins at `from`. */
static rlxvk_tensor find(fuzz_maker *m, uint32_t from, rlxvk_dtype dtype, uint32_t rank,
                         const rlxvk_shape *shape)
{
    uint32_t taken = MIN(m->takes, FUZZ_TAKEN);
    for (uint32_t i = 0; i < taken + m->count; i++) {
        rlxvk_tensor t = i < taken ? m->taken[(from + i) % taken] : m->pool[(from + i) % m->count];
        rlxvk_shape s = rlxvk_tensor_shape(m->g, t);
        if (rlxvk_tensor_dtype(m->g, t) == dtype && s.rank == rank &&
            (!shape || shape_equal(&s, shape)))
            return t;
    }
    return RLXVK_NONE;
}

static rlxvk_tensor fitting(fuzz_maker *m, rlxvk_dtype dtype, uint32_t rank,
                            const rlxvk_shape *shape)
{
    uint32_t byte = fuzz_byte(m->in);
    if (byte >= 252)
        return fuzz_any(m);
    rlxvk_tensor found = byte & 3 ? find(m, byte / 4, dtype, rank, shape) : RLXVK_NONE;
    return take(m, found.id ? found : fuzz_leaf(m, dtype, shape ? *shape : fuzz_shape(m, rank)));
}

rlxvk_tensor fuzz_fit(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape)
{
    return fitting(m, dtype, shape.rank, &shape);
}

rlxvk_tensor fuzz_ranked(fuzz_maker *m, rlxvk_dtype dtype, uint32_t rank)
{
    return fitting(m, dtype, rank, NULL);
}

rlxvk_tensor fuzz_maybe(fuzz_maker *m, rlxvk_shape shape)
{
    return fuzz_bool(m->in) ? fuzz_fit(m, RLXVK_F32, shape) : RLXVK_NONE;
}

/* ---- Calls ---- */

/* Mostly takes each axis once, in order. */
static rlxvk_tensor call_reduce(fuzz_maker *m, const fuzz_builder *b, rlxvk_tensor x)
{
    int32_t axes[RLXVK_MAX_RANK];
    uint32_t rank = rlxvk_tensor_shape(m->g, x).rank, bits = fuzz_byte(m->in), count = 0;
    for (uint32_t i = 0; i < RLXVK_MAX_RANK; i++)
        if (bits >> i & 1)
            axes[count++] = bits < 240 ? (int32_t)(i % (rank ? rank : 1)) : fuzz_axis(m, rank);
    return b->reduce(m->g, x, axes, count < rank ? count : rank, fuzz_bool(m->in));
}

void fuzz_later_windows(fuzz_maker *m, rlxvk_pool_options *o, uint32_t spatial)
{
    uint32_t bits = fuzz_byte(m->in);
    o->struct_size = bits < 128 ? 0 : RLXVK_SIZE_OF(rlxvk_pool_options);
    o->rounding = (rlxvk_pool_rounding)(bits & 1);
    o->padding_kind = (rlxvk_pool_padding)(bits == 255 ? 2 : bits >> 1 & 1);
    for (uint32_t i = 0; i < spatial && i < ARRAY_COUNT(o->kernel) && bits >= 128; i++) {
        o->dilation[i] = bits & 4 ? fuzz_number(m) : 0;
        o->padding_after[i] = bits & 2 ? fuzz_number(m) : 0;
    }
}

static rlxvk_tensor call_pool(fuzz_maker *m, const fuzz_builder *b)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3);
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2 + spatial);
    rlxvk_pool_options o = {.exclude_pad = fuzz_bool(m->in)};
    for (uint32_t i = 0; i < spatial; i++) {
        o.kernel[i] = 1 + fuzz_number(m) % INT64_MAX;
        o.stride[i] = fuzz_number(m);
        o.padding[i] = fuzz_bool(m->in) ? o.kernel[i] / 2 : fuzz_number(m);
    }
    fuzz_later_windows(m, &o, spatial);
    return b->pool(m->g, x, &o);
}

/* An operand that broadcasts against x, if possible. */
static rlxvk_tensor partner(fuzz_maker *m, rlxvk_tensor x)
{
    rlxvk_shape s = rlxvk_tensor_shape(m->g, x);
    uint32_t byte = fuzz_byte(m->in);
    if (byte < 64)
        return fuzz_fit(m, rlxvk_tensor_dtype(m->g, x), s);
    if (byte < 96)
        return fuzz_any(m);
    if (byte < 128)
        return x;
    for (uint32_t i = 0; i < s.rank; i++)
        if (byte >> i & 1)
            s.dims[i] = 1;
    if (byte >= 192)
        s.rank = 0;
    return fuzz_fit(m, RLXVK_F32, s);
}

rlxvk_tensor fuzz_call(fuzz_maker *m, const fuzz_builder *b)
{
    if (b->call)
        return b->call(m);
    if (b->pool)
        return call_pool(m, b);
    rlxvk_tensor x = fuzz_any(m);
    if (b->unary)
        return b->unary(m->g, x);
    if (b->binary)
        return b->binary(m->g, x, partner(m, x));
    if (b->reduce)
        return call_reduce(m, b, x);
    if (b->ternary) {
        rlxvk_tensor y = partner(m, x);
        return b->ternary(m->g, x, y, partner(m, x));
    }
    int32_t axis = fuzz_axis(m, rlxvk_tensor_shape(m->g, x).rank);
    return b->along ? b->along(m->g, x, axis) : b->along_with(m->g, x, axis, fuzz_bool(m->in));
}

/* ---- Patterns of several calls that rewriting looks for; sometimes a part has other readers
 * ---- */

static rlxvk_tensor kept(fuzz_maker *m, rlxvk_tensor t)
{
    if (fuzz_byte(m->in) >= 144)
        fuzz_keep(m, t);
    return t;
}

static int64_t last_dim(const fuzz_maker *m, rlxvk_tensor t)
{
    rlxvk_shape s = rlxvk_tensor_shape(m->g, t);
    return s.rank ? s.dims[s.rank - 1] : 1;
}

static rlxvk_tensor activation(fuzz_maker *m, rlxvk_tensor x)
{
    static rlxvk_tensor (*const of[])(rlxvk_graph *, rlxvk_tensor) = {rlxvk_relu, rlxvk_silu,
                                                                      rlxvk_gelu, rlxvk_neg,
                                                                      rlxvk_tanh, rlxvk_sigmoid,
                                                                      rlxvk_exp};
    return of[fuzz_below(m->in, sizeof of / sizeof *of)](m->g, x);
}

static rlxvk_tensor pattern_matmul(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t n = fuzz_dim(m);
    rlxvk_tensor w = fuzz_fit(m, RLXVK_F32, RLXVK_SHAPE(last_dim(m, x), n));
    rlxvk_tensor y = kept(m, rlxvk_matmul(m->g, x, w));
    y = kept(m, rlxvk_add(m->g, y, fuzz_fit(m, RLXVK_F32, RLXVK_SHAPE(n))));
    return fuzz_bool(m->in) ? activation(m, y) : y;
}

/* If x is a vector, it may also be gamma. */
static rlxvk_tensor pattern_norm(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    if (fuzz_bool(m->in))
        x = activation(m, rlxvk_tensor_shape(m->g, x).rank == 1
                              ? x
                              : fuzz_fit(m, RLXVK_F32, RLXVK_SHAPE(last_dim(m, x))));
    rlxvk_tensor r = fuzz_fit(m, RLXVK_F32, rlxvk_tensor_shape(m->g, x));
    bool shares = rlxvk_tensor_shape(m->g, x).rank == 1 && fuzz_bool(m->in);
    rlxvk_tensor gamma = shares ? x : fuzz_maybe(m, RLXVK_SHAPE(last_dim(m, x)));
    rlxvk_tensor beta = fuzz_maybe(m, RLXVK_SHAPE(last_dim(m, x)));
    rlxvk_tensor sum = kept(m, rlxvk_add(m->g, x, r));
    if (fuzz_bool(m->in))
        sum = kept(m, rlxvk_add(m->g, sum, fuzz_fit(m, RLXVK_F32, RLXVK_SHAPE(last_dim(m, x)))));
    return fuzz_bool(m->in) ? rlxvk_layer_norm(m->g, sum, gamma, beta, -1, 0.1f)
                            : rlxvk_rms_norm(m->g, sum, gamma, beta, -1, 0.1f);
}

static rlxvk_tensor pattern_swiglu(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t half = last_dim(m, x) / 2;
    rlxvk_tensor a = kept(m, rlxvk_narrow(m->g, x, -1, 0, half));
    rlxvk_tensor b = kept(m, rlxvk_narrow(m->g, x, -1, half, half));
    return fuzz_bool(m->in) ? rlxvk_mul(m->g, rlxvk_silu(m->g, a), b)
                            : rlxvk_mul(m->g, a, rlxvk_silu(m->g, b));
}

static rlxvk_tensor pattern_chain(fuzz_maker *m)
{
    static rlxvk_tensor (*const of[])(rlxvk_graph *, rlxvk_tensor,
                                      rlxvk_tensor) = {rlxvk_add, rlxvk_mul, rlxvk_sub, rlxvk_max,
                                                       rlxvk_min, rlxvk_lt,  rlxvk_div};
    rlxvk_tensor x = fuzz_any(m), y = x;
    for (uint32_t n = 2 + fuzz_below(m->in, 5); n > 0; n--) {
        x = kept(m, x);
        y = fuzz_bool(m->in) ? activation(m, y)
                             : of[fuzz_below(m->in, sizeof of / sizeof *of)](m->g, y, x);
    }
    return y;
}

/* Three parts of a concatenation, which may be written in place. */
static rlxvk_tensor pattern_parts(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), parts[3];
    int32_t axis = fuzz_axis(m, rlxvk_tensor_shape(m->g, x).rank);
    for (int i = 0; i < 3; i++)
        parts[i] = kept(m, activation(m, x));
    return rlxvk_concat(m->g, parts, 3, axis);
}

static rlxvk_tensor (*const patterns[])(fuzz_maker *) = {pattern_matmul, pattern_norm,
                                                         pattern_swiglu, pattern_chain,
                                                         pattern_parts};

static void check_result(const fuzz_maker *m, const fuzz_builder *b, rlxvk_tensor t)
{
    uint64_t numel;
    rlxvk_shape s = rlxvk_tensor_shape(m->g, t);
    FUZZ_CHECK(t.id && t.id <= m->g->nodes.count, "%s: no error and tensor %u of %zu", b->name,
               t.id, m->g->nodes.count);
    FUZZ_CHECK(s.rank <= RLXVK_MAX_RANK && shape_numel_checked(&s, &numel),
               "%s: no error and an impossible shape", b->name);
}

/* Checks that the first error stays, with its message, that later calls add nothing, and that
 * calls work again once it is cleared. */
static void check_error(fuzz_maker *m, const fuzz_builder *b, rlxvk_tensor t)
{
    static const rlxvk_shape one = {.rank = 1, .dims = {1}};
    rlxvk_status status = rlxvk_graph_status(m->g);
    size_t nodes = m->g->nodes.count, outputs = m->g->outputs.count;
    FUZZ_CHECK(t.id == 0, "%s: %s and tensor %u", b->name, rlxvk_status_name(status), t.id);
    FUZZ_CHECK(*rlxvk_status_name(status) == 'E' && *rlxvk_graph_error(m->g),
               "%s: status %d without a sentence", b->name, (int)status);
    rlxvk_tensor later = rlxvk_input(m->g, "later", RLXVK_F32, one);
    if (m->count) {
        later.id |= rlxvk_neg(m->g, m->pool[0]).id;
        rlxvk_graph_output(m->g, m->pool[0]);
    }
    FUZZ_CHECK(later.id == 0 && rlxvk_graph_status(m->g) == status && m->g->nodes.count == nodes &&
                   m->g->outputs.count == outputs,
               "%s: the graph takes calls after its error", b->name);
    FUZZ_CHECK(rlxvk_graph_clear_error(m->g) == status && !*rlxvk_graph_error(m->g) &&
                   rlxvk_graph_clear_error(m->g) == RLXVK_OK,
               "%s: the error is not cleared", b->name);
}

void fuzz_build(fuzz_maker *m, uint32_t calls)
{
    static const fuzz_builder pattern = {.name = "pattern"};
    for (uint32_t i = 0; i < calls && m->in->left; i++) {
        uint32_t which = fuzz_below(m->in, (uint32_t)(fuzz_builder_count * 5 / 4));
        bool single = which < fuzz_builder_count;
        const fuzz_builder *b = single ? &fuzz_builders[which] : &pattern;
        rlxvk_tensor t =
            single ? fuzz_call(m, b) : patterns[which % (sizeof patterns / sizeof *patterns)](m);
        bool ok = rlxvk_graph_status(m->g) == RLXVK_OK;
        if (single) {
            fuzz_counts[which].calls++;
            fuzz_counts[which].results += ok;
        }
        if (!ok) {
            check_error(m, b, t);
            continue;
        }
        check_result(m, b, t);
        fuzz_keep(m, t);
    }
}

void fuzz_finish(fuzz_maker *m, uint64_t bits)
{
    static const char *const names[] = {"x", "attn.3", "", "a name", NULL};
    uint32_t last = m->count - 1;
    for (uint32_t i = 0; i < m->count; i++) {
        if (bits >> (i % 64) & 1 || i == last)
            rlxvk_graph_output(m->g, m->pool[i]);
        if ((bits >> (i % 61) & 7) == 7)
            rlxvk_graph_set_name(m->g, m->pool[i], names[bits >> (i % 59) & 3]);
        if (rlxvk_graph_status(m->g) != RLXVK_OK)
            check_error(m, &(fuzz_builder){.name = "graph_set_name"}, RLXVK_NONE);
    }
}
