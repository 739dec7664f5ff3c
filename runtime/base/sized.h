/*
 * Structs of the caller that may be shorter or longer than the library's, because it was built with
 * other headers. rlxvk.h says under "Structs that grow" what struct_size means; this is the one
 * place that reads it.
 *
 * Structs that the library fills are often not initialized. So nothing fails there, and only a
 * struct_size with the tag of RLXVK_SIZE_OF counts: whatever else it holds, the caller has the
 * first version's bytes.
 */
#ifndef RLXVK_BASE_SIZED_H
#define RLXVK_BASE_SIZED_H

#include "base/base.h"

#include <stddef.h>

/* A public struct: its name, where its struct_size is, its bytes in the first version, whose last
 * member that was, and its bytes now. */
typedef struct sized {
    const char *name;
    size_t at, first, known;
} sized;
#define SIZED(type)                                                                                \
    (&(const sized){#type, offsetof(type, struct_size),                                            \
                    SIZED_END(offsetof(type, struct_size) + sizeof(size_t), _Alignof(type)),       \
                    sizeof(type)})
#define SIZED_END(end, alignment) (((end) + (alignment)-1) / (alignment) * (alignment))

/*
 * Copies the caller's struct into the library's: members that the caller lacks are zeros, and so
 * are all if `given` is NULL. struct_size becomes the library's, so that the copy can be handed on
 * to a public call. E_ATTR: struct_size is neither 0 nor RLXVK_SIZE_OF of some version, or members
 * that the library does not know are not zero; *own is then zeros.
 */
rlxvk_status sized_read(const sized *type, const void *given, void *own);
/* Copies the library's struct into the caller's, as much as the caller has. struct_size stays, or
 * becomes 0 if it says no size. */
void sized_write(const sized *type, const void *own, void *out);

/* An array of the caller's, which may be NULL. */
typedef struct sized_array {
    char *items;
    size_t count, stride;
} sized_array;
/* Items to read. Their stride is the size of item 0. E_ATTR: its struct_size is not sound, or
 * another item's is not the same. */
rlxvk_status sized_array_of(const sized *type, const void *items, size_t count, sized_array *out);
/* Item i: where it lies if the caller's items are as long as the library's, else a copy in `own`.
 */
const void *sized_item(const sized *type, const sized_array *array, size_t i, void *own);
/* Items to fill. */
sized_array sized_room(const sized *type, void *items, size_t count);
void sized_put(const sized *type, const sized_array *array, size_t i, const void *own);

#endif
