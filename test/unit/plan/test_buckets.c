/*
 * Rows of a bucket in the common ops, without a device. If a rule applies, it must give the right
 * span. If not, it must give the right node and reason. Also tests how many workgroups a part of
 * the rows needs.
 */
#include "op/bucket.h"
#include "plan/extent.h"
#include "support/bucket_case.h"
#include "support/profiles.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_domain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

#define param bucket_case_param

OF_X(unary, rlxvk_silu(g, x))
OF_X(cast, rlxvk_cast(g, x, RLXVK_F16))
OF_X(with_itself, rlxvk_add(g, x, rlxvk_silu(g, x)))
OF_X(with_suffix, rlxvk_add(g, x, W(6)))
OF_X(with_scalar, rlxvk_mul(g, x, W(1)))
OF_X(with_table, rlxvk_add(g, x, W(ROWS, 6)))
OF_X(with_column, rlxvk_where(g, rlxvk_gt(g, x, W(6)), x, rlxvk_reduce_sum(g, x, AXES(1), true)))
OF_X(with_transposed, rlxvk_add(g, x, rlxvk_transpose(g, x, AXES(1, 0))))
OF_X(repeated_row, rlxvk_add(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, ROWS)), W(5, ROWS)))
OF_X(multiplied, rlxvk_matmul(g, x, W(6, 5)))
OF_X(multiplied_transposed,
     rlxvk_matmul_with(g, x, W(6, 5), &(rlxvk_matmul_options){.transpose_a = true}))
OF_X(multiplied_batch, rlxvk_matmul(g, x, W(4, 3)))
OF_X(multiplied_fused, rlxvk_fused_matmul_bias_act(g, x, W(6, 5), param(g, "b", RLXVK_SHAPE(5)),
                                                   RLXVK_ACTIVATION_NONE, false))
/* Merges batch and rows into one axis. */
static rlxvk_tensor merged_batch(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor y = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 6));
    y = rlxvk_matmul(g, rlxvk_layer_norm(g, y, W(6), RLXVK_NONE, -1, 1e-5f), W(6, 5));
    y = rlxvk_transpose(g, rlxvk_transpose(g, rlxvk_softmax(g, y, 1), AXES(1, 0)), AXES(1, 0));
    y = rlxvk_gather(g, W(9, 4), rlxvk_argmax(g, y, 1, false), 0);
    return rlxvk_reshape(g, y, RLXVK_SHAPE(3, ROWS, 4));
}
OF_X(merged_sum, rlxvk_reduce_sum(g, rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 6)), AXES(0), false))
OF_X(merged_pairs, rlxvk_softmax(g, rlxvk_reshape(g, x, RLXVK_SHAPE(3 * ROWS / 2, 2, 6)), 1))
OF_X(across_k, rlxvk_matmul(g, x, W(ROWS, 5)))
OF_X(as_weight, rlxvk_matmul(g, W(3, ROWS), x))
OF_X(with_own_transposed, rlxvk_matmul(g, x, rlxvk_transpose(g, x, AXES(1, 0))))
OF_X(soft, rlxvk_softmax(g, x, 1))
OF_X(soft_across, rlxvk_softmax(g, x, 0))
OF_X(normed, rlxvk_layer_norm(g, x, W(6), RLXVK_NONE, -1, 1e-5f))
OF_X(normed_across, rlxvk_rms_norm(g, x, RLXVK_NONE, RLXVK_NONE, 0, 1e-5f))
OF_X(normed_residual,
     rlxvk_fused_residual_rms_norm(g, x, rlxvk_silu(g, x), RLXVK_NONE, W(6), RLXVK_NONE, 1e-5f))
OF_X(normed_by_rows,
     rlxvk_layer_norm(g, W(3, 6), rlxvk_reduce_sum(g, x, AXES(0), false), RLXVK_NONE, -1, 1e-5f))
