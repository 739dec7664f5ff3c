/*
 * Lowerings of attention in the domain com.microsoft: Attention, MultiHeadAttention and
 * GroupQueryAttention. Past keys and values are operands, present ones are results.
 */
#include "model/host.h"
#include "model/onnx_heads.h"
#include "model/onnx_ops.h"

#include <string.h>

/* ---- Masks ---- */

/* A mask of keys: lengths [B], flags [B, keys] or [B, queries, keys]. */
static void read_mask(call *c, onnx_heads *h, size_t i)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, i);
    rlxvk_tensor t;
    call_ignore(c, "mask_filter_value"); /* a key that is masked has no weight */
    if (!call_has(c, i) || c->failed)
        return;
    t = call_cast(c, call_tensor(c, i), ONNX_FLOAT);
    if (s.rank == 1 && s.dims[0] == h->batch) {
        t = rlxvk_reshape(g, t, RLXVK_SHAPE(h->batch, 1, 1, 1));
        t = rlxvk_lt(g, rlxvk_arange(g, 0, 1, h->keys), t);
    } else if (s.rank == 2 && s.dims[1] == h->keys) {
        t = rlxvk_reshape(g, t, RLXVK_SHAPE(s.dims[0], 1, 1, h->keys));
    } else if (s.rank == 3 && s.dims[1] == h->queries && s.dims[2] == h->keys) {
        t = rlxvk_reshape(g, t, RLXVK_SHAPE(s.dims[0], 1, h->queries, h->keys));
    } else {
        call_refuse(c, NULL, "the shape of the mask (operand %zu) is not supported", i);
        return;
    }
    h->bias = onnx_add_condition(c, h->bias, rlxvk_gt(g, t, call_scalar(c, 0.5)));
}

static void read_bias(call *c, onnx_heads *h, size_t i)
{
    rlxvk_tensor t = call_has(c, i) ? call_cast(c, call_tensor(c, i), ONNX_FLOAT) : RLXVK_NONE;
    if (t.graph)
        h->bias = h->bias.graph ? rlxvk_add(c->graph, h->bias, t) : t;
}

static void refuse_operands(call *c, size_t first, size_t last, const char *what)
{
    for (size_t i = first; i <= last; i++)
        if (call_has(c, i))
            call_refuse(c, NULL, "%s (operand %zu) is not supported", what, i);
}

static rlxvk_tensor append(call *c, rlxvk_tensor past, rlxvk_tensor x)
{
    return rlxvk_concat(c->graph, (rlxvk_tensor[]){past, x}, 2, 2);
}

/* ---- MultiHeadAttention ---- */

/* Part i of a row of biases of three widths. */
static rlxvk_tensor add_bias(call *c, rlxvk_tensor x, size_t i, int64_t first, int64_t width)
{
    if (!call_has(c, i))
        return x;
    return rlxvk_add(c->graph, x, rlxvk_narrow(c->graph, call_tensor(c, i), 0, first, width));
}

/* Part i of [B, S, H, parts, D] as [B, H, S, D]. */
static rlxvk_tensor unpack(call *c, size_t operand, int64_t i)
{
    static const int32_t perm[] = {0, 2, 1, 3};
    rlxvk_shape s = call_shape(c, operand);
    rlxvk_tensor x = rlxvk_narrow(c->graph, call_tensor(c, operand), 3, i, 1);
    x = rlxvk_reshape(c->graph, x, RLXVK_SHAPE(s.dims[0], s.dims[1], s.dims[2], s.dims[4]));
    return rlxvk_transpose(c->graph, x, perm, 4);
}

/* Keys and values are rows like the queries, lie packed with them, or have heads already. */
static void read_heads(call *c, int64_t heads, onnx_heads *h)
{
    rlxvk_shape q = call_shape(c, 0), k = call_shape(c, 1), v = call_shape(c, 2);
    if (q.rank == 5 || k.rank == 5) {
        if (call_has(c, 3))
            call_refuse(c, NULL, "a bias of packed operands is not supported");
        h->q = q.rank == 5 ? unpack(c, 0, 0) : onnx_split_heads(c, call_tensor(c, 0), heads);
        h->k = q.rank == 5 ? unpack(c, 0, 1) : unpack(c, 1, 0);
        h->v = q.rank == 5 ? unpack(c, 0, 2) : unpack(c, 1, 1);
        return;
    }
    if (q.rank != 3 || k.rank != v.rank || (k.rank != 3 && k.rank != 4)) {
        call_refuse(c, NULL, "queries must have 3 or 5 axes, keys and values 3, 4 or 5");
        return;
    }
    h->q = add_bias(c, call_tensor(c, 0), 3, 0, q.dims[2]);
    h->k = call_tensor(c, 1);
    h->v = call_tensor(c, 2);
    if (k.rank == 3) {
        h->k = add_bias(c, h->k, 3, q.dims[2], k.dims[2]);
        h->v = add_bias(c, h->v, 3, q.dims[2] + k.dims[2], v.dims[2]);
        h->k = onnx_split_heads(c, h->k, heads);
        h->v = onnx_split_heads(c, h->v, heads);
    }
    h->q = onnx_split_heads(c, h->q, heads);
}

