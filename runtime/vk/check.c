/*
 * Turns a VkResult into a status, and has the hooks of the tests. Every call that can fail goes
 * through VK() or VK_RESULT(), and so through vk_inject. It counts the call by name and decides
 * whether it fails. It may run on several threads at once.
 */
#include "vk/vk.h"

#include <string.h>

vk_test_hooks vk_hooks;

#define RESULT_ROW(name)                                                                           \
    {                                                                                              \
        VK_##name, "VK_" #name                                                                     \
    }
static const struct {
    VkResult result;
    const char *name;
} result_rows[] = {
    RESULT_ROW(NOT_READY),
    RESULT_ROW(TIMEOUT),
    RESULT_ROW(EVENT_SET),
    RESULT_ROW(EVENT_RESET),
    RESULT_ROW(INCOMPLETE),
    RESULT_ROW(ERROR_OUT_OF_HOST_MEMORY),
    RESULT_ROW(ERROR_OUT_OF_DEVICE_MEMORY),
    RESULT_ROW(ERROR_INITIALIZATION_FAILED),
    RESULT_ROW(ERROR_DEVICE_LOST),
    RESULT_ROW(ERROR_MEMORY_MAP_FAILED),
    RESULT_ROW(ERROR_LAYER_NOT_PRESENT),
    RESULT_ROW(ERROR_EXTENSION_NOT_PRESENT),
    RESULT_ROW(ERROR_FEATURE_NOT_PRESENT),
    RESULT_ROW(ERROR_INCOMPATIBLE_DRIVER),
    RESULT_ROW(ERROR_TOO_MANY_OBJECTS),
    RESULT_ROW(ERROR_FORMAT_NOT_SUPPORTED),
    RESULT_ROW(ERROR_FRAGMENTED_POOL),
    RESULT_ROW(ERROR_UNKNOWN),
    RESULT_ROW(ERROR_OUT_OF_POOL_MEMORY),
    RESULT_ROW(ERROR_INVALID_EXTERNAL_HANDLE),
    RESULT_ROW(ERROR_FRAGMENTATION),
    RESULT_ROW(ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
    RESULT_ROW(PIPELINE_COMPILE_REQUIRED),
    RESULT_ROW(ERROR_VALIDATION_FAILED_EXT),
    RESULT_ROW(ERROR_INVALID_SHADER_NV),
};

/* A result has a status of its own if a program can react to it; all others are E_VULKAN. */
static const struct {
    VkResult result;
    rlxvk_status status;
    const char *remedy;
} status_rows[] = {
    {VK_TIMEOUT, RLXVK_E_TIMEOUT, "the device did not finish in time"},
    {VK_ERROR_OUT_OF_HOST_MEMORY, RLXVK_E_OUT_OF_HOST_MEMORY,
     "the driver ran out of host memory; free some and try again"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, RLXVK_E_OUT_OF_DEVICE_MEMORY,
     "the device's memory is used up; destroy executables or use smaller ones"},
    {VK_ERROR_DEVICE_LOST, RLXVK_E_DEVICE_LOST,
     "the device is lost; destroy everything on it and open it again"},
};

static const char *result_name(VkResult result)
{
    for (size_t i = 0; i < ARRAY_COUNT(result_rows); i++)
        if (result_rows[i].result == result)
            return result_rows[i].name;
    return "VkResult";
}

/* A lost device is noted here, because every result passes through this function. */
rlxvk_status vk_check(device *d, VkResult result, const char *call)
{
    if (result == VK_SUCCESS)
        return RLXVK_OK;
    if (result == VK_ERROR_DEVICE_LOST && d)
        atomic_write_alone(&d->lost, true);
    /* `call` is the text of a whole call expression. Its name ends at the parenthesis. */
    int length = (int)strcspn(call, "(");
    for (size_t i = 0; i < ARRAY_COUNT(status_rows); i++)
        if (status_rows[i].result == result)
            return status_fail(status_rows[i].status, "vk%.*s: %s: %s", length, call,
                               result_name(result), status_rows[i].remedy);
    return status_fail(RLXVK_E_VULKAN, "vk%.*s: %s (%d); RLXVK_VALIDATION=1 may say more", length,
                       call, result_name(result), (int)result);
}

static void count_call(_Atomic uint64_t *counter)
{
    atomic_add_alone(counter, 1);
}

static bool starts_with(const char *call, const char *prefix)
{
    return !strncmp(call, prefix, strlen(prefix));
}

/* Counts down with a compare-and-swap. So exactly one call fails, even if several threads call. */
bool vk_inject(const char *call)
{
    count_call(&vk_hooks.calls);
    if (starts_with(call, "Create") || starts_with(call, "Allocate"))
        count_call(&vk_hooks.created);
    else if (starts_with(call, "BeginCommandBuffer"))
        count_call(&vk_hooks.recorded);
    else if (starts_with(call, "QueueSubmit"))
        count_call(&vk_hooks.submitted);
    uint64_t left = atomic_read_alone(&vk_hooks.fail_at);
    while (left != 0)
        if (atomic_compare_exchange_weak_explicit(&vk_hooks.fail_at, &left, left - 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return left == 1;
    return false;
}

VkResult vk_injected(void)
{
    return vk_hooks.fail_result ? vk_hooks.fail_result : VK_ERROR_OUT_OF_DEVICE_MEMORY;
}
