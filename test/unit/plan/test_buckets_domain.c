/*
 * Rules for rows of a bucket in less common ops (test_buckets.c has the others): indices, images,
 * sequences, spectra, training. Every family must have a rule. Either the random graphs of active
 * extents use it, or it refuses with the reason in the list below.
 */
#include "op/bucket.h"
#include "op/families.h"
#include "support/bucket_case.h"
#include "support/profiles.h"
#include "support/row_graph.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_ops_neighbours.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

/* ---- Indices ---- */

OF_X(rows_taken, rlxvk_gather_nd(g, W(9, 5), rlxvk_reshape(g, x, RLXVK_SHAPE(ROWS, 2))))
OF_X(columns_taken, rlxvk_gather_nd(g, x, W(3, 1)))
OF_X(places_taken, rlxvk_gather_nd(g, W(9, 9), x))
OF_X(hot, rlxvk_one_hot(g, x, 5, -1, 1, 0))
OF_X(hot_before, rlxvk_one_hot(g, x, 5, 0, 1, 0))
OF_X(counted, rlxvk_histogram(g, x, 4, 0, 1))
OF_X(lines_scattered, rlxvk_scatter(g, x, W(ROWS, 2), W(ROWS, 2), 1, RLXVK_SCATTER_ADD))
OF_X(updates_scattered, rlxvk_scatter(g, W(ROWS, 9), W(ROWS, 6), x, 1, RLXVK_SCATTER_MAX))
OF_X(rows_scattered, rlxvk_scatter(g, W(9, 6), W(ROWS, 6), x, 0, RLXVK_SCATTER_ASSIGN))
OF_X(columns_scattered, rlxvk_scatter_nd(g, x, W(3, 1), W(3, ROWS), RLXVK_SCATTER_ADD))
OF_X(updates_scattered_nd, rlxvk_scatter_nd(g, W(9, ROWS), W(6, 1), x, RLXVK_SCATTER_ADD))
OF_X(rows_scattered_nd, rlxvk_scatter_nd(g, W(9, 6), W(ROWS, 1), x, RLXVK_SCATTER_ADD))
OF_X(added_columns, rlxvk_scatter_add(g, x, W(6), 4))
OF_X(added_by_rows, rlxvk_scatter_add(g, W(ROWS, 6), x, 4))
OF_X(given_back, rlxvk_gather_backward(g, x, W(6), 1, 9))
OF_X(given_back_behind, rlxvk_gather_backward(g, x, W(3, 2), 0, 9))
OF_X(given_back_rows, rlxvk_gather_backward(g, x, W(ROWS), 0, 9))
OF_X(given_back_by_rows, rlxvk_gather_backward(g, W(ROWS, 6), x, 0, 9))
OF_X(given_along, rlxvk_take_along_axis_backward(g, x, W(ROWS, 6), 1, 9))
OF_X(given_along_rows, rlxvk_take_along_axis_backward(g, x, W(ROWS, 6), 0, 9))
OF_X(written, rlxvk_write_rows(g, W(1, 20, 6), rlxvk_reshape(g, x, RLXVK_SHAPE(1, ROWS, 6)), W(1)))
OF_X(gated, rlxvk_group_limited_gate(g, x, rlxvk_silu(g, x), NULL))
OF_X(near_rows, rlxvk_umap_knn(g, x, 2))
OF_X(near_points, rlxvk_knn(g, x, W(9, 6), 2, RLXVK_METRIC_L2, NULL))
OF_X(near_to_points, rlxvk_knn(g, W(9, 6), x, 2, RLXVK_METRIC_L2, NULL))
OF_X(greedy, rlxvk_sample(g, x, NULL))
OF_X(dropped, rlxvk_dropout(g, x, &(rlxvk_dropout_options){.rate = 0.5f}, W(1)))
OF_X(dropped_at, rlxvk_dropout(g, W(5), &(rlxvk_dropout_options){.rate = 0.5f},
                               rlxvk_reduce_sum(g, x, AXES(0, 1), false)))

/* ---- Images ---- */

OF_X(conv_given, rlxvk_conv_backward_input(g, W(3, 2, 2, 2), x, (const int64_t[]){9, 5}, NULL))
OF_X(conv_weighed, rlxvk_conv_backward_input(g, x, W(1, ROWS, 2, 2), (const int64_t[]){5, 5}, NULL))
OF_X(weights_given,
     rlxvk_conv_backward_weight(g, x, W(ROWS, 2, 3, 3), &(rlxvk_conv_options){.kernel = {2, 2}}))
static const rlxvk_conv_options quarters = {.kernel = {2, 2}, .stride = {2, 2}};
OF_X(windows, rlxvk_im2col(g, x, &quarters))
OF_X(cells, rlxvk_col2im(g, x, 4, 4, &quarters))
OF_X(there_and_back, cells(g, windows(g, x)))
static const rlxvk_pool_options halves = {.kernel = {2, 2}};
OF_X(pool_given, rlxvk_pool_max_backward(g, x, W(ROWS, 3, 2, 2), &halves))
OF_X(pool_dy, rlxvk_pool_min_backward(g, W(ROWS, 3, 4, 4), x, &halves))
OF_X(pool_taken, rlxvk_pool_max_take(g, x, W(ROWS, 3, 4, 4), &halves))
OF_X(pool_places, rlxvk_pool_max_indices(g, x, &halves))
OF_X(read_images, rlxvk_grid_sample(g, x, W(ROWS, 2, 3, 2), NULL))
OF_X(read_channels, rlxvk_grid_sample(g, x, W(2, 2, 3, 2), NULL))
OF_X(read_at, rlxvk_grid_sample(g, W(2, 3, 4, 4), x, NULL))
OF_X(read_by_images, rlxvk_grid_sample(g, W(ROWS, 3, 4, 4), x, NULL))
OF_X(given_images,
     rlxvk_grid_sample_backward_input(g, x, W(ROWS, 4, 4, 2), (const int64_t[]){5, 5}, NULL))
