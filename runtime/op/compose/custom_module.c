/*
 * Checks the structure of a custom kernel before a driver gets it, because drivers trust their
 * input. It runs when the op is registered, word by word. It checks:
 *   - the header, and that instructions fill the words exactly
 *   - that no capability is optional
 *   - that there is a compute entry point "main" with a workgroup size
 *   - the bindings of set 0
 * The bodies of functions are not checked.
 */
#include "kernel/words.h"
#include "op/compose/custom.h"

#include <stdio.h>
#include <string.h>

#define SWAPPED_MAGIC  0x03022307u
#define OLDEST_VERSION 0x00010000u
#define NEWEST_VERSION 0x00010500u /* of Vulkan 1.2 */
#define LARGEST_BOUND  0x3fffffu   /* SPIR-V's universal limit */
#define ENTRY_POINT    "main"

typedef struct module {
    const char *name; /* of the op */
    const uint32_t *words;
    size_t count;
    uint32_t bindings;
    size_t entry_at; /* word of the entry point; 0: not found yet, as for the next two */
    size_t body_at;  /* word of its function */
    bool has_size;   /* of the workgroup */
    uint64_t invocations;
} module;

static rlxvk_status refuse(const module *m, size_t at, const char *format, ...) FORMATS(3, 4);

static rlxvk_status refuse(const module *m, size_t at, const char *format, ...)
{
    char message[256];
    va_list list;
    va_start(list, format);
    text_format(message, sizeof message, format, list);
    va_end(list);
    return status_fail(RLXVK_E_ATTR, "custom '%s': word %zu of the kernel's %zu %s", m->name, at,
                       m->count, message);
}

static rlxvk_status check_header(const module *m)
{
    const uint32_t *w = m->words;
    if (m->count < SPIRV_HEADER_WORDS)
        return status_fail(RLXVK_E_ATTR,
                           "custom '%s': a kernel of %zu words; SPIR-V has a header of %d", m->name,
                           m->count, SPIRV_HEADER_WORDS);
    if (w[0] == SWAPPED_MAGIC)
        return refuse(m, 0, "is SPIR-V's magic number in the other byte order; swap all words");
    if (w[0] != SpvMagicNumber)
        return refuse(m, 0, "is 0x%08x: no SPIR-V, which begins with 0x%08x", w[0], SpvMagicNumber);
    if (w[1] < OLDEST_VERSION || w[1] > NEWEST_VERSION || w[1] & 0xff)
        return refuse(m, 1, "is version 0x%08x; Vulkan 1.2 takes SPIR-V 1.0 to 1.5", w[1]);
    if (w[3] == 0 || w[3] > LARGEST_BOUND)
        return refuse(m, 3, "bounds ids by %u; takes 1 to %u", w[3], LARGEST_BOUND);
    if (w[4])
        return refuse(m, 4, "is %u; it is reserved and must be 0", w[4]);
    return RLXVK_OK;
}

/* Operand `index` of the instruction at `at`; 0 if the instruction is too short. */
static uint32_t operand_of(const module *m, size_t at, uint32_t index)
{
    return index + 1 < length_of(m->words[at]) ? m->words[at + 1 + index] : 0;
}

/* Capabilities that need no feature or property of the device. */
static rlxvk_status check_capability(module *m, size_t at)
{
    static const uint32_t everywhere[] = {
        SpvCapabilityMatrix,      SpvCapabilityShader,         SpvCapabilityInputAttachment,
        SpvCapabilitySampled1D,   SpvCapabilityImage1D,        SpvCapabilitySampledBuffer,
        SpvCapabilityImageBuffer, SpvCapabilityImageQuery,     SpvCapabilityDerivativeControl,
        SpvCapabilityDeviceGroup, SpvCapabilityGroupNonUniform};
    uint32_t capability = operand_of(m, at, 0);
    for (size_t i = 0; i < ARRAY_COUNT(everywhere); i++)
        if (capability == everywhere[i])
            return RLXVK_OK;
    return refuse(m, at, "asks for capability %u, which not every device has", capability);
}

