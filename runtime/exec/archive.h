/*
 * Archives: files of named arrays, in the formats safetensors and .npz.
 *
 * Invariant: what an open archive lists lies inside the file, as many bytes as type and shape say,
 * and no name comes twice. Nothing is allocated by what a file claims to have, only by its length.
 */
#ifndef RLXVK_ARCHIVE_H
#define RLXVK_ARCHIVE_H

#include "base/input.h"
#include "base/new_file.h"
#include "exec/crc.h"

typedef struct archive_entry {
    const char *name;
    char type[32];     /* as the file has it: "F32", "<f4" */
    rlxvk_dtype dtype; /* RLXVK_DTYPE_COUNT: the type is none of rlxvk's */
    bool column_major;
    rlxvk_shape shape;
    uint64_t offset, size; /* of the elements, in the file */
    bool checked;          /* the file has a checksum of it */
    uint32_t crc_before, crc;
} archive_entry;

typedef struct archive_format archive_format;

/* To read from. Zeroed: closed. */
typedef struct archive {
    const archive_format *format;
    input_file *file;
    arena names;
    VECTOR(archive_entry) entries; /* by name once it is open */
    crc_table crc;
} archive;

/* To write to: all entries are known before the first one's elements come. */
typedef struct archive_writer {
    new_file file;
    archive_entry *entries; /* the caller's: name, dtype, shape and size; offsets are filled in */
    size_t count;
    uint64_t written;
    crc_table crc;
} archive_writer;

struct archive_format {
    const char *extension;
    /* Fills the entries of an archive whose file is open. */
    rlxvk_status (*list)(archive *a);
    /* E_UNSUPPORTED for an entry that the format cannot hold. */
    rlxvk_status (*check)(const archive_entry *entry);
    rlxvk_status (*begin)(archive_writer *w);
    rlxvk_status (*put)(archive_writer *w, archive_entry *entry, const void *bytes);
    rlxvk_status (*end)(archive_writer *w);
};
extern const archive_format archive_safetensors, archive_npz;

/* The format by the extension of the path, in any case; E_ATTR naming both. */
RLXVK_MUST_CHECK rlxvk_status archive_format_of(const char *path, const archive_format **out);

/* E_FILE: no such file or a damaged one; E_DUP_NAME; E_SHAPE: rank above 8; E_UNSUPPORTED: an entry
 * is compressed or encrypted. */
RLXVK_MUST_CHECK rlxvk_status archive_open(const char *path, const archive_format *format,
                                           archive *out);
void archive_close(archive *a);
/* NULL: there is none. */
const archive_entry *archive_find(const archive *a, const char *name);
/* The elements of an entry: entry->size bytes. E_FILE if they are not what the checksum says. */
RLXVK_MUST_CHECK rlxvk_status archive_read(const archive *a, const archive_entry *entry, void *out);

/* Begins a file in the place of another, which stays until archive_finish. */
RLXVK_MUST_CHECK rlxvk_status archive_create(const char *path, const archive_format *format,
                                             archive_entry *entries, size_t count,
                                             archive_writer *out);

#endif