OF_X(group_normed, rlxvk_group_norm(g, x, RLXVK_NONE, RLXVK_NONE, 2, 1e-5f))
OF_X(summed, rlxvk_reduce_sum(g, x, AXES(1), false))
OF_X(summed_kept, rlxvk_reduce_mean(g, x, AXES(1), true))
OF_X(summed_before, rlxvk_reduce_max(g, x, AXES(0), false))
OF_X(summed_all, rlxvk_reduce_sum(g, x, AXES(0, 1), false))
OF_X(largest, rlxvk_argmax(g, x, 1, false))
OF_X(largest_across, rlxvk_argmin(g, x, 0, false))
OF_X(top, rlxvk_topk(g, x, 2))
OF_X(running, rlxvk_cumsum(g, x, 0, false))
OF_X(running_exclusive, rlxvk_cumsum(g, x, 0, true))
OF_X(running_within, rlxvk_cumsum(g, x, 1, true))
OF_X(split_heads, rlxvk_reshape(g, x, RLXVK_SHAPE(ROWS, 2, 3)))
OF_X(merged, rlxvk_reshape(g, x, RLXVK_SHAPE(ROWS * 6)))
OF_X(merged_soft, rlxvk_softmax(g, rlxvk_reshape(g, x, RLXVK_SHAPE(ROWS * 2, 3)), 1))
OF_X(halved_soft, rlxvk_softmax(g, rlxvk_reshape(g, x, RLXVK_SHAPE(ROWS / 2, 12)), 1))
OF_X(halved_back,
     rlxvk_softmax(g,
                   rlxvk_reshape(g, rlxvk_silu(g, rlxvk_reshape(g, x, RLXVK_SHAPE(4, 12))),
                                 RLXVK_SHAPE(ROWS, 6)),
                   1))
OF_X(turned_rows, rlxvk_reshape(g, x, RLXVK_SHAPE(6, ROWS)))
OF_X(turned_and_back, rlxvk_reshape(g, rlxvk_silu(g, turned_rows(g, x)), RLXVK_SHAPE(ROWS, 6)))
OF_X(joined_batches, rlxvk_reshape(g, x, RLXVK_SHAPE(2 * ROWS, 3)))
OF_X(joined_columns, rlxvk_reshape(g, x, RLXVK_SHAPE(2, ROWS * 3)))
OF_X(halved, rlxvk_reshape(g, x, RLXVK_SHAPE(ROWS / 2, 12)))
OF_X(transposed, rlxvk_transpose(g, x, AXES(1, 0)))
OF_X(transposed_after, rlxvk_transpose(g, x, AXES(0, 2, 1)))
OF_X(expanded, rlxvk_expand(g, x, RLXVK_SHAPE(3, ROWS, 6)))
OF_X(expanded_rows,
     rlxvk_expand(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, ROWS, 6)), RLXVK_SHAPE(2, ROWS, 6)))
OF_X(narrowed, rlxvk_narrow(g, x, 1, 2, 3))
OF_X(narrowed_parts,
     rlxvk_narrow(g, rlxvk_reshape(g, x, RLXVK_SHAPE(3 * ROWS * 6)), 0, ROWS * 6, ROWS * 6))
OF_X(narrowed_rows, rlxvk_narrow(g, x, 0, 0, 4))
OF_X(joined, rlxvk_concat(g, PAIR(x, W(ROWS, 3)), 1))
OF_X(joined_rows, rlxvk_concat(g, PAIR(x, W(1, 6)), 0))
static rlxvk_tensor batch(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor y, rlxvk_shape whole)
{
    rlxvk_region_step relu = {.op = RLXVK_ACTIVATION_RELU - 1};
    rlxvk_region r = {.shape = whole, .steps = &relu, .step_count = 1};
    return rlxvk_batch_elementwise_region(g, PAIR(x, y), &r);
}
OF_X(batched_rows, batch(g, x, W(ROWS, 6), RLXVK_SHAPE(2 * ROWS, 6)))
OF_X(batched,
     batch(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, ROWS, 6)), W(1, ROWS, 6), RLXVK_SHAPE(2, ROWS, 6)))
