/*
 * .npz: a zip file with one .npy file for each array, stored without compression. It has, in this
 * order:
 *   files       for each a header with its name, and its bytes
 *   directory   sizes and places of the files
 *   end         size and place of the directory
 *
 * All numbers are little-endian. We always write 64-bit sizes (Zip64), so that one way serves all
 * sizes.
 */
#include "exec/archive.h"
#include "exec/npy_header.h"

#include <string.h>

enum signature {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END_64 = 0x06064b50,
    LOCATOR = 0x07064b50,
    END = 0x06054b50
};
enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_64_SIZE = 56, LOCATOR_SIZE = 20, END_SIZE = 22 };
enum { LONGEST_COMMENT = 65535, ENCRYPTED = 1, UTF8_NAMES = 0x800, STORED = 0 };
#define IN_64_BITS 0xffffffffu /* in a 32-bit field: the number is in 64 bits elsewhere */
#define ENDING     ".npy"

static uint32_t u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const uint8_t *at)
{
    return u16(at) | u16(at + 2) << 16;
}

static uint64_t u64(const uint8_t *at)
{
    return u32(at) | (uint64_t)u32(at + 4) << 32;
}

/* ---- Reading: the directory ---- */

typedef struct directory {
    uint64_t offset, size, count;
} directory;

/* One file of the directory. */
typedef struct member {
    const uint8_t *name;
    uint32_t name_length, flags, method, crc;
    uint64_t size, compressed, offset;
} member;

static rlxvk_status malformed(const char *what)
{
    return status_fail(RLXVK_E_FILE, "no sound zip file: %s", what);
}

/* Reads the 64-bit end of the directory, if there is one. A locator just before the ordinary end
 * says where it lies. */
static rlxvk_status read_end_64(const archive *a, uint64_t end, directory *out)
{
    uint8_t locator[LOCATOR_SIZE], bytes[END_64_SIZE];
    rlxvk_status status;
    if (end < LOCATOR_SIZE)
        return RLXVK_OK;
    TRY(input_read(a->file, end - LOCATOR_SIZE, LOCATOR_SIZE, locator));
    if (u32(locator) != LOCATOR)
        return RLXVK_OK;
    uint64_t at = u64(locator + 8);
    if (at > end - LOCATOR_SIZE || end - LOCATOR_SIZE - at < END_64_SIZE)
        return malformed("the 64-bit end of its directory is not where it should be");
    TRY(input_read(a->file, at, END_64_SIZE, bytes));
    if (u32(bytes) != END_64)
        return malformed("its directory has no 64-bit end");
    if (u32(locator + 4) || u32(bytes + 16) || u32(bytes + 20) ||
        u64(bytes + 24) != u64(bytes + 32))
        return malformed("it is one of several");
    *out = (directory){u64(bytes + 48), u64(bytes + 40), u64(bytes + 32)};
error:
    return status;
}

/* Finds the directory's end: the last place from which an end record and its comment exactly fill
 * the file. */
static rlxvk_status find_end(const archive *a, directory *out)
{
    uint64_t length = a->file->length, room = MIN(length, (uint64_t)END_SIZE + LONGEST_COMMENT);
    uint8_t *tail = NULL, *at;
    rlxvk_status status;
    if (length < END_SIZE)
        return malformed("it is too short");
    if (!(tail = memory_allocate(room)))
        return status_fail_memory("the end of a file");
    TRY(input_read(a->file, length - room, room, tail));
    for (at = tail + room - END_SIZE;
         at > tail && (u32(at) != END || u16(at + 20) != (uint64_t)(tail + room - at) - END_SIZE);)
        at--;
    if (u32(at) != END || u16(at + 20) != (uint64_t)(tail + room - at) - END_SIZE)
        TRY(malformed("it has no end of a directory; is it cut off?"));
    if (u16(at + 4) || u16(at + 6) || u16(at + 8) != u16(at + 10))
        TRY(malformed("it is one of several"));
    *out = (directory){u32(at + 16), u32(at + 12), u16(at + 10)};
    uint64_t end = length - (uint64_t)(tail + room - at);
    TRY(read_end_64(a, end, out));
    if (out->offset > end || out->size > end - out->offset)
        TRY(malformed("its directory is not inside it"));
error:
    memory_free(tail);
    return status;
}

