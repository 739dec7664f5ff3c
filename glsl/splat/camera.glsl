/* The camera in meta[]. The includer declares meta[]. */
#define VECTOR_FLOOR 1e-8
#define DEPTH_FLOOR  1e-4

struct camera {
    vec3 position, right, up, forward;
    float focal, near, far;
};

float meta_at(uint i)
{
    return meta[args.meta_offset + i];
}

vec3 meta_vector(uint i)
{
    return vec3(meta_at(i), meta_at(i + 1u), meta_at(i + 2u));
}

float length_of(vec3 v)
{
    return square_root(dot(v, v));
}

vec3 direction_of(vec3 v)
{
    float l = length_of(v);
    return l > VECTOR_FLOOR ? v / l : vec3(0.0, 0.0, 1.0);
}

camera read_camera()
{
    camera c;
    c.position = meta_vector(0u);
    c.forward = direction_of(meta_vector(3u) - c.position);
    c.right = direction_of(cross(direction_of(meta_vector(6u)), c.forward));
    c.up = direction_of(cross(c.forward, c.right));
    c.focal = 0.5 * float(args.height) / tangent(meta_at(9u) * 8.72664626e-3);
    c.near = max(meta_at(10u), DEPTH_FLOOR);
    c.far = meta_at(11u);
    return c;
}
