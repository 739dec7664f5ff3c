/* Loops that replay the recorded body. */
#ifndef RLXVK_ARGS_COMPOSE_H
#define RLXVK_ARGS_COMPOSE_H

#include "args/types.h"

/* The clock of a loop. Its words are integers. */
#define LOOP_CLOCK_WORDS 4
#define LOOP_CLOCK_STEP  0 /* t */
#define LOOP_CLOCK_ROW   1 /* floor(t rows / steps) */
#define LOOP_CLOCK_REST  2 /* (t rows) mod steps */

#define LOOP_ROW_COPY  0
#define LOOP_ROW_SLICE 1
#define LOOP_ROW_STORE 2

/* Sizes and offsets in words. count: words of a row. */
struct loop_row_args {
    u32 count, source_offset, target_offset, clock_offset;
    u32 rows, steps;
};

struct loop_tick_args {
    u32 clock_offset, rows, steps, start;
};

/* `word` is the index of the word, among the `words` of the random state, to which t * stride is
 * added. */
struct loop_random_args {
    u32 words, word, stride;
    u32 source_offset, target_offset, clock_offset;
};

#endif
