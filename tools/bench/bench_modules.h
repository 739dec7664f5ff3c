/* Writes modules as SPIR-V files, for compilers that are no Vulkan drivers. */
#ifndef RLXVK_BENCH_MODULES_H
#define RLXVK_BENCH_MODULES_H

#include "base/new_file.h"
#include "vk/vk.h"

/* Begins zeroed. */
typedef struct bench_modules {
    const char *folder; /* NULL: writes none */
    new_file list;
    VECTOR(pipeline_request) requests; /* those so far */
    VECTOR(uint64_t) contents;         /* hashes of the modules written */
    size_t failed;
} bench_modules;

/* Begins FOLDER/modules.txt, which gets a line for each module: the file's name, the kernel with
 * its constants, and the first case that needs it. The folder must exist. */
RLXVK_MUST_CHECK rlxvk_status bench_modules_open(bench_modules *m, const char *folder);
/* Writes the module of the request, as FOLDER/KERNEL-HASH.spv. Equal modules are written once. If
 * the device cannot take the request, it counts as failed, and its line has the reason instead. */
RLXVK_MUST_CHECK rlxvk_status bench_modules_add(bench_modules *m, const device *d,
                                                const pipeline_request *request, const char *line);
RLXVK_MUST_CHECK rlxvk_status bench_modules_close(bench_modules *m);
void bench_modules_destroy(bench_modules *m); /* discards the list if it is open */

/* The device's profile, as if it were a GPU with subgroups of this size that can shuffle. Its
 * limits stay. */
device_profile bench_profile_of_gpu(const device *d, uint32_t subgroup_size);

#endif
