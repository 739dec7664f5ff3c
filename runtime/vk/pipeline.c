/*
 * All pipelines of a device, by kernel and specialization constants. Invariant while the lock is
 * free: every entry has a pipeline, and no two entries are equal. A call makes its missing
 * pipelines on a few threads, because drivers compile at that time. It holds the lock meanwhile, so
 * that a second caller finds them and does not compile again.
 */
#include "base/system.h"
#include "kernel/words.h"
#include "spirv/spirv.h"
#include "vk/internal.h"

#include <string.h>

#define THREAD_LIMIT 4

typedef struct pipeline_entry {
    pipeline_request key; /* constants above constant_count are 0 */
    VkPipeline pipeline;
    VkResult result;
    bool permuted;    /* its invocations are in another order */
    bool based;       /* ranges of its workgroups may be launched */
    double seconds;   /* processor time of the thread that made it */
    module_lack lack; /* what the device lacks for it; "": nothing */
} pipeline_entry;

struct pipeline_store {
    system_lock lock;
    bool lock_made;
    disk_cache cache;
    VECTOR(pipeline_entry) entries;
    uint32_t *slots;   /* open addressing: index + 1 of an entry, 0 for free */
    size_t slot_count; /* a power of two, at least twice the entries */
    size_t asked;      /* requests so far, including equal ones */
};

/* ---- Hash map ---- */

/* Clears the constants that the caller did not set, so that equal requests compare equal. */
static pipeline_request key_of(const pipeline_request *request)
{
    pipeline_request key;
    memset(&key, 0, sizeof(key));
    key.kernel = request->kernel;
    key.constant_count = request->constant_count;
    memcpy(key.constants, request->constants, request->constant_count * sizeof(uint32_t));
    memcpy(key.grid, request->grid, sizeof(key.grid));
    key.ranges = request->ranges;
    return key;
}