OF_X(given_points,
     rlxvk_grid_sample_backward_input(g, x, W(2, ROWS, 4, 2), (const int64_t[]){5, 5}, NULL))
OF_X(grid_given, rlxvk_grid_sample_backward_grid(g, W(2, 3, 4, 4), x, W(2, 3, ROWS, 4), NULL))
OF_X(grid_arrived, rlxvk_grid_sample_backward_grid(g, W(2, 3, 5, 5), W(2, ROWS, 4, 2), x, NULL))
OF_X(grid_channels, rlxvk_grid_sample_backward_grid(g, W(2, ROWS, 5, 5), W(2, 4, 4, 2), x, NULL))
OF_X(grid_of_rows, rlxvk_grid_sample_backward_grid(g, x, W(2, 4, 4, 2), W(2, ROWS, 4, 4), NULL))
static const rlxvk_deform_options moving = {.kernel = {1, 1}};
OF_X(deformed, rlxvk_deform_im2col(g, x, W(ROWS, 2, 4, 4), RLXVK_NONE, &moving))
OF_X(deforming, rlxvk_deform_im2col(g, W(ROWS, 3, 4, 4), x, W(ROWS, 1, 4, 4), &moving))
OF_X(deformed_windows, rlxvk_deform_im2col(g, W(2, 3, 4, 4), x, RLXVK_NONE, &moving))
OF_X(deformed_back,
     rlxvk_deform_im2col_backward_input(g, x, W(ROWS, 2, 4, 4), (const int64_t[]){5, 5}, &moving))
OF_X(deformed_by,
     rlxvk_deform_im2col_backward_offset(g, W(ROWS, 3, 4, 4), W(ROWS, 2, 4, 4), x, &moving))
static const rlxvk_roi_options quartered = {.size = {2, 2}};
OF_X(regions_of, rlxvk_roi_align(g, W(2, 3, 4, 4), x, W(ROWS), &quartered))
OF_X(regions_in, rlxvk_roi_align(g, x, W(5, 4), W(5), &quartered))
OF_X(regions_back, rlxvk_roi_align_backward_input(g, x, W(5, 4), W(5), RLXVK_NONE,
                                                  (const int64_t[]){2, 4, 4}, &quartered))
OF_X(regions_given, rlxvk_roi_align_backward_input(g, W(ROWS, 3, 2, 2), x, W(ROWS), RLXVK_NONE,
                                                   (const int64_t[]){2, 4, 4}, &quartered))

/* ---- Packed and integers ---- */

static const float unit = 0.1f;
static const rlxvk_quantize_options units = {.scales = &unit, .count = 1};
static const rlxvk_requantize again = {.multiplier = 0.5f};
static rlxvk_tensor integers(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_quantize(g, x, &units);
}
OF_X(integer_product, rlxvk_qmatmul(g, integers(g, x), integers(g, W(6, 5)), RLXVK_NONE, &again))
OF_X(integer_weight, rlxvk_qmatmul(g, integers(g, W(5, ROWS)), integers(g, x), RLXVK_NONE, &again))
OF_X(integer_conv, rlxvk_qconv2d(g, integers(g, x), integers(g, W(2, 3, 2, 2)), RLXVK_NONE,
                                 &(rlxvk_qconv2d_options){.requantize = again}))
OF_X(weight_given, rlxvk_grouped_matmul_backward_weight(g, x, W(ROWS, 5), W(ROWS), 3, false))
OF_X(solved, rlxvk_batched_dense_solve(g, x, W(ROWS, 3)))
OF_X(determinants, rlxvk_det(g, x))
OF_X(signs, rlxvk_slogdet(g, x, NULL))
OF_X(cofactors, rlxvk_cofactor(g, x))
OF_X(inverses, rlxvk_inverse(g, x))

/* ---- Norms, losses, steps ---- */

