/* Opens and closes a device, and describes it to callers. */
#include "program/context.h"
#include "base/atomic.h"
#include "base/sized.h"

/* Reads the measured choices of the device from its tuning file. The file is read once, when the
 * context is created. */
static rlxvk_status read_tuning(rlxvk_context *c, const rlxvk_context_options *options)
{
    if (!toggle(options->tuning, !c->switches.no_tuning))
        return RLXVK_OK;
    char *text = pipeline_cache_read_text(c->device, options->cache_directory, TUNING_ENDING);
    rlxvk_status status =
        tuning_create(text, c->device->snapshot.properties.deviceName, &c->tuning);
    memory_free(text);
    return status;
}

static void warn_once(const log_sink *log)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        switches_warn_unknown(log);
}

static void close_context(rlxvk_context *c)
{
    device_close(c->device);
    tuning_destroy(&c->tuning);
    trace_close(c->trace, &c->log);
    if (c->lock_made)
        system_lock_destroy(&c->lock);
    memory_free(c);
}

rlxvk_status context_create(const rlxvk_context_options *options, context_needs needs,
                            rlxvk_context **out_context)
{
    rlxvk_context_options chosen;
    rlxvk_device_info device;
    rlxvk_context *c = NULL;
    rlxvk_status status;
    TRY(status_require(out_context, "context_create", "out_context"));
    *out_context = NULL;
    TRY(sized_read(SIZED(rlxvk_context_options), options, &chosen));
    TRY(sized_read(SIZED(rlxvk_device_info), chosen.device, &device));
    chosen.device = chosen.device ? &device : NULL;
    if (!(c = memory_zeroed(1, sizeof *c)))
        TRY(status_fail_memory("context"));
    c->log = (log_sink){chosen.log, chosen.log_user};
    warn_once(&c->log);
    TRY(switches_read(&c->switches));
    c->switches.check |= needs.checks;
    c->switches.statistics = needs.statistics;
    if (!system_lock_create(&c->lock))
        TRY(status_fail_memory("context lock"));
    c->lock_made = true;
    c->references = 1;
    if (c->switches.trace[0])
        TRY(trace_open(c->switches.trace, &c->trace));
    TRY(device_open(&chosen, &c->switches, &c->device));
    TRY(read_tuning(c, &chosen));
    *out_context = c;
    return RLXVK_OK;
error:
    if (c)
        close_context(c);
    return status;
}

rlxvk_status rlxvk_context_create(const rlxvk_context_options *options, rlxvk_context **out_context)
{
    return context_create(options, (context_needs){0}, out_context);
}

rlxvk_context *context_retain(rlxvk_context *c)
{
    system_lock_take(&c->lock);
    c->references++;
    system_lock_release(&c->lock);
    return c;
}

void context_release(rlxvk_context *c)
{
    system_lock_take(&c->lock);
    bool last = --c->references == 0;
    system_lock_release(&c->lock);
    if (last)
        close_context(c);
}

/* In a fork it does nothing, because a thread of the parent, which the fork lacks, may hold the
 * lock. */
void rlxvk_context_destroy(rlxvk_context *context)
{
    if (context && !vk_is_foreign(context->device))
        context_release(context);
}

rlxvk_status rlxvk_device_list(rlxvk_device_info *devices, size_t capacity, size_t *out_count)
{
    sized_array infos;
    switches environment;
    rlxvk_status status;
    TRY(status_require_items(devices, capacity, "device_list", "devices"));
    TRY(status_require(out_count, "device_list", "out_count"));
    TRY(switches_read_limits(&environment));
    infos = sized_room(SIZED(rlxvk_device_info), devices, capacity);
    TRY(device_list(&environment, &infos, out_count));
error:
    return status;
}

rlxvk_status rlxvk_device_find(const char *text, rlxvk_device_info *out_info)
{
    switches environment;
    rlxvk_device_info info;
    rlxvk_status status;
    TRY(status_require(out_info, "device_find", "out_info"));
    TRY(switches_read(&environment));
    TRY(device_find(&environment, text ? text : environment.device, &info));
    sized_write(SIZED(rlxvk_device_info), &info, out_info);
error:
    return status;
}

void rlxvk_context_device(const rlxvk_context *context, rlxvk_device_info *out_info)
{
    rlxvk_device_info info = {0};
    if (status_require(out_info, "context_device", "out_info") != RLXVK_OK)
        return;
    if (status_require(context, "context_device", "context") == RLXVK_OK)
        profile_describe(&context->device->snapshot, &context->device->setup, &info);
    sized_write(SIZED(rlxvk_device_info), &info, out_info);
}
