/*
 * Columns of heads, rotated as they are read. Include after ROTATED, NEIGHBOURS, `table`, cos_table
 * and sin_table are declared.
 */

/* Column d of the head that begins at `row`, turned by row `token` of the tables. No branches: what
 * many columns take is on its way at once. */
#define DEFINE_ROTATED(name, words)                                                                \
    float name(uint row, uint token, uint d)                                                       \
    {                                                                                              \
        const uint middle = ROTATED / 2u;                                                          \
        float x = words[row + d];                                                                  \
        if (ROTATED == 0u)                                                                         \
            return x;                                                                              \
        bool turns = d < ROTATED, second = NEIGHBOURS ? (d & 1u) != 0u : d >= middle;              \
        uint other = NEIGHBOURS ? d ^ 1u : second ? d - middle : d + middle;                       \
        uint pair = token * table.columns;                                                         \
        if (turns)                                                                                 \
            pair += NEIGHBOURS ? d >> 1 : min(d, other);                                           \
        float c = cos_table[table.cos_offset + pair], s = sin_table[table.sin_offset + pair];      \
        float y = words[row + (turns ? other : d)];                                                \
        return turns ? x * c + y * (second ? s : -s) : x;                                          \
    }
