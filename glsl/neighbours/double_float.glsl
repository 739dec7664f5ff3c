/* Sums and products as pairs of floats. The second float is the rounding error of the first. */

vec2 pair_of_ordered(float a, float b)
{
    precise float s = a + b;
    precise float e = b - (s - a);
    return vec2(s, e);
}

vec2 pair_sum(float a, float b)
{
    precise float s = a + b;
    precise float part = s - a;
    precise float e = (a - (s - part)) + (b - part);
    return vec2(s, e);
}

vec2 pair_split(float a)
{
    precise float wide = 4097.0 * a;
    precise float high = wide - (wide - a);
    precise float low = a - high;
    return vec2(high, low);
}

vec2 pair_product(float a, float b)
{
    precise float p = a * b;
    vec2 x = pair_split(a), y = pair_split(b);
    precise float e = ((x.x * y.x - p) + x.x * y.y + x.y * y.x) + x.y * y.y;
    return vec2(p, e);
}

vec2 pair_add(vec2 a, vec2 b)
{
    vec2 s = pair_sum(a.x, b.x);
    precise float e = s.y + (a.y + b.y);
    return pair_of_ordered(s.x, e);
}

vec2 pair_multiply(vec2 a, vec2 b)
{
    vec2 p = pair_product(a.x, b.x);
    precise float e = p.y + (a.x * b.y + a.y * b.x);
    return pair_of_ordered(p.x, e);
}

vec2 pair_divide(vec2 a, vec2 b)
{
    precise float first = a.x / b.x;
    vec2 t = pair_product(first, b.x);
    precise float rest = ((a.x - t.x) - t.y) + (a.y - first * b.y);
    precise float second = rest / b.x;
    return pair_of_ordered(first, second);
}

vec2 pair_root(vec2 a)
{
    precise float root = sqrt(a.x);
    vec2 square = pair_product(root, root);
    precise float rest = ((a.x - square.x) - square.y) + a.y;
    precise float second = rest / (2.0 * root);
    return pair_of_ordered(root, second);
}
