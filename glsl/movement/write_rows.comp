#version 450
/*
 * cache[h, position + r, :] = rows[h, r, :], in place. Rows that land outside the cache are
 * dropped. The bits are copied unchanged.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(push_constant) uniform block { write_rows_args args; };
layout(set = 0, binding = 0) writeonly restrict buffer target { uint cache[]; };
layout(set = 0, binding = 1) readonly restrict buffer source { uint rows[]; };
layout(set = 0, binding = 2) readonly restrict buffer place { float position[]; };

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    float first = nearest_integer(position[args.position_offset]);
    if (is_nan(first) || first < -float(args.rows) || first >= float(args.capacity))
        return;
    uint row = i / args.columns;
    /* A negative row wraps to a number beyond the capacity. */
    uint target_row = uint(int(first)) + row % args.rows;
    if (target_row < args.capacity)
        cache[args.cache_offset +
              (row / args.rows * args.capacity + target_row) * args.columns + i % args.columns] =
            rows[args.rows_offset + row / args.rows * args.rows_head +
                 row % args.rows * args.rows_row + i % args.columns];
}
