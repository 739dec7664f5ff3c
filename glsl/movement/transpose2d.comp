#version 450
/*
 * Copies whose source and target are contiguous along different axes. Matrices [rows, columns] are
 * read along columns and written along rows, through a TILE x TILE block of shared memory, so that
 * both accesses are coalesced. Up to 6 further axes (innermost first) select the matrix. One
 * workgroup takes one tile. The workgroup size is a multiple of TILE and divides TILE^2. Words move
 * as integers.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { transpose2d_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint y[]; };

const uint TILE = TRANSPOSE_TILE;
shared uint tile[TILE * TILE];

/* The exclusive or spreads both a row and a column of the tile over all banks. */
uint slot(uint row, uint column)
{
    return row * TILE + (column ^ row);
}

void main()
{
    uint rest = group_index();
    if (rest >= args.group_count)
        return;
    uint column = rest % args.column_tiles * TILE;
    rest /= args.column_tiles;
    uint row = rest % args.row_tiles * TILE;
    rest /= args.row_tiles;
    uint from = args.source_offset, to = args.target_offset;
    for (uint axis = 0u; axis < args.batch_rank; axis++) {
        uint outer = rest / args.batch_dims[axis];
        uint coordinate = rest - outer * args.batch_dims[axis];
        from += coordinate * args.batch_source[axis];
        to += coordinate * args.batch_target[axis];
        rest = outer;
    }
    from += row * args.row_stride + column;
    to += column * args.column_stride + row;

    /* The part of the tile that exists. A whole tile uses loops of constant length. */
    uint rows = min(args.rows - row, TILE), columns = min(args.columns - column, TILE);
    uint lane = gl_LocalInvocationID.x % TILE, first = gl_LocalInvocationID.x / TILE;
    uint lines = gl_WorkGroupSize.x / TILE;
    bool whole = rows == TILE && columns == TILE;
    if (whole)
        for (uint i = 0u; i < TILE; i += lines)
            tile[slot(first + i, lane)] = x[from + (first + i) * args.row_stride + lane];
    else if (lane < columns)
        for (uint i = first; i < rows; i += lines)
            tile[slot(i, lane)] = x[from + i * args.row_stride + lane];
    barrier();
    if (whole)
        for (uint i = 0u; i < TILE; i += lines)
            y[to + (first + i) * args.column_stride + lane] = tile[slot(lane, first + i)];
    else if (lane < rows)
        for (uint i = first; i < columns; i += lines)
            y[to + i * args.column_stride + lane] = tile[slot(lane, i)];
}
