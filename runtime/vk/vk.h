/*
 * The Vulkan layer: entry points of the loader, device snapshot -> profile -> device, memory,
 * pipelines, commands. It knows no graph. Every object made here has a matching call that destroys
 * it. That call also takes NULL and half-built objects.
 */
#ifndef RLXVK_VK_H
#define RLXVK_VK_H

#include "base/atomic.h"
#include "base/base.h"
#include "base/log.h"
#include "base/profile.h"
#include "base/sized.h"
#include "base/switches.h"
#include "base/system.h"
#include "kernel/kernel.h"

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

#include "vk/functions.h" /* struct vk_functions: one member per entry point, named without "vk" */

/* ---- Snapshot and profile: pure policy, tested on recorded snapshots ---- */

typedef struct device_snapshot {
    rlxvk_status failure; /* of a call that queries it. If not RLXVK_OK, the rest is incomplete. */
    char failure_text[160];
    char pci[24];       /* "0000:65:00.0"; "": unknown */
    bool lacks_display; /* it has no connector for one, as far as the system tells */
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceDriverProperties driver;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceMaintenance3Properties maintenance3;
    uint64_t max_buffer_size;                  /* of maintenance4 if offered, else 0 */
    uint32_t compute_units;                    /* if a vendor's extension tells, else 0 */
    uint32_t unit_registers, thread_registers; /* of 32 bits; as compute_units */
    VkDriverId registers_as;                   /* a driver's whose registers count; 0: its own */
    VkPhysicalDeviceFloatControlsProperties float_controls;
    VkPhysicalDeviceFeatures features;
    VkPhysicalDeviceVulkan11Features features11;
    VkPhysicalDeviceVulkan12Features features12;
    VkPhysicalDeviceMemoryProperties memory;
    VkQueueFamilyProperties queue_families[16];
    uint32_t queue_family_count;
    bool cooperative_matrix, bfloat16_matrix; /* extension and feature offered */
    bool portability_subset;                  /* extension offered */
    bool pipeline_statistics;                 /* extension and feature offered */
    bool integer_dot;                         /* extension and feature offered */
    bool integer_dot_accelerated;             /* for packed bytes of any signedness */
    /* Shapes of f16, bf16 and f32 matrices with f32 sums at subgroup scope; m = 0: none. */
    matrix_shape matrix_f16, matrix_bf16, matrix_f32;
    uint32_t least_subgroup_size, most_subgroup_size; /* 0: unknown */
    uint32_t most_workgroup_subgroups;                /* if a size is requested; 0: unknown */
    bool subgroup_size_control;      /* a compute pipeline may fix its subgroup size */
    bool fault;                      /* a lost device tells why; extension and feature offered */
    bool checkpoints, buffer_marker; /* a lost device tells how far it came; extensions offered */
    bool memory_budget; /* the driver tells how much of a heap is free; extension offered */
} device_snapshot;

typedef struct device_setup {
    bool usable;
    char reason[160];       /* why it is not usable */
    rlxvk_status failure;   /* of the driver's call that is the reason, else RLXVK_OK */
    uint32_t queue_family;  /* compute; the first one, even if it also has graphics */
    uint32_t arena_type;    /* memory type of blocks: DEVICE_LOCAL */
    uint32_t upload_type;   /* HOST_VISIBLE | HOST_COHERENT; outside DEVICE_LOCAL if possible */
    uint32_t readback_type; /* HOST_VISIBLE | HOST_CACHED if there is one */
    bool arena_mapped;      /* arena_type is HOST_VISIBLE: uploads write in place */
    bool arena_cached;      /* arena_type is also HOST_CACHED: reads in place */
    bool arena_coherent, readback_coherent;
    bool upload_cached; /* upload_type is HOST_CACHED: the host may read it in place */
    bool timestamps;
    bool may_display;  /* a display may hang while the device is busy */
    bool unroll_hints; /* the driver takes unroll hints as hints, not as orders */
    bool exact_floats; /* kernels forbid the driver to reorder float operations */
    uint32_t index;    /* among all devices */
    device_profile profile;
} device_setup;

/* Pure. `options` may be NULL; its limits reduce those of the profile. */
void profile_choose(const device_snapshot *snapshot, const rlxvk_context_options *options,
                    device_setup *out);
