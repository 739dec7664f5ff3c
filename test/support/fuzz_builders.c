/*
 * What each public builder is called with: operands whose shapes mostly agree, as fuzz_graph.h's
 * helpers choose them. One row a builder; those of a common signature have no function here.
 */
#include "support/fuzz_graph.h"

static rlxvk_shape shape_of(const fuzz_maker *m, rlxvk_tensor t)
{
    return rlxvk_tensor_shape(m->g, t);
}

/* Dim `i` from the end; 1 below rank 1. */
static int64_t last(rlxvk_shape s, uint32_t i)
{
    return s.rank > i ? s.dims[s.rank - 1 - i] : 1;
}

static rlxvk_tensor f32(fuzz_maker *m, rlxvk_shape s)
{
    return fuzz_fit(m, RLXVK_F32, s);
}

static rlxvk_dtype any_dtype(fuzz_maker *m)
{
    return (rlxvk_dtype)fuzz_below(m->in, RLXVK_DTYPE_COUNT + 1);
}

/* Seldom past the last enumerator. */
static int any_of(fuzz_maker *m, int count)
{
    uint32_t byte = fuzz_byte(m->in);
    return byte >= 252 ? (int)fuzz_number(m) : (int)(byte % (uint32_t)count);
}

/* A product of dims that may not fit; then something else. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* ---- Leaves and movement ---- */

static rlxvk_tensor call_input(fuzz_maker *m)
{
    rlxvk_dtype dtype = any_dtype(m);
    return rlxvk_input(m->g, fuzz_bool(m->in) ? "in" : "other", dtype,
                       fuzz_shape(m, fuzz_below(m->in, 10)));
}

static rlxvk_tensor call_param(fuzz_maker *m)
{
    static const char *const names[] = {"w", "t0", "", NULL};
    rlxvk_dtype dtype = any_dtype(m);
    const char *name = names[fuzz_below(m->in, 16) < 13 ? 0 : fuzz_below(m->in, 3)];
    return rlxvk_param(m->g, name, dtype, fuzz_shape(m, fuzz_below(m->in, 9)));
}

static rlxvk_tensor call_constant(fuzz_maker *m)
{
    float values[64];
    size_t size = sizeof values;
    rlxvk_shape s = fuzz_shape(m, fuzz_below(m->in, 4));
    for (size_t i = 0; i < 64; i++)
        values[i] = i < 4 ? fuzz_real(m) : (float)i;
    rlxvk_dtype dtype = any_dtype(m);
    if (fuzz_byte(m->in) < 240) {
        size = rlxvk_dtype_size(dtype);
        for (uint32_t i = 0; i < s.rank; i++)
            size = s.dims[i] < 0 || s.dims[i] > 64 ? sizeof values + 1 : size * (size_t)s.dims[i];
    }
    return rlxvk_constant(m->g, dtype, s, values, size <= sizeof values ? size : 3);
}

static rlxvk_tensor call_reshape(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x), to = {.rank = 1, .dims = {-1}};
    uint32_t byte = fuzz_byte(m->in);
    if (byte >= 200)
        return rlxvk_reshape(m->g, x, fuzz_shape(m, fuzz_below(m->in, 9)));
    /* Leading axes joined or kept, the rest in one, ones in between. */
    if (s.rank && byte & 1)
        to = (rlxvk_shape){.rank = 2, .dims = {s.dims[0], -1}};
    if (s.rank > 1 && byte & 2)
        to = (rlxvk_shape){.rank = 3, .dims = {-1, 1, s.dims[s.rank - 1]}};
    if (byte & 4 && last(s, 0) % 2 == 0)
        to = (rlxvk_shape){.rank = 3, .dims = {-1, last(s, 0) / 2, 2}};
    return rlxvk_reshape(m->g, x, to);
}

static rlxvk_tensor call_cast(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_cast(m->g, x, any_dtype(m));
}

static rlxvk_tensor call_transpose(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int32_t perm[RLXVK_MAX_RANK];
    uint32_t rank = shape_of(m, x).rank, turn = fuzz_byte(m->in);
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = (int32_t)(turn & 128 ? rank - 1 - i : (i + turn) % rank);
    if (rank > 1 && turn & 64) {
        perm[rank - 1] ^= perm[rank - 2];
        perm[rank - 2] ^= perm[rank - 1];
        perm[rank - 1] ^= perm[rank - 2];
    }
    if (fuzz_byte(m->in) >= 250 && rank)
        perm[0] = fuzz_axis(m, rank);
    return rlxvk_transpose(m->g, x, perm, rank);
}

static rlxvk_tensor call_narrow(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    int32_t axis = fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)s.rank : axis);
    int64_t extent = at < s.rank && s.dims[at] > 0 ? s.dims[at] : 1;
    int64_t start = fuzz_number(m), length = fuzz_number(m);
    if (fuzz_byte(m->in) < 240) {
        start = (int64_t)((uint64_t)start % (uint64_t)extent);
        length = (int64_t)((uint64_t)length % (uint64_t)(extent - start + 1));
    }
    return rlxvk_narrow(m->g, x, axis, start, length);
}

static rlxvk_tensor call_concat(fuzz_maker *m)
{
    rlxvk_tensor parts[12] = {fuzz_any(m)};
    rlxvk_shape s = shape_of(m, parts[0]);
    size_t count = 1 + fuzz_below(m->in, 4);
    if (fuzz_byte(m->in) >= 240)
        count = fuzz_below(m->in, 13);
    for (size_t i = 1; i < count; i++)
        parts[i] =
            fuzz_byte(m->in) & 3 ? fuzz_fit(m, rlxvk_tensor_dtype(m->g, parts[0]), s) : parts[0];
    return rlxvk_concat(m->g, parts, count, fuzz_axis(m, s.rank));
}

static rlxvk_tensor call_expand(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    uint32_t added = fuzz_below(m->in, 3);
    rlxvk_shape to = fuzz_shape(m, s.rank + added <= RLXVK_MAX_RANK ? s.rank + added : s.rank);
    for (uint32_t i = 0; i < s.rank; i++)
        if (s.dims[s.rank - 1 - i] != 1)
            to.dims[to.rank - 1 - i] = fuzz_bool(m->in) ? -1 : s.dims[s.rank - 1 - i];
    return rlxvk_expand(m->g, x, to);
}

static rlxvk_tensor call_reverse(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    uint32_t rank = shape_of(m, x).rank;
    int32_t axes[2] = {fuzz_axis(m, rank), fuzz_axis(m, rank)};
    return rlxvk_reverse(m->g, x, axes, fuzz_below(m->in, 3));
}

static rlxvk_tensor call_gather(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), indices = fuzz_ranked(m, RLXVK_I32, fuzz_below(m->in, 3));
    return rlxvk_gather(m->g, x, indices, fuzz_axis(m, shape_of(m, x).rank));
}

static rlxvk_tensor call_take_along_axis(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    int32_t axis = fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)s.rank : axis);
    if (at < s.rank)
        s.dims[at] = fuzz_dim(m);
    return rlxvk_take_along_axis(m->g, x, fuzz_fit(m, RLXVK_I32, s), axis);
}

static rlxvk_tensor call_write_rows(fuzz_maker *m)
{
    rlxvk_tensor cache = fuzz_ranked(m, RLXVK_F32, 3);
    rlxvk_shape s = shape_of(m, cache);
    s.dims[1] = fuzz_dim(m);
    rlxvk_tensor rows = f32(m, s);
    return rlxvk_write_rows(m->g, cache, rows, f32(m, RLXVK_SHAPE(1)));
}

static rlxvk_tensor call_scatter_add(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    rlxvk_tensor indices = f32(m, RLXVK_SHAPE(s.rank ? s.dims[0] : 1));
    return rlxvk_scatter_add(m->g, x, indices, fuzz_dim(m));
}

