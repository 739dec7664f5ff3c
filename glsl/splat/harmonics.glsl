/* Real spherical harmonics up to band 3, and their derivatives by the direction. */
#define C0 0.28209479177387814
#define C1 0.4886025119029199

const float C2[5] = float[](1.0925484305920792, -1.0925484305920792, 0.31539156525252005,
                            -1.0925484305920792, 0.5462742152960396);
const float C3[7] =
    float[](-0.5900435899266435, 2.890611442640554, -0.4570457994644658, 0.3731763325901154,
            -0.4570457994644658, 1.445305721320277, -0.5900435899266435);

void find_harmonics(vec3 v, out float values[SPLAT_COEFFICIENTS])
{
    float x = v.x, y = v.y, z = v.z, xx = x * x, yy = y * y, zz = z * z;
    values[0] = C0;
    values[1] = -C1 * y;
    values[2] = C1 * z;
    values[3] = -C1 * x;
    values[4] = C2[0] * x * y;
    values[5] = C2[1] * y * z;
    values[6] = C2[2] * (2.0 * zz - xx - yy);
    values[7] = C2[3] * x * z;
    values[8] = C2[4] * (xx - yy);
    values[9] = C3[0] * y * (3.0 * xx - yy);
    values[10] = C3[1] * x * y * z;
    values[11] = C3[2] * y * (4.0 * zz - xx - yy);
    values[12] = C3[3] * z * (2.0 * zz - 3.0 * xx - 3.0 * yy);
    values[13] = C3[4] * x * (4.0 * zz - xx - yy);
    values[14] = C3[5] * z * (xx - yy);
    values[15] = C3[6] * x * (xx - 3.0 * yy);
}

void find_harmonic_slopes(vec3 v, out vec3 slopes[SPLAT_COEFFICIENTS])
{
    float x = v.x, y = v.y, z = v.z, xx = x * x, yy = y * y, zz = z * z;
    slopes[0] = vec3(0.0);
    slopes[1] = vec3(0.0, -C1, 0.0);
    slopes[2] = vec3(0.0, 0.0, C1);
    slopes[3] = vec3(-C1, 0.0, 0.0);
    slopes[4] = C2[0] * vec3(y, x, 0.0);
    slopes[5] = C2[1] * vec3(0.0, z, y);
    slopes[6] = C2[2] * vec3(-2.0 * x, -2.0 * y, 4.0 * z);
    slopes[7] = C2[3] * vec3(z, 0.0, x);
    slopes[8] = C2[4] * vec3(2.0 * x, -2.0 * y, 0.0);
    slopes[9] = C3[0] * vec3(6.0 * x * y, 3.0 * xx - 3.0 * yy, 0.0);
    slopes[10] = C3[1] * vec3(y * z, x * z, x * y);
    slopes[11] = C3[2] * vec3(-2.0 * x * y, 4.0 * zz - xx - 3.0 * yy, 8.0 * y * z);
    slopes[12] = C3[3] * vec3(-6.0 * x * z, -6.0 * y * z, 6.0 * zz - 3.0 * xx - 3.0 * yy);
    slopes[13] = C3[4] * vec3(4.0 * zz - 3.0 * xx - yy, -2.0 * x * y, 8.0 * x * z);
    slopes[14] = C3[5] * vec3(2.0 * x * z, -2.0 * y * z, xx - yy);
    slopes[15] = C3[6] * vec3(3.0 * xx - 3.0 * yy, -6.0 * x * y, 0.0);
}

/* ---- The coefficients of a splat. The includer declares sh[] and colors[] ---- */

#define CONSTANT_FLOOR 1e-8

vec3 base_color(uint splat)
{
    uint at = args.colors_offset + 3u * splat;
    return vec3(colors[at], colors[at + 1u], colors[at + 2u]);
}

vec3 given_coefficient(uint splat, uint c)
{
    uint at = args.sh_offset + (splat * args.coefficients + c) * 3u;
    return vec3(sh[at], sh[at + 1u], sh[at + 2u]);
}

/* Whether the constant term comes from `colors`. */
bool has_base_color(uint splat)
{
    if (args.coefficients == 0u)
        return true;
    vec3 v = abs(given_coefficient(splat, 0u));
    return v.x <= CONSTANT_FLOOR && v.y <= CONSTANT_FLOOR && v.z <= CONSTANT_FLOOR;
}

vec3 constant_term(uint splat)
{
    if (!has_base_color(splat))
        return given_coefficient(splat, 0u);
    return (clamp(base_color(splat), vec3(0.0), vec3(1.0)) - 0.5) / C0;
}
