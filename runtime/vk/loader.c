/*
 * The Vulkan loader and the instance. The loader is opened at run time. So a program also starts on
 * a machine without Vulkan, and can say why it cannot use it. Invariant: loader_instance_close
 * undoes any prefix of loader_instance_open.
 */
#include "base/system.h"
#include "base/atomic.h"
#include "vk/internal.h"

/* The highest version whose structures this code knows. Devices may offer less, down to 1.2. */
#define NEWEST_API VK_API_VERSION_1_3

/*
 * The instance that the devices of a process share. It is made once and never destroyed. NVIDIA's
 * driver fails in a process that has made about ten instances, even one after another: it gives
 * wrong lanes, and later finds no devices. The thread that changes `state` from 0 to 1 writes the
 * other members and then sets it to 2.
 */
static struct {
    atomic_int state;
    VkInstance instance;
    unsigned forks; /* system_forks when it was made; a child cannot use it */
} common;

static rlxvk_status library_open(device *d)
{
    for (size_t i = 0; system_vulkan_names[i] && !d->library; i++)
        d->library = system_library_open(system_vulkan_names[i]);
    if (!d->library)
        return status_fail(RLXVK_E_NO_DEVICE, "no Vulkan loader: %s cannot be opened; %s",
                           system_vulkan_names[0], system_vulkan_advice);
    d->fn.GetInstanceProcAddr =
        (PFN_vkGetInstanceProcAddr)system_library_function(d->library, "vkGetInstanceProcAddr");
    if (!d->fn.GetInstanceProcAddr)
        return status_fail(RLXVK_E_NO_DEVICE,
                           "%s has no vkGetInstanceProcAddr; is another library in its place?",
                           system_vulkan_names[0]);
    if (vk_hooks.look_up)
        d->fn.GetInstanceProcAddr = vk_hooks.look_up(d->fn.GetInstanceProcAddr);
    return RLXVK_OK;
}

static rlxvk_status fail_function(const char *name)
{
    return status_fail(RLXVK_E_NO_DEVICE,
                       "the Vulkan loader or driver lacks vk%s; Vulkan 1.2 is needed", name);
}