static rlxvk_tensor call_topk(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t n = last(shape_of(m, x), 0), k = fuzz_number(m);
    return rlxvk_topk(m->g, x,
                      fuzz_bool(m->in) && n > 0 ? 1 + (int64_t)((uint64_t)k % (uint64_t)n) : k);
}

/* ---- Products ---- */

static rlxvk_tensor call_elementwise_region(fuzz_maker *m)
{
    rlxvk_tensor inputs[4] = {fuzz_any(m)};
    rlxvk_region_step steps[RLXVK_REGION_MAX_STEPS + 1];
    rlxvk_region r = {.shape = shape_of(m, inputs[0]), .steps = steps};
    size_t count = 1 + fuzz_below(m->in, 4);
    for (size_t i = 1; i < count; i++) {
        uint32_t byte = fuzz_byte(m->in);
        rlxvk_shape part = r.shape;
        if (byte & 1 && part.rank) { /* a suffix, repeated */
            part = RLXVK_SHAPE(last(r.shape, 0));
            r.modulus[i] = (uint32_t)part.dims[0];
        } else if (byte & 2) {
            part.rank = 0;
            r.scalar_mask |= 1u << i;
        }
        inputs[i] = f32(m, part);
    }
    r.step_count = 1 + fuzz_below(m->in, 6);
    if (fuzz_byte(m->in) >= 250)
        r.step_count = fuzz_below(m->in, RLXVK_REGION_MAX_STEPS + 2);
    for (size_t i = 0; i < r.step_count; i++) {
        uint32_t bits = (uint32_t)fuzz_bits(m->in, 3);
        rlxvk_region_step *s = &steps[i];
        s->kind = bits & 7;
        s->op = (bits >> 3 & 31) % (s->kind == RLXVK_REGION_ACTIVATION ? 18 : 7);
        s->first = bits & 256 && i ? RLXVK_REGION_STEP((bits >> 9 & 7) % i)
                                   : RLXVK_REGION_INPUT((bits >> 9 & 7) % count);
        s->second = bits & 4096 && i ? RLXVK_REGION_STEP(i - 1)
                                     : RLXVK_REGION_INPUT((bits >> 13 & 7) % count);
        if (bits >> 16 >= 252)
            s->first = bits;
    }
    if (fuzz_byte(m->in) >= 250)
        r.prologue = (rlxvk_region_prologue)fuzz_number(m);
    return rlxvk_elementwise_region(m->g, inputs, count, &r);
}

/* A matrix [k, n] or its transpose, F32 or packed to halves. */
static rlxvk_tensor matrix(fuzz_maker *m, int64_t k, int64_t n, bool transposed)
{
    static const rlxvk_dtype dtypes[] = {RLXVK_F32, RLXVK_F32, RLXVK_F32, RLXVK_F16, RLXVK_BF16};
    rlxvk_dtype dtype = dtypes[fuzz_below(m->in, 5)];
    return fuzz_fit(m, dtype, transposed ? RLXVK_SHAPE(n, k) : RLXVK_SHAPE(k, n));
}

static rlxvk_tensor call_matmul_with(fuzz_maker *m)
{
    rlxvk_tensor a = fuzz_any(m);
    rlxvk_shape s = shape_of(m, a);
    uint32_t bits = fuzz_byte(m->in);
    rlxvk_matmul_options o = {.transpose_a = bits & 1, .transpose_b = bits & 2};
    int64_t k = last(s, o.transpose_a ? 1 : 0), n = fuzz_dim(m);
    rlxvk_tensor b;
    if (bits & 4 && s.rank > 2) {
        s.dims[s.rank - 2] = o.transpose_b ? n : k;
        s.dims[s.rank - 1] = o.transpose_b ? k : n;
        b = f32(m, s);
    } else {
        b = matrix(m, k, n, o.transpose_b);
    }
    return rlxvk_matmul_with(m->g, a, b, bits & 8 ? NULL : &o);
}

static rlxvk_tensor call_matmul(fuzz_maker *m)
{
    rlxvk_tensor a = fuzz_any(m);
    int64_t k = last(shape_of(m, a), 0), n = fuzz_dim(m);
    return rlxvk_matmul(m->g, a, matrix(m, k, n, false));
}

static rlxvk_tensor call_fused_matmul_bias_act(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t k = last(shape_of(m, x), 0), n = fuzz_dim(m);
    bool transposed = fuzz_bool(m->in);
    rlxvk_tensor w = matrix(m, k, n, transposed), bias = f32(m, RLXVK_SHAPE(n));
    return rlxvk_fused_matmul_bias_act(m->g, x, w, bias, (rlxvk_activation)any_of(m, 18),
                                       transposed);
}

/* A format, the elements of its blocks, and a U8 leaf of `rows` rows of k elements. */
static rlxvk_quant_format any_format(fuzz_maker *m, uint32_t *block)
{
    rlxvk_quant_traits traits;
    uint32_t format = fuzz_below(m->in, 44);
    for (uint32_t i = 0; i < 44; i++, format = (format + 1) % 44)
        if (rlxvk_quant_query(256 + format, &traits) == RLXVK_OK)
            break;
    *block = traits.block_elements ? traits.block_elements : 1;
    return (rlxvk_quant_format)(fuzz_byte(m->in) >= 252 ? fuzz_number(m) : format);
}

static rlxvk_tensor packed(fuzz_maker *m, rlxvk_quant_format format, int64_t rows, int64_t k)
{
    rlxvk_quant_traits t = {0};
    bool known = rlxvk_quant_query(256 + (uint32_t)format, &t) == RLXVK_OK && t.block_elements;
    int64_t bytes = known ? times(times(rows, k / t.block_elements), t.block_bytes) : 64;
    return fuzz_fit(m, RLXVK_U8, RLXVK_SHAPE(bytes));
}

static rlxvk_tensor call_dequant_matmul(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = times(block, 1 + fuzz_below(m->in, 2));
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(fuzz_dim(m), k));
    return rlxvk_dequant_matmul(m->g, x, packed(m, format, fuzz_dim(m), k), format);
}

static rlxvk_tensor call_dequant_gather(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = times(block, 1 + fuzz_below(m->in, 2));
    rlxvk_tensor table = packed(m, format, fuzz_dim(m), k);
    rlxvk_tensor indices = fuzz_ranked(m, RLXVK_I32, fuzz_below(m->in, 3));
    return rlxvk_dequant_gather(m->g, table, indices, format,
                                fuzz_byte(m->in) < 250 ? k : fuzz_number(m));
}

static rlxvk_tensor call_dequant_grouped_matmul(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = block, n = fuzz_dim(m), rows = fuzz_dim(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(rows, k));
    rlxvk_tensor w = packed(m, format, times(n, 1 + fuzz_below(m->in, 3)), k);
    return rlxvk_dequant_grouped_matmul(m->g, x, w, f32(m, RLXVK_SHAPE(rows)), format, n);
}

static rlxvk_tensor call_dequant_moe_weights(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = block, n = fuzz_dim(m);
    rlxvk_tensor w = packed(m, format, times(n, 1 + fuzz_below(m->in, 3)), k);
    return rlxvk_dequant_moe_weights(m->g, w, format, fuzz_byte(m->in) < 250 ? k : fuzz_number(m),
                                     n);
}

