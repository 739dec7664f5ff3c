/*
 * Custom ops through public calls: on the host, as a kernel, and as both. Also tests shapes that
 * the caller states, failures and refusals.
 */
#include "exec/executable.h"
#include "args/elementwise.h"
#include "kernel/kernel.h"
#include "kernel/words.h"
#include "op/compose/custom.h"
#include "exec/allocate.h"
#include "support/harness.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool same_shape(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return count > 0 && inputs[0].rank > 0;
}

static uint64_t elements(const rlxvk_shape *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= (uint64_t)s->dims[i];
    return n;
}

/* x * factor. It fails if the factor is 0. */
static int scale(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                 const rlxvk_shape *shape, float *out)
{
    float factor;
    (void)count;
    assert_int_equal(size, sizeof factor);
    memcpy(&factor, attributes, sizeof factor);
    for (uint64_t i = 0; i < elements(shape); i++)
        out[i] = inputs[0].values[i] * factor;
    return factor == 0 ? 17 : 0;
}

/* The arguments of the library's unary kernel, which computes gelu by default. */
static bool unary_arguments(const rlxvk_custom_call *call)
{
    struct unary_args args = {(uint32_t)elements(&call->shapes[1]), call->offsets[0],
                              call->offsets[1]};
    memcpy(call->arguments, &args, sizeof args);
    call->groups[0] = (args.numel + call->workgroup_size - 1) / call->workgroup_size;
    call->groups[1] = call->groups[2] = 1;
    return args.numel != 13;
}

static void register_all(void)
{
    const kernel_info *unary = kernel_find(KERNEL_UNARY);
    uint32_t *words = kernel_words(unary);
    rlxvk_custom_kernel kernel = {words, unary->word_count, unary->argument_bytes, unary_arguments};
    expect_ok(rlxvk_custom_register(&(rlxvk_custom_op){"scale", 1, same_shape, scale, NULL}));
    expect_ok(rlxvk_custom_register(&(rlxvk_custom_op){"my_gelu", 1, same_shape, NULL, &kernel}));
    memory_free(words);
}

/* Runs relu(custom(neg x)), so that the custom op is between two kernels. */
static rlxvk_status run(const char *op, const void *attributes, size_t size, const float *x,
                        int64_t n, float *y, rlxvk_plan_report *plan)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {"x", x, (size_t)n, RLXVK_F32};
    rlxvk_run_output out = {0, y, (size_t)n, RLXVK_F32};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(n)));
    t = rlxvk_custom(g, op, &t, 1, attributes, size);
    rlxvk_graph_output(g, rlxvk_relu(g, t));
    rlxvk_status status = rlxvk_compile(shared_context, g, NULL, &e);
    if (status == RLXVK_OK)
        status = rlxvk_run(e, &in, 1, &out, 1);
    if (status == RLXVK_OK)
        rlxvk_executable_plan(e, plan);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

static void test_host(void **state)
{
    float factor = 3, y[4];
    rlxvk_plan_report plan;
    (void)state;
    register_all();
    expect_ok(run("scale", &factor, 4, (float[]){-1, 2, -3, 0.5f}, 4, y, &plan));
    assert_true(y[0] == 3 && y[1] == 0 && y[2] == 9 && y[3] == 0);
    assert_int_equal(plan.host_steps, 1);
    factor = 0;
    expect_error(run("scale", &factor, 4, (float[]){1, 2, 3, 4}, 4, y, &plan), RLXVK_E_CUSTOM,
                 "'scale' failed with 17");
}

static void test_kernel(void **state)
{
    float y[300], x[300];
    rlxvk_plan_report plan;
    (void)state;
    register_all();
    for (int i = 0; i < 300; i++)
        x[i] = (float)i / 50 - 3;
    expect_ok(run("my_gelu", NULL, 0, x, 300, y, &plan));
    assert_int_equal(plan.host_steps, 0);
    assert_int_equal(plan.dispatches, 3);
    for (int i = 0; i < 300; i++) {
        double v = -x[i], gelu = 0.5 * v * (1 + erf(v / sqrt(2)));
        assert_true(fabs(y[i] - fmax(gelu, 0)) < 2e-6);
    }
    expect_error(run("my_gelu", NULL, 0, x, 13, y, &plan), RLXVK_E_CUSTOM,
                 "refused to be lowered (operands, result: 13, 13)");
}