OF_X(reversed, rlxvk_reverse(g, x, AXES(1)))
OF_X(reversed_rows, rlxvk_reverse(g, x, AXES(0)))
OF_X(gathered, rlxvk_gather(g, W(10, 5), x, 0))
OF_X(gathered_columns, rlxvk_gather(g, W(2, 10, 5), x, 1))
OF_X(gathered_from, rlxvk_gather(g, x, W(3), 0))
OF_X(taken, rlxvk_take_along_axis(g, x, W(ROWS, 2), 1))
OF_X(taken_across, rlxvk_take_along_axis(g, x, W(2, 6), 0))
OF_X(by_experts, rlxvk_grouped_matmul(g, x, W(2, 6, 5), W(ROWS), false))
OF_X(to_experts, rlxvk_grouped_matmul(g, W(ROWS, 6), W(2, 6, 5), x, false))
OF_X(as_experts, rlxvk_grouped_matmul(g, W(3, 6), x, W(3), false))
OF_X(added_up, rlxvk_scatter_add(g, x, W(ROWS), 4))
OF_X(waited, rlxvk_after(g, x, W(2)))
OF_X(waited_for, rlxvk_after(g, W(2), x))
OF_X(swiglu, rlxvk_fused_swiglu(g, x, true))
OF_X(turned, rlxvk_rope(g, x, W(ROWS, 3), param(g, "s", RLXVK_SHAPE(ROWS, 3)),
                        &(rlxvk_rope_options){.head_dim = 6, .n_rot = 6}))
OF_X(pooled, rlxvk_pool_max(g, x, &(rlxvk_pool_options){.kernel = {2, 2}, .stride = {1, 1}}))
OF_X(sampled, rlxvk_sample(g, x, NULL))
OF_X(drawn, rlxvk_rng_uniform_like(g, x, 0, 1, NULL))

static rlxvk_tensor attend(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                           rlxvk_attention_mask mask, rlxvk_tensor given)
{
    rlxvk_attention_options o = {.num_heads = 2,
                                 .num_kv_heads = 2,
                                 .mask = mask,
                                 .window = 3,
                                 .layout = RLXVK_LAYOUT_PACKED};
    return rlxvk_attention(g, q, k, k, given, &o);
}
OF_X(causal, attend(g, x, rlxvk_silu(g, x), RLXVK_MASK_CAUSAL, RLXVK_NONE))
OF_X(sliding, attend(g, x, x, RLXVK_MASK_SLIDING, RLXVK_NONE))
OF_X(unmasked, attend(g, x, x, RLXVK_MASK_NONE, RLXVK_NONE))
OF_X(masked, attend(g, x, x, RLXVK_MASK_CUSTOM, W(ROWS)))
OF_X(masked_queries,
     attend(g, x, W(5, 6), RLXVK_MASK_BIAS,
            rlxvk_reshape(g, rlxvk_narrow(g, x, 1, 0, 5), RLXVK_SHAPE(1, 1, ROWS, 5))))
OF_X(masked_keys, attend(g, x, W(ROWS, 6), RLXVK_MASK_BIAS,
                         rlxvk_reshape(g, rlxvk_narrow(g, x, 1, 0, 1), RLXVK_SHAPE(ROWS))))
OF_X(masked_batches,
     attend(g, x, x, RLXVK_MASK_CUSTOM,
            rlxvk_reshape(g, rlxvk_narrow(g, x, 2, 0, 3), RLXVK_SHAPE(ROWS, 1, 3, 3))))
