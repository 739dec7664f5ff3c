/* Writes a picture as PNG, by libpng's simplified interface. */
#ifndef PICTURE_H
#define PICTURE_H

#include <png.h>
#include <stdio.h>
#include <string.h>

/* 8 bits each of red, green and blue, rows from the top without gaps. Returns 1, or 0 and says on
 * standard error why there is no file. */
static int picture_write(const char *path, int width, int height, const unsigned char *rgb)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    if (png_image_write_to_file(&image, path, 0, rgb, 0, NULL))
        return 1;
    fprintf(stderr, "%s: %s\n", path, image.message);
    return 0;
}

#endif
