/*
 * Ops that consist of other ops: lora_matmul, fused_attention_block and fused_transformer_layer.
 * Each builds only the chain of ops in its contract, and the ordinary passes optimize those.
 */
#include "graph/symbol.h"
#include "args/elementwise.h"
#include "op/compose/composite.h"
#include "op/activation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Shared helpers ---- */

bool composite_fail(rlxvk_graph *g, const char *row, rlxvk_status status, const char *format, ...)
{
    char message[768] = "", who[CALL_LABEL];
    va_list list;
    va_start(list, format);
    text_format(message, sizeof message, format, list);
    va_end(list);
    graph_fail(g, status_fail(status, "%s: %s", op_call_label(g, row, who), message));
    return false;
}

bool composite_begin(rlxvk_graph *g, const char *row, const rlxvk_tensor *operands, size_t count)
{
    char who[CALL_LABEL];
    if (!graph_ready(g, row))
        return false;
    op_call_label(g, row, who);
    for (size_t i = 0; i < count && g->status == RLXVK_OK; i++)
        graph_fail(g, graph_take(g, operands[i], who, "operand", i));
    return g->status == RLXVK_OK;
}

/* Rewrites the place of a part, "(node 57 of node 55 and 'w'): ...", for a caller who knows only
 * nodes before `start`: "(of an inner step and 'w')". Returns the text after it. */
static const char *describe_place(const char *at, size_t start, text *out)
{
    const char *end = strstr(at, "): ");
    char *behind = NULL;
    if (strncmp(at, " (node ", 7) != 0 || !end)
        return at;
    at += 7 + strspn(at + 7, "0123456789");
    at += strncmp(at, ", ", 2) == 0 ? 2 : *at == ' ';
    if (at == end)
        return end + 1;
    text_append(out, " (");
    while (at < end) {
        bool inner = strncmp(at, "node ", 5) == 0 && strtoull(at + 5, &behind, 10) >= start;
        text_append(out, "%.*s", inner ? 13 : 1, inner ? "an inner step" : at);
        at = inner ? behind : at + 1;
    }
    text_append(out, ")");
    return end + 1;
}

rlxvk_tensor composite_end(rlxvk_graph *g, const char *row, size_t start, rlxvk_tensor result)
{
    char part[sizeof g->error], who[CALL_LABEL];
    text whole = {g->error, sizeof g->error, 0}, unused = {who, sizeof who, 0};
    size_t length;
    if (g->status == RLXVK_OK)
        return result;
    g->nodes.count = start;
    memcpy(part, g->error, sizeof part);
    length = strcspn(part, " :");
    text_append(&whole, "%s", op_call_label(g, row, who));
    bool other = length != strlen(row) || strncmp(part, row, length) != 0;
    if (other)
        text_append(&whole, ": %.*s", (int)length, part);
    text_append(&whole, "%s", describe_place(part + length, start, other ? &whole : &unused));
    status_fail(g->status, "%s", g->error);
    return RLXVK_NONE;
}

bool composite_number(rlxvk_graph *g, const char *row, const char *what, int64_t dim)
{
    char name[SHAPE_TEXT];
    if (!symbol_is_code(dim))
        return true;
    return composite_fail(g, row, RLXVK_E_UNSUPPORTED,
                          "%s is %s, a symbol; this call computes with the size: bind it first, "
                          "with rlxvk_graph_bind",
                          what, symbol_shape_text(g, &RLXVK_SHAPE(dim), name));
}

static bool has_dims(const rlxvk_graph *g, rlxvk_tensor t, int64_t rows, int64_t columns)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, t);
    return s.rank == 2 && s.dims[0] == rows && s.dims[1] == columns;
}

/* E_SHAPE unless t is [rows, columns]. */
static bool check_matrix(rlxvk_graph *g, const char *row, const char *what, rlxvk_tensor t,
                         int64_t rows, int64_t columns)
{
    char is[SHAPE_TEXT], wanted[SHAPE_TEXT];
    rlxvk_shape s = rlxvk_tensor_shape(g, t);
    if (g->status != RLXVK_OK || has_dims(g, t, rows, columns))
        return g->status == RLXVK_OK;
    composite_fail(g, row, RLXVK_E_SHAPE, "%s is %s; it must be %s", what,
                   symbol_shape_text(g, &s, is),
                   symbol_shape_text(g, &RLXVK_SHAPE(rows, columns), wanted));
    return false;
}

/* x w + bias, then an activation. The bias may be RLXVK_NONE. */
static rlxvk_tensor dense(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                          rlxvk_activation activation)
{
    if (bias.id)
        return rlxvk_fused_matmul_bias_act(g, x, w, bias, activation, false);
    rlxvk_tensor y = rlxvk_matmul(g, x, w);
    if (activation == RLXVK_ACTIVATION_NONE)
        return y;
    return op_build(g, activation_op(activation_code(activation)), &y, 1, NULL);
}