void onnx_multi_head_attention(call *c)
{
    int64_t heads = call_integer(c, "num_heads", 0);
    onnx_heads h = {.causal = call_flag(c, "unidirectional", false)};
    h.scale = call_real(c, "scale", 0);
    refuse_operands(c, 8, c->input_count, "a shared buffer");
    for (size_t i = 0; i < 3 && !c->failed; i++)
        if (!call_is_fixed(c, call_shape(c, i)))
            return;
    if (!c->failed)
        read_heads(c, heads, &h);
    if (c->failed)
        return;
    if (call_has(c, 6) && call_has(c, 7)) {
        h.past = call_shape(c, 6).dims[2];
        h.k = append(c, call_tensor(c, 6), h.k);
        h.v = append(c, call_tensor(c, 7), h.v);
    }
    if (!onnx_measure_heads(c, &h))
        return;
    read_mask(c, &h, 4);
    read_bias(c, &h, 5);
    if (c->failed)
        return;
    call_give(c, 0, onnx_join_heads(c, onnx_attend(c, &h)));
    call_give(c, 1, h.k);
    call_give(c, 2, h.v);
}

/* ---- Attention ---- */

/* Widths of queries, keys and values in the joined weights. */
static bool read_widths(call *c, int64_t whole, int64_t *widths)
{
    size_t count;
    const int64_t *given = call_integers(c, "qkv_hidden_sizes", &count);
    for (int i = 0; i < 3; i++)
        widths[i] = given && count == 3 ? given[i] : whole / 3;
    if (widths[0] < 1 || widths[0] != widths[1] || widths[2] < 1 ||
        widths[0] + widths[1] + widths[2] != whole) {
        call_refuse(c, "qkv_hidden_sizes", "they are not those of the weights");
        return false;
    }
    return true;
}

/* Past and present are [2, B, H, length, D]: keys, then values. */
static rlxvk_tensor take_past(call *c, int64_t i)
{
    rlxvk_shape s = call_shape(c, 4);
    rlxvk_tensor t = rlxvk_narrow(c->graph, call_tensor(c, 4), 0, i, 1);
    return rlxvk_reshape(c->graph, t, RLXVK_SHAPE(s.dims[1], s.dims[2], s.dims[3], s.dims[4]));
}

static void give_present(call *c, const onnx_heads *h)
{
    rlxvk_shape s = call_tensor_shape(c, h->k);
    rlxvk_shape five = RLXVK_SHAPE(1, s.dims[0], s.dims[1], s.dims[2], s.dims[3]);
    rlxvk_tensor both[2];
    if (!call_wants(c, 1))
        return;
    both[0] = rlxvk_reshape(c->graph, h->k, five);
    both[1] = rlxvk_reshape(c->graph, h->v, five);
    call_give(c, 1, rlxvk_concat(c->graph, both, 2, 0));
}

/* The product with the joined weights is queries, keys and values side by side. */
void onnx_packed_attention(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), w = call_shape(c, 1), past = call_shape(c, 4);
    onnx_heads h = {.causal = call_flag(c, "unidirectional", false)};
    int64_t heads = call_integer(c, "num_heads", 0), widths[3], first = 0;
    rlxvk_tensor x, parts[3];
    h.scale = call_real(c, "scale", 0);
    if (call_flag(c, "do_rotary", false) || call_flag(c, "past_present_share_buffer", false))
        call_refuse(c, "do_rotary", "rotation and shared buffers are not supported");
    call_ignore(c, "rotary_embedding_dim"); /* of do_rotary */
    refuse_operands(c, 6, c->input_count, "a shared buffer");
    if (s.rank != 3 || w.rank != 2 || (call_has(c, 4) && past.rank != 5))
        call_refuse(c, NULL, "the shapes of its operands do not agree");
    if (c->failed || !call_is_fixed(c, s) || !read_widths(c, w.dims[1], widths))
        return;
    x = rlxvk_matmul(g, call_tensor(c, 0), call_tensor(c, 1));
    x = call_has(c, 2) ? rlxvk_add(g, x, call_tensor(c, 2)) : x;
    for (int i = 0; i < 3; i++) {
        parts[i] = onnx_split_heads(c, rlxvk_narrow(g, x, 2, first, widths[i]), heads);
        first += widths[i];
    }
    h.q = parts[0];
    h.k = call_has(c, 4) ? append(c, take_past(c, 0), parts[1]) : parts[1];
    h.v = call_has(c, 4) ? append(c, take_past(c, 1), parts[2]) : parts[2];
    h.past = call_has(c, 4) ? past.dims[3] : 0;
    if (!onnx_measure_heads(c, &h))
        return;
    read_mask(c, &h, 3);
    read_bias(c, &h, 5);
    if (c->failed)
        return;
    call_give(c, 0, onnx_join_heads(c, onnx_attend(c, &h)));
    give_present(c, &h);
}

