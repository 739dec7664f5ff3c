/* Rules of sequence models, spectra, integers and attention with masks; see row_rules.h. */
#include "support/row_graph.h"
#include "support/row_rules.h"

#include <rlxvk_ops_domain.h>

#define W ROW_GRAPH_WIDTH

/* ---- Attention by mask tensors, rotation, projections ---- */

/* Most of the 4 W keys are masked, so that tiles of keys are skipped for all rows or for some. */
static rlxvk_tensor masked(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor y,
                           rlxvk_attention_mask mask)
{
    rlxvk_attention_options o = {.num_heads = 4, .mask = mask, .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor kept = rlxvk_tanh(g, y), low = rlxvk_scalar(g, -0.6f);
    rlxvk_tensor few = rlxvk_add(g, kept, low), none = rlxvk_sub(g, few, rlxvk_abs(g, few));
    if (mask == RLXVK_MASK_BIAS) /* -Inf for elements that are not above 0 */
        none = rlxvk_log(g, rlxvk_relu(g, few));
    rlxvk_tensor parts[] = {few, none, kept, none};
    kept =
        rlxvk_reshape(g, rlxvk_concat(g, parts, 4, 1), RLXVK_SHAPE(1, 1, row_count(g, x), 4 * W));
    return rlxvk_attention(g, x, ROW_PARAM(4 * W, W), ROW_PARAM(4 * W, W), kept, &o);
}
ROW_RULE(masked_attention)
{
    ROW_UNUSED(i);
    return masked(g, x, y, RLXVK_MASK_CUSTOM);
}
ROW_RULE(biased_attention)
{
    ROW_UNUSED(i);
    return masked(g, x, y, RLXVK_MASK_BIAS);
}
ROW_RULE(masked_batches)
{
    rlxvk_attention_options o = {.num_heads = 2,
                                 .mask = RLXVK_MASK_BIAS,
                                 .layout = RLXVK_LAYOUT_PACKED};
    ROW_UNUSED(i);
    rlxvk_tensor q = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 16));
    rlxvk_tensor k = rlxvk_reshape(g, y, RLXVK_SHAPE(-1, 2, 16));
    rlxvk_tensor bias = rlxvk_reshape(g, row_columns(g, y, 2, 4), RLXVK_SHAPE(-1, 1, 2, 2));
    return row_back(g, rlxvk_attention(g, q, k, k, bias, &o));
}
ROW_RULE(axial)
{
    int64_t rows = row_count(g, x);
    rlxvk_axial_rope2d_options o = {.end_x = rows, .end_y = 1, .head_dim = 8};
    ROW_UNUSED(y, i);
    return row_back(g, rlxvk_axial_rope2d(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, rows, W)), &o));
}
ROW_RULE(projected)
{
    rlxvk_projection_options o = {.gamma = ROW_PARAM(W), .epsilon = 1e-5f, .residual = y};
    ROW_UNUSED(i);
    return rlxvk_projection(g, x, ROW_PARAM(W, W), &o);
}

/* ---- Sequence models: rows are steps, or sequences ---- */

