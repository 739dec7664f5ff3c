/*
 * What environment switches do. Each test opens a context with the switch set and one without it,
 * and compares: what the driver is given, the plan, the memory, the log, the results. At the end,
 * every switch of the table must have been tested, here or in the file that `elsewhere` names.
 */
#include "base/switches.h"
#include "exec/executable.h"
#include "exec/transfer.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static const struct {
    const char *name, *file;
} elsewhere[] = {
    {"RLXVK_VALIDATION", "test/unit/vk/test_validation.c"},
    {"RLXVK_LIMITS", "test/unit/vk/test_limits.c"},
    {"RLXVK_PRECISION", "test/unit/exec/test_exec.c"},
    {"RLXVK_FORCE_HOST", "test/unit/exec/test_contract.c"},
    {"RLXVK_NO_STRIDED_ACCESS", "test/unit/attention/test_attention_strides.c"},
    {"RLXVK_NAN_TRACE", "test/unit/exec/test_diagnose.c"},
    {"RLXVK_DUMP_NODES", "test/unit/exec/test_diagnose.c"},
    {"RLXVK_DUMP_NODES_LIMIT", "test/unit/exec/test_diagnose.c"},
    {"RLXVK_DUMP_NODES_FLAT", "test/unit/exec/test_diagnose.c"},
    {"RLXVK_TRACE", "test/unit/exec/test_trace.c"},
};
static bool tested[64]; /* per row of the table */

/* ---- What the library says, and what it gives to the driver ---- */

static char said[1 << 15];

