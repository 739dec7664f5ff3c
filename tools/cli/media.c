/* See media.h. */
#include "cli/media.h"
#include "cli/image.h"
#include "cli/sound.h"
#include "graph/half.h"

#include <math.h>
#include <string.h>

enum { COLOURS = 3 };

media_options media_defaults(void)
{
    return (media_options){.std = {1, 1, 1}};
}

static bool ends_in(const char *path, const char *extension)
{
    size_t length = strlen(path), end = strlen(extension);
    return length > end && text_ascii_equal(path + length - end, extension, end);
}

bool media_is(const char *path)
{
    return ends_in(path, ".png") || ends_in(path, ".wav");
}

/* ---- Values ---- */

/* Scales, normalizes and rounds a value, and writes it to element `at`. */
static void put_value(const media_options *o, uint32_t colour, double value, array *out,
                      uint64_t at)
{
    double scale = o->scale > 0 ? (double)o->scale : out->dtype == RLXVK_U8 ? 255 : 1;
    float v = (float)((value * scale - (double)o->mean[colour]) / (double)o->std[colour]);
    if (out->dtype == RLXVK_F32)
        ((float *)out->data)[at] = v;
    else if (out->dtype == RLXVK_F64)
        ((double *)out->data)[at] = (double)v;
    else if (out->dtype == RLXVK_U8)
        ((uint8_t *)out->data)[at] = (uint8_t)fminf(fmaxf(rintf(v), 0), 255);
    else
        ((uint16_t *)out->data)[at] = out->dtype == RLXVK_F16 ? f32_to_f16(v) : f32_to_bf16(v);
}

/* ---- Resizing ---- */

/* Resizes the middle one of three axes. `out` holds zeros. */
static void resize_axis(const float *in, uint64_t outer, uint64_t from, uint64_t to, uint64_t inner,
                        float *out)
{
    double ratio = (double)from / (double)to, reach = fmax(ratio, 1);
    for (uint64_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * ratio, total = 0;
        uint64_t first = (uint64_t)fmax(floor(centre - reach + 0.5), 0);
        uint64_t end = MIN((uint64_t)floor(centre + reach + 0.5), from);
        for (uint64_t x = first; x < end; x++)
            total += fmax(1 - fabs((double)x + 0.5 - centre) / reach, 0);
        for (uint64_t x = first; x < end; x++) {
            double weight = fmax(1 - fabs((double)x + 0.5 - centre) / reach, 0) / total;
            for (uint64_t k = 0; k < outer; k++)
                for (uint64_t c = 0; c < inner; c++)
                    out[(k * to + i) * inner + c] += (float)weight * in[(k * from + x) * inner + c];
        }
    }
}

static float *make_pixels(uint64_t width, uint64_t height)
{
    uint64_t count;
    return size_multiply(width, height, &count) && size_multiply(count, COLOURS, &count)
               ? memory_zeroed((size_t)MAX(count, 1), sizeof(float))
               : NULL;
}

/* Where a picture goes in an input. Its dims in order: batch, channels, height, width. */
typedef struct frame {
    int64_t batch, channels, height, width;
    bool channels_last;
} frame;

/* The whole picture, or its largest centred part with the frame's aspect. Values from 0 to 1. */
static float *take_part(const image *i, const frame *f, bool crop, uint64_t *out_width,
                        uint64_t *out_height)
{
    double width = i->width, height = i->height, aspect = (double)f->width / (double)f->height;
    uint64_t left, top;
    float *pixels;
    *out_width = crop ? (uint64_t)fmax(fmin(width, rint(height * aspect)), 1) : i->width;
    *out_height = crop ? (uint64_t)fmax(fmin(height, rint(width / aspect)), 1) : i->height;
    left = (i->width - *out_width) / 2;
    top = (i->height - *out_height) / 2;
    pixels = make_pixels(*out_width, *out_height);
    for (uint64_t y = 0; pixels && y < *out_height; y++)
        for (uint64_t k = 0; k < *out_width * COLOURS; k++)
            pixels[y * *out_width * COLOURS + k] =
                (float)i->rgb[((top + y) * i->width + left) * COLOURS + k] / 255;
    return pixels;
}

/* Returns the pixels in the frame's size, NULL if out of memory. */
static float *fit_picture(const image *i, const frame *f, bool crop)
{
    uint64_t width, height, to_width = (uint64_t)f->width, to_height = (uint64_t)f->height;
    float *part = take_part(i, f, crop, &width, &height);
    float *lower = part ? make_pixels(width, to_height) : NULL;
    float *fitted = lower ? make_pixels(to_width, to_height) : NULL;
    if (fitted) {
        resize_axis(part, 1, height, to_height, width * COLOURS, lower);
        resize_axis(lower, to_height, width, to_width, COLOURS, fitted);
    }
    memory_free(part);
    memory_free(lower);
    return fitted;
}

/* ---- Pictures ---- */

static bool may_be_channels(int64_t dim)
{
    return dim == 1 || dim == COLOURS;
}

static rlxvk_status find_layout(const rlxvk_shape *s, media_layout named, bool *out_last)
{
    bool first, last;
    if (s->rank < 2 || s->rank > 4)
        return status_fail(RLXVK_E_SHAPE, "a picture fits an input of 2 to 4 axes; this one has %u",
                           s->rank);
    *out_last = named == MEDIA_NHWC && s->rank > 2;
    if (s->rank == 2 || named != MEDIA_LAYOUT_FOUND)
        return RLXVK_OK;
    first = may_be_channels(s->dims[s->rank - 3]);
    last = may_be_channels(s->dims[s->rank - 1]);
    *out_last = last;
    return first != last ? RLXVK_OK
                         : status_fail(RLXVK_E_SHAPE,
                                       "%s axis of the input looks like 1 or 3 channels; name its "
                                       "layout (--layout nchw or nhwc)",
                                       first ? "more than one" : "no");
}

