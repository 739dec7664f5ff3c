/*
 * Chooses operands and attributes for the builders of rlxvk_ops.h, and for the composites of norms
 * and attention. Shapes mostly agree, because the helpers of fuzz_graph.h choose them.
 */
#include "base/base.h"
#include "support/fuzz_calls.h"

/* How many values rlxvk_activation has, including none. */
enum {
    ACTIVATIONS = 1
#define ACTIVATION(...) +1
#include "args/activation.def"
};

/* ---- Leaves and movement ---- */

rlxvk_tensor fuzz_call_input(fuzz_maker *m)
{
    rlxvk_dtype dtype = any_dtype(m);
    return rlxvk_input(m->g, fuzz_bool(m->in) ? "in" : "other", dtype,
                       fuzz_shape(m, fuzz_below(m->in, 10)));
}

rlxvk_tensor fuzz_call_param(fuzz_maker *m)
{
    static const char *const names[] = {"w", "t0", "", NULL};
    rlxvk_dtype dtype = any_dtype(m);
    const char *name = names[fuzz_below(m->in, 16) < 13 ? 0 : fuzz_below(m->in, 3)];
    return rlxvk_param(m->g, name, dtype, fuzz_shape(m, fuzz_below(m->in, 9)));
}

rlxvk_tensor fuzz_call_constant(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_reshape(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x), to = {.rank = 1, .dims = {-1}};
    uint32_t byte = fuzz_byte(m->in);
    if (byte >= 200)
        return rlxvk_reshape(m->g, x, fuzz_shape(m, fuzz_below(m->in, 9)));
    /* Joins all axes, all but the first, or all but the last, which gets an axis of 1 before it. Or
     * splits the last axis into pairs. */
    if (s.rank && byte & 1)
        to = (rlxvk_shape){.rank = 2, .dims = {s.dims[0], -1}};
    if (s.rank > 1 && byte & 2)
        to = (rlxvk_shape){.rank = 3, .dims = {-1, 1, s.dims[s.rank - 1]}};
    if (byte & 4 && last(s, 0) % 2 == 0)
        to = (rlxvk_shape){.rank = 3, .dims = {-1, last(s, 0) / 2, 2}};
    return rlxvk_reshape(m->g, x, to);
}

rlxvk_tensor fuzz_call_cast(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_cast(m->g, x, any_dtype(m));
}

rlxvk_tensor fuzz_call_transpose(fuzz_maker *m)
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

static rlxvk_tensor narrow(fuzz_maker *m, const rlxvk_narrow_options *options)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    int32_t axis = fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)s.rank : axis);
    int64_t extent = at < s.rank && s.dims[at] > 0 ? s.dims[at] : 1;
    int64_t start = fuzz_number(m), length = fuzz_number(m);
    if (fuzz_byte(m->in) < 240) {
        start = (int64_t)((uint64_t)start % (uint64_t)extent);
        length = (int64_t)((uint64_t)length % ((uint64_t)(extent - start) + 1));
    }
    return options ? rlxvk_narrow_with(m->g, x, axis, start, length, options)
                   : rlxvk_narrow(m->g, x, axis, start, length);
}

rlxvk_tensor fuzz_call_narrow(fuzz_maker *m)
{
    return narrow(m, NULL);
}

rlxvk_tensor fuzz_call_narrow_with(fuzz_maker *m)
{
    return narrow(m, &(rlxvk_narrow_options){.clamp_tail = true});
}