static void keep_line(void *user, rlxvk_log_level level, const char *line)
{
    size_t length = strlen(said);
    (void)user, (void)level;
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

static size_t lines_with(const char *part)
{
    size_t count = 0;
    for (const char *at = said; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

/* Counts of calls since the context was opened. Pipelines are made by several threads. */
static struct {
    uint64_t barriers; /* between dispatches */
    uint64_t modules, constants /* specialization constants that modules declare */, hash;
    uint64_t submitted; /* command buffers */
} given;
static vk_functions real;

static VKAPI_ATTR void VKAPI_CALL count_barrier(
    VkCommandBuffer buffer, VkPipelineStageFlags from, VkPipelineStageFlags to,
    VkDependencyFlags flags, uint32_t count, const VkMemoryBarrier *barriers, uint32_t buffers,
    const VkBufferMemoryBarrier *of_buffers, uint32_t images, const VkImageMemoryBarrier *of_images)
{
    given.barriers += from == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && to == from;
    real.CmdPipelineBarrier(buffer, from, to, flags, count, barriers, buffers, of_buffers, images,
                            of_images);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_module(VkDevice device,
                                                   const VkShaderModuleCreateInfo *info,
                                                   const VkAllocationCallbacks *callbacks,
                                                   VkShaderModule *out)
{
    enum { HEADER_WORDS = 5, SPEC_CONSTANT_TRUE = 48, SPEC_CONSTANT = 50 };
    size_t count = info->codeSize / sizeof(uint32_t);
    for (size_t at = HEADER_WORDS; at < count; at += info->pCode[at] >> 16) {
        uint32_t opcode = info->pCode[at] & 0xffff;
        if (opcode >= SPEC_CONSTANT_TRUE && opcode <= SPEC_CONSTANT)
            __atomic_fetch_add(&given.constants, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&given.modules, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&given.hash, base_hash(BASE_HASH_START, info->pCode, info->codeSize),
                       __ATOMIC_RELAXED);
    return real.CreateShaderModule(device, info, callbacks, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_submit(VkQueue queue, uint32_t count,
                                                   const VkSubmitInfo *infos, VkFence fence)
{
    for (uint32_t i = 0; i < count; i++)
        given.submitted += infos[i].commandBufferCount;
    return real.QueueSubmit(queue, count, infos, fence);
}

/* ---- Contexts ---- */

static void note_tested(const char *name)
{
    size_t i = 0;
    while (switches_name(i) && strcmp(switches_name(i), name) != 0)
        i++;
    if (!switches_name(i))
        fail_msg("%s is no switch", name);
    assert_true(i < ARRAY_COUNT(tested));
    tested[i] = true;
}

/* Sets a variable, or unsets it if `value` is NULL. Returns the value that it had; see restore. */
static char *replace(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *kept = old ? strdup(old) : NULL;
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
    return kept;
}

static void restore(const char *name, char *kept)
{
    free(replace(name, kept));
    free(kept);
}

static rlxvk_status create_with(const char *name, const char *value, const char *folder,
                                rlxvk_context **out)
{
    rlxvk_context_options options = {.log = keep_line, .cache_directory = folder};
    char *kept = replace(name, value);
    rlxvk_status status = rlxvk_context_create(&options, out);
    restore(name, kept);
    note_tested(name);
    return status;
}

/* Opens a context with the switch at this value (NULL: unset) and begins to count. */
static rlxvk_context *open_with(const char *name, const char *value)
{
    rlxvk_context *c = NULL;
    expect_ok(create_with(name, value, NULL, &c));
    memset(&given, 0, sizeof given);
    said[0] = 0;
    real = c->device->fn;
    c->device->fn.CmdPipelineBarrier = count_barrier;
    c->device->fn.CreateShaderModule = count_module;
    c->device->fn.QueueSubmit = count_submit;
    return c;
}

/* Destroys a context whose plans lacked barriers. The validation layer may have said so. */
static void close_unsound(rlxvk_context *c)
{
    c->device->validation_messages = 0;
    close_context(c);
}

static rlxvk_executable *compile(rlxvk_context *c, const rlxvk_graph *g,
                                 const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(c, g, options, &e));
    return e;
}

static rlxvk_plan_report plan_of(const rlxvk_executable *e)
{
    rlxvk_plan_report report;
    rlxvk_executable_plan(e, &report);
    return report;
}

/* Runs with leaves of small integers. Returns a hash of the outputs, and destroys the executable if
 * `last` is set. */
static uint64_t results(rlxvk_executable *e, const rlxvk_graph *g, bool last)
{
    size_t count;
    float *values = run_seeded(e, g, 5, true, &count);
    uint64_t hash = hash_floats(values, count);
    free(values);
    if (last)
        rlxvk_executable_destroy(e);
    return hash;
}

/* ---- Graphs; with small integers, all their results are exact ---- */

static const rlxvk_compile_options unfused = {.fusion = RLXVK_OFF};

/* |x| - (-x) with its operands in two dispatches that do not depend on each other. */
static rlxvk_graph *diamond(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 16));
    rlxvk_graph_output(g, rlxvk_sub(g, rlxvk_abs(g, x), rlxvk_neg(g, x)));
    return g;
}

/* A product with bias and activation, and an elementwise chain behind its sums. */
static rlxvk_graph *network(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(6, 16)), w = param(g, "w", RLXVK_SHAPE(16, 8));
    rlxvk_tensor y = rlxvk_add(g, rlxvk_matmul(g, x, w), param(g, "b", RLXVK_SHAPE(8)));
    rlxvk_tensor sums = rlxvk_reduce_sum(g, rlxvk_relu(g, y), (const int32_t[]){1}, 1, true);
    rlxvk_graph_output(g, rlxvk_abs(g, rlxvk_neg(g, rlxvk_floor(g, sums))));
    return g;
}

/* ---- The device ---- */

static void device_is_chosen(void **state)
{
    rlxvk_device_info info, listed[8];
    rlxvk_context *c = NULL;
    char text[16];
    size_t count;
    (void)state;
    expect_error(create_with("RLXVK_DEVICE", "no such device", NULL, &c), RLXVK_E_NO_DEVICE,
                 "no such device");
    expect_ok(rlxvk_device_list(listed, ARRAY_COUNT(listed), &count));
    for (size_t i = 0; i < MIN(count, ARRAY_COUNT(listed)); i++) {
        snprintf(text, sizeof text, "%zu", i);
        c = open_with("RLXVK_DEVICE", text);
        rlxvk_context_device(c, &info);
        assert_int_equal(info.index, i);
        close_context(c);
    }
}

/* ---- What a compile prints ---- */

static void debug_tells_what_was_made(void **state)
{
    rlxvk_graph *g = diamond();
    char line[512];
    (void)state;
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_DEBUG", on ? "1" : NULL);
        rlxvk_compile_options o = unfused;
        o.host_ops = (const char *const[]){"neg"}, o.host_op_count = 1;
        rlxvk_executable *e = compile(c, g, &o);
        rlxvk_plan_report p = plan_of(e);
        assert_int_equal(p.dispatches, 2);
        assert_int_equal(p.host_steps, 1);
        snprintf(line, sizeof line, "device %s, ", c->device->snapshot.properties.deviceName);
        assert_int_equal(lines_with(line), on);
        snprintf(line, sizeof line,
                 "2 dispatches, %u barriers, 1 host steps, cached 1, %u submissions per run\n",
                 p.barriers, p.submissions_per_run);
        assert_int_equal(lines_with(line), on);
        assert_int_equal(lines_with("\n  unary 1\n"), on);
        assert_int_equal(lines_with("\n  binary 1\n"), on);
        said[0] = 0;
        (void)results(e, g, true);
        assert_string_equal(said, "");
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

static void dump_prints_the_stages_asked_for(void **state)
{
    static const char *const words[] = {"graph", "rewrite", "plan", "barriers"};
    static const char *const begins[] = {"graph: ", "rewritten: ", "plan: ", "barrier before step"};
    rlxvk_graph *g = diamond();
    (void)state;
    for (size_t asked = 0; asked <= ARRAY_COUNT(words); asked++) {
        rlxvk_context *c =
            open_with("RLXVK_DUMP", asked < ARRAY_COUNT(words) ? words[asked] : NULL);
        rlxvk_executable_destroy(compile(c, g, &unfused));
        for (size_t i = 0; i < ARRAY_COUNT(begins); i++)
            assert_int_equal(lines_with(begins[i]), i == asked);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* ---- RLXVK_CHECK ---- */

/* A plan without barriers is unsound, and only the check of plans tells. */
static void check_finds_bad_plans(void **state)
{
    rlxvk_graph *g = diamond();
    (void)state;
    for (int on = 0; on < 2; on++) {
        rlxvk_executable *e = NULL;
        rlxvk_context *c = open_with("RLXVK_CHECK", on ? "plan" : NULL);
        c->switches.no_barrier = true;
        if (on)
            expect_error(rlxvk_compile(c, g, &unfused, &e), RLXVK_E_RANGE,
                         "touch the same bytes with no barrier between them");
        else
            expect_ok(rlxvk_compile(c, g, &unfused, &e));
        rlxvk_executable_destroy(e);
        close_unsound(c);
    }
    rlxvk_graph_destroy(g);
}

static void check_finds_bad_indices(void **state)
{
    const float x[4] = {1, 2, 3, 4}, rows[2] = {1, 4};
    const rlxvk_run_input in[] = {{"x", x, 4, .f32_words = true},
                                  {"rows", rows, 2, .f32_words = true}};
    float y[2];
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = 2};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor index = rlxvk_input(g, "rows", RLXVK_I32, RLXVK_SHAPE(2));
    rlxvk_graph_output(g, rlxvk_gather(g, input(g, "x", RLXVK_SHAPE(4)), index, 0));
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_CHECK", on ? "index" : NULL);
        rlxvk_executable *e = compile(c, g, NULL);
        if (on)
            expect_error(rlxvk_run(e, in, 2, &out, 1), RLXVK_E_INDEX_OOB, "outside 0 .. 3");
        else
            expect_ok(rlxvk_run(e, in, 2, &out, 1));
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

static void check_finds_bad_scales(void **state)
{
    const uint8_t w[34] = {0xff, 0x7f}; /* one block of Q8_0; its scale is NaN */
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor packed = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(1, 34));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, input(g, "x", RLXVK_SHAPE(1, 32)), packed,
                                               RLXVK_Q8_0));
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_CHECK", on ? "packed" : NULL);
        rlxvk_executable *e = compile(c, g, NULL);
        if (on)
            expect_error(rlxvk_set_param_bytes(e, "w", w, sizeof w), RLXVK_E_RANGE, "scale d");
        else
            expect_ok(rlxvk_set_param_bytes(e, "w", w, sizeof w));
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* ---- Recording ---- */

static void commands_are_recorded_for_every_run(void **state)
{
    rlxvk_graph *g = diamond();
    uint64_t hash[2];
    (void)state;
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_NO_CACHE", on ? "1" : NULL);
        rlxvk_executable *e = compile(c, g, &unfused);
        (void)results(e, g, false);
        uint64_t recorded = vk_hooks.recorded;
        for (int run = 0; run < 3; run++)
            hash[on] = results(e, g, false);
        assert_int_equal(vk_hooks.recorded - recorded, on ? 3 * plan_of(e).segments : 0);
        assert_int_equal(plan_of(e).segments, 1);
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    assert_int_equal(hash[0], hash[1]);
    rlxvk_graph_destroy(g);
}

/* Opens a context with the switch and expects so many barriers between dispatches, both in the
 * report and in the recorded commands. */
static void expect_barriers(const char *name, const char *value, uint32_t wanted)
{
    rlxvk_graph *g = diamond();
    rlxvk_context *c = open_with(name, value);
    rlxvk_executable *e = compile(c, g, &unfused);
    assert_int_equal(plan_of(e).dispatches, 3);
    assert_int_equal(plan_of(e).barriers, wanted);
    assert_int_equal(given.barriers, wanted);
    uint64_t hash = results(e, g, true);
    if (wanted) {
        size_t count;
        float *values = evaluate_seeded(g, 5, true, &count);
        assert_int_equal(hash, hash_floats(values, count));
        free(values);
        close_context(c);
    } else {
        close_unsound(c);
    }
    rlxvk_graph_destroy(g);
}

static void barriers_are_as_asked(void **state)
{
    (void)state;
    expect_barriers("RLXVK_FULL_BARRIER", NULL, 1);
    expect_barriers("RLXVK_FULL_BARRIER", "1", 2);
    expect_barriers("RLXVK_NO_BARRIER", NULL, 1);
    expect_barriers("RLXVK_NO_BARRIER", "1", 0);
}

/* ---- Memory ---- */

static uint32_t count_shared(const plan *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->value_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const slot *a = &p->slots[i], *b = &p->slots[j];
            count += a->block != SLOT_NONE && a->class == b->class && a->block == b->block &&
                     a->offset < b->offset + b->size && b->offset < a->offset + a->size;
        }
    return count;
}

static void no_two_tensors_share_memory(void **state)
{
    rlxvk_graph *g = new_graph();
    uint64_t hash[2];
    (void)state;
    rlxvk_tensor t = input(g, "x", RLXVK_SHAPE(8, 64));
    for (int i = 0; i < 5; i++)
        t = rlxvk_cumsum(g, rlxvk_neg(g, t), i % 2, false);
    rlxvk_graph_output(g, t);
    for (int on = 0; on < 2; on++) {
        rlxvk_memory_report memory;
        rlxvk_context *c = open_with("RLXVK_PLAN", on ? "bump" : NULL);
        rlxvk_executable *e = compile(c, g, &unfused);
        rlxvk_executable_memory(e, &memory);
        assert_int_equal(count_shared(&e->program->plan) == 0, on);
        assert_int_equal(memory.scratch_bytes >= memory.scratch_unshared, on);
        hash[on] = results(e, g, true);
        close_context(c);
    }
    assert_int_equal(hash[0], hash[1]);
    rlxvk_graph_destroy(g);
}

static void weights_are_prepared_within_the_limit(void **state)
{
    static const char *const limits[] = {NULL, "64", "1000000"};
    const rlxvk_variant packing = {"conv", "packed_64x128"};
    const rlxvk_compile_options o = {.variants = &packing, .variant_count = 1};
    rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g,
                       rlxvk_conv(g, input(g, "x", RLXVK_SHAPE(1, 64, 8, 8)),
                                  param(g, "w", RLXVK_SHAPE(64, 64, 3, 3)), RLXVK_NONE, &around));
    for (int i = 0; i < 3; i++) {
        rlxvk_memory_report memory;
        rlxvk_context *c = open_with("RLXVK_PREPARED_BYTES", limits[i]);
        rlxvk_executable *e = compile(c, g, &o);
        rlxvk_executable_memory(e, &memory);
        assert_int_equal(plan_of(e).prepared_dispatches > 0, i == 2);
        assert_int_equal(memory.prepared_bytes > 0, i == 2);
        assert_true(memory.prepared_bytes <= 1000000);
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* ---- Kernels ---- */

static rlxvk_graph *product(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, rlxvk_matmul(g, input(g, "x", RLXVK_SHAPE(8, 64)),
                                       input(g, "w", RLXVK_SHAPE(64, 32))));
    return g;
}

static const rlxvk_compile_options with_plan = {.dump = RLXVK_DUMP_PLAN};

static void variants_are_those_named(void **state)
{
    rlxvk_graph *g = product();
    uint64_t hash[2];
    (void)state;
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_VARIANT", on ? "matmul=scalar_single" : NULL);
        rlxvk_executable *e = compile(c, g, &with_plan);
        assert_int_equal(lines_with(" scalar_single (forced) groups "), on);
        assert_int_equal(lines_with("(forced)"), on);
        hash[on] = results(e, g, true);
        close_context(c);
    }
    assert_int_equal(hash[0], hash[1]);
    rlxvk_graph_destroy(g);
}

/* A tuning file, as if the variant had been measured on this device. */
static void measured_variants_are_left_out(void **state)
{
    static const char text[] = "rlxvk tuning 1\nmatmul nn 8,32,64,1 scalar_single 1.0\n";
    char folder[] = "/tmp/rlxvk-switches-XXXXXX", path[512];
    rlxvk_graph *g = product();
    (void)state;
    assert_non_null(mkdtemp(folder));
    rlxvk_context *writer = open_context(NULL);
    expect_ok(pipeline_cache_write_text(writer->device, folder, "tuning", text, path, sizeof path));
    close_context(writer);
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = NULL;
        expect_ok(create_with("RLXVK_NO_TUNING", on ? "1" : NULL, folder, &c));
        said[0] = 0;
        rlxvk_executable_destroy(compile(c, g, &with_plan));
        assert_int_equal(lines_with(" scalar_single (tuned) groups "), !on);
        assert_int_equal(lines_with("(tuned)"), !on);
        close_context(c);
    }
    assert_int_equal(remove_folder(folder), 0);
    rlxvk_graph_destroy(g);
}

/* Specialized modules declare no specialization constants. */
static void drivers_specialize(void **state)
{
    rlxvk_graph *g = network();
    uint64_t hash[2], modules[2];
    (void)state;
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_NO_SPECIALIZATION", on ? "1" : NULL);
        rlxvk_executable *e = compile(c, g, NULL);
        assert_int_equal(given.constants > 0, on);
        modules[on] = given.modules;
        hash[on] = results(e, g, true);
        close_context(c);
    }
    assert_true(modules[0] > 0);
    assert_int_equal(modules[0], modules[1]);
    assert_int_equal(hash[0], hash[1]);
    rlxvk_graph_destroy(g);
}

