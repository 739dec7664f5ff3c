/*
 * Points measured by `rlxvk bench --tune` on devices at hand, by a part of the device's name. To
 * bring them up to date, turn the lines of the profile file into rows:
 *   sed -nE 's/^([a-z0-9_]+) (\S+) ([0-9,]+) (\S+) (\S+)$/    {"\1", "\2", {\3}, "\4", \5f},/p'
 */
#ifndef RLXVK_TUNING_DATA_H
#define RLXVK_TUNING_DATA_H

#include "op/tuning.h"

/* clang-format off */
static const tuning_entry tuning_h200[] = {
    {0} /* ends the table */
};
/* clang-format on */

static const struct {
    const char *device;
    const tuning_entry *entries;
} tuning_devices[] = {
    {"H200", tuning_h200},
};

#endif
