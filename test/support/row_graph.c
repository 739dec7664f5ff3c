/* See row_graph.h. */
#include "support/row_graph.h"
#include "graph/graph.h"

#include <stdio.h>

#define WIDTH     ROW_GRAPH_WIDTH
#define HEADS     4
#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define LAST      AXES(1)

/* A param of its own. */
static rlxvk_tensor param(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "p%zu", g->nodes.count);
    return rlxvk_param(g, name, dtype, shape);
}
#define PARAM(...) param(g, RLXVK_F32, RLXVK_SHAPE(__VA_ARGS__))

static int64_t rows_of(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_tensor_shape(g, x).dims[0];
}

static rlxvk_tensor heads_of(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1, HEADS, WIDTH / HEADS));
}
static rlxvk_tensor rows_again(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1, WIDTH));
}

#define RULE(name)                                                                                 \
    static rlxvk_tensor name(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor y, rlxvk_tensor i)
#define UNUSED(...) (void)sizeof((rlxvk_tensor[]){__VA_ARGS__})

RULE(activation)
{
    UNUSED(y, i);
    return rlxvk_silu(g, x);
}
RULE(sum)
{
    UNUSED(i);
    return rlxvk_add(g, x, y);
}
RULE(scaled)
{
    UNUSED(y, i);
    return rlxvk_mul(g, x, PARAM(WIDTH));
}
RULE(table)
{
    UNUSED(y, i);
    return rlxvk_add(g, x, PARAM(rows_of(g, x), WIDTH));
}
RULE(layer_norm)
{
    UNUSED(y, i);
    return rlxvk_layer_norm(g, x, PARAM(WIDTH), PARAM(WIDTH), -1, 1e-5f);
}
RULE(residual_norm)
{
    UNUSED(i);
    rlxvk_tensor joined = rlxvk_add(g, x, y);
    return rlxvk_add(g, joined, rlxvk_rms_norm(g, joined, PARAM(WIDTH), RLXVK_NONE, -1, 1e-5f));
}
RULE(product)
{
    UNUSED(y, i);
    return rlxvk_matmul(g, x, PARAM(WIDTH, WIDTH));
}
RULE(mlp)
{
    UNUSED(i);
    rlxvk_tensor hidden = rlxvk_matmul(g, x, PARAM(WIDTH, 40));
    hidden = rlxvk_relu(g, rlxvk_add(g, hidden, PARAM(40)));
    return rlxvk_add(g, y, rlxvk_matmul(g, hidden, PARAM(40, WIDTH)));
}
RULE(product_of_columns)
{
    UNUSED(i);
    rlxvk_tensor turned = rlxvk_transpose(g, rlxvk_add(g, x, y), AXES(1, 0));
    return rlxvk_matmul_with(g, turned, PARAM(WIDTH, WIDTH),
                             &(rlxvk_matmul_options){.transpose_a = true});
}
RULE(product_of_heads)
{
    UNUSED(y, i);
    return rows_again(g, rlxvk_matmul(g, heads_of(g, x), PARAM(WIDTH / HEADS, WIDTH / HEADS)));
}
RULE(narrow_product)
{
    UNUSED(i);
    return rlxvk_add(g, y, rlxvk_reduce_sum(g, rlxvk_matmul(g, x, PARAM(WIDTH, 3)), LAST, true));
}
RULE(packed_product)
{
    UNUSED(y, i);
    return rlxvk_dequant_matmul(g, x, param(g, RLXVK_U8, RLXVK_SHAPE(WIDTH * 34)), RLXVK_Q8_0);
}
RULE(soft)
{
    UNUSED(y, i);
    return rlxvk_softmax(g, x, -1);
}
RULE(soft_heads)
{
    UNUSED(y, i);
    return rows_again(g, rlxvk_softmax(g, heads_of(g, x), 1));
}
RULE(centered)
{
    UNUSED(i);
    return rlxvk_sub(g, x, rlxvk_reduce_mean(g, y, LAST, true));
}
RULE(reduced_around)
{
    UNUSED(i);
    rlxvk_tensor turned = rlxvk_transpose(g, heads_of(g, x), AXES(1, 0, 2));
    rlxvk_tensor most = rlxvk_reduce_max(g, turned, AXES(0, 2), false);
    return rlxvk_add(g, y, rlxvk_reshape(g, most, RLXVK_SHAPE(-1, 1)));
}
RULE(turned_heads)
{
    UNUSED(i);
    rlxvk_tensor turned = rlxvk_silu(g, rlxvk_transpose(g, heads_of(g, x), AXES(1, 0, 2)));
    return rlxvk_mul(g, rows_again(g, rlxvk_transpose(g, turned, AXES(1, 0, 2))), y);
}
RULE(rotated)
{
    UNUSED(i);
    rlxvk_tensor halves[] = {rlxvk_narrow(g, x, 1, WIDTH / 2, WIDTH / 2),
                             rlxvk_narrow(g, y, 1, 0, WIDTH / 2)};
    return rlxvk_concat(g, halves, 2, 1);
}
RULE(attention)
{
    UNUSED(i);
    rlxvk_attention_options o = {.num_heads = HEADS,
                                 .num_kv_heads = HEADS,
                                 .mask = RLXVK_MASK_CAUSAL,
                                 .layout = RLXVK_LAYOUT_PACKED};
    return rlxvk_attention(g, x, y, rlxvk_matmul(g, x, PARAM(WIDTH, WIDTH)), RLXVK_NONE, &o);
}
RULE(sliding_attention)
{
    UNUSED(i);
    rlxvk_attention_options o = {.num_heads = HEADS,
                                 .num_kv_heads = HEADS,
                                 .mask = RLXVK_MASK_SLIDING,
                                 .window = 5,
                                 .layout = RLXVK_LAYOUT_PACKED};
    return rlxvk_attention(g, x, y, y, RLXVK_NONE, &o);
}
static rlxvk_tensor step(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                         int64_t window)
{
    enum { FIRST = 3 };
    const float first = FIRST;
    rlxvk_attention_step_options o = {
        .heads = HEADS, .kv_heads = 2, .head_dim = WIDTH / HEADS, .n_rot = 4, .window = window};
    rlxvk_tensor rows[] = {q, rlxvk_narrow(g, k, 1, 0, WIDTH / 2),
                           rlxvk_narrow(g, v, 1, 0, WIDTH / 2)};
    int64_t count = rows_of(g, q);
    for (int i = 0; i < 3; i++)
        rows[i] = rlxvk_reshape(g, rows[i], RLXVK_SHAPE(1, count, -1));
    rlxvk_tensor keys = PARAM(2, count + FIRST + 1, WIDTH / HEADS);
    rlxvk_tensor values = PARAM(2, count + FIRST + 1, WIDTH / HEADS);
    rlxvk_tensor place = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &first, sizeof first);
    rlxvk_tensor cosines = rlxvk_mul(g, rlxvk_narrow(g, v, 1, 0, 2), PARAM(1)),
                 sines = PARAM(count, 2);
    return rows_again(g, rlxvk_attention_step(g, rows[0], rows[1], rows[2], keys, values, place,
                                              cosines, sines, &o));
}
RULE(attention_over_caches)
{
    UNUSED(i);
    return step(g, x, y, x, 0);
}
RULE(windowed_over_caches)
{
    UNUSED(i);
    return step(g, y, x, x, 4);
}
RULE(experts)
{
    UNUSED(i);
    rlxvk_tensor index =
        rlxvk_cast(g, rlxvk_argmax(g, rlxvk_narrow(g, y, 1, 0, 3), 1, false), RLXVK_F32);
    rlxvk_tensor chosen = rlxvk_grouped_matmul(g, x, PARAM(3, WIDTH, WIDTH), index, false);
    rlxvk_tensor packed =
        rlxvk_dequant_grouped_matmul(g, chosen, param(g, RLXVK_U8, RLXVK_SHAPE(3, WIDTH * 34)),
                                     index, RLXVK_Q8_0, WIDTH);
    return rlxvk_add(g, packed,
                     rlxvk_take_along_axis(g, y, rlxvk_cast(g, rlxvk_topk(g, y, 1), RLXVK_F32), 1));
}
RULE(rope)
{
    UNUSED(y);
    rlxvk_rope_options o = {.head_dim = WIDTH / HEADS, .n_rot = WIDTH / HEADS};
    return rlxvk_rope(g, x, rlxvk_gather(g, PARAM(50, WIDTH / HEADS / 2), i, 0),
                      PARAM(rows_of(g, x), WIDTH / HEADS / 2), &o);
}
RULE(gated)
{
    UNUSED(i);
    rlxvk_tensor both = rlxvk_concat(g, (rlxvk_tensor[]){x, y}, 2, -1);
    return rlxvk_fused_swiglu(g, both, true);
}
RULE(running)
{
    UNUSED(y, i);
    return rlxvk_tanh(g, rlxvk_cumsum(g, x, 0, false));
}
RULE(embedded)
{
    UNUSED(y);
    return rlxvk_add(g, x, rlxvk_gather(g, PARAM(50, WIDTH), i, 0));
}
RULE(chosen)
{
    UNUSED(i);
    return rlxvk_where(g, rlxvk_gt(g, x, y), x, rlxvk_reverse(g, y, AXES(1)));
}
RULE(ranked)
{
    UNUSED(i);
    rlxvk_tensor place = rlxvk_cast(g, rlxvk_argmax(g, x, 1, true), RLXVK_F32);
    rlxvk_tensor top = rlxvk_cast(g, rlxvk_topk(g, y, 2), RLXVK_F32);
    return rlxvk_add(g, rlxvk_mul(g, y, place), rlxvk_reduce_sum(g, top, LAST, true));
}
RULE(batch_of_one)
{
    UNUSED(y, i);
    rlxvk_tensor one = rlxvk_reshape(g, x, RLXVK_SHAPE(1, rows_of(g, x), WIDTH));
    one = rlxvk_rms_norm(g, one, PARAM(WIDTH), RLXVK_NONE, -1, 1e-5f);
    return rows_again(g, rlxvk_matmul(g, one, PARAM(WIDTH, WIDTH)));
}
RULE(images)
{
    UNUSED(y, i);
    rlxvk_tensor image = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 4, 4));
    return rows_again(g, rlxvk_group_norm(g, image, PARAM(2), RLXVK_NONE, 2, 1e-5f));
}