/* Permuted kernels are other modules with the same results. */
static void invocations_come_in_another_order(void **state)
{
    static const char *const orders[] = {NULL, "reversed", "permuted", "permuted:7"};
    rlxvk_graph *g = diamond();
    uint64_t hash[4], modules[4];
    rlxvk_context *c = NULL;
    (void)state;
    for (int i = 0; i < 4; i++) {
        c = open_with("RLXVK_INVOCATIONS", orders[i]);
        rlxvk_executable *e = compile(c, g, &unfused);
        assert_int_equal(pipeline_count_permuted(c->device), i ? given.modules : 0);
        modules[i] = given.hash;
        hash[i] = results(e, g, true);
        for (int k = 0; k < i; k++)
            assert_true(modules[k] != modules[i]);
        assert_int_equal(hash[0], hash[i]);
        close_context(c);
    }
    char *kept = replace("RLXVK_NO_SPECIALIZATION", "1");
    expect_error(create_with("RLXVK_INVOCATIONS", "reversed", NULL, &c), RLXVK_E_ATTR,
                 "unset RLXVK_NO_SPECIALIZATION");
    restore("RLXVK_NO_SPECIALIZATION", kept);
    rlxvk_graph_destroy(g);
}

/* ---- Rewriting ---- */

static void fusions_and_regions_are_left_out(void **state)
{
    static const struct {
        const char *name, *value;
        uint32_t products, regions, dispatches;
    } cases[] = {
        {"RLXVK_NO_FUSION", NULL, 1, 1, 3},
        {"RLXVK_NO_FUSION", "1", 0, 0, 7},
        {"RLXVK_NO_REGIONS", NULL, 1, 1, 3},
        {"RLXVK_NO_REGIONS", "1", 1, 0, 5},
    };
    rlxvk_graph *g = network();
    uint64_t hash[4];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_context *c = open_with(cases[i].name, cases[i].value);
        rlxvk_executable *e = compile(c, g, NULL);
        const rlxvk_graph *after = e->program->graph;
        expect_count("products", count_op(after, OP_fused_matmul_bias_act), cases[i].products);
        expect_count("regions", count_op(after, OP_elementwise_region), cases[i].regions);
        expect_count("dispatches", plan_of(e).dispatches, cases[i].dispatches);
        hash[i] = results(e, g, true);
        assert_int_equal(hash[0], hash[i]);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* ---- Runs ---- */

/* An input that did not change is not uploaded. So if somebody else writes its slot in between, a
 * run reads that, but with the switch it does not. */
static void inputs_are_uploaded_in_every_run(void **state)
{
    const float x[4] = {1, 2, 3, 4}, other[4] = {9, 9, 9, 9};
    const rlxvk_run_input in = {"x", x, 4, .f32_words = true};
    float y[4];
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = 4};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(4))));
    for (int on = 0; on < 2; on++) {
        rlxvk_context *c = open_with("RLXVK_FORCE_INPUT_UPLOAD", on ? "1" : NULL);
        rlxvk_executable *e = compile(c, g, &unfused);
        for (int run = 0; run < 3; run++) {
            expect_ok(rlxvk_run(e, &in, 1, &out, 1));
            for (int i = 0; i < 4; i++)
                assert_true(y[i] == -(run == 0 || on ? x : other)[i]);
            location to = executable_location(e, e->inputs[0].leaf->node);
            expect_ok(transfer_write(e, &to, other, sizeof other));
        }
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* The kernels run, but outputs are neither copied nor read. With and without memory that the host
 * can read in place. */
static void outputs_are_not_read(void **state)
{
    const float x[4] = {1, 2, 3, 4}, wanted[4] = {-1, -2, -3, -4}, none[4] = {0};
    const rlxvk_run_input in = {"x", x, 4, .f32_words = true};
    float y[4], held[4];
    const rlxvk_run_output out = {.index = 0, .buffer = y, .length = 4};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(4))));
    for (int i = 0; i < 4; i++) {
        bool on = i & 1, staged = i & 2;
        rlxvk_context *c = open_with("RLXVK_DISPATCH_ONLY", on ? "1" : NULL);
        c->device->setup.arena_cached = c->device->setup.arena_cached && !staged;
        rlxvk_executable *e = compile(c, g, &unfused);
        expect_ok(rlxvk_run(e, &in, 1, &out, 1)); /* the second run uploads nothing */
        memset(y, 0xff, sizeof y);
        given.submitted = 0;
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
        assert_memory_equal(y, on ? none : wanted, sizeof y);
        bool copies = e->outputs[0].readback.commands != NULL;
        assert_true(copies || !staged);
        assert_int_equal(given.submitted, copies && !on ? 2 : 1);
        location from = executable_output_location(e, &e->outputs[0]);
        expect_ok(transfer_read(e, &from, held, sizeof held));
        assert_memory_equal(held, wanted, sizeof held);
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* ---- The table ---- */

static bool file_names(const char *file, const char *name)
{
    char line[256], quoted[80];
    bool found = false;
    FILE *f = fopen(file, "r");
    if (!f)
        fail_msg("there is no %s", file);
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    while (fgets(line, sizeof line, f))
        found = found || strstr(line, quoted);
    fclose(f);
    return found;
}

static void every_switch_has_a_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(elsewhere); i++) {
        if (!file_names(elsewhere[i].file, elsewhere[i].name))
            fail_msg("%s does not set %s", elsewhere[i].file, elsewhere[i].name);
        note_tested(elsewhere[i].name);
    }
    for (size_t i = 0; switches_name(i); i++)
        if (!tested[i])
            fail_msg("no test sets %s", switches_name(i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_is_chosen),
        cmocka_unit_test(debug_tells_what_was_made),
        cmocka_unit_test(dump_prints_the_stages_asked_for),
        cmocka_unit_test(check_finds_bad_plans),
        cmocka_unit_test(check_finds_bad_indices),
        cmocka_unit_test(check_finds_bad_scales),
        cmocka_unit_test(commands_are_recorded_for_every_run),
        cmocka_unit_test(barriers_are_as_asked),
        cmocka_unit_test(no_two_tensors_share_memory),
        cmocka_unit_test(weights_are_prepared_within_the_limit),
        cmocka_unit_test(variants_are_those_named),
        cmocka_unit_test(measured_variants_are_left_out),
        cmocka_unit_test(drivers_specialize),
        cmocka_unit_test(invocations_come_in_another_order),
        cmocka_unit_test(fusions_and_regions_are_left_out),
        cmocka_unit_test(inputs_are_uploaded_in_every_run),
        cmocka_unit_test(outputs_are_not_read),
        cmocka_unit_test(every_switch_has_a_test), /* the last one */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
