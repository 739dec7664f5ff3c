/*
 * Compares what a plan needs with what the device has. What a driver tells as free is an estimate,
 * and some give more. So it decides only which weights move to the host. A compile fails for it
 * only if an allocation does.
 */
#include "program/room.h"

/* This part of the free memory stays for staging, feeds, command buffers and descriptors. */
#define SPARE_PART 16

/* If host memory is the same heap, nothing is gained by moving weights there. */
static uint64_t free_for_plan(const device *d)
{
    const VkPhysicalDeviceMemoryProperties *memory = &d->snapshot.memory;
    memory_room room = memory_room_of(d, MEMORY_ARENA);
    uint64_t spare = memory_room_free(&room) / SPARE_PART;
    bool one_heap = memory->memoryTypes[d->setup.arena_type].heapIndex ==
                    memory->memoryTypes[d->setup.upload_type].heapIndex;
    return one_heap ? UINT64_MAX : memory_room_free(&room) - spare;
}

uint64_t room_on_device(const program *p)
{
    const program_options *o = &p->options;
    uint64_t most = o->device_bytes ? o->device_bytes
                    : o->host_bytes ? free_for_plan(p->device)
                                    : UINT64_MAX;
    return o->aimed_bytes ? MIN(most, o->aimed_bytes) : most;
}

/* "12 bytes of device memory are needed (weights 8, state 4, scratch 0); 6 bytes are free of 10" */
static void append_needs(const program *p, text *out)
{
    const plan *plan = &p->plan;
    memory_room room = memory_room_of(p->device, MEMORY_ARENA);
    text_append(out,
                "%llu bytes of device memory are needed (weights %llu, state %llu, scratch %llu); ",
                (unsigned long long)plan_device_bytes(plan),
                (unsigned long long)plan->class_bytes[CLASS_WEIGHTS],
                (unsigned long long)plan->class_bytes[CLASS_STATE],
                (unsigned long long)plan->class_bytes[CLASS_SCRATCH]);
    memory_room_append(&room, out);
}

static void append_remedy(const program *p, text *out)
{
    const plan *plan = &p->plan;
    uint64_t moved = plan->class_bytes[CLASS_HOST_WEIGHTS];
    if (moved)
        text_append(out, "; %llu bytes of weights lie on the host already",
                    (unsigned long long)moved);
    else if (!p->options.host_bytes)
        text_append(out, "; let weights lie on the host (host_weights_bytes)");
    if (plan->prepared_bytes)
        text_append(out, "; lower prepared_bytes, which takes %llu",
                    (unsigned long long)plan->prepared_bytes);
    text_append(out, "; use smaller weights (weight_storage, a packed format), or shorter inputs");
}

static bool exceeds(const program *p)
{
    return p->options.device_bytes && plan_device_bytes(&p->plan) > p->options.device_bytes;
}

/* At least by half, so that few tries are made. */
bool room_prepare_less(const program *p, program_options *o)
{
    uint64_t prepared = MIN(o->prepared_bytes, p->plan.prepared_bytes);
    if (!exceeds(p) || !prepared)
        return false;
    uint64_t excess = plan_device_bytes(&p->plan) - o->device_bytes;
    o->prepared_bytes = excess < prepared ? MIN(prepared - excess, prepared / 2) : 0;
    return true;
}

/* A driver that fails does not tell what would fit. So the aim is lowered in steps, an eighth
 * first, then quarters, until a plan cannot reach it. */
bool room_shrink(const program *p, program_options *o)
{
    uint64_t needed = plan_device_bytes(&p->plan);
    if (p->plan.class_bytes[CLASS_HOST_WEIGHTS] < o->host_bytes &&
        (!o->aimed_bytes || needed <= o->aimed_bytes)) {
        o->aimed_bytes = MAX(needed - needed / (o->aimed_bytes ? 4 : 8), 1);
        return true;
    }
    if (!o->prepared_bytes || !p->plan.prepared_bytes)
        return false;
    o->prepared_bytes = 0;
    return true;
}

rlxvk_status room_check(const program *p)
{
    char needs[256] = "", remedy[256] = "";
    if (!exceeds(p))
        return RLXVK_OK;
    append_needs(p, &(text){needs, sizeof needs, 0});
    append_remedy(p, &(text){remedy, sizeof remedy, 0});
    return status_fail(RLXVK_E_OUT_OF_DEVICE_MEMORY,
                       "compile: %s; device_memory_bytes allows %llu%s", needs,
                       (unsigned long long)p->options.device_bytes, remedy);
}

rlxvk_status room_explain(const program *p, rlxvk_status status)
{
    char needs[256] = "", remedy[256] = "";
    if (status != RLXVK_E_OUT_OF_DEVICE_MEMORY)
        return status;
    append_needs(p, &(text){needs, sizeof needs, 0});
    append_remedy(p, &(text){remedy, sizeof remedy, 0});
    return status_fail_within(status, "%s%s", needs, remedy);
}
