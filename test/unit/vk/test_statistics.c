/*
 * Statistics of pipelines, with planted drivers: what a description reads, when the extension is
 * enabled, and which figures the statistics stand for. A software driver may have none of its own.
 */
#include "base/system.h"
#include "bench/bench_figures.h"
#include "cli/probe.h"
#include "program/context.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <rlxvk_ops.h>

#define EXTENSION VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME

/* ---- A driver that tells statistics ---- */

static uint32_t failing_executable; /* 0: none; else its number + 1 */

static VKAPI_ATTR VkResult VKAPI_CALL planted_executables(VkDevice device,
                                                          const VkPipelineInfoKHR *info,
                                                          uint32_t *count,
                                                          VkPipelineExecutablePropertiesKHR *list)
{
    (void)device;
    assert_true(info->pipeline != VK_NULL_HANDLE);
    for (uint32_t i = 0; list && i < *count; i++)
        list[i].subgroupSize = 32 * (i + 1);
    *count = 2;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL planted_statistics(VkDevice device,
                                                         const VkPipelineExecutableInfoKHR *info,
                                                         uint32_t *count,
                                                         VkPipelineExecutableStatisticKHR *list)
{
    static const VkPipelineExecutableStatisticKHR first[] = {
        {.name = "VGPRs",
         .format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR,
         .value.u64 = 96},
        {.name = "Spilled VGPRs",
         .format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR,
         .value.i64 = -3},
        {.name = "Early",
         .format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR,
         .value.b32 = VK_TRUE}};
    static const VkPipelineExecutableStatisticKHR second[] = {
        {.name = "VGPRs",
         .format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR,
         .value.f64 = 128.5}};
    (void)device;
    if (failing_executable == info->executableIndex + 1)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    const VkPipelineExecutableStatisticKHR *from = info->executableIndex ? second : first;
    uint32_t has = info->executableIndex ? ARRAY_COUNT(second) : ARRAY_COUNT(first);
    for (uint32_t i = 0; list && i < *count && i < has; i++) {
        assert_int_equal(list[i].sType, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR);
        list[i] = from[i];
    }
    *count = has;
    return VK_SUCCESS;
}

static PFN_vkCreateComputePipelines create_pipelines;

/* The driver's cache may have the pipeline. So this takes processor time until the clock sees it:
 * the one of Windows moves every 16 ms. */
static VKAPI_ATTR VkResult VKAPI_CALL planted_creation(VkDevice device, VkPipelineCache cache,
                                                       uint32_t count,
                                                       const VkComputePipelineCreateInfo *infos,
                                                       const VkAllocationCallbacks *callbacks,
                                                       VkPipeline *out)
{
    double begin = system_thread_seconds();
    uint64_t end = system_nanoseconds() + 1000000000u;
    while (system_thread_seconds() <= begin && system_nanoseconds() < end)
        ;
    return create_pipelines(device, cache, count, infos, callbacks, out);
}

static void make_a_pipeline(rlxvk_context *c)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4))));
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* The pipelines are made before the driver is planted, because only then are they valid. */
static rlxvk_context *open_planted(void)
{
    rlxvk_context *c = open_context(&(rlxvk_context_options){.cache_directory = ""});
    create_pipelines = c->device->fn.CreateComputePipelines;
    c->device->fn.CreateComputePipelines = planted_creation;
    make_a_pipeline(c);
    c->device->statistics = true;
    c->device->fn.GetPipelineExecutablePropertiesKHR = planted_executables;
    c->device->fn.GetPipelineExecutableStatisticsKHR = planted_statistics;
    return c;
}

static void a_description_has_all_statistics(void **state)
{
    static const struct {
        const char *name;
        double value;
    } wanted[] = {{"VGPRs", 96}, {"Spilled VGPRs", -3}, {"Early", 1}, {"VGPRs", 128.5}};
    rlxvk_context *c = open_planted();
    pipeline_description about;
    (void)state;
    assert_int_equal(pipeline_count_made(c->device), 1);
    expect_ok(pipeline_describe(c->device, 0, &about));
    assert_int_equal(about.subgroup_size, 64);
    assert_true(about.seconds > 0);
    assert_true(about.request.kernel < KERNEL_COUNT);
    assert_int_equal(about.statistics.count, ARRAY_COUNT(wanted));
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        assert_string_equal(about.statistics.items[i].name, wanted[i].name);
        assert_true(about.statistics.items[i].value == wanted[i].value);
    }
    pipeline_description_destroy(&about);
    close_context(c);
}

static void a_failed_description_is_empty(void **state)
{
    rlxvk_context *c = open_planted();
    pipeline_description about;
    (void)state;
    expect_error(pipeline_describe(c->device, 1, &about), RLXVK_E_INDEX, "no pipeline 1");
    failing_executable = 2; /* the statistics of the first are read already */
    expect_error(pipeline_describe(c->device, 0, &about), RLXVK_E_OUT_OF_HOST_MEMORY,
                 "vkGetPipelineExecutableStatisticsKHR");
    failing_executable = 0;
    assert_null(about.statistics.items);
    assert_int_equal(about.statistics.count, 0);
    close_context(c);
}