void profile_describe(const device_snapshot *snapshot, const device_setup *setup,
                      rlxvk_device_info *out);

/* ---- Device ---- */

typedef struct pipeline_store pipeline_store;

typedef struct device {
    void *library; /* the loader, opened with dlopen */
    vk_functions fn;
    VkInstance instance;
    bool shares_instance; /* with the process's other devices; it outlives them */
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkDevice handle;
    VkQueue queue;
    system_lock queue_lock;
    bool queue_lock_made;
    unsigned forks; /* system_forks when it was opened */
    device_snapshot snapshot;
    device_setup setup;
    log_sink log;
    bool no_specialization;               /* drivers get whole kernels */
    bool statistics;                      /* pipelines keep statistics: pipeline_describe */
    invocation_choice invocations;        /* their order in specialized kernels */
    _Atomic bool lost;                    /* set by the first VK_ERROR_DEVICE_LOST; never cleared */
    _Atomic uint32_t validation_messages; /* warnings and errors of the validation layer so far */
    VkDescriptorSetLayout set_layouts[KERNEL_MAX_BINDINGS + 1]; /* by binding count */
    VkPipelineLayout pipeline_layouts[KERNEL_MAX_BINDINGS + 1]; /* also; 128 bytes of arguments */
    pipeline_store *pipelines;
    _Atomic uint32_t allocations;                     /* of device memory, at this moment */
    _Atomic uint64_t heap_bytes[VK_MAX_MEMORY_HEAPS]; /* allocated in each heap, at this moment */
    _Atomic int matrix_layouts[2]; /* results of vk_matrix_layout for f16 and bf16; 0: unknown */
} device;

rlxvk_status device_open(const rlxvk_context_options *options, const switches *switches,
                         device **out);
void device_close(device *d);
/* Whether the device was opened before this process was forked. If so, it belongs to the parent:
 * nothing of it may be used or freed. */
bool vk_is_foreign(const device *d);
/* Whether the device is lost or foreign. Another thread may find out at any time. */
bool vk_is_lost(const device *d);
/* Appends "; the driver says: ..." if the device is lost and its driver tells why
 * (VK_EXT_device_fault). */
void vk_append_fault(device *d, text *out);
/* If the device is lost, E_DEVICE_LOST with the remedy. */
rlxvk_status vk_require_device(const device *d, const char *call);
/* Of the switches, only `limits` counts here and in device_find. */
rlxvk_status device_list(const switches *switches, const sized_array *infos, size_t *out_count);
/* Finds a device by index, name or part of it, UUID or PCI address. If `wanted` is NULL or "", the
 * best one is taken. */
rlxvk_status device_find(const switches *switches, const char *wanted, rlxvk_device_info *out);

/* Whether a subgroup holds f16 or bf16 matrices as glsl/matmul/matrix_layout.glsl expects: sums and
 * left operands in that layout, right operands transposed. The first call runs a kernel. Several
 * threads may call it. */
rlxvk_status vk_matrix_layout(device *d, bool bf16, bool *out_in_lanes);

/* Turns a VkResult into a status with `call` in the error text, and notes device loss. Tests count
 * calls and inject failures through the functions below (vk_test_hooks). */
rlxvk_status vk_check(device *d, VkResult result, const char *call);
bool vk_inject(const char *call);
VkResult vk_injected(void);

/* VK(d, CreateBuffer(d->handle, ...)) calls d->fn.CreateBuffer and TRYs the status. An injected
 * failure skips the call. */
#define VK(d, call) TRY(vk_check(d, vk_inject(#call) ? vk_injected() : (d)->fn.call, #call))

/* Counters of VK() calls, by name, for the whole process. If fail_at is n, the n-th VK() call from
 * now fails with fail_result (0: out of device memory). If it is 0, none fails. */
typedef struct vk_test_hooks {
    _Atomic uint64_t calls, created /* Create*, Allocate* */;
    _Atomic uint64_t recorded /* BeginCommandBuffer */, submitted;
    _Atomic uint64_t fail_at;
    VkResult fail_result;
    uint64_t kept_instances; /* kept for later devices until the process ends */
    /* If set, it replaces the loader's function that looks up entry points. */
    PFN_vkGetInstanceProcAddr (*look_up)(PFN_vkGetInstanceProcAddr loader);
} vk_test_hooks;
extern vk_test_hooks vk_hooks;