OF_X(norm_given, rlxvk_layer_norm_backward_input(g, x, W(6), W(ROWS, 6), -1, 1e-5f))
OF_X(norm_dy, rlxvk_rms_norm_backward_input(g, W(ROWS, 6), RLXVK_NONE, x, -1, 1e-5f))
OF_X(group_given, rlxvk_group_norm_backward_input(g, x, RLXVK_NONE, W(ROWS, 4, 3), 2, 1e-5f))
OF_X(gamma_given, rlxvk_rms_norm_backward_gamma(g, x, W(ROWS, 6), -1, 1e-5f))
OF_X(softmax_given, rlxvk_softmax_backward(g, x, W(ROWS, 6), 1))
OF_X(loss, rlxvk_softmax_cross_entropy(g, x, W(ROWS)))
OF_X(loss_of_labels, rlxvk_softmax_cross_entropy(g, W(ROWS, 6), x))
OF_X(loss_given, rlxvk_softmax_cross_entropy_backward(g, W(ROWS, 6), W(ROWS), x))
OF_X(dense_loss, rlxvk_softmax_cross_entropy_dense(g, x, W(ROWS, 6)))
static rlxvk_tensor dense_given(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor of_targets;
    (void)rlxvk_softmax_cross_entropy_dense_backward(g, x, W(2, ROWS, 6), W(2, ROWS), &of_targets);
    return of_targets;
}
OF_X(stepped, rlxvk_sgd(g, x, W(ROWS, 6), W(ROWS, 6), NULL, NULL, NULL))
static rlxvk_tensor stepped_apart(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor average;
    (void)rlxvk_lion(g, W(ROWS, 6), x, W(ROWS, 6), NULL, NULL, &average);
    return average;
}
OF_X(stepped_by, rlxvk_lion(g, W(ROWS, 6), x, W(ROWS, 6), NULL, NULL, NULL))
OF_X(accumulated, rlxvk_accumulate(g, W(ROWS, 6), x, W(1)))
OF_X(batch_normed,
     rlxvk_batch_norm_training(g, x, RLXVK_NONE, RLXVK_NONE, RLXVK_NONE, RLXVK_NONE, NULL))
static rlxvk_tensor rounded(rlxvk_graph *g, rlxvk_tensor x, rlxvk_scale_mode mode, bool per_axis)
{
    rlxvk_fake_quantize_options o = {.mode = mode, .per_axis = per_axis};
    return rlxvk_fake_quantize(g, x, mode == RLXVK_SCALE_PER_BATCH ? RLXVK_NONE : W(1), &o);
}
OF_X(rounded_by_state, rounded(g, x, RLXVK_SCALE_FIXED, false))
OF_X(rounded_by_all, rounded(g, x, RLXVK_SCALE_PER_BATCH, false))
OF_X(rounded_by_rows, rounded(g, x, RLXVK_SCALE_PER_BATCH, true))
OF_X(rounded_by_average, rounded(g, x, RLXVK_SCALE_EMA, false))
OF_X(scale_given, rlxvk_fake_quantize_lsq_backward_scale(g, x, W(1), W(ROWS, 6), NULL))

/* ---- Sequences ---- */

OF_X(turned_axially,
     rlxvk_axial_rope2d(g, x,
                        &(rlxvk_axial_rope2d_options){.end_x = ROWS, .end_y = 1, .head_dim = 4}))
static rlxvk_tensor attention_given(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_attention_options o = {.num_heads = 2, .layout = RLXVK_LAYOUT_PACKED};
    return rlxvk_attention_backward(g, x, x, x, W(ROWS, 6), RLXVK_NONE, &o, NULL, NULL, NULL);
}
static rlxvk_tensor delta(rlxvk_graph *g, rlxvk_tensor x, bool carry)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    rlxvk_tensor y, beta = W(s.dims[0], s.dims[1], s.dims[2]);
    rlxvk_tensor state = W(s.dims[0], s.dims[2], s.dims[3], s.dims[3]);
    return rlxvk_gated_delta_net(g, x, x, x, beta, beta, carry ? state : RLXVK_NONE, false,
                                 carry ? &y : NULL);
}
static rlxvk_tensor attended(rlxvk_graph *g, rlxvk_tensor x, int64_t heads, bool decays)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    rlxvk_tensor k = W(s.dims[0], s.dims[1], heads, s.dims[3]);
    return rlxvk_linear_attention(g, x, k, W(s.dims[0], s.dims[1], heads, 5),
                                  decays ? k : RLXVK_NONE, RLXVK_NONE, RLXVK_NONE, NULL, NULL);
}
OF_X(queries_of_three, attended(g, x, 1, true))
OF_X(queries_in_time, attended(g, x, 3, false))
OF_X(delta_rule, delta(g, x, false))
OF_X(delta_carried, delta(g, x, true))
static rlxvk_tensor delta_given(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor beta = W(1, ROWS, 2), d;
    return rlxvk_gated_delta_net_backward(g, x, x, x, beta, beta, RLXVK_NONE, x, RLXVK_NONE, &d,
                                          NULL, NULL, NULL, NULL);
}
OF_X(scanned, rlxvk_selective_scan(g, x, rlxvk_silu(g, x), W(6, 2), W(1, ROWS, 2), W(1, ROWS, 2)))
OF_X(scanned_by, rlxvk_selective_scan(g, W(1, ROWS, 6), W(1, ROWS, 6), W(6, 2), x, x))
OF_X(scanned_decay,
     rlxvk_selective_scan(g, W(1, 3, ROWS), W(1, 3, ROWS), x, W(1, 3, 2), W(1, 3, 2)))
OF_X(scan_given, rlxvk_selective_scan_backward(g, x, x, W(6, 2), W(1, ROWS, 2), W(1, ROWS, 2), x,
                                               NULL, NULL, NULL, NULL))
