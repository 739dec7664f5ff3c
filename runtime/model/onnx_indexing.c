/* Lowerings of ops that read and write by index, sort, count, pad and repeat. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <string.h>

/* ---- Indices ---- */

/* Indices below 0 count from the end of an axis of `size` elements: a number or a code. */
static rlxvk_tensor from_front(call *c, rlxvk_tensor indices, int64_t size)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor length, moved;
    indices = call_cast(c, indices, ONNX_FLOAT);
    if (size < 0) {
        call_refuse(c, NULL,
                    "the indexed axis is a named dim, from whose end indices may count; "
                    "give it a size (--bind NAME=SIZE)");
        return indices;
    }
    length = call_scalar(c, (double)size);
    moved = rlxvk_add(g, indices, length);
    return rlxvk_where(g, rlxvk_lt(g, indices, call_scalar(c, 0)), moved, indices);
}

/* Operand i as indices; known ones are moved on the host. */
static rlxvk_tensor indices_of(call *c, size_t i, int64_t size)
{
    const host_array *h =
        c->inputs[i]->host || c->inputs[i]->initializer ? call_host(c, i, "the indices") : NULL;
    onnx_value v = {.type = ONNX_INT64, .input = UINT32_MAX};
    host_array *moved;
    rlxvk_tensor t = RLXVK_NONE;
    bool below = false;
    if (c->failed || !h || !h->integers)
        return from_front(c, call_tensor(c, i), size);
    for (uint64_t k = 0; k < h->numel; k++)
        below = below || h->integers[k] < 0;
    if (!below)
        return call_tensor(c, i);
    if (size < 0)
        return from_front(c, call_tensor(c, i), size);
    moved = host_reshape(c, h, h->shape);
    for (uint64_t k = 0; moved && k < moved->numel; k++)
        moved->integers[k] += moved->integers[k] < 0 ? size : 0;
    v.host = moved;
    if (moved) {
        rlxvk_status status = import_tensor(c->import, &v, &t);
        if (status != RLXVK_OK)
            call_fail(c, NULL, status);
    }
    return t;
}

void onnx_gather(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", 0), s.rank);
    if (c->failed)
        return;
    if (c->inputs[0]->host && call_is_known(c, 1)) {
        const host_array *x = call_host(c, 0, "the result"),
                         *i = call_host_integers(c, 1, "the result");
        if (i)
            call_give_host(c, 0, host_gather(c, x, i, (uint32_t)axis));
        return;
    }
    call_give(c, 0,
              rlxvk_gather(c->graph, call_tensor(c, 0), indices_of(c, 1, s.dims[axis]), axis));
}

void onnx_gather_elements(call *c)
{
    rlxvk_shape s = call_shape(c, 0), shape = call_shape(c, 1);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", 0), s.rank);
    rlxvk_tensor x = call_tensor(c, 0), indices;
    if (c->failed)
        return;
    indices = indices_of(c, 1, s.dims[axis]);
    if (shape.rank != s.rank) {
        call_refuse(c, NULL, "the indices have %u axes, the data %u", shape.rank, s.rank);
        return;
    }
    /* The indices may have shorter axes than the data. */
    for (uint32_t i = 0; i < s.rank; i++)
        if (i != (uint32_t)axis && shape.dims[i] != s.dims[i])
            x = rlxvk_narrow(c->graph, x, (int32_t)i, 0, shape.dims[i]);
    call_give(c, 0, rlxvk_take_along_axis(c->graph, x, indices, axis));
}

/* Indices [.., K] of the first K axes: each column counts from the end of its own axis. */
static rlxvk_tensor multi_indices(call *c, rlxvk_shape data, uint32_t first)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 1);
    float sizes[RLXVK_MAX_RANK] = {0};
    rlxvk_tensor indices = call_cast(c, call_tensor(c, 1), ONNX_FLOAT), ends, moved;
    int64_t k = s.rank ? s.dims[s.rank - 1] : 0;
    if (k < 1 || k + first > data.rank) {
        call_refuse(c, NULL, "the last axis of the indices has %lld elements, the data %u axes",
                    (long long)k, data.rank);
        return indices;
    }
    for (int64_t i = 0; i < k; i++)
        sizes[i] = (float)data.dims[first + i];
    ends = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(k), sizes, (size_t)k * sizeof *sizes);
    moved = rlxvk_add(g, indices, ends);
    return rlxvk_where(g, rlxvk_lt(g, indices, call_scalar(c, 0)), moved, indices);
}