/* ---- GroupQueryAttention ---- */

typedef struct grouped {
    int64_t batch, steps, width, total, room; /* room: of the past keys */
    int64_t past;                             /* rows in use; -1: they differ, data decides */
    rlxvk_tensor first;                       /* [B] or [1]: the position of the first new row */
    int64_t heads, kv_heads;
} grouped;

/* Queries, keys and values as [B, S, heads * D]; queries may hold all of them side by side. */
static void take_rows(call *c, grouped *q, rlxvk_tensor *rows)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t first = 0;
    rlxvk_tensor x = call_tensor(c, 0);
    if (call_has(c, 1) && call_has(c, 2)) {
        q->width = s.dims[2] / q->heads;
        rows[0] = x;
        rows[1] = call_tensor(c, 1);
        rows[2] = call_tensor(c, 2);
        return;
    }
    q->width = s.dims[2] / (q->heads + 2 * q->kv_heads);
    for (int i = 0; i < 3; i++) {
        int64_t width = (i ? q->kv_heads : q->heads) * q->width;
        rows[i] = rlxvk_narrow(c->graph, x, 2, first, width);
        first += width;
    }
}

/* Where the new rows are. For a prompt, and for one sequence, the total tells it. */
static void read_positions(call *c, grouped *q)
{
    rlxvk_tensor used;
    q->total = call_host_integer(c, 6, "the length of the present keys", 0);
    q->past = q->total == q->steps ? 0 : q->batch == 1 ? q->total - q->steps : -1;
    if (!c->failed && (q->total < q->steps || q->past > q->room))
        call_refuse(c, NULL, "a total of %lld keys does not fit %lld past and %lld new ones",
                    (long long)q->total, (long long)q->room, (long long)q->steps);
    if (c->failed)
        return;
    if (q->past >= 0) {
        q->first = rlxvk_arange(c->graph, (float)q->past, 1, 1);
        return;
    }
    used = call_cast(c, call_tensor(c, 5), ONNX_FLOAT);
    used = rlxvk_reshape(c->graph, used, RLXVK_SHAPE(q->batch));
    q->first = rlxvk_sub(c->graph, used, call_scalar(c, (double)q->steps - 1));
}

/* Positions of the new rows, [B, S] or [1, S]. */
static rlxvk_tensor positions_of(call *c, const grouped *q)
{
    rlxvk_tensor first = rlxvk_reshape(c->graph, q->first, RLXVK_SHAPE(-1, 1));
    return rlxvk_add(c->graph, first, rlxvk_arange(c->graph, 0, 1, q->steps));
}

static rlxvk_tensor rotate(call *c, const grouped *q, rlxvk_tensor x)
{
    rlxvk_graph *g = c->graph;
    rlxvk_rope_options o = {.table = RLXVK_ROPE_TABLE_PER_TOKEN, .head_dim = q->width};
    rlxvk_shape table = call_shape(c, 7);
    rlxvk_tensor at =
        call_has(c, 9) ? call_cast(c, call_tensor(c, 9), ONNX_FLOAT) : positions_of(c, q);
    o.n_rot = table.rank == 2 ? 2 * table.dims[1] : 0;
    o.style = call_flag(c, "rotary_interleaved", false) ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX;
    at = rlxvk_expand(g, at, RLXVK_SHAPE(q->batch, q->steps));
    at = rlxvk_reshape(g, at, RLXVK_SHAPE(-1));
    return rlxvk_rope(g, x, rlxvk_gather(g, call_tensor(c, 7), at, 0),
                      rlxvk_gather(g, call_tensor(c, 8), at, 0), &o);
}

/* Writes new rows [B, H, S, D] behind those in use of operand i. The present has room for the past
 * and for the total; rows that are not in use are 0. */