rlxvk_tensor fuzz_call_concat(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_expand(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_reverse(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    uint32_t rank = shape_of(m, x).rank;
    int32_t axes[2] = {fuzz_axis(m, rank), fuzz_axis(m, rank)};
    return rlxvk_reverse(m->g, x, axes, fuzz_below(m->in, 3));
}

rlxvk_tensor fuzz_call_gather(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), indices = fuzz_ranked(m, RLXVK_I32, fuzz_below(m->in, 3));
    return rlxvk_gather(m->g, x, indices, fuzz_axis(m, shape_of(m, x).rank));
}

rlxvk_tensor fuzz_call_take_along_axis(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int32_t axis;
    rlxvk_shape s = other_along(m, x, &axis);
    return rlxvk_take_along_axis(m->g, x, fuzz_fit(m, RLXVK_I32, s), axis);
}

rlxvk_tensor fuzz_call_write_rows(fuzz_maker *m)
{
    rlxvk_tensor cache = fuzz_ranked(m, RLXVK_F32, 3);
    rlxvk_shape s = shape_of(m, cache);
    s.dims[1] = fuzz_dim(m);
    rlxvk_tensor rows = f32(m, s);
    return rlxvk_write_rows(m->g, cache, rows, f32(m, RLXVK_SHAPE(1)));
}

rlxvk_tensor fuzz_call_scatter_add(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    rlxvk_tensor indices = f32(m, RLXVK_SHAPE(s.rank ? s.dims[0] : 1));
    return rlxvk_scatter_add(m->g, x, indices, fuzz_dim(m));
}

rlxvk_tensor fuzz_call_topk(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t n = last(shape_of(m, x), 0), k = fuzz_number(m);
    return rlxvk_topk(m->g, x,
                      fuzz_bool(m->in) && n > 0 ? 1 + (int64_t)((uint64_t)k % (uint64_t)n) : k);
}

/* ---- Products ---- */

static void fill_steps(fuzz_maker *m, rlxvk_region_step *steps, size_t step_count, size_t inputs)
{
    for (size_t i = 0; i < step_count; i++) {
        uint32_t bits = (uint32_t)fuzz_bits(m->in, 3);
        rlxvk_region_step *s = &steps[i];
        s->kind = bits & 7;
        s->op = (bits >> 3 & 31) % (s->kind == RLXVK_REGION_ACTIVATION ? 18 : 7);
        s->first = bits & 256 && i ? RLXVK_REGION_STEP((bits >> 9 & 7) % i)
                                   : RLXVK_REGION_INPUT((bits >> 9 & 7) % inputs);
        s->second = bits & 4096 && i ? RLXVK_REGION_STEP(i - 1)
                                     : RLXVK_REGION_INPUT((bits >> 13 & 7) % inputs);
        if (bits >> 16 >= 252)
            s->first = bits;
    }
}

rlxvk_tensor fuzz_call_elementwise_region(fuzz_maker *m)
{
    rlxvk_tensor inputs[4] = {fuzz_any(m)};
    rlxvk_region_step steps[RLXVK_REGION_MAX_STEPS + 1];
    rlxvk_region r = {.shape = shape_of(m, inputs[0]), .steps = steps};
    size_t count = 1 + fuzz_below(m->in, 4);
    for (size_t i = 1; i < count; i++) {
        uint32_t byte = fuzz_byte(m->in);
        rlxvk_shape part = r.shape;
        if (byte & 1 && part.rank) { /* a suffix of the shape, repeated */
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
    fill_steps(m, steps, r.step_count, count);
    if (fuzz_byte(m->in) >= 250)
        r.prologue = (rlxvk_region_prologue)fuzz_number(m);
    return rlxvk_elementwise_region(m->g, inputs, count, &r);
}

rlxvk_tensor fuzz_call_batch_elementwise_region(fuzz_maker *m)
{
    rlxvk_tensor inputs[9] = {fuzz_any(m)};
    rlxvk_region_step steps[4];
    rlxvk_region r = {.shape = shape_of(m, inputs[0]), .steps = steps};
    size_t count = 1 + fuzz_below(m->in, 9);
    for (size_t i = 1; i < count; i++)
        inputs[i] = f32(m, r.shape);
    if (r.shape.rank && fuzz_byte(m->in) < 250)
        r.shape.dims[0] = times(r.shape.dims[0], (int64_t)count);
    r.step_count = 1 + fuzz_below(m->in, 4);
    fill_steps(m, steps, r.step_count, fuzz_byte(m->in) < 250 ? 1 : count);
    return rlxvk_batch_elementwise_region(m->g, inputs, count, &r);
}

/* A matrix [k, n] or its transpose, F32 or packed to halves. */
static rlxvk_tensor matrix(fuzz_maker *m, int64_t k, int64_t n, bool transposed)
{
    static const rlxvk_dtype dtypes[] = {RLXVK_F32, RLXVK_F32, RLXVK_F32, RLXVK_F16, RLXVK_BF16};
    rlxvk_dtype dtype = dtypes[fuzz_below(m->in, 5)];
    return fuzz_fit(m, dtype, transposed ? RLXVK_SHAPE(n, k) : RLXVK_SHAPE(k, n));
}

rlxvk_tensor fuzz_call_matmul_with(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_matmul(fuzz_maker *m)
{
    rlxvk_tensor a = fuzz_any(m);
    int64_t k = last(shape_of(m, a), 0), n = fuzz_dim(m);
    return rlxvk_matmul(m->g, a, matrix(m, k, n, false));
}

rlxvk_tensor fuzz_call_fused_matmul_bias_act(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t k = last(shape_of(m, x), 0), n = fuzz_dim(m);
    bool transposed = fuzz_bool(m->in);
    rlxvk_tensor w = matrix(m, k, n, transposed), bias = f32(m, RLXVK_SHAPE(n));
    return rlxvk_fused_matmul_bias_act(m->g, x, w, bias, (rlxvk_activation)any_of(m, ACTIVATIONS),
                                       transposed);
}

/* A format, the number of elements in its blocks, and a U8 leaf of `rows` rows of k elements. */
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

rlxvk_tensor fuzz_call_dequant_matmul(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = times(block, 1 + fuzz_below(m->in, 2));
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(fuzz_dim(m), k));
    return rlxvk_dequant_matmul(m->g, x, packed(m, format, fuzz_dim(m), k), format);
}

rlxvk_tensor fuzz_call_projection(fuzz_maker *m)
{
    uint32_t block, bits = fuzz_byte(m->in);
    rlxvk_projection_options o = {.packed = bits & 1, .epsilon = bits & 2 ? 1e-5f : 0};
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = times(block, 1 + fuzz_below(m->in, 2)), n = times(fuzz_dim(m), 2);
    int64_t rows = bits & 4 ? 1 : fuzz_dim(m);
    o.gate = (rlxvk_projection_gate)(bits >> 3 & 3);
    o.format = format;
    if (bits & 32)
        o.gamma = f32(m, RLXVK_SHAPE(k));
    if (bits & 64)
        o.residual = f32(m, RLXVK_SHAPE(rows, o.gate ? n / 2 : n));
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(rows, k));
    return rlxvk_projection(m->g, x, o.packed ? packed(m, format, n, k) : matrix(m, k, n, true),
                            &o);
}

rlxvk_tensor fuzz_call_dequant_gather(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = times(block, 1 + fuzz_below(m->in, 2));
    rlxvk_tensor table = packed(m, format, fuzz_dim(m), k);
    rlxvk_tensor indices = fuzz_ranked(m, RLXVK_I32, fuzz_below(m->in, 3));
    return rlxvk_dequant_gather(m->g, table, indices, format,
                                fuzz_byte(m->in) < 250 ? k : fuzz_number(m));
}

rlxvk_tensor fuzz_call_dequant_grouped_matmul(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = block, n = fuzz_dim(m), rows = fuzz_dim(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(rows, k));
    rlxvk_tensor w = packed(m, format, times(n, 1 + fuzz_below(m->in, 3)), k);
    return rlxvk_dequant_grouped_matmul(m->g, x, w, f32(m, RLXVK_SHAPE(rows)), format, n);
}

rlxvk_tensor fuzz_call_dequant_moe_weights(fuzz_maker *m)
{
    uint32_t block;
    rlxvk_quant_format format = any_format(m, &block);
    int64_t k = block, n = fuzz_dim(m);
    rlxvk_tensor w = packed(m, format, times(n, 1 + fuzz_below(m->in, 3)), k);
    return rlxvk_dequant_moe_weights(m->g, w, format, fuzz_byte(m->in) < 250 ? k : fuzz_number(m),
                                     n);
}

rlxvk_tensor fuzz_call_dequant_matmul_scaled(fuzz_maker *m)
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
    int64_t groups = block > 0 ? k / block + (k % block != 0) : 1, count = times(groups, n);
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

rlxvk_tensor fuzz_call_grouped_matmul(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2);
    rlxvk_shape s = shape_of(m, x);
    int64_t k = last(s, 0), n = fuzz_dim(m), experts = fuzz_dim(m);
    bool transposed = fuzz_bool(m->in);
    rlxvk_tensor w = f32(m, transposed ? RLXVK_SHAPE(experts, n, k) : RLXVK_SHAPE(experts, k, n));
    return rlxvk_grouped_matmul(m->g, x, w, f32(m, RLXVK_SHAPE(last(s, 1))), transposed);
}

rlxvk_tensor fuzz_call_group_limited_gate(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_dense_solve(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m);
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(n, n));
    return rlxvk_dense_solve(m->g, a,
                             f32(m,
                                 fuzz_bool(m->in) ? RLXVK_SHAPE(n) : RLXVK_SHAPE(n, fuzz_dim(m))));
}

