/* See image.h. libpng is opened when a picture is read, so that the program also starts where it is
 * not installed. */
#include "cli/image.h"
#include "base/system.h"
#include "cli/file.h"

#include <string.h>

#if defined __has_include
#if __has_include(<png.h>)
#include <png.h>
#define HAS_PNG
#endif
#endif

#ifdef HAS_PNG

/* Deflate makes at most 1032 bytes of one, and a pixel takes at least one bit. */
#define MOST_PIXELS_PER_BYTE (8 * 1032)

typedef struct png_library {
    void *handle;
    __typeof__(png_image_begin_read_from_memory) *begin;
    __typeof__(png_image_finish_read) *finish;
    __typeof__(png_image_free) *release;
} png_library;

static rlxvk_status open_library(png_library *out)
{
    static const char *const forms[] = {"libpng%d.so.%d", "libpng%d.%d.dylib"};
    *out = (png_library){0};
    for (size_t i = 0; i < ARRAY_COUNT(forms) && !out->handle; i++) {
        char name[32];
        snprintf(name, sizeof name, forms[i], PNG_LIBPNG_VER_DLLNUM, PNG_LIBPNG_VER_SONUM);
        out->handle = system_library_open(name);
    }
    if (!out->handle)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "pictures need the library libpng%d, which is not installed",
                           PNG_LIBPNG_VER_DLLNUM);
#define FIND(member, name) (__typeof__(member))system_library_function(out->handle, name)
    out->begin = FIND(out->begin, "png_image_begin_read_from_memory");
    out->finish = FIND(out->finish, "png_image_finish_read");
    out->release = FIND(out->release, "png_image_free");
#undef FIND
    return out->begin && out->finish && out->release
               ? RLXVK_OK
               : status_fail(RLXVK_E_UNSUPPORTED, "libpng lacks its simplified interface");
}

static rlxvk_status decode(const png_library *png, const file_content *file, image *out)
{
    static const png_color white = {255, 255, 255};
    png_image p = {.version = PNG_IMAGE_VERSION};
    uint64_t pixels, most;
    rlxvk_status status = RLXVK_OK;
    if (!png->begin(&p, file->data, (size_t)file->length))
        TRY(status_fail(RLXVK_E_FILE, "no picture: %s", p.message));
    p.format = PNG_FORMAT_RGB;
    pixels = (uint64_t)p.width * p.height; /* of 32 bits each */
    most = file->length * MOST_PIXELS_PER_BYTE;
    if (pixels > most)
        TRY(status_fail(RLXVK_E_FILE, "a file of %llu bytes cannot have %ux%u pixels",
                        (unsigned long long)file->length, p.width, p.height));
    *out = (image){p.width, p.height, memory_allocate((size_t)pixels * 3)};
    if (!out->rgb)
        TRY(status_fail_memory("picture"));
    if (!png->finish(&p, &white, out->rgb, 0, NULL))
        TRY(status_fail(RLXVK_E_FILE, "damaged picture: %s", p.message));
error:
    png->release(&p);
    return status;
}

static rlxvk_status read_pixels(const file_content *file, image *out)
{
    png_library png;
    rlxvk_status status;
    TRY(open_library(&png));
    TRY(decode(&png, file, out));
error:
    if (png.handle)
        system_library_close(png.handle);
    return status;
}

#else

static rlxvk_status read_pixels(const file_content *file, image *out)
{
    (void)file;
    (void)out;
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "this program was built without libpng; install its package for "
                       "developers (`make deps`) and build again from the start (`make clean`)");
}

#endif

rlxvk_status image_read(const char *path, image *out)
{
    file_content file;
    rlxvk_status status;
    *out = (image){0};
    TRY(file_read(path, &file));
    status = read_pixels(&file, out);
    if (status != RLXVK_OK) {
        status = status_fail_within(status, "'%s'", path);
        image_destroy(out);
    }
error:
    file_free(&file);
    return status;
}

void image_destroy(image *i)
{
    memory_free(i->rgb);
    *i = (image){0};
}