static void test_stated_shape(void **state)
{
    rlxvk_graph *g = NULL;
    (void)state;
    register_all();
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(6));
    rlxvk_tensor y = rlxvk_custom_packed(g, "scale", &x, 1, NULL, 0, RLXVK_SHAPE(2, 2), RLXVK_I32);
    assert_int_equal(rlxvk_tensor_shape(g, y).rank, 2);
    assert_int_equal(rlxvk_tensor_dtype(g, y), RLXVK_I32);
    rlxvk_graph_destroy(g);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *op, *part;
        size_t operands, size;
        rlxvk_status wanted;
    } rows[] = {{"nothing", "'nothing'", 1, 0, RLXVK_E_UNKNOWN_OP},
                {"scale", "takes 1 operands, given 2", 2, 4, RLXVK_E_ARITY},
                {"scale", "300 attribute bytes", 1, 300, RLXVK_E_ATTR},
                {"scale", "refused its operands (scalar)", 0, 4, RLXVK_E_SHAPE}};
    static const uint8_t bytes[300];
    (void)state;
    register_all();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rlxvk_graph *g = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor scalar = rlxvk_input(g, "s", RLXVK_F32, RLXVK_SCALAR);
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(6)), operands[] = {x, x};
        bool bad = rows[i].operands == 0;
        (void)rlxvk_custom(g, rows[i].op, bad ? &scalar : operands, bad ? 1 : rows[i].operands,
                           bytes, rows[i].size);
        assert_int_equal(rlxvk_graph_status(g), rows[i].wanted);
        assert_non_null(strstr(rlxvk_graph_error(g), rows[i].part));
        rlxvk_graph_destroy(g);
    }
    expect_error(rlxvk_custom_register(&(rlxvk_custom_op){.name = ""}), RLXVK_E_ATTR, "names");
    expect_error(rlxvk_custom_register(&(rlxvk_custom_op){.name = "empty"}), RLXVK_E_ATTR,
                 "host function or a kernel");
    expect_error(rlxvk_custom_register(&(rlxvk_custom_op){"wide", 8, same_shape, scale, NULL}),
                 RLXVK_E_ATTR, "8 operands; at most 7");
    rlxvk_custom_kernel no_module = {(uint32_t[5]){1, 2, 3, 4, 5}, 5, 0, unary_arguments};
    expect_error(rlxvk_custom_register(&(rlxvk_custom_op){.name = "k", .kernel = &no_module}),
                 RLXVK_E_ATTR, "no SPIR-V");
}

/* ---- Modules ---- */

/* y[i] = 2 x[i], compiled by glslang for Vulkan 1.0 (SPIR-V 1.0):
 *   layout(local_size_x_id = 0) in;
 *   layout(push_constant) uniform block { uint numel, x_offset, y_offset; };
 *   layout(set = 0, binding = 0) readonly buffer source { float x[]; };
 *   layout(set = 0, binding = 1) writeonly buffer target { float y[]; }; */
