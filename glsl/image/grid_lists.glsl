/*
 * Lists of points by the first cell that they read. The includer includes grid.glsl first, and
 * declares starts[] (from radix_starts, for all cells of all images).
 *
 * A point reads a cell if its first cell is at most TAPS - 1 before it along each axis. The cell's
 * own list has all these points, in order. It begins at the sum of the beginnings of their lists,
 * and its length is the sum of their lengths.
 */

/* The beginning and end of the list of first cell `at` of an image. The list is empty if the cell
 * is before the start of an axis. */
uvec2 first_cell_list(uint image, ivec3 at, uint size[3])
{
    bvec3 before = lessThan(at, ivec3(0));
    uint row = before.z ? 0u : uint(at.z) * size[1] + (before.y ? 0u : uint(at.y));
    uint place = row * size[0] + (any(before) ? 0u : uint(at.x));
    place += image * size[0] * size[1] * size[2];
    return uvec2(starts[place], starts[place + (any(before) ? 0u : 1u)]);
}

/* cell_at: the coordinates of cell `place` of an image. tap_at: the distance from a cell to the
 * first cell of list k. */
ivec3 cell_at(uint place, uint size[3])
{
    uint row = place / size[0], plane = AXES == 3u ? row / size[1] : 0u;
    return ivec3(place - row * size[0], row - plane * size[1], plane);
}
ivec3 tap_at(uint k)
{
    return ivec3(k % TAPS, k / TAPS % TAPS, k / (TAPS * TAPS));
}
