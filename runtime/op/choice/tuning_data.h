/*
 * Points that `rlxvk bench --tune` measured, by a part of the device's name. To update them, turn
 * the lines of the tuning file into rows:
 *   sed -nE 's/^([a-z0-9_]+) (\S+) ([0-9,]+) (\S+) (\S+)$/    {"\1", "\2", {\3}, "\4", \5f},/p'
 */
#ifndef RLXVK_TUNING_DATA_H
#define RLXVK_TUNING_DATA_H

#include "op/choice/tuning.h"

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
    {"conv", "forward", {64,100352,576,1}, "table", 212.288f},
    {"conv", "forward", {512,1568,4608,1}, "tiled_128x128", 269.536f},
    {"conv", "forward", {256,100352,2304,1}, "table", 2994.336f},
    {"conv", "forward", {64,3136,576,1}, "tiled_32x32", 26.112f},
    {"conv", "forward", {128,784,1152,1}, "table", 27.648f},
    {"conv", "forward", {256,196,2304,1}, "tiled_32x32", 29.248f},
    {"conv", "forward", {512,49,4608,1}, "tiled_32x32", 31.501f},
    {"conv", "forward", {256,100352,64,1}, "table", 113.515f},
    {"conv", "forward", {64,100352,256,1}, "table", 103.797f},
    {"conv", "forward", {64,3136,256,1}, "tiled_32x32", 20.351f},
    {"conv", "forward", {256,196,1024,1}, "tiled_32x32", 16.722f},
    {"conv", "forward", {64,401408,147,1}, "table", 228.213f},
    {"conv", "forward", {64,12544,147,1}, "table", 17.408f},
    {"conv", "forward", {3,262144,1152,1}, "direct_block", 2114.848f},
    {"conv", "forward", {1,3136,9,256}, "table", 26.352f},
    {"conv", "forward", {8,25088,72,32}, "table", 496.224f},
    {"conv", "transposed", {128,8192,1024,4}, "table", 1362.144f},
    {"conv", "transposed", {256,256,2048,4}, "tiled_32x32", 92.160f},
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
