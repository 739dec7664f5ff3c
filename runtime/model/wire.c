/* See wire.h. */
#include "model/wire.h"

static rlxvk_status fail(const wire_cursor *c, const char *what)
{
    return status_fail(RLXVK_E_FILE, "byte %zu: %s: the file is damaged, or not of this format",
                       c->at && c->file ? (size_t)(c->at - c->file) : 0, what);
}

/* A number of up to 64 bits, seven in each byte, the lowest first. */
static rlxvk_status read_varint(wire_cursor *c, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (c->at == c->end)
            return fail(c, "a number is cut off");
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            return fail(c, "a number is above 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return RLXVK_OK;
        }
    }
    return fail(c, "a number is above 64 bits");
}

static rlxvk_status read_fixed(wire_cursor *c, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    if ((size_t)(c->end - c->at) < size)
        return fail(c, "a number is cut off");
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)c->at[i] << (8 * i);
    c->at += size;
    *out = value;
    return RLXVK_OK;
}

static rlxvk_status read_bytes(wire_cursor *c, wire_span *out)
{
    uint64_t size;
    rlxvk_status status;
    TRY(read_varint(c, &size));
    if (size > (uint64_t)(c->end - c->at))
        return fail(c, "a field is longer than its message");
    *out = (wire_span){c->at, (size_t)size};
    c->at += size;
error:
    return status;
}

static rlxvk_status read_number(wire_cursor *c, wire_kind kind, uint64_t *out)
{
    return kind == WIRE_VARINT ? read_varint(c, out)
                               : read_fixed(c, kind == WIRE_FIXED64 ? 8 : 4, out);
}

rlxvk_status wire_next(wire_cursor *c, wire_field *out)
{
    uint64_t key;
    rlxvk_status status;
    *out = (wire_field){0};
    if (c->at == c->end)
        return RLXVK_OK;
    TRY(read_varint(c, &key));
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return fail(c, "a field has no valid number");
    out->kind = (wire_kind)(key & 7);
    if (out->kind == WIRE_BYTES)
        TRY(read_bytes(c, &out->bytes));
    else if (out->kind == WIRE_VARINT || out->kind == WIRE_FIXED64 || out->kind == WIRE_FIXED32)
        TRY(read_number(c, out->kind, &out->value));
    else
        return fail(c, "a field is of an unknown kind");
    out->number = (uint32_t)(key >> 3);
error:
    return status;
}

rlxvk_status wire_count_numbers(const wire_field *f, wire_kind kind, const uint8_t *file,
                                uint64_t *out)
{
    size_t size = kind == WIRE_FIXED64 ? 8 : 4;
    wire_cursor c = wire_begin(f->bytes, file);
    *out = 1;
    if (f->kind == kind)
        return RLXVK_OK;
    if (f->kind != WIRE_BYTES || (kind != WIRE_VARINT && f->bytes.size % size))
        return fail(&c, "numbers are of the wrong kind");
    *out = f->bytes.size / size;
    if (kind != WIRE_VARINT)
        return RLXVK_OK;
    *out = 0;
    for (size_t i = 0; i < f->bytes.size; i++)
        *out += f->bytes.bytes[i] < 0x80;
    return f->bytes.size && f->bytes.bytes[f->bytes.size - 1] >= 0x80
               ? fail(&c, "the last number is cut off")
               : RLXVK_OK;
}

rlxvk_status wire_read_numbers(const wire_field *f, wire_kind kind, const uint8_t *file,
                               uint64_t *out)
{
    wire_cursor c = wire_begin(f->bytes, file);
    rlxvk_status status = RLXVK_OK;
    if (f->kind == kind)
        *out = f->value;
    else
        while (c.at != c.end)
            TRY(read_number(&c, kind, out++));
error:
    return status;
}
