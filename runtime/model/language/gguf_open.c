/*
 * Opens model files, including split ones. A split model is files <base>-00001-of-0000N.gguf, each
 * a GGUF file with its own data section. Every part stays open. The first part's list of tensors
 * also gets those of the other parts.
 */
#include "model/language/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIRST_BYTES         (1 << 20)
#define SPLIT_SUFFIX_LENGTH 20 /* "-00001-of-00002.gguf" */

/* Parses from as few bytes as possible. Each round reads at least four times as many as the last.
 */
static gguf_status parse_head(const input_file *source, uint8_t **head, gguf_file **out)
{
    gguf_status status;
    uint64_t had = 0, needed = FIRST_BYTES;
    do {
        uint64_t size = MIN(MAX(needed, 4 * had), source->length);
        uint8_t *bytes = memory_resize(*head, (size_t)MAX(size, 1));
        if (bytes == NULL)
            return gguf_from(status_fail_memory("GGUF metadata"));
        *head = bytes;
        TRY(gguf_from(input_read(source, had, size - had, bytes + had)));
        had = size;
        status = gguf_parse_head(bytes, size, source->length, NULL, &needed, out);
    } while (status != GGUF_OK && needed > had);
    if (status != GGUF_OK)
        (void)status_fail_within(RLXVK_E_FILE, "'%s'", source->path);
error:
    return status;
}

static gguf_status open_one(const char *path, gguf_file **out)
{
    input_file *source = NULL;
    uint8_t *head = NULL;
    gguf_status status;
    TRY(gguf_from(input_open(path, &source)));
    TRY(parse_head(source, &head, out));
    (*out)->source = source;
    (*out)->head = head;
    for (uint64_t i = 0; i < (*out)->tensor_count; i++)
        (*out)->tensors[i].source = source;
    return GGUF_OK;
error:
    memory_free(head);
    input_close(source);
    return status;
}

/* Whether `path` ends in -DDDDD-of-DDDDD.gguf. */
static bool has_split_suffix(const char *path)
{
    static const char pattern[] = "-ddddd-of-ddddd.gguf";
    size_t length = strlen(path);
    if (length < SPLIT_SUFFIX_LENGTH)
        return false;
    const char *suffix = path + length - SPLIT_SUFFIX_LENGTH;
    for (size_t i = 0; i < SPLIT_SUFFIX_LENGTH; i++) {
        bool digit = suffix[i] >= '0' && suffix[i] <= '9';
        if (pattern[i] == 'd' ? !digit : suffix[i] != pattern[i])
            return false;
    }
    return true;
}

static gguf_status open_part(const char *path, uint64_t number, uint64_t count, gguf_file **out)
{
    gguf_status status;
    uint64_t found_number = UINT64_MAX, found_count = 0;
    gguf_file *file = NULL;
    char *name = memory_copy_string(path);
    if (name == NULL)
        return gguf_from(status_fail_memory("path of a split model's part"));
    char suffix[64];
    snprintf(suffix, sizeof suffix, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", number + 1, count);
    memcpy(name + strlen(name) - SPLIT_SUFFIX_LENGTH, suffix, SPLIT_SUFFIX_LENGTH);
    TRY(open_one(name, &file));
    gguf_get_u64(file, "split.no", &found_number);
    gguf_get_u64(file, "split.count", &found_count);
    if (found_number != number || found_count != count) {
        status = gguf_fail(GGUF_E_COUNT,
                           "'%s': split.no and split.count are %" PRId64 " and %" PRIu64
                           ", expected %" PRIu64 " and %" PRIu64,
                           name, (int64_t)found_number, found_count, number, count);
        goto error;
    }
    *out = file;
    file = NULL;
error:
    gguf_close(file);
    memory_free(name);
    return status;
}

/* Appends the tensors of the other parts to those of the first part, which then owns the parts. */
static gguf_status merge_tensors(gguf_file *first, const char *path)
{
    gguf_status status;
    uint64_t total = first->tensor_count, declared, twice;
    for (uint64_t i = 0; i < first->part_count; i++)
        total += first->parts[i]->tensor_count;
    if (gguf_get_u64(first, "split.tensors.count", &declared) && declared != total)
        return gguf_fail(GGUF_E_COUNT,
                         "'%s': split.tensors.count is %" PRIu64 ", the parts hold %" PRIu64, path,
                         declared, total);
    if (total > UINT32_MAX / 4)
        return gguf_fail(GGUF_E_COUNT, "'%s': %" PRIu64 " tensors in all parts", path, total);
    gguf_tensor *tensors = memory_resize(first->tensors, (size_t)MAX(total, 1) * sizeof *tensors);
    if (tensors == NULL)
        return gguf_from(status_fail_memory("tensor list of a split model"));
    first->tensors = tensors;
    for (uint64_t i = 0; i < first->part_count; i++) {
        const gguf_file *part = first->parts[i];
        memcpy(tensors + first->tensor_count, part->tensors,
               (size_t)part->tensor_count * sizeof *tensors);
        first->tensor_count += part->tensor_count;
    }
    TRY(gguf_from(gguf_index_tensors(first, &twice)));
    if (twice < total)
        return gguf_fail(GGUF_E_NAME, "'%s': tensor '%s' stands in two parts", path,
                         tensors[twice].name);
error:
    return status;
}

static gguf_status open_split(const char *path, uint64_t count, gguf_file **out)
{
    gguf_status status;
    gguf_file *first = NULL;
    if (count > 99999)
        return gguf_fail(GGUF_E_COUNT, "'%s': split.count %" PRIu64 " above 99999", path, count);
    if (!has_split_suffix(path))
        return gguf_fail(GGUF_E_FILE,
                         "'%s': part of a model split in %" PRIu64
                         "; the parts can only be found under names ending in -00001-of-%05" PRIu64
                         ".gguf",
                         path, count, count);
    TRY(open_part(path, 0, count, &first));
    first->parts = memory_zeroed((size_t)count, sizeof *first->parts);
    if (first->parts == NULL) {
        status = gguf_from(status_fail_memory("parts of a split model"));
        goto error;
    }
    for (uint64_t i = 1; i < count; i++) {
        TRY(open_part(path, i, count, &first->parts[i - 1]));
        first->part_count = i;
    }
    TRY(merge_tensors(first, path));
    *out = first;
    return GGUF_OK;
error:
    gguf_close(first);
    return status;
}

gguf_status gguf_open(const char *path, gguf_file **out)
{
    gguf_status status;
    gguf_file *file = NULL;
    uint64_t count = 1;
    *out = NULL;
    TRY(open_one(path, &file));
    gguf_get_u64(file, "split.count", &count);
    if (count <= 1) {
        *out = file;
        return GGUF_OK;
    }
    gguf_close(file);
    TRY(open_split(path, count, out));
error:
    return status;
}