/* Member, type and string come from one name, so no function can get another's pointer. */
#define LOAD_WITH(get, handle, name)                                                               \
    d->fn.name = (PFN_vk##name)d->fn.get(handle, "vk" #name);                                      \
    if (!d->fn.name)                                                                               \
        return fail_function(#name);

static rlxvk_status global_functions_load(device *d)
{
#define LOAD(name) LOAD_WITH(GetInstanceProcAddr, NULL, name)
    VK_GLOBAL_FUNCTIONS(LOAD)
#undef LOAD
    return RLXVK_OK;
}

static rlxvk_status instance_functions_load(device *d)
{
#define LOAD(name) LOAD_WITH(GetInstanceProcAddr, d->instance, name)
    VK_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
#define LOAD(name) d->fn.name = (PFN_vk##name)d->fn.GetInstanceProcAddr(d->instance, "vk" #name);
    VK_OPTIONAL_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
    return RLXVK_OK;
}

rlxvk_status loader_device_functions(device *d)
{
#define LOAD(name) d->fn.name = (PFN_vk##name)d->fn.GetDeviceProcAddr(d->handle, "vk" #name);
    VK_OPTIONAL_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    d->snapshot.checkpoints =
        d->snapshot.checkpoints && d->fn.CmdSetCheckpointNV && d->fn.GetQueueCheckpointDataNV;
    d->snapshot.buffer_marker = d->snapshot.buffer_marker && d->fn.CmdWriteBufferMarkerAMD;
#define LOAD(name) LOAD_WITH(GetDeviceProcAddr, d->handle, name)
    VK_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    return RLXVK_OK;
}

/* Chooses the API version to request, which is also the highest that may be used of a newer device.
 * It is the version that this code knows, or the loader's if that is older. */
static rlxvk_status loader_version(device *d, uint32_t *out)
{
    rlxvk_status status;
    uint32_t version = 0;
    VK(d, EnumerateInstanceVersion(&version));
    if (version < VK_API_VERSION_1_2)
        return status_fail(RLXVK_E_NO_DEVICE, "the Vulkan loader is %u.%u; 1.2 or newer is needed",
                           VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    *out = MIN(version, NEWEST_API);
    return RLXVK_OK;
error:
    return status;
}

/* Whether a layer offers an instance extension. */
static rlxvk_status extension_offered(device *d, const char *layer, const char *name, bool *out)
{
    rlxvk_status status;
    VkExtensionProperties *list = NULL;
    uint32_t count = 0;
    VK(d, EnumerateInstanceExtensionProperties(layer, &count, NULL));
    list = memory_zeroed(count, sizeof(*list));
    if (!list) {
        status = status_fail_memory("list of instance extensions");
        goto error;
    }
    VK(d, EnumerateInstanceExtensionProperties(layer, &count, list));
    *out = snapshot_has_extension(list, count, name);
error:
    memory_free(list);
    return status;
}

/* Structures to which the create info points. They must live as long as it. */
typedef struct instance_parts {
    const char *extensions[4], *layers[1];
    VkApplicationInfo application;
    VkDebugUtilsMessengerCreateInfoEXT messenger;
    VkValidationFeatureEnableEXT checks[1];
    VkValidationFeaturesEXT validation;
    VkInstanceCreateInfo info;
} instance_parts;

static void add_extension(instance_parts *p, const char *name)
{
    p->extensions[p->info.enabledExtensionCount++] = name;
}

/* The messenger is also chained to the create info, so that it gets messages about creating the
 * instance. */
static rlxvk_status add_validation(device *d, instance_parts *p)
{
    rlxvk_status status;
    bool has_features = false;
    TRY(validation_layer_check(d));
    p->layers[p->info.enabledLayerCount++] = VALIDATION_LAYER;
    add_extension(p, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    p->messenger = validation_messenger_info(d);
    p->info.pNext = &p->messenger;
    TRY(extension_offered(d, VALIDATION_LAYER, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME,
                          &has_features));
    if (!has_features) {
        log_line(&d->log, RLXVK_LOG_WARNING,
                 "rlxvk: this validation layer has no VK_EXT_validation_features: synchronization "
                 "is not checked");
        return RLXVK_OK;
    }
    add_extension(p, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    p->checks[0] = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    p->validation = (VkValidationFeaturesEXT){
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = ARRAY_COUNT(p->checks),
        .pEnabledValidationFeatures = p->checks,
    };
    p->messenger.pNext = &p->validation;
error:
    return status;
}

/* Portability drivers (Vulkan over another API) are listed only if the instance asks for them. Old
 * loaders do not know that extension. It is tried instead of looked up, because listing extensions
 * would load every driver once more. */
static VkResult create_with_portability(device *d, instance_parts *p)
{
    VkInstanceCreateInfo plain = p->info;
    add_extension(p, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    p->info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    VkResult result = VK_RESULT(d, CreateInstance(&p->info, NULL, &d->instance));
    if (result != VK_ERROR_EXTENSION_NOT_PRESENT)
        return result;
    return VK_RESULT(d, CreateInstance(&plain, NULL, &d->instance));
}

static rlxvk_status instance_create(device *d, bool validation)
{
    rlxvk_status status;
    instance_parts p = {
        .application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "rlxvk"},
        .info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO},
    };
    p.info.pApplicationInfo = &p.application;
    p.info.ppEnabledExtensionNames = p.extensions;
    p.info.ppEnabledLayerNames = p.layers;
    TRY(loader_version(d, &p.application.apiVersion));
    if (validation)
        TRY(add_validation(d, &p));
    VkResult result = create_with_portability(d, &p);
    if (result != VK_SUCCESS)
        d->instance = VK_NULL_HANDLE;
    /* The loader returns this if there is no driver. */
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return RLXVK_OK;
    status = vk_check(d, result, "CreateInstance");
error:
    return status;
}

/* Takes the shared instance. Only for devices without validation. */
static bool instance_take(device *d)
{
    d->shares_instance = atomic_load(&common.state) == 2 && common.forks == d->forks;
    if (d->shares_instance)
        d->instance = common.instance;
    return d->shares_instance;
}

static void instance_offer(device *d)
{
    int unmade = 0;
    if (!d->instance || !atomic_compare_exchange_strong(&common.state, &unmade, 1))
        return;
    common.instance = d->instance;
    common.forks = d->forks;
    d->shares_instance = true;
    vk_hooks.kept_instances++;
    atomic_store(&common.state, 2);
}

/* If there is no instance (no driver), its functions cannot be looked up and are not needed. */
rlxvk_status loader_instance_open(device *d, bool validation)
{
    rlxvk_status status;
    TRY(library_open(d));
    TRY(global_functions_load(d));
    if (validation || !instance_take(d))
        TRY(instance_create(d, validation));
    if (!d->instance)
        return RLXVK_OK;
    if (!validation)
        instance_offer(d);
    TRY(instance_functions_load(d));
    if (validation && d->fn.CreateDebugUtilsMessengerEXT) {
        VkDebugUtilsMessengerCreateInfoEXT info = validation_messenger_info(d);
        VK(d, CreateDebugUtilsMessengerEXT(d->instance, &info, NULL, &d->messenger));
    }
    return RLXVK_OK;
error:
    return status;
}

/* The library is closed last, because its code runs in all calls before. It stays open if its
 * instance stays. */
void loader_instance_close(device *d)
{
    if (d->messenger && d->fn.DestroyDebugUtilsMessengerEXT)
        d->fn.DestroyDebugUtilsMessengerEXT(d->instance, d->messenger, NULL);
    if (d->instance && d->fn.DestroyInstance && !d->shares_instance)
        d->fn.DestroyInstance(d->instance, NULL);
    if (d->library && !d->shares_instance)
        system_library_close(d->library);
    d->messenger = VK_NULL_HANDLE;
    d->instance = VK_NULL_HANDLE;
    d->library = NULL;
}