static size_t key_hash(const pipeline_request *key)
{
    uint64_t hash = key->kernel * 0x9e3779b97f4a7c15ull + key->constant_count;
    for (uint32_t i = 0; i < key->constant_count; i++) {
        hash = (hash ^ key->constants[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    for (int i = 0; i < 3; i++)
        hash = (hash ^ key->grid[i]) * 0x9e3779b97f4a7c15ull;
    hash += key->ranges;
    return (size_t)(hash ^ hash >> 29);
}

static bool key_equal(const pipeline_request *a, const pipeline_request *b)
{
    return a->kernel == b->kernel && a->constant_count == b->constant_count &&
           !memcmp(a->constants, b->constants, sizeof(a->constants)) && a->ranges == b->ranges &&
           !memcmp(a->grid, b->grid, sizeof(a->grid));
}

/* The slot of an equal entry, or the free slot for a new one. */
static uint32_t *slot_of(const pipeline_store *store, const pipeline_request *key)
{
    size_t slot = key_hash(key);
    for (;; slot++) {
        uint32_t *at = &store->slots[slot & (store->slot_count - 1)];
        if (!*at || key_equal(&store->entries.items[*at - 1].key, key))
            return at;
    }
}

/* Slots hold indices, so entries may move when the vector grows. */
static void slots_fill(pipeline_store *store)
{
    memset(store->slots, 0, store->slot_count * sizeof(*store->slots));
    for (size_t i = 0; i < store->entries.count; i++)
        *slot_of(store, &store->entries.items[i].key) = (uint32_t)i + 1;
}

static bool slots_reserve(pipeline_store *store, size_t entry_count)
{
    size_t count = MAX(store->slot_count, 64);
    while (count < 2 * entry_count)
        count *= 2;
    if (count == store->slot_count)
        return true;
    uint32_t *slots = memory_zeroed(count, sizeof(*slots));
    if (!slots)
        return false;
    memory_free(store->slots);
    store->slots = slots;
    store->slot_count = count;
    slots_fill(store);
    return true;
}

/* ---- Creation ---- */

/* Data that the creating threads share. Each thread takes entries until none is left. */
typedef struct creation {
    device *d;
    pipeline_entry *entries; /* the missing ones */
    size_t count;
} creation;

typedef uint32_t *transformation(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* Frees the words. */
static uint32_t *transform(transformation *by, uint32_t *words, uint32_t *count)
{
    uint32_t *out = words ? by(words, *count, count) : NULL;
    memory_free(words);
    return out;
}

/* Applies the order that RLXVK_INVOCATIONS asks for. Frees the words. */
static uint32_t *permute(const device *d, uint32_t *words, bool *out_permuted, uint32_t *count)
{
    static const spirv_order orders[] = {[INVOCATIONS_IN_ORDER] = SPIRV_IN_ORDER,
                                         [INVOCATIONS_REVERSED] = SPIRV_REVERSED,
                                         [INVOCATIONS_PERMUTED] = SPIRV_PERMUTED};
    spirv_order order = orders[d->invocations.order];
    if (!words || order == SPIRV_IN_ORDER)
        return words;
    uint32_t *out = spirv_permute(words, *count, order, d->invocations.seed, out_permuted, count);
    memory_free(words);
    return out;
}

/* Makes the kernel see the grid of its request. A module that does not read the number of
 * workgroups stays as it is if ranges are launched; an extent asks only for kernels that do. Frees
 * the words. */
static uint32_t *fix_grid(const pipeline_request *key, uint32_t *words, uint32_t *count)
{
    if (!words || !key->grid[0] || (key->ranges && !spirv_reads_grid(words, *count)))
        return words;
    uint32_t *fixed = spirv_fix_grid(words, *count, key->grid, count);
    memory_free(words);
    return fixed;
}

/* The words of an embedded kernel for these constants. If a kernel has the constant BINDINGS, it is
 * always specialized, because its layout has only the bindings in use. */
static uint32_t *words_of(const device *d, const pipeline_request *key, bool *out_permuted,
                          uint32_t *out_count)
{
    const VkPhysicalDeviceFloatControlsProperties *offered = &d->snapshot.float_controls;
    spirv_float_controls controls = {
        .preserve_special = offered->shaderSignedZeroInfNanPreserveFloat32,
        .round_to_even = offered->shaderRoundingModeRTEFloat32,
        .round_halves_to_even = d->setup.profile.half_rounding,
        .preserve_subnormals = d->setup.profile.half_subnormals,
    };
    const kernel_info *kernel = kernel_find(key->kernel);
    uint32_t *words = fix_grid(key, spirv_request(kernel, controls, out_count), out_count);
    if (!words || (d->no_specialization && !kernel->bindings_constant))
        return words;
    uint32_t *special = spirv_specialize(words, *out_count, key->constants, key->constant_count,
                                         d->setup.unroll_hints, out_count);
    memory_free(words);
    /* On an H200, matrix-unit products are 2 to 3 % slower if functions are inlined. */
    bool matrices = special && spirv_declares(special, *out_count, SPIRV_COOPERATIVE_MATRIX);
    if (!matrices) {
        special = transform(spirv_inline, special, out_count);
        special = transform(spirv_merge_blocks, special, out_count);
    }
    special = transform(spirv_contract, special, out_count);
    if (d->setup.exact_floats)
        special = transform(spirv_make_exact, special, out_count);
    if (matrices)
        return special;
    if (kernel->bindings_constant)
        special = transform(spirv_drop_buffers, special, out_count);
    special = permute(d, special, out_permuted, out_count);
    /* Permuting adds loads of the number of workgroups. If ranges are launched, it must be that of
     * the whole grid there, too. */
    return key->ranges ? fix_grid(key, special, out_count) : special;
}

/* Whether ranges may be launched follows from the words alone: every module that reads no number of
 * workgroups is made for them. On an H200, ranges began at workgroup 0 if an equal module had been
 * made without them before, as if the driver had given both one program. */
static VkResult module_create(device *d, pipeline_entry *entry, VkShaderModule *out)
{
    const pipeline_request *key = &entry->key;
    const kernel_info *kernel = kernel_find(key->kernel);
    bool embedded = key->kernel < KERNEL_COUNT; /* kernels of custom ops are not transformed */
    uint32_t count = kernel->word_count;
    uint32_t *words = embedded ? words_of(d, key, &entry->permuted, &count) : NULL;
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = count * sizeof(uint32_t),
        .pCode = embedded ? words : kernel->words,
    };
    /* Without specialization, sizes and features are those of constants that were never meant. */
    bool known = !embedded || !d->no_specialization || kernel->bindings_constant;
    VkResult result = info.pCode ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
    if (result == VK_SUCCESS && known)
        result = module_check(d, info.pCode, count, &entry->lack);
    if (result == VK_SUCCESS) {
        entry->based = !spirv_reads_grid(info.pCode, count);
        result = VK_RESULT(d, CreateShaderModule(d->handle, &info, NULL, out));
    }
    memory_free(words);
    return result;
}

/* All constants are passed, also those that a specialized module no longer declares, because Vulkan
 * ignores them. If a kernel uses subgroup operations, the subgroup size is fixed to the one for
 * which its constants were computed. Otherwise the driver chooses. */
static VkResult pipeline_create(device *d, pipeline_entry *entry, VkShaderModule module)
{
    const pipeline_request *key = &entry->key;
    VkSpecializationMapEntry map[KERNEL_MAX_CONSTANTS];
    for (uint32_t i = 0; i < key->constant_count; i++)
        map[i] = (VkSpecializationMapEntry){i, i * sizeof(uint32_t), sizeof(uint32_t)};
    VkSpecializationInfo constants = {
        .mapEntryCount = key->constant_count,
        .pMapEntries = map,
        .dataSize = key->constant_count * sizeof(uint32_t),
        .pData = key->constants,
    };
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = d->setup.profile.subgroup_size,
    };
    bool fix_size = kernel_find(key->kernel)->subgroups && d->snapshot.subgroup_size_control;
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = (entry->based ? VK_PIPELINE_CREATE_DISPATCH_BASE : 0) |
                 (d->statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0),
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = fix_size ? &subgroup : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = d->pipeline_layouts[kernel_bindings(kernel_find(key->kernel), key->constants)],
    };
    return VK_RESULT(d, CreateComputePipelines(d->handle, d->pipelines->cache.handle, 1, &info,
                                               NULL, &entry->pipeline));
}

static void entry_create(device *d, pipeline_entry *entry)
{
    VkShaderModule module = VK_NULL_HANDLE;
    double begin = system_thread_seconds();
    entry->result = module_create(d, entry, &module);
    if (entry->result == VK_SUCCESS)
        entry->result = pipeline_create(d, entry, module);
    if (entry->result != VK_SUCCESS)
        entry->pipeline = VK_NULL_HANDLE;
    if (module)
        d->fn.DestroyShaderModule(d->handle, module, NULL);
    entry->seconds = system_thread_seconds() - begin;
}

/* Creating pipelines needs no lock, not even for the driver's cache. Only one thread writes an
 * entry. */
static void creation_work(void *argument, size_t part)
{
    const creation *c = argument;
    entry_create(c->d, &c->entries[part]);
}

static rlxvk_status creation_check(const creation *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const pipeline_entry *entry = &c->entries[i];
        const char *kernel = kernel_find(entry->key.kernel)->name;
        if (*entry->lack.text)
            return status_fail(RLXVK_E_UNSUPPORTED, "kernel '%s': %s", kernel, entry->lack.text);
        rlxvk_status status = vk_check(c->d, entry->result, "pipeline creation");
        if (status != RLXVK_OK)
            return status_fail_within(status, "kernel '%s'", kernel);
    }
    return RLXVK_OK;
}

