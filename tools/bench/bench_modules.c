/* See bench_modules.h. */
#include "bench/bench_modules.h"
#include "base/system.h"

#include <errno.h>
#include <string.h>

rlxvk_status bench_modules_open(bench_modules *m, const char *folder)
{
    char path[4096];
    m->folder = folder;
    snprintf(path, sizeof path, "%s/modules.txt", folder);
    return new_file_open(path, &m->list);
}

/* True if it is new. */
static rlxvk_status remember(bench_modules *m, const pipeline_request *request, bool *out_new)
{
    *out_new = false;
    for (size_t i = m->requests.count; i > 0; i--)
        if (memcmp(&m->requests.items[i - 1], request, sizeof *request) == 0)
            return RLXVK_OK;
    *out_new = true;
    return VECTOR_PUSH(&m->requests, *request) ? RLXVK_OK : status_fail_memory("modules");
}

static void describe(const pipeline_request *r, FILE *file)
{
    fprintf(file, "%s<", kernel_find(r->kernel)->name);
    for (uint32_t c = 0; c < r->constant_count; c++)
        fprintf(file, "%s%u", c ? "," : "", r->constants[c]);
    fprintf(file, ">");
}

static rlxvk_status write_words(const char *path, const uint32_t *words, uint32_t count)
{
    FILE *file = system_stream_open(path, "wb");
    bool written = file && fwrite(words, sizeof *words, count, file) == count;
    if (file && fclose(file) != 0)
        written = false;
    if (!written)
        return status_fail(RLXVK_E_FILE, "'%s' cannot be written: %s", path, strerror(errno));
    return RLXVK_OK;
}

static rlxvk_status write_module(bench_modules *m, const pipeline_request *request,
                                 const uint32_t *words, uint32_t count, const char *line)
{
    const char *kernel = kernel_find(request->kernel)->name;
    uint64_t hash = base_hash(BASE_HASH_START, words, count * sizeof *words);
    char path[4096];
    rlxvk_status status;
    for (size_t i = 0; i < m->contents.count; i++)
        if (m->contents.items[i] == hash)
            return RLXVK_OK;
    if (!VECTOR_PUSH(&m->contents, hash))
        return status_fail_memory("modules");
    snprintf(path, sizeof path, "%s/%s-%016llx.spv", m->folder, kernel, (unsigned long long)hash);
    TRY(write_words(path, words, count));
    fprintf(m->list.stream, "%s-%016llx.spv ", kernel, (unsigned long long)hash);
    describe(request, m->list.stream);
    fprintf(m->list.stream, " %s\n", line);
error:
    return status;
}

rlxvk_status bench_modules_add(bench_modules *m, const device *d, const pipeline_request *request,
                               const char *line)
{
    rlxvk_status status;
    bool is_new;
    uint32_t *words = NULL, count = 0;
    TRY(remember(m, request, &is_new));
    if (!is_new)
        return RLXVK_OK;
    status = pipeline_words(d, request, &words, &count);
    if (status == RLXVK_E_UNSUPPORTED) {
        fprintf(m->list.stream, "FAILED ");
        describe(request, m->list.stream);
        fprintf(m->list.stream, " %s: %s\n", line, rlxvk_last_error());
        m->failed++;
        return RLXVK_OK;
    }
    TRY(status);
    TRY(write_module(m, request, words, count, line));
error:
    memory_free(words);
    return status;
}

rlxvk_status bench_modules_close(bench_modules *m)
{
    return new_file_close(&m->list);
}

void bench_modules_destroy(bench_modules *m)
{
    new_file_discard(&m->list);
    VECTOR_FREE(&m->requests);
    VECTOR_FREE(&m->contents);
}

device_profile bench_profile_of_gpu(const device *d, uint32_t subgroup_size)
{
    enum { UNITS = 16, LINE = 256 };
    device_profile p = d->setup.profile;
    p.kind = RLXVK_DEVICE_INTEGRATED;
    p.subgroup_size = subgroup_size;
    p.subgroup_shuffle = p.subgroup_ballot = true;
    p.max_shuffle_invocations = p.max_workgroup_invocations;
    p.workgroup_size = MIN(LINE, p.max_workgroup_invocations);
    p.compute_units = UNITS;
    return p;
}
