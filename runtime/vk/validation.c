/* The Khronos validation layer: checks that it is installed, and counts and logs its messages. */
#include "vk/internal.h"

#include <string.h>

/* Any thread that calls Vulkan may call it. */
static VkBool32 VKAPI_CALL receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                   const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    device *d = user;
    bool is_error = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    (void)types;
    atomic_add_alone(&d->validation_messages, 1);
    log_line(&d->log, is_error ? RLXVK_LOG_ERROR : RLXVK_LOG_WARNING, "validation %s: %s",
             is_error ? "error" : "warning", data->pMessage);
    return VK_FALSE; /* the call continues as without the layer */
}

VkDebugUtilsMessengerCreateInfoEXT validation_messenger_info(device *d)
{
    /* Without the GENERAL type, because those are messages of the loader about drivers and files
     * that it skipped. */
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = receive,
        .pUserData = d,
    };
}

static bool layer_listed(const VkLayerProperties *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(list[i].layerName, VALIDATION_LAYER))
            return true;
    return false;
}

/* Checked before the instance is created, because Vulkan's error for a missing layer would not name
 * the package. */
rlxvk_status validation_layer_check(device *d)
{
    rlxvk_status status;
    VkLayerProperties *list = NULL;
    uint32_t count = 0;
    VK(d, EnumerateInstanceLayerProperties(&count, NULL));
    list = memory_zeroed(count, sizeof(*list));
    if (!list) {
        status = status_fail_memory("list of layers");
        goto error;
    }
    VK(d, EnumerateInstanceLayerProperties(&count, list));
    if (!layer_listed(list, count))
        status =
            status_fail(RLXVK_E_UNSUPPORTED,
                        "validation: the layer " VALIDATION_LAYER " is not installed; install the "
                        "package vulkan-validationlayers, or open the context without validation "
                        "(RLXVK_VALIDATION=0)");
error:
    memory_free(list);
    return status;
}
