/* Rules of ops that gather or scatter by indices, and of image ops; see row_rules.h. */
#include "support/row_graph.h"
#include "support/row_rules.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_ops_neighbours.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_train.h>

#define W ROW_GRAPH_WIDTH

/* Indices below W, which depend on the rows or not. */
static rlxvk_tensor places(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_mul(g, rlxvk_abs(g, rlxvk_tanh(g, x)), rlxvk_scalar(g, W - 1));
}
static rlxvk_tensor fixed_places(rlxvk_graph *g, rlxvk_shape shape)
{
    return rlxvk_abs(g, row_numbers(g, W - 1, shape));
}

/* ---- Gather and scatter ---- */

ROW_RULE(gathered_columns)
{
    ROW_UNUSED(y, i);
    rlxvk_tensor places = fixed_places(g, RLXVK_SHAPE(4, 8));
    return row_back(g, rlxvk_gather(g, x, places, 1));
}
ROW_RULE(kept_rows)
{
    ROW_UNUSED(y, i);
    return rlxvk_keep_first(g, x, rlxvk_scalar(g, 17), 0, 0.5f);
}
ROW_RULE(kept_columns)
{
    ROW_UNUSED(y, i);
    return rlxvk_keep_first(g, x, rlxvk_scalar(g, 9), 1, -1);
}
/* Packed along an axis before the axis of the rows. */
ROW_RULE(packed_matrices)
{
    ROW_UNUSED(i);
    rlxvk_shape one = RLXVK_SHAPE(1, row_count(g, x), W);
    rlxvk_tensor parts[] = {rlxvk_reshape(g, x, one), rlxvk_reshape(g, y, one)};
    rlxvk_tensor both = rlxvk_concat(g, parts, 2, 0);
    both = rlxvk_pack_first(g, both, rlxvk_scalar(g, 1), 0);
    both = rlxvk_unpack_first(g, rlxvk_neg(g, both), rlxvk_scalar(g, 2), 0);
    return row_back(g, rlxvk_narrow(g, both, 0, 0, 1));
}
ROW_RULE(gathered_nd)
{
    ROW_UNUSED(y);
    rlxvk_tensor rows = rlxvk_reshape(g, i, RLXVK_SHAPE(-1, 1));
    return rlxvk_add(g, x, rlxvk_gather_nd(g, ROW_PARAM(50, W), rows));
}
ROW_RULE(gathered_nd_columns)
{
    ROW_UNUSED(y, i);
    rlxvk_tensor places = fixed_places(g, RLXVK_SHAPE(W, 1));
    return row_turned(g, rlxvk_gather_nd(g, row_turned(g, x), places));
}
ROW_RULE(one_hot)
{
    ROW_UNUSED(y);
    return rlxvk_mul(g, x, rlxvk_one_hot(g, i, W, -1, 1, 0.5f));
}
ROW_RULE(one_hot_before)
{
    ROW_UNUSED(y);
    return rlxvk_sub(g, x, row_turned(g, rlxvk_one_hot(g, i, W, 0, 1, 0)));
}
static rlxvk_tensor scattered(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor y,
                              rlxvk_scatter_mode mode)
{
    rlxvk_tensor updates = row_columns(g, y, 4, 8);
    return rlxvk_scatter(g, x, places(g, row_columns(g, y, 12, 8)), updates, 1, mode);
}
ROW_RULE(scatter_assign)
{
    ROW_UNUSED(i);
    return scattered(g, x, y, RLXVK_SCATTER_ASSIGN);
}
ROW_RULE(scatter_added)
{
    ROW_UNUSED(i);
    return scattered(g, x, y, RLXVK_SCATTER_ADD);
}
ROW_RULE(scatter_largest)
{
    ROW_UNUSED(i);
    return scattered(g, x, y, RLXVK_SCATTER_MAX);
}
ROW_RULE(scatter_columns)
{
    ROW_UNUSED(i);
    rlxvk_tensor updates = row_turned(g, row_columns(g, y, 0, 5));
    rlxvk_tensor places =
        rlxvk_expand(g, fixed_places(g, RLXVK_SHAPE(5, 1)), RLXVK_SHAPE(5, row_count(g, x)));
    return row_turned(g, rlxvk_scatter(g, row_turned(g, x), places, updates, 0, RLXVK_SCATTER_MUL));
}
ROW_RULE(scatter_nd_columns)
{
    ROW_UNUSED(i);
    rlxvk_tensor updates = row_turned(g, row_columns(g, y, 0, 6));
    return row_turned(g, rlxvk_scatter_nd(g, row_turned(g, x), fixed_places(g, RLXVK_SHAPE(6, 1)),
                                          updates, RLXVK_SCATTER_ADD));
}
ROW_RULE(scatter_add_columns)
{
    ROW_UNUSED(y, i);
    return row_turned(g,
                      rlxvk_scatter_add(g, row_turned(g, x), fixed_places(g, RLXVK_SHAPE(W)), W));
}
ROW_RULE(gather_backward)
{
    ROW_UNUSED(y, i);
    return rlxvk_gather_backward(g, x, fixed_places(g, RLXVK_SHAPE(W)), 1, W);
}
ROW_RULE(gather_backward_behind)
{
    ROW_UNUSED(y, i);
    return row_turned(g, rlxvk_gather_backward(g, row_turned(g, x), fixed_places(g, RLXVK_SHAPE(W)),
                                               0, W));
}
ROW_RULE(take_backward)
{
    ROW_UNUSED(i);
    return rlxvk_take_along_axis_backward(g, x, places(g, y), 1, W);
}

