/* Operands and attributes for the builders of rlxvk_ops_array.h. */
#include "support/fuzz_calls.h"

#include <rlxvk_ops_array.h>

/* Numbers for up to `rank` axes, seldom for more. */
static size_t numbers(fuzz_maker *m, uint32_t rank, int64_t out[RLXVK_MAX_RANK + 1])
{
    size_t count = fuzz_below(m->in, (rank < RLXVK_MAX_RANK ? rank : RLXVK_MAX_RANK) + 1);
    if (fuzz_byte(m->in) >= 250)
        count = fuzz_below(m->in, RLXVK_MAX_RANK + 2);
    for (size_t i = 0; i < RLXVK_MAX_RANK + 1; i++)
        out[i] = i < count ? fuzz_number(m) : 0;
    return count;
}

/* Makes some of them negative. */
static void turn_some(fuzz_maker *m, int64_t numbers_of[], size_t count)
{
    uint32_t bits = fuzz_byte(m->in);
    for (size_t i = 0; i < count && i < 8; i++)
        if (bits >> i & 1 && numbers_of[i] != INT64_MIN)
            numbers_of[i] = -numbers_of[i];
}

rlxvk_tensor fuzz_call_pad(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t before[RLXVK_MAX_RANK + 1], after[RLXVK_MAX_RANK + 1];
    size_t count = numbers(m, shape_of(m, x).rank, before);
    rlxvk_pad_options o = {(rlxvk_pad_mode)any_of(m, 4), fuzz_real(m)};
    for (size_t i = 0; i <= RLXVK_MAX_RANK; i++)
        after[i] = i < count ? fuzz_number(m) : 0;
    if (fuzz_bool(m->in))
        turn_some(m, after, count);
    return rlxvk_pad(m->g, x, before, after, count, fuzz_bool(m->in) ? &o : NULL);
}

rlxvk_tensor fuzz_call_pad_backward(fuzz_maker *m)
{
    rlxvk_tensor dy = fuzz_any(m);
    int32_t axis = fuzz_axis(m, shape_of(m, dy).rank);
    int64_t before = fuzz_number(m);
    rlxvk_pad_mode mode = (rlxvk_pad_mode)(1 + any_of(m, 3) % 3);
    return rlxvk_pad_backward(m->g, dy, axis, before, fuzz_dim(m), mode);
}

rlxvk_tensor fuzz_call_slice(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t starts[RLXVK_MAX_RANK + 1], stops[RLXVK_MAX_RANK + 1], steps[RLXVK_MAX_RANK + 1];
    uint32_t rank = shape_of(m, x).rank;
    size_t count = numbers(m, rank, starts);
    numbers(m, rank, stops);
    numbers(m, rank, steps);
    turn_some(m, starts, count);
    turn_some(m, stops, count);
    turn_some(m, steps, count);
    if (fuzz_byte(m->in) < 240)
        for (size_t i = 0; i < count; i++)
            steps[i] += steps[i] == 0;
    return rlxvk_slice(m->g, x, starts, stops, fuzz_bool(m->in) ? steps : NULL, count);
}

rlxvk_tensor fuzz_call_roll(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    uint32_t rank = shape_of(m, x).rank;
    int64_t shifts[RLXVK_MAX_RANK + 1];
    int32_t axes[RLXVK_MAX_RANK + 1];
    size_t count = numbers(m, rank, shifts);
    turn_some(m, shifts, count);
    for (size_t i = 0; i <= RLXVK_MAX_RANK; i++)
        axes[i] = i < count ? fuzz_axis(m, rank) : 0;
    return rlxvk_roll(m->g, x, shifts, axes, count);
}

rlxvk_tensor fuzz_call_tile(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t repeats[RLXVK_MAX_RANK + 1];
    size_t count = numbers(m, shape_of(m, x).rank + fuzz_below(m->in, 2), repeats);
    return rlxvk_tile(m->g, x, repeats, count);
}

rlxvk_tensor fuzz_call_scatter(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int32_t axis;
    rlxvk_shape s = other_along(m, x, &axis);
    rlxvk_tensor indices = f32(m, s);
    rlxvk_tensor updates = fuzz_fit(m, rlxvk_tensor_dtype(m->g, x), s);
    return rlxvk_scatter(m->g, x, indices, updates, axis, (rlxvk_scatter_mode)any_of(m, 5));
}

/* A shape of indices for some of x's first axes. */
static rlxvk_shape indices_of(fuzz_maker *m, rlxvk_shape x)
{
    rlxvk_shape index = fuzz_shape(m, 1 + fuzz_below(m->in, 2));
    index.dims[index.rank - 1] = 1 + fuzz_below(m->in, x.rank ? x.rank : 1);
    return index;
}

rlxvk_tensor fuzz_call_scatter_nd(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x), index = indices_of(m, s), updates = index;
    updates.rank--;
    for (uint32_t i = (uint32_t)index.dims[index.rank - 1]; i < s.rank; i++)
        if (updates.rank < RLXVK_MAX_RANK)
            updates.dims[updates.rank++] = s.dims[i];
    rlxvk_tensor indices = f32(m, index);
    return rlxvk_scatter_nd(m->g, x, indices, fuzz_fit(m, rlxvk_tensor_dtype(m->g, x), updates),
                            (rlxvk_scatter_mode)any_of(m, 5));
}

rlxvk_tensor fuzz_call_gather_nd(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_gather_nd(m->g, x, f32(m, indices_of(m, shape_of(m, x))));
}

rlxvk_tensor fuzz_call_keep_first(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int32_t axis = fuzz_axis(m, shape_of(m, x).rank);
    return rlxvk_keep_first(m->g, x, f32(m, RLXVK_SHAPE(1)), axis, fuzz_real(m));
}

rlxvk_tensor fuzz_call_pack_first(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int32_t axis = fuzz_axis(m, shape_of(m, x).rank);
    return rlxvk_pack_first(m->g, x, f32(m, RLXVK_SHAPE(1)), axis);
}

rlxvk_tensor fuzz_call_unpack_first(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int32_t axis = fuzz_axis(m, shape_of(m, x).rank);
    return rlxvk_unpack_first(m->g, x, f32(m, RLXVK_SHAPE(1)), axis);
}

rlxvk_tensor fuzz_call_one_hot(fuzz_maker *m)
{
    rlxvk_tensor indices = fuzz_any(m);
    int32_t axis = fuzz_axis(m, shape_of(m, indices).rank + 1);
    float on = fuzz_real(m);
    return rlxvk_one_hot(m->g, indices, fuzz_dim(m), axis, on, fuzz_real(m));
}

rlxvk_tensor fuzz_call_histogram(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    float low = fuzz_real(m), width = fuzz_real(m);
    return rlxvk_histogram(m->g, x, fuzz_dim(m), low, fuzz_bool(m->in) ? low + width : width);
}

rlxvk_tensor fuzz_call_bincount(fuzz_maker *m)
{
    rlxvk_tensor indices = fuzz_any(m);
    rlxvk_tensor weights = fuzz_maybe(m, shape_of(m, indices));
    return rlxvk_bincount(m->g, indices, weights, fuzz_dim(m));
}