static rlxvk_tensor call_dequant_matmul_scaled(fuzz_maker *m)
{
    rlxvk_quant_traits t = {0};
    rlxvk_quant_scheme scheme = {.kind = (rlxvk_quant_kind)any_of(m, 8), .n = fuzz_dim(m)};
    int64_t k = times(fuzz_dim(m), 4), n = scheme.n;
    bool known = rlxvk_quant_query((uint32_t)scheme.kind, &t) == RLXVK_OK;
    bool integer = known && (t.has_zero_point || scheme.kind == RLXVK_QUANT_INT8 ||
                             scheme.kind == RLXVK_QUANT_INT4);
    if (integer || fuzz_byte(m->in) >= 250)
        scheme.block = fuzz_dim(m);
    int64_t block = scheme.block > 0 ? scheme.block : t.block_elements ? t.block_elements : k;
    int64_t groups = block > 0 ? (k + block - 1) / block : 1, count = times(groups, n);
    bool nibbles = scheme.kind == RLXVK_QUANT_INT4 || scheme.kind >= RLXVK_QUANT_NVFP4;
    int64_t bytes = nibbles ? times(k, n) / 2 + (times(k, n) & 1) : times(k, n);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(fuzz_dim(m), k));
    rlxvk_tensor w = fuzz_fit(m, fuzz_bool(m->in) ? RLXVK_U8 : RLXVK_I8, RLXVK_SHAPE(bytes));
    rlxvk_tensor scale = fuzz_fit(m, t.scale_is_byte ? RLXVK_U8 : RLXVK_F32,
                                  integer || t.scale_is_byte ? RLXVK_SHAPE(count) : RLXVK_SHAPE(n));
    rlxvk_tensor extra = t.has_zero_point                   ? f32(m, RLXVK_SHAPE(count))
                         : scheme.kind == RLXVK_QUANT_NVFP4 ? f32(m, RLXVK_SHAPE(1))
                         : fuzz_byte(m->in) >= 200          ? f32(m, RLXVK_SHAPE(1))
                                                            : RLXVK_NONE;
    return rlxvk_dequant_matmul_scaled(m->g, x, w, scale, extra, &scheme);
}

static rlxvk_tensor call_grouped_matmul(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2);
    rlxvk_shape s = shape_of(m, x);
    int64_t k = last(s, 0), n = fuzz_dim(m), experts = fuzz_dim(m);
    bool transposed = fuzz_bool(m->in);
    rlxvk_tensor w = f32(m, transposed ? RLXVK_SHAPE(experts, n, k) : RLXVK_SHAPE(experts, k, n));
    return rlxvk_grouped_matmul(m->g, x, w, f32(m, RLXVK_SHAPE(last(s, 1))), transposed);
}

static rlxvk_tensor call_group_limited_gate(fuzz_maker *m)
{
    rlxvk_tensor sig = fuzz_ranked(m, RLXVK_F32, 2);
    rlxvk_gate_options o = {.n_group = fuzz_number(m),
                            .topk_group = fuzz_number(m),
                            .top_k = fuzz_number(m),
                            .routed_scaling = fuzz_real(m)};
    if (fuzz_byte(m->in) >= 240)
        o.num_experts = fuzz_number(m);
    return rlxvk_group_limited_gate(m->g, sig, f32(m, shape_of(m, sig)), &o);
}

static rlxvk_tensor call_dense_solve(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m);
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(n, n));
    return rlxvk_dense_solve(m->g, a,
                             f32(m,
                                 fuzz_bool(m->in) ? RLXVK_SHAPE(n) : RLXVK_SHAPE(n, fuzz_dim(m))));
}

static rlxvk_tensor call_batched_dense_solve(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m), b = fuzz_dim(m);
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(b, n, n));
    return rlxvk_batched_dense_solve(m->g, a,
                                     f32(m, fuzz_bool(m->in) ? RLXVK_SHAPE(b, n)
                                                             : RLXVK_SHAPE(b, n, fuzz_dim(m))));
}

static rlxvk_tensor call_dot_general(fuzz_maker *m)
{
    rlxvk_tensor a = fuzz_any(m), b = fuzz_bool(m->in) ? a : fuzz_any(m);
    uint32_t bits = fuzz_byte(m->in);
    uint32_t rank_a = shape_of(m, a).rank, rank_b = shape_of(m, b).rank;
    int32_t contract_a[2] = {fuzz_axis(m, rank_a), fuzz_axis(m, rank_a)};
    int32_t contract_b[2] = {fuzz_axis(m, rank_b), fuzz_axis(m, rank_b)};
    int32_t batch_a[1] = {fuzz_axis(m, rank_a)}, batch_b[1] = {fuzz_axis(m, rank_b)};
    rlxvk_dot_general_options o = {contract_a, contract_b, (bits & 3) % 3,
                                   batch_a,    batch_b,    bits >> 2 & 1};
    if (bits & 8)
        memcpy(contract_b, contract_a, sizeof contract_a);
    if (bits & 16)
        batch_b[0] = batch_a[0];
    return rlxvk_dot_general(m->g, a, b, &o);
}

static rlxvk_tensor call_lora_matmul(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t k = last(shape_of(m, x), 0), n = fuzz_dim(m), r = fuzz_dim(m);
    rlxvk_tensor w = matrix(m, k, n, false), a = matrix(m, k, r, false), b = matrix(m, r, n, false);
    return rlxvk_lora_matmul(m->g, x, w, a, b, fuzz_real(m));
}

/* ---- Norms, transformers ---- */

static rlxvk_tensor norm(fuzz_maker *m,
                         rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor,
                                               rlxvk_tensor, int32_t, float))
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    int32_t axis = fuzz_bool(m->in) ? -1 : fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)s.rank : axis);
    rlxvk_shape vector = RLXVK_SHAPE(at < s.rank ? s.dims[at] : 1);
    rlxvk_tensor gamma = fuzz_maybe(m, vector), beta = fuzz_maybe(m, vector);
    return build(m->g, x, gamma, beta, axis, fuzz_real(m));
}

static rlxvk_tensor call_layer_norm(fuzz_maker *m)
{
    return norm(m, rlxvk_layer_norm);
}

static rlxvk_tensor call_rms_norm(fuzz_maker *m)
{
    return norm(m, rlxvk_rms_norm);
}

static rlxvk_tensor
residual_norm(fuzz_maker *m, rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor,
                                                   rlxvk_tensor, rlxvk_tensor, rlxvk_tensor, float))
{
    rlxvk_tensor x = fuzz_any(m), residual = f32(m, shape_of(m, x));
    rlxvk_shape vector = RLXVK_SHAPE(last(shape_of(m, x), 0));
    rlxvk_tensor bias = fuzz_maybe(m, vector), gamma = fuzz_maybe(m, vector);
    rlxvk_tensor beta = fuzz_maybe(m, vector);
    return build(m->g, x, residual, bias, gamma, beta, fuzz_real(m));
}

static rlxvk_tensor call_fused_residual_ln(fuzz_maker *m)
{
    return residual_norm(m, rlxvk_fused_residual_ln);
}

static rlxvk_tensor call_fused_residual_rms_norm(fuzz_maker *m)
{
    return residual_norm(m, rlxvk_fused_residual_rms_norm);
}

static rlxvk_tensor call_layer_norm2d(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 4);
    rlxvk_shape channels = RLXVK_SHAPE(last(shape_of(m, x), 2));
    rlxvk_tensor gamma = fuzz_maybe(m, channels), beta = fuzz_maybe(m, channels);
    return rlxvk_layer_norm2d(m->g, x, gamma, beta, fuzz_real(m));
}

static rlxvk_tensor call_group_norm(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2 + fuzz_below(m->in, 4));
    rlxvk_shape s = shape_of(m, x), channels = RLXVK_SHAPE(s.rank > 1 ? s.dims[1] : 1);
    rlxvk_tensor gamma = fuzz_maybe(m, channels), beta = fuzz_maybe(m, channels);
    return rlxvk_group_norm(m->g, x, gamma, beta, fuzz_number(m), fuzz_real(m));
}

