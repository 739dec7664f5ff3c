/*
 * Checks that a program leaves nothing behind. At its end, as many host allocations of the library
 * must be freed as were made, and as many Vulkan objects of each kind destroyed as created.
 * Otherwise it prints what is left and fails. A program takes part if it is linked with this file.
 *
 * Objects are counted between the library and the loader, so the driver's own memory does not
 * count. For the same reason the leak checker of sanitized builds is off if a loader was opened.
 * Command buffers and descriptor sets are not counted, because their pools free them. The instance
 * that devices share may stay.
 */
#include "vk/vk.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The kind, its parent, its create info, and the two calls. */
#define DEVICE_OBJECTS(X)                                                                          \
    X(Buffer, VkDevice, VkBufferCreateInfo, CreateBuffer, DestroyBuffer)                           \
    X(CommandPool, VkDevice, VkCommandPoolCreateInfo, CreateCommandPool, DestroyCommandPool)       \
    X(DescriptorPool, VkDevice, VkDescriptorPoolCreateInfo, CreateDescriptorPool,                  \
      DestroyDescriptorPool)                                                                       \
    X(DescriptorSetLayout, VkDevice, VkDescriptorSetLayoutCreateInfo, CreateDescriptorSetLayout,   \
      DestroyDescriptorSetLayout)                                                                  \
    X(DeviceMemory, VkDevice, VkMemoryAllocateInfo, AllocateMemory, FreeMemory)                    \
    X(PipelineCache, VkDevice, VkPipelineCacheCreateInfo, CreatePipelineCache,                     \
      DestroyPipelineCache)                                                                        \
    X(PipelineLayout, VkDevice, VkPipelineLayoutCreateInfo, CreatePipelineLayout,                  \
      DestroyPipelineLayout)                                                                       \
    X(QueryPool, VkDevice, VkQueryPoolCreateInfo, CreateQueryPool, DestroyQueryPool)               \
    X(Semaphore, VkDevice, VkSemaphoreCreateInfo, CreateSemaphore, DestroySemaphore)               \
    X(ShaderModule, VkDevice, VkShaderModuleCreateInfo, CreateShaderModule, DestroyShaderModule)   \
    X(DebugUtilsMessengerEXT, VkInstance, VkDebugUtilsMessengerCreateInfoEXT,                      \
      CreateDebugUtilsMessengerEXT, DestroyDebugUtilsMessengerEXT)

/* Objects whose calls have another signature. */
#define OTHER_OBJECTS(X)                                                                           \
    X(Instance, , , CreateInstance, DestroyInstance)                                               \
    X(Device, , , CreateDevice, DestroyDevice)                                                     \
    X(Pipeline, , , CreateComputePipelines, DestroyPipeline)

static struct {
#define REAL_CALLS(kind, parent, info, create, destroy)                                            \
    PFN_vk##create create;                                                                         \
    PFN_vk##destroy destroy;
    DEVICE_OBJECTS(REAL_CALLS)
    OTHER_OBJECTS(REAL_CALLS)
    PFN_vkGetDeviceProcAddr GetDeviceProcAddr;
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
} real;

static struct {
#define LIVE_COUNT(kind, parent, info, create, destroy) int64_t kind;
    DEVICE_OBJECTS(LIVE_COUNT)
    OTHER_OBJECTS(LIVE_COUNT)
} live;

static void count(int64_t *counter, int64_t change)
{
    __atomic_fetch_add(counter, change, __ATOMIC_RELAXED);
}

/* ---- The counted calls ---- */

#define COUNTED_CALLS(kind, parent, info_type, create, destroy)                                    \
    static VKAPI_ATTR VkResult VKAPI_CALL counted_##create(parent on, const info_type *info,       \
                                                           const VkAllocationCallbacks *callbacks, \
                                                           Vk##kind *out)                          \
    {                                                                                              \
        VkResult result = real.create(on, info, callbacks, out);                                   \
        count(&live.kind, result == VK_SUCCESS);                                                   \
        return result;                                                                             \
    }                                                                                              \
    static VKAPI_ATTR void VKAPI_CALL counted_##destroy(parent on, Vk##kind object,                \
                                                        const VkAllocationCallbacks *callbacks)    \
    {                                                                                              \
        count(&live.kind, object ? -1 : 0);                                                        \
        real.destroy(on, object, callbacks);                                                       \
    }
DEVICE_OBJECTS(COUNTED_CALLS)

