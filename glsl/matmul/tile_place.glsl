/* The order in which tiles of y are computed. BAND rows of tiles, a constant of the includer, are
 * walked together, column by column, so that their common operands are still in the cache. */

/* (row, column) of a linear tile index, in tiles. */
uvec2 tile_place(uint index, uint tiles_m, uint tiles_n)
{
    uint band = index / (BAND * tiles_n);
    uint rows = min(tiles_m - band * BAND, BAND);
    uint within = index - band * BAND * tiles_n;
    return uvec2(band * BAND + within % rows, within / rows);
}
