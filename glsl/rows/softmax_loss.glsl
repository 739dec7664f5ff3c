/*
 * Parts of the kernels of cross entropy with labels. A row's label is a class held as a float, or
 * says that the row is ignored, or is none at all. Rows of which softmax is NaN have a loss of NaN.
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

/* What the gradients of a row have in common. */
struct loss_row {
    float m, share, d; /* maximum, 1 / sum of exponentials, gradient of the loss */
    uint label;
};

/* Of elements r, whose exp(x - m) is e. */
vec4 loss_gradient(loss_row row, uvec4 r, vec4 e)
{
    if (row.label == LABEL_IGNORED)
        return vec4(0.0);
    if (row.label == LABEL_BAD || !is_plain(row.m))
        return vec4(NAN_VALUE);
    return (e * row.share - vec4(equal(r, uvec4(row.label)))) * row.d;
}