static rlxvk_status check_entry_point(module *m, size_t at)
{
    char name[sizeof ENTRY_POINT];
    bool named = length_of(m->words[at]) > 2 + divide_up(sizeof name, sizeof(uint32_t));
    if (named)
        memcpy(name, &m->words[at + 3], sizeof name);
    if (!named || memcmp(name, ENTRY_POINT, sizeof name) != 0 ||
        operand_of(m, at, 0) != SpvExecutionModelGLCompute)
        return RLXVK_OK; /* another entry point */
    if (m->entry_at)
        return refuse(m, at, "begins a second entry point '%s'", ENTRY_POINT);
    m->entry_at = at;
    return RLXVK_OK;
}

static rlxvk_status check_mode(module *m, size_t at)
{
    uint64_t invocations = 1;
    if (!m->entry_at || operand_of(m, at, 0) != operand_of(m, m->entry_at, 1) ||
        operand_of(m, at, 1) != SpvExecutionModeLocalSize)
        return RLXVK_OK;
    for (uint32_t i = 2; i < 5; i++)
        if (operand_of(m, at, i) == 0 ||
            !size_multiply(invocations, operand_of(m, at, i), &invocations))
            return refuse(m, at, "gives workgroups of %u x %u x %u", operand_of(m, at, 2),
                          operand_of(m, at, 3), operand_of(m, at, 4));
    m->has_size = true;
    m->invocations = MAX(m->invocations, invocations);
    return RLXVK_OK;
}

static rlxvk_status check_decoration(module *m, size_t at)
{
    uint32_t decoration = operand_of(m, at, 1), value = operand_of(m, at, 2);
    if (decoration == SpvDecorationBinding && value >= m->bindings)
        return refuse(m, at, "decorates binding %u; the operands and the result are 0 to %u", value,
                      m->bindings - 1);
    if (decoration == SpvDecorationDescriptorSet && value != 0)
        return refuse(m, at, "decorates set %u; all buffers are in set 0", value);
    if (decoration == SpvDecorationBuiltIn && value == SpvBuiltInWorkgroupSize)
        m->has_size = true;
    return RLXVK_OK;
}

static rlxvk_status check_function(module *m, size_t at)
{
    if (m->entry_at && operand_of(m, at, 1) == operand_of(m, m->entry_at, 1))
        m->body_at = at;
    return RLXVK_OK;
}

static const struct {
    uint32_t opcode;
    rlxvk_status (*check)(module *m, size_t at);
} checks[] = {{SpvOpCapability, check_capability},
              {SpvOpEntryPoint, check_entry_point},
              {SpvOpExecutionMode, check_mode},
              {SpvOpDecorate, check_decoration},
              {SpvOpFunction, check_function}};

static rlxvk_status check_instruction(module *m, size_t at)
{
    uint32_t length = length_of(m->words[at]);
    if (length == 0)
        return refuse(m, at, "begins an instruction of no words");
    if (length > m->count - at)
        return refuse(m, at, "begins an instruction of %u words, past the end", length);
    for (size_t i = 0; i < ARRAY_COUNT(checks); i++)
        if (checks[i].opcode == opcode_of(m->words[at]))
            return checks[i].check(m, at);
    return RLXVK_OK;
}

/* ---- Push constants ---- */

/* The next instruction, from `at` on, with this opcode and `value` as operand `index`. The end if
 * there is none. */
static size_t find(const module *m, size_t at, SpvOp opcode, uint32_t index, uint32_t value)
{
    while (at < m->count &&
           (opcode_of(m->words[at]) != (uint32_t)opcode || operand_of(m, at, index) != value))
        at += length_of(m->words[at]);
    return at;
}

/* The operand of a decoration of type `id`, or of one of its members; 0 if there is none. */
static uint32_t decorated(const module *m, uint32_t id, SpvDecoration decoration)
{
    size_t at = SPIRV_HEADER_WORDS;
    while ((at = find(m, at, SpvOpDecorate, 0, id)) < m->count) {
        if (operand_of(m, at, 1) == (uint32_t)decoration)
            return operand_of(m, at, 2);
        at += length_of(m->words[at]);
    }
    return 0;
}

static uint32_t offset_of(const module *m, uint32_t id, uint32_t member)
{
    size_t at = SPIRV_HEADER_WORDS;
    while ((at = find(m, at, SpvOpMemberDecorate, 0, id)) < m->count) {
        if (operand_of(m, at, 1) == member && operand_of(m, at, 2) == SpvDecorationOffset)
            return operand_of(m, at, 3);
        at += length_of(m->words[at]);
    }
    return 0;
}