/* If sizes or the place do not fit in 32 bits, they follow the name as 64-bit numbers. They come in
 * this order, and only those that did not fit. */
static rlxvk_status read_extra(const uint8_t *extra, uint32_t length, member *m)
{
    uint64_t *const wide[] = {&m->size, &m->compressed, &m->offset};
    for (uint32_t at = 0, size; length - at >= 4; at += 4 + size) {
        size = u16(extra + at + 2);
        if (size > length - at - 4)
            return malformed("a field behind a name passes its end");
        if (u16(extra + at) != 1)
            continue;
        const uint8_t *from = extra + at + 4, *end = from + size;
        for (size_t i = 0; i < ARRAY_COUNT(wide); i++) {
            if (*wide[i] != IN_64_BITS)
                continue;
            if (end - from < 8)
                return malformed("a 64-bit size is missing");
            *wide[i] = u64(from);
            from += 8;
        }
    }
    return RLXVK_OK;
}

/* Reads the file at `at` in the directory, of which `left` bytes remain. Sets *out_taken to the
 * bytes that its entry takes. */
static rlxvk_status read_central(const uint8_t *at, uint64_t left, member *out, uint64_t *out_taken)
{
    if (left < CENTRAL_SIZE || u32(at) != CENTRAL)
        return malformed("its directory is damaged");
    uint32_t name = u16(at + 28), extra = u16(at + 30);
    *out_taken = CENTRAL_SIZE + (uint64_t)name + extra + u16(at + 32);
    if (*out_taken > left)
        return malformed("its directory is cut off");
    *out = (member){.name = at + CENTRAL_SIZE,
                    .name_length = name,
                    .flags = u16(at + 8),
                    .method = u16(at + 10),
                    .crc = u32(at + 16),
                    .size = u32(at + 24),
                    .compressed = u32(at + 20),
                    .offset = u32(at + 42)};
    if (memchr(out->name, 0, name))
        return malformed("a name has a zero byte in it");
    return read_extra(out->name + name, extra, out);
}

/* ---- Reading: the files ---- */

/* Only stored files can be read, because there is no decompressor here. */
static rlxvk_status check_member(const member *m, const char *name)
{
    if (m->flags & ENCRYPTED)
        return status_fail(RLXVK_E_UNSUPPORTED, "'%.100s' is encrypted; save it without", name);
    if (m->method != STORED)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "'%.100s' is compressed (method %u); save it uncompressed, with "
                           "numpy.savez instead of savez_compressed",
                           name, m->method);
    if (m->size != m->compressed)
        return status_fail(RLXVK_E_FILE, "'%.100s' is stored, but takes %llu bytes for its %llu",
                           name, (unsigned long long)m->compressed, (unsigned long long)m->size);
    return RLXVK_OK;
}

/* Finds the first byte of a file's content. It lies behind the file's own header, which must agree
 * with the directory. */
static rlxvk_status find_content(const archive *a, const directory *d, const member *m,
                                 uint64_t *out)
{
    uint8_t bytes[LOCAL_SIZE], *name = NULL;
    rlxvk_status status;
    if (m->offset > d->offset || d->offset - m->offset < LOCAL_SIZE)
        return malformed("a file lies outside");
    TRY(input_read(a->file, m->offset, LOCAL_SIZE, bytes));
    uint64_t at = m->offset + LOCAL_SIZE, size = m->name_length, extra = u16(bytes + 28);
    if (u32(bytes) != LOCAL || u16(bytes + 8) != m->method || u16(bytes + 26) != size)
        return malformed("a file and the directory do not agree");
    if (d->offset - at < size + extra || d->offset - at - size - extra < m->size)
        return malformed("a file passes the directory");
    if (!(name = memory_allocate(size)))
        return status_fail_memory("a name");
    TRY(input_read(a->file, at, size, name));
    if (memcmp(name, m->name, size) != 0)
        TRY(malformed("a file and the directory do not agree about its name"));
    *out = at + size + extra;
error:
    memory_free(name);
    return status;
}