/* ---- Memory: one buffer over one allocation ---- */

/* MEMORY_HOST is host memory that kernels read, for weights that do not fit the device. If the
 * device has only one heap, it lies there, too. */
typedef enum memory_use { MEMORY_ARENA, MEMORY_HOST, MEMORY_UPLOAD, MEMORY_READBACK } memory_use;

typedef struct memory_block {
    VkDeviceMemory memory;
    VkBuffer buffer; /* storage, transfer source and destination, indirect */
    uint64_t size;
    uint64_t allocated; /* bytes of `memory` */
    uint8_t *mapped;    /* NULL if the type is not host-visible */
    bool coherent;
    bool cached; /* mapped, and the host reads it as fast as its own memory */
    uint8_t heap;
} memory_block;

/* The room in the heap of a memory use, in bytes. */
typedef struct memory_room {
    uint64_t heap;   /* its size */
    uint64_t budget; /* how much of it this process may use; if `told` is false, all of it */
    uint64_t used;   /* by this process; if `told` is false, by the blocks of this device */
    bool told;       /* the driver tells budget and use (VK_EXT_memory_budget) */
} memory_room;
memory_room memory_room_of(const device *d, memory_use use);
static inline uint64_t memory_room_free(const memory_room *r)
{
    return r->budget > r->used ? r->budget - r->used : 0;
}
/* Appends "5 bytes are free of 8", and who says so. */
void memory_room_append(const memory_room *r, text *out);

/* E_OUT_OF_DEVICE_MEMORY tells how much is needed, is free and is there. The content is
 * undefined. */
rlxvk_status memory_block_create(device *d, memory_use use, uint64_t size, memory_block *out);
void memory_block_destroy(device *d, memory_block *block);
/* Make host writes visible to the device, and device writes visible to the host. They do nothing if
 * the memory type is coherent. */
rlxvk_status memory_block_flush(device *d, const memory_block *block, uint64_t offset,
                                uint64_t size);
rlxvk_status memory_block_invalidate(device *d, const memory_block *block, uint64_t offset,
                                     uint64_t size);

/* ---- Pipelines: made on demand, in parallel, shared by all executables, cached on disk ---- */

typedef struct pipeline_request {
    uint16_t kernel;        /* enum kernel_id */
    uint8_t constant_count; /* values for specialization constants 0 .. constant_count-1 */
    uint32_t constants[KERNEL_MAX_CONSTANTS];
    uint32_t grid[3]; /* the grid that the kernel is to see; 0: the launched one */
    bool ranges;      /* ranges of the grid may be launched (CmdDispatchBase); needs `grid` */
} pipeline_request;

/* Fills out[i] for each request. Equal requests share one pipeline. The device owns the
 * pipelines. */
rlxvk_status pipeline_get_all(device *d, const pipeline_request *requests, size_t count,
                              VkPipeline *out);

/* The SPIR-V that the driver would get for a request of an embedded kernel, whether or not the
 * device has the features. The caller frees it with memory_free.
 *   E_UNSUPPORTED   the request is beyond the device's limits */
rlxvk_status pipeline_words(const device *d, const pipeline_request *request, uint32_t **out,
                            uint32_t *out_count);

/* Whether a grid of this kernel can be launched in ranges. It cannot if the kernel is the caller's
 * own and reads the number of workgroups, because such kernels are not changed. */
bool pipeline_takes_ranges(uint16_t kernel);

/* How many pipelines the device has made so far, and how many were requested. */
size_t pipeline_count_made(device *d);
size_t pipeline_count_asked(device *d);
/* How many of those have their invocations in another order (RLXVK_INVOCATIONS). */
size_t pipeline_count_permuted(device *d);

/* ---- Statistics: what the driver's compiler says of a pipeline ---- */

typedef struct pipeline_statistic {
    char name[VK_MAX_DESCRIPTION_SIZE]; /* the driver's */
    double value;                       /* integers above 2^53 are rounded */
} pipeline_statistic;

typedef struct pipeline_description {
    pipeline_request request;
    double seconds;         /* processor time of the thread that made it */
    uint32_t subgroup_size; /* 0: unknown */
    VECTOR(pipeline_statistic) statistics;
} pipeline_description;

