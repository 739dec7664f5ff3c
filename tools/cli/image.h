/* Pixels from PNG files, by libpng. */
#ifndef RLXVK_IMAGE_H
#define RLXVK_IMAGE_H

#include "base/base.h"

typedef struct image {
    uint32_t width, height;
    uint8_t *rgb; /* red, green and blue of each pixel, rows from the top; owned */
} image;

/* Reads a picture of any PNG type. Transparent parts lie on white; 16 bits become 8.
 *   E_FILE                the file cannot be read, is damaged, or is no PNG file
 *   E_UNSUPPORTED         libpng is not installed, or was not when the program was built
 *   E_OUT_OF_HOST_MEMORY */
RLXVK_MUST_CHECK rlxvk_status image_read(const char *path, image *out);
void image_destroy(image *i); /* leaves it zeroed */

#endif
