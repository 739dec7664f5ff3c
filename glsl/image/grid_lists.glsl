/*
 * Lists of points by the first cell they read: what includes this declares starts[] (radix_starts:
 * of all cells of all images), and has included grid.glsl. A cell is read by points whose first
 * cell lies up to TAPS - 1 before it along each axis; its own list, of all of these, in their
 * order, begins where the sum of the beginnings of those lists says, and is as long as they are.
 */

/* Where the list of first cell `at` of an image begins and ends. In front of an axis there are
 * none. */
uvec2 first_cell_list(uint image, ivec3 at, uint size[3])
{
    bvec3 before = lessThan(at, ivec3(0));
    uint row = before.z ? 0u : uint(at.z) * size[1] + (before.y ? 0u : uint(at.y));
    uint place = row * size[0] + (any(before) ? 0u : uint(at.x));
    place += image * size[0] * size[1] * size[2];
    return uvec2(starts[place], starts[place + (any(before) ? 0u : 1u)]);
}

/* Cell `place` of an image, and the first cell of list k of those that it is made of. */
ivec3 cell_at(uint place, uint size[3])
{
    uint row = place / size[0], plane = AXES == 3u ? row / size[1] : 0u;
    return ivec3(place - row * size[0], row - plane * size[1], plane);
}
ivec3 tap_at(uint k)
{
    return ivec3(k % TAPS, k / TAPS % TAPS, k / (TAPS * TAPS));
}
