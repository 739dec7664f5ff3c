/*
 * Archives: files of named arrays, in the formats safetensors and .npz.
 *
 * Invariant: every entry of an open archive lies inside the file. If rlxvk has its dtype, its size
 * is that of its dtype and shape. No name comes twice. Sizes that a file claims are not trusted:
 * memory is allocated only for bytes that the file really has.
 */
#ifndef RLXVK_ARCHIVE_H
#define RLXVK_ARCHIVE_H

#include "base/input.h"
#include "base/new_file.h"
#include "exec/crc.h"

typedef struct archive_entry {
    const char *name;
    char type[32];     /* as in the file: "F32", "<f4" */
    rlxvk_dtype dtype; /* RLXVK_DTYPE_COUNT if rlxvk has no such type */
    bool column_major;
    rlxvk_shape shape;
    uint64_t offset, size; /* of the elements, in the file */
    bool checked;          /* the file has a checksum of it */
    uint32_t crc_before, crc;
} archive_entry;

typedef struct archive_format archive_format;

/* An archive to read from. It is closed if it is zeroed. */
typedef struct archive {
    const archive_format *format;
    input_file *file;
    arena names;
    VECTOR(archive_entry) entries; /* sorted by name after opening */
    crc_table crc;
} archive;

/* An archive to write to. All entries must be known before the elements of the first are
 * written. */
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
    /* E_UNSUPPORTED if the format cannot hold this entry. */
    rlxvk_status (*check)(const archive_entry *entry);
    rlxvk_status (*begin)(archive_writer *w);
    rlxvk_status (*put)(archive_writer *w, archive_entry *entry, const void *bytes);
    rlxvk_status (*end)(archive_writer *w);
};
extern const archive_format archive_safetensors, archive_npz;

/* Finds the format by the extension of the path, in upper or lower case. E_ATTR if it is neither;
 * the sentence names both. */
RLXVK_MUST_CHECK rlxvk_status archive_format_of(const char *path, const archive_format **out);

/* Opens a file and lists its entries.
 *   E_FILE          there is no such file, or it is damaged
 *   E_DUP_NAME      two entries have one name
 *   E_SHAPE         an entry has a rank above 8
 *   E_UNSUPPORTED   an entry is compressed or encrypted */
RLXVK_MUST_CHECK rlxvk_status archive_open(const char *path, const archive_format *format,
                                           archive *out);
void archive_close(archive *a);
/* NULL if there is no such entry. */
const archive_entry *archive_find(const archive *a, const char *name);
/* Reads the elements of an entry: entry->size bytes. E_FILE if they do not match the checksum. */
RLXVK_MUST_CHECK rlxvk_status archive_read(const archive *a, const archive_entry *entry, void *out);

/* Begins a file that replaces an old one of this name. The old file stays until format->end
 * succeeds. */
RLXVK_MUST_CHECK rlxvk_status archive_create(const char *path, const archive_format *format,
                                             archive_entry *entries, size_t count,
                                             archive_writer *out);

#endif