static rlxvk_tensor mamba(rlxvk_graph *g, rlxvk_tensor x, bool carry)
{
    rlxvk_tensor b = W(1, ROWS, 2, 3), y;
    rlxvk_tensor state = W(1, 2, 4, 3);
    return rlxvk_mamba2(g, x, W(1, ROWS, 2), W(2), b, b, carry ? state : RLXVK_NONE, false, &y);
}
OF_X(mamba2, mamba(g, x, false))
OF_X(mamba2_carried, mamba(g, x, true))
static rlxvk_tensor recurrent(rlxvk_graph *g, rlxvk_tensor x, bool both, bool carry)
{
    rlxvk_recurrent_options o = {.hidden_size = 3, .bidirectional = both};
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    int64_t d = both ? 2 : 1;
    rlxvk_tensor state = W(d, s.dims[0], 3), h;
    return rlxvk_rnn(g, x, W(d * 3 * s.dims[2]), W(d * 9), W(d * 3), carry ? state : RLXVK_NONE, &o,
                     carry ? &h : NULL);
}
OF_X(one_way, recurrent(g, x, false, false))
OF_X(both_ways, recurrent(g, x, true, false))
OF_X(state_carried, recurrent(g, x, false, true))
OF_X(rnn_given,
     rlxvk_rnn_backward_gates(g, x, W(3, 3), rlxvk_silu(g, x), RLXVK_NONE, false, false, NULL))
static rlxvk_tensor gru_given(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor before = W(ROWS, 2, 2), from_h;
    (void)rlxvk_gru_backward_gates(g, x, x, before, W(6, 2), before, RLXVK_NONE, false, &from_h,
                                   NULL);
    return from_h;
}
static rlxvk_tensor state_given(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor dh;
    return rlxvk_rnn_backward_gates(g, x, W(3, 3), x, RLXVK_NONE, false, false, &dh);
}

/* ---- Spectra ---- */

OF_X(real_spectra, rlxvk_rfft_block(g, x, 6, RLXVK_FFT_NONE))
OF_X(bands, rlxvk_log_mel(g, x, W(3, 4), RLXVK_LOG_MEL_FRAME))
OF_X(bands_of_clips, rlxvk_log_mel(g, x, W(3, 4), RLXVK_LOG_MEL_CLIP))
OF_X(slopes, rlxvk_log_mel_slopes(g, W(ROWS, 8), W(3, 4), x, RLXVK_LOG_MEL_FRAME))
OF_X(overlapped, rlxvk_overlap_add(g, x, RLXVK_NONE, 2))
OF_X(resampled, rlxvk_upfirdn(g, x, W(3), 2, 1))
OF_X(averaged, rlxvk_welch(g, x, RLXVK_NONE, &(rlxvk_welch_frame_options){.length = 4, .hop = 2}))
OF_X(powers, rlxvk_welch_power(g, x, &(rlxvk_welch_options){.n_segments = 2}))
OF_X(powers_of_pairs, powers(g, rlxvk_reshape(g, x, RLXVK_SHAPE(2 * ROWS, 16))))

/* ---- Splats ---- */

static rlxvk_tensor splats(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_gaussian_splat_scene s = {x,           W(ROWS * 3), W(ROWS * 4), W(ROWS),
                                    W(ROWS * 3), W(ROWS * 3), W(23)};
    return rlxvk_gaussian_splat_render(g, &s, NULL);
}

