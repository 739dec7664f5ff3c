/*
 * Modules whose invocations come in another order. The test evaluates the module's instructions.
 * Each number of an invocation or a workgroup must be used exactly once, and the built-in numbers
 * must agree with each other. Some modules must be left as they are. The validator of SPIRV-Tools
 * must accept every kernel.
 */
#include "kernel/kernel.h"
#include "spirv/spirv.h"
#include "support/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Reads its numbers as vectors and by component, and stores them one after the other. */
static const char text_of_numbers[] =
    "OpCapability Shader\n%%standard = OpExtInstImport \"GLSL.std.450\"\n"
    "OpMemoryModel Logical GLSL450\n"
    "OpEntryPoint GLCompute %%main \"main\" %%data %%local %%index %%group %%global%s\n"
    "OpExecutionMode %%main LocalSize 1 1 1\n"
    "OpDecorate %%local BuiltIn LocalInvocationId\n"
    "OpDecorate %%index BuiltIn LocalInvocationIndex\n"
    "OpDecorate %%group BuiltIn WorkgroupId\nOpDecorate %%global BuiltIn GlobalInvocationId\n"
    "OpDecorate %%size BuiltIn WorkgroupSize\n%s"
    "OpDecorate %%array ArrayStride 4\nOpMemberDecorate %%block 0 Offset 0\n"
    "OpDecorate %%block Block\nOpDecorate %%data DescriptorSet 0\nOpDecorate %%data Binding 0\n"
    "%%void = OpTypeVoid\n%%procedure = OpTypeFunction %%void\n%%uint = OpTypeInt 32 0\n"
    "%%vector = OpTypeVector %%uint 3\n%%inputs = OpTypePointer Input %%vector\n"
    "%%input = OpTypePointer Input %%uint\n%%array = OpTypeRuntimeArray %%uint\n"
    "%%block = OpTypeStruct %%array\n%%pointer = OpTypePointer StorageBuffer %%block\n"
    "%%element = OpTypePointer StorageBuffer %%uint\n%%data = OpVariable %%pointer StorageBuffer\n"
    "%%local = OpVariable %%inputs Input\n%%index = OpVariable %%input Input\n"
    "%%group = OpVariable %%inputs Input\n%%global = OpVariable %%inputs Input\n%s"
    "%%zero = OpConstant %%uint 0\n%%one = OpConstant %%uint 1\n%%two = OpConstant %%uint 2\n"
    "%%x = OpConstant %%uint %u\n%%y = OpConstant %%uint %u\n"
    "%%size = OpConstantComposite %%vector %%x %%y %%one\n"
    "%%main = OpFunction %%void None %%procedure\n%%begin = OpLabel\n"
    "%%to = OpAccessChain %%element %%data %%zero %%zero\n"
    "%%local_x_at = OpAccessChain %%input %%local %%zero\n%%local_x = OpLoad %%uint %%local_x_at\n"
    "OpStore %%to %%local_x\n"
    "%%index_is = OpLoad %%uint %%index\nOpStore %%to %%index_is\n"
    "%%group_all = OpLoad %%vector %%group\n"
    "%%group_x = OpCompositeExtract %%uint %%group_all 0\nOpStore %%to %%group_x\n"
    "%%group_y_at = OpAccessChain %%input %%group %%one\n%%group_y = OpLoad %%uint %%group_y_at\n"
    "OpStore %%to %%group_y\n"
    "%%group_z = OpCompositeExtract %%uint %%group_all 2\nOpStore %%to %%group_z\n"
    "%%global_all = OpLoad %%vector %%global\n"
    "%%global_x = OpCompositeExtract %%uint %%global_all 0\nOpStore %%to %%global_x\n"
    "%%global_y = OpCompositeExtract %%uint %%global_all 1\nOpStore %%to %%global_y\n"
    "%s"
    "OpReturn\nOpFunctionEnd\n";

enum { LOCAL_X, INDEX, GROUP_X, GROUP_Y, GROUP_Z, GLOBAL_X, GLOBAL_Y, NUMBER_COUNT };

static const char counts_interface[] = " %counts";
static const char counts_decoration[] = "OpDecorate %counts BuiltIn NumWorkgroups\n";
static const char counts_variable[] = "%counts = OpVariable %inputs Input\n";