/* clang-format off */
static const uint32_t twice[] = {
    0x7230203, 0x10000, 0x8000b, 0x39, 0x0, 0x20011, 0x1, 0x6000b, 0x1, 0x4c534c47, 0x6474732e,
    0x3035342e, 0x0, 0x3000e, 0x0, 0x1, 0x6000f, 0x5, 0x4, 0x6e69616d, 0x0, 0xb, 0x60010, 0x4,
    0x11, 0x1, 0x1, 0x1, 0x40047, 0xb, 0xb, 0x1c, 0x50048, 0x11, 0x0, 0x23, 0x0, 0x50048, 0x11,
    0x1, 0x23, 0x4, 0x50048, 0x11, 0x2, 0x23, 0x8, 0x30047, 0x11, 0x2, 0x40047, 0x1e, 0x6, 0x4,
    0x40048, 0x1f, 0x0, 0x19, 0x50048, 0x1f, 0x0, 0x23, 0x0, 0x30047, 0x1f, 0x3, 0x40047, 0x21,
    0x22, 0x0, 0x40047, 0x21, 0x21, 0x1, 0x40047, 0x28, 0x6, 0x4, 0x40048, 0x29, 0x0, 0x18,
    0x50048, 0x29, 0x0, 0x23, 0x0, 0x30047, 0x29, 0x3, 0x40047, 0x2b, 0x22, 0x0, 0x40047, 0x2b,
    0x21, 0x0, 0x40047, 0x36, 0x1, 0x0, 0x40047, 0x38, 0xb, 0x19, 0x20013, 0x2, 0x30021, 0x3, 0x2,
    0x40015, 0x6, 0x20, 0x0, 0x40017, 0x9, 0x6, 0x3, 0x40020, 0xa, 0x1, 0x9, 0x4003b, 0xa, 0xb,
    0x1, 0x4002b, 0x6, 0xc, 0x0, 0x40020, 0xd, 0x1, 0x6, 0x5001e, 0x11, 0x6, 0x6, 0x6, 0x40020,
    0x12, 0x9, 0x11, 0x4003b, 0x12, 0x13, 0x9, 0x40015, 0x14, 0x20, 0x1, 0x4002b, 0x14, 0x15, 0x0,
    0x40020, 0x16, 0x9, 0x6, 0x20014, 0x19, 0x30016, 0x1d, 0x20, 0x3001d, 0x1e, 0x1d, 0x3001e,
    0x1f, 0x1e, 0x40020, 0x20, 0x2, 0x1f, 0x4003b, 0x20, 0x21, 0x2, 0x4002b, 0x14, 0x22, 0x2,
    0x4002b, 0x1d, 0x27, 0x40000000, 0x3001d, 0x28, 0x1d, 0x3001e, 0x29, 0x28, 0x40020, 0x2a, 0x2,
    0x29, 0x4003b, 0x2a, 0x2b, 0x2, 0x4002b, 0x14, 0x2c, 0x1, 0x40020, 0x31, 0x2, 0x1d, 0x40032,
    0x6, 0x36, 0x1, 0x4002b, 0x6, 0x37, 0x1, 0x60033, 0x9, 0x38, 0x36, 0x37, 0x37, 0x50036, 0x2,
    0x4, 0x0, 0x3, 0x200f8, 0x5, 0x50041, 0xd, 0xe, 0xb, 0xc, 0x4003d, 0x6, 0xf, 0xe, 0x50041,
    0x16, 0x17, 0x13, 0x15, 0x4003d, 0x6, 0x18, 0x17, 0x500b0, 0x19, 0x1a, 0xf, 0x18, 0x300f7,
    0x1c, 0x0, 0x400fa, 0x1a, 0x1b, 0x1c, 0x200f8, 0x1b, 0x50041, 0x16, 0x23, 0x13, 0x22, 0x4003d,
    0x6, 0x24, 0x23, 0x50080, 0x6, 0x26, 0x24, 0xf, 0x50041, 0x16, 0x2d, 0x13, 0x2c, 0x4003d, 0x6,
    0x2e, 0x2d, 0x50080, 0x6, 0x30, 0x2e, 0xf, 0x60041, 0x31, 0x32, 0x2b, 0x15, 0x30, 0x4003d,
    0x1d, 0x33, 0x32, 0x50085, 0x1d, 0x34, 0x27, 0x33, 0x60041, 0x31, 0x35, 0x21, 0x15, 0x26,
    0x3003e, 0x35, 0x34, 0x200f9, 0x1c, 0x200f8, 0x1c, 0x100fd, 0x10038};
/* clang-format on */
enum {
    CAPABILITY = 5, /* the words of the module that are changed */
    BUILT_IN = 31,
    ENTRY_POINT = 16,
    LOCAL_SIZE_AT = 22,
    BINDING = 70,
    DESCRIPTOR_SET = 66,
    WORKGROUP_SIZE = 102,
    FUNCTION = 223,
    WORDS = sizeof twice / sizeof *twice
};

static rlxvk_status register_module(const char *name, const uint32_t *words, size_t count)
{
    rlxvk_custom_kernel kernel = {words, count, 12, unary_arguments};
    return rlxvk_custom_register(&(rlxvk_custom_op){name, 1, same_shape, NULL, &kernel});
}

/* A module of an old version must reach the driver unchanged. If float controls were added to it,
 * it would need an extension that it does not name. */
static void test_old_version(void **state)
{
    float x[] = {1, -2, 3, 0.5f}, y[4];
    rlxvk_plan_report plan;
    rlxvk_context *shared = shared_context;
    (void)state;
    expect_ok(register_module("twice", twice, WORDS));
    rlxvk_context *strict;
    rlxvk_status status =
        rlxvk_context_create(&(rlxvk_context_options){.validation = RLXVK_ON}, &strict);
    if (status == RLXVK_E_UNSUPPORTED)
        skip(); /* the layer is not installed */
    expect_ok(status);
    shared_context = strict;
    status = run("twice", NULL, 0, x, 4, y, &plan);
    shared_context = shared; /* restored even if the run failed */
    close_context(strict);
    expect_ok(status);
    assert_true(y[0] == 0 && y[1] == 4 && y[2] == 0 && y[3] == 0);
}

