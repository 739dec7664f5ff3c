/*
 * Transformations of modules: inlining, merging of blocks, fused multiply-adds, and removal of
 * unused buffers. Tests which parts change and which must stay. The validator of SPIRV-Tools must
 * accept the results, also of every kernel of the library.
 */
#define _POSIX_C_SOURCE 200809L
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "kernel/kernel.h"
#include "spirv/spirv.h"
#include "support/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef uint32_t *transformation(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* The body is placed between the labels of main. It gets %x and %y (floats) and %i (an integer),
 * which are loaded from the buffer. It must define %result, which is stored at the end. */
static const char head[] =
    "OpCapability Shader\n%standard = OpExtInstImport \"GLSL.std.450\"\n"
    "OpMemoryModel Logical GLSL450\n"
    "OpEntryPoint GLCompute %main \"main\" %data %flag\n"
    "OpExecutionMode %main LocalSize 1 1 1\n"
    "OpName %exact \"exact\"\nOpDecorate %exact NoContraction\n"
    "OpDecorate %array ArrayStride 4\nOpMemberDecorate %block 0 Offset 0\nOpDecorate %block Block\n"
    "OpDecorate %data DescriptorSet 0\nOpDecorate %data Binding 0\n"
    "%void = OpTypeVoid\n%procedure = OpTypeFunction %void\n%bool = OpTypeBool\n"
    "%float = OpTypeFloat 32\n%int = OpTypeInt 32 0\n"
    "%local = OpTypePointer Function %float\n%function = OpTypeFunction %float %float\n"
    "%reader = OpTypeFunction %float %local\n%array = OpTypeRuntimeArray %float\n"
    "%block = OpTypeStruct %array\n%pointer = OpTypePointer StorageBuffer %block\n"
    "%element = OpTypePointer StorageBuffer %float\n%data = OpVariable %pointer StorageBuffer\n"
    "%private = OpTypePointer Private %bool\n%flag = OpVariable %private Private\n"
    "%pair = OpTypeVector %float 2\n%zero = OpConstant %int 0\n%one = OpConstant %int 1\n%half = "
    "OpConstant %float 0.5\n"
    "%main = OpFunction %void None %procedure\n%begin = OpLabel\n";
static const char loads[] =
    "%place = OpAccessChain %element %data %zero %zero\n%x = OpLoad %float %place\n"
    "%place1 = OpAccessChain %element %data %zero %one\n%y = OpLoad %float %place1\n"
    "%i = OpConvertFToU %int %y\n%less = OpFOrdLessThan %bool %x %y\n";
static const char tail[] = "OpStore %place %result\nOpReturn\nOpFunctionEnd\n";
/* The head decorates %exact, so every module must define it. */
static const char precise[] = "%exact_function = OpFunction %float None %function\n"
                              "%exact_given = OpFunctionParameter %float\n%exact_begin = OpLabel\n"
                              "%exact = OpFMul %float %exact_given %exact_given\n"
                              "%exact_sum = OpFAdd %float %exact %half\n"
                              "OpReturnValue %exact_sum\nOpFunctionEnd\n";

static module transformed(transformation *by, const char *variables, const char *body,
                          const char *functions)
{
    char text[8192];
    module m = {0}, whole;
    assert_true(snprintf(text, sizeof text, "%s%s%s%s%s%s%s", head, variables, loads, body, tail,
                         functions, precise) < (int)sizeof text);
    whole = module_assemble(text);
    m.words = by(whole.words, whole.count, &m.count);
    assert_non_null(m.words);
    assert_true(module_is_valid(&m, "/dev/stderr"));
    memory_free(whole.words);
    return m;
}

static module inlined(const char *body, const char *functions)
{
    return transformed(spirv_inline, "", body, functions);
}

static void check(module m, uint32_t opcode, uint32_t count)
{
    assert_int_equal(module_occurrences(&m, opcode), count);
}

/* ---- Calls ---- */

static void test_calls_of_one_block(void **state)
{
    (void)state;
    module m = inlined("%first = OpFunctionCall %float %exact_function %x\n"
                       "%result = OpFunctionCall %float %exact_function %first\n",
                       "");
    check(m, SpvOpFunctionCall, 0);
    check(m, SpvOpFunction, 1);
    check(m, SpvOpLabel, 1);
    check(m, SpvOpFMul, 2);
    uint32_t exact = 0; /* both copies of a precise product must be precise */
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m.count; i += length_of(m.words[i]))
        exact +=
            opcode_of(m.words[i]) == SpvOpDecorate && m.words[i + 2] == SpvDecorationNoContraction;
    assert_int_equal(exact, 2);
    memory_free(m.words);
}

