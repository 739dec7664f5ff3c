/*
 * Pictures and sounds as inputs, and names of classes: values, resizing, layouts, and files that
 * lie about their sizes. The test writes its own files.
 */
#include "cli/commands.h"
#include "cli/image.h"
#include "cli/labels.h"
#include "cli/media.h"
#include "cli/sound.h"
#include "exec/crc.h"
#include "support/command.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static char folder[] = "/tmp/rlxvk-media-XXXXXX";

static const char *write_bytes(const char *name, const void *bytes, size_t size)
{
    static char path[128];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* ---- PNG files, without compression ---- */

typedef struct bytes {
    uint8_t at[4096];
    size_t size;
} bytes;

static void add(bytes *b, const void *more, size_t size)
{
    assert_true(b->size + size <= sizeof b->at);
    memcpy(b->at + b->size, more, size);
    b->size += size;
}

static void add_big(bytes *b, uint32_t value)
{
    add(b, (uint8_t[]){value >> 24 & 255, value >> 16 & 255, value >> 8 & 255, value & 255}, 4);
}

static void add_little(bytes *b, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        add(b, (uint8_t[]){value >> 8 * i & 255}, 1);
}

static void add_chunk(bytes *b, const char *type, const bytes *content)
{
    crc_table table;
    size_t start = b->size + 4;
    crc_fill(&table);
    add_big(b, (uint32_t)content->size);
    add(b, type, 4);
    add(b, content->at, content->size);
    add_big(b, crc_update(&table, 0, b->at + start, content->size + 4));
}

enum { GRAY = 0, RGB = 2, RGBA = 6 };

/* A picture of 8 bits a channel. Its header says `said_width`. */
static bytes make_png(int type, uint32_t said_width, uint32_t width, uint32_t height,
                      const uint8_t *values)
{
    bytes b = {{0}, 0}, header = {{0}, 0}, data = {{0}, 0}, none = {{0}, 0};
    size_t row = width * (type == GRAY ? 1 : type == RGB ? 3 : 4), size = height * (row + 1);
    uint32_t low = 1, high = 0; /* Adler's sums */
    add(&b, "\x89PNG\r\n\x1a\n", 8);
    add_big(&header, said_width);
    add_big(&header, height);
    add(&header, (uint8_t[]){8, (uint8_t)type, 0, 0, 0}, 5);
    add_chunk(&b, "IHDR", &header);
    add(&data, (uint8_t[]){0x78, 1, 1}, 3);
    add_little(&data, size, 2);
    add_little(&data, ~size, 2);
    for (uint32_t y = 0; y < height; y++) {
        add(&data, (uint8_t[]){0}, 1);
        add(&data, values + y * row, row);
    }
    for (size_t i = data.size - size; i < data.size; i++) {
        low = (low + data.at[i]) % 65521;
        high = (high + low) % 65521;
    }
    add_big(&data, high << 16 | low);
    add_chunk(&b, "IDAT", &data);
    add_chunk(&b, "IEND", &none);
    return b;
}

static const char *write_png(int type, uint32_t width, uint32_t height, const uint8_t *values)
{
    bytes b = make_png(type, width, width, height, values);
    return write_bytes("a.png", b.at, b.size);
}

static void expect_values(const array *a, const float *wanted, size_t count)
{
    double *numbers = array_numbers(a);
    assert_non_null(numbers);
    assert_int_equal(a->numel, count);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] - (double)wanted[i] > 1e-6 || (double)wanted[i] - numbers[i] > 1e-6)
            fail_msg("element %zu: %g instead of %g", i, numbers[i], (double)wanted[i]);
    memory_free(numbers);
}

#define EXPECT_PICTURE(path, dtype, shape, options, ...)                                           \
    do {                                                                                           \
        array read;                                                                                \
        expect_ok(media_read(path, dtype, shape, options, &read));                                 \
        expect_values(&read, (const float[]){__VA_ARGS__},                                         \
                      sizeof((const float[]){__VA_ARGS__}) / sizeof(float));                       \
        array_destroy(&read);                                                                      \
    } while (0)

