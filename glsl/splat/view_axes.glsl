/*
 * Axes of a splat's own space, in standard deviations. The first axis points at the camera. In this
 * space the camera is at (r, 0, 0). A ray w = (w0, w1, w2) from there comes nearest to the centre
 * at
 *
 *   c = r / (w . w) (s, -w0 w1, -w0 w2), s = w1^2 + w2^2, and c . c = r^2 s / (w . w).
 *
 * This form avoids the difference e - t w, because its two terms are large if the splat is thin.
 * Every component of `own` is accurate to some units in its last place, even if it is small. The
 * pivot is the largest component of e, so that nothing cancels.
 */
struct view_axes {
    mat3 own;       /* columns: these axes in own axes, rotated so that the pivot is last */
    mat3 world;     /* columns: their products with the ray are w0, w1, w2 */
    float distance; /* r; 0: the camera is in the centre */
    uint turns;     /* order of own axes: 0: 0, 1, 2; 1: 1, 2, 0; 2: 2, 0, 1 */
};

#define AT_CENTRE 1e-30

/* Undoes the rotation of the axes. */
vec3 in_order(vec3 v, uint turns)
{
    return turns == 1u ? v.zxy : turns == 2u ? v.yzx : v;
}

/* e is the camera in own axes and deviations. The columns of scaled are the own axes, each divided
 * by its deviation. */
view_axes view_axes_of(vec3 e, mat3 scaled)
{
    view_axes v;
    vec3 size = abs(e);
    v.turns = size.x > max(size.y, size.z) ? 1u : size.y > size.z ? 2u : 0u;
    if (v.turns == 1u) {
        e = e.yzx;
        scaled = mat3(scaled[1], scaled[2], scaled[0]);
    } else if (v.turns == 2u) {
        e = e.zxy;
        scaled = mat3(scaled[2], scaled[0], scaled[1]);
    }
    float most = abs(e.z), side = e.z < 0.0 ? -1.0 : 1.0;
    vec3 n = most > AT_CENTRE ? e / most : vec3(0.0, 0.0, side);
    float length = square_root(dot(n, n));
    n /= length;
    float part = 1.0 / (1.0 + abs(n.z)), both = -n.x * n.y * part;
    v.distance = most > AT_CENTRE ? most * length : 0.0;
    v.own = mat3(n, vec3(1.0 - n.x * n.x * part, both, -side * n.x),
                 vec3(both, 1.0 - n.y * n.y * part, -side * n.y));
    vec3 along = n.x * scaled[0] + n.y * scaled[1] + n.z * scaled[2];
    vec3 pivot = (along + side * scaled[2]) * part;
    v.world = mat3(along, scaled[0] - n.x * pivot, scaled[1] - n.y * pivot);
    return v;
}