static rlxvk_tensor call_batch_norm_inference(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    int32_t axis = fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)s.rank : axis);
    rlxvk_shape channels = RLXVK_SHAPE(at < s.rank ? s.dims[at] : 1);
    rlxvk_tensor gamma = fuzz_maybe(m, channels), beta = fuzz_maybe(m, channels);
    rlxvk_tensor mean = f32(m, channels), var = f32(m, channels);
    return rlxvk_batch_norm_inference(m->g, x, gamma, beta, mean, var, fuzz_real(m), axis);
}

static rlxvk_tensor call_fused_swiglu(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_fused_swiglu(m->g, x, fuzz_bool(m->in));
}

static rlxvk_tensor call_rope(fuzz_maker *m)
{
    int64_t pairs = fuzz_dim(m), heads = fuzz_dim(m), s = fuzz_dim(m), b = fuzz_dim(m);
    rlxvk_rope_options o = {times(pairs, 2), times(pairs, 2), (rlxvk_rope_style)any_of(m, 2),
                            (rlxvk_rope_table)any_of(m, 3)};
    uint32_t layout = fuzz_below(m->in, 3);
    if (fuzz_byte(m->in) >= 192)
        o.n_rot = fuzz_number(m);
    int64_t width = times(heads, o.head_dim);
    rlxvk_tensor x = f32(m, layout == 0   ? RLXVK_SHAPE(b, s, width)
                            : layout == 1 ? RLXVK_SHAPE(b, heads, s, o.head_dim)
                                          : RLXVK_SHAPE(s, width));
    rlxvk_shape table = RLXVK_SHAPE(o.table == RLXVK_ROPE_TABLE_PER_TOKEN ? times(b, s) : s, pairs);
    rlxvk_tensor cos = f32(m, table), sin = f32(m, table);
    return rlxvk_rope(m->g, x, cos, sin, &o);
}

static rlxvk_tensor call_axial_rope2d(fuzz_maker *m)
{
    rlxvk_axial_rope2d_options o = {fuzz_dim(m),
                                    fuzz_dim(m),
                                    times(4, fuzz_dim(m)),
                                    fuzz_dim(m),
                                    fuzz_real(m),
                                    fuzz_number(m),
                                    (rlxvk_axial_repeat)any_of(m, 2),
                                    fuzz_bool(m->in)};
    int64_t repeat = o.repeat_factor ? o.repeat_factor : 1;
    rlxvk_shape s = RLXVK_SHAPE(fuzz_dim(m), times(times(o.end_x, o.end_y), repeat),
                                times(o.num_heads, o.head_dim));
    return rlxvk_axial_rope2d(m->g, f32(m, s), &o);
}

static rlxvk_tensor attention(fuzz_maker *m, bool with_lse)
{
    int64_t b = fuzz_dim(m), h = fuzz_dim(m), sq = fuzz_dim(m), sk = fuzz_dim(m), d = fuzz_dim(m);
    int64_t kv = fuzz_byte(m->in) & 3 ? h : fuzz_dim(m);
    rlxvk_attention_options o = {h,
                                 kv,
                                 d,
                                 (rlxvk_attention_mask)any_of(m, 5),
                                 fuzz_number(m),
                                 0,
                                 0,
                                 (rlxvk_attention_layout)any_of(m, 5)};
    rlxvk_shape q, k;
    switch (o.layout) {
    case RLXVK_LAYOUT_BSHD:
        q = RLXVK_SHAPE(b, sq, h, d), k = RLXVK_SHAPE(b, sk, kv, d);
        break;
    case RLXVK_LAYOUT_PACKED:
        q = RLXVK_SHAPE(b, sq, times(h, d)), k = RLXVK_SHAPE(b, sk, times(kv, d));
        break;
    case RLXVK_LAYOUT_BH_SD:
        q = RLXVK_SHAPE(times(b, h), sq, d), k = RLXVK_SHAPE(times(b, kv), sk, d);
        break;
    default:
        q = RLXVK_SHAPE(b, h, sq, d), k = RLXVK_SHAPE(b, kv, sk, d);
    }
    if (fuzz_byte(m->in) >= 200) {
        o.score_scale = fuzz_real(m);
        o.softcap = fuzz_real(m);
        o.num_heads = fuzz_number(m);
    }
    rlxvk_tensor query = f32(m, q), key = f32(m, k), value = f32(m, k), mask = RLXVK_NONE;
    if (o.mask >= RLXVK_MASK_CUSTOM || fuzz_byte(m->in) >= 250) {
        rlxvk_shape masks[] = {RLXVK_SHAPE(sk), RLXVK_SHAPE(b, sk), RLXVK_SHAPE(b, sq, sk),
                               RLXVK_SHAPE(b, h, sq, sk), RLXVK_SHAPE(1, 1, sq, sk)};
        mask = f32(m, masks[fuzz_below(m->in, 5)]);
    }
    if (!with_lse)
        return rlxvk_attention(m->g, query, key, value, mask, &o);
    rlxvk_tensor lse = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_attention_with_lse(m->g, query, key, value, mask, &o, &lse);
    fuzz_keep(m, lse);
    return y;
}

static rlxvk_tensor call_attention(fuzz_maker *m)
{
    return attention(m, false);
}

static rlxvk_tensor call_attention_with_lse(fuzz_maker *m)
{
    return attention(m, true);
}

static rlxvk_tensor call_fused_attention_block(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), e = fuzz_dim(m), h = fuzz_dim(m);
    int64_t d = times(2, fuzz_dim(m)), width = times(h, d);
    uint32_t bits = fuzz_byte(m->in);
    rlxvk_attention_block k = {.num_heads = h, .head_dim = bits & 128 ? fuzz_number(m) : d};
    k.hidden = f32(m, RLXVK_SHAPE(b, s, e));
    k.qkv_w = f32(m, RLXVK_SHAPE(e, times(3, width)));
    k.out_w = f32(m, RLXVK_SHAPE(width, e));
    k.mask = f32(m, RLXVK_SHAPE(b, s));
    if (bits & 1)
        k.qkv_b = f32(m, RLXVK_SHAPE(times(3, width)));
    if (bits & 1 || bits & 64)
        k.out_b = f32(m, RLXVK_SHAPE(e));
    if (bits & 2)
        k.cos = f32(m, RLXVK_SHAPE(s, d / 2));
    if (bits & 2)
        k.sin = f32(m, RLXVK_SHAPE(s, d / 2));
    return rlxvk_fused_attention_block(m->g, &k);
}

static rlxvk_tensor call_fused_transformer_layer(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), e = fuzz_dim(m), h = fuzz_dim(m), d = fuzz_dim(m);
    int64_t width = times(h, d), wide = fuzz_dim(m);
    rlxvk_transformer_layer l = {.num_heads = h, .head_dim = d, .intermediate_size = wide};
    rlxvk_tensor *const biases[] = {&l.qkv_b, &l.out_b, &l.ln1_b, &l.fc1_b, &l.fc2_b, &l.ln2_b};
    const int64_t lengths[] = {times(3, width), e, e, wide, e, e};
    uint32_t bits = fuzz_byte(m->in) & 1 ? 63 : 0;
    l.hidden = f32(m, RLXVK_SHAPE(b, s, e));
    l.qkv_w = f32(m, RLXVK_SHAPE(e, times(3, width)));
    l.out_w = f32(m, RLXVK_SHAPE(width, e));
    l.ln1_g = f32(m, RLXVK_SHAPE(e));
    l.fc1_w = f32(m, RLXVK_SHAPE(e, wide));
    l.fc2_w = f32(m, RLXVK_SHAPE(wide, e));
    l.ln2_g = f32(m, RLXVK_SHAPE(e));
    l.mask = f32(m, RLXVK_SHAPE(b, s));
    if (fuzz_byte(m->in) >= 250)
        bits = fuzz_byte(m->in);
    for (uint32_t i = 0; i < 6; i++)
        if (bits >> i & 1)
            *biases[i] = f32(m, RLXVK_SHAPE(lengths[i]));
    l.eps1 = fuzz_real(m);
    l.eps2 = fuzz_real(m);
    l.activation = (rlxvk_activation)any_of(m, 18);
    return rlxvk_fused_transformer_layer(m->g, &l);
}