static void without_the_switch_there_are_no_statistics(void **state)
{
    rlxvk_context *c = open_planted();
    pipeline_description about;
    (void)state;
    c->device->statistics = false;
    expect_ok(pipeline_describe(c->device, 0, &about));
    assert_int_equal(about.statistics.count, 0);
    assert_true(about.seconds > 0);
    close_context(c);
}

/* ---- When the extension is enabled ---- */

static PFN_vkGetInstanceProcAddr beneath;
static PFN_vkGetInstanceProcAddr (*look_up_before)(PFN_vkGetInstanceProcAddr loader);
static PFN_vkEnumerateDeviceExtensionProperties extensions_beneath;
static PFN_vkGetPhysicalDeviceFeatures2 features_beneath;
static bool offers_extension, offers_feature; /* of the planted device */
static bool was_enabled, was_chained;

static VKAPI_ATTR VkResult VKAPI_CALL planted_extensions(VkPhysicalDevice physical,
                                                         const char *layer, uint32_t *count,
                                                         VkExtensionProperties *list)
{
    uint32_t all = 0, room = list ? *count : 0;
    VkResult result = extensions_beneath(physical, layer, &all, NULL);
    if (result == VK_SUCCESS && list)
        result = extensions_beneath(physical, layer, count, list);
    for (uint32_t i = 0; list && i < all; i++)
        if (!strcmp(list[i].extensionName, EXTENSION))
            list[i].extensionName[0] = 0;
    if (list && room > all)
        list[all] = (VkExtensionProperties){EXTENSION, 1};
    *count = all + offers_extension;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL planted_features(VkPhysicalDevice physical,
                                                   VkPhysicalDeviceFeatures2 *features)
{
    features_beneath(physical, features);
    for (VkBaseOutStructure *s = features->pNext; s; s = s->pNext)
        if (s->sType ==
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR)
            ((VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR *)s)->pipelineExecutableInfo =
                offers_feature;
}

/* Notes what is enabled, and makes no device. */
static VKAPI_ATTR VkResult VKAPI_CALL planted_device(VkPhysicalDevice physical,
                                                     const VkDeviceCreateInfo *info,
                                                     const VkAllocationCallbacks *allocator,
                                                     VkDevice *out)
{
    (void)physical, (void)allocator, (void)out;
    was_enabled = was_chained = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        was_enabled = was_enabled || !strcmp(info->ppEnabledExtensionNames[i], EXTENSION);
    for (const VkBaseInStructure *s = info->pNext; s; s = s->pNext)
        was_chained =
            was_chained ||
            s->sType ==
                VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    return VK_ERROR_INITIALIZATION_FAILED;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL planted_entry(VkInstance instance, const char *name)
{
    PFN_vkVoidFunction found = beneath(instance, name);
    if (!strcmp(name, "vkEnumerateDeviceExtensionProperties")) {
        extensions_beneath = (PFN_vkEnumerateDeviceExtensionProperties)found;
        return (PFN_vkVoidFunction)planted_extensions;
    }
    if (!strcmp(name, "vkGetPhysicalDeviceFeatures2")) {
        features_beneath = (PFN_vkGetPhysicalDeviceFeatures2)found;
        return (PFN_vkVoidFunction)planted_features;
    }
    return strcmp(name, "vkCreateDevice") ? found : (PFN_vkVoidFunction)planted_device;
}

static PFN_vkGetInstanceProcAddr plant(PFN_vkGetInstanceProcAddr loader)
{
    beneath = look_up_before ? look_up_before(loader) : loader;
    return planted_entry;
}

static void open_and_expect(bool statistics, rlxvk_status wanted, const char *part)
{
    rlxvk_context *c = NULL;
    was_enabled = was_chained = false;
    look_up_before = vk_hooks.look_up;
    vk_hooks.look_up = plant;
    rlxvk_status status = context_create(&(rlxvk_context_options){.cache_directory = ""},
                                         (context_needs){.statistics = statistics}, &c);
    vk_hooks.look_up = look_up_before;
    expect_error(status, wanted, part);
    assert_null(c);
}

static void the_extension_is_enabled_only_if_wanted(void **state)
{
    (void)state;
    offers_extension = offers_feature = true;
    open_and_expect(true, RLXVK_E_VULKAN, "vkCreateDevice");
    assert_true(was_enabled && was_chained);
    open_and_expect(false, RLXVK_E_VULKAN, "vkCreateDevice");
    assert_false(was_enabled || was_chained);
    for (int i = 0; i < 2; i++) {
        offers_extension = i == 0;
        offers_feature = i == 1;
        open_and_expect(true, RLXVK_E_UNSUPPORTED,
                        "tells no statistics of pipelines: it lacks VK_KHR_");
    }
}

/* The device at hand may tell statistics or not. */
static void the_real_driver_tells_statistics_or_why_not(void **state)
{
    rlxvk_context *c = NULL;
    pipeline_description about;
    (void)state;
    rlxvk_status status = context_create(&(rlxvk_context_options){.cache_directory = ""},
                                         (context_needs){.statistics = true}, &c);
    if (status != RLXVK_OK) {
        expect_error(status, RLXVK_E_UNSUPPORTED, EXTENSION);
        return;
    }
    make_a_pipeline(c);
    expect_ok(pipeline_describe(c->device, 0, &about));
    pipeline_description_destroy(&about);
    close_context(c);
}

/* ---- Figures ---- */

static bench_figures figures_of(const pipeline_statistic *statistics, size_t count)
{
    pipeline_description about = {0};
    about.statistics.items = (pipeline_statistic *)statistics;
    about.statistics.count = count;
    return bench_figures_of(&about);
}

static void statistics_get_common_names(void **state)
{
    static const pipeline_statistic amd[] = {{"VGPRs", 96},      {"Pre-Sched VGPRs", 80},
                                             {"SGPRs", 108},     {"Spilled VGPRs", 7},
                                             {"Hash", 12345678}, {"Spilled SGPRs", 2},
                                             {"LDS size", 1024}, {"Scratch size", 4096},
                                             {"VGPRs", 48},      {"Latency", 3525},
                                             {"VALU", 353},      {"Inverse Throughput", 935}};
    static const double wanted[FIGURE_COUNT] = {7, 2, 4096, 96, 108, 1024, -1, -1, -1, 3525, 935};
    static const pipeline_statistic adreno[] = {{"Registers used", 12}, {"STP Count", 5}};
    static const pipeline_statistic nvidia[] = {{"Number of GPRs", 40}, {"Spills to memory", 6}};
    static const pipeline_statistic apple[] = {{"GPRs", 75}, {"Spills", 8}};
    (void)state;
    bench_figures f = figures_of(amd, ARRAY_COUNT(amd));
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        if (f.at[i] != wanted[i])
            fail_msg("%s: %g, not %g", bench_figure_name((figure)i), f.at[i], wanted[i]);
    f = figures_of(adreno, 2);
    assert_true(f.at[FIGURE_REGISTERS] == 12 && f.at[FIGURE_SPILLS] == 5);
    f = figures_of(nvidia, 2);
    assert_true(f.at[FIGURE_REGISTERS] == 40 && f.at[FIGURE_SPILLS] == 6);
    f = figures_of(apple, 2);
    assert_true(f.at[FIGURE_REGISTERS] == 75 && f.at[FIGURE_SPILLS] == 8);
    f = figures_of(amd, 0);
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        assert_true(f.at[i] == -1);
}

static void spills_are_worse_than_scratch_and_that_than_time(void **state)
{
    static const struct {
        pipeline_statistic statistics[2];
        double seconds;
        bool troubled;
    } worst_first[] = {
        {{{"Spilled VGPRs", 9}, {"Scratch size", 0}}, 0.1, true},
        {{{"Spilled VGPRs", 1}, {"Scratch size", 4096}}, 0.1, true},
        {{{"Spilled VGPRs", 0}, {"Scratch size", 512}}, 0.1, true},
        {{{"Spilled SGPRs", 50}, {"Scratch size", 0}}, 0.1, false},
        {{{"Spilled VGPRs", 0}, {"VGPRs", 256}}, 3, false},
        {{{"Spilled VGPRs", 0}, {"VGPRs", 256}}, 1, false},
    };
    (void)state;
    for (size_t a = 0; a < ARRAY_COUNT(worst_first); a++) {
        bench_figures x = figures_of(worst_first[a].statistics, 2);
        assert_int_equal(bench_is_troubled(&x), worst_first[a].troubled);
        for (size_t b = 0; b < ARRAY_COUNT(worst_first); b++) {
            bench_figures y = figures_of(worst_first[b].statistics, 2);
            assert_int_equal(bench_compare_trouble(&x, worst_first[a].seconds, &y,
                                                   worst_first[b].seconds),
                             (a > b) - (a < b));
        }
    }
}

/* ---- Devices that execute nothing ---- */

static VKAPI_ATTR void VKAPI_CALL planted_dispatch(VkCommandBuffer buffer, uint32_t x, uint32_t y,
                                                   uint32_t z)
{
    (void)buffer, (void)x, (void)y, (void)z;
}

static void a_device_that_executes_nothing_is_refused(void **state)
{
    rlxvk_context *c = open_context(&(rlxvk_context_options){.cache_directory = ""});
    bool executes = false;
    (void)state;
    expect_ok(probe_executes(c, &executes));
    assert_true(executes);
    expect_ok(probe_require(c));
    c->device->fn.CmdDispatch = planted_dispatch;
    expect_ok(probe_executes(c, &executes));
    assert_false(executes);
    expect_error(probe_require(c), RLXVK_E_UNSUPPORTED, "executes nothing");
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_has_all_statistics),
        cmocka_unit_test(a_failed_description_is_empty),
        cmocka_unit_test(without_the_switch_there_are_no_statistics),
        cmocka_unit_test(the_extension_is_enabled_only_if_wanted),
        cmocka_unit_test(the_real_driver_tells_statistics_or_why_not),
        cmocka_unit_test(statistics_get_common_names),
        cmocka_unit_test(spills_are_worse_than_scratch_and_that_than_time),
        cmocka_unit_test(a_device_that_executes_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