/* Batch axes become indices: the data's first axes are joined with one of them. */
void onnx_gather_nd(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), at = call_shape(c, 1), flat;
    uint32_t batch = (uint32_t)MAX(call_integer(c, "batch_dims", 0), 0);
    rlxvk_tensor x = call_tensor(c, 0), indices, rows;
    int64_t count = 1, k = at.rank ? at.dims[at.rank - 1] : 0;
    if (c->failed || !call_is_fixed(c, s) || !call_is_fixed(c, at))
        return;
    indices = multi_indices(c, s, batch);
    if (batch == 0 || c->failed) {
        call_give(c, 0, rlxvk_gather_nd(g, x, indices));
        return;
    }
    for (uint32_t i = 0; i < batch && i < at.rank; i++)
        count *= at.dims[i];
    flat = (rlxvk_shape){.rank = s.rank - batch + 1, .dims = {count}};
    memcpy(flat.dims + 1, s.dims + batch, (s.rank - batch) * sizeof *s.dims);
    x = rlxvk_reshape(g, x, flat);
    indices = rlxvk_reshape(g, indices, RLXVK_SHAPE(count, -1, k));
    rows = rlxvk_reshape(g, rlxvk_arange(g, 0, 1, count), RLXVK_SHAPE(count, 1, 1));
    flat = call_tensor_shape(c, indices);
    flat.dims[2] = 1;
    rows = rlxvk_expand(g, rows, flat);
    x = rlxvk_gather_nd(g, x, rlxvk_concat(g, (rlxvk_tensor[]){rows, indices}, 2, -1));
    flat = (rlxvk_shape){.rank = at.rank - 1};
    memcpy(flat.dims, at.dims, flat.rank * sizeof *at.dims);
    for (uint32_t i = batch + (uint32_t)k; i < s.rank && flat.rank < RLXVK_MAX_RANK; i++)
        flat.dims[flat.rank++] = s.dims[i];
    call_give(c, 0, rlxvk_reshape(g, x, flat));
}

static const char *const reductions[] = {"none", "add", "mul", "max", "min", NULL};
static const rlxvk_scatter_mode modes[] = {RLXVK_SCATTER_ASSIGN, RLXVK_SCATTER_ADD,
                                           RLXVK_SCATTER_MUL, RLXVK_SCATTER_MAX, RLXVK_SCATTER_MIN};

/* rlxvk_scatter wants the other axes as long as the data's; else every update gets all its
 * indices. */
static rlxvk_tensor scatter_short(call *c, rlxvk_tensor x, rlxvk_tensor indices,
                                  rlxvk_tensor updates, int32_t axis, rlxvk_scatter_mode mode)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape at = call_shape(c, 1), one;
    rlxvk_tensor columns[RLXVK_MAX_RANK];
    if (!call_is_fixed(c, at) || at.rank == RLXVK_MAX_RANK)
        return x;
    one = at;
    one.dims[one.rank++] = 1;
    for (uint32_t i = 0; i < at.rank; i++) {
        rlxvk_shape row = {.rank = one.rank};
        for (uint32_t k = 0; k < row.rank; k++)
            row.dims[k] = k == i ? at.dims[i] : 1;
        columns[i] =
            (int32_t)i == axis
                ? rlxvk_reshape(g, call_cast(c, indices, ONNX_FLOAT), one)
                : rlxvk_expand(g, rlxvk_reshape(g, rlxvk_arange(g, 0, 1, at.dims[i]), row), one);
    }
    return rlxvk_scatter_nd(g, x, rlxvk_concat(g, columns, at.rank, -1), updates, mode);
}

