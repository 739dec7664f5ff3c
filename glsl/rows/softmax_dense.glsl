/*
 * Shared by the kernels for cross entropy with dense targets. A row's statistics are (m, s, a, t):
 * its maximum, the sum of exp(x - m), the sum of target * (m - x), and the sum of targets. If m of
 * a row is NaN or infinite, the result is NaN and the other statistics are meaningless. Exception:
 * if a part of a row has only -Inf, its targets still count. Then a is taken from 0 instead of m;
 * it is infinite anyway.
 */

/* The sum of target * (m - x) of a part, moved from its own maximum to m. */
float distance_from(vec4 part, float m)
{
    bool moves = is_plain(part.x) && is_plain(m) && part.x != m;
    return moves ? part.z + part.w * (m - part.x) : part.z;
}

vec4 join_dense(vec4 a, vec4 b)
{
    float m = row_larger(a.x, b.x);
    float s = is_plain(m) ? a.y * decay(a.x - m) + b.y * decay(b.x - m) : 0.0;
    return vec4(m, s, distance_from(a, m) + distance_from(b, m), a.w + b.w);
}

/* The sum of target * (m - x) over the elements that are live. An element equal to m contributes 0,
 * even if its target is infinite or NaN. */
float weighted_distance(vec4 x, vec4 target, bvec4 live, float m)
{
    vec4 distances = mix(vec4(0.0), target * (m - x), notEqual(x, vec4(m)));
    return sum_of(mix(vec4(0.0), distances, live));
}

float plain_or_0(float m)
{
    return is_plain(m) ? m : 0.0;
}

float dense_loss(vec4 all)
{
    return is_plain(all.x) ? all.z + all.w * logarithm(all.y) : NAN_VALUE;
}

/*
 * The values that all gradients of a row need: m, sum of targets / s, ln s, gradient of the loss.
 */
vec4 dense_row(vec4 all, float d)
{
    return vec4(all.x, all.w / all.y, logarithm(all.y), d);
}

/* Gradient of four logits. e is exp(x - m), target their targets. */
vec4 logits_gradient(vec4 row, vec4 e, vec4 target)
{
    return is_plain(row.x) ? (e * row.y - target) * row.w : vec4(NAN_VALUE);
}
vec4 targets_gradient(vec4 row, vec4 x)
{
    return is_plain(row.x) ? ((row.x - x) + row.z) * row.w : vec4(NAN_VALUE);
}
