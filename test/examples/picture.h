/* Writes a picture as a PNG file, with libpng's simplified interface. */
#ifndef PICTURE_H
#define PICTURE_H

#include <png.h>
#include <stdio.h>
#include <string.h>

/* Each pixel has 8 bits of red, green and blue; rows come from the top, without gaps. Returns 1. If
 * there is no file, returns 0 and prints the reason on standard error. */
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
