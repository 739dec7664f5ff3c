/* The options of rlxvk train's jobs, and their reports. */
#ifndef RLXVK_TRAIN_JOB_H
#define RLXVK_TRAIN_JOB_H

#include "train/trainer.h"

typedef struct train_options {
    const char *device, *data, *save, *resume, *curve, *out;
    const char **texts; /* files; there are text_count */
    size_t text_count;
    rlxvk_precision precision;
    uint64_t epochs, steps; /* 0: from the checkpoint, or the job's default */
    uint64_t batch, seed;   /* batch or rate 0: the job's default */
    uint64_t width, ffn, blocks, heads, kv_heads, context; /* of lm */
    float rate;
    bool json, help, recompute, exact;
} train_options;

/* Whether Ctrl-C was pressed. The job then ends after the current step. */
bool train_stopped(void);
/* Call this after each step; it prints the state from time to time. This process learned from
 * `examples` examples in `seconds`; those of earlier processes do not count. */
void train_report(const train_options *o, const trainer *t, const char *unit, double examples,
                  double seconds);

/* Handwritten digits: a convolutional net that learns from 1,437 images and is tested with 360. */
RLXVK_MUST_CHECK rlxvk_status train_digits(const train_options *o, rlxvk_context *context);
/* A language model over bytes, which learns from the text of files. */
RLXVK_MUST_CHECK rlxvk_status train_lm(const train_options *o, rlxvk_context *context);

#endif