/* Creates the pipelines of all entries from `first` on. */
static rlxvk_status entries_create(device *d, size_t first)
{
    pipeline_store *store = d->pipelines;
    creation c = {.d = d,
                  .entries = store->entries.items + first,
                  .count = store->entries.count - first};
    spread_over_threads(c.count, THREAD_LIMIT, creation_work, &c);
    return creation_check(&c);
}

/* ---- Requests ---- */

/* Beyond the device's limits Vulkan is undefined, so such requests must not reach the driver. */
static rlxvk_status request_check(const device *d, const pipeline_request *request)
{
    const device_profile *p = &d->setup.profile;
    if (request->kernel >= kernel_count() || request->constant_count > KERNEL_MAX_CONSTANTS)
        return status_fail(RLXVK_E_UNSUPPORTED, "pipeline: no kernel %u with %u constants",
                           request->kernel, request->constant_count);
    const kernel_info *kernel = kernel_find(request->kernel);
    uint32_t bindings = kernel_bindings(kernel, request->constants);
    if (bindings > MIN(p->storage_buffers_per_stage, KERNEL_MAX_BINDINGS))
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "kernel '%s': %u storage buffers; this device has %u", kernel->name,
                           bindings, p->storage_buffers_per_stage);
    if (request->constant_count && (!request->constants[LOCAL_SIZE] ||
                                    request->constants[LOCAL_SIZE] > p->max_workgroup_invocations))
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "kernel '%s': workgroup of %u; this device takes 1 to %u", kernel->name,
                           request->constants[LOCAL_SIZE], p->max_workgroup_invocations);
    return RLXVK_OK;
}

/* Adds an entry, without a pipeline yet, for every request that has none. */
static rlxvk_status entries_add(device *d, const pipeline_request *requests, size_t count)
{
    rlxvk_status status;
    pipeline_store *store = d->pipelines;
    for (size_t i = 0; i < count; i++) {
        TRY(request_check(d, &requests[i]));
        if (!slots_reserve(store, store->entries.count + 1))
            return status_fail_memory("pipeline table");
        pipeline_entry entry = {.key = key_of(&requests[i])};
        uint32_t *slot = slot_of(store, &entry.key);
        if (*slot)
            continue;
        if (!VECTOR_PUSH(&store->entries, entry))
            return status_fail_memory("pipeline table");
        *slot = (uint32_t)store->entries.count;
    }
    return RLXVK_OK;
error:
    return status;
}

