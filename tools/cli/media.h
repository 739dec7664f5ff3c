/* Pictures and sounds as inputs of models. */
#ifndef RLXVK_MEDIA_H
#define RLXVK_MEDIA_H

#include "cli/array.h"

typedef enum media_layout { MEDIA_LAYOUT_FOUND, MEDIA_NCHW, MEDIA_NHWC } media_layout;

/* A value of the input is (v S - mean) / std. Here v is from 0 to 1 for pictures and from -1 to 1
 * for sounds, and S is the scale. */
typedef struct media_options {
    media_layout layout;
    bool crop;     /* keep the aspect or the speed, and cut off or fill up; else stretch pictures */
    bool bgr;      /* the input's channels are blue, green, red */
    float scale;   /* 0: 255 for U8, else 1 */
    float mean[3]; /* of red, green and blue. Of gray pictures and sounds, the first counts */
    float std[3];
    uint64_t rate; /* of sounds; 0: any */
} media_options;

media_options media_defaults(void);
/* Whether the name ends in .png or .wav. */
bool media_is(const char *path);

/*
 * Reads a picture or a sound into an array of this dtype and shape. Dims below 0 are unknown: they
 * become the file's own size, 3 channels, or 1.
 *
 * Pictures are resized by bilinear filtering, with antialiasing if they shrink: a pixel of the
 * result is a mean under a triangle, which is as wide as two of its pixels. The input is HxW,
 * or it has 1 or 3 channels, before or after them, and perhaps a batch. One channel is gray:
 * 0.299 R + 0.587 G + 0.114 B. A sound lies along the last axis. Every item of a batch is the same.
 *   E_SHAPE   the input's shape does not fit; the sentence says what would
 *   E_DTYPE   the input is none of F32, F64, F16, BF16 and U8
 *   E_RANGE   the sound has another rate
 *   E_FILE, E_UNSUPPORTED, E_OUT_OF_HOST_MEMORY
 */
RLXVK_MUST_CHECK rlxvk_status media_read(const char *path, rlxvk_dtype dtype, rlxvk_shape shape,
                                         const media_options *options, array *out);

#endif
