/*
 * A Vulkan layer that acts as a bad driver. The environment controls it:
 *
 * - RLXVK_TEST_FAULTS=crash@12,hang@40,lost@7 says what happens at which vkQueueSubmit: abort,
 * sleep forever, or VK_ERROR_DEVICE_LOST until another device is created. Submissions of all
 * processes count, in the file RLXVK_TEST_FAULTS_COUNT.
 *   With late@5 the device takes 200 s for what was submitted until the fifth vkQueueSubmit; a wait
 *   for that long returns at once.
 *   memory@2 makes the second vkAllocateMemory of at least 1 MiB of a process fail.
 * - RLXVK_TEST_DEVICES=name|type|uuid|pci|fault;... lists the devices to show instead of the first
 *   real one. The type is a VkPhysicalDeviceType, the uuid a byte that is repeated, the pci an
 *   address or empty. The fault is empty, or the call that fails: properties, create, or enumerate,
 *   which fails for all devices.
 * - RLXVK_TEST_MARKS is nv or amd: the extension for marks in command buffers that the layer
 * offers. A mark counts when it is recorded (nv) or executed (amd).
 * - RLXVK_TEST_FAULT_TEXT is what VK_EXT_device_fault tells; the layer offers it then.
 *
 * It wraps only the calls that this library makes.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

enum { MOST_DEVICES = 16 };

/* A device that is shown. The loader wants a dispatch pointer first. */
typedef struct shown {
    void *dispatch;
    VkPhysicalDevice real;
    char name[64], pci[32], fault[32];
    int type, uuid;
} shown;

static shown devices[MOST_DEVICES];
static uint32_t device_count;
static bool lost, late;

/* Calls of the next layer that this one changes. Later the loader would give the first layer's. */
#define INSTANCE_CALLS(X)                                                                          \
    X(CreateDevice)                                                                                \
    X(EnumeratePhysicalDevices)                                                                    \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceQueueFamilyProperties)

static struct {
    PFN_vkGetInstanceProcAddr instance;
    PFN_vkGetDeviceProcAddr device;
#define MEMBER(name) PFN_vk##name name;
    INSTANCE_CALLS(MEMBER)
} next;

/* ---- Submissions ---- */

/* Counts a submission in all processes. */
static unsigned count_submission(void)
{
    static unsigned *counter;
    const char *path = getenv("RLXVK_TEST_FAULTS_COUNT");
    if (!counter && path) {
        int file = open(path, O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, sizeof *counter))
            abort();
        counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
    }
    return counter ? __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST) : 0;
}

static bool happens(const char *fault, unsigned at)
{
    const char *list = getenv("RLXVK_TEST_FAULTS");
    char item[32], *found;
    snprintf(item, sizeof item, "%s@%u", fault, at);
    for (; list && (found = strstr(list, item)); list = found + 1)
        if (!found[strlen(item)] || found[strlen(item)] == ',')
            return true;
    return false;
}

static PFN_vkQueueSubmit real_submit;
static PFN_vkWaitSemaphores real_wait;
static PFN_vkGetSemaphoreCounterValue real_counter;
static PFN_vkDeviceWaitIdle real_idle;

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count,
                                             const VkSubmitInfo *infos, VkFence fence)
{
    unsigned at = count_submission();
    if (happens("crash", at))
        abort();
    while (happens("hang", at))
        pause();
    lost = lost || happens("lost", at);
    late = late || happens("late", at);
    return lost ? VK_ERROR_DEVICE_LOST : real_submit(queue, count, infos, fence);
}

