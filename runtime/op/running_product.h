/* A product of factors in their order, and how far an f32 result may be from it. A kernel may
 * multiply neighbouring factors first. If such a partial product is below f32's normal numbers, its
 * loss of precision is passed on to the whole. */
#ifndef RLXVK_RUNNING_PRODUCT_H
#define RLXVK_RUNNING_PRODUCT_H

#include <stdint.h>

typedef struct running_product {
    double value;
    double low, high; /* the smallest and largest products of the last factors */
    double highest;   /* the largest product of neighbours anywhere */
    uint32_t lost;    /* how many products of disjoint neighbours are below the normal numbers */
} running_product;

running_product running_product_of(double first);
void running_product_take(running_product *p, double factor);
/* The accepted error. `relative` is the rounding error of normal numbers, as a fraction of |value|.
 * Each lost product may count as 0 or as twice itself. INFINITY if a product of neighbours exceeds
 * f32 although the value does not. */
double running_product_bound(const running_product *p, double relative);

#endif