static VKAPI_ATTR VkResult VKAPI_CALL counted_CreateInstance(const VkInstanceCreateInfo *info,
                                                             const VkAllocationCallbacks *callbacks,
                                                             VkInstance *out)
{
    VkResult result = real.CreateInstance(info, callbacks, out);
    count(&live.Instance, result == VK_SUCCESS);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL counted_DestroyInstance(VkInstance instance,
                                                          const VkAllocationCallbacks *callbacks)
{
    count(&live.Instance, instance ? -1 : 0);
    real.DestroyInstance(instance, callbacks);
}

static VKAPI_ATTR VkResult VKAPI_CALL counted_CreateDevice(VkPhysicalDevice physical,
                                                           const VkDeviceCreateInfo *info,
                                                           const VkAllocationCallbacks *callbacks,
                                                           VkDevice *out)
{
    VkResult result = real.CreateDevice(physical, info, callbacks, out);
    count(&live.Device, result == VK_SUCCESS);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL counted_DestroyDevice(VkDevice device,
                                                        const VkAllocationCallbacks *callbacks)
{
    count(&live.Device, device ? -1 : 0);
    real.DestroyDevice(device, callbacks);
}

static VKAPI_ATTR VkResult VKAPI_CALL
counted_CreateComputePipelines(VkDevice device, VkPipelineCache cache, uint32_t number,
                               const VkComputePipelineCreateInfo *infos,
                               const VkAllocationCallbacks *callbacks, VkPipeline *out)
{
    VkResult result = real.CreateComputePipelines(device, cache, number, infos, callbacks, out);
    for (uint32_t i = 0; i < number; i++) /* some may exist although others failed */
        count(&live.Pipeline, out[i] != VK_NULL_HANDLE);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL counted_DestroyPipeline(VkDevice device, VkPipeline pipeline,
                                                          const VkAllocationCallbacks *callbacks)
{
    count(&live.Pipeline, pipeline ? -1 : 0);
    real.DestroyPipeline(device, pipeline, callbacks);
}

/* ---- Between the library and the loader ---- */

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL counted_GetDeviceProcAddr(VkDevice device,
                                                                          const char *name);

static const struct {
    const char *name;
    PFN_vkVoidFunction counted;
    PFN_vkVoidFunction *real;
} calls[] = {
#define CALL_ROW(call)                                                                             \
    {"vk" #call, (PFN_vkVoidFunction)counted_##call, (PFN_vkVoidFunction *)&real.call},
#define CALL_ROWS(kind, parent, info, create, destroy) CALL_ROW(create) CALL_ROW(destroy)
    DEVICE_OBJECTS(CALL_ROWS) OTHER_OBJECTS(CALL_ROWS) CALL_ROW(GetDeviceProcAddr)};

/* The counted call of that name, or the function that the library would get without this file. */
static PFN_vkVoidFunction instead_of(const char *name, PFN_vkVoidFunction found)
{
    for (size_t i = 0; i < ARRAY_COUNT(calls) && found; i++)
        if (!strcmp(calls[i].name, name))
            return calls[i].counted;
    return found;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL counted_GetDeviceProcAddr(VkDevice device,
                                                                          const char *name)
{
    return instead_of(name, real.GetDeviceProcAddr(device, name));
}

/* Stores the real calls, as the loader's own entry points. These find the driver by the handle, so
 * one set serves all instances and devices. If several threads open contexts, they write nothing
 * new. */
static void learn(VkInstance instance)
{
    static system_lock lock = SYSTEM_LOCK_INITIALIZER;
    system_lock_take(&lock);
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        PFN_vkVoidFunction call = real.GetInstanceProcAddr(instance, calls[i].name);
        if (call && call != *calls[i].real)
            *calls[i].real = call;
    }
    system_lock_release(&lock);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_call(VkInstance instance, const char *name)
{
    PFN_vkVoidFunction found = real.GetInstanceProcAddr(instance, name);
    if (!strcmp(name, "vkCreateInstance") || !strcmp(name, "vkGetDeviceProcAddr"))
        learn(instance);
    return instead_of(name, found);
}

static PFN_vkGetInstanceProcAddr look_up(PFN_vkGetInstanceProcAddr loader)
{
    if (real.GetInstanceProcAddr != loader)
        real.GetInstanceProcAddr = loader;
    return instance_call;
}

__attribute__((constructor)) static void begin(void)
{
    vk_hooks.look_up = look_up;
}

/* ---- The end ---- */

static void add(char *text, size_t size, int64_t number, const char *what)
{
    size_t length = strlen(text);
    if (number)
        snprintf(text + length, size - length, "%s%lld %s%s", *text ? ", " : "", (long long)number,
                 what, number == 1 ? "" : "s");
}

__attribute__((destructor)) static void end(void)
{
    count(&live.Instance, -(int64_t)vk_hooks.kept_instances);
    char text[1024] = "";
    add(text, sizeof text, memory_live_count(), "host allocation");
#define ADD(kind, parent, info, create, destroy) add(text, sizeof text, live.kind, "Vk" #kind);
    DEVICE_OBJECTS(ADD)
    OTHER_OBJECTS(ADD)
    if (!*text)
        return;
    fflush(stdout);
    fprintf(stderr, "left behind: %s\n", text);
    _exit(1);
}

/* The leak checker calls this before it checks. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return real.GetInstanceProcAddr != NULL;
}