OF_X(masked_alone, attend(g, W(ROWS, 6), W(5, 6), RLXVK_MASK_BIAS, x))
static rlxvk_tensor with_lse(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_attention_options o = {.num_heads = 2, .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor lse;
    return rlxvk_attention_with_lse(g, x, W(5, 6), W(5, 6), RLXVK_NONE, &o, &lse);
}
OF_X(to_fixed, attend(g, x, W(5, 6), RLXVK_MASK_NONE, RLXVK_NONE))
OF_X(fixed_to_rows, attend(g, W(5, 6), x, RLXVK_MASK_CAUSAL, RLXVK_NONE))
OF_X(more_keys, attend(g, x, W(2 * ROWS, 6), RLXVK_MASK_CAUSAL, RLXVK_NONE))
OF_X(batches, attend(g, x, x, RLXVK_MASK_NONE, RLXVK_NONE))

/* x is [rows, 6] or [batch, rows, 6]. `position` and the appended keys may depend on its rows. */
static rlxvk_tensor step_over(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor keys,
                              rlxvk_tensor position)
{
    rlxvk_attention_step_options o = {.heads = 2, .kv_heads = 2, .head_dim = 3};
    return rlxvk_attention_step(g, q, k, k, keys, param(g, "values", rlxvk_tensor_shape(g, keys)),
                                position, RLXVK_NONE, RLXVK_NONE, &o);
}
#define KEYS(batch) param(g, "keys", RLXVK_SHAPE(batch, 2, 20, 3))
#define PLACE(...)  param(g, "place", RLXVK_SHAPE(__VA_ARGS__))
OF_X(stepped, step_over(g, x, x, KEYS(1), PLACE(1)))
static rlxvk_tensor stepped_wide(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_attention_step_options o = {.heads = 2, .kv_heads = 2, .head_dim = 16};
    rlxvk_tensor keys = param(g, "keys", RLXVK_SHAPE(2, 20, 16));
    rlxvk_tensor values = param(g, "values", RLXVK_SHAPE(2, 20, 16));
    return rlxvk_attention_step(g, x, x, x, keys, values, PLACE(1), RLXVK_NONE, RLXVK_NONE, &o);
}
OF_X(stepped_pair, step_over(g, x, x, KEYS(2), PLACE(2)))
OF_X(stepped_entries, step_over(g, x, x, KEYS(5), PLACE(1, 2)))
OF_X(stepped_queries, step_over(g, x, W(1, ROWS, 6), KEYS(1), PLACE(1)))
OF_X(stepped_keys, step_over(g, W(1, ROWS, 6), x, KEYS(1), PLACE(1)))
OF_X(stepped_batches, step_over(g, x, x, KEYS(ROWS), PLACE(ROWS)))
OF_X(stepped_places, step_over(g, W(ROWS, 1, 6), W(ROWS, 1, 6), KEYS(ROWS), x))
static rlxvk_tensor stepped_and_seen(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor keys = KEYS(1), y = step_over(g, x, x, keys, PLACE(1));
    return rlxvk_add(g, y, rlxvk_reduce_sum(g, keys, AXES(0, 1, 2, 3), false));
}

#define MATRIX FIXED_SHAPE(ROWS, 6)
static const bucket_case rows[] = {
    {"unary", MATRIX, 0, unary, ROWS * 6, NULL},
    {"unary, another axis", MATRIX, 1, unary, 6, NULL},
    {"cast", MATRIX, 0, cast, ROWS * 6, NULL},
    {"x + f(x)", MATRIX, 0, with_itself, ROWS * 6, NULL},
    {"x + suffix", MATRIX, 0, with_suffix, ROWS * 6, NULL},
    {"x + scalar", MATRIX, 0, with_scalar, ROWS * 6, NULL},
    {"x + table", MATRIX, 0, with_table, ROWS * 6, NULL},
    {"column of the rows", MATRIX, 0, with_column, ROWS * 6, NULL},
    {"rows along two axes", FIXED_SHAPE(ROWS, ROWS), 0, with_transposed, 0, "different axes"},
    {"repeated, rows and all", FIXED_SHAPE(ROWS), 0, repeated_row, ROWS, NULL},
    {"a w", MATRIX, 0, multiplied, ROWS * 5, NULL},
    {"a' w", FIXED_SHAPE(6, ROWS), 1, multiplied_transposed, ROWS * 5, NULL},
    {"a' w, batch", FIXED_SHAPE(3, 6, ROWS), 2, multiplied_transposed, ROWS * 5, NULL},
    {"a w, rows of batches", FIXED_SHAPE(2, ROWS, 4), 1, multiplied_batch, ROWS * 3, NULL},
    {"a w, batches", FIXED_SHAPE(ROWS, 2, 4), 0, multiplied_batch, ROWS * 6, NULL},
    {"a w + b", MATRIX, 0, multiplied_fused, ROWS * 5, NULL},
    {"merged", FIXED_SHAPE(3, ROWS, 6), 1, merged_batch, ROWS * 4, NULL},
    {"merged, along rows", FIXED_SHAPE(3, ROWS, 6), 1, merged_sum, 0, "it computes across"},
    {"merged, in pairs", FIXED_SHAPE(3, ROWS, 6), 1, merged_pairs, 0, "do not lie along one axis"},
    {"a w along K", FIXED_SHAPE(3, ROWS), 1, across_k, 0, "matmul (node 2): it computes across"},
    {"w a", MATRIX, 0, as_weight, 0, "matmul (node 2): an operand that each row needs whole"},
    {"a a'", MATRIX, 0, with_own_transposed, 0, "needs whole"},
    {"softmax", MATRIX, 0, soft, ROWS * 6, NULL},
    {"softmax across", MATRIX, 0, soft_across, 0, "softmax (node 1): it computes across the rows"},
    {"norm", MATRIX, 0, normed, ROWS * 6, NULL},
    {"norm across", MATRIX, 0, normed_across, 0, "across the rows"},
    {"residual norm", MATRIX, 0, normed_residual, ROWS * 6, NULL},
    {"norm by rows", MATRIX, 0, normed_by_rows, 0, "): it computes across the rows"},
    {"norm by columns", MATRIX, 1, normed, 0, "across the rows"},
    {"group norm", FIXED_SHAPE(ROWS, 4, 3), 0, group_normed, ROWS * 12, NULL},
    {"group norm of rows", FIXED_SHAPE(2, 4, ROWS), 2, group_normed, 0, "across the rows"},
    {"sum", MATRIX, 0, summed, ROWS, NULL},
    {"sum, kept", MATRIX, 0, summed_kept, ROWS, NULL},
    {"max before the rows", FIXED_SHAPE(6, ROWS), 1, summed_before, ROWS, NULL},
    {"max of rows", MATRIX, 0, summed_before, 0, "reduce_max (node 1): it computes across"},
    {"sum of all", MATRIX, 0, summed_all, 0, "across the rows"},
    {"argmax", MATRIX, 0, largest, ROWS, NULL},
    {"argmin before the rows", FIXED_SHAPE(6, ROWS), 1, largest_across, ROWS, NULL},
    {"argmin of rows", MATRIX, 0, largest_across, 0, "across the rows"},
    {"topk", MATRIX, 0, top, ROWS * 2, NULL},
    {"topk of rows", MATRIX, 1, top, 0, "across the rows"},
    {"cumsum of rows", MATRIX, 0, running, ROWS * 6, NULL},
    {"exclusive cumsum of rows", MATRIX, 0, running_exclusive, 0, "across the rows"},
    {"cumsum within", MATRIX, 0, running_within, ROWS * 6, NULL},
    {"reshape", MATRIX, 0, split_heads, ROWS * 6, NULL},
    {"reshape to one axis", MATRIX, 0, merged, ROWS * 6, NULL},
    {"several rows a row", MATRIX, 0, merged_soft, ROWS * 6, NULL},
    {"rows of two rows", MATRIX, 0, halved_soft, 0, "do not lie along one axis"},
    {"rows of two rows and back", MATRIX, 0, halved_back, ROWS * 6, NULL},
    {"transpose", MATRIX, 0, transposed, ROWS, NULL},
    {"transpose, rows first", FIXED_SHAPE(ROWS, 2, 3), 0, transposed_after, ROWS * 6, NULL},
    {"expand", MATRIX, 0, expanded, ROWS * 6, NULL},
    {"expand before", MATRIX, 0, expanded_rows, ROWS * 6, NULL},
    {"narrow", MATRIX, 0, narrowed, ROWS * 3, NULL},
    {"narrow of parts", FIXED_SHAPE(3, ROWS, 6), 1, narrowed_parts, ROWS * 6, NULL},
    {"narrow rows", MATRIX, 0, narrowed_rows, 0, "narrow (node 1): it computes across the rows"},
    {"concat", MATRIX, 0, joined, ROWS * 9, NULL},
    {"concat rows", MATRIX, 0, joined_rows, 0, "concat (node 2): it computes across the rows"},
    {"batch region", MATRIX, 0, batched, ROWS * 6, NULL},
    {"batch region of rows", MATRIX, 0, batched_rows, 0,
     "batch_elementwise_region (node 2): it computes across the rows"},
    {"reverse", MATRIX, 0, reversed, ROWS * 6, NULL},
    {"reverse rows", MATRIX, 0, reversed_rows, 0, "across the rows"},
    {"gather by rows", FIXED_SHAPE(ROWS), 0, gathered, ROWS * 5, NULL},
    {"gather by columns", FIXED_SHAPE(3, ROWS), 1, gathered_columns, ROWS * 5, NULL},
    {"gather of columns", MATRIX, 1, gathered_from, 6, NULL},
    {"gather from rows", MATRIX, 0, gathered_from, 0, "gather (node 2): it takes rows"},
    {"take_along_axis", MATRIX, 0, taken, ROWS * 2, NULL},
    {"take_along_axis of rows", MATRIX, 0, taken_across, 0, "across the rows"},
    {"experts", MATRIX, 0, by_experts, ROWS * 5, NULL},
    {"experts of rows", FIXED_SHAPE(ROWS), 0, to_experts, ROWS * 5, NULL},
    {"experts from rows", FIXED_SHAPE(ROWS, 6, 5), 0, as_experts, 0, "an expert depends"},
    {"experts of columns", MATRIX, 1, by_experts, 0, "its rows are not those"},
    {"scatter_add", MATRIX, 0, added_up, 0, "it adds up over the rows of its updates"},
    {"after", MATRIX, 0, waited, ROWS * 6, NULL},
    {"after the rows", MATRIX, 0, waited_for, BUCKET_FIXED, NULL},
    {"swiglu", MATRIX, 0, swiglu, ROWS * 3, NULL},
    {"swiglu across", MATRIX, 1, swiglu, 0, "across the rows"},
    {"rope", MATRIX, 0, turned, ROWS * 6, NULL},
    {"rope across", FIXED_SHAPE(ROWS, 6), 1, turned, 0, "rope (node 3)"},
    {"pool", FIXED_SHAPE(ROWS, 3, 4, 4), 0, pooled, ROWS * 27, NULL},
    {"pool of rows", FIXED_SHAPE(2, 3, ROWS, 4), 2, pooled, 0, "across the rows"},
    {"sample", MATRIX, 0, sampled, ROWS, NULL},
    {"random numbers", MATRIX, 0, drawn, BUCKET_FIXED, NULL},
    {"causal attention", MATRIX, 0, causal, ROWS * 6, NULL},
    {"sliding attention", FIXED_SHAPE(2, ROWS, 6), 1, sliding, ROWS * 6, NULL},
    {"rows spread by a reshape", MATRIX, 0, turned_rows, 0, "an output, and its rows do not lie"},
    {"spread and back", MATRIX, 0, turned_and_back, ROWS * 6, NULL},
    {"batches joined", FIXED_SHAPE(2, ROWS, 3), 1, joined_batches, 0, "do not lie along one axis"},
    {"columns joined", FIXED_SHAPE(2, ROWS, 3), 1, joined_columns, ROWS * 3, NULL},
    {"half as many rows", MATRIX, 0, halved, 0, "an output, and its rows do not lie"},
    {"attention to all", MATRIX, 0, unmasked, 0, "attention (node 1): its mask lets queries see"},
    {"masked attention", MATRIX, 0, masked, 0, "its mask lets queries see"},
    {"mask of queries", MATRIX, 0, masked_queries, ROWS * 6, NULL},
    {"mask of keys", MATRIX, 0, masked_keys, 0, "the rows of its mask are not those"},
    {"mask of batches", FIXED_SHAPE(ROWS, 3, 6), 0, masked_batches, ROWS * 18, NULL},
    {"mask alone", FIXED_SHAPE(1, 1, ROWS, 5), 2, masked_alone, 0, "its queries are not rows"},
    {"attention, lse", MATRIX, 0, with_lse, 0, "its log-sum-exps lie behind its result"},
    {"attention to fixed keys", MATRIX, 0, to_fixed, ROWS * 6, NULL},
    {"attention from fixed queries", MATRIX, 0, fixed_to_rows, 0, "attention (node 2)"},
    {"attention to more keys", MATRIX, 0, more_keys, ROWS * 6, NULL},
    {"attention in batches", FIXED_SHAPE(ROWS, 3, 6), 0, batches, ROWS * 18, NULL},
    {"step", FIXED_SHAPE(1, ROWS, 6), 1, stepped, ROWS * 6, NULL},
    {"step of two", FIXED_SHAPE(2, ROWS, 6), 1, stepped_pair, ROWS * 6, NULL},
    {"step of an entry", FIXED_SHAPE(1, ROWS, 6), 1, stepped_entries, ROWS * 6, NULL},
    {"step of queries", FIXED_SHAPE(1, ROWS, 6), 1, stepped_queries, ROWS * 6, NULL},
    {"step of keys", FIXED_SHAPE(1, ROWS, 6), 1, stepped_keys, 0, "its new rows are not those"},
    {"step of batches", FIXED_SHAPE(ROWS, 1, 6), 0, stepped_batches, 0, "its new rows are not"},
    {"step at rows", FIXED_SHAPE(ROWS), 0, stepped_places, 0, "its new rows are not those"},
    {"step, cache seen", FIXED_SHAPE(1, ROWS, 6), 1, stepped_and_seen, 0, "are seen elsewhere"},
};

static void test_rules(void **state)
{
    schedule_options how = {.profile = &profile};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        bucket_case_expect(&rows[i], &how, rows[i].span, rows[i].why);
}

/* Some nodes are not supported because of how they run: host steps, and in f16 attention with
 * widths that fit matrix units. */
static void test_what_how_it_runs_forbids(void **state)
{
    static const bucket_case host = {"softmax", MATRIX, 0, soft, 0, NULL};
    static const bucket_case fixed = {"after", MATRIX, 0, waited_for, 0, NULL};
    static const bucket_case units = {"causal", FIXED_SHAPE(ROWS, 32), 0, causal, 0, NULL};
    static const bucket_case narrow = {"narrow heads", MATRIX, 0, causal, 0, NULL};
    static const bucket_case keys = {"fixed keys", MATRIX, 0, to_fixed, 0, NULL};
    static const bucket_case over = {"step", FIXED_SHAPE(1, ROWS, 32), 1, stepped_wide, 0, NULL};
    bool on_host[OP_COUNT] = {[OP_softmax] = true, [OP_after] = true};
    schedule_options forced = {.profile = &profile, .on_host = on_host};
    schedule_options halves = {.profile = &profile, .precision = RLXVK_PRECISION_F16};
    (void)state;
    bucket_case_expect(&host, &forced, 0, "softmax (node 1): it runs on the host");
    bucket_case_expect(&fixed, &forced, BUCKET_FIXED, NULL);
    bucket_case_expect(&units, &halves, 0, "in this precision a NaN");
    schedule_options bfloats = {.profile = &profile, .precision = RLXVK_PRECISION_BF16};
    bucket_case_expect(&units, &bfloats, 0, "in this precision a NaN");
    bucket_case_expect(&narrow, &halves, ROWS * 6, NULL);
    bucket_case_expect(&keys, &halves, ROWS * 6, NULL);
    bucket_case_expect(&over, &halves, 0, "in this precision a NaN");
}

/* A gather along the rows needs the promise that its indices are those of active rows. Along
 * another axis, any fixed indices are allowed. */
static void test_indices(void **state)
{
    static const struct {
        int32_t axis;
        bool indices;
        const char *why;
    } cases[] = {{0, true, ""}, {0, false, "it takes rows"}, {1, true, ""}};
    schedule_options how = {.profile = &profile};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const bucket_input axes[] = {{0, 0, false}, {1, 0, true}};
        bucket_analysis a = bucket_analysis_begin();
        rlxvk_tensor x = rlxvk_input(a.g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, 6));
        rlxvk_tensor last = rlxvk_input(a.g, "last", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(a.g, rlxvk_gather(a.g, rlxvk_silu(a.g, x), last, cases[i].axis));
        bucket_analysis_lower(&a, &how, "gather");
        bucket_analysis_find(&a, axes, cases[i].indices ? 2 : 1, RLXVK_PRECISION_F32);
        assert_true(*cases[i].why ? strstr(a.e.why, cases[i].why) != NULL : !*a.e.why);
        assert_int_equal(a.e.unit, ROWS);
        bucket_analysis_end(&a);
    }
}