/* x as matrices [1, rows, 4, 8], and as their columns [1, rows, count]. */
static rlxvk_tensor heads_in_time(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, rlxvk_tanh(g, x), RLXVK_SHAPE(1, row_count(g, x), 4, 8));
}
static rlxvk_tensor columns_in_time(rlxvk_graph *g, rlxvk_tensor x, int64_t first, int64_t count)
{
    return rlxvk_reshape(g, row_columns(g, x, first, count),
                         RLXVK_SHAPE(1, row_count(g, x), count));
}
ROW_RULE(delta_rule)
{
    ROW_UNUSED(i);
    rlxvk_tensor k = rlxvk_mul(g, heads_in_time(g, y), rlxvk_scalar(g, 0.3f));
    rlxvk_tensor decay = rlxvk_neg(g, rlxvk_softplus(g, columns_in_time(g, x, 0, 4)));
    rlxvk_tensor beta = rlxvk_sigmoid(g, columns_in_time(g, y, 4, 4));
    return row_back(g, rlxvk_gated_delta_net(g, heads_in_time(g, x), k, heads_in_time(g, y), decay,
                                             beta, RLXVK_NONE, false, NULL));
}
ROW_RULE(delta_rule_of_sequences)
{
    ROW_UNUSED(i);
    rlxvk_tensor q = rlxvk_reshape(g, rlxvk_tanh(g, x), RLXVK_SHAPE(-1, 4, 1, 8));
    rlxvk_tensor k = rlxvk_reshape(g, rlxvk_tanh(g, y), RLXVK_SHAPE(-1, 4, 1, 8));
    rlxvk_tensor beta = rlxvk_reshape(g, row_columns(g, x, 0, 4), RLXVK_SHAPE(-1, 4, 1));
    beta = rlxvk_mul(g, rlxvk_sigmoid(g, beta), rlxvk_scalar(g, 0.1f));
    return row_back(g, rlxvk_gated_delta_net(g, q, k, q, rlxvk_neg(g, beta), beta, RLXVK_NONE,
                                             false, NULL));
}
ROW_RULE(scanned)
{
    ROW_UNUSED(i);
    rlxvk_tensor a = rlxvk_neg(g, rlxvk_abs(g, ROW_PARAM(W, 3)));
    rlxvk_tensor delta = rlxvk_sigmoid(g, columns_in_time(g, y, 0, W));
    return row_back(g,
                    rlxvk_selective_scan(g, columns_in_time(g, x, 0, W), delta, a,
                                         columns_in_time(g, y, 3, 3), columns_in_time(g, x, 6, 3)));
}
ROW_RULE(scanned_sequences)
{
    ROW_UNUSED(i);
    rlxvk_tensor a = rlxvk_neg(g, rlxvk_abs(g, ROW_PARAM(8, 2)));
    rlxvk_tensor in = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4, 8));
    rlxvk_tensor b = rlxvk_reshape(g, row_columns(g, y, 0, 8), RLXVK_SHAPE(-1, 4, 2));
    return row_back(g, rlxvk_selective_scan(g, in, rlxvk_sigmoid(g, in), a, b, b));
}
ROW_RULE(mamba)
{
    ROW_UNUSED(i);
    rlxvk_tensor b =
        rlxvk_reshape(g, row_columns(g, y, 4, 8), RLXVK_SHAPE(1, row_count(g, x), 4, 2));
    return row_back(g, rlxvk_mamba2(g, heads_in_time(g, x),
                                    rlxvk_sigmoid(g, columns_in_time(g, y, 0, 4)),
                                    rlxvk_neg(g, rlxvk_abs(g, ROW_PARAM(4))), b, b, RLXVK_NONE,
                                    false, NULL));
}
ROW_RULE(linear_attention)
{
    ROW_UNUSED(i);
    rlxvk_tensor q = heads_in_time(g, x), v = heads_in_time(g, y);
    rlxvk_tensor decay = rlxvk_neg(g, rlxvk_abs(g, q));
    return row_back(g,
                    rlxvk_linear_attention(g, q, q, v, decay, RLXVK_NONE, RLXVK_NONE, NULL, NULL));
}
ROW_RULE(lstm)
{
    rlxvk_recurrent_options o = {.hidden_size = W};
    ROW_UNUSED(y, i);
    return row_back(g, rlxvk_lstm(g, columns_in_time(g, x, 0, W), ROW_PARAM(4 * W * W),
                                  ROW_PARAM(4 * W * W), ROW_PARAM(4 * W), RLXVK_NONE, RLXVK_NONE,
                                  &o, NULL, NULL));
}
ROW_RULE(rnn_in_layers)
{
    rlxvk_recurrent_options o = {.hidden_size = W, .num_layers = 2};
    ROW_UNUSED(y, i);
    return row_back(g, rlxvk_rnn(g, columns_in_time(g, x, 0, W), ROW_PARAM(2 * W * W),
                                 ROW_PARAM(2 * W * W), ROW_PARAM(2 * W), RLXVK_NONE, &o, NULL));
}
ROW_RULE(gru_of_sequences)
{
    rlxvk_recurrent_options o = {.hidden_size = 4, .bidirectional = true};
    ROW_UNUSED(y, i);
    rlxvk_tensor in = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4, 8));
    return row_back(g, rlxvk_gru(g, in, ROW_PARAM(2 * 12 * 8), ROW_PARAM(2 * 12 * 4), ROW_PARAM(24),
                                 ROW_PARAM(24), RLXVK_NONE, &o, NULL));
}

/* ---- Spectra ---- */