rlxvk_tensor fuzz_call_batched_dense_solve(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m), b = fuzz_dim(m);
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(b, n, n));
    return rlxvk_batched_dense_solve(m->g, a,
                                     f32(m, fuzz_bool(m->in) ? RLXVK_SHAPE(b, n)
                                                             : RLXVK_SHAPE(b, n, fuzz_dim(m))));
}

/* Square matrices, in a batch or alone. */
static rlxvk_tensor squares(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m);
    return f32(m, fuzz_bool(m->in) ? RLXVK_SHAPE(n, n) : RLXVK_SHAPE(fuzz_dim(m), n, n));
}

rlxvk_tensor fuzz_call_det(fuzz_maker *m)
{
    return rlxvk_det(m->g, squares(m));
}

rlxvk_tensor fuzz_call_slogdet(fuzz_maker *m)
{
    rlxvk_tensor log_abs, sign = rlxvk_slogdet(m->g, squares(m), &log_abs);
    return fuzz_bool(m->in) ? sign : log_abs;
}

rlxvk_tensor fuzz_call_cofactor(fuzz_maker *m)
{
    return rlxvk_cofactor(m->g, squares(m));
}

rlxvk_tensor fuzz_call_inverse(fuzz_maker *m)
{
    return rlxvk_inverse(m->g, squares(m));
}