/* ---- Images ---- */

static rlxvk_conv_options window(fuzz_maker *m, uint32_t spatial)
{
    rlxvk_conv_options o = {0};
    uint32_t bits = fuzz_byte(m->in);
    for (uint32_t i = 0; i < spatial; i++) {
        if (bits & 1)
            o.stride[i] = fuzz_number(m);
        if (bits & 2)
            o.padding[i] = fuzz_number(m);
        if (bits & 4)
            o.dilation[i] = fuzz_number(m);
    }
    return o;
}

/* Of an image [n, ci, spatial], its weights and bias; transposed ones begin with ci. */
static rlxvk_tensor convolution(fuzz_maker *m, bool transposed)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3), bits = fuzz_byte(m->in);
    rlxvk_conv_options o = window(m, spatial);
    int64_t groups = bits & 1 ? 1 + fuzz_below(m->in, 3) : 1;
    int64_t in = times(groups, fuzz_dim(m)), out = times(groups, fuzz_dim(m));
    rlxvk_shape x = fuzz_shape(m, 2 + spatial), w = fuzz_shape(m, 2 + spatial);
    x.dims[1] = in;
    w.dims[0] = transposed ? in : out;
    w.dims[1] = (transposed ? out : in) / groups;
    o.groups = groups;
    if (bits & 2 && transposed)
        o.output_padding[0] = fuzz_number(m);
    if (bits >= 250)
        o.kernel[0] = fuzz_number(m);
    rlxvk_tensor image = f32(m, x), weights = f32(m, w);
    rlxvk_tensor bias = fuzz_maybe(m, RLXVK_SHAPE(out));
    return (transposed ? rlxvk_conv_transpose2d : rlxvk_conv)(m->g, image, weights, bias, &o);
}

static rlxvk_tensor call_conv(fuzz_maker *m)
{
    return convolution(m, false);
}

static rlxvk_tensor call_conv_transpose2d(fuzz_maker *m)
{
    return convolution(m, true);
}

static rlxvk_tensor call_im2col(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 4);
    rlxvk_conv_options o = window(m, 2);
    o.kernel[0] = fuzz_dim(m);
    o.kernel[1] = fuzz_dim(m);
    return rlxvk_im2col(m->g, x, &o);
}

/* The rows that an im2col of the image would have. */
static rlxvk_tensor call_col2im(fuzz_maker *m)
{
    int64_t height = fuzz_dim(m), width = fuzz_dim(m), kh = fuzz_dim(m), kw = fuzz_dim(m);
    rlxvk_conv_options o = {.kernel = {kh, kw}};
    int64_t down = height >= kh && kh > 0 ? height - kh + 1 : 1;
    int64_t across = width >= kw && kw > 0 ? width - kw + 1 : 1;
    if (fuzz_byte(m->in) >= 200)
        o = window(m, 2);
    rlxvk_tensor columns = f32(m, RLXVK_SHAPE(times(times(down, across), 1 + fuzz_below(m->in, 3)),
                                              times(times(kh, kw), fuzz_dim(m))));
    return rlxvk_col2im(m->g, columns, height, width, &o);
}

/* ---- Sequence models ---- */

typedef struct recurrent {
    rlxvk_recurrent_options options;
    rlxvk_tensor x, w_ih, w_hh, bias, bias2, h0, c0;
} recurrent;

static recurrent recurrent_operands(fuzz_maker *m, int64_t gates, bool two_states)
{
    recurrent r = {{.hidden_size = fuzz_dim(m)}, .h0 = RLXVK_NONE};
    uint32_t bits = fuzz_byte(m->in);
    int64_t hidden = r.options.hidden_size, layers = 1, nets = bits & 1 ? 2 : 1;
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), width = fuzz_dim(m);
    r.options.bidirectional = bits & 1;
    r.options.relu = bits & 2;
    if (bits & 4)
        r.options.num_layers = layers = 1 + fuzz_below(m->in, 3);
    if (bits >= 250)
        r.options.num_layers = fuzz_number(m);
    int64_t rows = times(gates, hidden), inner = times(layers - 1, times(nets, hidden));
    int64_t total = inner > INT32_MAX || width > INT32_MAX || width < 0 ? INT64_MAX : width + inner;
    r.x = f32(m, RLXVK_SHAPE(b, s, width));
    r.w_ih = f32(m, RLXVK_SHAPE(times(times(nets, rows), total)));
    r.w_hh = f32(m, RLXVK_SHAPE(times(times(times(layers, nets), rows), hidden)));
    r.bias = f32(m, RLXVK_SHAPE(times(times(layers, nets), rows)));
    r.bias2 = gates == 3 ? f32(m, RLXVK_SHAPE(times(times(layers, nets), rows))) : RLXVK_NONE;
    if (bits & 8) {
        r.options.in_place = bits & 16;
        r.h0 = f32(m, RLXVK_SHAPE(times(layers, nets), b, hidden));
        if (two_states)
            r.c0 = f32(m, RLXVK_SHAPE(times(layers, nets), b, hidden));
    }
    return r;
}

static rlxvk_tensor call_lstm(fuzz_maker *m)
{
    recurrent r = recurrent_operands(m, 4, true);
    rlxvk_tensor h = RLXVK_NONE, c = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_lstm(m->g, r.x, r.w_ih, r.w_hh, r.bias, r.h0, r.c0, &r.options, &h,
                                fuzz_bool(m->in) ? &c : NULL);
    fuzz_keep(m, h);
    fuzz_keep(m, c);
    return y;
}

static rlxvk_tensor call_gru(fuzz_maker *m)
{
    recurrent r = recurrent_operands(m, 3, false);
    rlxvk_tensor h = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_gru(m->g, r.x, r.w_ih, r.w_hh, r.bias, r.bias2, r.h0, &r.options, &h);
    fuzz_keep(m, h);
    return y;
}

static rlxvk_tensor call_rnn(fuzz_maker *m)
{
    recurrent r = recurrent_operands(m, 1, false);
    rlxvk_tensor h = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_rnn(m->g, r.x, r.w_ih, r.w_hh, r.bias, r.h0, &r.options, &h);
    fuzz_keep(m, h);
    return y;
}

static rlxvk_tensor call_selective_scan(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), c = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(b, s, c)), delta = f32(m, RLXVK_SHAPE(b, s, c));
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(c, n)), in = f32(m, RLXVK_SHAPE(b, s, n));
    return rlxvk_selective_scan(m->g, x, delta, a, in, f32(m, RLXVK_SHAPE(b, s, n)));
}

static rlxvk_tensor call_mamba2(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), p = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(b, s, h, p)), dt = f32(m, RLXVK_SHAPE(b, s, h));
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(h)), in = f32(m, RLXVK_SHAPE(b, s, h, n));
    rlxvk_tensor c = f32(m, RLXVK_SHAPE(b, s, h, n)), last_state = RLXVK_NONE;
    rlxvk_tensor state = fuzz_maybe(m, RLXVK_SHAPE(b, h, p, n));
    rlxvk_tensor y = rlxvk_mamba2(m->g, x, dt, a, in, c, state, fuzz_bool(m->in), &last_state);
    fuzz_keep(m, last_state);
    return y;
}

