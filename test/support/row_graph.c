/* See row_graph.h. */
#include "support/row_graph.h"
#include "graph/graph.h"
#include "support/row_rules.h"

#include <stdio.h>

#define WIDTH     ROW_GRAPH_WIDTH
#define HEADS     4
#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define LAST      AXES(1)

rlxvk_tensor row_param(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "p%zu", g->nodes.count);
    return rlxvk_param(g, name, dtype, shape);
}

rlxvk_tensor row_numbers(rlxvk_graph *g, float most, rlxvk_shape shape)
{
    return rlxvk_mul(g, row_param(g, RLXVK_F32, shape), rlxvk_scalar(g, most));
}

int64_t row_count(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_tensor_shape(g, x).dims[0];
}

rlxvk_tensor row_image(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 4, 4));
}

rlxvk_tensor row_back(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1, WIDTH));
}

rlxvk_tensor row_turned(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_transpose(g, x, AXES(1, 0));
}

rlxvk_tensor row_columns(rlxvk_graph *g, rlxvk_tensor x, int64_t first, int64_t count)
{
    return rlxvk_narrow(g, x, 1, first, count);
}

rlxvk_tensor row_filled(rlxvk_graph *g, rlxvk_tensor part, rlxvk_tensor x)
{
    int64_t columns = rlxvk_tensor_shape(g, part).dims[1];
    rlxvk_tensor parts[] = {part, row_columns(g, x, columns, WIDTH - columns)};
    return rlxvk_concat(g, parts, 2, 1);
}