rlxvk_tensor fuzz_call_dot_general(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_einsum(fuzz_maker *m)
{
    static const char letters[] = "abcdeA...->, ";
    rlxvk_tensor operands[3] = {fuzz_any(m), fuzz_any(m), fuzz_any(m)};
    uint32_t count = 1 + fuzz_byte(m->in) % 3;
    char equation[64] = "";
    text out = {equation, sizeof equation, 0};
    if (fuzz_bool(m->in)) { /* any text */
        for (uint32_t i = fuzz_byte(m->in) % 24; i > 0; i--)
            text_append(&out, "%c", letters[fuzz_byte(m->in) % (sizeof letters - 1)]);
        return rlxvk_einsum(m->g, equation, operands, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        text_append(&out, "%s", i ? "," : "");
        for (uint32_t k = 0; k < shape_of(m, operands[i]).rank; k++)
            text_append(&out, "%c", 'a' + (char)(fuzz_byte(m->in) % 5));
    }
    if (fuzz_bool(m->in))
        text_append(&out, "->%c", 'a' + (char)(fuzz_byte(m->in) % 5));
    return rlxvk_einsum(m->g, equation, operands, count);
}

rlxvk_tensor fuzz_call_lora_matmul(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_layer_norm(fuzz_maker *m)
{
    return norm(m, rlxvk_layer_norm);
}

rlxvk_tensor fuzz_call_rms_norm(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_fused_residual_ln(fuzz_maker *m)
{
    return residual_norm(m, rlxvk_fused_residual_ln);
}

rlxvk_tensor fuzz_call_fused_residual_rms_norm(fuzz_maker *m)
{
    return residual_norm(m, rlxvk_fused_residual_rms_norm);
}

rlxvk_tensor fuzz_call_layer_norm2d(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 4);
    rlxvk_shape channels = RLXVK_SHAPE(last(shape_of(m, x), 2));
    rlxvk_tensor gamma = fuzz_maybe(m, channels), beta = fuzz_maybe(m, channels);
    return rlxvk_layer_norm2d(m->g, x, gamma, beta, fuzz_real(m));
}

rlxvk_tensor fuzz_call_group_norm(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2 + fuzz_below(m->in, 4));
    rlxvk_shape s = shape_of(m, x), channels = RLXVK_SHAPE(s.rank > 1 ? s.dims[1] : 1);
    rlxvk_tensor gamma = fuzz_maybe(m, channels), beta = fuzz_maybe(m, channels);
    return rlxvk_group_norm(m->g, x, gamma, beta, fuzz_number(m), fuzz_real(m));
}

rlxvk_tensor fuzz_call_batch_norm_inference(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_fused_swiglu(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_fused_swiglu(m->g, x, fuzz_bool(m->in));
}

static rlxvk_tensor rope(fuzz_maker *m, bool back)
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
    return (back ? rlxvk_rope_backward : rlxvk_rope)(m->g, x, cos, sin, &o);
}

rlxvk_tensor fuzz_call_rope(fuzz_maker *m)
{
    return rope(m, false);
}

rlxvk_tensor fuzz_call_rope_backward(fuzz_maker *m)
{
    return rope(m, true);
}

rlxvk_tensor fuzz_call_axial_rope2d(fuzz_maker *m)
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

enum attention_call { ATTENTION_PLAIN, ATTENTION_WITH_LSE, ATTENTION_BACK };

static rlxvk_tensor attention(fuzz_maker *m, enum attention_call call)
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
    rlxvk_tensor lse = RLXVK_NONE, dk, dv, dbias;
    if (call == ATTENTION_PLAIN)
        return rlxvk_attention(m->g, query, key, value, mask, &o);
    if (call == ATTENTION_BACK) {
        rlxvk_tensor dq = rlxvk_attention_backward(m->g, query, key, value, f32(m, q), mask, &o,
                                                   &dk, &dv, &dbias);
        fuzz_keep(m, dk);
        fuzz_keep(m, dv);
        if (dbias.id)
            fuzz_keep(m, dbias);
        return dq;
    }
    rlxvk_tensor y = rlxvk_attention_with_lse(m->g, query, key, value, mask, &o, &lse);
    fuzz_keep(m, lse);
    return y;
}

rlxvk_tensor fuzz_call_attention(fuzz_maker *m)
{
    return attention(m, ATTENTION_PLAIN);
}

rlxvk_tensor fuzz_call_attention_with_lse(fuzz_maker *m)
{
    return attention(m, ATTENTION_WITH_LSE);
}

rlxvk_tensor fuzz_call_attention_backward(fuzz_maker *m)
{
    return attention(m, ATTENTION_BACK);
}

rlxvk_tensor fuzz_call_fused_attention_block(fuzz_maker *m)
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

rlxvk_tensor fuzz_call_fused_transformer_layer(fuzz_maker *m)
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
    l.activation = (rlxvk_activation)any_of(m, ACTIVATIONS);
    return rlxvk_fused_transformer_layer(m->g, &l);
}
