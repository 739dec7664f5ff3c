/*
 * Which dispatches may take too long for one submission (max_submission_ms). There is no model of
 * kernels: a time that is surely too high rules out the short ones, and exec/bounded.c measures the
 * others.
 */
#ifndef RLXVK_PROGRAM_BOUND_H
#define RLXVK_PROGRAM_BOUND_H

#include "program/program.h"

/* The workgroups of a dispatch. */
static inline uint64_t bound_groups(const dispatch *d)
{
    return (uint64_t)d->groups[0] * d->groups[1] * d->groups[2];
}

/* A time in nanoseconds that a dispatch surely does not exceed. It is as if every workgroup read
 * all operands byte by byte, and a compute unit had one workgroup at a time. */
uint64_t bound_estimate(const program *p, size_t dispatch);
/* The same for all dispatches of a run, with every round of its loops, and the prepared ones. */
uint64_t bound_estimate_all(const program *p);
/* Whether a dispatch may exceed the bound and can be launched in ranges of its workgroups. If
 * options.sliced is set, every dispatch may exceed it. */
bool bound_cuts(const program *p, size_t dispatch);

#endif
