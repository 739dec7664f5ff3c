/*
 * .safetensors: the length of the header (u64), the header, and the elements of all tensors, one
 * behind the other without gaps. The header is a JSON object and may end in spaces:
 *   {"__metadata__":{"key":"text"},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
 *
 * The format has no checksum.
 */
#include "exec/archive.h"

#include <stdlib.h>
#include <string.h>

#define METADATA       "__metadata__"
#define LONGEST_HEADER 100000000u /* the limit of other readers, too */

/* ---- JSON, as much of it as the format needs ---- */

/* A position in the header's text. */
typedef struct cursor {
    const char *text;
    size_t length, position;
} cursor;

static rlxvk_status malformed(const cursor *c, const char *what)
{
    return status_fail(RLXVK_E_FILE, "header, byte %zu: %s", 8 + c->position, what);
}

static char next_of(cursor *c)
{
    while (c->position < c->length && strchr(" \t\r\n", c->text[c->position]) &&
           c->text[c->position])
        c->position++;
    return c->position < c->length ? c->text[c->position] : 0;
}

static bool accept(cursor *c, char character)
{
    bool found = next_of(c) == character;
    c->position += found;
    return found;
}

/* Reads four hexadecimal digits; -1 if they are not such digits. */
static int32_t hexadecimal(cursor *c)
{
    int32_t value = 0;
    if (c->length - c->position < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char digit = ascii_lower(c->text[c->position++]);
        if (digit >= '0' && digit <= '9')
            value = value * 16 + (digit - '0');
        else if (digit >= 'a' && digit <= 'f')
            value = value * 16 + (digit - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* Reads the digits behind \u, and those of the second half if it is a surrogate pair. Returns -1 if
 * they are not a character, or the zero that ends C strings. */
static int32_t unicode(cursor *c)
{
    int32_t point = hexadecimal(c), low;
    if (point < 0xd800 || point > 0xdfff)
        return point ? point : -1;
    if (point > 0xdbff || c->length - c->position < 2 || c->text[c->position] != '\\' ||
        c->text[c->position + 1] != 'u')
        return -1;
    c->position += 2;
    low = hexadecimal(c);
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
}

static size_t put_utf8(uint32_t point, char *out)
{
    if (point < 0x80)
        return out[0] = (char)point, 1;
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((0xf00u >> length & 0xf0) | point);
    return length;
}

/* Reads what follows a backslash. Writes at most 4 bytes, and never more than the text has. Returns
 * 0 if there is no such escape. */
static size_t read_escape(cursor *c, char *out)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char letter = c->position < c->length ? c->text[c->position++] : 0;
    const char *at = letter ? strchr(letters, letter) : NULL;
    if (at)
        return *out = meant[at - letters], 1;
    int32_t point = letter == 'u' ? unicode(c) : -1;
    return point < 0 ? 0 : put_utf8((uint32_t)point, out);
}

/* Reads a string. E_FILE if it does not fit in `room` bytes with its terminator. */
static rlxvk_status read_string(cursor *c, char *out, size_t room)
{
    size_t length = 0;
    if (!accept(c, '"'))
        return malformed(c, "expected a string");
    while (c->position < c->length && c->text[c->position] != '"') {
        char bytes[4] = {c->text[c->position++]};
        if ((unsigned char)bytes[0] < 0x20)
            return malformed(c, "a control character in a string");
        size_t count = bytes[0] == '\\' ? read_escape(c, bytes) : 1;
        if (!count)
            return malformed(c, "no such escape");
        if (length + count >= room)
            return malformed(c, "the string before it is too long");
        memcpy(out + length, bytes, count);
        length += count;
    }
    out[length] = 0;
    return accept(c, '"') ? RLXVK_OK : malformed(c, "a string without an end");
}

static rlxvk_status read_number(cursor *c, uint64_t *out)
{
    size_t start = (next_of(c), c->position);
    *out = 0;
    for (; c->position < c->length; c->position++) {
        char digit = c->text[c->position];
        if (digit < '0' || digit > '9')
            break;
        if (!size_multiply(*out, 10, out) || !size_add(*out, (uint64_t)(digit - '0'), out) ||
            *out > INT64_MAX)
            return malformed(c, "a number above 2^63 - 1");
    }
    return c->position > start ? RLXVK_OK : malformed(c, "expected a number that is not negative");
}

/* Reads a list like [1, 2, 3] of at most `room` numbers. */
static rlxvk_status read_numbers(cursor *c, uint64_t *out, uint32_t room, uint32_t *out_count)
{
    rlxvk_status status;
    *out_count = 0;
    if (!accept(c, '['))
        return malformed(c, "expected '['");
    if (accept(c, ']'))
        return RLXVK_OK;
    do {
        if (*out_count == room)
            return room == RLXVK_MAX_RANK
                       ? status_fail(RLXVK_E_SHAPE, "header, byte %zu: rank above %d",
                                     8 + c->position, RLXVK_MAX_RANK)
                       : malformed(c, "too many numbers");
        TRY(read_number(c, &out[(*out_count)++]));
    } while (accept(c, ','));
    if (!accept(c, ']'))
        return malformed(c, "expected ',' or ']'");
error:
    return status;
}

/* ---- Reading ---- */

static rlxvk_status read_dtype(cursor *c, archive_entry *e)
{
    rlxvk_status status;
    TRY(read_string(c, e->type, sizeof e->type));
    for (e->dtype = 0; e->dtype < RLXVK_DTYPE_COUNT; e->dtype++)
        if (strcmp(rlxvk_dtype_name(e->dtype), e->type) == 0)
            break;
error:
    return status;
}

static rlxvk_status read_shape(cursor *c, archive_entry *e)
{
    uint64_t dims[RLXVK_MAX_RANK];
    rlxvk_status status;
    TRY(read_numbers(c, dims, RLXVK_MAX_RANK, &e->shape.rank));
    for (uint32_t i = 0; i < e->shape.rank; i++)
        e->shape.dims[i] = (int64_t)dims[i];
error:
    return status;
}

static rlxvk_status read_offsets(cursor *c, archive_entry *e)
{
    uint64_t ends[2];
    uint32_t count;
    rlxvk_status status;
    TRY(read_numbers(c, ends, 2, &count));
    if (count != 2 || ends[1] < ends[0])
        return malformed(c, "data_offsets are not a begin and an end");
    e->offset = ends[0];
    e->size = ends[1] - ends[0];
error:
    return status;
}

static const struct field {
    const char *name;
    rlxvk_status (*read)(cursor *c, archive_entry *e);
} fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};

static rlxvk_status read_field(cursor *c, archive_entry *e, unsigned *seen)
{
    char name[32];
    rlxvk_status status;
    TRY(read_string(c, name, sizeof name));
    if (!accept(c, ':'))
        return malformed(c, "expected ':'");
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (strcmp(fields[i].name, name) == 0) {
            if (*seen >> i & 1)
                return malformed(c, "a key that was there before");
            *seen |= 1u << i;
            return fields[i].read(c, e);
        }
    return malformed(c, "a key other than dtype, shape and data_offsets");
error:
    return status;
}

/* The product of the dims must not overflow for any dtype. If rlxvk has the dtype, the size must
 * match, too. If not, the size of an element is unknown. */
static rlxvk_status check_size(const archive_entry *e)
{
    uint64_t size = 1, dim;
    bool empty = false;
    for (uint32_t i = 0; i < e->shape.rank; i++) {
        empty = empty || e->shape.dims[i] == 0;
        dim = (uint64_t)MAX(e->shape.dims[i], 1);
        if (!size_multiply(size, dim, &size))
            return status_fail(RLXVK_E_FILE, "'%.100s': the product of its dims overflows",
                               e->name);
    }
    if (e->dtype == RLXVK_DTYPE_COUNT)
        return RLXVK_OK;
    if (!size_multiply(size, rlxvk_dtype_size(e->dtype), &size))
        return status_fail(RLXVK_E_FILE, "'%.100s': its size overflows", e->name);
    size = empty ? 0 : size;
    if (size != e->size)
        return status_fail(RLXVK_E_FILE,
                           "'%.100s': its data_offsets are %llu bytes apart, its dtype and shape "
                           "need %llu",
                           e->name, (unsigned long long)e->size, (unsigned long long)size);
    return RLXVK_OK;
}

static rlxvk_status read_tensor(cursor *c, archive_entry *e)
{
    unsigned seen = 0;
    rlxvk_status status;
    if (!accept(c, '{'))
        return malformed(c, "expected '{'");
    do
        TRY(read_field(c, e, &seen));
    while (accept(c, ','));
    if (!accept(c, '}'))
        return malformed(c, "expected ',' or '}'");
    if (seen != (1u << ARRAY_COUNT(fields)) - 1)
        return malformed(c, "one of dtype, shape and data_offsets is missing");
    TRY(check_size(e));
error:
    return status;
}

/* Skips the metadata, texts by key, because nothing here uses them. `room` holds one string of the
 * header. */
static rlxvk_status skip_metadata(cursor *c, char *room, size_t size)
{
    rlxvk_status status;
    if (!accept(c, '{'))
        return malformed(c, "expected '{'");
    if (accept(c, '}'))
        return RLXVK_OK;
    do {
        TRY(read_string(c, room, size));
        if (!accept(c, ':'))
            return malformed(c, "expected ':'");
        TRY(read_string(c, room, size));
    } while (accept(c, ','));
    if (!accept(c, '}'))
        return malformed(c, "expected ',' or '}'");
error:
    return status;
}

static rlxvk_status read_header(archive *a, cursor *c, char *name, size_t size)
{
    rlxvk_status status = RLXVK_OK;
    if (!accept(c, '{'))
        return malformed(c, "expected '{'");
    bool more = !accept(c, '}');
    while (more) {
        archive_entry e = {0};
        TRY(read_string(c, name, size));
        if (!accept(c, ':'))
            return malformed(c, "expected ':'");
        if (strcmp(name, METADATA) == 0) {
            TRY(skip_metadata(c, name, size));
        } else {
            if (!(e.name = arena_copy_string(&a->names, name)))
                TRY(status_fail_memory("names of a file"));
            TRY(read_tensor(c, &e));
            if (!VECTOR_PUSH(&a->entries, e))
                TRY(status_fail_memory("entries of a file"));
        }
        more = accept(c, ',');
        if (!more && !accept(c, '}'))
            return malformed(c, "expected ',' or '}'");
    }
    if (next_of(c) || c->position < c->length)
        return malformed(c, "something behind the header's end");
error:
    return status;
}

static int by_offset(const void *a, const void *b)
{
    const archive_entry *x = a, *y = b;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
           : x->size != y->size   ? (x->size < y->size ? -1 : 1)
                                  : 0;
}

/* Checks that the tensors fill the rest of the file, `size` bytes, without gaps. Then makes their
 * offsets those in the file. */
static rlxvk_status place(archive *a, uint64_t start, uint64_t size)
{
    uint64_t end = 0;
    if (a->entries.count)
        qsort(a->entries.items, a->entries.count, sizeof *a->entries.items, by_offset);
    for (size_t i = 0; i < a->entries.count; i++) {
        archive_entry *e = &a->entries.items[i];
        if (e->offset != end || e->size > size - end)
            return status_fail(RLXVK_E_FILE,
                               "'%.100s' lies at bytes %llu to %llu of the elements; the tensor "
                               "before ends at %llu, the file has %llu",
                               e->name, (unsigned long long)e->offset,
                               (unsigned long long)(e->offset + e->size), (unsigned long long)end,
                               (unsigned long long)size);
        end += e->size;
        e->offset += start;
    }
    return end == size ? RLXVK_OK
                       : status_fail(RLXVK_E_FILE,
                                     "the tensors end at byte %llu of the elements, the file has "
                                     "%llu; is it cut off, or another's?",
                                     (unsigned long long)end, (unsigned long long)size);
}

static rlxvk_status list(archive *a)
{
    uint8_t prefix[8];
    uint64_t length = 0, rest;
    char *header = NULL, *name = NULL;
    rlxvk_status status;
    if (a->file->length < sizeof prefix)
        return status_fail(RLXVK_E_FILE, "%llu bytes are no safetensors file",
                           (unsigned long long)a->file->length);
    TRY(input_read(a->file, 0, sizeof prefix, prefix));
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)prefix[i] << 8 * i;
    rest = a->file->length - sizeof prefix;
    if (length > rest || length > LONGEST_HEADER)
        return status_fail(RLXVK_E_FILE,
                           "a header of %llu bytes; the file has %llu behind its length, and %u "
                           "are the most",
                           (unsigned long long)length, (unsigned long long)rest, LONGEST_HEADER);
    header = memory_allocate(length);
    name = memory_allocate(length + 1);
    if (!header || !name)
        TRY(status_fail_memory("the header of a file"));
    TRY(input_read(a->file, sizeof prefix, length, header));
    TRY(read_header(a, &(cursor){.text = header, .length = length}, name, length + 1));
    TRY(place(a, sizeof prefix + length, rest - length));
error:
    memory_free(header);
    memory_free(name);
    return status;
}