#define MATRIX FIXED_SHAPE(ROWS, 6)
#define IMAGES FIXED_SHAPE(ROWS, 3, 4, 4)
#define ACROSS "it computes across the rows"
static const bucket_case rows[] = {
    {"gather_nd by rows", FIXED_SHAPE(ROWS, 2), 0, rows_taken, ROWS, NULL},
    {"gather_nd of columns", FIXED_SHAPE(5, ROWS), 1, columns_taken, ROWS, NULL},
    {"gather_nd of rows", MATRIX, 0, columns_taken, 0, "it takes rows from where"},
    {"gather_nd, numbers of an index", FIXED_SHAPE(5, 2), 1, places_taken, 0,
     "are not along one of their axes"},
    {"one_hot", FIXED_SHAPE(ROWS), 0, hot, ROWS * 5, NULL},
    {"one_hot, before", FIXED_SHAPE(ROWS), 0, hot_before, ROWS, NULL},
    {"histogram", MATRIX, 0, counted, 0, "it counts over the rows"},
    {"scatter", MATRIX, 0, lines_scattered, ROWS * 6, NULL},
    {"scatter of updates", MATRIX, 0, updates_scattered, ROWS * 9, NULL},
    {"scatter along rows", MATRIX, 0, rows_scattered, 0, ACROSS},
    {"scatter_nd", FIXED_SHAPE(9, ROWS), 1, columns_scattered, ROWS, NULL},
    {"scatter_nd of updates", FIXED_SHAPE(6, ROWS), 1, updates_scattered_nd, ROWS, NULL},
    {"scatter_nd of rows", MATRIX, 0, rows_scattered_nd, 0, "its updates go to rows that"},
    {"scatter_add of columns", FIXED_SHAPE(6, ROWS), 1, added_columns, ROWS, NULL},
    {"scatter_add by rows", FIXED_SHAPE(ROWS), 0, added_by_rows, 0, "it adds up over the rows of"},
    {"gather_backward", MATRIX, 0, given_back, ROWS * 9, NULL},
    {"gather_backward behind", FIXED_SHAPE(3, 2, ROWS), 2, given_back_behind, ROWS, NULL},
    {"gather_backward of rows", MATRIX, 0, given_back_rows, 0, "it adds up over the rows of its"},
    {"gather_backward by rows", FIXED_SHAPE(ROWS), 0, given_back_by_rows, 0, "it adds up over"},
    {"take_along_axis_backward", MATRIX, 0, given_along, ROWS * 9, NULL},
    {"take_along_axis_backward of rows", MATRIX, 0, given_along_rows, 0, ACROSS},
    {"write_rows", MATRIX, 0, written, 0, "its cache would keep rows"},
    {"gate", FIXED_SHAPE(ROWS, 16), 0, gated, ROWS * 16, NULL},
    {"gate of experts", FIXED_SHAPE(3, 16), 1, gated, 0, ACROSS},
    {"umap_knn", FIXED_SHAPE(ROWS, ROWS), 0, near_rows, ROWS * 4, NULL},
    {"umap_knn of columns", FIXED_SHAPE(ROWS, ROWS), 1, near_rows, 0, ACROSS},
    {"knn", MATRIX, 0, near_points, ROWS * 2, NULL},
    {"knn of many queries", FIXED_SHAPE(2048, 6), 0, near_points, 0, "in several parts"},
    {"knn of points", MATRIX, 0, near_to_points, 0, "needs whole depends on the rows"},
    {"sample of tokens", FIXED_SHAPE(3, ROWS), 1, greedy, 0, ACROSS},
    {"dropout", MATRIX, 1, dropped, 6, NULL},
    {"dropout by rows", MATRIX, 0, dropped_at, 0, "reduce_sum"},
    {"conv_backward_input", FIXED_SHAPE(ROWS, 3, 4, 4), 0, conv_given, ROWS * 90, NULL},
    {"conv_backward_input of pixels", FIXED_SHAPE(1, 3, ROWS, 4), 2, conv_given, 0, ACROSS},
    {"conv_backward_input of weights", FIXED_SHAPE(ROWS, 2, 2, 2), 0, conv_weighed, 0,
     "its weights depend on the rows"},
    {"conv_backward_weight", FIXED_SHAPE(ROWS, 3, 4, 4), 0, weights_given, 0, "adds up over the"},
    {"im2col", IMAGES, 0, windows, ROWS * 48, NULL},
    {"im2col of channels", FIXED_SHAPE(2, ROWS, 4, 4), 1, windows, ROWS * 4, NULL},
    {"im2col of pixels", FIXED_SHAPE(2, 3, ROWS, 4), 2, windows, 0, ACROSS},
    {"col2im", IMAGES, 0, there_and_back, ROWS * 48, NULL},
    {"col2im of channels", FIXED_SHAPE(2, ROWS, 4, 4), 1, there_and_back, ROWS * 16, NULL},
    {"col2im of windows", FIXED_SHAPE(4 * ROWS, 12), 0, cells, 0,
     "it has no axis of whole buckets"},
    {"pool_max_backward", IMAGES, 0, pool_given, ROWS * 48, NULL},
    {"pool_min_backward", FIXED_SHAPE(ROWS, 3, 2, 2), 0, pool_dy, ROWS * 48, NULL},
    {"pool_max_take", IMAGES, 0, pool_taken, ROWS * 12, NULL},
    {"pool_max_indices", FIXED_SHAPE(2, ROWS, 4, 4), 1, pool_places, ROWS * 4, NULL},
    {"pool_max_indices of pixels", FIXED_SHAPE(2, 3, ROWS, 4), 2, pool_places, 0, ACROSS},
    {"grid_sample of images", IMAGES, 0, read_images, ROWS * 18, NULL},
    {"grid_sample of channels", FIXED_SHAPE(2, ROWS, 4, 4), 1, read_channels, ROWS * 6, NULL},
    {"grid_sample of pixels", FIXED_SHAPE(2, 3, ROWS, 4), 2, read_channels, 0, ACROSS},
    {"grid_sample at points", FIXED_SHAPE(2, 3, ROWS, 2), 2, read_at, ROWS, NULL},
    {"grid_sample by images", FIXED_SHAPE(ROWS, 2, 3, 2), 0, read_by_images, ROWS * 18, NULL},
    {"grid's input", IMAGES, 0, given_images, ROWS * 75, NULL},
    {"grid's input of points", FIXED_SHAPE(2, 3, ROWS, 4), 2, given_points, 0, ACROSS},
    {"grid's input of channels", FIXED_SHAPE(2, ROWS, ROWS, 4), 1, given_points, ROWS * 25, NULL},
    {"grid's points", FIXED_SHAPE(2, ROWS, 4, 2), 1, grid_given, ROWS * 8, NULL},
    {"grid's dy", FIXED_SHAPE(2, 3, ROWS, 4), 2, grid_arrived, ROWS * 8, NULL},
    {"grid's channels", FIXED_SHAPE(2, ROWS, 4, 4), 1, grid_channels, 0, "across the rows"},
    {"grid's image", FIXED_SHAPE(2, ROWS, 3, 3), 1, grid_of_rows, 0, ACROSS},
    {"deform_im2col", IMAGES, 0, deformed, ROWS * 48, NULL},
    {"deform_im2col's offsets", FIXED_SHAPE(ROWS, 2, 4, 4), 0, deforming, ROWS * 48, NULL},
    {"deform_im2col of windows", FIXED_SHAPE(2, 2, ROWS, 4), 2, deformed_windows, 0,
     "an image across the rows"},
    {"deform's input", FIXED_SHAPE(ROWS, 3, 16), 0, deformed_back, ROWS * 75, NULL},
    {"deform's dy", FIXED_SHAPE(ROWS, 3, 16), 0, deformed_by, ROWS * 32, NULL},
    {"roi_align", FIXED_SHAPE(ROWS, 4), 0, regions_of, ROWS * 12, NULL},
    {"roi_align of corners", FIXED_SHAPE(ROWS, 4), 1, regions_of, 0, "a region's corners"},
    {"roi_align of images", FIXED_SHAPE(ROWS, 3, 4, 4), 0, regions_in, 0,
     "an image across the rows"},
    {"roi_align of channels", FIXED_SHAPE(2, ROWS, 4, 4), 1, regions_in, ROWS * 4, NULL},
    {"roi_align's channels", FIXED_SHAPE(5, ROWS, 2, 2), 1, regions_back, ROWS * 16, NULL},
    {"roi_align's regions", FIXED_SHAPE(ROWS, 4), 0, regions_given, 0, "it adds regions up"},
    {"qmatmul", MATRIX, 0, integer_product, ROWS * 5, NULL},
    {"qmatmul of weights", MATRIX, 0, integer_weight, 0, "needs whole depends on the rows"},
    {"qconv2d", IMAGES, 0, integer_conv, ROWS * 18, NULL},
    {"qconv2d of pixels", FIXED_SHAPE(2, 3, ROWS, 4), 2, integer_conv, 0, ACROSS},
    {"grouped_matmul_backward_weight", MATRIX, 0, weight_given, 0, "weights adds up over the rows"},
    {"solve", FIXED_SHAPE(ROWS, 3, 3), 0, solved, 0, "the flags of singular systems"},
    {"det", FIXED_SHAPE(ROWS, 3, 3), 0, determinants, ROWS, NULL},
    {"det inside a batch", FIXED_SHAPE(2, ROWS, 3, 3), 1, determinants, ROWS, NULL},
    {"det of rows", FIXED_SHAPE(ROWS, ROWS), 0, determinants, 0, "a whole matrix at once"},
    {"slogdet", FIXED_SHAPE(ROWS, 3, 3), 0, signs, ROWS, NULL},
    {"slogdet of rows", FIXED_SHAPE(2, ROWS, ROWS), 1, signs, 0, "a whole matrix at once"},
    {"cofactor", FIXED_SHAPE(ROWS, 3, 3), 0, cofactors, ROWS * 9, NULL},
    {"inverse", FIXED_SHAPE(ROWS, 3, 3), 0, inverses, ROWS * 9, NULL},
    {"cofactor of columns", FIXED_SHAPE(ROWS, ROWS), 1, cofactors, 0, "a whole matrix at once"},
    {"norm's input", MATRIX, 0, norm_given, ROWS * 6, NULL},
    {"norm's dy", MATRIX, 0, norm_dy, ROWS * 6, NULL},
    {"norm's columns", FIXED_SHAPE(ROWS, 6), 1, norm_dy, 0, ACROSS},
    {"group norm's input", FIXED_SHAPE(ROWS, 4, 3), 0, group_given, ROWS * 12, NULL},
    {"norm's gamma", MATRIX, 0, gamma_given, 0, "parameters adds up over the rows"},
    {"softmax_backward", MATRIX, 0, softmax_given, ROWS * 6, NULL},
    {"softmax_backward across", MATRIX, 1, softmax_given, 0, ACROSS},
    {"loss", MATRIX, 0, loss, ROWS, NULL},
    {"loss of labels", FIXED_SHAPE(ROWS), 0, loss_of_labels, ROWS, NULL},
    {"loss, backward", FIXED_SHAPE(ROWS), 0, loss_given, ROWS * 6, NULL},
    {"loss of classes", MATRIX, 1, loss, 0, ACROSS},
    {"dense loss", MATRIX, 0, dense_loss, ROWS, NULL},
    {"dense loss, backward", FIXED_SHAPE(2, ROWS, 6), 1, dense_given, ROWS * 6, NULL},
    {"dense loss, classes", FIXED_SHAPE(2, ROWS, 6), 2, dense_given, 0, ACROSS},
    {"sgd", MATRIX, 0, stepped, 0, "what it writes in place would keep"},
    {"lion", MATRIX, 0, stepped_apart, ROWS * 6, NULL},
    {"lion in place", MATRIX, 0, stepped_by, 0, "what it writes in place would keep"},
    {"accumulate", MATRIX, 0, accumulated, 0, "its sum would keep rows"},
    {"batch norm", FIXED_SHAPE(ROWS, 3), 0, batch_normed, 0, "its statistics are of all rows"},
    {"fake_quantize", MATRIX, 1, rounded_by_state, 6, NULL},
    {"fake_quantize by all", MATRIX, 0, rounded_by_all, 0, "largest magnitude of all rows"},
    {"fake_quantize by rows", MATRIX, 0, rounded_by_rows, ROWS * 6, NULL},
    {"fake_quantize by columns", MATRIX, 1, rounded_by_rows, 0, "largest magnitude of all rows"},
    {"fake_quantize by average", MATRIX, 0, rounded_by_average, 0, "its average of scales would"},
    {"fake_quantize's scale", MATRIX, 0, scale_given, 0, "scales adds up over the rows"},
    {"axial_rope2d", FIXED_SHAPE(2, ROWS, 8), 1, turned_axially, ROWS * 8, NULL},
    {"axial_rope2d of columns", FIXED_SHAPE(2, ROWS, 8), 2, turned_axially, 0, ACROSS},
    {"attention_backward", MATRIX, 0, attention_given, 0, "its log-sum-exps lie behind"},
    {"queries of a head", FIXED_SHAPE(2, ROWS, 3, 4), 1, queries_of_three, ROWS * 15, NULL},
    {"queries of heads", FIXED_SHAPE(2, ROWS, 3, 4), 1, queries_in_time, ROWS * 15, NULL},
    {"queries by heads", FIXED_SHAPE(2, 3, ROWS, 4), 2, queries_of_three, ROWS * 5, NULL},
    {"delta rule in time", FIXED_SHAPE(2, ROWS, 3, 4), 1, delta_rule, ROWS * 12, NULL},
    {"delta rule of heads", FIXED_SHAPE(2, 3, ROWS, 4), 2, delta_rule, ROWS * 4, NULL},
    {"delta rule within", FIXED_SHAPE(2, 3, 2, ROWS), 3, delta_rule, 0, ACROSS},
    {"delta rule, carried", FIXED_SHAPE(2, ROWS, 3, 4), 1, delta_carried, 0, "its final state is"},
    {"delta rule, backward", FIXED_SHAPE(1, ROWS, 2, 4), 1, delta_given, 0,
     "back from the last row"},
    {"scan in time", FIXED_SHAPE(1, ROWS, 6), 1, scanned, ROWS * 6, NULL},
    {"scan of channels", FIXED_SHAPE(1, ROWS, 6), 2, scanned, 0, ACROSS},
    {"scan by rows", FIXED_SHAPE(1, ROWS, 2), 1, scanned_by, ROWS * 6, NULL},
    {"scan, decay of rows", FIXED_SHAPE(ROWS, 2), 0, scanned_decay, 0, "needs whole depends on"},
    {"scan, backward", FIXED_SHAPE(1, ROWS, 6), 1, scan_given, 0, "back from the last row"},
    {"mamba2 in time", FIXED_SHAPE(1, ROWS, 2, 4), 1, mamba2, ROWS * 8, NULL},
    {"mamba2, carried", FIXED_SHAPE(1, ROWS, 2, 4), 1, mamba2_carried, 0, "its final state is"},
    {"rnn in time", FIXED_SHAPE(2, ROWS, 4), 1, one_way, ROWS * 3, NULL},
    {"rnn of sequences", FIXED_SHAPE(ROWS, 3, 4), 0, both_ways, ROWS * 18, NULL},
    {"rnn both ways in time", FIXED_SHAPE(2, ROWS, 4), 1, both_ways, 0, ACROSS},
    {"rnn, carried", FIXED_SHAPE(ROWS, 3, 4), 0, state_carried, 0, "its final states are made of"},
    {"rnn, backward", FIXED_SHAPE(ROWS, 2, 3), 0, rnn_given, ROWS * 6, NULL},
    {"rnn, backward in time", FIXED_SHAPE(2, ROWS, 3), 1, rnn_given, 0, ACROSS},
    {"gru, backward", FIXED_SHAPE(ROWS, 2, 6), 0, gru_given, ROWS * 12, NULL},
    {"rnn, backward to states", FIXED_SHAPE(ROWS, 2, 3), 0, state_given, 0, "gradients of states"},
    {"real spectra", MATRIX, 0, real_spectra, ROWS * 8, NULL},
    {"real spectra of samples", FIXED_SHAPE(2, 6), 1, real_spectra, 0, ACROSS},
    {"log_mel", FIXED_SHAPE(2, ROWS, 8), 1, bands, ROWS * 3, NULL},
    {"log_mel of clips", FIXED_SHAPE(ROWS, 2, 8), 0, bands_of_clips, ROWS * 6, NULL},
    {"log_mel within clips", FIXED_SHAPE(2, ROWS, 8), 1, bands_of_clips, 0, ACROSS},
    {"log_mel_slopes", FIXED_SHAPE(ROWS, 3), 0, slopes, ROWS * 3, NULL},
    {"overlap_add", FIXED_SHAPE(ROWS, 3, 4), 0, overlapped, ROWS * 8, NULL},
    {"overlap_add of frames", FIXED_SHAPE(2, ROWS, 4), 1, overlapped, 0, ACROSS},
    {"upfirdn", MATRIX, 0, resampled, ROWS * 13, NULL},
    {"upfirdn of samples", FIXED_SHAPE(2, ROWS), 1, resampled, 0, ACROSS},
    {"welch", MATRIX, 0, averaged, ROWS * 3, NULL},
    {"welch of samples", FIXED_SHAPE(2, ROWS), 1, averaged, 0, ACROSS},
    {"welch_power", FIXED_SHAPE(ROWS, 32), 0, powers_of_pairs, ROWS * 5, NULL},
    {"welch_power of segments", FIXED_SHAPE(ROWS, 16), 0, powers, 0, "no axis of whole buckets"},
    {"splats", FIXED_SHAPE(ROWS * 3), 0, splats, 0, "each pixel is made of all splats"},
};

