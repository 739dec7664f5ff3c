/*
 * Rotates columns of heads when they are read. Include this after ROTATED, NEIGHBOURS, `table`,
 * cos_table and sin_table are declared.
 */

/* Column d of the head that begins at `row`, rotated with row `token` of the tables. There are no
 * branches, so that the loads of many columns are in flight together. */
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

/* Columns 4 * quad .. + 3, if rows, tables and halves of ROTATED are whole quads. */
#define DEFINE_ROTATED_QUAD(name, quads)                                                           \
    vec4 name(uint row, uint token, uint quad)                                                     \
    {                                                                                              \
        const uint middle = ROTATED / 8u;                                                          \
        vec4 x = quads[row / 4u + quad];                                                           \
        if (ROTATED == 0u || quad >= ROTATED / 4u)                                                 \
            return x;                                                                              \
        uint pair = token * table.columns;                                                         \
        if (NEIGHBOURS) {                                                                          \
            vec2 c = cos_table2[(table.cos_offset + pair) / 2u + quad];                            \
            vec2 s = sin_table2[(table.sin_offset + pair) / 2u + quad];                            \
            return x * c.xxyy + x.yxwz * vec4(-s.x, s.x, -s.y, s.y);                               \
        }                                                                                          \
        bool second = quad >= middle;                                                              \
        uint other = second ? quad - middle : quad + middle;                                       \
        vec4 c = cos_table4[(table.cos_offset + pair) / 4u + min(quad, other)];                    \
        vec4 s = sin_table4[(table.sin_offset + pair) / 4u + min(quad, other)];                    \
        return x * c + quads[row / 4u + other] * (second ? s : -s);                                \
    }
