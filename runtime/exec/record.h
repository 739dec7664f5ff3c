/* Command buffers, recorded once. */
#ifndef RLXVK_EXEC_RECORD_H
#define RLXVK_EXEC_RECORD_H

#include "exec/state.h"

rlxvk_status record_all(rlxvk_executable *e);
rlxvk_status record_segment(rlxvk_executable *e, uint32_t index);
/* The staged reading of an output from its copy, where it is staged at all. */
rlxvk_status record_copy_readback(rlxvk_executable *e, output_state *out);
/* The timestamps of a loop's begin and, next to it, end. */
uint32_t record_loop_query(const rlxvk_executable *e, uint32_t loop);
/* The timestamps of a segment's begin and end; those of its steps' ends lie between. */
uint32_t record_first_query(const rlxvk_executable *e, uint32_t segment);
uint32_t record_last_query(const rlxvk_executable *e, uint32_t segment);

#endif