static void test_rules(void **state)
{
    schedule_options how = {.profile = &profile};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        bucket_case_expect(&rows[i], &how, rows[i].span, rows[i].why);
}

/* ---- Every family ---- */

/* Rules that always refuse, with their reasons. */
static const struct {
    const op_family *family;
    const char *why;
} refusing[] = {
    {&histogram_family, "it counts over the rows"},
    {&write_rows_family, "its cache would keep rows that are not active"},
    {&grouped_matmul_backward_weight_family, "its gradient of weights adds up over the rows"},
    {&conv_backward_weight_family, "its gradient of weights adds up over the images"},
    {&solve_family, "the flags of singular systems lie behind its solutions"},
    {&dequant_moe_weights_family, "its packed weights depend on the rows"},
    {&rng_family, "its seed depends on the rows"},
    {&attention_backward_family,
     "it adds up over the queries, and its gradients lie behind each other"},
    {&linear_attention_backward_family, "its gradients go back from the last row"},
    {&state_scan_backward_family, "its gradients go back from the last row"},
    {&accumulate_family, "its sum would keep rows that are not active"},
    {&batch_norm_training_family, "its statistics are of all rows"},
    {&custom_family, "it is an op of the caller, who does not say what becomes of rows"},
    {&gradient_family, "it is a gradient that has no ops yet"},
    {&loop_carry_family, "it is part of a loop that is replayed"},
    {&loop_begin_family, "it is part of a loop that is replayed"},
    {&loop_slice_family, "it is part of a loop that is replayed"},
    {&loop_random_family, "it is part of a loop that is replayed"},
    {&loop_update_family, "it is part of a loop that is replayed"},
    {&loop_end_family, "it is part of a loop that is replayed"},
    {&loop_result_family, "it is part of a loop that is replayed"},
    {&gaussian_splat_prepare_family, "each pixel is made of all splats"},
    {&gaussian_splat_rasterize_family, "each pixel is made of all splats"},
    {&gaussian_splat_render_family, "each pixel is made of all splats"},
    {&gaussian_splat_render_backward_family, "each pixel is made of all splats"},
};