static PFN_vkAllocateMemory real_allocate;

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                               const VkAllocationCallbacks *callbacks,
                                               VkDeviceMemory *out)
{
    static unsigned large;
    if (info->allocationSize >= 1 << 20 &&
        happens("memory", __atomic_add_fetch(&large, 1, __ATOMIC_SEQ_CST)))
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return real_allocate(device, info, callbacks, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice device, const VkSemaphoreWaitInfo *info,
                                           uint64_t timeout)
{
    if (late && timeout < 200000000000)
        return VK_TIMEOUT;
    late = false;
    return lost ? VK_ERROR_DEVICE_LOST : real_wait(device, info, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL counter_value(VkDevice device, VkSemaphore semaphore,
                                                    uint64_t *out)
{
    *out = 0;
    return lost ? VK_ERROR_DEVICE_LOST : late ? VK_SUCCESS : real_counter(device, semaphore, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_idle(VkDevice device)
{
    return lost ? VK_ERROR_DEVICE_LOST : real_idle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL fault_info(VkDevice device, VkDeviceFaultCountsEXT *counts,
                                                 VkDeviceFaultInfoEXT *info)
{
    (void)device;
    *counts = (VkDeviceFaultCountsEXT){.sType = counts->sType, .addressInfoCount = 1};
    if (info) {
        snprintf(info->description, sizeof info->description, "%s",
                 getenv("RLXVK_TEST_FAULT_TEXT"));
        if (info->pAddressInfos)
            info->pAddressInfos[0] =
                (VkDeviceFaultAddressInfoEXT){VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT,
                                              0xabc000, 4096};
    }
    return VK_SUCCESS;
}

/* ---- Marks ---- */

static bool offers_marks(const char *kind)
{
    const char *offered = getenv("RLXVK_TEST_MARKS");
    return offered && !strcmp(offered, kind);
}

static const void *marks[2]; /* the last two */

static VKAPI_ATTR void VKAPI_CALL set_checkpoint(VkCommandBuffer buffer, const void *mark)
{
    (void)buffer;
    marks[0] = marks[1];
    marks[1] = mark;
}

static VKAPI_ATTR void VKAPI_CALL checkpoints(VkQueue queue, uint32_t *count,
                                              VkCheckpointDataNV *out)
{
    (void)queue;
    *count = 2;
    out[0].stage = VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
    out[0].pCheckpointMarker = (void *)marks[1];
    out[1].stage = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
    out[1].pCheckpointMarker = (void *)marks[0];
}

static PFN_vkCmdUpdateBuffer real_update;

static VKAPI_ATTR void VKAPI_CALL write_marker(VkCommandBuffer buffer,
                                               VkPipelineStageFlagBits stage, VkBuffer to,
                                               VkDeviceSize offset, uint32_t mark)
{
    (void)stage;
    real_update(buffer, to, offset, sizeof mark, &mark);
}

static PFN_vkVoidFunction extension_call(VkDevice device, const char *name)
{
    real_update = (PFN_vkCmdUpdateBuffer)next.device(device, "vkCmdUpdateBuffer");
    if (!strcmp(name, "vkGetDeviceFaultInfoEXT") && getenv("RLXVK_TEST_FAULT_TEXT"))
        return (PFN_vkVoidFunction)fault_info;
    if (!strcmp(name, "vkCmdSetCheckpointNV") && offers_marks("nv"))
        return (PFN_vkVoidFunction)set_checkpoint;
    if (!strcmp(name, "vkGetQueueCheckpointDataNV") && offers_marks("nv"))
        return (PFN_vkVoidFunction)checkpoints;
    if (!strcmp(name, "vkCmdWriteBufferMarkerAMD") && offers_marks("amd"))
        return (PFN_vkVoidFunction)write_marker;
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_call(VkDevice device, const char *name)
{
    const struct {
        const char *name;
        void *call, *real;
    } rows[] = {
        {"vkGetDeviceProcAddr", (void *)device_call, NULL},
        {"vkQueueSubmit", (void *)submit, &real_submit},
        {"vkAllocateMemory", (void *)allocate, &real_allocate},
        {"vkWaitSemaphores", (void *)wait, &real_wait},
        {"vkGetSemaphoreCounterValue", (void *)counter_value, &real_counter},
        {"vkDeviceWaitIdle", (void *)wait_idle, &real_idle},
    };
    if (extension_call(device, name))
        return extension_call(device, name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(name, rows[i].name)) {
            if (rows[i].real)
                *(PFN_vkVoidFunction *)rows[i].real = next.device(device, name);
            return (PFN_vkVoidFunction)rows[i].call;
        }
    return next.device(device, name);
}

/* ---- Devices ---- */

/* Cuts the text at the mark and returns what is behind it. */
static char *cut(char *text, char mark)
{
    char *end = strchr(text, mark);
    if (!end)
        return text + strlen(text);
    *end = 0;
    return end + 1;
}

static void show(char *text, VkPhysicalDevice real)
{
    shown *d = &devices[device_count++];
    char *type = cut(text, '|'), *uuid = cut(type, '|'), *pci = cut(uuid, '|');
    char *fault = cut(pci, '|');
    *d = (shown){*(void **)real, real, .type = atoi(type), .uuid = (int)strtol(uuid, NULL, 16)};
    snprintf(d->name, sizeof d->name, "%.63s", text);
    snprintf(d->pci, sizeof d->pci, "%.31s", pci);
    snprintf(d->fault, sizeof d->fault, "%.31s", fault);
}

static bool has_fault(const shown *d, const char *fault)
{
    return !strcmp(d->fault, fault);
}

static shown *as_shown(VkPhysicalDevice physical)
{
    shown *d = (shown *)physical;
    return d >= devices && d < devices + device_count ? d : NULL;
}

static VkPhysicalDevice real_of(VkPhysicalDevice physical)
{
    return as_shown(physical) ? as_shown(physical)->real : physical;
}

static VKAPI_ATTR VkResult VKAPI_CALL enumerate(VkInstance instance, uint32_t *count,
                                                VkPhysicalDevice *out)
{
    const char *list = getenv("RLXVK_TEST_DEVICES");
    VkPhysicalDevice real[1];
    uint32_t one = 1;
    if (!list)
        return next.EnumeratePhysicalDevices(instance, count, out);
    if (next.EnumeratePhysicalDevices(instance, &one, real) < 0 || one == 0)
        return VK_ERROR_INITIALIZATION_FAILED;
    char copy[1024], *at = copy, *rest;
    snprintf(copy, sizeof copy, "%s", list);
    for (device_count = 0; *at && device_count < MOST_DEVICES; at = rest) {
        rest = cut(at, ';');
        show(at, real[0]);
        if (has_fault(&devices[device_count - 1], "enumerate"))
            return VK_ERROR_INITIALIZATION_FAILED;
    }
    for (uint32_t i = 0; out && i < *count && i < device_count; i++)
        out[i] = (VkPhysicalDevice)&devices[i];
    *count = device_count;
    return VK_SUCCESS;
}

static void change_properties(const shown *d, VkPhysicalDeviceProperties *out)
{
    if (!d)
        return;
    snprintf(out->deviceName, sizeof out->deviceName, "%s", d->name);
    out->deviceType = (VkPhysicalDeviceType)d->type;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical,
                                             VkPhysicalDeviceProperties *out)
{
    next.GetPhysicalDeviceProperties(real_of(physical), out);
    change_properties(as_shown(physical), out);
}

static VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice physical,
                                              VkPhysicalDeviceProperties2 *out)
{
    const shown *d = as_shown(physical);
    next.GetPhysicalDeviceProperties2(real_of(physical), out);
    change_properties(d, &out->properties);
    for (VkBaseOutStructure *s = out->pNext; d && s; s = s->pNext) {
        VkPhysicalDeviceIDProperties *id = (void *)s;
        VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (void *)s;
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)
            memset(id->deviceUUID, d->uuid, sizeof id->deviceUUID);
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT)
            sscanf(d->pci, "%x:%x:%x.%x", &pci->pciDomain, &pci->pciBus, &pci->pciDevice,
                   &pci->pciFunction);
    }
}

static VKAPI_ATTR void VKAPI_CALL features2(VkPhysicalDevice physical,
                                            VkPhysicalDeviceFeatures2 *out)
{
    next.GetPhysicalDeviceFeatures2(real_of(physical), out);
    for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext)
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT)
            ((VkPhysicalDeviceFaultFeaturesEXT *)s)->deviceFault = VK_TRUE;
}

static VKAPI_ATTR void VKAPI_CALL memory(VkPhysicalDevice physical,
                                         VkPhysicalDeviceMemoryProperties *out)
{
    next.GetPhysicalDeviceMemoryProperties(real_of(physical), out);
}

static VKAPI_ATTR void VKAPI_CALL families(VkPhysicalDevice physical, uint32_t *count,
                                           VkQueueFamilyProperties *out)
{
    next.GetPhysicalDeviceQueueFamilyProperties(real_of(physical), count, out);
}

static void add_extension(const char *name, uint32_t *count, VkExtensionProperties *out,
                          uint32_t room)
{
    if (out && *count < room) {
        out[*count] = (VkExtensionProperties){.specVersion = 1};
        snprintf(out[*count].extensionName, sizeof out->extensionName, "%s", name);
    }
    ++*count;
}

static VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice physical, const char *layer,
                                                 uint32_t *count, VkExtensionProperties *out)
{
    const shown *d = as_shown(physical);
    uint32_t room = *count;
    if (d && has_fault(d, "properties"))
        return VK_ERROR_INITIALIZATION_FAILED;
    VkResult result = next.EnumerateDeviceExtensionProperties(real_of(physical), layer, count, out);
    if (result == VK_SUCCESS && d && *d->pci)
        add_extension(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, count, out, room);
    if (result == VK_SUCCESS && getenv("RLXVK_TEST_FAULT_TEXT"))
        add_extension(VK_EXT_DEVICE_FAULT_EXTENSION_NAME, count, out, room);
    if (result == VK_SUCCESS && offers_marks("nv"))
        add_extension(VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME, count, out, room);
    if (result == VK_SUCCESS && offers_marks("amd"))
        add_extension(VK_AMD_BUFFER_MARKER_EXTENSION_NAME, count, out, room);
    return result;
}

/* ---- The chain of layers ---- */

/* Finds the loader's link to the next layer, and takes it out of the chain. */
#define TAKE_LINK(type, info, structure)                                                           \
    type *link = (type *)(info)->pNext;                                                            \
    while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_##structure##_CREATE_INFO ||           \
                    link->function != VK_LAYER_LINK_INFO))                                         \
        link = (type *)link->pNext;                                                                \
    if (!link)                                                                                     \
        return VK_ERROR_INITIALIZATION_FAILED;

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *callbacks,
                                                      VkInstance *out)
{
    TAKE_LINK(VkLayerInstanceCreateInfo, info, INSTANCE)
    next.instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    VkResult result =
        ((PFN_vkCreateInstance)next.instance(NULL, "vkCreateInstance"))(info, callbacks, out);
#define LEARN(name) next.name = (PFN_vk##name)next.instance(*out, "vk" #name);
    if (result == VK_SUCCESS) {
        INSTANCE_CALLS(LEARN)
    }
    return result;
}

