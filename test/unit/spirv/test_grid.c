/*
 * Modules that see another grid than the one that is launched. Their loads of the number of
 * workgroups become constants, and nothing else changes. If they read the number in another way,
 * they are refused. The validator of SPIRV-Tools must accept every kernel after that.
 */
#include "kernel/kernel.h"
#include "spirv/spirv.h"
#include "support/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char module_text[] =
    "OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
    "OpEntryPoint GLCompute %%main \"main\" %%counts %%group\n"
    "OpExecutionMode %%main LocalSize 1 1 1\n"
    "OpDecorate %%counts BuiltIn NumWorkgroups\nOpDecorate %%group BuiltIn WorkgroupId\n"
    "%%void = OpTypeVoid\n%%procedure = OpTypeFunction %%void\n%%uint = OpTypeInt 32 0\n"
    "%%vector = OpTypeVector %%uint 3\n%%inputs = OpTypePointer Input %%vector\n"
    "%%input = OpTypePointer Input %%uint\n%%counts = OpVariable %%inputs Input\n"
    "%%group = OpVariable %%inputs Input\n"
    "%%zero = OpConstant %%uint 0\n%%one = OpConstant %%uint 1\n%%two = OpConstant %%uint 2\n"
    "%%main = OpFunction %%void None %%procedure\n%%begin = OpLabel\n"
    "%%x_at = OpAccessChain %%input %%group %%zero\n%%x = OpLoad %%uint %%x_at\n"
    "%s"
    "OpReturn\nOpFunctionEnd\n";

#define COMPONENTS                                                                                 \
    "%nx_at = OpAccessChain %input %counts %zero\n%nx = OpLoad %uint %nx_at\n"                     \
    "%ny_at = OpInBoundsAccessChain %input %counts %one\n%ny = OpLoad %uint %ny_at\n"              \
    "%nz_at = OpAccessChain %input %counts %two\n%nz = OpLoad %uint %nz_at\n"                      \
    "%a = OpIMul %uint %nx %ny\n%b = OpIMul %uint %a %nz\n"

static const uint32_t grid[3] = {6, 40, 1};

static module module_of(const char *body)
{
    char whole[4096];
    assert_true(snprintf(whole, sizeof whole, module_text, body) < (int)sizeof whole);
    return module_assemble(whole);
}

static module fixed(const module *m)
{
    module out = {0};
    out.words = spirv_fix_grid(m->words, m->count, grid, &out.count);
    return out;
}

/* Returns the value of the constant that the nth copy copies. */
static uint32_t copied(const module *m, uint32_t nth)
{
    uint32_t id = 0, seen = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        if (opcode_of(m->words[i]) == SpvOpCopyObject && seen++ == nth)
            id = m->words[i + 3];
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        if (opcode_of(m->words[i]) == SpvOpConstant && m->words[i + 2] == id)
            return m->words[i + 3];
    fail();
    return 0;
}

static void loads_become_constants(void **state)
{
    module m = module_of(COMPONENTS), f = fixed(&m);
    (void)state;
    assert_non_null(f.words);
    assert_true(module_is_valid(&f, "/dev/stderr"));
    assert_int_equal(module_occurrences(&m, SpvOpLoad), 4);
    assert_int_equal(module_occurrences(&f, SpvOpLoad), 1); /* the workgroup's own number */
    assert_int_equal(module_occurrences(&f, SpvOpCopyObject), 3);
    for (uint32_t k = 0; k < 3; k++)
        assert_int_equal(copied(&f, k), grid[k]);
    memory_free(m.words);
    memory_free(f.words);
}

/* A load of all three words becomes a copy of a composite of the same constants. */
static void whole_loads_become_constants(void **state)
{
    module m = module_of(COMPONENTS "%all = OpLoad %vector %counts\n"), f = fixed(&m);
    uint32_t composite = 0, last = 0;
    (void)state;
    assert_true(spirv_reads_grid(m.words, m.count));
    assert_non_null(f.words);
    assert_false(spirv_reads_grid(f.words, f.count));
    assert_true(module_is_valid(&f, "/dev/stderr"));
    assert_int_equal(module_occurrences(&f, SpvOpLoad), 1);
    assert_int_equal(module_occurrences(&f, SpvOpConstantComposite), 1);
    for (uint32_t i = SPIRV_HEADER_WORDS; i < f.count; i += length_of(f.words[i])) {
        if (opcode_of(f.words[i]) == SpvOpConstantComposite)
            composite = f.words[i + 2];
        if (opcode_of(f.words[i]) == SpvOpCopyObject)
            last = f.words[i + 3];
    }
    assert_int_equal(last, composite);
    memory_free(m.words);
    memory_free(f.words);
}

static void other_readings_are_refused(void **state)
{
    static const char *const bodies[] = {
        "", /* not read */
        "%nx_at = OpAccessChain %input %counts %x\n%nx = OpLoad %uint %nx_at\n",
        COMPONENTS "%nx_by = OpAccessChain %input %counts %x\n%nxx = OpLoad %uint %nx_by\n"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        module m = module_of(bodies[i]), f = fixed(&m);
        assert_null(f.words);
        assert_int_equal(spirv_reads_grid(m.words, m.count), i > 0);
        memory_free(m.words);
        memory_free(f.words);
    }
}

static bool reads_counts(const module *m)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        if (opcode_of(m->words[i]) == SpvOpDecorate && m->words[i + 2] == SpvDecorationBuiltIn &&
            m->words[i + 3] == SpvBuiltInNumWorkgroups)
            return true;
    return false;
}

static void every_kernel_stays_valid(void **state)
{
    uint32_t changed = 0;
    (void)state;
    for (uint32_t id = 0; id < KERNEL_COUNT; id++) {
        module m = {kernel_words(kernel_find(id)), kernel_find(id)->word_count};
        module f = fixed(&m);
        if (!f.words && reads_counts(&m))
            fail_msg("kernel %s", kernel_find(id)->name);
        if (f.words && module_is_valid(&m, "/dev/null") && !module_is_valid(&f, "/dev/stderr"))
            fail_msg("kernel %s", kernel_find(id)->name);
        changed += f.words != NULL;
        memory_free(m.words);
        memory_free(f.words);
    }
    assert_true(changed > KERNEL_COUNT / 2);
}

static void out_of_memory_gives_nothing(void **state)
{
    module m = module_of(COMPONENTS), f = {0};
    uint32_t failed = 0;
    (void)state;
    for (uint64_t nth = 1; !f.words; nth++) {
        memory_fail_at(nth);
        f = fixed(&m);
        memory_fail_at(0);
        failed += !f.words;
    }
    assert_int_equal(failed, 3);
    memory_free(m.words);
    memory_free(f.words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_become_constants),
        cmocka_unit_test(whole_loads_become_constants),
        cmocka_unit_test(other_readings_are_refused),
        cmocka_unit_test(every_kernel_stays_valid),
        cmocka_unit_test(out_of_memory_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
