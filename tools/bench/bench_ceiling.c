/* Measures the ceilings. That of arithmetic takes one dispatch of the kernel fma_peak, straight
 * through runtime/vk. It uses timestamps, or the clock if the device has none. The best of several
 * runs counts. */
#include "args/elementwise.h"
#include "bench/bench.h"
#include "program/context.h"
#include "op/op.h"

enum { INVOCATIONS_GPU = 1 << 20, INVOCATIONS_CPU = 1 << 12, ROUNDS = 1 << 12, TURNS = 8 };

typedef struct peak {
    device *d;
    memory_block block;
    VkCommandPool commands;
    VkDescriptorPool descriptors;
    VkQueryPool queries;
    VkSemaphore timeline;
    VkCommandBuffer buffer;
    uint32_t invocations, workgroup;
} peak;

static rlxvk_status peak_create_objects(peak *p)
{
    uint32_t sets[KERNEL_MAX_BINDINGS + 1] = {[1] = 1};
    VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 2};
    rlxvk_status status;
    TRY(memory_block_create(p->d, MEMORY_ARENA, sizeof(float) * p->invocations, &p->block));
    TRY(command_pool_create(p->d, &p->commands));
    TRY(command_buffers_allocate(p->d, p->commands, 1, &p->buffer));
    TRY(vk_descriptor_pool_create(p->d, sets, &p->descriptors));
    TRY(vk_timeline_create(p->d, &p->timeline));
    if (p->d->setup.timestamps)
        VK(p->d, CreateQueryPool(p->d->handle, &queries, NULL, &p->queries));
error:
    return status;
}

static void record_timestamp(peak *p, uint32_t query)
{
    if (p->queries)
        p->d->fn.CmdWriteTimestamp(p->buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, p->queries,
                                   query);
}

static rlxvk_status peak_record(peak *p)
{
    const struct fma_peak_args arguments = {.rounds = ROUNDS, .scale = 0.999f, .shift = 0.001f};
    pipeline_request request = {.kernel = KERNEL_FMA_PEAK, .constant_count = 1};
    buffer_range range = {p->block.buffer, 0, p->block.size};
    const vk_functions *fn = &p->d->fn;
    VkPipeline pipeline;
    VkDescriptorSet set;
    rlxvk_status status;
    request.constants[LOCAL_SIZE] = p->workgroup;
    TRY(pipeline_get_all(p->d, &request, 1, &pipeline));
    TRY(vk_descriptor_set_write(p->d, p->descriptors, &range, 1, &set));
    TRY(command_begin(p->d, p->buffer));
    if (p->queries)
        fn->CmdResetQueryPool(p->buffer, p->queries, 0, 2);
    fn->CmdBindPipeline(p->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    fn->CmdBindDescriptorSets(p->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, p->d->pipeline_layouts[1],
                              0, 1, &set, 0, NULL);
    fn->CmdPushConstants(p->buffer, p->d->pipeline_layouts[1], VK_SHADER_STAGE_COMPUTE_BIT, 0,
                         sizeof arguments, &arguments);
    record_timestamp(p, 0);
    fn->CmdDispatch(p->buffer, p->invocations / p->workgroup, 1, 1);
    record_timestamp(p, 1);
    TRY(command_end(p->d, p->buffer));
error:
    return status;
}

static rlxvk_status peak_run(peak *p, uint64_t turn, double *out_seconds)
{
    uint64_t ticks[2];
    rlxvk_status status;
    double begin = clock_seconds();
    TRY(vk_queue_submit(p->d, p->timeline, 0, turn, &p->buffer, 1));
    TRY(vk_timeline_wait(p->d, p->timeline, turn, 60000000000u));
    *out_seconds = clock_seconds() - begin;
    if (p->queries) {
        VK(p->d, GetQueryPoolResults(p->d->handle, p->queries, 0, 2, sizeof ticks, ticks,
                                     sizeof *ticks, VK_QUERY_RESULT_64_BIT));
        *out_seconds =
            (double)(ticks[1] - ticks[0]) * 1e-9 * p->d->snapshot.properties.limits.timestampPeriod;
    }
error:
    return status;
}

static void peak_destroy(peak *p)
{
    const vk_functions *fn = &p->d->fn;
    fn->DestroyQueryPool(p->d->handle, p->queries, NULL);
    fn->DestroySemaphore(p->d->handle, p->timeline, NULL);
    fn->DestroyDescriptorPool(p->d->handle, p->descriptors, NULL);
    fn->DestroyCommandPool(p->d->handle, p->commands, NULL);
    memory_block_destroy(p->d, &p->block);
}

static rlxvk_status measure_fma(rlxvk_context *context, double *out_flops)
{
    const device_profile *profile = &context->device->setup.profile;
    bool cpu = profile_is_software(profile);
    peak p = {.d = context->device,
              .invocations = cpu ? INVOCATIONS_CPU : INVOCATIONS_GPU,
              .workgroup = profile->workgroup_size};
    double best = 0, seconds;
    rlxvk_status status;
    TRY(peak_create_objects(&p));
    TRY(peak_record(&p));
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        TRY(peak_run(&p, turn, &seconds));
        double flops = 2.0 * FMA_PEAK_CHAINS * ROUNDS * p.invocations / seconds;
        best = MAX(best, flops);
    }
    *out_flops = best;
error:
    peak_destroy(&p);
    return status;
}

rlxvk_status bench_measure_ceilings(rlxvk_context *context, double seconds, bench_ceilings *out)
{
    bool cpu = profile_is_software(&context->device->setup.profile);
    bench_setup setup = {.context = context, .warm_up = seconds, .seconds = seconds};
    bench_result copy;
    rlxvk_status status;
    *out = (bench_ceilings){0};
    TRY(measure_fma(context, &out->fma_flops));
    for (int turn = 0; turn < 3; turn++) { /* the best of three, because a busy machine must not
                                              lower a ceiling */
        TRY(bench_run(&setup, (cpu ? bench_cpu_cases : bench_gpu_cases)[0].line, &copy));
        out->copy_bytes = MAX(out->copy_bytes, copy.bytes / copy.microseconds * 1e6);
    }
error:
    return status;
}

double bench_share(const bench_ceilings *c, double bytes, double flops, double microseconds)
{
    double seconds = microseconds * 1e-6;
    double memory = c->copy_bytes > 0 ? bytes / seconds / c->copy_bytes : 0;
    double compute = c->fma_flops > 0 ? flops / seconds / c->fma_flops : 0;
    return microseconds > 0 ? MAX(memory, compute) : 0;
}
