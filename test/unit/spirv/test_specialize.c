/*
 * Modules whose specialization constants are replaced by values. Tests which code is removed, and
 * which must stay because control flow must remain structured (the validator of SPIRV-Tools checks
 * that). Also tests every kernel of the library.
 */
#define _POSIX_C_SOURCE 200809L
#include "kernel/kernel.h"
#include "constants/elementwise.h"
#include "spirv/spirv.h"
#include "support/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool defines(const module *m, uint32_t opcode, uint32_t value)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        if (opcode_of(m->words[i]) == opcode && m->words[i + 3] == value)
            return true;
    return false;
}

/* The constants 0, 1, .. are %size, %a, %b. The body is placed between the labels of main. It gets
 * %x, which is loaded from the buffer, and must define %result, which is stored at the end. */
static const char head[] =
    "OpCapability Shader\n"
    "OpMemoryModel Logical GLSL450\n"
    "OpEntryPoint GLCompute %main \"main\" %data\n"
    "OpExecutionMode %main LocalSize 1 1 1\n"
    "OpDecorate %size SpecId 0\nOpDecorate %a SpecId 1\nOpDecorate %b SpecId 2\n"
    "OpDecorate %group BuiltIn WorkgroupSize\n"
    "OpDecorate %array ArrayStride 4\nOpMemberDecorate %block 0 Offset 0\nOpDecorate %block Block\n"
    "OpDecorate %data DescriptorSet 0\nOpDecorate %data Binding 0\n"
    "%void = OpTypeVoid\n%procedure = OpTypeFunction %void\n%bool = OpTypeBool\n"
    "%uint = OpTypeInt 32 0\n%function = OpTypeFunction %uint %uint\n"
    "%v3 = OpTypeVector %uint 3\n%array = OpTypeRuntimeArray %uint\n"
    "%block = OpTypeStruct %array\n%pointer = OpTypePointer StorageBuffer %block\n"
    "%element = OpTypePointer StorageBuffer %uint\n%data = OpVariable %pointer StorageBuffer\n"
    "%zero = OpConstant %uint 0\n%one = OpConstant %uint 1\n%seven = OpConstant %uint 7\n"
    "%nine = OpConstant %uint 9\n"
    "%size = OpSpecConstant %uint 1\n%a = OpSpecConstant %uint 3\n%b = OpSpecConstant %uint 5\n"
    "%group = OpSpecConstantComposite %v3 %size %one %one\n"
    "%sum = OpSpecConstantOp %uint IAdd %a %b\n"
    "%equal = OpSpecConstantOp %bool IEqual %a %b\n"
    "%main = OpFunction %void None %procedure\n%begin = OpLabel\n"
    "%place = OpAccessChain %element %data %zero %zero\n%x = OpLoad %uint %place\n"
    "%less = OpULessThan %bool %x %seven\n";
static const char tail[] = "OpStore %place %result\nOpReturn\nOpFunctionEnd\n";

static module assemble_body(const char *body, const char *functions)
{
    char text[8192];
    assert_true(snprintf(text, sizeof text, "%s%s%s%s", head, body, tail, functions) <
                (int)sizeof text);
    return module_assemble(text);
}

/* Specializes with the first `count` constants. */
static module specialize(const char *body, const char *functions, const uint32_t *constants,
                         uint32_t count, bool unroll_hints)
{
    module whole = assemble_body(body, functions), m = {0};
    m.words = spirv_specialize(whole.words, whole.count, constants, count, unroll_hints, &m.count);
    assert_non_null(m.words);
    assert_true(m.count <= whole.count);
    assert_true(module_is_valid(&m, "/dev/stderr"));
    assert_int_equal(module_occurrences(&m, SpvOpSpecConstant) +
                         module_occurrences(&m, SpvOpSpecConstantOp) +
                         module_occurrences(&m, SpvOpSpecConstantComposite),
                     0);
    memory_free(whole.words);
    return m;
}

static module specialized(const char *body, const char *functions, uint32_t a, uint32_t b)
{
    return specialize(body, functions, (uint32_t[]){4, a, b}, 3, true);
}

/* ---- Constants, branches, functions ---- */

static const char choice[] = "OpSelectionMerge %after None\nOpBranchConditional %equal %yes %no\n"
                             "%yes = OpLabel\n%called = OpFunctionCall %uint %double %x\n"
                             "OpBranch %after\n"
                             "%no = OpLabel\n%product = OpIMul %uint %sum %seven\n"
                             "OpBranch %after\n"
                             "%after = OpLabel\n"
                             "%result = OpPhi %uint %called %yes %product %no\n";
