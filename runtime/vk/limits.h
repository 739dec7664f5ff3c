/*
 * Named profiles of smaller devices (limits.c). With RLXVK_LIMITS, every device is seen through one
 * of them: its snapshot is lowered before anything else sees it.
 */
#ifndef RLXVK_LIMITS_H
#define RLXVK_LIMITS_H

#include "vk/vk.h"

typedef struct device_limits device_limits;

/* Finds a profile by name, in any case. "": none, *out is NULL. E_ATTR lists the names; `what` is
 * the switch or option that has the name. */
rlxvk_status limits_find(const char *name, const char *what, const device_limits **out);
/* The name of profile `index`; NULL behind the last one. */
const char *limits_name(size_t index);
/* Lowers the snapshot: a limit becomes the smaller of the device's and the profile's, an alignment
 * the larger, and features only go. NULL changes nothing. */
void limits_apply(const device_limits *limits, device_snapshot *snapshot);

#endif
