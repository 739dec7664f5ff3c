/*
 * The order of K in a convolution on matrix units. K is a list of octets: eight channels of one
 * tap. Octets of a block of channels follow one another, tap by tap, so that the taps of a window
 * find x in the cache. If the form is SCATTERED, K is a list of elements: channels of one tap after
 * another.
 */
#ifndef RLXVK_CONV_MATRIX_ORDER_H
#define RLXVK_CONV_MATRIX_ORDER_H

#include "op/conv/conv_emit.h"

/* How x lies: packed as [images, groups, blocks, cells, octets], or as words [images, groups,
 * channels, cells]. Strides count octets or words. An item of K is an octet or an element. */
typedef struct conv_matrix_layout {
    uint64_t channels, items, blocks; /* of a block; of a cell in a block; of a group */
    uint64_t item_channels, octet_items;
    uint64_t cells;
    uint64_t group_stride, block_stride, cell_stride, item_stride;
} conv_matrix_layout;

/* The tables of conv_matrix and conv_matrix_filters (args/conv_matrix.h). */
typedef struct conv_matrix_order {
    int32_t (*places)[4];
    uint32_t (*filters)[2];
    uint64_t place_count, phases;
    uint64_t items; /* in all phases, each of which has whole steps */
} conv_matrix_order;

conv_matrix_layout conv_matrix_layout_of(const conv_problem *p, uint32_t form);
/* `step` is the number of items in a step. E_OUT_OF_MEMORY; then there is nothing to destroy. */
rlxvk_status conv_matrix_order_create(const conv_problem *p, const conv_matrix_layout *layout,
                                      uint64_t step, conv_matrix_order *out);
void conv_matrix_order_destroy(conv_matrix_order *o);

#endif