static rlxvk_tensor call_gated_delta_net(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_shape wide = RLXVK_SHAPE(b, s, h, n), narrow = RLXVK_SHAPE(b, s, h);
    rlxvk_tensor q = f32(m, wide), k = f32(m, wide), v = f32(m, wide);
    rlxvk_tensor decay = f32(m, narrow), beta = f32(m, narrow), last_state = RLXVK_NONE;
    rlxvk_tensor state = fuzz_maybe(m, RLXVK_SHAPE(b, h, n, n));
    rlxvk_tensor y = rlxvk_gated_delta_net(m->g, q, k, v, decay, beta, state, fuzz_bool(m->in),
                                           fuzz_bool(m->in) ? &last_state : NULL);
    fuzz_keep(m, last_state);
    return y;
}

/* ---- 8-bit integers ---- */

static rlxvk_tensor quantized(fuzz_maker *m, rlxvk_dtype dtype,
                              rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor,
                                                    const rlxvk_quantize_options *))
{
    rlxvk_tensor x = fuzz_ranked(m, dtype, fuzz_below(m->in, 4));
    rlxvk_shape s = shape_of(m, x);
    float scales[8] = {fuzz_real(m), fuzz_real(m), 1, 1, 1, 1, 1, 1};
    int32_t zeros[8] = {(int32_t)fuzz_number(m), 0, 1, 2, 3, 4, 5, 6};
    rlxvk_quantize_options o = {.scales = scales, .count = 1, .per_axis = fuzz_bool(m->in)};
    o.zero_points = fuzz_bool(m->in) ? zeros : NULL;
    if (o.per_axis) {
        o.axis = fuzz_axis(m, s.rank);
        uint32_t at = (uint32_t)(o.axis < 0 ? o.axis + (int32_t)s.rank : o.axis);
        o.count = at < s.rank && s.dims[at] < 8 ? (size_t)s.dims[at] : fuzz_below(m->in, 9);
    }
    return build(m->g, x, &o);
}

static rlxvk_tensor call_quantize(fuzz_maker *m)
{
    return quantized(m, RLXVK_F32, rlxvk_quantize);
}

static rlxvk_tensor call_dequantize(fuzz_maker *m)
{
    return quantized(m, RLXVK_I8, rlxvk_dequantize);
}

static rlxvk_requantize requantize(fuzz_maker *m)
{
    return (rlxvk_requantize){(int32_t)fuzz_number(m), (int32_t)fuzz_number(m),
                              (int32_t)fuzz_number(m), fuzz_real(m)};
}

static rlxvk_tensor integer_bias(fuzz_maker *m, int64_t n)
{
    return fuzz_bool(m->in) ? fuzz_fit(m, RLXVK_I32, RLXVK_SHAPE(n)) : RLXVK_NONE;
}

static rlxvk_tensor call_qmatmul(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_I8, 2 + fuzz_below(m->in, 2));
    int64_t k = last(shape_of(m, x), 0), n = fuzz_dim(m);
    rlxvk_tensor w = fuzz_fit(m, RLXVK_I8, RLXVK_SHAPE(k, n)), bias = integer_bias(m, n);
    rlxvk_requantize o = requantize(m);
    return rlxvk_qmatmul(m->g, x, w, bias, &o);
}

static rlxvk_tensor call_qconv2d(fuzz_maker *m)
{
    rlxvk_conv_options like = window(m, 2);
    rlxvk_qconv2d_options o = {.requantize = requantize(m), .groups = 1 + fuzz_below(m->in, 2)};
    for (int i = 0; i < 2; i++) {
        o.stride[i] = like.stride[i];
        o.padding[i] = like.padding[i];
        o.dilation[i] = like.dilation[i];
    }
    rlxvk_shape x = fuzz_shape(m, 4), w = fuzz_shape(m, 4);
    w.dims[1] = x.dims[1];
    x.dims[1] = times(x.dims[1], o.groups);
    w.dims[0] = times(w.dims[0], o.groups);
    if (fuzz_byte(m->in) >= 250)
        o.kernel[0] = fuzz_number(m);
    rlxvk_tensor image = fuzz_fit(m, RLXVK_I8, x), weights = fuzz_fit(m, RLXVK_I8, w);
    return rlxvk_qconv2d(m->g, image, weights, integer_bias(m, w.dims[0]), &o);
}

/* ---- Spectra ---- */

static rlxvk_fft_norm any_norm(fuzz_maker *m)
{
    return (rlxvk_fft_norm)any_of(m, 3);
}

/* Lengths beyond which a table, not a check, would be what takes the time. */
static int64_t length_of_table(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m);
    return n > 4096 && n <= INT32_MAX ? n % 4096 : n;
}

/* A complex tensor, or a block of real and imaginary parts. */
static rlxvk_tensor signal(fuzz_maker *m)
{
    rlxvk_shape s = fuzz_shape(m, 1 + fuzz_below(m->in, 3));
    if (fuzz_bool(m->in))
        return fuzz_fit(m, RLXVK_C64, s);
    s.dims[s.rank - 1] = times(2, s.dims[s.rank - 1]);
    return f32(m, s);
}

static rlxvk_tensor call_fft(fuzz_maker *m)
{
    rlxvk_tensor x = signal(m);
    return rlxvk_fft(m->g, x, fuzz_bool(m->in), any_norm(m));
}

static rlxvk_tensor call_fft_axis(fuzz_maker *m)
{
    rlxvk_tensor x = signal(m);
    return rlxvk_fft_axis(m->g, x, fuzz_axis(m, shape_of(m, x).rank), fuzz_bool(m->in),
                          any_norm(m));
}

static rlxvk_tensor call_fftn(fuzz_maker *m)
{
    rlxvk_tensor x = signal(m);
    int32_t axes[] = {fuzz_axis(m, shape_of(m, x).rank), fuzz_axis(m, shape_of(m, x).rank)};
    return rlxvk_fftn(m->g, x, fuzz_bool(m->in) ? axes : NULL, fuzz_below(m->in, 3),
                      fuzz_bool(m->in), any_norm(m));
}

static rlxvk_tensor call_pad_last(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_pad_last(m->g, x, fuzz_dim(m));
}

static rlxvk_tensor call_fft_split(fuzz_maker *m)
{
    rlxvk_tensor im = RLXVK_NONE, re = rlxvk_fft_split(m->g, fuzz_any(m), &im);
    fuzz_keep(m, im);
    return re;
}

static rlxvk_tensor call_fft_merge(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m);
    return rlxvk_fft_merge(m->g, re, f32(m, shape_of(m, re)));
}

static rlxvk_tensor spectrum(fuzz_maker *m,
                             rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor, int64_t,
                                                   rlxvk_fft_norm, rlxvk_tensor *))
{
    rlxvk_tensor x = fuzz_any(m), im = RLXVK_NONE;
    int64_t n = length_of_table(m);
    rlxvk_tensor re = build(m->g, x, n, any_norm(m), &im);
    fuzz_keep(m, im);
    return re;
}

static rlxvk_tensor call_fft_real(fuzz_maker *m)
{
    return spectrum(m, rlxvk_fft_real);
}

static rlxvk_tensor call_rfft(fuzz_maker *m)
{
    return spectrum(m, rlxvk_rfft);
}

static rlxvk_tensor call_irfft(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m), im = f32(m, shape_of(m, re));
    int64_t bins = last(shape_of(m, re), 0), n = fuzz_dim(m);
    return rlxvk_irfft(m->g, re, im, fuzz_bool(m->in) && bins < 4096 ? 2 * bins - 2 + (n & 1) : n,
                       any_norm(m));
}

static rlxvk_tensor call_rfft_block(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t n = length_of_table(m);
    return rlxvk_rfft_block(m->g, x, n, any_norm(m));
}

static rlxvk_tensor call_irfft_block(fuzz_maker *m)
{
    int64_t n = length_of_table(m), bins = n > 0 ? 2 * (n / 2 + 1) : 2;
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(fuzz_dim(m), bins));
    return rlxvk_irfft_block(m->g, x, n, any_norm(m));
}

static rlxvk_tensor call_ifft_real(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m), im = f32(m, shape_of(m, re));
    return rlxvk_ifft_real(m->g, re, im, any_norm(m));
}