enum { COUNT = 40001, GLOBAL_ID = 28, WORKGROUP_ID = 26 };

static void register_twice(void)
{
    uint32_t by_group[WORDS];
    expect_ok(register_module("twice", twice, WORDS));
    memcpy(by_group, twice, sizeof by_group);
    assert_int_equal(by_group[BUILT_IN], GLOBAL_ID);
    by_group[BUILT_IN] = WORKGROUP_ID; /* only one element of each workgroup is written */
    expect_ok(register_module("twice_by_group", by_group, WORDS));
}

static rlxvk_executable *compile_custom(rlxvk_context *c, bool sliced)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT));
    t = rlxvk_custom(g, "twice", &t, 1, NULL, 0);
    t = rlxvk_custom(g, "twice_by_group", &t, 1, NULL, 0);
    rlxvk_graph_output(g, rlxvk_custom(g, "my_gelu", &t, 1, NULL, 0));
    c->switches.sliced = sliced;
    rlxvk_status status = rlxvk_compile(c, g, NULL, &e);
    c->switches.sliced = false;
    expect_ok(status);
    rlxvk_graph_destroy(g);
    return e;
}

/* If submissions are bounded, dispatches are cut into ranges of workgroups. That is not possible
 * for a custom kernel that reads the number of workgroups (as the unary kernel does), because such
 * kernels are not changed. Nor for one that reads the global number of an invocation, from which a
 * driver leaves out where the range begins. */
static void test_ranges_of_workgroups(void **state)
{
    static float x[COUNT], y[2][COUNT];
    rlxvk_executable *e[2] = {NULL, NULL};
    (void)state;
    register_all();
    register_twice();
    exec_scratch_fill = 0x3f000000;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 401) / 100 - 2;
    for (int k = 0; k < 2; k++) {
        e[k] = compile_custom(shared_context, k);
        for (int run = 0; run < 2; run++) {
            rlxvk_run_input in = {"x", x, COUNT, RLXVK_F32};
            rlxvk_run_output out = {0, y[k], COUNT, RLXVK_F32};
            expect_ok(rlxvk_run(e[k], &in, 1, &out, 1));
        }
    }
    exec_scratch_fill = 0;
    assert_int_equal(e[1]->program->schedule.dispatches.count, 3);
    assert_null(e[1]->program->ranges[0]);
    assert_non_null(e[1]->program->ranges[1]);
    assert_null(e[1]->program->ranges[2]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(e[0]);
    rlxvk_executable_destroy(e[1]);
}

/* ---- A driver that shares programs ---- */

enum { MOST_MODULES = 64 };

/* The modules that a driver got. `unequal` counts pairs of equal modules of which only one was made
 * for ranges. A driver that gives both one program leaves out where a range begins. */
static struct {
    pthread_mutex_t lock;
    PFN_vkCreateShaderModule make_module;
    PFN_vkCreateComputePipelines make_pipelines;
    struct {
        VkShaderModule handle;
        uint64_t hash;
        bool based;
    } seen[MOST_MODULES];
    uint32_t count, pipelines, unequal;
} sharing = {.lock = PTHREAD_MUTEX_INITIALIZER};

static VKAPI_ATTR VkResult VKAPI_CALL see_module(VkDevice device,
                                                 const VkShaderModuleCreateInfo *info,
                                                 const VkAllocationCallbacks *allocator,
                                                 VkShaderModule *out)
{
    VkResult result = sharing.make_module(device, info, allocator, out);
    pthread_mutex_lock(&sharing.lock);
    if (sharing.count < MOST_MODULES) {
        sharing.seen[sharing.count].handle = *out;
        sharing.seen[sharing.count].hash = base_hash(BASE_HASH_START, info->pCode, info->codeSize);
    }
    sharing.count++;
    pthread_mutex_unlock(&sharing.lock);
    return result;
}

