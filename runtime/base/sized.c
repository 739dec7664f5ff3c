/* See sized.h. */
#include "base/sized.h"

#include <string.h>

#define TAG  (RLXVK_SIZE_OF(char) - 1)
#define MASK ((size_t)-1 >> 16) /* the bits of struct_size that hold the size */

static size_t stated(const sized *type, const void *given)
{
    size_t size;
    memcpy(&size, (const char *)given + type->at, sizeof size);
    return size;
}

/* How many bytes the caller has, if struct_size is valid; else 0. */
static size_t size_of(const sized *type, size_t stated)
{
    size_t size = stated & MASK;
    return (stated & ~MASK) == TAG && size >= type->first && size <= UINT16_MAX ? size : 0;
}

/* The first byte that the library does not know and that is not 0; `size` if there is none. */
static size_t first_unknown(const sized *type, const void *given, size_t size)
{
    const char *bytes = given;
    size_t i = MIN(type->known, size);
    while (i < size && bytes[i] == 0)
        i++;
    return i;
}

/* Checks a struct that the caller gave, and finds how many bytes to read. */
static rlxvk_status measure(const sized *type, const void *given, size_t *out)
{
    size_t number = stated(type, given), size = size_of(type, number), unknown;
    *out = size ? size : type->first;
    if (number && !size)
        return status_fail(RLXVK_E_ATTR,
                           "%s: struct_size is 0x%zx, neither 0 nor RLXVK_SIZE_OF(%s), 0x%zx here: "
                           "zero the struct before you fill it in",
                           type->name, number, type->name, TAG | type->known);
    unknown = first_unknown(type, given, size);
    if (unknown < size)
        return status_fail(RLXVK_E_ATTR,
                           "%s has %zu bytes, of which library %s knows %zu, but byte %zu is not "
                           "0: leave later members 0, or use a later library",
                           type->name, size, rlxvk_version(), type->known, unknown);
    return RLXVK_OK;
}

rlxvk_status sized_read(const sized *type, const void *given, void *own)
{
    size_t size = 0, whole = TAG | type->known;
    rlxvk_status status = given ? measure(type, given, &size) : RLXVK_OK;
    memset(own, 0, type->known);
    if (status == RLXVK_OK && given)
        memcpy(own, given, MIN(size, type->known));
    memcpy((char *)own + type->at, &whole, sizeof whole);
    return status;
}

static void fill(const sized *type, const void *own, char *out, size_t size)
{
    size_t behind = type->at + sizeof(size_t), number = stated(type, out);
    number = size_of(type, number) ? number : 0;
    memcpy(out, own, type->at);
    memcpy(out + type->at, &number, sizeof number);
    memcpy(out + behind, (const char *)own + behind, MIN(size, type->known) - behind);
}

static size_t room(const sized *type, const void *out)
{
    size_t size = size_of(type, stated(type, out));
    return size ? size : type->first;
}

void sized_write(const sized *type, const void *own, void *out)
{
    fill(type, own, out, room(type, out));
}

rlxvk_status sized_array_of(const sized *type, const void *items, size_t count, sized_array *out)
{
    rlxvk_status status = RLXVK_OK;
    *out = (sized_array){(char *)items, count, type->known};
    if (!items || count == 0)
        return RLXVK_OK;
    TRY(measure(type, items, &out->stride));
    for (size_t i = 1; i < count; i++) {
        const char *item = out->items + i * out->stride;
        if (stated(type, item) != stated(type, items))
            return status_fail(RLXVK_E_ATTR,
                               "%s: struct_size of item %zu is 0x%zx, of item 0 0x%zx; items of an "
                               "array have the same",
                               type->name, i, stated(type, item), stated(type, items));
        if (out->stride > type->known)
            TRY(measure(type, item, &out->stride));
    }
error:
    return status;
}

const void *sized_item(const sized *type, const sized_array *array, size_t i, void *own)
{
    const char *item = array->items + i * array->stride;
    if (array->stride == type->known)
        return item;
    memset(own, 0, type->known);
    memcpy(own, item, MIN(array->stride, type->known));
    return own;
}

sized_array sized_room(const sized *type, void *items, size_t count)
{
    return (sized_array){items, count, items && count ? room(type, items) : type->known};
}

void sized_put(const sized *type, const sized_array *array, size_t i, const void *own)
{
    fill(type, own, array->items + i * array->stride, array->stride);
}
