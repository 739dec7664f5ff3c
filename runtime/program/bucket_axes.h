/* Which axes of inputs hold the rows of a bucket. */
#ifndef RLXVK_PROGRAM_BUCKET_AXES_H
#define RLXVK_PROGRAM_BUCKET_AXES_H

#include "program/program.h"

typedef VECTOR(rlxvk_bucket_axis) axis_list;

/* Lists the axes of the option bucket_axes. With bucket_symbols it adds every axis whose size is
 * SEQ, ROWS or PAST_SEQ. Each axis is listed once. Names are the graph's own, and axes are not
 * negative.
 *   E_UNKNOWN_NAME   the graph has no such input
 *   E_AXIS           the input has no such axis */
rlxvk_status bucket_axes_resolve(const rlxvk_graph *graph, const rlxvk_compile_options *given,
                                 axis_list *out);
/* Rewrites the program's graph so that nodes that compute across rows end at the active rows.
 * Results are then as if the graph were compiled for only these rows. E_UNSUPPORTED if an op cannot
 * do that. */
rlxvk_status bucket_axes_shorten(program *p, const rlxvk_bucket_axis *axes, size_t count);
/* Finds out how an active extent affects the lowered program. E_UNSUPPORTED if the graph was
 * shortened, but the way it is lowered does not support extents. */
rlxvk_status bucket_axes_analyze(program *p, const rlxvk_bucket_axis *axes, size_t count);

#endif