/* ---- Pictures ---- */

static void pixels_keep_their_order(void **state)
{
    static const uint8_t values[] = {255, 0, 51, 102, 153, 204};
    const char *path = write_png(RGB, 2, 1, values);
    media_options o = media_defaults();
    (void)state;
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(1, 3, 1, 2), &o, 1, .4f, 0, .6f, .2f, .8f);
    EXPECT_PICTURE(path, RLXVK_F64, RLXVK_SHAPE(3, 1, 2), &o, 1, .4f, 0, .6f, .2f, .8f);
    o.layout = MEDIA_NHWC;
    EXPECT_PICTURE(path, RLXVK_U8, RLXVK_SHAPE(1, 1, 2, 3), &o, 255, 0, 51, 102, 153, 204);
    o.bgr = true;
    EXPECT_PICTURE(path, RLXVK_U8, RLXVK_SHAPE(1, 1, 2, 3), &o, 51, 0, 255, 204, 153, 102);
    /* Every item of a batch is the same. */
    EXPECT_PICTURE(path, RLXVK_U8, RLXVK_SHAPE(2, 1, 2, 3), &o, 51, 0, 255, 204, 153, 102, 51, 0,
                   255, 204, 153, 102);
    EXPECT_PICTURE(write_png(GRAY, 2, 1, values), RLXVK_U8, RLXVK_SHAPE(1, 2), &o, 255, 0);
}

static void one_channel_is_gray(void **state)
{
    static const uint8_t values[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 51, 51, 51};
    const char *path = write_png(RGB, 2, 2, values);
    media_options o = media_defaults();
    (void)state;
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(2, 2), &o, .299f, .587f, .114f, .2f);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(1, 1, 2, 2), (o.layout = MEDIA_NCHW, &o), .299f,
                   .587f, .114f, .2f);
}

static void transparent_parts_are_white(void **state)
{
    static const uint8_t values[] = {0, 0, 0, 0, 51, 102, 255, 255};
    media_options o = media_defaults();
    (void)state;
    o.layout = MEDIA_NHWC;
    EXPECT_PICTURE(write_png(RGBA, 2, 1, values), RLXVK_F32, RLXVK_SHAPE(1, 2, 3), &o, 1, 1, 1, .2f,
                   .4f, 1);
}

static void values_are_normalized(void **state)
{
    static const uint8_t values[] = {255, 0, 51};
    const char *path = write_png(RGB, 1, 1, values);
    media_options o = media_defaults();
    (void)state;
    memcpy(o.mean, (float[]){.5f, .25f, .2f}, sizeof o.mean);
    memcpy(o.std, (float[]){.5f, .25f, 2}, sizeof o.std);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(3, 1, 1), (o.layout = MEDIA_NCHW, &o), 1, -1, 0);
    o.bgr = true; /* the mean stays that of its colour */
    EXPECT_PICTURE(path, RLXVK_F16, RLXVK_SHAPE(3, 1, 1), &o, 0, -1, 1);
    o = (media_options){.layout = MEDIA_NCHW, .scale = 100, .mean = {40, 0, 0}, .std = {1, 1, 1}};
    EXPECT_PICTURE(path, RLXVK_BF16, RLXVK_SHAPE(3, 1, 1), &o, 60, 0, 20);
    EXPECT_PICTURE(path, RLXVK_U8, RLXVK_SHAPE(3, 1, 1), (o.mean[2] = 30, &o), 60, 0, 0);
}