/* Inputs with rows of one bucket, of r buckets, of sizes without a common divisor, along two axes,
 * or with none. */
static void test_inputs(void **state)
{
    static const struct {
        int64_t a, b;
        uint64_t unit;
        const char *why;
    } cases[] = {{8, 8, 8, ""},
                 {8, 24, 8, ""},
                 {8, 12, 4, ""},
                 {8, 9, 1, ""},
                 {0, 0, 0, "no input has rows"}};
    schedule_options how = {.profile = &profile};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const bucket_input axes[] = {{0, 0, false}, {1, 1, false}, {1, 0, false}};
        bucket_analysis a = bucket_analysis_begin();
        rlxvk_tensor x = rlxvk_input(a.g, "a", RLXVK_F32, RLXVK_SHAPE(cases[i].a, 2));
        rlxvk_tensor y = rlxvk_input(a.g, "b", RLXVK_F32, RLXVK_SHAPE(3, cases[i].b));
        rlxvk_graph_output(a.g, rlxvk_silu(a.g, x));
        rlxvk_graph_output(a.g, rlxvk_silu(a.g, y));
        bucket_analysis_lower(&a, &how, "inputs");
        bucket_analysis_find(&a, axes, 2, RLXVK_PRECISION_F32);
        assert_int_equal(a.e.unit, cases[i].unit);
        assert_true(strstr(a.e.why, cases[i].why) == a.e.why && (*cases[i].why || !*a.e.why));
        /* b's rows are not its leading axis. So b scales only if the unit is 1. */
        assert_int_equal(a.e.scaled_count, a.e.unit == 1 ? 2 : a.e.unit ? 1 : 0);
        if (cases[i].a) {
            bucket_analysis_find(&a, axes, 3, RLXVK_PRECISION_F32);
            assert_non_null(strstr(a.e.why, "input 'b' (node 1): it has rows of the bucket along"));
        }
        bucket_analysis_find(&a, axes, 0, RLXVK_PRECISION_F32);
        assert_non_null(strstr(a.e.why, "bucket_axes"));
        bucket_analysis_end(&a);
    }
}