/* A handle may be used again, so the last module of that handle counts. */
static VKAPI_ATTR VkResult VKAPI_CALL see_pipeline(VkDevice device, VkPipelineCache cache,
                                                   uint32_t count,
                                                   const VkComputePipelineCreateInfo *infos,
                                                   const VkAllocationCallbacks *allocator,
                                                   VkPipeline *out)
{
    pthread_mutex_lock(&sharing.lock);
    uint32_t at = MIN(sharing.count, MOST_MODULES);
    while (at > 0 && sharing.seen[at - 1].handle != infos->stage.module)
        at--;
    bool based = infos->flags & VK_PIPELINE_CREATE_DISPATCH_BASE;
    for (uint32_t i = 0; at > 0 && i + 1 < at; i++)
        sharing.unequal +=
            sharing.seen[i].hash == sharing.seen[at - 1].hash && sharing.seen[i].based != based;
    if (at > 0)
        sharing.seen[at - 1].based = based;
    sharing.pipelines += at > 0;
    pthread_mutex_unlock(&sharing.lock);
    return sharing.make_pipelines(device, cache, count, infos, allocator, out);
}

/* Equal modules are made for ranges either all or not at all. */
static void test_equal_modules(void **state)
{
    rlxvk_context *c = open_context(&(rlxvk_context_options){.cache_directory = ""});
    vk_functions *fn = &c->device->fn;
    (void)state;
    register_all();
    register_twice();
    sharing.make_module = fn->CreateShaderModule;
    sharing.make_pipelines = fn->CreateComputePipelines;
    fn->CreateShaderModule = see_module;
    fn->CreateComputePipelines = see_pipeline;
    for (int k = 0; k < 2; k++)
        rlxvk_executable_destroy(compile_custom(c, k));
    fn->CreateShaderModule = sharing.make_module;
    fn->CreateComputePipelines = sharing.make_pipelines;
    assert_in_range(sharing.count, 4, MOST_MODULES);
    assert_int_equal(sharing.pipelines, sharing.count);
    assert_int_equal(sharing.unequal, 0);
    close_context(c);
}

