/* Shared by the files of roi_align. */
#ifndef RLXVK_ROI_ALIGN_H
#define RLXVK_ROI_ALIGN_H

#include "args/image.h"
#include "op/op.h"

#include <rlxvk_ops_vision.h>

#define ROI_MOST_BINS                                                                              \
    (1 << 14) /* along an axis; with 256 samples each, counts are exact in f32                     \
               */

typedef struct roi_attributes {
    rlxvk_roi_options options;
    int64_t input_size[3]; /* N, H, W of roi_align_backward_input; else zeros */
} roi_attributes;

rlxvk_status roi_align_lower(lowering *l, uint32_t id);
rlxvk_status roi_align_backward_input_lower(lowering *l, uint32_t id);

rlxvk_status roi_align_host(const host_call *call);
rlxvk_status roi_align_backward_input_host(const host_call *call);

#endif
