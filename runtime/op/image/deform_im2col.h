/* Shared by the files of deform_im2col. */
#ifndef RLXVK_DEFORM_IM2COL_H
#define RLXVK_DEFORM_IM2COL_H

#include "op/op.h"

#include <rlxvk_ops_vision.h>

typedef struct deform_attributes {
    rlxvk_deform_options options;
    int64_t input_size[2]; /* deform_im2col_backward_input; else zeros */
} deform_attributes;

rlxvk_status deform_im2col_lower(lowering *l, uint32_t id);
rlxvk_status deform_im2col_backward_input_lower(lowering *l, uint32_t id);
rlxvk_status deform_im2col_backward_offset_lower(lowering *l, uint32_t id);

rlxvk_status deform_im2col_host(const host_call *call);
rlxvk_status deform_im2col_backward_input_host(const host_call *call);
rlxvk_status deform_im2col_backward_offset_host(const host_call *call);

#endif
