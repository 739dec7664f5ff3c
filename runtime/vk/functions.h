/*
 * Every Vulkan entry point that the library calls, by the level at which it is loaded. A member of
 * vk_functions has the entry point's name without "vk". Global and instance members are set after
 * loader_instance_open, device members after device_open. Before that they are NULL. Optional
 * members stay NULL if they are not offered.
 */
#ifndef RLXVK_FUNCTIONS_H
#define RLXVK_FUNCTIONS_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include "vk/newer.h"

#define VK_GLOBAL_FUNCTIONS(X)                                                                     \
    X(CreateInstance)                                                                              \
    X(EnumerateInstanceExtensionProperties)                                                        \
    X(EnumerateInstanceLayerProperties)                                                            \
    X(EnumerateInstanceVersion)

#define VK_INSTANCE_FUNCTIONS(X)                                                                   \
    X(CreateDevice)                                                                                \
    X(DestroyInstance)                                                                             \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(EnumeratePhysicalDevices)                                                                    \
    X(GetDeviceProcAddr)                                                                           \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceQueueFamilyProperties)

/* Functions of VK_EXT_debug_utils, which is enabled only with validation, and of device
 * extensions. */
#define VK_OPTIONAL_INSTANCE_FUNCTIONS(X)                                                          \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)                                             \
    X(CreateDebugUtilsMessengerEXT)                                                                \
    X(DestroyDebugUtilsMessengerEXT)

#define VK_DEVICE_FUNCTIONS(X)                                                                     \
    X(AllocateCommandBuffers)                                                                      \
    X(AllocateDescriptorSets)                                                                      \
    X(AllocateMemory)                                                                              \
    X(BeginCommandBuffer)                                                                          \
    X(BindBufferMemory)                                                                            \
    X(CmdBindDescriptorSets)                                                                       \
    X(CmdBindPipeline)                                                                             \
    X(CmdCopyBuffer)                                                                               \
    X(CmdDispatch)                                                                                 \
    X(CmdDispatchBase)                                                                             \
    X(CmdDispatchIndirect)                                                                         \
    X(CmdFillBuffer)                                                                               \
    X(CmdPipelineBarrier)                                                                          \
    X(CmdPushConstants)                                                                            \
    X(CmdResetQueryPool)                                                                           \
    X(CmdUpdateBuffer)                                                                             \
    X(CmdWriteTimestamp)                                                                           \
    X(CreateBuffer)                                                                                \
    X(CreateCommandPool)                                                                           \
    X(CreateComputePipelines)                                                                      \
    X(CreateDescriptorPool)                                                                        \
    X(CreateDescriptorSetLayout)                                                                   \
    X(CreatePipelineCache)                                                                         \
    X(CreatePipelineLayout)                                                                        \
    X(CreateQueryPool)                                                                             \
    X(CreateSemaphore)                                                                             \
    X(CreateShaderModule)                                                                          \
    X(DestroyBuffer)                                                                               \
    X(DestroyCommandPool)                                                                          \
    X(DestroyDescriptorPool)                                                                       \
    X(DestroyDescriptorSetLayout)                                                                  \
    X(DestroyDevice)                                                                               \
    X(DestroyPipeline)                                                                             \
    X(DestroyPipelineCache)                                                                        \
    X(DestroyPipelineLayout)                                                                       \
    X(DestroyQueryPool)                                                                            \
    X(DestroySemaphore)                                                                            \
    X(DestroyShaderModule)                                                                         \
    X(DeviceWaitIdle)                                                                              \
    X(EndCommandBuffer)                                                                            \
    X(FlushMappedMemoryRanges)                                                                     \
    X(FreeCommandBuffers)                                                                          \
    X(FreeMemory)                                                                                  \
    X(GetBufferMemoryRequirements)                                                                 \
    X(GetDeviceQueue)                                                                              \
    X(GetPipelineCacheData)                                                                        \
    X(GetQueryPoolResults)                                                                         \
    X(GetSemaphoreCounterValue)                                                                    \
    X(InvalidateMappedMemoryRanges)                                                                \
    X(MapMemory)                                                                                   \
    X(QueueSubmit)                                                                                 \
    X(QueueWaitIdle)                                                                               \
    X(ResetCommandBuffer)                                                                          \
    X(ResetCommandPool)                                                                            \
    X(ResetDescriptorPool)                                                                         \
    X(SignalSemaphore)                                                                             \
    X(UnmapMemory)                                                                                 \
    X(UpdateDescriptorSets)                                                                        \
    X(WaitSemaphores)

/* Functions of device extensions. They are NULL if the extension is not enabled. */
#define VK_OPTIONAL_DEVICE_FUNCTIONS(X)                                                            \
    X(CmdSetCheckpointNV)                                                                          \
    X(CmdWriteBufferMarkerAMD)                                                                     \
    X(GetDeviceFaultInfoEXT)                                                                       \
    X(GetPipelineExecutablePropertiesKHR)                                                          \
    X(GetPipelineExecutableStatisticsKHR)                                                          \
    X(GetQueueCheckpointDataNV)

typedef struct vk_functions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define VK_MEMBER(name) PFN_vk##name name;
    VK_GLOBAL_FUNCTIONS(VK_MEMBER)
    VK_INSTANCE_FUNCTIONS(VK_MEMBER)
    VK_OPTIONAL_INSTANCE_FUNCTIONS(VK_MEMBER)
    VK_DEVICE_FUNCTIONS(VK_MEMBER)
    VK_OPTIONAL_DEVICE_FUNCTIONS(VK_MEMBER)
#undef VK_MEMBER
} vk_functions;

#endif
