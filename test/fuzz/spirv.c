/*
 * Fuzzes the code that handles SPIR-V. The check of a custom kernel must give an answer for any
 * words. The library's own kernels are specialized with any constants and transformed. The result
 * must be a module that its instructions fill exactly, and specializing must not make it longer.
 *
 * The first byte chooses: in 1 of 4 cases a kernel's number and constants follow, otherwise the
 * words of a custom kernel.
 */
#include "fuzz.h"
#include "kernel/words.h"
#include "op/compose/custom.h"
#include "support/fuzz_input.h"
#include "spirv/spirv.h"

enum { BINDINGS = 8, SHORT_KERNEL = 1500 /* words */ };

static uint64_t accepted;

static bool tiles(const uint32_t *words, size_t count)
{
    size_t at = SPIRV_HEADER_WORDS;
    while (at < count && length_of(words[at]))
        at += length_of(words[at]);
    return at == count;
}

static void check_custom(const uint8_t *bytes, size_t size)
{
    size_t count = size / sizeof(uint32_t);
    uint64_t invocations = 0;
    uint32_t *words = malloc(size + 1); /* aligned for words */
    FUZZ_CHECK(words, "out of memory");
    if (count)
        memcpy(words, bytes, count * sizeof *words);
    rlxvk_status status = custom_check_module("fuzz", words, count, BINDINGS, 128, &invocations);
    FUZZ_CHECK(status == RLXVK_OK || (status == RLXVK_E_ATTR && *rlxvk_last_error()), "%s: %s",
               rlxvk_status_name(status), rlxvk_last_error());
    FUZZ_CHECK(status != RLXVK_OK || (words[0] == SpvMagicNumber && tiles(words, count)),
               "no module and no error");
    accepted += status == RLXVK_OK;
    free(words);
}

/* Any kernel, mostly a short one, because the time depends on the number of words. */
static const kernel_info *any_kernel(fuzz_input *in)
{
    uint32_t id = fuzz_below(in, KERNEL_COUNT);
    bool any = fuzz_byte(in) >= 248;
    while (!any && kernel_find((uint16_t)id)->word_count > SHORT_KERNEL)
        id = (id + 1) % KERNEL_COUNT;
    return kernel_find((uint16_t)id);
}

static void check_kernel(fuzz_input *in)
{
    uint32_t constants[KERNEL_MAX_CONSTANTS], bits, count, left;
    const kernel_info *kernel = any_kernel(in);
    spirv_float_controls controls = {.preserve_subnormals = fuzz_bool(in)};
    controls.round_to_even = controls.round_halves_to_even = fuzz_bool(in);
    bits = fuzz_byte(in);
    uint32_t given = bits % (KERNEL_MAX_CONSTANTS + 1);
    for (uint32_t i = 0; i < given; i++)
        constants[i] = (uint32_t)fuzz_bits(in, fuzz_byte(in) < 240 ? 1 : 4);
    uint32_t *words = spirv_request(kernel, controls, &count);
    FUZZ_CHECK(words && tiles(words, count), "%s: float controls spoil the module", kernel->name);
    uint32_t *special = spirv_specialize(words, count, constants, given, bits & 128, &left);
    FUZZ_CHECK(special && left <= count && tiles(special, left), "%s: %u words of %u", kernel->name,
               left, count);
    memory_free(words);
    static uint32_t *(*const steps[])(const uint32_t *, uint32_t,
                                      uint32_t *) = {spirv_inline, spirv_merge_blocks,
                                                     spirv_contract, spirv_make_exact};
    for (size_t k = 0; k < ARRAY_COUNT(steps); k++) {
        words = steps[k](special, left, &left);
        FUZZ_CHECK(words && tiles(words, left), "%s: step %zu spoils the module", kernel->name, k);
        memory_free(special);
        special = words;
    }
    memory_free(special);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    if (fuzz_below(&in, 4) == 1)
        check_kernel(&in);
    else
        check_custom(in.bytes, in.left);
    return 0;
}

void fuzz_report(void)
{
    printf("%llu custom kernels accepted\n", (unsigned long long)accepted);
}