static const char called[] = "%double = OpFunction %uint None %function\n"
                             "%given = OpFunctionParameter %uint\n%inside = OpLabel\n"
                             "%twice = OpIAdd %uint %given %given\n"
                             "OpReturnValue %twice\nOpFunctionEnd\n";

static void test_the_branch_taken(void **state)
{
    (void)state;
    module m = specialized(choice, called, 6, 6);
    assert_int_equal(module_occurrences(&m, SpvOpBranchConditional), 0);
    assert_int_equal(module_occurrences(&m, SpvOpSelectionMerge), 0);
    assert_int_equal(module_occurrences(&m, SpvOpFunctionCall), 1);
    assert_int_equal(module_occurrences(&m, SpvOpIMul), 0);
    assert_true(defines(&m, SpvOpConstant, 4)); /* the workgroup's size */
    memory_free(m.words);
}

/* A product of constants becomes a constant. So does a phi, if only that value reaches it. */
static void test_the_branch_not_taken(void **state)
{
    (void)state;
    module m = specialized(choice, called, 6, 8);
    assert_int_equal(module_occurrences(&m, SpvOpFunction), 1);
    assert_int_equal(module_occurrences(&m, SpvOpFunctionCall), 0);
    assert_int_equal(module_occurrences(&m, SpvOpPhi), 0);
    assert_true(defines(&m, SpvOpConstant, (6 + 8) * 7));
    memory_free(m.words);
}

/* If a constant gets no value, it keeps the module's default. */
static void test_defaults(void **state)
{
    (void)state;
    module m = specialize(choice, called, (uint32_t[]){4}, 1, true);
    assert_true(defines(&m, SpvOpConstant, (3 + 5) * 7));
    memory_free(m.words);
}

static void test_division_by_zero_stays(void **state)
{
    (void)state;
    module m = specialized("%result = OpUDiv %uint %a %b\n", "", 6, 0);
    assert_int_equal(module_occurrences(&m, SpvOpUDiv), 1);
    memory_free(m.words);
}

static void test_select(void **state)
{
    (void)state;
    module m = specialized("%result = OpSelect %uint %equal %x %nine\n", "", 6, 6);
    assert_int_equal(module_occurrences(&m, SpvOpSelect), 0);
    assert_int_equal(module_occurrences(&m, SpvOpCopyObject), 1);
    memory_free(m.words);
}

/* ---- Structure ---- */

/* A break out of a switch, inside a selection whose condition is constant. */
static void test_break_out_of_a_switch(void **state)
{
    static const char body[] =
        "OpSelectionMerge %after None\nOpSwitch %a %other 1 %first 2 %second\n"
        "%first = OpLabel\nOpSelectionMerge %inner None\nOpBranchConditional %equal %in %inner\n"
        "%in = OpLabel\nOpSelectionMerge %deep None\nOpBranchConditional %less %leave %deep\n"
        "%leave = OpLabel\nOpBranch %after\n%deep = OpLabel\nOpBranch %inner\n"
        "%inner = OpLabel\nOpBranch %after\n"
        "%second = OpLabel\nOpBranch %after\n%other = OpLabel\nOpBranch %after\n"
        "%after = OpLabel\n"
        "%result = OpPhi %uint %x %leave %one %inner %seven %second %nine %other\n";
    (void)state;
    module m = specialized(body, "", 1, 1);
    assert_int_equal(module_occurrences(&m, SpvOpSwitch), 1);
    assert_int_equal(module_occurrences(&m, SpvOpBranchConditional), 1);
    memory_free(m.words);
    m = specialized(body, "", 2, 1);
    assert_int_equal(module_occurrences(&m, SpvOpBranchConditional), 0);
    assert_true(defines(&m, SpvOpConstant, 7));
    memory_free(m.words);
}

/* If both sides of a selection return, its merge block must stay, although it is unreachable. */
static void test_merge_block_that_nothing_reaches(void **state)
{
    static const char body[] =
        "OpSelectionMerge %after None\nOpBranchConditional %less %yes %no\n"
        "%yes = OpLabel\nOpReturn\n"
        "%no = OpLabel\nOpSelectionMerge %inner None\nOpBranchConditional %equal %in %inner\n"
        "%in = OpLabel\nOpReturn\n"
        "%inner = OpLabel\nOpBranch %after\n"
        "%after = OpLabel\n%result = OpIAdd %uint %x %one\n";
    (void)state;
    module m = specialized(body, "", 6, 6);
    assert_int_equal(module_occurrences(&m, SpvOpUnreachable), 1);
    assert_int_equal(module_occurrences(&m, SpvOpStore), 0);
    memory_free(m.words);
}

