/*
 * Requests float behaviour from the driver, if it offers that: signed zeros, infinities, NaN and
 * denormal f16 (unpackHalf2x16) are kept, and f32 and f16 round to nearest even. A request is a
 * capability and an execution mode in the module. Not every device accepts it, so it is inserted
 * when a module is created, not when a kernel is compiled.
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <string.h>

enum { MOST_REQUESTS = 4 };

typedef struct float_request {
    uint32_t capability, mode, width;
} float_request;

static uint32_t requests_of(spirv_float_controls c, float_request requests[MOST_REQUESTS])
{
    uint32_t count = 0;
    if (c.preserve_special)
        requests[count++] = (float_request){SpvCapabilitySignedZeroInfNanPreserve,
                                            SpvExecutionModeSignedZeroInfNanPreserve, 32};
    if (c.round_to_even)
        requests[count++] =
            (float_request){SpvCapabilityRoundingModeRTE, SpvExecutionModeRoundingModeRTE, 32};
    if (c.round_halves_to_even)
        requests[count++] =
            (float_request){SpvCapabilityRoundingModeRTE, SpvExecutionModeRoundingModeRTE, 16};
    if (c.preserve_subnormals)
        requests[count++] =
            (float_request){SpvCapabilityDenormPreserve, SpvExecutionModeDenormPreserve, 16};
    return count;
}

/* The word index after the entry point, and the entry point's id; 0 if there is none. */
static uint32_t after_entry_point(const uint32_t *words, uint32_t count, uint32_t *out_id)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < count; i += length_of(words[i]))
        if (opcode_of(words[i]) == SpvOpEntryPoint) {
            *out_id = words[i + 2];
            return i + length_of(words[i]);
        }
    return 0;
}

/* A copy of `whole` with these requests. */
static uint32_t *insert(const uint32_t *whole, uint32_t whole_count, const float_request *requests,
                        uint32_t count, uint32_t *out_count)
{
    uint32_t entry = 0, at = SPIRV_HEADER_WORDS;
    uint32_t modes_at = after_entry_point(whole, whole_count, &entry);
    uint32_t *words = memory_allocate((whole_count + 6 * count) * sizeof *words);
    if (!words)
        return NULL;
    memcpy(words, whole, SPIRV_HEADER_WORDS * sizeof *words);
    for (uint32_t i = 0; i < count; i++) {
        words[at++] = 2u << 16 | SpvOpCapability;
        words[at++] = requests[i].capability;
    }
    memcpy(words + at, whole + SPIRV_HEADER_WORDS, (modes_at - SPIRV_HEADER_WORDS) * sizeof *words);
    at += modes_at - SPIRV_HEADER_WORDS;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t mode[] = {4u << 16 | SpvOpExecutionMode, entry, requests[i].mode,
                           requests[i].width};
        memcpy(words + at, mode, sizeof mode);
        at += ARRAY_COUNT(mode);
    }
    memcpy(words + at, whole + modes_at, (whole_count - modes_at) * sizeof *words);
    *out_count = at + whole_count - modes_at;
    return words;
}

uint32_t *spirv_request(const kernel_info *kernel, spirv_float_controls controls,
                        uint32_t *out_count)
{
    float_request requests[MOST_REQUESTS];
    uint32_t count = requests_of(controls, requests), *whole = kernel_words(kernel);
    uint32_t *words = whole ? insert(whole, kernel->word_count, requests, count, out_count) : NULL;
    memory_free(whole);
    return words;
}