ROW_RULE(real_spectra)
{
    ROW_UNUSED(i);
    rlxvk_tensor bins = rlxvk_rfft_block(g, x, W, RLXVK_FFT_ORTHO);
    bins = rlxvk_mul(g, bins, ROW_PARAM(W + 2));
    return rlxvk_add(g, y, rlxvk_irfft_block(g, bins, W, RLXVK_FFT_ORTHO));
}
ROW_RULE(mel_bands)
{
    ROW_UNUSED(i);
    rlxvk_tensor filters = rlxvk_abs(g, ROW_PARAM(8, 9));
    rlxvk_tensor bands = rlxvk_log_mel(g, x, filters, RLXVK_LOG_MEL_FRAME);
    bands = rlxvk_sub(g, bands, rlxvk_log_mel_slopes(g, y, filters, bands, RLXVK_LOG_MEL_FRAME));
    return row_filled(g, bands, y);
}
ROW_RULE(mel_clips)
{
    ROW_UNUSED(i);
    rlxvk_tensor filters = rlxvk_abs(g, ROW_PARAM(4, 5));
    rlxvk_tensor in = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 16));
    rlxvk_tensor bands = rlxvk_log_mel(g, in, filters, RLXVK_LOG_MEL_CLIP);
    bands = rlxvk_add(g, bands, rlxvk_log_mel_slopes(g, in, filters, bands, RLXVK_LOG_MEL_CLIP));
    return row_filled(g, rlxvk_reshape(g, bands, RLXVK_SHAPE(-1, 8)), y);
}
ROW_RULE(overlapped)
{
    ROW_UNUSED(i);
    rlxvk_tensor frames = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4, 8));
    return row_filled(g, rlxvk_overlap_add(g, frames, ROW_PARAM(8), 4), y);
}
ROW_RULE(resampled)
{
    ROW_UNUSED(y, i);
    return row_columns(g, rlxvk_upfirdn(g, x, ROW_PARAM(7), 3, 2), 4, W);
}
ROW_RULE(averaged_power)
{
    rlxvk_welch_frame_options o = {.length = 8, .hop = 4};
    rlxvk_welch_options segments = {.n_segments = 2};
    ROW_UNUSED(i);
    rlxvk_tensor power = rlxvk_welch(g, x, ROW_PARAM(8), &o);
    rlxvk_tensor blocks = rlxvk_reshape(g, y, RLXVK_SHAPE(2 * row_count(g, y), 16));
    return row_filled(g, rlxvk_add(g, power, rlxvk_welch_power(g, blocks, &segments)), x);
}

/* ---- Integers ---- */

static const float step = 0.02f;
static const int32_t middle = 3;
static const rlxvk_quantize_options scale = {.scales = &step, .zero_points = &middle, .count = 1};
static const rlxvk_requantize again = {.x_zero_point = 3, .out_zero_point = 3, .multiplier = 0.02f};

ROW_RULE(integer_product)
{
    ROW_UNUSED(y, i);
    rlxvk_tensor w = rlxvk_quantize(g, ROW_PARAM(W, W), &scale);
    return rlxvk_dequantize(g,
                            rlxvk_qmatmul(g, rlxvk_quantize(g, x, &scale), w, RLXVK_NONE, &again),
                            &scale);
}
ROW_RULE(integer_conv)
{
    rlxvk_qconv2d_options o = {.requantize = again, .padding = {1, 1}};
    ROW_UNUSED(y, i);
    rlxvk_tensor w = rlxvk_quantize(g, ROW_PARAM(2, 2, 3, 3), &scale);
    rlxvk_tensor image = rlxvk_quantize(g, row_image(g, x), &scale);
    return row_back(g, rlxvk_dequantize(g, rlxvk_qconv2d(g, image, w, RLXVK_NONE, &o), &scale));
}

row_rules row_rules_of_signals(void)
{
    static const row_rule items[] = {masked_attention,
                                     biased_attention,
                                     masked_batches,
                                     axial,
                                     projected,
                                     delta_rule,
                                     delta_rule_of_sequences,
                                     scanned,
                                     scanned_sequences,
                                     mamba,
                                     linear_attention,
                                     lstm,
                                     rnn_in_layers,
                                     gru_of_sequences,
                                     real_spectra,
                                     mel_bands,
                                     mel_clips,
                                     overlapped,
                                     resampled,
                                     averaged_power,
                                     integer_product,
                                     integer_conv};
    return (row_rules){items, sizeof items / sizeof *items};
}
