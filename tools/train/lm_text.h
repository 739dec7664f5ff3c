/*
 * The text that rlxvk train lm learns from: the bytes of some files, one behind the other. Every so
 * often a stretch of it is held back for testing.
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

/* Both parts are longer than `context`: E_LENGTH otherwise. E_FILE. *out is to be destroyed, after
 * a failure too. */
RLXVK_MUST_CHECK rlxvk_status lm_text_read(const char *const *paths, size_t count, uint64_t context,
                                           lm_text *out);
void lm_text_destroy(lm_text *t);

/* Row `row` of x and y, from byte `at` on: x is bos and all but the last of `context` bytes, y
 * these bytes. */
void lm_text_take(const byte_text *t, uint64_t at, uint64_t context, uint64_t row, float *x,
                  float *y);

#endif
