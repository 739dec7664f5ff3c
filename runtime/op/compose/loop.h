/*
 * Loops whose body stands in the graph once. In the order of the list:
 *
 *   loop_carry   what a step hands to the next, as its initial value; or the rows of a trajectory
 *   loop_begin   the clock, set to 0; reads nothing of the carries it names
 *   ...          the body, which reads carries, slices at the clock, and what was there before
 *   loop_update  a carry becomes the body's result, or a row is written; after all of the body
 *   loop_end     the clock goes a step further, and all from behind loop_begin is done again
 *   loop_result  a carry, or the trajectory, behind the loop
 *
 * What is built before loop_begin is the same in every step. Nothing behind loop_end reads a node
 * of the body.
 */
#ifndef RLXVK_LOOP_H
#define RLXVK_LOOP_H

#include "op/op.h"

typedef struct loop_attributes {
    int64_t steps;    /* of the loop; 0 where it does not matter */
    int64_t rows;     /* of the trajectory: of `steps` steps as many are saved; 0: none */
    uint64_t stride;  /* loop_random: instances a step goes on by */
    uint64_t stops;   /* loop_end: operand 1 says whether to go on */
    uint64_t counted; /* loop_end: somebody reads the clock */
} loop_attributes;

#define LOOP_MOST_COUNTED (1 << 30) /* steps, where somebody reads the clock */

/* Whether the carry after step t is saved as a row: those of ceil((k + 1) steps / rows) - 1. */
static inline bool loop_saves(int64_t steps, int64_t rows, int64_t t)
{
    return (t + 1) * rows / steps > t * rows / steps;
}

static inline const loop_attributes *loop_of(const node *n)
{
    return n->attributes;
}

/* The result of a loop from the body unrolled at the end of the list; E_TOO_LARGE beyond `most`
 * nodes. (loop_unroll.c) */
rlxvk_tensor loop_unroll(rlxvk_graph *g, const node *result);

#endif
