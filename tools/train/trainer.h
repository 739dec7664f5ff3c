/*
 * What every job of rlxvk train does alike: parameters with their first values and AdamW's running
 * averages, a step as one recorded run, the learning rate's schedule, checkpoint files, the curve
 * of the loss. A job builds its net with trainer_param and the library's builders.
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
    float *first; /* values to begin with; owned */
    bool decays;
} trainer_parameter;

typedef struct trainer {
    rlxvk_graph *graph;
    rlxvk_executable *executable;
    VECTOR(trainer_parameter) parameters;
    VECTOR(float) losses; /* of every step */
    uint64_t random;      /* state of the numbers that are drawn on the host */
    uint64_t step,
        steps; /* done; of the whole schedule, 0: not known before a checkpoint is read */
    rlxvk_adamw_options options;
    float clip; /* the gradient's largest norm */
} trainer;

/* A uniform number of 64 bits; one of [0, n). */
uint64_t trainer_random(trainer *t);
uint64_t trainer_below(trainer *t, uint64_t n);

/* E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status trainer_create(trainer *t, uint64_t seed);
void trainer_destroy(trainer *t);

/* A parameter that begins as `base` plus normal numbers times `deviation`. Matrices and kernels
 * decay, vectors do not. */
rlxvk_tensor trainer_param(trainer *t, const char *name, rlxvk_shape shape, double deviation,
                           double base);
/* Adds gradients of the loss and the optimizer's step, and compiles; output 0 is the loss. Errors
 * as rlxvk_compile's. */
RLXVK_MUST_CHECK rlxvk_status trainer_compile(trainer *t, rlxvk_context *context, rlxvk_tensor loss,
                                              const rlxvk_compile_options *options);
/* One step with these inputs; notes the loss. Errors as rlxvk_run's; E_RANGE: the loss is no number
 * any more. */
RLXVK_MUST_CHECK rlxvk_status trainer_step(trainer *t, const rlxvk_run_input *inputs, size_t count);

/* Parameters, averages, numbers of steps and of the random state. E_FILE. Loading keeps the
 * schedule's length that t->steps has, or takes the checkpoint's if that is 0; nothing changes
 * unless all of it is right. E_FILE: no checkpoint, or a damaged one. E_LENGTH: of another net.
 * E_RANGE: of more steps than asked for, or with NaN or infinities. */
RLXVK_MUST_CHECK rlxvk_status trainer_save(trainer *t, const char *path);
RLXVK_MUST_CHECK rlxvk_status trainer_load(trainer *t, const char *path);
/* The losses as a picture (SVG), each a point and a smoothed line. E_FILE. */
RLXVK_MUST_CHECK rlxvk_status trainer_draw(const trainer *t, const char *title, const char *path);

#endif
