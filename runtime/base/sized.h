/*
 * Reads and fills structs of the caller. They may be shorter or longer than the library's, because
 * the caller may have been built with other headers. See "Structs that grow" in rlxvk.h for the
 * meaning of struct_size. Only this file reads it.
 *
 * Structs that the library fills are often not initialized, so filling them never fails. It trusts
 * struct_size only if it has the tag of RLXVK_SIZE_OF. Otherwise the caller has as many bytes as in
 * the first version.
 */
#ifndef RLXVK_BASE_SIZED_H
#define RLXVK_BASE_SIZED_H

#include "base/base.h"

#include <stddef.h>

/* A public struct: its name, the offset of its struct_size, its bytes in the first version, and its
 * bytes now. In the first version, struct_size was the last member. */
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
 * Copies the caller's struct into the library's. Members that the caller lacks are zero, and so are
 * all if `given` is NULL. The copy can be passed to a public call, because struct_size becomes the
 * library's. After an error, all other members of *own are zero:
 *   E_ATTR   struct_size is neither 0 nor RLXVK_SIZE_OF of some version, or members that the
 *            library does not know are not zero
 */
rlxvk_status sized_read(const sized *type, const void *given, void *own);
/* Copies the library's struct into the caller's, as far as the caller's reaches. struct_size stays;
 * if it has no valid size, it becomes 0. */
void sized_write(const sized *type, const void *own, void *out);

/* An array of the caller's structs; may be NULL. */
typedef struct sized_array {
    char *items;
    size_t count, stride;
} sized_array;
/* Prepares an array for reading. The stride is the size of item 0.
 *   E_ATTR   struct_size of item 0 is not valid, or another item has a different one */
rlxvk_status sized_array_of(const sized *type, const void *items, size_t count, sized_array *out);
/* Item i. If the caller's items are as long as the library's, it is the caller's item itself.
 * Otherwise it is a copy in `own`. */
const void *sized_item(const sized *type, const sized_array *array, size_t i, void *own);
/* Prepares an array for filling, and fills item i. */
sized_array sized_room(const sized *type, void *items, size_t count);
void sized_put(const sized *type, const sized_array *array, size_t i, const void *own);

#endif
