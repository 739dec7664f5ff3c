/*
 * The text for rlxvk train lm: the bytes of some files, one after the other. Stretches of it are
 * held back for tests, at regular distances.
 */
#ifndef RLXVK_LM_TEXT_H
#define RLXVK_LM_TEXT_H

#include "base/base.h"

typedef struct byte_text {
    uint8_t *bytes;
    uint64_t length;
} byte_text;

typedef struct lm_text {
    byte_text learned, held;
} lm_text;

/* Reads and divides the text. Destroy *out also after a failure.
 *   E_LENGTH   a part is not longer than `context`
 *   E_FILE     a file cannot be read */
RLXVK_MUST_CHECK rlxvk_status lm_text_read(const char *const *paths, size_t count, uint64_t context,
                                           lm_text *out);
void lm_text_destroy(lm_text *t);

/* Writes row `row` of x and y, from byte `at` on. y is `context` bytes. x is bos and all of these
 * bytes except the last. */
void lm_text_take(const byte_text *t, uint64_t at, uint64_t context, uint64_t row, float *x,
                  float *y);

#endif