/* ---- Choices ---- */

ROW_RULE(gate)
{
    ROW_UNUSED(i);
    return row_filled(g, rlxvk_group_limited_gate(g, rlxvk_sigmoid(g, x), y, NULL), x);
}
ROW_RULE(near_rows)
{
    ROW_UNUSED(i);
    int64_t rows = row_count(g, x);
    rlxvk_tensor distances = rlxvk_abs(g, rlxvk_matmul(g, x, ROW_PARAM(W, rows)));
    return rows < 3 ? x : row_filled(g, rlxvk_umap_knn(g, distances, 2), y);
}
ROW_RULE(near_points)
{
    rlxvk_tensor which, found = rlxvk_knn(g, x, ROW_PARAM(20, W), 4, RLXVK_METRIC_L2, &which);
    ROW_UNUSED(i);
    return row_filled(g, rlxvk_add(g, found, rlxvk_cast(g, which, RLXVK_F32)), y);
}
ROW_RULE(sampled)
{
    rlxvk_sample_options o = {.temperature = 1, .top_k = 9, .top_p = 0.9f};
    ROW_UNUSED(i);
    return row_filled(g, rlxvk_reshape(g, rlxvk_sample(g, x, &o), RLXVK_SHAPE(-1, 1)), y);
}

/* ---- Images ---- */