void onnx_scatter_elements(call *c)
{
    rlxvk_shape s = call_shape(c, 0), at = call_shape(c, 1);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", 0), s.rank);
    int mode = call_word(c, "reduction", reductions, 0);
    rlxvk_tensor x = call_tensor(c, 0), indices, updates = call_tensor(c, 2);
    bool whole = at.rank == s.rank;
    if (c->failed)
        return;
    indices = indices_of(c, 1, s.dims[axis]);
    for (uint32_t i = 0; i < s.rank && i < at.rank; i++)
        whole = whole && (i == (uint32_t)axis || at.dims[i] == s.dims[i]);
    call_give(c, 0,
              whole ? rlxvk_scatter(c->graph, x, indices, updates, axis, modes[mode])
                    : scatter_short(c, x, indices, updates, axis, modes[mode]));
}

void onnx_scatter_nd(call *c)
{
    int mode = call_word(c, "reduction", reductions, 0);
    rlxvk_shape s = call_shape(c, 0);
    rlxvk_tensor x = call_tensor(c, 0), updates = call_tensor(c, 2), indices;
    if (c->failed || !call_is_fixed(c, s))
        return;
    indices = multi_indices(c, s, 0);
    call_give(c, 0, rlxvk_scatter_nd(c->graph, x, indices, updates, modes[mode]));
}

/* ---- One-hot, triangles ---- */

void onnx_one_hot(call *c)
{
    rlxvk_graph *g = c->graph;
    int64_t depth = call_host_integer(c, 1, "the length of an axis", 0);
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", -1), s.rank + 1);
    rlxvk_tensor values = call_tensor(c, 2), hot, on, off;
    if (c->failed)
        return;
    hot = rlxvk_one_hot(g, indices_of(c, 0, depth), depth, axis, 1, 0);
    off = rlxvk_reshape(g, rlxvk_narrow(g, values, 0, 0, 1), RLXVK_SCALAR);
    on = rlxvk_reshape(g, rlxvk_narrow(g, values, 0, 1, 1), RLXVK_SCALAR);
    call_give_as(c, 0, rlxvk_where(g, hot, on, off), call_type(c, 2));
}

void onnx_trilu(call *c)
{
    bool upper = call_flag(c, "upper", true);
    int64_t k = call_host_integer(c, 1, "the diagonal", 0);
    rlxvk_tensor x = call_tensor(c, 0);
    call_give(c, 0, upper ? rlxvk_triu(c->graph, x, k) : rlxvk_tril(c->graph, x, k));
}

void onnx_eye_like(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int32_t type = (int32_t)call_integer(c, "dtype", call_type(c, 0));
    int64_t k = call_integer(c, "k", 0);
    host_array *h;
    if (s.rank != 2 || !call_is_fixed(c, s)) {
        call_refuse(c, NULL, "its operand must be a matrix");
        return;
    }
    h = call_make_host(c, type, s);
    for (int64_t i = 0; h && i < s.dims[0]; i++)
        if (i + k >= 0 && i + k < s.dims[1] && h->reals)
            h->reals[i * s.dims[1] + i + k] = 1;
        else if (i + k >= 0 && i + k < s.dims[1])
            h->integers[i * s.dims[1] + i + k] = 1;
    call_give_host(c, 0, h);
}

/* ---- Order ---- */

/* The largest elements come first; the smallest are the largest of the negated ones. */
void onnx_top_k(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", -1), s.rank);
    bool largest = call_flag(c, "largest", true);
    int64_t k = c->opset < 10 ? call_integer(c, "k", 0)
                              : call_host_integer(c, 1, "the length of the result", 0);
    rlxvk_tensor x = call_tensor(c, 0), order, top;
    call_ignore(c, "sorted"); /* any order is allowed without it */
    if (c->failed)
        return;
    order = rlxvk_argsort(g, x, axis, largest);
    top = rlxvk_narrow(g, order, axis, 0, k);
    call_give(c, 0, rlxvk_take_along_axis(g, x, top, axis));
    call_give_as(c, 1, top, ONNX_INT64);
}

static void arg_extreme(call *c, bool largest)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", 0), s.rank);
    bool keep = call_flag(c, "keepdims", true), last = call_flag(c, "select_last_index", false);
    rlxvk_tensor x = call_tensor(c, 0), y;
    if (c->failed || (last && !call_is_fixed(c, s)))
        return;
    if (last)
        x = rlxvk_reverse(g, x, &axis, 1);
    y = largest ? rlxvk_argmax(g, x, axis, keep) : rlxvk_argmin(g, x, axis, keep);
    if (last)
        y = rlxvk_sub(g, call_scalar(c, (double)s.dims[axis] - 1), y);
    call_give_as(c, 0, y, ONNX_INT64);
}

