/*
 * Shared by the kernels for cross entropy with labels. A row's label is a class stored as a float.
 * A negative label says that the row is ignored. Any other value is a bad label. If the softmax of
 * a row is NaN, its loss is NaN, too.
 */
#include "lib/index.glsl"

#define LABEL_IGNORED 0xffffffffu
#define LABEL_BAD     0xfffffffeu

uint label_of(float v, uint classes)
{
    if (v < -0.5)
        return LABEL_IGNORED;
    uint label = checked_index(v, classes);
    return label == 0xffffffffu ? LABEL_BAD : label;
}

/* The values that all gradients of a row need. */
struct loss_row {
    float m, share, d; /* maximum, 1 / sum of exponentials, gradient of the loss */
    uint label;
};

/* Gradient of elements r. e is exp(x - m). */
vec4 loss_gradient(loss_row row, uvec4 r, vec4 e)
{
    if (row.label == LABEL_IGNORED)
        return vec4(0.0);
    if (row.label == LABEL_BAD || !is_plain(row.m))
        return vec4(NAN_VALUE);
    return (e * row.share - vec4(equal(r, uvec4(row.label)))) * row.d;
}
