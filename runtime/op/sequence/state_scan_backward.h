/* The reference for the gradients of state scans. */
#ifndef RLXVK_STATE_SCAN_BACKWARD_H
#define RLXVK_STATE_SCAN_BACKWARD_H

#include "op/op.h"

rlxvk_status state_scan_backward_host(const host_call *call);

#endif
