/*
 * The statistics of a pipeline, by VK_KHR_pipeline_executable_properties. A driver may make several
 * executables of one pipeline, for example one for each subgroup size. The statistics of all follow
 * each other.
 */
#include "vk/internal.h"

#include <string.h>

static double number_of(const VkPipelineExecutableStatisticKHR *s)
{
    switch (s->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
        return s->value.b32 != 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        return (double)s->value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
        return s->value.f64;
    default:
        return (double)s->value.u64;
    }
}

static rlxvk_status add_statistic(const VkPipelineExecutableStatisticKHR *s,
                                  pipeline_description *out)
{
    pipeline_statistic added = {.value = number_of(s)};
    memcpy(added.name, s->name, sizeof added.name - 1);
    return VECTOR_PUSH(&out->statistics, added) ? RLXVK_OK : status_fail_memory("statistics");
}

static rlxvk_status add_executable(device *d, VkPipeline pipeline, uint32_t index,
                                   pipeline_description *out)
{
    rlxvk_status status;
    uint32_t count = 0;
    VkPipelineExecutableStatisticKHR *list = NULL;
    VkPipelineExecutableInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                        .pipeline = pipeline,
                                        .executableIndex = index};
    VK(d, GetPipelineExecutableStatisticsKHR(d->handle, &info, &count, NULL));
    if (!(list = memory_zeroed(count + 1, sizeof *list)))
        TRY(status_fail_memory("statistics"));
    for (uint32_t i = 0; i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    VK(d, GetPipelineExecutableStatisticsKHR(d->handle, &info, &count, list));
    for (uint32_t i = 0; i < count; i++)
        TRY(add_statistic(&list[i], out));
error:
    memory_free(list);
    return status;
}

rlxvk_status pipeline_statistics(device *d, VkPipeline pipeline, pipeline_description *out)
{
    rlxvk_status status;
    uint32_t count = 0;
    VkPipelineExecutablePropertiesKHR *list = NULL;
    VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
    VK(d, GetPipelineExecutablePropertiesKHR(d->handle, &info, &count, NULL));
    if (!(list = memory_zeroed(count + 1, sizeof *list)))
        TRY(status_fail_memory("statistics"));
    for (uint32_t i = 0; i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
    VK(d, GetPipelineExecutablePropertiesKHR(d->handle, &info, &count, list));
    for (uint32_t i = 0; i < count; i++) {
        out->subgroup_size = MAX(out->subgroup_size, list[i].subgroupSize);
        TRY(add_executable(d, pipeline, i, out));
    }
error:
    memory_free(list);
    if (status != RLXVK_OK)
        pipeline_description_destroy(out);
    return status;
}

void pipeline_description_destroy(pipeline_description *description)
{
    VECTOR_FREE(&description->statistics);
    memset(description, 0, sizeof *description);
}