/* ---- Writing ---- */

static rlxvk_status check(const archive_entry *entry)
{
    if (strcmp(entry->name, METADATA) == 0)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "param '%s': the format has another use for this name; save to .npz",
                           entry->name);
    return RLXVK_OK;
}

static void append_string(text *t, const char *string)
{
    text_append(t, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++)
        if (*c < 0x20)
            text_append(t, "\\u%04x", *c);
        else
            text_append(t, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    text_append(t, "\"");
}

static void append_entry(text *t, const archive_entry *e, uint64_t begin)
{
    append_string(t, e->name);
    text_append(t, ":{\"dtype\":\"%s\",\"shape\":[", rlxvk_dtype_name(e->dtype));
    for (uint32_t i = 0; i < e->shape.rank; i++)
        text_append(t, "%s%lld", i ? "," : "", (long long)e->shape.dims[i]);
    text_append(t, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                (unsigned long long)(begin + e->size));
}

static rlxvk_status begin(archive_writer *w)
{
    size_t room = 16;
    uint64_t at = 0;
    for (size_t i = 0; i < w->count; i++) /* an escape has 6 bytes; 300 hold up to ten numbers */
        room += 6 * strlen(w->entries[i].name) + 300;
    text t = {.buffer = memory_allocate(room), .size = room};
    if (!t.buffer)
        return status_fail_memory("the header of a file");
    text_append(&t, "{");
    for (size_t i = 0; i < w->count; at += w->entries[i++].size) {
        text_append(&t, "%s", i ? "," : "");
        append_entry(&t, &w->entries[i], at);
    }
    text_append(&t, "}");
    while (t.length % 8) /* the elements begin at a multiple of 8 */
        text_append(&t, " ");
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)t.length >> 8 * i & 0xff), w->file.stream);
    fwrite(t.buffer, 1, t.length, w->file.stream);
    memory_free(t.buffer);
    return RLXVK_OK;
}

static rlxvk_status put(archive_writer *w, archive_entry *entry, const void *bytes)
{
    fwrite(bytes, 1, entry->size, w->file.stream);
    return RLXVK_OK;
}

static rlxvk_status end(archive_writer *w)
{
    return new_file_close(&w->file);
}

const archive_format archive_safetensors = {.extension = ".safetensors",
                                            .list = list,
                                            .check = check,
                                            .begin = begin,
                                            .put = put,
                                            .end = end};
