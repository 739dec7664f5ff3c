/* What rlxvk train's jobs are told, and what they tell. */
#ifndef RLXVK_TRAIN_JOB_H
#define RLXVK_TRAIN_JOB_H

#include "train/trainer.h"

typedef struct train_options {
    const char *device, *data, *save, *resume, *curve, *out;
    const char **texts; /* files; text_count of them */
    size_t text_count;
    rlxvk_precision precision;
    uint64_t epochs, steps; /* 0: the checkpoint's, or the job's own */
    uint64_t batch, seed;   /* batch 0: the job's own; so is rate */
    uint64_t width, ffn, blocks, heads, kv_heads, context; /* of lm */
    float rate;
    bool json, help, recompute, exact;
} train_options;

/* Ctrl-C: the step under way is the last. */
bool train_stopped(void);
/* After a step: where things stand, now and then; `examples` were learned from in `seconds`, of
 * which those before this process are not. */
void train_report(const train_options *o, const trainer *t, const char *unit, double examples,
                  double seconds);

/* Handwritten digits: a convolutional net, 1,437 images to learn from and 360 to be tested with. */
RLXVK_MUST_CHECK rlxvk_status train_digits(const train_options *o, rlxvk_context *context);
/* A language model over bytes, on the text of files. */
RLXVK_MUST_CHECK rlxvk_status train_lm(const train_options *o, rlxvk_context *context);

#endif