static rlxvk_tensor call_frames(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t length = fuzz_dim(m);
    return rlxvk_frames(m->g, x, length, fuzz_dim(m));
}

static rlxvk_tensor call_stft(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_stft_options o = {fuzz_dim(m), fuzz_dim(m), fuzz_bool(m->in) ? length_of_table(m) : 0,
                            any_norm(m), fuzz_bool(m->in)};
    return rlxvk_stft(m->g, x, fuzz_maybe(m, RLXVK_SHAPE(o.length)), &o);
}

static rlxvk_tensor call_psd(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m), im = f32(m, shape_of(m, re));
    return rlxvk_psd(m->g, re, im, fuzz_dim(m));
}

static rlxvk_tensor call_psd_real(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_psd_real(m->g, x, any_norm(m));
}

static rlxvk_tensor call_fftfreq(fuzz_maker *m)
{
    return rlxvk_fftfreq(m->g, length_of_table(m));
}

static rlxvk_tensor call_rfftfreq(fuzz_maker *m)
{
    return rlxvk_rfftfreq(m->g, length_of_table(m));
}

static rlxvk_tensor call_hann(fuzz_maker *m)
{
    int64_t n = length_of_table(m);
    return rlxvk_hann(m->g, n, fuzz_bool(m->in));
}

static rlxvk_tensor call_fft_conv1d(fuzz_maker *m)
{
    rlxvk_tensor a = fuzz_any(m);
    rlxvk_shape s = shape_of(m, a);
    if (s.rank)
        s.dims[s.rank - 1] = fuzz_dim(m);
    return rlxvk_fft_conv1d(m->g, a, f32(m, s));
}

static rlxvk_tensor complex_of(fuzz_maker *m)
{
    return fuzz_ranked(m, RLXVK_C64, fuzz_below(m->in, 4));
}

static rlxvk_tensor call_complex_norm_sq(fuzz_maker *m)
{
    return rlxvk_complex_norm_sq(m->g, complex_of(m));
}

static rlxvk_tensor call_conjugate(fuzz_maker *m)
{
    return rlxvk_conjugate(m->g, complex_of(m));
}

static rlxvk_tensor call_complex_norm_sq_backward(fuzz_maker *m)
{
    rlxvk_tensor z = complex_of(m);
    return rlxvk_complex_norm_sq_backward(m->g, z, f32(m, shape_of(m, z)));
}

/* ---- Random numbers ---- */

static const rlxvk_rng_stream *any_stream(fuzz_maker *m, rlxvk_rng_stream *s)
{
    uint32_t bits = fuzz_byte(m->in);
    *s = (rlxvk_rng_stream){.has_key = bits & 1, .has_op_seed = bits & 2};
    if (bits & 1)
        s->key = fuzz_bits(m->in, 8);
    if (bits & 2)
        s->op_seed = fuzz_real(m);
    return bits & 4 ? NULL : s;
}