static rlxvk_status read_npy(const archive *a, uint64_t at, const member *m, archive_entry *e)
{
    uint8_t prefix[NPY_PREFIX], *bytes = NULL;
    npy_header h;
    uint64_t size;
    rlxvk_status status;
    TRY(input_read(a->file, at, MIN(m->size, NPY_PREFIX), prefix));
    TRY(npy_header_begin(prefix, m->size, &h));
    if (!(bytes = memory_allocate(h.start)))
        TRY(status_fail_memory("the header of an array"));
    TRY(input_read(a->file, at, h.start, bytes));
    TRY(npy_header_read(bytes, &h));
    e->dtype = h.dtype;
    e->column_major = h.column_major;
    e->shape = h.shape;
    memcpy(e->type, h.type, sizeof e->type);
    e->offset = at + h.start;
    e->size = m->size - h.start;
    e->checked = true;
    e->crc_before = crc_update(&a->crc, 0, bytes, h.start);
    e->crc = m->crc;
    if (e->dtype != RLXVK_DTYPE_COUNT &&
        (!size_multiply(h.numel, rlxvk_dtype_size(h.dtype), &size) || size != e->size))
        TRY(status_fail(RLXVK_E_FILE, "%llu bytes behind its header, not %llu elements of '%s'",
                        (unsigned long long)e->size, (unsigned long long)h.numel, h.type));
error:
    memory_free(bytes);
    return status;
}

/* Adds an array under its name without ".npy". A file without this ending is not an array. It keeps
 * its name, and its dtype is RLXVK_DTYPE_COUNT. */
static rlxvk_status add_member(archive *a, const directory *d, const member *m)
{
    archive_entry e = {.dtype = RLXVK_DTYPE_COUNT, .type = "no array"};
    uint32_t length = m->name_length, ending = (uint32_t)strlen(ENDING);
    uint64_t at = 0;
    rlxvk_status status;
    char *name = arena_allocate(&a->names, (size_t)length + 1);
    if (!name)
        return status_fail_memory("names of a file");
    memcpy(name, m->name, length);
    e.name = name;
    TRY(check_member(m, name));
    TRY(find_content(a, d, m, &at));
    if (length >= ending && strcmp(name + length - ending, ENDING) == 0) {
        name[length - ending] = 0;
        status = read_npy(a, at, m, &e);
        if (status != RLXVK_OK)
            TRY(status_fail_within(status, "'%.100s'", name));
    }
    if (!VECTOR_PUSH(&a->entries, e))
        TRY(status_fail_memory("entries of a file"));
error:
    return status;
}

static rlxvk_status list(archive *a)
{
    directory d = {0};
    member m;
    uint8_t *bytes = NULL;
    uint64_t at = 0, taken = 0;
    rlxvk_status status;
    TRY(find_end(a, &d));
    if (!(bytes = memory_allocate(d.size)))
        TRY(status_fail_memory("the directory of a file"));
    TRY(input_read(a->file, d.offset, d.size, bytes));
    for (uint64_t i = 0; i < d.count; i++, at += taken) {
        TRY(read_central(bytes + at, d.size - at, &m, &taken));
        TRY(add_member(a, &d, &m));
    }
    if (at != d.size)
        TRY(malformed("its directory has more in it than it says"));
error:
    memory_free(bytes);
    return status;
}

/* ---- Writing ---- */

/* Bytes of numbers, one behind the other. */
typedef struct record {
    uint8_t bytes[96];
    size_t size;
} record;

static void add(record *r, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        r->bytes[r->size++] = (uint8_t)(value >> 8 * i);
}

static void write_bytes(archive_writer *w, const void *bytes, uint64_t size)
{
    fwrite(bytes, 1, size, w->file.stream);
    w->written += size;
}

static void write_name(archive_writer *w, const char *name)
{
    write_bytes(w, name, strlen(name));
    write_bytes(w, ENDING, strlen(ENDING));
}

enum { NEEDED_VERSION = 45, FIRST_DAY = 1 << 5 | 1 /* 1980-01-01 */, WIDE_FIELD = 1 };

