/*
 * Points measured by `rlxvk bench --tune` on devices at hand, by a part of the device's name. To
 * bring them up to date, turn the lines of the profile file into rows:
 *   sed -nE 's/^([a-z0-9_]+) (\S+) ([0-9,]+) (\S+) (\S+)$/    {"\1", "\2", {\3}, "\4", \5f},/p'
 */
#ifndef RLXVK_TUNING_DATA_H
#define RLXVK_TUNING_DATA_H

#include "op/tuning.h"

/* clang-format off */
static const tuning_entry tuning_llvmpipe[] = {
    {"dequant", "Q4_0", {64, 512, 4096, 0}, "unpacked", 47857.609f},
    {"dequant", "Q8_0", {16, 512, 4096, 0}, "unpacked", 12893.209f},
    {"dequant", "Q8_0", {64, 512, 4096, 0}, "unpacked", 52571.624f},
    {"dequant", "Q4_K", {64, 512, 4096, 0}, "unpacked", 90549.077f},
    {"dequant", "Q5_K", {64, 512, 4096, 0}, "unpacked", 52231.371f},
    {"dequant", "Q6_K", {16, 512, 4096, 0}, "unpacked", 17598.789f},
    {"dequant", "Q6_K", {64, 512, 4096, 0}, "unpacked", 43760.759f},
    {0} /* ends the table */
};
static const tuning_entry tuning_h200[] = {
    {0} /* ends the table */
};
/* clang-format on */

static const struct {
    const char *device;
    const tuning_entry *entries;
} tuning_devices[] = {
    {"llvmpipe", tuning_llvmpipe},
    {"H200", tuning_h200},
};

#endif
