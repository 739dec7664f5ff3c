/* Rules of gradients, losses, optimizers and fake quantization; see row_rules.h. */
#include "support/row_graph.h"
#include "support/row_rules.h"

#include <rlxvk_ops_domain.h>
#include <rlxvk_train.h>

#define W ROW_GRAPH_WIDTH

/* ---- Norms and losses ---- */

ROW_RULE(layer_norm_gradient)
{
    ROW_UNUSED(i);
    return rlxvk_layer_norm_backward_input(g, x, ROW_PARAM(W), y, -1, 1e-5f);
}
ROW_RULE(rms_norm_gradient)
{
    ROW_UNUSED(i);
    return rlxvk_rms_norm_backward_input(g, x, RLXVK_NONE, y, -1, 1e-5f);
}
ROW_RULE(group_norm_gradient)
{
    ROW_UNUSED(i);
    return row_back(g, rlxvk_group_norm_backward_input(g, row_image(g, x), ROW_PARAM(2),
                                                       row_image(g, y), 2, 1e-5f));
}
ROW_RULE(pixel_norm_gradient)
{
    ROW_UNUSED(i);
    return row_back(g, rlxvk_layer_norm2d_backward_input(g, row_image(g, x), ROW_PARAM(2),
                                                         row_image(g, y), 1e-5f));
}
ROW_RULE(softmax_gradient)
{
    ROW_UNUSED(i);
    return rlxvk_softmax_backward(g, x, y, 1);
}
ROW_RULE(softmax_gradient_within)
{
    ROW_UNUSED(i);
    rlxvk_tensor parts[] = {rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4, 8)),
                            rlxvk_reshape(g, y, RLXVK_SHAPE(-1, 4, 8))};
    return row_back(g, rlxvk_softmax_backward(g, parts[0], parts[1], 1));
}
static rlxvk_tensor labels_of(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_min(g, i, rlxvk_scalar(g, W - 1));
}
ROW_RULE(loss)
{
    rlxvk_tensor losses = rlxvk_softmax_cross_entropy(g, x, labels_of(g, i));
    return row_filled(g, rlxvk_reshape(g, losses, RLXVK_SHAPE(-1, 1)), y);
}
ROW_RULE(loss_gradient)
{
    rlxvk_tensor d = rlxvk_reshape(g, row_columns(g, y, 3, 1), RLXVK_SHAPE(-1));
    return rlxvk_softmax_cross_entropy_backward(g, x, labels_of(g, i), d);
}
ROW_RULE(dense_loss)
{
    ROW_UNUSED(i);
    rlxvk_tensor losses = rlxvk_softmax_cross_entropy_dense(g, x, rlxvk_sigmoid(g, y));
    return row_filled(g, rlxvk_reshape(g, losses, RLXVK_SHAPE(-1, 1)), y);
}
ROW_RULE(dense_loss_gradients)
{
    ROW_UNUSED(i);
    rlxvk_tensor d = rlxvk_reshape(g, row_columns(g, y, 3, 1), RLXVK_SHAPE(-1)), of_targets;
    rlxvk_tensor of_logits =
        rlxvk_softmax_cross_entropy_dense_backward(g, x, rlxvk_sigmoid(g, y), d, &of_targets);
    return rlxvk_add(g, of_logits, of_targets);
}

/* ---- Steps of optimizers, element by element, and noise ---- */

ROW_RULE(stepped)
{
    rlxvk_sgd_options o = {.learning_rate = 0.1f, .momentum = 0.5f, .nesterov = true};
    rlxvk_tensor momentum;
    ROW_UNUSED(i);
    rlxvk_tensor p = rlxvk_sgd(g, x, y, ROW_PARAM(row_count(g, x), W), &o, NULL, &momentum);
    return rlxvk_sub(g, p, momentum);
}
ROW_RULE(stepped_adamw)
{
    rlxvk_adamw_options o = {.learning_rate = 0.1f, .step = 2};
    rlxvk_tensor averages[2];
    ROW_UNUSED(i);
    rlxvk_tensor p = rlxvk_adamw(g, x, y, rlxvk_silu(g, x), rlxvk_abs(g, y), &o, NULL, averages);
    return rlxvk_add(g, p, rlxvk_sub(g, averages[0], averages[1]));
}
ROW_RULE(stepped_lion)
{
    rlxvk_tensor average;
    ROW_UNUSED(i);
    rlxvk_tensor p = rlxvk_lion(g, x, y, rlxvk_silu(g, y), NULL, NULL, &average);
    return rlxvk_add(g, p, average);
}
ROW_RULE(dropped)
{
    rlxvk_dropout_options o = {.rate = 0.3f, .seed = 5};
    ROW_UNUSED(y, i);
    return rlxvk_dropout(g, x, &o, RLXVK_NONE);
}
ROW_RULE(noisy)
{
    ROW_UNUSED(y, i);
    return rlxvk_add(g, x, rlxvk_rng_normal_like(g, x, 0, 0.1f, NULL));
}

/* ---- Fake quantization ---- */