/* The fields that both headers of a file have. */
static void add_common(record *r, const archive_entry *e)
{
    add(r, NEEDED_VERSION, 2);
    add(r, UTF8_NAMES, 2);
    add(r, STORED, 2);
    add(r, 0, 2);
    add(r, FIRST_DAY, 2);
    add(r, e->crc, 4);
    add(r, IN_64_BITS, 4);
    add(r, IN_64_BITS, 4);
    add(r, strlen(e->name) + strlen(ENDING), 2);
}

static rlxvk_status check(const archive_entry *entry)
{
    if (!npy_header_type(entry->dtype))
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "param '%s' is %s, which NumPy does not have; save to .safetensors",
                           entry->name, rlxvk_dtype_name(entry->dtype));
    return RLXVK_OK;
}

static rlxvk_status begin(archive_writer *w)
{
    (void)w;
    return RLXVK_OK;
}

static rlxvk_status put(archive_writer *w, archive_entry *e, const void *bytes)
{
    uint8_t header[NPY_HEADER_ROOM];
    size_t length = npy_header_write(e->dtype, &e->shape, header);
    record r = {.size = 0}, extra = {.size = 0};
    e->crc = crc_update(&w->crc, crc_update(&w->crc, 0, header, length), bytes, e->size);
    e->offset = w->written; /* of its header */
    add(&r, LOCAL, 4);
    add_common(&r, e);
    add(&r, 20, 2);
    write_bytes(w, r.bytes, r.size);
    write_name(w, e->name);
    add(&extra, WIDE_FIELD, 2);
    add(&extra, 16, 2);
    add(&extra, length + e->size, 8);
    add(&extra, length + e->size, 8);
    write_bytes(w, extra.bytes, extra.size);
    write_bytes(w, header, length);
    write_bytes(w, bytes, e->size);
    return RLXVK_OK;
}

static void write_central(archive_writer *w, const archive_entry *e)
{
    uint8_t header[NPY_HEADER_ROOM];
    uint64_t size = npy_header_write(e->dtype, &e->shape, header) + e->size;
    record r = {.size = 0}, extra = {.size = 0};
    add(&r, CENTRAL, 4);
    add(&r, 3 << 8 | NEEDED_VERSION, 2); /* made on Unix */
    add_common(&r, e);
    add(&r, 28, 2);
    add(&r, 0, 2 + 2 + 2);               /* comment, disk, kind */
    add(&r, (uint64_t)0100644 << 16, 4); /* a plain file */
    add(&r, IN_64_BITS, 4);
    write_bytes(w, r.bytes, r.size);
    write_name(w, e->name);
    add(&extra, WIDE_FIELD, 2);
    add(&extra, 24, 2);
    add(&extra, size, 8);
    add(&extra, size, 8);
    add(&extra, e->offset, 8);
    write_bytes(w, extra.bytes, extra.size);
}

static rlxvk_status end(archive_writer *w)
{
    uint64_t directory = w->written, size, end_64;
    record r = {.size = 0};
    for (size_t i = 0; i < w->count; i++)
        write_central(w, &w->entries[i]);
    end_64 = w->written;
    size = end_64 - directory;
    add(&r, END_64, 4);
    add(&r, END_64_SIZE - 12, 8);
    add(&r, NEEDED_VERSION, 2);
    add(&r, NEEDED_VERSION, 2);
    add(&r, 0, 4 + 4);
    add(&r, w->count, 8);
    add(&r, w->count, 8);
    add(&r, size, 8);
    add(&r, directory, 8);
    write_bytes(w, r.bytes, r.size);
    r.size = 0;
    add(&r, LOCATOR, 4);
    add(&r, 0, 4);
    add(&r, end_64, 8);
    add(&r, 1, 4);
    add(&r, END, 4);
    add(&r, 0, 2 + 2);
    add(&r, 0xffff, 2);
    add(&r, 0xffff, 2);
    add(&r, IN_64_BITS, 4);
    add(&r, IN_64_BITS, 4);
    add(&r, 0, 2);
    write_bytes(w, r.bytes, r.size);
    return new_file_close(&w->file);
}

const archive_format archive_npz = {
    .extension = ".npz", .list = list, .check = check, .begin = begin, .put = put, .end = end};
