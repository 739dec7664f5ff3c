/* What the files of vk/ share among themselves. */
#ifndef RLXVK_VK_INTERNAL_H
#define RLXVK_VK_INTERNAL_H

#include "vk/vk.h"

#define VALIDATION_LAYER             "VK_LAYER_KHRONOS_validation"
#define PORTABILITY_SUBSET_EXTENSION "VK_KHR_portability_subset" /* in a beta header only */

/* As VK(), but yields the VkResult, for callers that tell results apart. */
#define VK_RESULT(d, call) (vk_inject(#call) ? vk_injected() : (d)->fn.call)

/* loader.c: the library, its global functions and the instance; E_NO_DEVICE with the reason.
 * Without any driver the instance is left VK_NULL_HANDLE with RLXVK_OK: a machine with zero
 * devices. */
rlxvk_status loader_instance_open(device *d, bool validation);
void loader_instance_close(device *d);
rlxvk_status loader_device_functions(device *d);

/* validation.c */
VkDebugUtilsMessengerCreateInfoEXT validation_messenger_info(device *d);
/* E_UNSUPPORTED, naming the package, when the layer is not installed. */
rlxvk_status validation_layer_check(device *d);

/* snapshot.c: everything the policy wants to know of each physical device. All of them with their
 * snapshots, in the order of their index; both arrays are the
 * caller's to free. */
rlxvk_status snapshot_take_all(device *d, VkPhysicalDevice **out_physical,
                               device_snapshot **out_snapshots, uint32_t *out_count);
bool snapshot_has_extension(const VkExtensionProperties *list, uint32_t count, const char *name);

/* profile.c: 32 hexadecimal digits and a terminator. */
void profile_uuid_text(const uint8_t uuid[VK_UUID_SIZE], char out[2 * VK_UUID_SIZE + 1]);

/* select.c: the index of the device to open. `wanted` is an index, part of a name or a UUID; NULL
 * or "" for the best. E_NO_DEVICE lists what there is. */
rlxvk_status vk_select_device(const device_snapshot *snapshots, const device_choice *choices,
                              uint32_t count, const char *wanted, uint32_t *out);

/* select.c: the index of the device that an info describes, which must be usable; E_NO_DEVICE. */
rlxvk_status vk_match_device(const device_snapshot *snapshots, const device_choice *choices,
                             uint32_t count, const rlxvk_device_info *wanted, uint32_t *out);

/* pipeline.c: `cache_directory` as in rlxvk_context_options. */
rlxvk_status pipeline_store_create(device *d, const char *cache_directory);
void pipeline_store_destroy(device *d);

/* pipeline_cache.c: the VkPipelineCache and its file. */
typedef struct disk_cache {
    VkPipelineCache handle;
    char *path; /* NULL: kept in memory only */
    size_t loaded_size;
} disk_cache;
rlxvk_status pipeline_cache_open(device *d, const char *directory, disk_cache *out);
/* Writes the file when the cache grew; silent on failure. */
void pipeline_cache_save(device *d, const disk_cache *cache);
void pipeline_cache_close(device *d, disk_cache *cache);
/* What stands in the file before the driver's data. */
typedef struct cache_header {
    uint64_t magic, checksum, size;
} cache_header;
cache_header pipeline_cache_header(const uint8_t *data, size_t size);
/* The driver's data inside a file's bytes, verified; NULL for every kind of unusable file. Pure. */
const uint8_t *pipeline_cache_data(const VkPhysicalDeviceProperties *properties,
                                   const uint8_t *file, size_t size, size_t *out_size);

#endif
