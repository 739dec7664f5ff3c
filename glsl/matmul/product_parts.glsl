/* Writes y for kernels whose push constants are product_args, named `whole`. Include matmul.glsl
 * first. */
#include "args/product.h"
#include "lib/parts.glsl"

uint place_of_y(uint row, uint column)
{
    return place_in_parts(row, column, args.m, whole.y_row, whole.ends);
}

/* Writes the first `count` of four neighbours in a row. If y is written in whole quads, all four
 * are in one part. */
void write_quad_in_parts(uint y_base, uint row, uint column, uint count, vec4 v)
{
    if ((VECTORS & MATMUL_VECTOR_Y) != 0) {
        write_quad(y_base + place_of_y(row, column), count, v);
        return;
    }
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (i < count)
            y[y_base + place_of_y(row, column + i)] = v[i];
}
