/* Samples from WAV files: PCM of 8, 16, 24 or 32 bits, and floats of 32 or 64. */
#ifndef RLXVK_SOUND_H
#define RLXVK_SOUND_H

#include "base/base.h"

typedef struct sound {
    uint32_t rate;   /* samples a second */
    uint64_t length; /* samples */
    float *samples;  /* the mean of all channels, from -1 to 1; owned */
} sound;

/* E_FILE: the file cannot be read, or is damaged; E_UNSUPPORTED: its samples are of another type;
 * E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status sound_read(const char *path, sound *out);
void sound_destroy(sound *s); /* leaves it zeroed */

#endif