static module module_of(uint32_t x, uint32_t y, bool counts, const char *extra)
{
    char text[8192];
    assert_true(snprintf(text, sizeof text, text_of_numbers, counts ? counts_interface : "",
                         counts ? counts_decoration : "", counts ? counts_variable : "", x, y,
                         extra) < (int)sizeof text);
    return module_assemble(text);
}

static module permuted(const module *m, spirv_order order, uint32_t seed, bool *out_permuted)
{
    module out = {0};
    out.words = spirv_permute(m->words, m->count, order, seed, out_permuted, &out.count);
    assert_non_null(out.words);
    return out;
}

/* ---- Evaluating a module ---- */

typedef struct invocation {
    uint32_t size, counts[3], group[3], local;
} invocation;

typedef struct cell {
    uint32_t v[3], built_in, component; /* of variables and pointers */
} cell;

static uint32_t built_in_value(const invocation *in, uint32_t built_in, uint32_t c)
{
    switch (built_in) {
    case SpvBuiltInLocalInvocationId:
    case SpvBuiltInLocalInvocationIndex:
        return c ? 0 : in->local;
    case SpvBuiltInWorkgroupId:
        return in->group[c];
    case SpvBuiltInNumWorkgroups:
        return in->counts[c];
    default:
        assert_int_equal(built_in, SpvBuiltInGlobalInvocationId);
        return c ? in->group[c] : in->group[0] * in->size + in->local;
    }
}

static void load(const invocation *in, const cell *from, cell *to)
{
    for (uint32_t c = 0; c < 3; c++)
        to->v[c] =
            built_in_value(in, from->built_in - 1, from->component == 3 ? c : from->component);
}

/* Evaluates one instruction. Values that it stores go to out[*count] and on. */
static void evaluate(const invocation *in, const uint32_t *w, cell *ids, uint32_t *out,
                     uint32_t *count)
{
    uint32_t n = w[0] >> SpvWordCountShift;
    cell *to = &ids[n > 2 ? w[2] : 0], a = {{0}}, b = {{0}};
    switch (opcode_of(w[0])) {
    case SpvOpIMul:
    case SpvOpIAdd:
    case SpvOpISub:
    case SpvOpUMod:
    case SpvOpUDiv:
    case SpvOpULessThanEqual:
        a = ids[w[3]], b = ids[w[4]];
        break;
    default:
        break;
    }
    switch (opcode_of(w[0])) {
    case SpvOpDecorate:
        if (w[2] == SpvDecorationBuiltIn)
            ids[w[1]] = (cell){.built_in = 1 + w[3], .component = 3};
        break;
    case SpvOpConstant:
        to->v[0] = w[3];
        break;
    case SpvOpAccessChain:
        if (ids[w[3]].built_in)
            *to = (cell){.built_in = ids[w[3]].built_in, .component = ids[w[4]].v[0]};
        break;
    case SpvOpLoad:
        load(in, &ids[w[3]], to);
        break;
    case SpvOpCompositeExtract:
        to->v[0] = ids[w[3]].v[w[4]];
        break;
    case SpvOpCompositeConstruct:
        for (uint32_t c = 0; c < 3; c++)
            to->v[c] = ids[w[3 + c]].v[0];
        break;
    case SpvOpCopyObject:
        *to = ids[w[3]];
        break;
    case SpvOpIMul:
        to->v[0] = a.v[0] * b.v[0];
        break;
    case SpvOpIAdd:
        to->v[0] = a.v[0] + b.v[0];
        break;
    case SpvOpISub:
        to->v[0] = a.v[0] - b.v[0];
        break;
    case SpvOpUMod:
        to->v[0] = a.v[0] % b.v[0];
        break;
    case SpvOpUDiv:
        to->v[0] = a.v[0] / b.v[0];
        break;
    case SpvOpULessThanEqual:
        to->v[0] = a.v[0] <= b.v[0];
        break;
    case SpvOpSelect:
        *to = ids[w[3]].v[0] ? ids[w[4]] : ids[w[5]];
        break;
    case SpvOpStore:
        out[(*count)++] = ids[w[2]].v[0];
        break;
    default:
        break;
    }
}

static void run(const module *m, const invocation *in, uint32_t out[NUMBER_COUNT])
{
    cell *ids = calloc(m->words[3], sizeof *ids);
    uint32_t count = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        evaluate(in, m->words + i, ids, out, &count);
    assert_int_equal(count, NUMBER_COUNT);
    free(ids);
}

