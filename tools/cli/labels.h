/* The best classes of an output, with their names from a file. */
#ifndef RLXVK_LABELS_H
#define RLXVK_LABELS_H

#include "cli/run.h"

/*
 * Reads o->labels, a file with the name of a class in each line, and fills r->best with the o->top
 * best classes of each item. The output is the first one that has a value for each name in each
 * item of its batch. Values from 0 to 1 are scores as they are; of others it is the softmax.
 *   E_SHAPE   no output has so many values an item
 *   E_FILE, E_OUT_OF_HOST_MEMORY
 */
RLXVK_MUST_CHECK rlxvk_status labels_rank(const run_options *o, run_result *r);

#endif