/* A function that returns on both sides of a branch. */
static const char sides[] = "%sides = OpFunction %float None %function\n"
                            "%given = OpFunctionParameter %float\n%first = OpLabel\n"
                            "%low = OpFOrdLessThan %bool %given %half\n"
                            "OpSelectionMerge %over None\nOpBranchConditional %low %yes %over\n"
                            "%yes = OpLabel\nOpReturnValue %half\n"
                            "%over = OpLabel\n%twice = OpFAdd %float %given %given\n"
                            "OpReturnValue %twice\nOpFunctionEnd\n";

/* Inlining splits the block of the call. The phi after the call must then name the last of its
 * blocks. */
static void test_returns_from_inside_a_selection(void **state)
{
    static const char body[] =
        "OpSelectionMerge %after None\nOpBranchConditional %less %then %else\n"
        "%then = OpLabel\n%called = OpFunctionCall %float %sides %x\n"
        "%more = OpFAdd %float %called %x\nOpBranch %after\n"
        "%else = OpLabel\nOpBranch %after\n"
        "%after = OpLabel\n%result = OpPhi %float %more %then %y %else\n";
    (void)state;
    module m = inlined(body, sides);
    check(m, SpvOpFunctionCall, 0);
    check(m, SpvOpSwitch, 1);
    check(m, SpvOpPhi, 2);
    memory_free(m.words);
}

/* The variable of an inlined function becomes the caller's. Each copy sets it again. Functions that
 * it calls are inlined, too. */
static void test_variables_and_calls_of_calls(void **state)
{
    static const char functions[] = "%outer = OpFunction %float None %function\n"
                                    "%wanted = OpFunctionParameter %float\n%enter = OpLabel\n"
                                    "%kept = OpVariable %local Function %half\n"
                                    "%inner = OpFunctionCall %float %read %kept\n"
                                    "OpStore %kept %wanted\n"
                                    "%again = OpFunctionCall %float %read %kept\n"
                                    "%added = OpFAdd %float %inner %again\n"
                                    "OpReturnValue %added\nOpFunctionEnd\n"
                                    "%read = OpFunction %float None %reader\n"
                                    "%from = OpFunctionParameter %local\n%start = OpLabel\n"
                                    "%value = OpLoad %float %from\n"
                                    "OpReturnValue %value\nOpFunctionEnd\n";
    (void)state;
    module m = inlined("%one_call = OpFunctionCall %float %outer %x\n"
                       "%result = OpFunctionCall %float %outer %one_call\n",
                       functions);
    check(m, SpvOpFunctionCall, 0);
    check(m, SpvOpVariable, 2 + 2);
    check(m, SpvOpStore, 1 + 2 * 2);
    check(m, SpvOpLoad, 2 + 2 * 2);
    memory_free(m.words);
}

static void test_return_from_inside_a_loop_stays_a_call(void **state)
{
    static const char functions[] =
        "%search = OpFunction %float None %function\n"
        "%limit = OpFunctionParameter %float\n%enter = OpLabel\nOpBranch %header\n"
        "%header = OpLabel\n%at = OpPhi %float %half %enter %next %again\n"
        "OpLoopMerge %out %again None\nOpBranch %inside\n"
        "%inside = OpLabel\n%found = OpFOrdLessThan %bool %limit %at\n"
        "OpSelectionMerge %on None\nOpBranchConditional %found %stop %on\n"
        "%stop = OpLabel\nOpReturnValue %at\n%on = OpLabel\n"
        "%more = OpFOrdLessThan %bool %at %limit\nOpBranchConditional %more %again %out\n"
        "%again = OpLabel\n%next = OpFAdd %float %at %half\nOpBranch %header\n"
        "%out = OpLabel\nOpReturnValue %half\nOpFunctionEnd\n";
    (void)state;
    module m = inlined("%result = OpFunctionCall %float %search %x\n", functions);
    check(m, SpvOpFunctionCall, 1);
    check(m, SpvOpFunction, 2);
    memory_free(m.words);
}

/* ---- Blocks ---- */

/* The header of a loop merges with the block after it, but not with the continue block. If a phi
 * has only one block, it becomes a copy of its value. */
static void test_merged_blocks(void **state)
{
    static const char body[] =
        "OpBranch %next\n%next = OpLabel\n%same = OpPhi %float %x %begin\nOpBranch %header\n"
        "%header = OpLabel\n%at = OpPhi %float %same %next %sum %again\n"
        "OpLoopMerge %after %again None\nOpBranch %inside\n"
        "%inside = OpLabel\n%more = OpFOrdLessThan %bool %at %y\n"
        "OpBranchConditional %more %work %after\n"
        "%work = OpLabel\nOpBranch %again\n"
        "%again = OpLabel\n%sum = OpFAdd %float %at %half\nOpBranch %header\n"
        "%after = OpLabel\nOpBranch %last\n"
        "%last = OpLabel\n%result = OpFAdd %float %at %half\n";
    (void)state;
    module m = transformed(spirv_merge_blocks, "", body, "");
    check(m, SpvOpLabel, 5 + 1); /* begin, header, work, again, after; one of the other function */
    check(m, SpvOpLoopMerge, 1);
    check(m, SpvOpPhi, 1);
    check(m, SpvOpCopyObject, 1);
    memory_free(m.words);
}