/* The instruction that defines a type or a constant; the end if there is none. */
static size_t definition_of(const module *m, uint32_t id)
{
    static const struct {
        SpvOp opcode;
        uint32_t result; /* index of the operand with the result id */
    } kinds[] = {{SpvOpTypeInt, 0},   {SpvOpTypeFloat, 0},  {SpvOpTypeVector, 0},
                 {SpvOpTypeArray, 0}, {SpvOpTypeStruct, 0}, {SpvOpTypeMatrix, 0},
                 {SpvOpConstant, 1}};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        size_t at = find(m, SPIRV_HEADER_WORDS, kinds[i].opcode, kinds[i].result, id);
        if (at < m->count)
            return at;
    }
    return m->count;
}

/* Bytes of a type, without padding behind it. `looks` is how many more types may be visited. It
 * stops at types that contain themselves. */
static uint64_t size_of_type(const module *m, uint32_t id, uint32_t *looks)
{
    uint64_t size = 0;
    if (*looks == 0)
        return 0;
    --*looks;
    size_t at = definition_of(m, id);
    if (at >= m->count)
        return 0;
    uint32_t length = length_of(m->words[at]), first = operand_of(m, at, 1);
    switch (opcode_of(m->words[at])) {
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
        return first / 8;
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
        return operand_of(m, at, 2) * size_of_type(m, first, looks);
    case SpvOpTypeArray: {
        size_t count = definition_of(m, operand_of(m, at, 2));
        uint64_t items = count < m->count ? operand_of(m, count, 2) : 1;
        uint64_t stride = decorated(m, id, SpvDecorationArrayStride);
        return (MAX(items, 1) - 1) * stride + size_of_type(m, first, looks);
    }
    default:
        for (uint32_t i = 0; i + 2 < length && *looks; i++)
            size =
                MAX(size, offset_of(m, id, i) + size_of_type(m, operand_of(m, at, i + 1), looks));
        return size;
    }
}

/* Bytes of the block of push constants; 0 if there is none. */
static uint64_t push_constant_bytes(const module *m)
{
    size_t at = SPIRV_HEADER_WORDS;
    uint64_t size = 0;
    uint32_t looks = 4 * KERNEL_MAX_ARGUMENT_BYTES;
    while ((at = find(m, at, SpvOpTypePointer, 1, SpvStorageClassPushConstant)) < m->count) {
        size = MAX(size, size_of_type(m, operand_of(m, at, 2), &looks));
        at += length_of(m->words[at]);
    }
    return size;
}

static rlxvk_status check_arguments(const module *m, uint32_t bytes)
{
    uint64_t needed = push_constant_bytes(m);
    if (bytes > KERNEL_MAX_ARGUMENT_BYTES)
        return status_fail(RLXVK_E_ATTR, "custom '%s': %u argument bytes; at most %d", m->name,
                           bytes, KERNEL_MAX_ARGUMENT_BYTES);
    if (bytes % 4)
        return status_fail(RLXVK_E_ATTR,
                           "custom '%s': %u argument bytes are no whole words; a "
                           "multiple of 4",
                           m->name, bytes);
    if (bytes < needed)
        return status_fail(RLXVK_E_ATTR,
                           "custom '%s': %u argument bytes; the kernel's push constants have %llu",
                           m->name, bytes, (unsigned long long)needed);
    return RLXVK_OK;
}

rlxvk_status custom_check_module(const char *name, const uint32_t *words, size_t count,
                                 uint32_t bindings, uint32_t argument_bytes,
                                 uint64_t *out_invocations)
{
    module m = {.name = name, .words = words, .count = count, .bindings = bindings};
    rlxvk_status status;
    TRY(check_header(&m));
    for (size_t at = SPIRV_HEADER_WORDS; at < count; at += length_of(words[at]))
        TRY(check_instruction(&m, at));
    if (!m.entry_at)
        return status_fail(RLXVK_E_ATTR, "custom '%s': the kernel has no compute entry point '%s'",
                           name, ENTRY_POINT);
    if (!m.body_at)
        return refuse(&m, m.entry_at, "begins an entry point whose function is missing");
    if (!m.has_size)
        return refuse(&m, m.entry_at,
                      "begins an entry point that has no LocalSize, and there is no WorkgroupSize");
    TRY(check_arguments(&m, argument_bytes));
    *out_invocations = m.invocations;
error:
    return status;
}
