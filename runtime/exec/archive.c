/* See archive.h: the code that both formats use. */
#include "exec/archive.h"

#include <stdlib.h>
#include <string.h>

static const archive_format *const formats[] = {&archive_safetensors, &archive_npz};

rlxvk_status archive_format_of(const char *path, const archive_format **out)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < ARRAY_COUNT(formats); i++) {
        size_t ending = strlen(formats[i]->extension);
        if (length >= ending &&
            text_ascii_equal(path + length - ending, formats[i]->extension, ending)) {
            *out = formats[i];
            return RLXVK_OK;
        }
    }
    return status_fail(RLXVK_E_ATTR,
                       "'%s' ends neither in %s nor in %s; the extension tells the format", path,
                       formats[0]->extension, formats[1]->extension);
}

/* ---- Reading ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const archive_entry *)a)->name, ((const archive_entry *)b)->name);
}

static rlxvk_status sort_entries(archive *a)
{
    if (a->entries.count)
        qsort(a->entries.items, a->entries.count, sizeof *a->entries.items, by_name);
    for (size_t i = 1; i < a->entries.count; i++)
        if (by_name(&a->entries.items[i - 1], &a->entries.items[i]) == 0)
            return status_fail(RLXVK_E_DUP_NAME, "the name '%.100s' stands there twice",
                               a->entries.items[i].name);
    return RLXVK_OK;
}

rlxvk_status archive_open(const char *path, const archive_format *format, archive *out)
{
    rlxvk_status status;
    *out = (archive){.format = format};
    crc_fill(&out->crc);
    TRY(input_open(path, &out->file));
    status = format->list(out);
    if (status == RLXVK_OK)
        status = sort_entries(out);
    if (status != RLXVK_OK)
        TRY(status_fail_within(status, "'%s'", path));
    return RLXVK_OK;
error:
    archive_close(out);
    return status;
}

void archive_close(archive *a)
{
    input_close(a->file);
    arena_destroy(&a->names);
    VECTOR_FREE(&a->entries);
    a->file = NULL;
}

const archive_entry *archive_find(const archive *a, const char *name)
{
    archive_entry wanted = {.name = name};
    return a->entries.count ? bsearch(&wanted, a->entries.items, a->entries.count,
                                      sizeof *a->entries.items, by_name)
                            : NULL;
}

rlxvk_status archive_read(const archive *a, const archive_entry *entry, void *out)
{
    rlxvk_status status;
    TRY(input_read(a->file, entry->offset, entry->size, out));
    if (entry->checked && crc_update(&a->crc, entry->crc_before, out, entry->size) != entry->crc)
        return status_fail(RLXVK_E_FILE,
                           "'%s': the content of '%.100s' does not match its checksum; the file is "
                           "damaged",
                           a->file->path, entry->name);
error:
    return status;
}

/* ---- Writing ---- */

rlxvk_status archive_create(const char *path, const archive_format *format, archive_entry *entries,
                            size_t count, archive_writer *out)
{
    rlxvk_status status;
    *out = (archive_writer){.entries = entries, .count = count};
    for (size_t i = 0; i < count; i++)
        TRY(format->check(&entries[i]));
    crc_fill(&out->crc);
    TRY(new_file_open(path, &out->file));
    TRY(format->begin(out));
    return RLXVK_OK;
error:
    new_file_discard(&out->file);
    return status;
}
