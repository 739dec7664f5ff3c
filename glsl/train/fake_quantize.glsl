/* The grid of a channel, and the position of a number on it. */
struct grid {
    float step, edge;
    float shrink, inverse; /* x / step = x shrink inverse */
};

/* `edge` is the largest number of the grid. If a step is above 2^100, it is made smaller before the
 * division, because reciprocal() is not made for such numbers. */
grid grid_of(float step, float edge)
{
    float shrink = step > 1.26765060e30 ? 5.42101086e-20 : 1.0; /* 2^100, 2^-64 */
    float inverse = is_inf(step) ? 0.0 : reciprocal(step * shrink);
    return grid(step, edge, shrink, inverse);
}

/* The larger of both, or NaN if v is NaN. */
float at_least(float v, float least)
{
    return is_nan(v) ? v : max(v, least);
}

float on_grid(grid g, float x)
{
    return (x * g.shrink) * g.inverse;
}

/* Rounds to the nearest integer, halves away from zero. */
float round_away(float v)
{
    float whole = trunc(v);
    precise float rest = v - whole;
    return abs(rest) >= 0.5 ? whole + sign(v) : whole;
}
