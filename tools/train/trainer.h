/*
 * The parts that all jobs of rlxvk train share. These are parameters with first values and AdamW's
 * running averages, and a step as one recorded run. Others are the schedule of the learning rate,
 * checkpoint files, and the curve of the loss. A job builds its net with trainer_param and the
 * library's builders.
 */
#ifndef RLXVK_TRAINER_H
#define RLXVK_TRAINER_H

#include "base/base.h"

#include <rlxvk_train.h>

#define TRAINER_NAME       64
#define TRAINER_MOST_STEPS 10000000000ull

typedef struct trainer_parameter {
    char name[TRAINER_NAME];
    rlxvk_tensor tensor;
    uint64_t length;
    float *first; /* the first values; owned */
    bool decays;
} trainer_parameter;

typedef struct trainer {
    rlxvk_graph *graph;
    rlxvk_executable *executable;
    VECTOR(trainer_parameter) parameters;
    VECTOR(float) losses; /* of each step */
    uint64_t random;      /* state of the host's random numbers */
    uint64_t step, steps; /* done; in the whole schedule, 0 if unknown until a checkpoint is read */
    rlxvk_adamw_options options;
    float clip; /* largest norm of the gradient; longer ones are scaled down */
} trainer;

/* trainer_random returns 64 uniform random bits; trainer_below a uniform number in [0, n). */
uint64_t trainer_random(trainer *t);
uint64_t trainer_below(trainer *t, uint64_t n);

/* E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status trainer_create(trainer *t, uint64_t seed);
void trainer_destroy(trainer *t);

/* Adds a parameter. Its first values are `base` plus normal random numbers times `deviation`.
 * Weight decay applies to matrices and kernels, but not to vectors. */
rlxvk_tensor trainer_param(trainer *t, const char *name, rlxvk_shape shape, double deviation,
                           double base);
/* Adds the gradients of the loss and the optimizer's step, and compiles. Output 0 is the loss.
 * Errors as rlxvk_compile. */
RLXVK_MUST_CHECK rlxvk_status trainer_compile(trainer *t, rlxvk_context *context, rlxvk_tensor loss,
                                              const rlxvk_compile_options *options);
/* Runs one step with these inputs and keeps the loss. E_RANGE: the loss is NaN or infinite. Other
 * errors as rlxvk_run. */
RLXVK_MUST_CHECK rlxvk_status trainer_step(trainer *t, const rlxvk_run_input *inputs, size_t count);

/* Save and load a checkpoint: parameters, averages, numbers of steps, and the random state. If
 * t->steps is 0 when loading, the schedule has the checkpoint's length; otherwise it keeps
 * t->steps. If loading fails, nothing changes.
 *   E_FILE     the file cannot be written; it is not a checkpoint, or it is damaged
 *   E_LENGTH   the checkpoint is of another net
 *   E_RANGE    it has more steps than the schedule, or NaN or infinities */
RLXVK_MUST_CHECK rlxvk_status trainer_save(trainer *t, const char *path);
RLXVK_MUST_CHECK rlxvk_status trainer_load(trainer *t, const char *path);
/* Draws the losses as an SVG: a point for each step, and a smoothed line. E_FILE. */
RLXVK_MUST_CHECK rlxvk_status trainer_draw(const trainer *t, const char *title, const char *path);

#endif