static rlxvk_tensor (*const rules[])(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor,
                                     rlxvk_tensor) = {activation,
                                                      sum,
                                                      scaled,
                                                      table,
                                                      layer_norm,
                                                      residual_norm,
                                                      product,
                                                      mlp,
                                                      product_of_columns,
                                                      product_of_heads,
                                                      narrow_product,
                                                      packed_product,
                                                      soft,
                                                      soft_heads,
                                                      centered,
                                                      reduced_around,
                                                      turned_heads,
                                                      rotated,
                                                      attention,
                                                      sliding_attention,
                                                      attention_over_caches,
                                                      windowed_over_caches,
                                                      experts,
                                                      rope,
                                                      gated,
                                                      running,
                                                      embedded,
                                                      chosen,
                                                      ranked,
                                                      batch_of_one,
                                                      images};

uint32_t row_graph_rule_count(void)
{
    return sizeof rules / sizeof *rules;
}

rlxvk_tensor row_graph_rule(rlxvk_graph *g, uint32_t rule, rlxvk_tensor x, rlxvk_tensor y,
                            rlxvk_tensor indices)
{
    return rules[rule](g, x, y, indices);
}

void row_graph(rlxvk_graph *g, random_source *r, int64_t rows, uint32_t ops)
{
    enum { MOST = 64 };
    rlxvk_tensor pool[MOST] = {
        rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, WIDTH)),
        rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(rows, WIDTH)),
    };
    rlxvk_tensor indices = rlxvk_input(g, "i", RLXVK_F32, RLXVK_SHAPE(rows));
    uint32_t count = 2;
    for (; count < MOST && count < ops + 2; count++) {
        rlxvk_tensor x = pool[count - 1 - random_below(r, count < 4 ? count : 4)];
        rlxvk_tensor y = pool[random_below(r, count)];
        pool[count] = row_graph_rule(g, random_below(r, row_graph_rule_count()), x, y, indices);
    }
    rlxvk_graph_output(g, rlxvk_transpose(g, heads_of(g, pool[count - 1]), AXES(1, 0, 2)));
    rlxvk_graph_output(g, pool[count - 1]);
    rlxvk_graph_output(g, pool[count - 2]);
}
