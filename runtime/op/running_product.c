#include "op/running_product.h"

#include <float.h>
#include <math.h>

running_product running_product_of(double first)
{
    running_product p = {.value = 1, .low = 1, .high = 1};
    running_product_take(&p, first);
    return p;
}

/* A product with 0 is exact. Infinities and NaN need no bound, because the value shows them. */
void running_product_take(running_product *p, double factor)
{
    double size = fabs(factor);
    p->value *= factor;
    if (size == 0 || !isfinite(size)) {
        p->low = p->high = 1;
        return;
    }
    p->low = size * fmin(p->low, 1);
    p->high = size * fmax(p->high, 1);
    p->highest = fmax(p->highest, p->high);
    if (p->low < FLT_MIN) {
        p->lost++;
        p->low = 1;
    }
}

double running_product_bound(const running_product *p, double relative)
{
    double size = fabs(p->value);
    if (isnan(p->value) || (size > FLT_MAX && !p->lost))
        return relative * size;
    if (p->highest > FLT_MAX)
        return INFINITY;
    if (!p->lost)
        return relative * size;
    return (relative + exp2(fmin(p->lost, 64)) - 1) * size + 0x1p-149;
}
