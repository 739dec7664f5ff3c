/* See lm_text.h. */
#include "train/lm_text.h"
#include "cli/file.h"
#include "train/lm_net.h"

#include <string.h>

#define HELD      20   /* one of 20 stretches is held back */
#define LONGEST   8192 /* bytes of a stretch */
#define STRETCHES 100  /* at least this many, if the text is long enough for the context */

static rlxvk_status append(byte_text *t, const uint8_t *bytes, uint64_t length)
{
    uint8_t *grown = memory_allocate(MAX(t->length + length, 1));
    if (!grown)
        return status_fail_memory("text");
    if (t->length)
        memcpy(grown, t->bytes, t->length);
    if (length)
        memcpy(grown + t->length, bytes, length);
    memory_free(t->bytes);
    *t = (byte_text){grown, t->length + length};
    return RLXVK_OK;
}

static rlxvk_status read_all(const char *const *paths, size_t count, byte_text *out)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < count && status == RLXVK_OK; i++) {
        file_content content = {0};
        status = file_read(paths[i], &content);
        if (status == RLXVK_OK)
            status = append(out, content.data, content.length);
        file_free(&content);
    }
    return status;
}

/* Works in place: the parts to learn from move to the front. */
static rlxvk_status divide(uint64_t context, lm_text *t)
{
    uint64_t length = t->learned.length, kept = 0;
    uint64_t stretch = MAX(MIN(length / STRETCHES, LONGEST), context + 1);
    uint8_t *bytes = t->learned.bytes;
    t->held.bytes = memory_allocate(MAX(length, 1));
    if (!t->held.bytes)
        return status_fail_memory("text held back");
    for (uint64_t i = 0, at = 0; at < length; i++, at += stretch) {
        bool holds = i % HELD == HELD / 2;
        uint64_t *end = holds ? &t->held.length : &kept, size = MIN(stretch, length - at);
        memmove((holds ? t->held.bytes : bytes) + *end, bytes + at, size);
        *end += size;
    }
    t->learned.length = kept;
    if (kept > context && t->held.length > context)
        return RLXVK_OK;
    return status_fail(RLXVK_E_LENGTH,
                       "%llu bytes of text are too few for a context of %llu; give %llu or more, "
                       "or a smaller --context",
                       (unsigned long long)length, (unsigned long long)context,
                       (unsigned long long)(HELD * (context + 1)));
}

rlxvk_status lm_text_read(const char *const *paths, size_t count, uint64_t context, lm_text *out)
{
    *out = (lm_text){0};
    rlxvk_status status = read_all(paths, count, &out->learned);
    return status == RLXVK_OK ? divide(context, out) : status;
}

void lm_text_destroy(lm_text *t)
{
    memory_free(t->learned.bytes);
    memory_free(t->held.bytes);
    *t = (lm_text){0};
}

void lm_text_take(const byte_text *t, uint64_t at, uint64_t context, uint64_t row, float *x,
                  float *y)
{
    x += row * context;
    y += row * context;
    for (uint64_t i = 0; i < context; i++) {
        x[i] = i ? (float)(LM_FIRST_BYTE + t->bytes[at + i - 1]) : LM_BOS;
        y[i] = (float)(LM_FIRST_BYTE + t->bytes[at + i]);
    }
}