ROW_RULE(quantized_by_state)
{
    rlxvk_fake_quantize_options o = {.mode = RLXVK_SCALE_FIXED};
    ROW_UNUSED(y, i);
    return rlxvk_fake_quantize(g, x, row_numbers(g, 0.01f, RLXVK_SHAPE(1)), &o);
}
ROW_RULE(quantized_by_rows)
{
    rlxvk_fake_quantize_options o = {.bits = 4, .per_axis = true, .axis = 0};
    ROW_UNUSED(i);
    return rlxvk_fake_quantize_backward(g, rlxvk_fake_quantize(g, x, RLXVK_NONE, &o), y, RLXVK_NONE,
                                        &o);
}
ROW_RULE(quantized_by_learned)
{
    rlxvk_fake_quantize_options o = {.per_axis = true, .axis = 1};
    ROW_UNUSED(i);
    rlxvk_tensor scale = row_numbers(g, 0.01f, RLXVK_SHAPE(W));
    return rlxvk_fake_quantize_lsq_backward_x(g, rlxvk_fake_quantize_lsq(g, x, scale, &o), scale, y,
                                              &o);
}

/* ---- Gradients back through sequences: rows are sequences ---- */

ROW_RULE(lstm_gradient)
{
    ROW_UNUSED(i);
    rlxvk_tensor z = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 16));
    rlxvk_tensor dy = rlxvk_reshape(g, row_columns(g, y, 0, 8), RLXVK_SHAPE(-1, 2, 4));
    return row_back(g, rlxvk_lstm_backward_gates(g, z, ROW_PARAM(16, 4), dy,
                                                 row_columns(g, y, 8, 4), row_columns(g, x, 4, 4),
                                                 RLXVK_NONE, false, NULL, NULL));
}
ROW_RULE(gru_gradient)
{
    rlxvk_tensor from_h;
    ROW_UNUSED(i);
    rlxvk_tensor gates[] = {rlxvk_reshape(g, row_columns(g, x, 0, 24), RLXVK_SHAPE(-1, 2, 12)),
                            rlxvk_reshape(g, row_columns(g, y, 8, 24), RLXVK_SHAPE(-1, 2, 12))};
    rlxvk_tensor before = rlxvk_reshape(g, row_columns(g, y, 0, 8), RLXVK_SHAPE(-1, 2, 4));
    rlxvk_tensor dy = rlxvk_reshape(g, row_columns(g, x, 24, 8), RLXVK_SHAPE(-1, 2, 4));
    rlxvk_tensor from_x = rlxvk_gru_backward_gates(g, gates[0], gates[1], before, ROW_PARAM(12, 4),
                                                   dy, RLXVK_NONE, true, &from_h, NULL);
    return row_filled(g, rlxvk_reshape(g, rlxvk_add(g, from_x, from_h), RLXVK_SHAPE(-1, 24)), x);
}
ROW_RULE(rnn_gradient)
{
    ROW_UNUSED(i);
    rlxvk_tensor z = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4, 8));
    rlxvk_tensor dy = rlxvk_reshape(g, y, RLXVK_SHAPE(-1, 4, 8));
    return row_back(g, rlxvk_rnn_backward_gates(g, z, ROW_PARAM(8, 8), dy, RLXVK_NONE, false, false,
                                                NULL));
}

/* ---- A function with a gradient of its own ---- */

ROW_RULE(function)
{
    rlxvk_graph *body = NULL, *vjp = NULL;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_tensor result = RLXVK_NONE, inputs[] = {x, y};
    ROW_UNUSED(i);
    if (rlxvk_graph_create(&body) == RLXVK_OK && rlxvk_graph_create(&vjp) == RLXVK_OK) {
        rlxvk_tensor a = rlxvk_input(body, "a", RLXVK_F32, shape);
        rlxvk_graph_output(body, rlxvk_mul(body, a, rlxvk_input(body, "b", RLXVK_F32, shape)));
        for (int n = 0; n < 4; n++)
            a = rlxvk_input(vjp, (const char *const[]){"a", "b", "y", "d"}[n], RLXVK_F32, shape);
        rlxvk_graph_output(vjp, a);
        rlxvk_graph_output(vjp, a);
        result = rlxvk_custom_function(g, body, vjp, inputs, 2);
    }
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(vjp);
    return result;
}

row_rules row_rules_of_gradients(void)
{
    static const row_rule items[] = {layer_norm_gradient,
                                     rms_norm_gradient,
                                     group_norm_gradient,
                                     pixel_norm_gradient,
                                     softmax_gradient,
                                     softmax_gradient_within,
                                     loss,
                                     loss_gradient,
                                     dense_loss,
                                     dense_loss_gradients,
                                     stepped,
                                     stepped_adamw,
                                     stepped_lion,
                                     dropped,
                                     noisy,
                                     quantized_by_state,
                                     quantized_by_rows,
                                     quantized_by_learned,
                                     lstm_gradient,
                                     gru_gradient,
                                     rnn_gradient,
                                     function};
    return (row_rules){items, sizeof items / sizeof *items};
}