/* None of these modules may reach a driver. */
static void test_bad_modules(void **state)
{
    static const struct {
        const char *what, *part;
        size_t count; /* words passed; 0 means all */
        struct {
            uint32_t at, word;
        } change[2];
    } rows[] = {
        {"truncated header", "4 words", 4, {{0}}},
        {"wrong magic", "word 0 of the kernel's 320 is 0x07230204", 0, {{0, 0x07230204}}},
        {"swapped bytes", "other byte order", 0, {{0, 0x03022307}}},
        {"newer version", "word 1 of the kernel's 320 is version 0x00010600", 0, {{1, 0x10600}}},
        {"no version", "version 0x00000000", 0, {{1, 0}}},
        {"bound 0", "word 3 of the kernel's 320 bounds ids by 0", 0, {{3, 0}}},
        {"bound 2^31", "bounds ids by 2147483648", 0, {{3, 1u << 31}}},
        {"schema", "word 4 of the kernel's 320 is 7", 0, {{4, 7}}},
        {"header alone", "no compute entry point 'main'", 5, {{0}}},
        {"zero length",
         "word 22 of the kernel's 320 begins an instruction of no words",
         0,
         {{LOCAL_SIZE_AT, SpvOpExecutionMode}}},
        {"zero length first",
         "word 5 of the kernel's 320 begins an instruction of no words",
         0,
         {{CAPABILITY, SpvOpCapability}}},
        {"past the end",
         "word 319 of the kernel's 320 begins an instruction of 2 words",
         0,
         {{WORDS - 1, 2u << 16 | SpvOpFunctionEnd}}},
        {"cut", "word 16 of the kernel's 19 begins an instruction of 6 words", 19, {{0}}},
        {"no entry point", "no compute entry point 'main'", 0, {{ENTRY_POINT, 6u << 16}}},
        {"other name", "no compute entry point 'main'", 0, {{ENTRY_POINT + 3, 0x6e696166}}},
        {"longer name", "no compute entry point 'main'", 0, {{ENTRY_POINT + 4, 'x'}}},
        {"a vertex shader", "no compute entry point 'main'", 0, {{ENTRY_POINT + 1, 0}}},
        {"short entry point",
         "no compute entry point 'main'",
         0,
         {{ENTRY_POINT, 4u << 16 | SpvOpEntryPoint}, {ENTRY_POINT + 4, 2u << 16}}},
        {"function of another id",
         "word 16 of the kernel's 320 begins an entry point whose",
         0,
         {{FUNCTION + 2, 5}}},
        {"no LocalSize",
         "has no LocalSize",
         0,
         {{LOCAL_SIZE_AT, 6u << 16}, {WORKGROUP_SIZE, 4u << 16}}},
        {"LocalSize of 0",
         "word 22 of the kernel's 320 gives workgroups of 1 x 0 x 1",
         0,
         {{LOCAL_SIZE_AT + 4, 0}}},
        {"capability",
         "word 5 of the kernel's 320 asks for capability 10",
         0,
         {{CAPABILITY + 1, SpvCapabilityFloat64}}},
        {"binding",
         "decorates binding 2; the operands and the result are 0 to 1",
         0,
         {{BINDING + 3, 2}}},
        {"set", "decorates set 1", 0, {{DESCRIPTOR_SET + 3, 1}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t words[WORDS];
        size_t count = rows[i].count ? rows[i].count : WORDS;
        memcpy(words, twice, sizeof twice);
        for (int k = 0; k < 2 && rows[i].count == 0; k++)
            if (k == 0 || rows[i].change[k].at)
                words[rows[i].change[k].at] = rows[i].change[k].word;
        uint32_t *exact = malloc(count * sizeof *exact); /* a sanitizer sees reads past the end */
        memcpy(exact, words, count * sizeof *exact);
        expect_error(register_module(rows[i].what, exact, count), RLXVK_E_ATTR, rows[i].part);
        free(exact);
    }
    expect_error(register_module("empty", twice, 0), RLXVK_E_ATTR, "0 words");
    expect_error(register_module("none", NULL, 7), RLXVK_E_ATTR, "no words");
}

static bool takes(const kernel_info *k, const uint32_t *words, uint32_t argument_bytes)
{
    uint64_t invocations;
    return custom_check_module(k->name, words, k->word_count, k->binding_count, argument_bytes,
                               &invocations) == RLXVK_OK;
}

/* Push constants of each library kernel that needs no feature. Their size must be accepted, but not
 * a size that is a word smaller or not a multiple of 4. The sizes come from spv2c. A few kernels
 * accept less, because the optimizer has dropped the end of their block. */
static void test_push_constants(void **state)
{
    size_t exact = 0, shorter = 0;
    (void)state;
    for (int id = 0; id < KERNEL_COUNT; id++) {
        const kernel_info *k = kernel_find(id);
        uint32_t *words = kernel_words(k);
        assert_non_null(words);
        if (k->argument_bytes && takes(k, words, k->argument_bytes)) {
            bool less = takes(k, words, k->argument_bytes - 4);
            exact += !less;
            shorter += less;
            assert_false(takes(k, words, k->argument_bytes - 2));
            assert_false(takes(k, words, 0));
            assert_false(takes(k, words, 132));
        }
        memory_free(words);
    }
    print_message("%zu kernels, %zu of them shorter\n", exact + shorter, shorter);
    assert_true(exact > 100 && shorter < 4);
}

static void test_large_workgroup(void **state)
{
    uint32_t words[WORDS];
    float y[4];
    rlxvk_plan_report plan;
    (void)state;
    memcpy(words, twice, sizeof twice);
    words[WORKGROUP_SIZE] = 4u << 16;
    words[LOCAL_SIZE_AT + 3] = words[LOCAL_SIZE_AT + 4] = 4096;
    expect_ok(register_module("large", words, WORDS));
    expect_error(run("large", NULL, 0, (float[]){1, 2, 3, 4}, 4, y, &plan), RLXVK_E_UNSUPPORTED,
                 "'large' has workgroups of 16777216 invocations");
}

/* ---- Runs ---- */

static void test_host_run_allocates_nothing(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float factor = 3, x[300], y[300];
    rlxvk_run_input in = {"x", x, 300, RLXVK_F32};
    rlxvk_run_output out = {0, y, 300, RLXVK_F32};
    (void)state;
    register_all();
    for (int i = 0; i < 300; i++)
        x[i] = (float)(i - 150);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(300));
    rlxvk_graph_output(g, rlxvk_custom(g, "scale", &t, 1, &factor, sizeof factor));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    uint64_t before = memory_allocation_count();
    for (int i = 0; i < 3; i++)
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    assert_int_equal(memory_allocation_count() - before, 0);
    for (int i = 0; i < 300; i++)
        assert_true(y[i] == 3 * x[i]);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host),
                                       cmocka_unit_test(test_kernel),
                                       cmocka_unit_test(test_stated_shape),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_old_version),
                                       cmocka_unit_test(test_ranges_of_workgroups),
                                       cmocka_unit_test(test_equal_modules),
                                       cmocka_unit_test(test_bad_modules),
                                       cmocka_unit_test(test_push_constants),
                                       cmocka_unit_test(test_large_workgroup),
                                       cmocka_unit_test(test_host_run_allocates_nothing)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
