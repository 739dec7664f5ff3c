/*
 * Axes of a splat's own space, in standard deviations, of which the first points at the camera.
 * There a ray w = (w0, w1, w2) from the camera at (r, 0, 0) comes nearest to the centre at
 *   c = r / (w . w) (s, -w0 w1, -w0 w2), s = w1^2 + w2^2, and c . c = r^2 s / (w . w),
 * without the difference e - t w of two numbers that are as large as the splat is thin. Every
 * component of `own` is right to some units in its last place, however small it is: the pivot is
 * the largest component of e, so that nothing cancels.
 */
struct view_axes {
    mat3 own;       /* columns: the axes in own axes, which are turned so that the pivot is last */
    mat3 world;     /* columns: what the ray is multiplied by for w0, w1, w2 */
    float distance; /* r; 0: the camera is in the centre */
    uint turns;     /* own axes 0, 1, 2 stand as: 0: 0, 1, 2; 1: 1, 2, 0; 2: 2, 0, 1 */
};

#define AT_CENTRE 1e-30

/* Back from turned axes. */
vec3 in_order(vec3 v, uint turns)
{
    return turns == 1u ? v.zxy : turns == 2u ? v.yzx : v;
}

/* e: the camera in own axes and deviations; scaled: columns, an own axis over its deviation. */
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