/* ---- lora_matmul ---- */

static bool check_lora(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_tensor matrices[3])
{
    static const char row[] = "lora_matmul";
    rlxvk_shape s = rlxvk_tensor_shape(g, x), w = rlxvk_tensor_shape(g, matrices[0]);
    rlxvk_shape a = rlxvk_tensor_shape(g, matrices[1]);
    if (s.rank == 0 || w.rank != 2 || a.rank != 2) {
        composite_fail(g, row, RLXVK_E_SHAPE,
                       "ranks of x, w and a are %u, %u and %u; x has rank 1 or more, w and a have "
                       "rank 2",
                       s.rank, w.rank, a.rank);
        return false;
    }
    int64_t k = s.dims[s.rank - 1];
    return check_matrix(g, row, "w", matrices[0], k, w.dims[1]) &&
           check_matrix(g, row, "a", matrices[1], k, a.dims[1]) &&
           check_matrix(g, row, "b", matrices[2], a.dims[1], w.dims[1]);
}

rlxvk_tensor rlxvk_lora_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor a,
                               rlxvk_tensor b, float scale)
{
    static const char row[] = "lora_matmul";
    const rlxvk_tensor operands[] = {x, w, a, b};
    if (!composite_begin(g, row, operands, 4) || !check_lora(g, x, operands + 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x), flat = shape;
    if (shape.rank == 1)
        flat = RLXVK_SHAPE(1, shape.dims[0]);
    rlxvk_tensor rows = shape.rank == 1 ? rlxvk_reshape(g, x, flat) : x;
    rlxvk_tensor y = rlxvk_matmul(g, rows, w);
    if (rlxvk_tensor_shape(g, a).dims[1] != 0) {
        rlxvk_tensor factor = rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &scale, sizeof scale);
        rlxvk_tensor narrow = rlxvk_matmul(g, rows, a);
        y = rlxvk_fma(g, rlxvk_matmul(g, narrow, b), factor, y);
    }
    shape.dims[shape.rank - 1] = rlxvk_tensor_shape(g, w).dims[1];
    return composite_end(g, row, start, shape.rank == 1 ? rlxvk_reshape(g, y, shape) : y);
}

/* ---- fused_attention_block ---- */

static bool check_block(rlxvk_graph *g, const char *row, const rlxvk_attention_block *block)
{
    char buffer[SHAPE_TEXT];
    rlxvk_shape hidden = rlxvk_tensor_shape(g, block->hidden);
    rlxvk_shape out = rlxvk_tensor_shape(g, block->out_w);
    if (block->num_heads < 1 || block->head_dim < 1 ||
        block->num_heads > INT32_MAX / 3 / block->head_dim)
        composite_fail(g, row, RLXVK_E_ATTR,
                       "num_heads %lld, head_dim %lld; both are 1 or more, and qkv_w's 3 I below "
                       "2^31",
                       (long long)block->num_heads, (long long)block->head_dim);
    else if (!block->qkv_b.id != !block->out_b.id || !block->cos.id != !block->sin.id)
        composite_fail(g, row, RLXVK_E_ARITY, "qkv_b and out_b go together, and so do cos and sin");
    else if (hidden.rank != 3)
        composite_fail(g, row, RLXVK_E_SHAPE, "hidden is %s; it must be [B, S, E]",
                       shape_text(&hidden, buffer));
    if (g->status != RLXVK_OK)
        return false;
    int64_t inner = block->num_heads * block->head_dim;
    return check_matrix(g, row, "qkv_w", block->qkv_w, hidden.dims[2], 3 * inner) &&
           check_matrix(g, row, "out_w", block->out_w, inner, out.rank == 2 ? out.dims[1] : 0);
}

/* Part `index` of the columns [q, k, v], rotated if there are rope tables. */
static rlxvk_tensor part(rlxvk_graph *g, const rlxvk_attention_block *block, rlxvk_tensor packed,
                         int64_t index)
{
    int64_t inner = block->num_heads * block->head_dim;
    rlxvk_tensor x = rlxvk_narrow(g, packed, 2, index * inner, inner);
    rlxvk_rope_options options = {.head_dim = block->head_dim,
                                  .n_rot = block->head_dim,
                                  .style = RLXVK_ROPE_NEOX,
                                  .table = RLXVK_ROPE_TABLE_PER_POSITION};
    return index < 2 && block->cos.id ? rlxvk_rope(g, x, block->cos, block->sin, &options) : x;
}

