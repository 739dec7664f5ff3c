/* Declarations that the files of vk/ share. */
#ifndef RLXVK_VK_INTERNAL_H
#define RLXVK_VK_INTERNAL_H

#include "vk/vk.h"

#define VALIDATION_LAYER             "VK_LAYER_KHRONOS_validation"
#define PORTABILITY_SUBSET_EXTENSION "VK_KHR_portability_subset" /* only in a beta header */

/* Like VK(), but returns the VkResult, for callers that tell results apart. */
#define VK_RESULT(d, call) (vk_inject(#call) ? vk_injected() : (d)->fn.call)

/* loader.c: opens the loader library and the instance, and loads global and instance functions.
 * E_NO_DEVICE has the reason. If there is no driver, it returns RLXVK_OK and leaves the instance
 * VK_NULL_HANDLE: the machine then has no devices. */
rlxvk_status loader_instance_open(device *d, bool validation);
void loader_instance_close(device *d);
rlxvk_status loader_device_functions(device *d);

/* validation.c */
VkDebugUtilsMessengerCreateInfoEXT validation_messenger_info(device *d);
/* If the layer is not installed, E_UNSUPPORTED names the package. */
rlxvk_status validation_layer_check(device *d);

/* snapshot.c: takes the snapshots of all physical devices, in the order of their index. The caller
 * frees both arrays. */
rlxvk_status snapshot_take_all(device *d, VkPhysicalDevice **out_physical,
                               device_snapshot **out_snapshots, uint32_t *out_count);
bool snapshot_has_extension(const VkExtensionProperties *list, uint32_t count, const char *name);

/* profile.c: 32 hexadecimal digits and a terminator. */
void profile_uuid_text(const uint8_t uuid[VK_UUID_SIZE], char out[2 * VK_UUID_SIZE + 1]);

/* device_find.c: the index of the device to open. `wanted` is an index, a name or part of it, a
 * UUID or a PCI address. If it is NULL or "", the best device is taken. E_NO_DEVICE lists the
 * devices; so does the error of a driver's call that failed. */
rlxvk_status vk_find_device(const device_snapshot *snapshots, const device_setup *setups,
                            uint32_t count, const char *wanted, uint32_t *out);

/* device_find.c: the index of the device that an info describes. E_NO_DEVICE if there is none or it
 * is not usable. */
rlxvk_status vk_match_device(const device_snapshot *snapshots, const device_setup *setups,
                             uint32_t count, const rlxvk_device_info *wanted, uint32_t *out);

/* pipeline.c: `cache_directory` as in rlxvk_context_options. */
rlxvk_status pipeline_store_create(device *d, const char *cache_directory);
void pipeline_store_destroy(device *d);

/* pipeline_statistics.c: adds what the driver tells of the pipeline. On failure, *out is zeroed. */
rlxvk_status pipeline_statistics(device *d, VkPipeline pipeline, pipeline_description *out);

/* module.c: whether the device has what the module asks for. If not, the result is
 * VK_ERROR_FEATURE_NOT_PRESENT and *out tells what it lacks. */
typedef struct module_lack {
    char text[96];
} module_lack;
VkResult module_check(const device *d, const uint32_t *words, uint32_t count, module_lack *out);

/* pipeline_cache.c: the VkPipelineCache and its file. */
typedef struct disk_cache {
    VkPipelineCache handle;
    char *path; /* NULL: kept in memory only */
    size_t loaded_size;
} disk_cache;
rlxvk_status pipeline_cache_open(device *d, const char *directory, disk_cache *out);
/* Writes the file if the cache grew. A failure is ignored. */
void pipeline_cache_save(device *d, const disk_cache *cache);
void pipeline_cache_close(device *d, disk_cache *cache);
/* The header of the file, before the driver's data. */
typedef struct cache_header {
    uint64_t magic, checksum, size;
} cache_header;
cache_header pipeline_cache_header(const uint8_t *data, size_t size);
/* Finds and verifies the driver's data in the bytes of a file. NULL if the file is unusable.
 * Pure. */
const uint8_t *pipeline_cache_data(const VkPhysicalDeviceProperties *properties,
                                   const uint8_t *file, size_t size, size_t *out_size);

#endif
