/* A product of factors in their order, and how far f32 may be from it. Neighbouring factors may be
 * multiplied first: what such a product loses below f32's normal numbers, the whole loses, too. */
#ifndef RLXVK_RUNNING_PRODUCT_H
#define RLXVK_RUNNING_PRODUCT_H

#include <stdint.h>

typedef struct running_product {
    double value;
    double low, high; /* the smallest and largest products of the last factors */
    double highest;   /* of neighbours anywhere */
    uint32_t lost;    /* neighbours, apart from each other, whose product is no normal number */
} running_product;

running_product running_product_of(double first);
void running_product_take(running_product *p, double factor);
/* `relative`: what roundings of normal numbers make, of |value|. Each product that is lost may
 * count as 0 or as twice itself. INFINITY where neighbours' product is beyond f32, but the value is
 * not.
 */
double running_product_bound(const running_product *p, double relative);

#endif