static rlxvk_tensor attend(rlxvk_graph *g, const char *row, const rlxvk_attention_block *block)
{
    const rlxvk_tensor operands[] = {block->hidden, block->qkv_w, block->out_w, block->mask};
    if (!composite_begin(g, row, operands, 4) || !check_block(g, row, block))
        return RLXVK_NONE;
    rlxvk_attention_options options = {.num_heads = block->num_heads,
                                       .num_kv_heads = block->num_heads,
                                       .head_dim = block->head_dim,
                                       .mask = RLXVK_MASK_CUSTOM,
                                       .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor packed =
        dense(g, block->hidden, block->qkv_w, block->qkv_b, RLXVK_ACTIVATION_NONE);
    rlxvk_tensor q = part(g, block, packed, 0), k = part(g, block, packed, 1);
    rlxvk_tensor v = part(g, block, packed, 2);
    rlxvk_tensor heads = rlxvk_attention(g, q, k, v, block->mask, &options);
    return dense(g, heads, block->out_w, block->out_b, RLXVK_ACTIVATION_NONE);
}

rlxvk_tensor rlxvk_fused_attention_block(rlxvk_graph *g, const rlxvk_attention_block *block)
{
    static const char row[] = "fused_attention_block";
    rlxvk_attention_block b;
    if (!graph_ready(g, row) || graph_fail(g, status_require(block, row, "block")) != RLXVK_OK ||
        !op_take(g, row, SIZED(rlxvk_attention_block), block, &b))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start, attend(g, row, &b));
}

/* ---- fused_transformer_layer ---- */

static bool check_layer(rlxvk_graph *g, const char *row, const rlxvk_transformer_layer *t)
{
    const rlxvk_tensor needed[] = {t->hidden, t->qkv_w, t->out_w, t->ln1_g,
                                   t->fc1_w,  t->fc2_w, t->ln2_g, t->mask};
    const rlxvk_tensor biases[] = {t->qkv_b, t->out_b, t->ln1_b, t->fc1_b, t->fc2_b, t->ln2_b};
    rlxvk_shape fc1 = rlxvk_tensor_shape(g, t->fc1_w);
    char text[SHAPE_TEXT];
    size_t given = 0;
    if (!composite_begin(g, row, needed, ARRAY_COUNT(needed)))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(biases); i++)
        given += biases[i].id != 0;
    if (given != 0 && given != ARRAY_COUNT(biases))
        composite_fail(g, row, RLXVK_E_ARITY, "%zu of the 6 biases and betas; give all or none",
                       given);
    else if ((unsigned)t->activation > UNARY_COUNT)
        composite_fail(g, row, RLXVK_E_ATTR, "activation %d is none of 0 .. %d", (int)t->activation,
                       UNARY_COUNT);
    else if (fc1.rank != 2 || fc1.dims[1] != t->intermediate_size)
        composite_fail(g, row, RLXVK_E_SHAPE,
                       "fc1_w is %s, intermediate_size %lld; its second dim must be that",
                       symbol_shape_text(g, &fc1, text), (long long)t->intermediate_size);
    return g->status == RLXVK_OK;
}

rlxvk_tensor rlxvk_fused_transformer_layer(rlxvk_graph *g, const rlxvk_transformer_layer *layer)
{
    static const char row[] = "fused_transformer_layer";
    rlxvk_transformer_layer own, *t = &own;
    if (!graph_ready(g, row) || graph_fail(g, status_require(layer, row, "layer")) != RLXVK_OK ||
        !op_take(g, row, SIZED(rlxvk_transformer_layer), layer, t) || !check_layer(g, row, t))
        return RLXVK_NONE;
    const rlxvk_attention_block block = {.hidden = t->hidden,
                                         .qkv_w = t->qkv_w,
                                         .out_w = t->out_w,
                                         .mask = t->mask,
                                         .qkv_b = t->qkv_b,
                                         .out_b = t->out_b,
                                         .num_heads = t->num_heads,
                                         .head_dim = t->head_dim};
    size_t start = g->nodes.count;
    rlxvk_tensor a = attend(g, row, &block);
    rlxvk_tensor h =
        rlxvk_fused_residual_ln(g, a, t->hidden, RLXVK_NONE, t->ln1_g, t->ln1_b, t->eps1);
    rlxvk_tensor f = dense(g, h, t->fc1_w, t->fc1_b, t->activation);
    f = dense(g, f, t->fc2_w, t->fc2_b, RLXVK_ACTIVATION_NONE);
    rlxvk_tensor y = rlxvk_fused_residual_ln(g, f, h, RLXVK_NONE, t->ln2_g, t->ln2_b, t->eps2);
    return composite_end(g, row, start, y);
}
