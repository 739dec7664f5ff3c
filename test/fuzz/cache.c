/*
 * Fuzzes the files of the cache directory: the pipeline cache, and the profile of measured kernel
 * choices. The first byte chooses the file, and the rest is its content. If a file is accepted, a
 * sound file could have the same content. If a point is read, written and read again, it must not
 * change.
 */
#include "fuzz.h"
#include "op/choice/tuning.h"
#include "support/fuzz_input.h"
#include "vk/internal.h"

#include <math.h>

static const VkPhysicalDeviceProperties made_up = {.vendorID = 0x10005,
                                                   .deviceID = 7,
                                                   .pipelineCacheUUID = "0123456789abcde"};

/* ---- The pipeline cache ---- */

static void check_cache(const uint8_t *file, size_t size)
{
    size_t length = 0;
    VkPipelineCacheHeaderVersionOne header;
    const uint8_t *data = pipeline_cache_data(&made_up, file, size, &length);
    if (!data)
        return;
    FUZZ_CHECK(data > file && length <= size - (size_t)(data - file), "%zu bytes of %zu accepted",
               length, size);
    FUZZ_CHECK(length >= sizeof header, "%zu bytes accepted", length);
    memcpy(&header, data, sizeof header);
    FUZZ_CHECK(header.headerSize <= length && header.vendorID == made_up.vendorID &&
                   header.deviceID == made_up.deviceID &&
                   !memcmp(header.pipelineCacheUUID, made_up.pipelineCacheUUID, VK_UUID_SIZE),
               "the data of another device accepted");
}

/* Takes the bytes as the driver's data and adds a correct checksum, so that the checks behind the
 * checksum are reached. */
static void check_sealed(const uint8_t *data, size_t size)
{
    cache_header header = pipeline_cache_header(data, size);
    uint8_t *file = malloc(sizeof header + size);
    FUZZ_CHECK(file, "out of memory");
    memcpy(file, &header, sizeof header);
    if (size)
        memcpy(file + sizeof header, data, size);
    check_cache(file, sizeof header + size);
    free(file);
}

/* ---- The profile ---- */

static bool same_point(const tuning_point *a, const tuning_point *b)
{
    return a->row == b->row && a->kind == b->kind && !strcmp(a->tag, b->tag) &&
           !memcmp(a->dims, b->dims, sizeof a->dims);
}

static variant_query query_at(const tuning_point *p)
{
    variant_query q = {.kind = &choice_kinds[p->kind]};
    memcpy(q.tag, p->tag, sizeof q.tag);
    for (int i = 0; i < VARIANT_DIMS; i++)
        q.dims[i] = p->dims[i];
    return q;
}

static void check_written(const tuning_point *p)
{
    char line[256];
    text written = {line, sizeof line, 0};
    variant_query q = query_at(p);
    tuning again;
    text_append(&written, "%s", TUNING_HEADER);
    tuning_write(&q, p->row == VARIANT_NONE ? TUNING_TABLE : choice_row_name(q.kind, p->row), 1.5,
                 &written);
    if (tuning_create(line, NULL, &again) != RLXVK_OK)
        return;
    FUZZ_CHECK(again.points.count == 1 && same_point(&again.points.items[0], p),
               "a point does not read as written: %s", line);
    tuning_destroy(&again);
}

static void check_profile(const uint8_t *bytes, size_t size)
{
    char *content = malloc(size + 1);
    tuning t;
    FUZZ_CHECK(content, "out of memory");
    if (size)
        memcpy(content, bytes, size);
    content[size] = 0;
    rlxvk_status status = tuning_create(content, NULL, &t);
    FUZZ_CHECK(status == RLXVK_OK, "a damaged profile is an error: %s", rlxvk_last_error());
    for (size_t i = 0; i < t.points.count; i++) {
        const tuning_point *p = &t.points.items[i];
        variant_query q = query_at(p);
        size_t row = tuning_find(&t, &q);
        FUZZ_CHECK(row == VARIANT_NONE || choice_row_name(q.kind, row), "row %zu of %s", row,
                   q.kind->name);
        if (i < 4)
            check_written(p);
    }
    tuning_destroy(&t);
    free(content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(const uint8_t *, size_t) = {check_cache, check_sealed,
                                                             check_profile};
    fuzz_input in = {data, size};
    kinds[fuzz_below(&in, 3)](in.bytes, in.left);
    return 0;
}
