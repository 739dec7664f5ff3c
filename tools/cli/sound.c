/* See sound.h. A WAV file is a RIFF file: chunks of a name, a size and content. */
#include "cli/sound.h"
#include "cli/file.h"

#include <string.h>

enum {
    RIFF_HEADER = 12,
    CHUNK_HEADER = 8,
    FORMAT_SIZE = 16,
    EXTENSIBLE_SIZE = 40, /* with the type of samples at the end */
    TYPE_PCM = 1,
    TYPE_FLOAT = 3,
    TYPE_EXTENSIBLE = 0xfffe,
};

typedef struct wave {
    const uint8_t *format, *data; /* contents of chunks; NULL: not found */
    uint32_t format_size, data_size;
    uint32_t type, channels, rate, bytes; /* bytes of a sample */
} wave;

/* Little-endian numbers. */
static uint64_t read_number(const uint8_t *at, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static rlxvk_status find_chunks(const file_content *file, wave *w)
{
    const uint8_t *bytes = file->data;
    if (file->length < RIFF_HEADER || memcmp(bytes, "RIFF", 4) || memcmp(bytes + 8, "WAVE", 4))
        return status_fail(RLXVK_E_FILE, "no WAV file");
    for (uint64_t at = RIFF_HEADER; file->length - at >= CHUNK_HEADER;) {
        const uint8_t *content = bytes + at + CHUNK_HEADER;
        uint64_t left = file->length - at - CHUNK_HEADER;
        uint32_t size = (uint32_t)read_number(bytes + at + 4, 4);
        if (size > left)
            return status_fail(RLXVK_E_FILE,
                               "a chunk of %u bytes begins at byte %llu, but only %llu are left",
                               size, (unsigned long long)at, (unsigned long long)left);
        if (memcmp(bytes + at, "fmt ", 4) == 0)
            w->format = content, w->format_size = size;
        if (memcmp(bytes + at, "data", 4) == 0)
            w->data = content, w->data_size = size;
        at += CHUNK_HEADER + MIN((uint64_t)size + size % 2, left); /* chunks have even sizes */
    }
    if (!w->format || w->format_size < FORMAT_SIZE || !w->data)
        return status_fail(RLXVK_E_FILE, "a WAV file without %s",
                           w->data ? "a complete chunk 'fmt '" : "a chunk 'data'");
    return RLXVK_OK;
}

static rlxvk_status read_format(wave *w)
{
    const uint8_t *f = w->format;
    uint32_t bits = (uint32_t)read_number(f + 14, 2);
    w->type = (uint32_t)read_number(f, 2);
    w->channels = (uint32_t)read_number(f + 2, 2);
    w->rate = (uint32_t)read_number(f + 4, 4);
    w->bytes = bits / 8;
    if (w->type == TYPE_EXTENSIBLE && w->format_size >= EXTENSIBLE_SIZE)
        w->type = (uint32_t)read_number(f + 24, 2);
    if (bits % 8 || !(w->type == TYPE_PCM ? w->bytes >= 1 && w->bytes <= 4
                                          : w->type == TYPE_FLOAT && (bits == 32 || bits == 64)))
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "samples of type %u with %u bits; PCM (1) may have 8, 16, 24 or 32, "
                           "floats (3) 32 or 64",
                           w->type, bits);
    if (w->channels == 0 || w->rate == 0 ||
        read_number(f + 12, 2) != (uint64_t)w->channels * w->bytes ||
        w->data_size % (w->channels * w->bytes))
        return status_fail(RLXVK_E_FILE, "its chunk 'fmt ' contradicts itself or its data");
    return RLXVK_OK;
}

static double read_sample(const wave *w, const uint8_t *at)
{
    uint64_t bits = read_number(at, w->bytes);
    uint32_t single = (uint32_t)bits;
    float value;
    double wide;
    if (w->type == TYPE_FLOAT && w->bytes == 8) {
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    }
    if (w->type == TYPE_FLOAT) {
        memcpy(&value, &single, sizeof value);
        return (double)value;
    }
    if (w->bytes == 1)
        return ((double)bits - 128) / 128; /* only bytes have no sign */
    return (double)(int32_t)(single << (32 - 8 * w->bytes)) / 0x1p31;
}

static rlxvk_status mix(const wave *w, sound *out)
{
    uint32_t frame = w->channels * w->bytes;
    *out = (sound){.rate = w->rate, .length = w->data_size / frame};
    out->samples = memory_allocate((size_t)MAX(out->length, 1) * sizeof *out->samples);
    if (!out->samples)
        return status_fail_memory("sound");
    for (uint64_t i = 0; i < out->length; i++) {
        double sum = 0;
        for (uint32_t c = 0; c < w->channels; c++)
            sum += read_sample(w, w->data + i * frame + c * w->bytes);
        out->samples[i] = (float)(sum / w->channels);
    }
    return RLXVK_OK;
}

rlxvk_status sound_read(const char *path, sound *out)
{
    file_content file;
    wave w = {0};
    rlxvk_status status;
    *out = (sound){0};
    TRY(file_read(path, &file));
    status = find_chunks(&file, &w);
    if (status == RLXVK_OK)
        status = read_format(&w);
    if (status == RLXVK_OK)
        status = mix(&w, out);
    if (status != RLXVK_OK)
        status = status_fail_within(status, "'%s'", path);
error:
    file_free(&file);
    return status;
}

void sound_destroy(sound *s)
{
    memory_free(s->samples);
    *s = (sound){0};
}