static rlxvk_tensor heads_of(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1, HEADS, WIDTH / HEADS));
}
ROW_RULE(activation)
{
    ROW_UNUSED(y, i);
    return rlxvk_silu(g, x);
}
ROW_RULE(sum)
{
    ROW_UNUSED(i);
    return rlxvk_add(g, x, y);
}
ROW_RULE(scaled)
{
    ROW_UNUSED(y, i);
    return rlxvk_mul(g, x, ROW_PARAM(WIDTH));
}
ROW_RULE(table)
{
    ROW_UNUSED(y, i);
    return rlxvk_add(g, x, ROW_PARAM(row_count(g, x), WIDTH));
}
ROW_RULE(layer_norm)
{
    ROW_UNUSED(y, i);
    return rlxvk_layer_norm(g, x, ROW_PARAM(WIDTH), ROW_PARAM(WIDTH), -1, 1e-5f);
}
ROW_RULE(residual_norm)
{
    ROW_UNUSED(i);
    rlxvk_tensor joined = rlxvk_add(g, x, y);
    return rlxvk_add(g, joined, rlxvk_rms_norm(g, joined, ROW_PARAM(WIDTH), RLXVK_NONE, -1, 1e-5f));
}
ROW_RULE(product)
{
    ROW_UNUSED(y, i);
    return rlxvk_matmul(g, x, ROW_PARAM(WIDTH, WIDTH));
}
ROW_RULE(mlp)
{
    ROW_UNUSED(i);
    rlxvk_tensor hidden = rlxvk_matmul(g, x, ROW_PARAM(WIDTH, 40));
    hidden = rlxvk_relu(g, rlxvk_add(g, hidden, ROW_PARAM(40)));
    return rlxvk_add(g, y, rlxvk_matmul(g, hidden, ROW_PARAM(40, WIDTH)));
}
ROW_RULE(product_of_columns)
{
    ROW_UNUSED(i);
    rlxvk_tensor turned = rlxvk_transpose(g, rlxvk_add(g, x, y), AXES(1, 0));
    return rlxvk_matmul_with(g, turned, ROW_PARAM(WIDTH, WIDTH),
                             &(rlxvk_matmul_options){.transpose_a = true});
}
ROW_RULE(product_of_heads)
{
    ROW_UNUSED(y, i);
    return row_back(g, rlxvk_matmul(g, heads_of(g, x), ROW_PARAM(WIDTH / HEADS, WIDTH / HEADS)));
}
ROW_RULE(narrow_product)
{
    ROW_UNUSED(i);
    return rlxvk_add(g, y,
                     rlxvk_reduce_sum(g, rlxvk_matmul(g, x, ROW_PARAM(WIDTH, 3)), LAST, true));
}
ROW_RULE(packed_product)
{
    ROW_UNUSED(y, i);
    return rlxvk_dequant_matmul(g, x, row_param(g, RLXVK_U8, RLXVK_SHAPE(WIDTH * 34)), RLXVK_Q8_0);
}
ROW_RULE(soft)
{
    ROW_UNUSED(y, i);
    return rlxvk_softmax(g, x, -1);
}
ROW_RULE(soft_heads)
{
    ROW_UNUSED(y, i);
    return row_back(g, rlxvk_softmax(g, heads_of(g, x), 1));
}
ROW_RULE(centered)
{
    ROW_UNUSED(i);
    return rlxvk_sub(g, x, rlxvk_reduce_mean(g, y, LAST, true));
}
ROW_RULE(reduced_around)
{
    ROW_UNUSED(i);
    rlxvk_tensor turned = rlxvk_transpose(g, heads_of(g, x), AXES(1, 0, 2));
    rlxvk_tensor most = rlxvk_reduce_max(g, turned, AXES(0, 2), false);
    return rlxvk_add(g, y, rlxvk_reshape(g, most, RLXVK_SHAPE(-1, 1)));
}
ROW_RULE(turned_heads)
{
    ROW_UNUSED(i);
    rlxvk_tensor turned = rlxvk_silu(g, rlxvk_transpose(g, heads_of(g, x), AXES(1, 0, 2)));
    return rlxvk_mul(g, row_back(g, rlxvk_transpose(g, turned, AXES(1, 0, 2))), y);
}
ROW_RULE(rotated)
{
    ROW_UNUSED(i);
    rlxvk_tensor halves[] = {rlxvk_narrow(g, x, 1, WIDTH / 2, WIDTH / 2),
                             rlxvk_narrow(g, y, 1, 0, WIDTH / 2)};
    return rlxvk_concat(g, halves, 2, 1);
}
ROW_RULE(attention)
{
    ROW_UNUSED(i);
    rlxvk_attention_options o = {.num_heads = HEADS,
                                 .num_kv_heads = HEADS,
                                 .mask = RLXVK_MASK_CAUSAL,
                                 .layout = RLXVK_LAYOUT_PACKED};
    return rlxvk_attention(g, x, y, rlxvk_matmul(g, x, ROW_PARAM(WIDTH, WIDTH)), RLXVK_NONE, &o);
}
ROW_RULE(sliding_attention)
{
    ROW_UNUSED(i);
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
    int64_t count = row_count(g, q);
    for (int i = 0; i < 3; i++)
        rows[i] = rlxvk_reshape(g, rows[i], RLXVK_SHAPE(1, count, -1));
    rlxvk_tensor keys = ROW_PARAM(2, count + FIRST + 1, WIDTH / HEADS);
    rlxvk_tensor values = ROW_PARAM(2, count + FIRST + 1, WIDTH / HEADS);
    rlxvk_tensor place = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &first, sizeof first);
    rlxvk_tensor cosines = rlxvk_mul(g, rlxvk_narrow(g, v, 1, 0, 2), ROW_PARAM(1)),
                 sines = ROW_PARAM(count, 2);
    return row_back(g, rlxvk_attention_step(g, rows[0], rows[1], rows[2], keys, values, place,
                                            cosines, sines, &o));
}
ROW_RULE(attention_over_caches)
{
    ROW_UNUSED(i);
    return step(g, x, y, x, 0);
}
ROW_RULE(windowed_over_caches)
{
    ROW_UNUSED(i);
    return step(g, y, x, x, 4);
}
ROW_RULE(experts)
{
    ROW_UNUSED(i);
    rlxvk_tensor index =
        rlxvk_cast(g, rlxvk_argmax(g, rlxvk_narrow(g, y, 1, 0, 3), 1, false), RLXVK_F32);
    rlxvk_tensor chosen = rlxvk_grouped_matmul(g, x, ROW_PARAM(3, WIDTH, WIDTH), index, false);
    rlxvk_tensor packed =
        rlxvk_dequant_grouped_matmul(g, chosen, row_param(g, RLXVK_U8, RLXVK_SHAPE(3, WIDTH * 34)),
                                     index, RLXVK_Q8_0, WIDTH);
    return rlxvk_add(g, packed,
                     rlxvk_take_along_axis(g, y, rlxvk_cast(g, rlxvk_topk(g, y, 1), RLXVK_F32), 1));
}
ROW_RULE(rope)
{
    ROW_UNUSED(y);
    rlxvk_rope_options o = {.head_dim = WIDTH / HEADS, .n_rot = WIDTH / HEADS};
    return rlxvk_rope(g, x, rlxvk_gather(g, ROW_PARAM(50, WIDTH / HEADS / 2), i, 0),
                      ROW_PARAM(row_count(g, x), WIDTH / HEADS / 2), &o);
}
ROW_RULE(gated)
{
    ROW_UNUSED(i);
    rlxvk_tensor both = rlxvk_concat(g, (rlxvk_tensor[]){x, y}, 2, -1);
    return rlxvk_fused_swiglu(g, both, true);
}
ROW_RULE(running)
{
    ROW_UNUSED(y, i);
    return rlxvk_tanh(g, rlxvk_cumsum(g, x, 0, false));
}
ROW_RULE(embedded)
{
    ROW_UNUSED(y);
    return rlxvk_add(g, x, rlxvk_gather(g, ROW_PARAM(50, WIDTH), i, 0));
}
ROW_RULE(chosen)
{
    ROW_UNUSED(i);
    return rlxvk_where(g, rlxvk_gt(g, x, y), x, rlxvk_reverse(g, y, AXES(1)));
}
ROW_RULE(ranked)
{
    ROW_UNUSED(i);
    rlxvk_tensor place = rlxvk_cast(g, rlxvk_argmax(g, x, 1, true), RLXVK_F32);
    rlxvk_tensor top = rlxvk_cast(g, rlxvk_topk(g, y, 2), RLXVK_F32);
    return rlxvk_add(g, rlxvk_mul(g, y, place), rlxvk_reduce_sum(g, top, LAST, true));
}
ROW_RULE(batch_of_one)
{
    ROW_UNUSED(y, i);
    rlxvk_tensor one = rlxvk_reshape(g, x, RLXVK_SHAPE(1, row_count(g, x), WIDTH));
    one = rlxvk_rms_norm(g, one, ROW_PARAM(WIDTH), RLXVK_NONE, -1, 1e-5f);
    return row_back(g, rlxvk_matmul(g, one, ROW_PARAM(WIDTH, WIDTH)));
}
ROW_RULE(images)
{
    ROW_UNUSED(y, i);
    rlxvk_tensor image = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 4, 4));
    return row_back(g, rlxvk_group_norm(g, image, ROW_PARAM(2), RLXVK_NONE, 2, 1e-5f));
}

static const row_rule rules[] = {activation,
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

/* The common rules come first, because tests name them by their indices. */
static row_rules rules_of(uint32_t set)
{
    return set == 0   ? (row_rules){rules, sizeof rules / sizeof *rules}
           : set == 1 ? row_rules_of_indices()
           : set == 2 ? row_rules_of_gradients()
           : set == 3 ? row_rules_of_signals()
                      : row_rules_of_shapes();
}
#define SETS 5

uint32_t row_graph_rule_count(void)
{
    uint32_t count = 0;
    for (uint32_t set = 0; set < SETS; set++)
        count += rules_of(set).count;
    return count;
}

rlxvk_tensor row_graph_rule(rlxvk_graph *g, uint32_t rule, rlxvk_tensor x, rlxvk_tensor y,
                            rlxvk_tensor indices)
{
    uint32_t set = 0;
    for (; rule >= rules_of(set).count; set++)
        rule -= rules_of(set).count;
    return rules_of(set).items[rule](g, x, y, indices);
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