static rlxvk_tensor call_rng_uniform(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_shape shape = fuzz_shape(m, fuzz_below(m->in, 4));
    return rlxvk_rng_uniform(m->g, shape, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

static rlxvk_tensor call_rng_normal(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_shape shape = fuzz_shape(m, fuzz_below(m->in, 4));
    return rlxvk_rng_normal(m->g, shape, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

static rlxvk_tensor call_rng_uniform_like(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_tensor like = fuzz_any(m);
    return rlxvk_rng_uniform_like(m->g, like, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

static rlxvk_tensor call_rng_normal_like(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_tensor like = fuzz_any(m);
    return rlxvk_rng_normal_like(m->g, like, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

static rlxvk_tensor call_sample(fuzz_maker *m)
{
    rlxvk_tensor logits = fuzz_any(m);
    rlxvk_sample_options o = {.temperature = fuzz_real(m),
                              .top_k = (uint32_t)fuzz_number(m),
                              .top_p = fuzz_real(m),
                              .seed = fuzz_byte(m->in)};
    (void)any_stream(m, &o.stream);
    return rlxvk_sample(m->g, logits, &o);
}

/* ---- Control flow ---- */

/* A body with inputs like `inputs` and, last among its tensors, results like `results`. */
static rlxvk_graph *make_body(fuzz_maker *m, const rlxvk_tensor *inputs, size_t count,
                              const rlxvk_tensor *results, size_t result_count)
{
    rlxvk_graph *g = NULL;
    if (m->depth || rlxvk_graph_create(&g) != RLXVK_OK)
        return NULL;
    fuzz_maker body = {.g = g, .in = m->in, .depth = m->depth + 1};
    for (size_t i = 0; i < count; i++) {
        char name[2] = {(char)('a' + i), 0};
        fuzz_keep(&body, rlxvk_input(g, name, rlxvk_tensor_dtype(m->g, inputs[i]),
                                     rlxvk_tensor_shape(m->g, inputs[i])));
    }
    fuzz_build(&body, fuzz_below(m->in, 4));
    for (size_t i = 0; i < result_count; i++) {
        rlxvk_dtype dtype = rlxvk_tensor_dtype(m->g, results[i]);
        rlxvk_graph_output(g, fuzz_fit(&body, dtype, rlxvk_tensor_shape(m->g, results[i])));
    }
    return g;
}

/* Tensors that bodies take and give. */
static size_t captures(fuzz_maker *m, rlxvk_tensor *out)
{
    size_t count = 1 + fuzz_below(m->in, 3);
    for (size_t i = 0; i < count; i++)
        out[i] = fuzz_any(m);
    return count;
}

static rlxvk_tensor call_call(fuzz_maker *m)
{
    rlxvk_tensor in[3], out[2] = {RLXVK_NONE, RLXVK_NONE};
    size_t count = captures(m, in), results = 1 + fuzz_below(m->in, 2) % count;
    rlxvk_graph *body = make_body(m, in, count, in, results);
    if (!body)
        return rlxvk_copy(m->g, in[0]);
    rlxvk_call(m->g, body, in, fuzz_byte(m->in) < 250 ? count : fuzz_below(m->in, 4), out,
               fuzz_byte(m->in) < 250 ? results : 2);
    rlxvk_graph_destroy(body);
    fuzz_keep(m, out[1]);
    return out[0];
}

static rlxvk_tensor call_if(fuzz_maker *m)
{
    rlxvk_tensor in[3], predicate = fuzz_bool(m->in) ? f32(m, RLXVK_SCALAR) : fuzz_any(m);
    size_t count = captures(m, in);
    rlxvk_graph *yes = make_body(m, in, count, in, 1), *no = make_body(m, in, count, in, 1);
    rlxvk_tensor y =
        yes && no ? rlxvk_if(m->g, predicate, yes, no, in, count) : rlxvk_copy(m->g, predicate);
    rlxvk_graph_destroy(yes);
    rlxvk_graph_destroy(no);
    return y;
}

static rlxvk_tensor call_while(fuzz_maker *m)
{
    rlxvk_tensor in[3], out[3] = {RLXVK_NONE, RLXVK_NONE, RLXVK_NONE};
    size_t count = captures(m, in);
    rlxvk_graph *condition = make_body(m, in, count, in, 1);
    rlxvk_graph *body = make_body(m, in, count, in, count);
    if (!body || !condition) {
        rlxvk_graph_destroy(body);
        rlxvk_graph_destroy(condition);
        return rlxvk_copy(m->g, in[0]);
    }
    rlxvk_while(m->g, condition, body, fuzz_below(m->in, 4), in, count, out);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    for (size_t i = 1; i < count; i++)
        fuzz_keep(m, out[i]);
    return out[0];
}

static rlxvk_tensor call_scan(fuzz_maker *m)
{
    rlxvk_tensor in[3] = {fuzz_any(m)}, step[3] = {in[0]};
    rlxvk_scan_options o = {.length = 1 + fuzz_below(m->in, 3),
                            .save_trajectory = fuzz_bool(m->in)};
    uint32_t bits = fuzz_byte(m->in);
    size_t count = 1;
    if (bits & 1) {
        step[count] = in[count] = fuzz_any(m);
        o.broadcast_count = 1;
        count++;
    }
    if (bits & 2) { /* a sequence: the step sees what stands below its leading axis */
        rlxvk_shape s = rlxvk_tensor_shape(m->g, in[0]);
        for (uint32_t i = s.rank < RLXVK_MAX_RANK ? s.rank++ : 0; i > 0; i--)
            s.dims[i] = s.dims[i - 1];
        s.dims[0] = o.length;
        step[count] = in[0];
        in[count++] = fuzz_fit(m, rlxvk_tensor_dtype(m->g, in[0]), s);
    }
    if (bits >= 240)
        o.checkpoints = fuzz_number(m);
    if (bits >= 250)
        o.length = fuzz_number(m) % 64;
    rlxvk_graph *body = make_body(m, step, count, in, 1);
    if (!body)
        return rlxvk_copy(m->g, in[0]);
    rlxvk_tensor y = rlxvk_scan(m->g, body, in, count, &o);
    rlxvk_graph_destroy(body);
    return y;
}

/* ---- Custom ops ---- */

static bool custom_infer(const rlxvk_shape *inputs, size_t count, const void *attributes,
                         size_t size, rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)out_dtype;
    if (count == 0 || (size && *(const uint8_t *)attributes == 255))
        return false;
    *out_shape = inputs[0];
    return true;
}

static size_t count_of(const rlxvk_shape *s)
{
    size_t numel = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        numel *= (size_t)s->dims[i];
    return numel;
}

static int custom_host(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                       size_t size, const rlxvk_shape *shape, float *out)
{
    (void)count, (void)attributes, (void)size;
    size_t given = inputs[0].values ? count_of(&inputs[0].shape) : 0;
    for (size_t i = 0; i < count_of(shape); i++)
        out[i] = i < given ? 2 * inputs[0].values[i] : 1;
    return 0;
}

void fuzz_register(void)
{
    static const rlxvk_custom_op op = {.name = "fuzz",
                                       .input_count = 2,
                                       .infer = custom_infer,
                                       .host = custom_host};
    FUZZ_CHECK(rlxvk_register_custom(&op) == RLXVK_OK, "%s", rlxvk_last_error());
}

static rlxvk_tensor call_custom(fuzz_maker *m)
{
    rlxvk_tensor in[2] = {fuzz_any(m), fuzz_any(m)};
    uint8_t attribute = fuzz_byte(m->in);
    return rlxvk_custom(m->g, attribute == 254 ? "no such op" : "fuzz", in,
                        attribute == 253 ? 1 : 2, &attribute, attribute & 1);
}

static rlxvk_tensor call_custom_packed(fuzz_maker *m)
{
    rlxvk_tensor in[2] = {fuzz_any(m), fuzz_any(m)};
    rlxvk_shape shape = fuzz_bool(m->in) ? fuzz_shape(m, fuzz_below(m->in, 5)) : shape_of(m, in[0]);
    return rlxvk_custom_packed(m->g, "fuzz", in, 2, NULL, 0, shape, any_dtype(m));
}

/* ---- The table ---- */

#define CALL(row)       {.name = #row, .call = call_##row},
#define UNARY(row)      {.name = #row, .unary = rlxvk_##row},
#define BINARY(row)     {.name = #row, .binary = rlxvk_##row},
#define TERNARY(row)    {.name = #row, .ternary = rlxvk_##row},
#define REDUCE(row)     {.name = #row, .reduce = rlxvk_##row},
#define ALONG(row)      {.name = #row, .along = rlxvk_##row},
#define ALONG_WITH(row) {.name = #row, .along_with = rlxvk_##row},
#define POOLED(row)     {.name = #row, .pool = rlxvk_##row},

/* clang-format off */
const fuzz_builder fuzz_builders[] = {
    CALL(input) CALL(param) CALL(constant) UNARY(stop_gradient) CALL(reshape) CALL(cast) UNARY(copy)
    BINARY(add) BINARY(sub) BINARY(mul) BINARY(div) BINARY(max) BINARY(min) BINARY(pow) TERNARY(fma)
    BINARY(eq) BINARY(ne) BINARY(lt) BINARY(le) BINARY(gt) BINARY(ge) TERNARY(where)
    UNARY(gelu) UNARY(gelu_approx) UNARY(silu) UNARY(relu) UNARY(sigmoid) UNARY(tanh) UNARY(exp)
    UNARY(log) UNARY(sqrt) UNARY(rsqrt) UNARY(neg) UNARY(abs) UNARY(sin) UNARY(cos) UNARY(tan)
    UNARY(atan) UNARY(round) CALL(elementwise_region)
    CALL(matmul) CALL(matmul_with) CALL(fused_matmul_bias_act) CALL(dequant_matmul)
    CALL(dequant_gather) CALL(dequant_matmul_scaled)
    REDUCE(reduce_sum) REDUCE(reduce_mean) REDUCE(reduce_max) REDUCE(reduce_min) REDUCE(reduce_prod)
    ALONG(softmax) ALONG_WITH(cumsum) ALONG_WITH(argmax) ALONG_WITH(argmin)
    CALL(layer_norm) CALL(rms_norm) CALL(fused_residual_ln) CALL(fused_residual_rms_norm)
    CALL(fused_swiglu) CALL(rope) CALL(attention) CALL(attention_with_lse)
    CALL(call) CALL(if) CALL(while) CALL(scan) CALL(custom) CALL(custom_packed)
    CALL(rng_uniform) CALL(rng_normal) CALL(rng_uniform_like) CALL(rng_normal_like) CALL(sample)
    CALL(transpose) CALL(narrow) CALL(concat) CALL(expand) CALL(reverse) CALL(gather)
    CALL(take_along_axis) CALL(write_rows)
    CALL(layer_norm2d) CALL(group_norm) CALL(batch_norm_inference)
    POOLED(pool_max) POOLED(pool_mean) POOLED(pool_min) POOLED(pool_sum) POOLED(pool_prod)
    UNARY(resize_nearest2x) CALL(axial_rope2d) CALL(scatter_add) CALL(topk)
    CALL(conv) CALL(conv_transpose2d) CALL(im2col) CALL(col2im)
    CALL(grouped_matmul) CALL(dequant_grouped_matmul) CALL(dequant_moe_weights)
    CALL(group_limited_gate) CALL(dense_solve) CALL(batched_dense_solve)
    CALL(dot_general) CALL(lora_matmul) CALL(fused_attention_block) CALL(fused_transformer_layer)
    CALL(lstm) CALL(gru) CALL(rnn) CALL(selective_scan) CALL(mamba2) CALL(gated_delta_net)
    CALL(quantize) CALL(dequantize) CALL(qmatmul) CALL(qconv2d)
    CALL(fft) CALL(fft_axis) CALL(fftn) CALL(pad_last) CALL(fft_split) CALL(fft_merge)
    CALL(fft_real) CALL(rfft) CALL(irfft) CALL(rfft_block) CALL(irfft_block) CALL(ifft_real)
    CALL(frames) CALL(stft) CALL(psd) CALL(psd_real) CALL(fftfreq) CALL(rfftfreq) CALL(hann)
    CALL(fft_conv1d) CALL(complex_norm_sq) CALL(conjugate) CALL(complex_norm_sq_backward)
};
/* clang-format on */
const size_t fuzz_builder_count = sizeof fuzz_builders / sizeof *fuzz_builders;
fuzz_count fuzz_counts[sizeof fuzz_builders / sizeof *fuzz_builders];
