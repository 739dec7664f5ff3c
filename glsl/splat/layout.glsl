/* The starts of the sections of prepare's result, counted from args.prepared_offset. The includer
 * declares `args`. */
uint splats()
{
    return max(args.count, 1u);
}
uint tile_count()
{
    return args.tiles_wide * args.tiles_high;
}
uint valid_at()
{
    return args.prepared_offset + 4u * splats();
}
uint local_at()
{
    return args.prepared_offset + 5u * splats();
}
uint inverse_at()
{
    return args.prepared_offset + 8u * splats();
}
uint rotation_at()
{
    return args.prepared_offset + 11u * splats();
}
uint list_at()
{
    return args.prepared_offset + SPLAT_WORDS * splats();
}
uint ranges_at()
{
    return list_at() + args.list_most;
}
uint rays_at()
{
    return ranges_at() + 2u * tile_count();
}
uint parameters_at()
{
    return rays_at() + 3u * args.width * args.height;
}

bool is_finite(float v)
{
    return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u;
}
bool is_finite(vec3 v)
{
    return is_finite(v.x) && is_finite(v.y) && is_finite(v.z);
}

/* The rotation matrix of a unit quaternion w, x, y, z. */
mat3 rotation_of(vec4 q)
{
    float w = q.x, x = q.y, y = q.z, z = q.w;
    vec3 first = vec3(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y));
    vec3 second = vec3(2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x));
    vec3 third = vec3(2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y));
    return mat3(first, second, third); /* columns */
}