/* ---- Permutations ---- */

static const struct {
    spirv_order order;
    uint32_t seed;
} orders[] = {{SPIRV_REVERSED, 0},
              {SPIRV_PERMUTED, 0},
              {SPIRV_PERMUTED, 1},
              {SPIRV_PERMUTED, 2},
              {SPIRV_PERMUTED, 4294967295}};

/* Each number must be used once. All invocations of a workgroup must agree on the number of their
 * workgroup. */
static void check_local(const module *m, uint32_t size, bool reversed)
{
    bool *taken = calloc(size, sizeof *taken);
    uint32_t first[NUMBER_COUNT], out[NUMBER_COUNT], moved = 0;
    invocation in = {size, {7, 5, 3}, {6, 2, 1}, 0};
    run(m, &in, first);
    for (in.local = 0; in.local < size; in.local++) {
        run(m, &in, out);
        assert_true(out[LOCAL_X] < size && !taken[out[LOCAL_X]]);
        taken[out[LOCAL_X]] = true;
        moved += out[LOCAL_X] != in.local;
        assert_int_equal(out[INDEX], out[LOCAL_X]);
        assert_int_equal(out[GLOBAL_X], out[GROUP_X] * size + out[LOCAL_X]);
        assert_int_equal(out[GLOBAL_Y], out[GROUP_Y]);
        assert_memory_equal(out + GROUP_X, first + GROUP_X, 3 * sizeof *out);
        if (reversed)
            assert_int_equal(out[LOCAL_X], size - 1 - in.local);
    }
    assert_true(size == 1 || moved);
    free(taken);
}

static void invocations_are_permuted(void **state)
{
    static const uint32_t sizes[] = {1,  2,  3,   4,   6,   7,   8,    12,  32,
                                     60, 64, 100, 127, 128, 256, 1000, 1024};
    (void)state;
    for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
        module m = module_of(sizes[s], 1, s % 2, "");
        for (size_t k = 0; k < ARRAY_COUNT(orders); k++) {
            bool is_permuted = false;
            module p = permuted(&m, orders[k].order, orders[k].seed, &is_permuted);
            assert_true(is_permuted);
            if (s < 2)
                assert_true(module_is_valid(&p, "/dev/stderr"));
            check_local(&p, sizes[s], orders[k].order == SPIRV_REVERSED);
            memory_free(p.words);
        }
        memory_free(m.words);
    }
}

/* Checks one direction. Each other direction has `others` workgroups. */
static void check_groups(const module *m, uint32_t count, uint32_t direction, bool reversed)
{
    uint32_t step = count > 3000 ? count / 1000 : 1, *seen = calloc(count / step + 1, sizeof *seen);
    uint32_t taken = 0, out[NUMBER_COUNT];
    invocation in = {64, {3, 3, 3}, {1, 1, 1}, 5};
    in.counts[direction] = count;
    for (uint32_t i = 0; i < count; i += step) {
        in.group[direction] = i;
        run(m, &in, out);
        uint32_t number = out[GROUP_X + direction];
        assert_true(number < count);
        if (reversed)
            assert_int_equal(number, count - 1 - i);
        for (uint32_t k = 0; k < taken; k++)
            assert_int_not_equal(seen[k], number);
        seen[taken++] = number;
        assert_int_equal(out[GLOBAL_X], out[GROUP_X] * 64 + out[LOCAL_X]);
    }
    free(seen);
}

static void workgroups_are_permuted(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 16, 65, 128, 65535, 65536, 2147483647};
    (void)state;
    module m = module_of(64, 1, false, "");
    for (size_t k = 0; k < ARRAY_COUNT(orders); k++) {
        bool is_permuted = false;
        module p = permuted(&m, orders[k].order, orders[k].seed, &is_permuted);
        for (size_t c = 0; c < ARRAY_COUNT(counts); c++)
            for (uint32_t direction = 0; direction < 3; direction++)
                if (direction == 0 || counts[c] <= 65535)
                    check_groups(&p, counts[c], direction, orders[k].order == SPIRV_REVERSED);
        memory_free(p.words);
    }
    memory_free(m.words);
}