/* After a failure, removes the entries from `first` on that have no pipeline and keeps the
 * others. */
static void entries_drop(pipeline_store *store, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < store->entries.count; i++)
        if (store->entries.items[i].pipeline)
            store->entries.items[kept++] = store->entries.items[i];
    store->entries.count = kept;
    if (store->slots)
        slots_fill(store);
}

static rlxvk_status get_locked(device *d, const pipeline_request *requests, size_t count,
                               VkPipeline *out)
{
    rlxvk_status status;
    pipeline_store *store = d->pipelines;
    size_t first = store->entries.count;
    TRY(entries_add(d, requests, count));
    if (store->entries.count > first)
        TRY(entries_create(d, first));
    for (size_t i = 0; i < count; i++) {
        pipeline_request key = key_of(&requests[i]);
        out[i] = store->entries.items[*slot_of(store, &key) - 1].pipeline;
    }
    return RLXVK_OK;
error:
    entries_drop(store, first);
    return status;
}

rlxvk_status pipeline_get_all(device *d, const pipeline_request *requests, size_t count,
                              VkPipeline *out)
{
    system_lock_take(&d->pipelines->lock);
    d->pipelines->asked += count;
    rlxvk_status status = get_locked(d, requests, count, out);
    system_lock_release(&d->pipelines->lock);
    return status;
}

rlxvk_status pipeline_words(const device *d, const pipeline_request *request, uint32_t **out,
                            uint32_t *out_count)
{
    rlxvk_status status;
    bool permuted = false;
    pipeline_request key;
    *out = NULL;
    TRY(request_check(d, request));
    key = key_of(request);
    *out = words_of(d, &key, &permuted, out_count);
    if (!*out)
        return status_fail_memory("module");
error:
    return status;
}

/* A driver of an H200 leaves the first workgroup of a range out of the global number. Embedded
 * kernels do not read it. */
bool pipeline_takes_ranges(uint16_t kernel)
{
    const kernel_info *info = kernel_find(kernel);
    return kernel < KERNEL_COUNT || (!spirv_reads_grid(info->words, info->word_count) &&
                                     !spirv_reads_global_id(info->words, info->word_count));
}

size_t pipeline_count_made(device *d)
{
    system_lock_take(&d->pipelines->lock);
    size_t count = d->pipelines->entries.count;
    system_lock_release(&d->pipelines->lock);
    return count;
}

size_t pipeline_count_asked(device *d)
{
    system_lock_take(&d->pipelines->lock);
    size_t count = d->pipelines->asked;
    system_lock_release(&d->pipelines->lock);
    return count;
}

size_t pipeline_count_permuted(device *d)
{
    size_t count = 0;
    system_lock_take(&d->pipelines->lock);
    for (size_t i = 0; i < d->pipelines->entries.count; i++)
        count += d->pipelines->entries.items[i].permuted;
    system_lock_release(&d->pipelines->lock);
    return count;
}

rlxvk_status pipeline_describe(device *d, size_t number, pipeline_description *out)
{
    pipeline_entry entry = {0};
    system_lock_take(&d->pipelines->lock);
    bool found = number < d->pipelines->entries.count;
    if (found)
        entry = d->pipelines->entries.items[number];
    system_lock_release(&d->pipelines->lock);
    memset(out, 0, sizeof *out);
    if (!found)
        return status_fail(RLXVK_E_INDEX, "no pipeline %zu was made", number);
    out->request = entry.key;
    out->seconds = entry.seconds;
    return d->statistics ? pipeline_statistics(d, entry.pipeline, out) : RLXVK_OK;
}

/* ---- Store ---- */

rlxvk_status pipeline_store_create(device *d, const char *cache_directory)
{
    pipeline_store *store = memory_zeroed(1, sizeof(*store));
    if (!store)
        return status_fail_memory("pipeline store");
    d->pipelines = store;
    if (!system_lock_create(&store->lock))
        return status_fail_memory("pipeline lock");
    store->lock_made = true;
    return pipeline_cache_open(d, cache_directory, &store->cache);
}

void pipeline_store_destroy(device *d)
{
    pipeline_store *store = d->pipelines;
    if (!store)
        return;
    pipeline_cache_save(d, &store->cache);
    pipeline_cache_close(d, &store->cache);
    for (size_t i = 0; i < store->entries.count; i++)
        d->fn.DestroyPipeline(d->handle, store->entries.items[i].pipeline, NULL);
    VECTOR_FREE(&store->entries);
    memory_free(store->slots);
    if (store->lock_made)
        system_lock_destroy(&store->lock);
    memory_free(store);
    d->pipelines = NULL;
}