/* Describes a pipeline by its number, below pipeline_count_made. It has statistics only if the
 * device was opened for them (switches.h). The caller destroys *out; a failure leaves it zeroed.
 *   E_INDEX   there is no pipeline of this number */
rlxvk_status pipeline_describe(device *d, size_t number, pipeline_description *out);
void pipeline_description_destroy(pipeline_description *description);

/* ---- Commands ---- */

/* Each executable has a command pool with its buffers, a descriptor pool, and a timeline
 * semaphore. */
rlxvk_status command_pool_create(device *d, VkCommandPool *out);
rlxvk_status command_buffers_allocate(device *d, VkCommandPool pool, uint32_t count,
                                      VkCommandBuffer *out);
/* Begins a reusable buffer. It may be pending several times at once (SIMULTANEOUS_USE). */
rlxvk_status command_begin(device *d, VkCommandBuffer buffer);
rlxvk_status command_end(device *d, VkCommandBuffer buffer);

/* The work that a global memory barrier separates. */
enum barrier_scope {
    SCOPE_COMPUTE = 1,  /* shader reads and writes */
    SCOPE_TRANSFER = 2, /* copies and fills */
    SCOPE_HOST = 4,     /* as target: host reads; as source: host writes */
    SCOPE_INDIRECT = 8  /* as target: group counts that dispatches read */
};
void command_barrier(device *d, VkCommandBuffer buffer, unsigned from, unsigned to);

/* Marks in command buffers. `begun` is the number of the last one that the device has come to. When
 * it came to `reached`, everything before that had ended. 0: none, or unknown. */
typedef struct vk_marks {
    uint32_t begun, reached;
} vk_marks;
/* Makes the memory in which the device keeps marks. If it needs none or cannot, `out` stays. */
rlxvk_status vk_marks_create(device *d, memory_block *out);
/* Records a mark, if the device can. `owner` is an address that tells marks of one owner from
 * others; it has more bytes than marks. Numbers begin with 1. */
void vk_mark(device *d, VkCommandBuffer buffer, const memory_block *block, const void *owner,
             uint32_t number);
/* Reads the marks of an owner with at most so many. Zeros if the device is not lost. */
vk_marks vk_marks_read(device *d, const memory_block *block, const void *owner, uint32_t most);

/* One binding of a descriptor set: a byte range of a block. */
typedef struct buffer_range {
    VkBuffer buffer;
    uint64_t offset, size;
} buffer_range;

/* sets_by_binding_count[n] is the number of sets with n bindings. Sets are allocated and written
 * once. */
rlxvk_status
vk_descriptor_pool_create(device *d, const uint32_t sets_by_binding_count[KERNEL_MAX_BINDINGS + 1],
                          VkDescriptorPool *out);
rlxvk_status vk_descriptor_set_write(device *d, VkDescriptorPool pool, const buffer_range *ranges,
                                     uint32_t count, VkDescriptorSet *out);

rlxvk_status vk_timeline_create(device *d, VkSemaphore *out);
/* Submits the command buffers in order. They begin after the semaphore has reached `wait` (0: at
 * once), and at the end set it to `signal`. */
rlxvk_status vk_queue_submit(device *d, VkSemaphore timeline, uint64_t wait, uint64_t signal,
                             const VkCommandBuffer *buffers, uint32_t count);
/* E_TIMEOUT after `timeout_ns`; E_DEVICE_LOST. */
rlxvk_status vk_timeline_wait(device *d, VkSemaphore timeline, uint64_t value, uint64_t timeout_ns);

/* ---- Text files of the device, beside its pipeline cache (pipeline_cache.c) ---- */

/* Reads the whole file with this ending. Free it with memory_free. NULL if there is none or it
 * cannot be read. */
char *pipeline_cache_read_text(const device *d, const char *directory, const char *ending);
/* Replaces the file as a whole, or leaves it; E_FILE. Writes the path to out_path even if the file
 * cannot be written. But if there is no cache directory, out_path is not set. */
rlxvk_status pipeline_cache_write_text(const device *d, const char *directory, const char *ending,
                                       const char *text, char *out_path, size_t size);

#endif
