/*
 * The driver's pipeline cache, kept in <directory>/rlxvk/<pipelineCacheUUID>-<driverUUID>.bin.
 * Other files of the device have other endings. The file has a magic number, a checksum of the
 * driver's data, their length, and the data.
 *
 * Drivers trust data with a well-formed header, so both the checksum and the header are verified
 * here. If a file is damaged, foreign, unreadable or not a regular file, it counts as absent. A
 * file is replaced as a whole (base/system.h), so readers see a complete file or none. A failed
 * write is not an error.
 */
#include "base/system.h"
#include "vk/internal.h"

#include <stdio.h>
#include <string.h>

#define FILE_MAGIC      0x3143504b56584c52ull /* "RLXVKPC1" */
#define FILE_SIZE_LIMIT (256u << 20)
#define TEXT_SIZE_LIMIT (1u << 20)

cache_header pipeline_cache_header(const uint8_t *data, size_t size)
{
    return (cache_header){FILE_MAGIC, base_hash(BASE_HASH_START, data, size), size};
}

/* ---- Path ---- */

/* Writes the directory, or if it is NULL the user's cache directory; false if there is none. */
static bool base_directory(const char *directory, char *out, size_t size)
{
    if (!directory)
        return system_cache_folder(out, size);
    int length = snprintf(out, size, "%s", directory);
    return length > 0 && (size_t)length < size;
}

static bool file_path(const device *d, const char *directory, const char *ending, char *out,
                      size_t size)
{
    char base[2048], cache_uuid[2 * VK_UUID_SIZE + 1], driver_uuid[2 * VK_UUID_SIZE + 1];
    if ((directory && !*directory) || !base_directory(directory, base, sizeof(base)))
        return false;
    profile_uuid_text(d->snapshot.properties.pipelineCacheUUID, cache_uuid);
    profile_uuid_text(d->snapshot.id.driverUUID, driver_uuid);
    int length = snprintf(out, size, "%s/rlxvk/%s-%s.%s", base, cache_uuid, driver_uuid, ending);
    return length > 0 && (size_t)length < size;
}

/* ---- Reading ---- */

static bool driver_header_matches(const VkPhysicalDeviceProperties *p, const uint8_t *data,
                                  size_t size)
{
    VkPipelineCacheHeaderVersionOne header;
    if (size < sizeof(header))
        return false;
    memcpy(&header, data, sizeof(header));
    return header.headerSize >= sizeof(header) && header.headerSize <= size &&
           header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           header.vendorID == p->vendorID && header.deviceID == p->deviceID &&
           !memcmp(header.pipelineCacheUUID, p->pipelineCacheUUID, VK_UUID_SIZE);
}

const uint8_t *pipeline_cache_data(const VkPhysicalDeviceProperties *p, const uint8_t *file,
                                   size_t size, size_t *out_size)
{
    cache_header header, wanted;
    if (size < sizeof(header))
        return NULL;
    const uint8_t *data = file + sizeof(header);
    size -= sizeof(header);
    memcpy(&header, file, sizeof(header));
    if (header.size > size)
        return NULL;
    wanted = pipeline_cache_header(data, (size_t)header.size);
    if (header.magic != wanted.magic || header.checksum != wanted.checksum ||
        !driver_header_matches(p, data, (size_t)header.size))
        return NULL;
    *out_size = (size_t)header.size;
    return data;
}

/* The whole file, with a zero behind it. NULL if it cannot be read, is longer than `limit`, or is
 * not a regular file (reading a pipe would block). */
static uint8_t *file_read(const char *path, uint64_t limit, size_t *out_size)
{
    system_file file;
    uint64_t length;
    uint8_t *bytes = NULL;
    size_t done = 0, got = 1;
    if (system_file_open(path, &file, &length) != 0)
        return NULL;
    if (length <= limit && (bytes = memory_allocate((size_t)length + 1))) {
        while (got && system_file_read(&file, done, bytes + done, length - done, &got) == 0)
            done += got;
        bytes[done] = 0;
    }
    system_file_close(&file);
    *out_size = done;
    return bytes;
}

rlxvk_status pipeline_cache_open(device *d, const char *directory, disk_cache *out)
{
    rlxvk_status status = RLXVK_OK;
    char path[4096];
    uint8_t *file = NULL;
    size_t size = 0;
    bool on_disk = file_path(d, directory, "bin", path, sizeof(path));
    if (on_disk && !(out->path = memory_copy_string(path)))
        return status_fail_memory("pipeline cache path");
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    if (on_disk && (file = file_read(path, FILE_SIZE_LIMIT, &size)))
        info.pInitialData =
            pipeline_cache_data(&d->snapshot.properties, file, size, &info.initialDataSize);
    /* If the driver rejects the data, the device must still open. */
    if (info.pInitialData &&
        VK_RESULT(d, CreatePipelineCache(d->handle, &info, NULL, &out->handle)) == VK_SUCCESS)
        out->loaded_size = info.initialDataSize;
    else {
        info.initialDataSize = 0;
        VK(d, CreatePipelineCache(d->handle, &info, NULL, &out->handle));
    }
error:
    memory_free(file);
    return status;
}

/* ---- Writing ---- */

static bool path_write(const char *path, const cache_header *header, const void *data, size_t size)
{
    system_replacement file;
    system_make_folders(path);
    if (system_replacement_begin(path, SYSTEM_FOR_USER, &file) != 0)
        return false;
    if (header)
        fwrite(header, sizeof(*header), 1, file.stream);
    fwrite(data, 1, size, file.stream);
    return system_replacement_finish(&file) == 0;
}

void pipeline_cache_save(device *d, const disk_cache *cache)
{
    size_t size = 0;
    if (!cache->handle || !cache->path || vk_is_lost(d) ||
        d->fn.GetPipelineCacheData(d->handle, cache->handle, &size, NULL) != VK_SUCCESS ||
        size <= cache->loaded_size || size > FILE_SIZE_LIMIT - sizeof(cache_header))
        return;
    uint8_t *data = memory_allocate(size);
    if (data && d->fn.GetPipelineCacheData(d->handle, cache->handle, &size, data) == VK_SUCCESS) {
        cache_header header = pipeline_cache_header(data, size);
        (void)path_write(cache->path, &header, data, size);
    }
    memory_free(data);
}

void pipeline_cache_close(device *d, disk_cache *cache)
{
    if (cache->handle)
        d->fn.DestroyPipelineCache(d->handle, cache->handle, NULL);
    memory_free(cache->path);
    *cache = (disk_cache){0};
}

/* ---- Text ---- */

char *pipeline_cache_read_text(const device *d, const char *directory, const char *ending)
{
    char path[4096];
    size_t size;
    return file_path(d, directory, ending, path, sizeof(path))
               ? (char *)file_read(path, TEXT_SIZE_LIMIT, &size)
               : NULL;
}

rlxvk_status pipeline_cache_write_text(const device *d, const char *directory, const char *ending,
                                       const char *text, char *out_path, size_t size)
{
    if (!file_path(d, directory, ending, out_path, size))
        return status_fail(RLXVK_E_FILE, "there is no cache directory: set %s",
                           system_cache_variables);
    if (!path_write(out_path, NULL, text, strlen(text)))
        return status_fail(RLXVK_E_FILE, "%s: cannot be written, or another process is writing it",
                           out_path);
    return RLXVK_OK;
}