/* The weights of shrinking are a triangle's, cut off at the edge: 3, 3, 1 of 7. */
static void pictures_are_resized(void **state)
{
    static const uint8_t wide[] = {0, 0, 255, 255}, two[] = {0, 255};
    media_options o = media_defaults();
    (void)state;
    const char *path = write_png(GRAY, 4, 1, wide);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(1, 2), &o, 1.f / 7, 6.f / 7);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(2, 4), &o, 0, 0, 1, 1, 0, 0, 1, 1);
    path = write_png(GRAY, 1, 4, wide);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(2, 1), &o, 1.f / 7, 6.f / 7);
    path = write_png(GRAY, 2, 1, two);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(1, 4), &o, 0, .25f, .75f, 1);
    o.crop = true;
    path = write_png(GRAY, 4, 1, (uint8_t[]){51, 102, 153, 204});
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(1, 2), &o, .4f, .6f);
    path = write_png(GRAY, 1, 4, (uint8_t[]){51, 102, 153, 204});
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(2, 1), &o, .4f, .6f);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(4, 1), &o, .2f, .4f, .6f, .8f);
}

/* Dims that the model does not tell are the picture's. */
static void unknown_dims_are_the_picture_s(void **state)
{
    static const uint8_t values[2 * 5 * 3] = {0};
    media_options o = media_defaults();
    array a;
    (void)state;
    const char *path = write_png(RGB, 5, 2, values);
    expect_ok(media_read(path, RLXVK_F32, RLXVK_SHAPE(-1, 3, -1, -1), &o, &a));
    assert_true(rlxvk_shape_equal(a.shape, RLXVK_SHAPE(1, 3, 2, 5)));
    array_destroy(&a);
    expect_ok(media_read(path, RLXVK_F32, RLXVK_SHAPE(-1, -1, -1, 3), &o, &a));
    assert_true(rlxvk_shape_equal(a.shape, RLXVK_SHAPE(1, 2, 5, 3)));
    array_destroy(&a);
    expect_ok(media_read(path, RLXVK_F32, RLXVK_SHAPE(-1, 8, -1, 1), &o, &a));
    assert_true(rlxvk_shape_equal(a.shape, RLXVK_SHAPE(1, 8, 5, 1)));
    array_destroy(&a);
    o.layout = MEDIA_NHWC;
    expect_ok(media_read(path, RLXVK_F32, RLXVK_SHAPE(-1, -1, -1), &o, &a));
    assert_true(rlxvk_shape_equal(a.shape, RLXVK_SHAPE(2, 5, 3)));
    array_destroy(&a);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    static const uint8_t values[3] = {0};
    media_options o = media_defaults();
    array a;
    (void)state;
    const char *path = write_png(RGB, 1, 1, values);
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(1, 3, 4, 3), &o, &a), RLXVK_E_SHAPE,
                 "more than one axis of the input looks like 1 or 3 channels");
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(1, 4, 4, 4), &o, &a), RLXVK_E_SHAPE,
                 "no axis of the input looks like 1 or 3 channels");
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(3), &o, &a), RLXVK_E_SHAPE,
                 "an input of 2 to 4 axes");
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(1, 3, 0, 4), &o, &a), RLXVK_E_SHAPE,
                 "3 channels of 0x4");
    o.layout = MEDIA_NCHW;
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(1, 4, 4, 4), &o, &a), RLXVK_E_SHAPE,
                 "4 channels of 4x4");
    expect_error(media_read(path, RLXVK_I64, RLXVK_SHAPE(1, 3, 4, 4), &o, &a), RLXVK_E_DTYPE,
                 "I64");
    assert_true(media_read(path, RLXVK_F32, RLXVK_SHAPE(1, 3, INT32_MAX, INT32_MAX), &o, &a) !=
                RLXVK_OK);
}

