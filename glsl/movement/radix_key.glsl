/* Ascending keys of words, by mode. Indices below `limit` are valid. */
#include "lib/index.glsl"
#include "movement/radix.glsl"

uint key_of(uint word, uint mode, uint limit)
{
    if (mode == RADIX_WORDS)
        return word;
    if (mode == RADIX_INDEX)
        return min(checked_index(uintBitsToFloat(word), limit), limit);
    if (mode == RADIX_CLAMPED)
        return clamped_index(uintBitsToFloat(word), limit);
    uint k = ordered_key(word);
    bool stays = mode == RADIX_ASCENDING || (mode == RADIX_DESCENDING && k == 0xffffffffu);
    return stays ? k : ~k;
}