static const char *reason_of(const op_family *family)
{
    for (size_t i = 0; i < ARRAY_COUNT(refusing); i++)
        if (refusing[i].family == family)
            return refusing[i].why;
    return NULL;
}

/* Only leaves have no rule, because they have no operands. The families in the list give their
 * reason. */
static void test_every_family_has_a_rule(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        const op_family *family = op_table[op].family;
        const char *why = reason_of(family);
        bucket_call c = {.unit = ROWS};
        if (op_table[op].most_inputs == 0) {
            assert_null(family->rows.bucket);
            continue;
        }
        if (!family->rows.bucket)
            fail_msg("%s (family %s) has no rule for rows of a bucket", op_table[op].name,
                     family->name);
        if (why) {
            assert_true(family->rows.bucket(&c) == BUCKET_NONE);
            assert_string_equal(c.why, why);
        }
    }
}

/* Marks the ops of the rule's nodes, except leaves and nodes that do not depend on the rows. */
static void note_rule(uint32_t rule, bool *seen)
{
    static const bucket_input axes[] = {{0, 0, false}, {1, 0, false}, {2, 0, false}};
    schedule_options how = {.profile = &profile};
    bucket_analysis a = bucket_analysis_begin();
    rlxvk_tensor x = rlxvk_input(a.g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, ROW_GRAPH_WIDTH));
    rlxvk_tensor y = rlxvk_input(a.g, "y", RLXVK_F32, RLXVK_SHAPE(ROWS, ROW_GRAPH_WIDTH));
    rlxvk_tensor i = rlxvk_input(a.g, "i", RLXVK_F32, RLXVK_SHAPE(ROWS));
    rlxvk_graph_output(a.g, row_graph_rule(a.g, rule, x, y, i));
    bucket_analysis_lower(&a, &how, "rule");
    bucket_analysis_find(&a, axes, ARRAY_COUNT(axes), RLXVK_PRECISION_F32);
    if (*a.e.why)
        fail_msg("rule %u: %s", rule, a.e.why);
    for (uint32_t id = 0; id < a.g->nodes.count; id++)
        seen[graph_node(a.g, id)->op] |= a.e.spans[id] != BUCKET_FIXED;
    bucket_analysis_end(&a);
}

/* A rule is trusted only if a graph that runs on a device uses it. */
static void test_every_rule_is_in_row_graphs(void **state)
{
    bool seen[OP_COUNT] = {0};
    (void)state;
    for (uint32_t rule = 0; rule < row_graph_rule_count(); rule++)
        note_rule(rule, seen);
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        const op_family *family = op_table[op].family;
        bool tried = false;
        for (uint32_t other = 0; other < OP_COUNT; other++)
            tried |= seen[other] && op_table[other].family == family;
        if (!tried && op_table[op].most_inputs && !reason_of(family))
            fail_msg("no row graph has %s (family %s)", op_table[op].name, family->name);
        if (tried)
            assert_null(reason_of(family));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_every_family_has_a_rule),
        cmocka_unit_test(test_every_rule_is_in_row_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