/* Counts are multiples of a run: none for no rows, all for all rows. Large counts fold. */
static void test_groups(void **state)
{
    static const struct {
        uint32_t groups[3], run;
        uint64_t actual, upper;
        uint32_t wanted[3], cycle, cycles;
    } cases[] = {
        {{100, 1, 1}, 1, 0, 10, {0, 1, 1}},
        {{100, 1, 1}, 1, 1, 10, {10, 1, 1}},
        {{100, 1, 1}, 1, 10, 10, {100, 1, 1}},
        {{101, 1, 1}, 1, 1, 10, {11, 1, 1}},
        {{100, 1, 1}, 30, 1, 10, {30, 1, 1}},
        {{100, 1, 1}, 30, 9, 10, {100, 1, 1}},
        {{64, 1, 1}, 64, 1, 4096, {64, 1, 1}},
        {{65535, 4, 1}, 1, 1, 2, {65535, 2, 1}},
        {{65535, 4, 1}, 1, 1, 4, {65535, 1, 1}},
        {{65535, 4, 1}, 1, 1, 8, {32768, 1, 1}},
        {{65535, 65535, 2}, 1, 1, 2, {65535, 65535, 1}},
        {{24, 1, 1}, 1, 1, 3, {2, 4, 1}, 6, 4},
        {{24, 1, 1}, 3, 1, 3, {3, 4, 1}, 6, 4},
        {{65535, 2, 1}, 1, 0, 3, {0, 3, 1}, 43690, 3},
        {{24, 1, 1}, 4, 6, 6, {6, 4, 1}, 6, 4},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        extent_groups by = {cases[i].run, cases[i].cycle, cases[i].cycles};
        dispatch d = {0};
        uint32_t got[3];
        memcpy(d.groups, cases[i].groups, sizeof d.groups);
        extent_launch(&d, &by, &profile, cases[i].actual, cases[i].upper, got);
        assert_memory_equal(got, cases[i].wanted, sizeof got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),   cmocka_unit_test(test_what_how_it_runs_forbids),
        cmocka_unit_test(test_indices), cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