void onnx_arg_max(call *c)
{
    arg_extreme(c, true);
}

void onnx_arg_min(call *c)
{
    arg_extreme(c, false);
}

static void running(call *c, rlxvk_tensor of(rlxvk_graph *, rlxvk_tensor, int32_t, bool))
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int64_t given = call_host_integer(c, 1, "the axis", 0);
    int32_t axis = c->failed ? 0 : call_axis(c, NULL, given, s.rank);
    bool exclusive = call_flag(c, "exclusive", false), reverse = call_flag(c, "reverse", false);
    rlxvk_tensor x = call_tensor(c, 0);
    if (reverse)
        x = rlxvk_reverse(g, x, &axis, 1);
    x = of(g, x, axis, exclusive);
    call_give(c, 0, reverse ? rlxvk_reverse(g, x, &axis, 1) : x);
}

void onnx_cum_sum(call *c)
{
    running(c, rlxvk_cumsum);
}

void onnx_cum_prod(call *c)
{
    running(c, rlxvk_cumprod);
}

/* Each sequence is reversed up to its length: element t of the result is element length - 1 - t. */
void onnx_reverse_sequence(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), row = {.rank = s.rank}, lengths = {.rank = s.rank};
    int32_t time = call_axis(c, "time_axis", call_integer(c, "time_axis", 0), s.rank);
    int32_t batch = call_axis(c, "batch_axis", call_integer(c, "batch_axis", 1), s.rank);
    rlxvk_tensor x = call_tensor(c, 0), at, length, from;
    if (c->failed || !call_is_fixed(c, s))
        return;
    for (uint32_t i = 0; i < s.rank; i++) {
        row.dims[i] = (int32_t)i == time ? s.dims[i] : 1;
        lengths.dims[i] = (int32_t)i == batch ? s.dims[i] : 1;
    }
    at = rlxvk_reshape(g, rlxvk_arange(g, 0, 1, s.dims[time]), row);
    length = rlxvk_reshape(g, call_cast(c, call_tensor(c, 1), ONNX_FLOAT), lengths);
    from = rlxvk_sub(g, rlxvk_sub(g, length, call_scalar(c, 1)), at);
    from = rlxvk_where(g, rlxvk_lt(g, at, length), from, at);
    call_give(c, 0, rlxvk_take_along_axis(g, x, rlxvk_expand(g, from, s), time));
}

/* ---- Repeats, blocks, padding ---- */

void onnx_tile(call *c)
{
    const host_array *h = call_host_integers(c, 1, "the shape of the result");
    if (h && h->numel != call_shape(c, 0).rank)
        call_refuse(c, NULL, "there are %llu repeats for %u axes", (unsigned long long)h->numel,
                    call_shape(c, 0).rank);
    if (h && !c->failed)
        call_give(c, 0, rlxvk_tile(c->graph, call_tensor(c, 0), h->integers, (size_t)h->numel));
}

/* Splits axes of [N, C, H, W], permutes the parts, and joins them. */
static void move_blocks(call *c, rlxvk_shape split, const int32_t *perm, rlxvk_shape joined)
{
    rlxvk_tensor x = rlxvk_reshape(c->graph, call_tensor(c, 0), split);
    x = rlxvk_transpose(c->graph, x, perm, split.rank);
    call_give(c, 0, rlxvk_reshape(c->graph, x, joined));
}