static void damaged_pictures_end_with_a_sentence(void **state)
{
    uint8_t values[4 * 4 * 3];
    bytes b;
    image i;
    (void)state;
    memset(values, 90, sizeof values);
    b = make_png(RGB, 1000000, 4, 4, values);
    expect_error(image_read(write_bytes("a.png", b.at, b.size), &i), RLXVK_E_FILE,
                 "bytes cannot have 1000000x4 pixels");
    b = make_png(RGB, 400, 4, 4, values);
    expect_error(image_read(write_bytes("a.png", b.at, b.size), &i), RLXVK_E_FILE,
                 "damaged picture: ");
    expect_error(image_read("README.md", &i), RLXVK_E_FILE, "'README.md': no picture: ");
    expect_error(image_read("/nosuch.png", &i), RLXVK_E_FILE, "'/nosuch.png'");
    b = make_png(RGB, 4, 4, 4, values);
    for (size_t size = 0; size < b.size - 16; size++) /* without the last chunk is enough */
        assert_int_equal(image_read(write_bytes("a.png", b.at, size), &i), RLXVK_E_FILE);
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (image_read(write_bytes("a.png", b.at, b.size), &i) == RLXVK_OK)
            image_destroy(&i);
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* ---- Sounds ---- */

enum { PCM = 1, FLOATS = 3, EXTENSIBLE = 0xfffe };

static bytes make_wav(int type, int channels, int bits, const void *data, size_t size)
{
    bytes b = {{0}, 0};
    add(&b, "RIFF\0\0\0\0WAVELIST", 16);
    add_little(&b, 3, 4); /* an odd size is padded */
    add(&b, "abc\0fmt ", 8);
    add_little(&b, type == EXTENSIBLE ? 40 : 16, 4);
    add_little(&b, (uint64_t)type, 2);
    add_little(&b, (uint64_t)channels, 2);
    add_little(&b, 8000, 4);
    add_little(&b, (uint64_t)(8000 * channels * bits / 8), 4);
    add_little(&b, (uint64_t)(channels * bits / 8), 2);
    add_little(&b, (uint64_t)bits, 2);
    if (type == EXTENSIBLE) {
        add_little(&b, 22, 2);
        add_little(&b, (uint64_t)bits, 2);
        add_little(&b, 0, 4);
        add_little(&b, PCM, 2);
        add(&b, "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
    }
    add(&b, "data", 4);
    add_little(&b, size, 4);
    add(&b, data, size);
    return b;
}

static void expect_sound(int type, int channels, int bits, const void *data, size_t size,
                         const float *wanted, size_t count)
{
    bytes b = make_wav(type, channels, bits, data, size);
    sound s;
    expect_ok(sound_read(write_bytes("a.wav", b.at, b.size), &s));
    assert_int_equal(s.rate, 8000);
    assert_int_equal(s.length, count);
    for (size_t i = 0; i < count; i++)
        assert_true(s.samples[i] == wanted[i]);
    sound_destroy(&s);
}

static void samples_of_every_type_are_read(void **state)
{
    static const float wanted[] = {0, .5f, -1}, mixed[] = {.25f};
    (void)state;
    expect_sound(PCM, 1, 8, "\x80\xc0\0", 3, wanted, 3);
    expect_sound(PCM, 1, 16, "\0\0\0\x40\0\x80", 6, wanted, 3);
    expect_sound(EXTENSIBLE, 1, 16, "\0\0\0\x40\0\x80", 6, wanted, 3);
    expect_sound(PCM, 1, 24, "\0\0\0\0\0\x40\0\0\x80", 9, wanted, 3);
    expect_sound(PCM, 1, 32, "\0\0\0\0\0\0\0\x40\0\0\0\x80", 12, wanted, 3);
    expect_sound(FLOATS, 1, 32, wanted, sizeof wanted, wanted, 3);
    expect_sound(FLOATS, 1, 64, (const double[]){0, .5, -1}, 24, wanted, 3);
    expect_sound(PCM, 2, 16, "\0\0\0\x40", 4, mixed, 1);
}

static void sounds_become_inputs(void **state)
{
    bytes b = make_wav(PCM, 1, 16, "\0\0\0\x40\0\x80", 6);
    const char *path = write_bytes("a.wav", b.at, b.size);
    media_options o = media_defaults();
    array a;
    (void)state;
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(-1, -1), &o, 0, .5f, -1);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(2, 3), (o.rate = 8000, &o), 0, .5f, -1, 0, .5f, -1);
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(4), &o, &a), RLXVK_E_SHAPE,
                 "3 samples, and the input takes 4; --fit crop");
    o.crop = true;
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(4), (o.scale = 32768, &o), 0, 16384, -32768, 0);
    EXPECT_PICTURE(path, RLXVK_F32, RLXVK_SHAPE(2), &o, 0, 16384);
    o.rate = 16000;
    expect_error(media_read(path, RLXVK_F32, RLXVK_SHAPE(3), &o, &a), RLXVK_E_RANGE,
                 "8000 samples a second, and the model takes 16000");
    o.rate = 0;
    expect_error(media_read(path, RLXVK_F32, RLXVK_SCALAR, &o, &a), RLXVK_E_SHAPE, "an axis");
}

