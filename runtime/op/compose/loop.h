/*
 * Loops whose body is in the graph only once. The nodes stand in this order:
 *
 *   loop_carry   a carry, from its initial value; or the rows of a trajectory
 *   loop_begin   sets the clock to 0; its operands are the carries, which it does not read
 *   ...          the body; it reads carries, slices at the clock, and nodes before the loop
 *   loop_update  stores the body's result in a carry, or writes a row; after the whole body
 *   loop_end     advances the clock and repeats everything behind loop_begin
 *   loop_result  a carry or the trajectory, after the loop
 *
 * Nodes before loop_begin are the same in every step. No node behind loop_end reads a node of the
 * body.
 */
#ifndef RLXVK_LOOP_H
#define RLXVK_LOOP_H

#include "op/op.h"

typedef struct loop_attributes {
    int64_t steps;    /* of the loop; 0 if it does not matter */
    int64_t rows;     /* of the trajectory: how many of the steps are saved; 0: there is none */
    uint64_t stride;  /* loop_random: the instance grows by this with each step */
    uint64_t stops;   /* loop_end: operand 1 tells whether to go on */
    uint64_t counted; /* loop_end: a node reads the clock */
} loop_attributes;

#define LOOP_MOST_COUNTED (1 << 30) /* most steps if a node reads the clock */

/* Whether the carry after step t is saved as a row. Row k is saved after step ceil((k + 1) steps /
 * rows) - 1. */
static inline bool loop_saves(int64_t steps, int64_t rows, int64_t t)
{
    return (t + 1) * rows / steps > t * rows / steps;
}

static inline const loop_attributes *loop_of(const node *n)
{
    return n->attributes;
}

/* Unrolls the body at the end of the list of nodes and returns the loop's result. E_UNSUPPORTED if
 * the graph would exceed INLINING_MOST_NODES inlined nodes. See loop_unroll.c. */
rlxvk_tensor loop_unroll(rlxvk_graph *g, const node *result);

#endif
