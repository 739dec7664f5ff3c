/*
 * A workgroup's tile of y. It has at most SLOTS elements, in COLUMNS neighbouring columns. The
 * workgroup keeps it in shared memory while it goes through all updates of these columns in order.
 * Element (row, column) of the tile is in slot row * COLUMNS + column.
 */
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "array/scatter_modes.glsl"

layout(constant_id = 1) const uint MODE = SCATTER_ADD;
layout(constant_id = 2) const uint COLUMNS = 1;  /* a power of two */
layout(constant_id = 3) const uint SLOTS = 4096; /* a power of two */
layout(push_constant) uniform block { scatter_tile_args args; };

const uint ROWS = SLOTS / COLUMNS;
const uint NO_SLOT = 0xffffffffu;

uint line, first_row, rows, first_column, columns;

bool find_tile()
{
    uint g = group_index();
    if (g >= args.groups)
        return false;
    uint tile = g / args.ranges;
    first_row = (g - tile * args.ranges) * ROWS;
    rows = min(args.rows - first_row, ROWS);
    line = tile / args.tiles;
    first_column = (tile - line * args.tiles) * COLUMNS;
    columns = min(args.inner - first_column, COLUMNS);
    return true;
}

/* Element i of `length` rows of the tile's columns, as an index into a tensor of such lines. Past
 * the end, it is any valid element. */
uint element_at(uint i, uint length)
{
    uint row = min(i / COLUMNS, length - 1u), column = min(i % COLUMNS, columns - 1u);
    return (line * length + row) * args.inner + first_column + column;
}

/* The slot of element i of the updates, whose index is `index`. */
uint slot_of(uint i, float index)
{
    uint row = checked_index(index, args.rows) - first_row, column = i % COLUMNS;
    bool inside = row < rows && column < columns && i / COLUMNS < args.updates;
    return inside ? row * COLUMNS + column : NO_SLOT;
}

/* The index in x and y of slot s. */
uint place_of(uint s)
{
    return element_at(first_row * COLUMNS + s, args.rows);
}
bool is_place(uint s)
{
    return s < rows * COLUMNS && s % COLUMNS < columns;
}