void onnx_depth_to_space(call *c)
{
    static const char *const words[] = {"DCR", "CRD", NULL};
    static const int32_t perms[][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    rlxvk_shape s = call_shape(c, 0), split;
    int64_t b = call_integer(c, "blocksize", 0);
    int mode = call_word(c, "mode", words, 0);
    if (c->failed || !call_is_fixed(c, s))
        return;
    if (s.rank != 4 || b < 1 || b > 32768 || s.dims[1] % (b * b)) {
        call_refuse(c, "blocksize", "%lld does not divide the channels", (long long)b);
        return;
    }
    split = mode == 0 ? RLXVK_SHAPE(s.dims[0], b, b, s.dims[1] / (b * b), s.dims[2], s.dims[3])
                      : RLXVK_SHAPE(s.dims[0], s.dims[1] / (b * b), b, b, s.dims[2], s.dims[3]);
    move_blocks(c, split, perms[mode],
                RLXVK_SHAPE(s.dims[0], s.dims[1] / (b * b), s.dims[2] * b, s.dims[3] * b));
}

void onnx_space_to_depth(call *c)
{
    static const int32_t perm[] = {0, 3, 5, 1, 2, 4};
    rlxvk_shape s = call_shape(c, 0);
    int64_t b = call_integer(c, "blocksize", 0);
    if (c->failed || !call_is_fixed(c, s))
        return;
    if (s.rank != 4 || b < 1 || b > 32768 || s.dims[2] % b || s.dims[3] % b) {
        call_refuse(c, "blocksize", "%lld does not divide height and width", (long long)b);
        return;
    }
    move_blocks(c, RLXVK_SHAPE(s.dims[0], s.dims[1], s.dims[2] / b, b, s.dims[3] / b, b), perm,
                RLXVK_SHAPE(s.dims[0], s.dims[1] * b * b, s.dims[2] / b, s.dims[3] / b));
}

/* Amounts [begins.., ends..] of all axes, or from opset 18 on of some. */
static bool read_pads(call *c, uint32_t rank, int64_t *before, int64_t *after)
{
    size_t count = 0;
    const int64_t *pads = c->opset < 11 ? call_integers(c, "pads", &count) : NULL;
    call_axes axes = {.count = 0};
    if (c->opset >= 11) {
        const host_array *h = call_host_integers(c, 1, "the shape of the result");
        pads = h ? h->integers : NULL;
        count = h ? (size_t)h->numel : 0;
    }
    if (c->opset >= 18 && call_has(c, 3))
        axes = call_read_axes(c, 18, 3, rank);
    for (uint32_t i = 0; i < rank; i++)
        before[i] = after[i] = 0;
    for (uint32_t i = 0; i < rank && !axes.given; i++)
        axes.items[axes.count++] = (int32_t)i;
    if (c->failed || !pads || count != 2 * axes.count) {
        call_refuse(c, "pads", "it does not have two amounts for each axis");
        return false;
    }
    for (uint32_t i = 0; i < axes.count; i++) {
        before[axes.items[i]] = pads[i];
        after[axes.items[i]] = pads[axes.count + i];
    }
    return true;
}

void onnx_pad(call *c)
{
    static const char *const words[] = {"constant", "reflect", "edge", "wrap", NULL};
    int64_t before[RLXVK_MAX_RANK], after[RLXVK_MAX_RANK];
    rlxvk_pad_options options = {0};
    rlxvk_shape s = call_shape(c, 0);
    options.mode = (rlxvk_pad_mode)call_word(c, "mode", words, 0);
    options.value = c->opset < 11 ? call_real(c, "value", 0)
                                  : (float)call_host_real(c, 2, "what is padded with", 0);
    if (read_pads(c, s.rank, before, after))
        call_give(c, 0, rlxvk_pad(c->graph, call_tensor(c, 0), before, after, s.rank, &options));
}

/* Crops or pads axes around their middle. */
void onnx_center_crop_pad(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t before[RLXVK_MAX_RANK] = {0}, after[RLXVK_MAX_RANK] = {0};
    const host_array *sizes = call_host_integers(c, 1, "the shape of the result");
    size_t count;
    const int64_t *axes = call_integers(c, "axes", &count);
    if (c->failed || !sizes || !call_is_fixed(c, s))
        return;
    if (sizes->numel != (axes ? count : s.rank)) {
        call_refuse(c, "axes", "there is not one size for each axis");
        return;
    }
    for (uint64_t i = 0; i < sizes->numel; i++) {
        int32_t axis = call_axis(c, "axes", axes ? axes[i] : (int64_t)i, s.rank);
        int64_t more = sizes->integers[i] - s.dims[axis];
        /* Of an odd number, padding puts the larger half behind; so does cropping. */
        before[axis] = more >= 0 ? more / 2 : -(-more / 2);
        after[axis] = more - before[axis];
    }
    call_give(c, 0, rlxvk_pad(c->graph, call_tensor(c, 0), before, after, s.rank, NULL));
}