/* ---- Sums of products ---- */

/* Products: those that stay, without the precise one of every module. */
static void check_contracted(const char *body, uint32_t fused, uint32_t negated, uint32_t products)
{
    module m = transformed(spirv_contract, "", body, "");
    uint32_t found = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m.count; i += length_of(m.words[i]))
        found += opcode_of(m.words[i]) == SpvOpExtInst && m.words[i + 4] == 50; /* Fma */
    assert_int_equal(found, fused);
    check(m, SpvOpFNegate, negated);
    check(m, SpvOpFMul, products + 1);
    check(m, SpvOpVectorTimesScalar, 0);
    memory_free(m.words);
}

static void test_contraction(void **state)
{
    (void)state;
    check_contracted("%p = OpFMul %float %x %y\n%result = OpFAdd %float %p %x\n", 1, 0, 0);
    check_contracted("%p = OpFMul %float %x %y\n%result = OpFAdd %float %x %p\n", 1, 0, 0);
    check_contracted("%p = OpFMul %float %x %y\n%result = OpFSub %float %p %x\n", 1, 1, 0);
    check_contracted("%p = OpFMul %float %x %y\n%result = OpFSub %float %x %p\n", 1, 1, 0);
    check_contracted("%p = OpFMul %float %x %y\n%result = OpFDiv %float %x %p\n", 0, 0, 1);
    check_contracted("%p = OpFMul %float %x %y\nOpBranch %other\n%other = OpLabel\n"
                     "%result = OpFAdd %float %p %x\n",
                     0, 0, 1);
}

/* If sums absorb only some of a product's uses, it stays, and they add it. */
static void test_contraction_of_several_uses(void **state)
{
    (void)state;
    check_contracted("%p = OpFMul %float %x %y\n%s = OpFAdd %float %p %x\n"
                     "%result = OpFAdd %float %s %p\n",
                     2, 0, 0);
    check_contracted("%p = OpFMul %float %x %y\n%s = OpFSub %float %p %x\n"
                     "%result = OpFSub %float %s %p\n",
                     2, 2, 0);
    check_contracted("%p = OpFMul %float %x %y\n%s = OpFAdd %float %p %x\n"
                     "%result = OpFDiv %float %s %p\n",
                     0, 0, 1);
    check_contracted("%p = OpFMul %float %x %y\n%result = OpFAdd %float %p %p\n", 0, 0, 1);
    /* The second sum absorbs %p, so %q stays, and the third sum adds it. */
    check_contracted("%p = OpFMul %float %x %y\n%q = OpFMul %float %y %y\n"
                     "%s = OpFAdd %float %p %x\n%t = OpFAdd %float %p %q\n"
                     "%u = OpFMul %float %s %t\n%result = OpFSub %float %q %u\n",
                     2, 0, 2);
}

static void test_contraction_of_vectors(void **state)
{
    (void)state;
    module m = transformed(spirv_contract, "",
                           "%v = OpCompositeConstruct %pair %x %y\n"
                           "%p = OpVectorTimesScalar %pair %v %x\n%s = OpFSub %pair %v %p\n"
                           "%result = OpCompositeExtract %float %s 1\n",
                           "");
    check(m, SpvOpVectorTimesScalar, 0);
    check(m, SpvOpCompositeConstruct, 2);
    check(m, SpvOpFNegate, 1);
    check(m, SpvOpFSub, 0);
    memory_free(m.words);
}

/* ---- Order of operations ---- */

/* Each float operation is decorated once, also the one that the source says `precise`. */
static void test_exact_floats(void **state)
{
    (void)state;
    module m = transformed(spirv_make_exact, "",
                           "%p = OpFMul %float %x %y\n%q = OpFDiv %float %p %y\n"
                           "%r = OpExtInst %float %standard Fma %p %q %x\n"
                           "%k = OpIMul %int %i %i\n%s = OpFSub %float %r %q\n"
                           "%result = OpFAdd %float %s %q\n",
                           "");
    uint32_t decorations = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m.count; i += length_of(m.words[i]))
        decorations +=
            opcode_of(m.words[i]) == SpvOpDecorate && m.words[i + 2] == SpvDecorationNoContraction;
    assert_int_equal(decorations, 4 + 2); /* with those of the precise function */
    memory_free(m.words);
}

/* ---- Buffers ---- */