/* The driver does not know the extensions that this layer offers. */
static bool is_of_layer(const char *extension)
{
    static const char *const names[] = {VK_EXT_DEVICE_FAULT_EXTENSION_NAME,
                                        VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME,
                                        VK_AMD_BUFFER_MARKER_EXTENSION_NAME};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(extension, names[i]))
            return true;
    return false;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkDevice *out)
{
    TAKE_LINK(VkLayerDeviceCreateInfo, info, DEVICE)
    const char *kept[64];
    VkDeviceCreateInfo passed = *info;
    VkBaseOutStructure *s = (VkBaseOutStructure *)&passed;
    if (as_shown(physical) && has_fault(as_shown(physical), "create"))
        return VK_ERROR_INITIALIZATION_FAILED;
    next.device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    lost = false;
    for (; s->pNext; s = s->pNext)
        while (s->pNext && s->pNext->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT)
            s->pNext = s->pNext->pNext;
    passed.enabledExtensionCount = 0;
    passed.ppEnabledExtensionNames = kept;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (!is_of_layer(info->ppEnabledExtensionNames[i]))
            kept[passed.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
    return next.CreateDevice(real_of(physical), &passed, callbacks, out);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_call(VkInstance instance, const char *name)
{
    static const struct {
        const char *name;
        void *call;
    } rows[] = {
        {"vkGetInstanceProcAddr", (void *)instance_call},
        {"vkGetDeviceProcAddr", (void *)device_call},
        {"vkCreateInstance", (void *)create_instance},
        {"vkCreateDevice", (void *)create_device},
        {"vkEnumeratePhysicalDevices", (void *)enumerate},
        {"vkGetPhysicalDeviceProperties", (void *)properties},
        {"vkGetPhysicalDeviceProperties2", (void *)properties2},
        {"vkGetPhysicalDeviceFeatures2", (void *)features2},
        {"vkGetPhysicalDeviceMemoryProperties", (void *)memory},
        {"vkGetPhysicalDeviceQueueFamilyProperties", (void *)families},
        {"vkEnumerateDeviceExtensionProperties", (void *)extensions},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(name, rows[i].name))
            return (PFN_vkVoidFunction)rows[i].call;
    return next.instance ? next.instance(instance, name) : NULL;
}

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *out)
{
    out->loaderLayerInterfaceVersion = 2;
    out->pfnGetInstanceProcAddr = instance_call;
    out->pfnGetDeviceProcAddr = device_call;
    out->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