/* A loop over %i that continues at %again or leaves to %after. */
#define LOOP(decide)                                                                               \
    "OpBranch %header\n%header = OpLabel\n%i = OpPhi %uint %zero %begin %next %again\n"            \
    "OpLoopMerge %after %again Unroll\nOpBranch %inside\n%inside = OpLabel\n" decide               \
    "%again = OpLabel\n%next = OpIAdd %uint %i %one\nOpBranch %header\n"                           \
    "%after = OpLabel\n%result = OpIAdd %uint %i %x\n"

/* If a loop never repeats, it is no longer a real loop, but its blocks must stay. */
static void test_loop_that_never_repeats(void **state)
{
    static const char body[] = LOOP("OpBranchConditional %equal %after %again\n");
    (void)state;
    module m = specialized(body, "", 6, 6);
    assert_int_equal(module_occurrences(&m, SpvOpLoopMerge), 1);
    memory_free(m.words);
}

static void test_unroll_hints(void **state)
{
    static const char body[] = LOOP("%more = OpULessThan %bool %i %a\n"
                                    "OpBranchConditional %more %again %after\n");
    (void)state;
    for (uint32_t hints = 0; hints < 2; hints++) {
        module m = specialize(body, "", NULL, 0, hints);
        uint32_t i = SPIRV_HEADER_WORDS;
        while (opcode_of(m.words[i]) != SpvOpLoopMerge)
            i += length_of(m.words[i]);
        assert_int_equal(m.words[i + 3] & SpvLoopControlUnrollMask, hints);
        memory_free(m.words);
    }
}

/* ---- The library's kernels ---- */

/* The constants get each of several values in turn, so flags are on and off. Kernels that need a
 * newer validator are left out. */
static void test_all_kernels(void **state)
{
    static const uint32_t values[] = {8, 16, 24, 64};
    (void)state;
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        const kernel_info *kernel = &kernel_table[k];
        uint32_t *words = kernel_words(kernel);
        bool known = module_is_valid(&(module){words, kernel->word_count}, "/dev/null");
        for (size_t v = 0; v < ARRAY_COUNT(values) && known; v++) {
            uint32_t constants[KERNEL_MAX_CONSTANTS];
            module m = {0};
            for (uint32_t i = 0; i < KERNEL_MAX_CONSTANTS; i++)
                constants[i] = i ? values[v] : 64;
            m.words = spirv_specialize(words, kernel->word_count, constants, KERNEL_MAX_CONSTANTS,
                                       true, &m.count);
            assert_non_null(m.words);
            if (!module_is_valid(&m, "/dev/stderr"))
                fail_msg("kernel %s with constants of %u", kernel->name, values[v]);
            memory_free(m.words);
        }
        memory_free(words);
    }
}

/* If a region is only one addition, little of the kernel may remain. */
static void test_region_is_what_it_does(void **state)
{
    const kernel_info *kernel = &kernel_table[KERNEL_REGION_ALL_SHORT];
    uint32_t constants[KERNEL_MAX_CONSTANTS] = {
        [LOCAL_SIZE] = 64, [REGION_FORM] = 1, [REGION_PRESENT] = 3};
    uint32_t count = 0, *whole = kernel_words(kernel);
    (void)state;
    uint32_t *words =
        spirv_specialize(whole, kernel->word_count, constants, KERNEL_MAX_CONSTANTS, true, &count);
    assert_true(count < kernel->word_count / 3);
    memory_free(words);
    memory_free(whole);
}

static void test_out_of_memory(void **state)
{
    const kernel_info *kernel = &kernel_table[KERNEL_COPY];
    uint32_t *words = kernel_words(kernel);
    (void)state;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        uint32_t count = 0;
        memory_fail_at(nth);
        assert_null(spirv_specialize(words, kernel->word_count, NULL, 0, true, &count));
    }
    memory_fail_at(0);
    memory_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_branch_taken),
        cmocka_unit_test(test_the_branch_not_taken),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_division_by_zero_stays),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_break_out_of_a_switch),
        cmocka_unit_test(test_merge_block_that_nothing_reaches),
        cmocka_unit_test(test_loop_that_never_repeats),
        cmocka_unit_test(test_unroll_hints),
        cmocka_unit_test(test_all_kernels),
        cmocka_unit_test(test_region_is_what_it_does),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