static int64_t size_or(int64_t size, int64_t other)
{
    return size < 0 ? other : size;
}

static rlxvk_status make_frame(const rlxvk_shape *s, media_layout named, const image *i, frame *out)
{
    const int64_t *d = s->dims + s->rank;
    rlxvk_status status;
    TRY(find_layout(s, named, &out->channels_last));
    out->batch = s->rank == 4 ? size_or(d[-4], 1) : 1;
    if (s->rank == 2)
        out->channels = 1;
    else
        out->channels = size_or(out->channels_last ? d[-1] : d[-3], COLOURS);
    d -= out->channels_last;
    out->height = size_or(d[-2], i->height);
    out->width = size_or(d[-1], i->width);
    if (!may_be_channels(out->channels) || out->height == 0 || out->width == 0)
        TRY(status_fail(RLXVK_E_SHAPE,
                        "the input has %lld channels of %lldx%lld; pictures have 1 or 3 channels "
                        "with pixels",
                        (long long)out->channels, (long long)out->height, (long long)out->width));
error:
    return status;
}

static rlxvk_shape frame_shape(const frame *f, uint32_t rank)
{
    const rlxvk_shape first = RLXVK_SHAPE(f->batch, f->channels, f->height, f->width),
                      last = RLXVK_SHAPE(f->batch, f->height, f->width, f->channels);
    rlxvk_shape s = {.rank = rank};
    memcpy(s.dims, (f->channels_last ? last : first).dims + (4 - rank), rank * sizeof *s.dims);
    return s;
}

static void put_pixel(const media_options *o, const frame *f, const float *rgb, uint64_t at,
                      uint64_t step, array *out)
{
    if (f->channels == 1) {
        put_value(o, 0, 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2], out, at);
        return;
    }
    for (uint32_t c = 0; c < COLOURS; c++) {
        uint32_t colour = o->bgr ? COLOURS - 1 - c : c;
        put_value(o, colour, (double)rgb[colour], out, at + c * step);
    }
}

static void put_picture(const media_options *o, const frame *f, const float *pixels, array *out)
{
    uint64_t area = (uint64_t)(f->width * f->height), channels = (uint64_t)f->channels;
    for (uint64_t b = 0; b < (uint64_t)f->batch; b++)
        for (uint64_t i = 0; i < area; i++) {
            uint64_t at = b * area * channels + (f->channels_last ? i * channels : i);
            put_pixel(o, f, pixels + i * COLOURS, at, f->channels_last ? 1 : area, out);
        }
}

static rlxvk_status read_picture(const char *path, rlxvk_dtype dtype, rlxvk_shape shape,
                                 const media_options *o, array *out)
{
    image i;
    frame f = {0};
    float *pixels = NULL;
    rlxvk_status status;
    TRY(image_read(path, &i));
    TRY(make_frame(&shape, o->layout, &i, &f));
    TRY(array_make(dtype, frame_shape(&f, shape.rank), out));
    pixels = fit_picture(&i, &f, o->crop);
    if (!pixels)
        TRY(status_fail_memory("picture"));
    put_picture(o, &f, pixels, out);
error:
    memory_free(pixels);
    image_destroy(&i);
    return status;
}

/* ---- Sounds ---- */

static rlxvk_status check_sound(const sound *s, const media_options *o, rlxvk_shape *shape)
{
    int64_t *length = shape->rank ? &shape->dims[shape->rank - 1] : NULL;
    if (!length)
        return status_fail(RLXVK_E_SHAPE, "a sound needs an input with an axis");
    if (o->rate && o->rate != s->rate)
        return status_fail(RLXVK_E_RANGE,
                           "the sound has %u samples a second, and the model takes %llu (--rate); "
                           "resample it with another program",
                           s->rate, (unsigned long long)o->rate);
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->dims[i] =
            size_or(shape->dims[i], length == &shape->dims[i] ? (int64_t)s->length : 1);
    if (!o->crop && (uint64_t)*length != s->length)
        return status_fail(RLXVK_E_SHAPE,
                           "the sound has %llu samples, and the input takes %lld; --fit crop cuts "
                           "its end off, or fills up with silence",
                           (unsigned long long)s->length, (long long)*length);
    return RLXVK_OK;
}

static rlxvk_status read_sound(const char *path, rlxvk_dtype dtype, rlxvk_shape shape,
                               const media_options *o, array *out)
{
    sound s;
    rlxvk_status status;
    TRY(sound_read(path, &s));
    TRY(check_sound(&s, o, &shape));
    TRY(array_make(dtype, shape, out));
    for (uint64_t i = 0; i < out->numel; i++) {
        uint64_t at = i % (uint64_t)shape.dims[shape.rank - 1];
        put_value(o, 0, at < s.length ? (double)s.samples[at] : 0, out, i);
    }
error:
    sound_destroy(&s);
    return status;
}

rlxvk_status media_read(const char *path, rlxvk_dtype dtype, rlxvk_shape shape,
                        const media_options *options, array *out)
{
    bool taken = dtype <= RLXVK_F64 || dtype == RLXVK_U8;
    rlxvk_status status;
    *out = (array){0};
    if (!taken)
        return status_fail(RLXVK_E_DTYPE, "it is %s; pictures and sounds become floats or U8",
                           rlxvk_dtype_name(dtype));
    status = (ends_in(path, ".wav") ? read_sound : read_picture)(path, dtype, shape, options, out);
    if (status != RLXVK_OK)
        array_destroy(out);
    return status;
}