static rlxvk_tensor extend(call *c, const grouped *q, size_t i, rlxvk_tensor rows)
{
    rlxvk_graph *g = c->graph;
    int64_t length = MAX(q->total, q->room), before[4] = {0}, after[4] = {0};
    rlxvk_tensor past = call_has(c, i) ? call_tensor(c, i) : RLXVK_NONE, at, first;
    if (q->past >= 0) {
        if (q->past > 0)
            rows = append(c, rlxvk_narrow(g, past, 2, 0, q->past), rows);
        after[2] = length - q->past - q->steps;
        return after[2] ? rlxvk_pad(g, rows, before, after, 4, NULL) : rows;
    }
    after[2] = length - q->room;
    past = after[2] ? rlxvk_pad(g, past, before, after, 4, NULL) : past;
    at = rlxvk_reshape(g, rlxvk_arange(g, 0, 1, length), RLXVK_SHAPE(length, 1));
    first = rlxvk_reshape(g, q->first, RLXVK_SHAPE(q->batch, 1, 1, 1));
    past = rlxvk_where(g, rlxvk_lt(g, at, first), past,
                       call_cast(c, call_scalar(c, 0), call_type(c, i)));
    at = rlxvk_reshape(g, positions_of(c, q), RLXVK_SHAPE(q->batch, 1, q->steps, 1));
    at = rlxvk_expand(g, at, RLXVK_SHAPE(q->batch, q->kv_heads, q->steps, q->width));
    return rlxvk_scatter(g, past, at, rows, 2, RLXVK_SCATTER_ASSIGN);
}

static bool begin_grouped(call *c, grouped *q)
{
    rlxvk_shape s = call_shape(c, 0), past = call_shape(c, 3);
    q->heads = call_integer(c, "num_heads", 0);
    q->kv_heads = call_integer(c, "kv_num_heads", 0);
    if (call_integer(c, "smooth_softmax", 0) > 0)
        call_refuse(c, "smooth_softmax", "it is not supported");
    if (call_integer(c, "qk_output", 0) != 0)
        call_refuse(c, "qk_output", "scores as a result are not supported");
    refuse_operands(c, 11, c->input_count, "a head sink or scale");
    if (c->failed || !call_is_fixed(c, s) || !call_is_fixed(c, past))
        return false;
    if (s.rank != 3 || q->heads < 1 || q->kv_heads < 1 || q->heads % q->kv_heads ||
        call_has(c, 1) != call_has(c, 2) || call_has(c, 3) != call_has(c, 4) ||
        (call_has(c, 3) && past.rank != 4) || !call_has(c, 5) || !call_has(c, 6)) {
        call_refuse(c, "num_heads", "the heads or shapes of its operands do not agree");
        return false;
    }
    q->batch = s.dims[0];
    q->steps = s.dims[1];
    q->room = call_has(c, 3) ? past.dims[2] : 0;
    return true;
}

void onnx_group_query_attention(call *c)
{
    bool rotates = call_flag(c, "do_rotary", false);
    onnx_heads h = {.causal = true};
    grouped q = {0};
    rlxvk_tensor rows[3], k, v;
    if (!begin_grouped(c, &q))
        return;
    take_rows(c, &q, rows);
    read_positions(c, &q);
    if (c->failed)
        return;
    if (rotates) {
        rows[0] = rotate(c, &q, rows[0]);
        rows[1] = rotate(c, &q, rows[1]);
    } else
        call_ignore(c, "rotary_interleaved");
    h.q = onnx_split_heads(c, rows[0], q.heads);
    k = extend(c, &q, 3, onnx_split_heads(c, rows[1], q.kv_heads));
    v = extend(c, &q, 4, onnx_split_heads(c, rows[2], q.kv_heads));
    if (c->failed)
        return;
    h.k = rlxvk_narrow(c->graph, k, 2, 0, q.total);
    h.v = rlxvk_narrow(c->graph, v, 2, 0, q.total);
    h.scale = call_real(c, "scale", 0);
    h.softcap = call_real(c, "softcap", 0);
    h.window = MAX(call_integer(c, "local_window_size", -1), 0);
    h.past = MAX(q.past, 0);
    if (!onnx_measure_heads(c, &h))
        return;
    read_bias(c, &h, 10);
    if (q.past == 0 && q.batch > 1) { /* prompts of different lengths are padded at their ends */
        rlxvk_tensor used = call_cast(c, call_tensor(c, 5), ONNX_FLOAT);
        used = rlxvk_reshape(c->graph, used, RLXVK_SHAPE(q.batch, 1, 1, 1));
        used = rlxvk_le(c->graph, rlxvk_arange(c->graph, 0, 1, h.keys), used);
        h.bias = onnx_add_condition(c, h.bias, used);
    }
    if (q.past < 0) {
        rlxvk_tensor at = positions_of(c, &q);
        at = rlxvk_reshape(c->graph, at, RLXVK_SHAPE(q.batch, 1, q.steps, 1));
        h.bias = onnx_add_causal(c, &h, at);
        h.causal = false;
    }
    call_give(c, 0, onnx_join_heads(c, onnx_attend(c, &h)));
    call_give(c, 1, k);
    call_give(c, 2, v);
}