ROW_RULE(conv_gradient)
{
    rlxvk_conv_options o = {.padding = {1, 1}};
    ROW_UNUSED(y, i);
    return row_back(g, rlxvk_conv_backward_input(g, ROW_PARAM(2, 2, 3, 3), row_image(g, x),
                                                 (const int64_t[]){4, 4}, &o));
}
ROW_RULE(windows)
{
    rlxvk_conv_options o = {.kernel = {2, 2}, .stride = {2, 2}};
    ROW_UNUSED(y, i);
    rlxvk_tensor columns = rlxvk_silu(g, rlxvk_im2col(g, row_image(g, x), &o));
    return row_back(g, rlxvk_col2im(g, columns, 4, 4, &o));
}
static const rlxvk_pool_options overlapping = {.kernel = {2, 2}, .stride = {1, 1}};
ROW_RULE(pool_gradient)
{
    ROW_UNUSED(i);
    rlxvk_tensor dy = rlxvk_pool_mean(g, row_image(g, y), &overlapping);
    return row_back(g, rlxvk_pool_max_backward(g, row_image(g, x), dy, &overlapping));
}
ROW_RULE(pool_taken)
{
    ROW_UNUSED(i);
    rlxvk_tensor taken = rlxvk_pool_max_take(g, row_image(g, x), row_image(g, y), &overlapping);
    return row_filled(g, rlxvk_reshape(g, taken, RLXVK_SHAPE(-1, 18)), x);
}
ROW_RULE(pool_places)
{
    ROW_UNUSED(i);
    rlxvk_tensor at = rlxvk_pool_max_indices(g, row_image(g, x), &overlapping);
    at = rlxvk_reshape(g, rlxvk_cast(g, at, RLXVK_F32), RLXVK_SHAPE(-1, 18));
    return row_filled(g, at, y);
}
static rlxvk_tensor points_of(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4, 4, 2));
}
ROW_RULE(grid_of_images)
{
    rlxvk_grid_options o = {.padding = RLXVK_GRID_BORDER};
    ROW_UNUSED(i);
    return row_back(g, rlxvk_grid_sample(g, row_image(g, x), points_of(g, y), &o));
}
ROW_RULE(grid_of_points)
{
    rlxvk_grid_options o = {.mode = RLXVK_GRID_BICUBIC};
    ROW_UNUSED(y, i);
    rlxvk_tensor points =
        rlxvk_reshape(g, row_columns(g, x, 0, 2), RLXVK_SHAPE(1, row_count(g, x), 1, 2));
    rlxvk_tensor read = rlxvk_grid_sample(g, ROW_PARAM(1, W, 5, 3), points, &o);
    return row_turned(g, rlxvk_reshape(g, read, RLXVK_SHAPE(W, -1)));
}
ROW_RULE(grid_of_channels)
{
    rlxvk_grid_options o = {.align_corners = true};
    ROW_UNUSED(y, i);
    rlxvk_tensor channels = rlxvk_reshape(g, x, RLXVK_SHAPE(1, row_count(g, x), 4, 8));
    return row_back(g, rlxvk_grid_sample(g, channels, ROW_PARAM(1, 4, 8, 2), &o));
}
ROW_RULE(grid_gradient)
{
    rlxvk_grid_options o = {.padding = RLXVK_GRID_REFLECTION};
    ROW_UNUSED(i);
    return row_back(g, rlxvk_grid_sample_backward_input(g, row_image(g, x), points_of(g, y),
                                                        (const int64_t[]){4, 4}, &o));
}
ROW_RULE(grid_gradient_of_channels)
{
    ROW_UNUSED(y, i);
    rlxvk_tensor channels = rlxvk_reshape(g, x, RLXVK_SHAPE(1, row_count(g, x), 4, 8));
    return row_back(g, rlxvk_grid_sample_backward_input(g, channels, ROW_PARAM(1, 4, 8, 2),
                                                        (const int64_t[]){4, 8}, NULL));
}
ROW_RULE(grid_gradient_of_points)
{
    ROW_UNUSED(i);
    return row_back(g, rlxvk_grid_sample_backward_grid(g, row_image(g, x), points_of(g, y),
                                                       row_image(g, rlxvk_add(g, x, y)), NULL));
}
ROW_RULE(point_gradients)
{
    int64_t rows = row_count(g, x);
    ROW_UNUSED(i);
    rlxvk_tensor points = rlxvk_reshape(g, row_columns(g, y, 0, 2), RLXVK_SHAPE(1, rows, 1, 2));
    rlxvk_tensor dy = rlxvk_reshape(g, row_turned(g, x), RLXVK_SHAPE(1, W, rows, 1));
    rlxvk_tensor d = rlxvk_grid_sample_backward_grid(g, ROW_PARAM(1, W, 5, 3), points, dy, NULL);
    return row_filled(g, rlxvk_reshape(g, d, RLXVK_SHAPE(-1, 2)), y);
}
static const rlxvk_deform_options moving = {.kernel = {1, 1}};
static rlxvk_tensor moved_by(rlxvk_graph *g, rlxvk_tensor y)
{
    return rlxvk_reshape(g, y, RLXVK_SHAPE(-1, 2, 4, 4));
}
ROW_RULE(deformed)
{
    ROW_UNUSED(i);
    return row_back(g,
                    rlxvk_deform_im2col(g, row_image(g, x), moved_by(g, y), RLXVK_NONE, &moving));
}
ROW_RULE(deformed_gradient)
{
    ROW_UNUSED(i);
    rlxvk_tensor dy = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 16));
    return row_back(g, rlxvk_deform_im2col_backward_input(g, dy, moved_by(g, y),
                                                          (const int64_t[]){4, 4}, &moving));
}
ROW_RULE(deformed_offsets)
{
    ROW_UNUSED(i);
    rlxvk_tensor dy = rlxvk_reshape(g, rlxvk_add(g, x, y), RLXVK_SHAPE(-1, 2, 16));
    return row_back(g, rlxvk_deform_im2col_backward_offset(g, row_image(g, x), moved_by(g, y), dy,
                                                           &moving));
}
ROW_RULE(regions_of_rows)
{
    rlxvk_roi_options o = {.size = {2, 2}};
    int64_t rows = row_count(g, x);
    ROW_UNUSED(i);
    rlxvk_tensor images = rlxvk_reshape(g, row_columns(g, y, 0, 1), RLXVK_SHAPE(rows));
    rlxvk_tensor read =
        rlxvk_roi_align(g, ROW_PARAM(2, W / 4, 5, 3), row_columns(g, x, 0, 4), images, &o);
    return row_filled(g, rlxvk_reshape(g, read, RLXVK_SHAPE(-1, W)), y);
}
ROW_RULE(regions_of_channels)
{
    rlxvk_roi_options o = {.size = {4, 8}, .mode = RLXVK_ROI_MAX};
    ROW_UNUSED(y, i);
    rlxvk_tensor channels = rlxvk_reshape(g, x, RLXVK_SHAPE(1, row_count(g, x), 4, 8));
    return row_back(g, rlxvk_roi_align(g, channels, ROW_PARAM(1, 4), ROW_PARAM(1), &o));
}
ROW_RULE(regions_gradient)
{
    rlxvk_roi_options o = {.size = {4, 8}};
    ROW_UNUSED(y, i);
    rlxvk_tensor channels = rlxvk_reshape(g, x, RLXVK_SHAPE(1, row_count(g, x), 4, 8));
    return row_back(g, rlxvk_roi_align_backward_input(g, channels, ROW_PARAM(1, 4), ROW_PARAM(1),
                                                      RLXVK_NONE, (const int64_t[]){1, 4, 8}, &o));
}

row_rules row_rules_of_indices(void)
{
    static const row_rule items[] = {gathered_columns,
                                     kept_rows,
                                     kept_columns,
                                     packed_matrices,
                                     gathered_nd,
                                     gathered_nd_columns,
                                     one_hot,
                                     one_hot_before,
                                     scatter_assign,
                                     scatter_added,
                                     scatter_largest,
                                     scatter_columns,
                                     scatter_nd_columns,
                                     scatter_add_columns,
                                     gather_backward,
                                     gather_backward_behind,
                                     take_backward,
                                     gate,
                                     near_rows,
                                     near_points,
                                     sampled,
                                     conv_gradient,
                                     windows,
                                     pool_gradient,
                                     pool_taken,
                                     pool_places,
                                     grid_of_images,
                                     grid_of_points,
                                     grid_of_channels,
                                     grid_gradient,
                                     grid_gradient_of_channels,
                                     grid_gradient_of_points,
                                     point_gradients,
                                     regions_of_rows,
                                     regions_of_channels,
                                     regions_gradient,
                                     deformed,
                                     deformed_gradient,
                                     deformed_offsets};
    return (row_rules){items, sizeof items / sizeof *items};
}
