/* How many channels of an image one invocation takes. */
#ifndef RLXVK_CHANNELS_H
#define RLXVK_CHANNELS_H

#include <stdint.h>

/* A power of two, at most `most`. Fewer channels leave more invocations: at least `threads`, if
 * there are so many elements. */
static inline uint32_t image_channels(uint32_t most, uint64_t threads, uint64_t elements,
                                      uint64_t channels)
{
    while (most > 1 && (most >= 2 * channels || elements / most < threads))
        most /= 2;
    return most;
}

#endif