/* Different seeds must give different orders, and the same seed the same order. */
static void seeds_differ(void **state)
{
    bool is_permuted;
    (void)state;
    module m = module_of(128, 1, true, "");
    module a = permuted(&m, SPIRV_PERMUTED, 1, &is_permuted);
    module b = permuted(&m, SPIRV_PERMUTED, 1, &is_permuted);
    module c = permuted(&m, SPIRV_PERMUTED, 2, &is_permuted);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.words, b.words, a.count * sizeof *a.words);
    assert_int_equal(a.count, c.count);
    assert_memory_not_equal(a.words, c.words, a.count * sizeof *a.words);
    memory_free(a.words);
    memory_free(b.words);
    memory_free(c.words);
    memory_free(m.words);
}

/* ---- Unchanged modules ---- */

static void check_alone(const module *m)
{
    bool is_permuted = true;
    module p = permuted(m, SPIRV_REVERSED, 0, &is_permuted);
    assert_false(is_permuted);
    assert_int_equal(p.count, m->count);
    assert_memory_equal(p.words, m->words, m->count * sizeof *m->words);
    memory_free(p.words);
}

static void other_modules_stay(void **state)
{
    (void)state;
    module plane = module_of(8, 8, true, "");
    check_alone(&plane);
    memory_free(plane.words);
    module dynamic = module_of(64, 1, true,
                               "%at = OpAccessChain %input %local %local_x\n"
                               "%read = OpLoad %uint %at\nOpStore %to %read\n");
    check_alone(&dynamic);
    memory_free(dynamic.words);
}

/* ---- Every kernel ---- */

static bool uses_subgroups(const module *m)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        if (opcode_of(m->words[i]) >= SpvOpGroupNonUniformElect &&
            opcode_of(m->words[i]) <= SpvOpGroupNonUniformQuadSwap)
            return true;
    return false;
}

static module specialized(uint32_t id, uint32_t value)
{
    const kernel_info *kernel = kernel_find(id);
    uint32_t constants[KERNEL_MAX_CONSTANTS], *whole = kernel_words(kernel);
    module m = {0};
    for (uint32_t i = 0; i < KERNEL_MAX_CONSTANTS; i++)
        constants[i] = i ? value : 64;
    m.words = spirv_specialize(whole, kernel->word_count, constants, KERNEL_MAX_CONSTANTS, true,
                               &m.count);
    memory_free(whole);
    return m;
}

/* Kernels that use subgroups must not change; all others must. Left out are kernels that need a
 * newer validator, and constants that do not make a valid kernel. */
static void every_kernel_stays_valid(void **state)
{
    uint32_t changed = 0;
    (void)state;
    for (uint32_t at = 0; at < 2 * KERNEL_COUNT; at++) {
        bool is_permuted = false;
        module m = specialized(at / 2, at % 2 ? 8 : 1);
        module p = permuted(&m, at % 3 ? SPIRV_REVERSED : SPIRV_PERMUTED, at, &is_permuted);
        if (is_permuted && module_is_valid(&m, "/dev/null") && !module_is_valid(&p, "/dev/stderr"))
            fail_msg("kernel %s", kernel_find(at / 2)->name);
        assert_false(is_permuted && uses_subgroups(&m));
        if (!is_permuted && !kernel_find(at / 2)->subgroups)
            fail_msg("kernel %s is left alone", kernel_find(at / 2)->name);
        changed += is_permuted;
        memory_free(m.words);
        memory_free(p.words);
    }
    assert_true(changed > KERNEL_COUNT);
}

static void out_of_memory_gives_nothing(void **state)
{
    uint32_t failed = 0, count, *words = NULL;
    bool is_permuted;
    (void)state;
    module m = module_of(64, 1, false, "");
    for (uint64_t nth = 1; !words; nth++) {
        memory_fail_at(nth);
        words = spirv_permute(m.words, m.count, SPIRV_PERMUTED, 1, &is_permuted, &count);
        memory_fail_at(0);
        failed += !words;
    }
    assert_true(failed >= 3);
    memory_free(words);
    memory_free(m.words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invocations_are_permuted),
        cmocka_unit_test(workgroups_are_permuted),
        cmocka_unit_test(seeds_differ),
        cmocka_unit_test(other_modules_stay),
        cmocka_unit_test(every_kernel_stays_valid),
        cmocka_unit_test(out_of_memory_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
