/*
 * Functions of <math.h> that some C libraries get wrong, and that host references depend on.
 * MinGW's sine and cosine lose digits near multiples of pi and return wrong values from 2^63 on.
 * Its round() of the number just below 0.5 is 1.
 */
#ifndef RLXVK_NUMERIC_H
#define RLXVK_NUMERIC_H

#include <math.h>

/* Within 2 units of the last place for every finite x; NaN if x is not finite. */
double numeric_own_sin(double x);
double numeric_own_cos(double x);
/* Those of glibc, which are eight times as fast, and within 8 units at the hardest angles. */
#ifdef __GLIBC__
static inline double numeric_sin(double x)
{
    return sin(x);
}
static inline double numeric_cos(double x)
{
    return cos(x);
}
#else
static inline double numeric_sin(double x)
{
    return numeric_own_sin(x);
}
static inline double numeric_cos(double x)
{
    return numeric_own_cos(x);
}
#endif
/* e^(x + iy) into out, real part first. If x or y is not finite, it is the result of C99 Annex G;
 * signs that Annex G leaves open are positive. */
void numeric_complex_exp(double x, double y, double out[2]);

/* The nearest integer; halves away from zero. */
double numeric_round(double x);
float numeric_roundf(float x);

#endif
