/* Command buffers, recorded once. */
#ifndef RLXVK_EXEC_RECORD_H
#define RLXVK_EXEC_RECORD_H

#include "exec/executable.h"
#include "exec/slice.h"

rlxvk_status record_all(rlxvk_executable *e);
rlxvk_status record_segment(rlxvk_executable *e, uint32_t index);
/* Records pieces of a segment in order, and all of them `rounds` times. Together with the pieces
 * before and behind them, they write the timestamps of the segment. */
rlxvk_status record_pieces(rlxvk_executable *e, uint32_t index, VkCommandBuffer c,
                           const piece *pieces, uint32_t count, uint32_t rounds);
/* Records one dispatch, between barriers against everything before and behind it. */
rlxvk_status record_step(rlxvk_executable *e, VkCommandBuffer c, uint32_t dispatch);
/* Records the staged readback of an output from its copy. Does nothing if the output is not
 * staged. */
rlxvk_status record_copy_readback(rlxvk_executable *e, output_state *out);
/* The query of a loop's begin. The next query is that of its end. */
uint32_t record_loop_query(const rlxvk_executable *e, uint32_t loop);
/* The queries of a segment's begin and end. With profiling, the ends of its other steps lie between
 * them. */
uint32_t record_first_query(const rlxvk_executable *e, uint32_t segment);
uint32_t record_last_query(const rlxvk_executable *e, uint32_t segment);

#endif