/* If a kernel is told how many bindings it has, it must declare exactly these. */
static void test_unused_buffers(void **state)
{
    static const uint32_t kernels[] = {KERNEL_REGION_BATCH_SHORT, KERNEL_REGION_BATCH_LIGHT,
                                       KERNEL_REGION_BATCH_LONG};
    static const uint32_t counts[] = {2, 3, 8, 17, 33, 34, 64, 65};
    (void)state;
    for (uint32_t at = 0; at < ARRAY_COUNT(kernels) * ARRAY_COUNT(counts); at++) {
        const kernel_info *kernel = &kernel_table[kernels[at / ARRAY_COUNT(counts)]];
        uint32_t bindings = counts[at % ARRAY_COUNT(counts)], *whole = kernel_words(kernel);
        uint32_t constants[KERNEL_MAX_CONSTANTS] = {[LOCAL_SIZE] = 64,
                                                    [REGION_STEPS_FORM] =
                                                        1 | (at % 2 ? REGION_WIDE : 0),
                                                    [REGION_BATCH_BINDINGS] = bindings};
        bool declared[KERNEL_MAX_BINDINGS] = {false};
        module m = {0}, special = {0};
        special.words = spirv_specialize(whole, kernel->word_count, constants, KERNEL_MAX_CONSTANTS,
                                         true, &special.count);
        m.words = spirv_drop_buffers(special.words, special.count, &m.count);
        assert_true(module_is_valid(&m, "/dev/stderr"));
        for (uint32_t i = SPIRV_HEADER_WORDS; i < m.count; i += length_of(m.words[i]))
            if (opcode_of(m.words[i]) == SpvOpDecorate && m.words[i + 2] == SpvDecorationBinding)
                declared[m.words[i + 3]] = true;
        for (uint32_t i = 0; i < KERNEL_MAX_BINDINGS; i++)
            assert_int_equal(declared[i], i < bindings);
        memory_free(m.words);
        memory_free(special.words);
        memory_free(whole);
    }
}

/* ---- All ---- */

/* All kernels of the library, except those that need a newer validator. Their constants get each of
 * several values in turn, so flags are on and off. */
static void test_all_kernels(void **state)
{
    static transformation *const steps[] = {spirv_inline, spirv_merge_blocks, spirv_contract,
                                            spirv_make_exact, spirv_drop_buffers};
    static const uint32_t values[] = {0, 1, 8, 24};
    (void)state;
    for (uint32_t at = 0; at < KERNEL_COUNT * ARRAY_COUNT(values); at++) {
        const kernel_info *kernel = &kernel_table[at / ARRAY_COUNT(values)];
        uint32_t constants[KERNEL_MAX_CONSTANTS], value = values[at % ARRAY_COUNT(values)];
        uint32_t *whole = kernel_words(kernel);
        module m = {0};
        for (uint32_t i = 0; i < KERNEL_MAX_CONSTANTS; i++)
            constants[i] = i ? value : 64;
        m.words = spirv_specialize(whole, kernel->word_count, constants, KERNEL_MAX_CONSTANTS, true,
                                   &m.count);
        memory_free(whole);
        bool known = module_is_valid(&m, "/dev/null");
        for (size_t k = 0; k < ARRAY_COUNT(steps); k++) {
            uint32_t *words = steps[k](m.words, m.count, &m.count);
            assert_non_null(words);
            memory_free(m.words);
            m.words = words;
        }
        if (known && !module_is_valid(&m, "/dev/stderr"))
            fail_msg("kernel %s with constants of %u", kernel->name, value);
        memory_free(m.words);
    }
}

static void test_out_of_memory(void **state)
{
    static transformation *const steps[] = {spirv_inline, spirv_merge_blocks, spirv_contract,
                                            spirv_make_exact, spirv_drop_buffers};
    const kernel_info *kernel = &kernel_table[KERNEL_MATMUL_TILED];
    uint32_t *whole = kernel_words(kernel);
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(steps); k++) {
        uint32_t failed = 0, count = 0, *words = NULL;
        for (uint64_t nth = 1; !words; nth++) {
            memory_fail_at(nth);
            words = steps[k](whole, kernel->word_count, &count);
            failed += !words;
        }
        memory_fail_at(0);
        memory_free(words);
        assert_true(failed >= 2);
    }
    memory_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_of_one_block),
        cmocka_unit_test(test_returns_from_inside_a_selection),
        cmocka_unit_test(test_variables_and_calls_of_calls),
        cmocka_unit_test(test_return_from_inside_a_loop_stays_a_call),
        cmocka_unit_test(test_merged_blocks),
        cmocka_unit_test(test_contraction),
        cmocka_unit_test(test_contraction_of_several_uses),
        cmocka_unit_test(test_contraction_of_vectors),
        cmocka_unit_test(test_exact_floats),
        cmocka_unit_test(test_unused_buffers),
        cmocka_unit_test(test_all_kernels),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