static void damaged_sounds_end_with_a_sentence(void **state)
{
    bytes b = make_wav(PCM, 2, 16, "\0\0\0\x40\0\x80\0\0", 8), cut = b;
    sound s;
    (void)state;
    expect_error(sound_read("README.md", &s), RLXVK_E_FILE, "'README.md': no WAV file");
    cut.at[b.size - 12] = 9; /* the size of the data */
    expect_error(sound_read(write_bytes("a.wav", cut.at, cut.size), &s), RLXVK_E_FILE,
                 "a chunk of 9 bytes begins at byte 48, but only 8 are left");
    cut.at[b.size - 12] = 7;
    expect_error(sound_read(write_bytes("a.wav", cut.at, cut.size), &s), RLXVK_E_FILE,
                 "contradicts itself");
    expect_error(sound_read(write_bytes("a.wav", b.at, b.size - 16), &s), RLXVK_E_FILE,
                 "without a chunk 'data'");
    b = make_wav(PCM, 1, 12, "", 0);
    expect_error(sound_read(write_bytes("a.wav", b.at, b.size), &s), RLXVK_E_UNSUPPORTED,
                 "samples of type 1 with 12 bits");
    b = make_wav(85, 1, 8, "", 0);
    expect_error(sound_read(write_bytes("a.wav", b.at, b.size), &s), RLXVK_E_UNSUPPORTED,
                 "samples of type 85");
    b = make_wav(EXTENSIBLE, 1, 8, "abc", 3);
    for (size_t size = 0; size < b.size; size++)
        assert_int_equal(sound_read(write_bytes("a.wav", b.at, size), &s), RLXVK_E_FILE);
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (sound_read(write_bytes("a.wav", b.at, b.size), &s) == RLXVK_OK)
            sound_destroy(&s);
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* ---- The program ---- */

/* A model whose output is its input. */
static void write_model(const char *name, const char *dims)
{
    onnx_message g = {0}, m;
    onnx_write_op(&g, "Identity", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", 1, dims);
    onnx_write_value(&g, 12, "y", 1, dims);
    m = onnx_write_model(&g, 17);
    write_bytes(name, m.bytes, m.size);
    message_free(&m);
}

/* Runs `rlxvk run` with words, of which those that begin with '@' are files of the folder. */
static const char *run_words(const char *const *words, int wanted)
{
    static char text[8192], paths[16][192];
    const char *own[17];
    size_t count = 0;
    for (; words[count]; count++) {
        const char *at = strchr(words[count], '@');
        assert_true(count < ARRAY_COUNT(paths));
        snprintf(paths[count], sizeof paths[count], "%.*s%s%s", (int)(at ? at - words[count] : 64),
                 words[count], at ? folder : "", at ? at + 1 : "");
        own[count] = paths[count];
    }
    own[count] = NULL;
    assert_int_equal(run_command(command_run, own, text, sizeof text), wanted);
    return text;
}

#define RUN(wanted, ...) run_words((const char *const[]){__VA_ARGS__, NULL}, wanted)

static void assert_says(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("'%s' is missing in:\n%s", wanted, text);
}

static void a_model_runs_on_a_picture(void **state)
{
    (void)state;
    write_model("picture.onnx", "N,3,H,W");
    write_png(RGB, 2, 1, (uint8_t[]){255, 0, 51, 255, 0, 51});
    assert_says(RUN(0, "@/picture.onnx", "--input", "x=@/a.png"), "y  F32 1x3x1x2  min 0  max 1 ");
    /* Named dims that are bound are the size. */
    assert_says(RUN(0, "@/picture.onnx", "--input", "x=@/a.png", "--bind", "H=4", "--bind", "N=2",
                    "--mean", "0.5,0,0.2", "--std", "0.25"),
                "y  F32 2x3x4x2  min 0  max 2 ");
    RUN(1, "@/picture.onnx", "--input", "x=@/b.png");
    RUN(2, "@/picture.onnx", "--mean", "1,2");
    RUN(2, "@/picture.onnx", "--mean", "1,2,3,");
    RUN(2, "@/picture.onnx", "--std", "0");
    RUN(2, "@/picture.onnx", "--fit", "pad");
    RUN(2, "@/picture.onnx", "--layout", "hwc");
    RUN(2, "@/picture.onnx", "--top", "0");
}

static void a_model_runs_on_a_sound(void **state)
{
    bytes b = make_wav(PCM, 1, 16, "\0\0\0\x40\0\x80", 6);
    (void)state;
    write_bytes("a.wav", b.at, b.size);
    write_model("sound.onnx", "N,samples");
    assert_says(RUN(0, "@/sound.onnx", "--input", "x=@/a.wav", "--rate", "8000"),
                "y  F32 1x3  min -1  max 0.5 ");
    RUN(1, "@/sound.onnx", "--input", "x=@/a.wav", "--rate", "8001");
}

static void the_best_classes_are_named(void **state)
{
    const char *text;
    (void)state;
    write_model("classes.onnx", "N,1,1,3");
    write_png(GRAY, 3, 1, (uint8_t[]){51, 255, 102});
    write_bytes("labels", "cat\r\ndog\nfish", 13);
    text = RUN(0, "@/classes.onnx", "--input", "x=@/a.png", "--labels", "@/labels", "--top", "2",
               "--layout", "nchw");
    assert_says(text, "best of y, item 0:\n    1.0000  dog (1)\n    0.4000  fish (2)\nload");
    /* The softmax of 1, 5 and 2. */
    text = RUN(0, "@/classes.onnx", "--input", "x=@/a.png", "--labels", "@/labels", "--scale", "5",
               "--layout", "nchw");
    assert_says(text, "best of the softmax of y, item 0:\n    0.9362  dog (1)\n"
                      "    0.0466  fish (2)\n    0.0171  cat (0)\nload");
    text = RUN(0, "@/classes.onnx", "--bind", "N=2", "--labels", "@/labels", "--json");
    assert_says(text, "\"best_of\": \"y\", \"softmax\": true, \"best\": [{\"label\": \"");
    assert_says(text, "\"item\": 1, \"class\": ");
    write_bytes("labels", "cat\ndog\n", 8);
    RUN(1, "@/classes.onnx", "--bind", "N=2", "--labels", "@/labels");
    RUN(1, "@/classes.onnx", "--bind", "N=2", "--labels", "@/nosuch");
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_keep_their_order),
        cmocka_unit_test(one_channel_is_gray),
        cmocka_unit_test(transparent_parts_are_white),
        cmocka_unit_test(values_are_normalized),
        cmocka_unit_test(pictures_are_resized),
        cmocka_unit_test(unknown_dims_are_the_picture_s),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(damaged_pictures_end_with_a_sentence),
        cmocka_unit_test(samples_of_every_type_are_read),
        cmocka_unit_test(sounds_become_inputs),
        cmocka_unit_test(damaged_sounds_end_with_a_sentence),
        cmocka_unit_test(a_model_runs_on_a_picture),
        cmocka_unit_test(a_model_runs_on_a_sound),
        cmocka_unit_test(the_best_classes_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
