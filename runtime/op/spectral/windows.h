/* A function that windows and resample's filter are made of. */
#ifndef RLXVK_WINDOWS_H
#define RLXVK_WINDOWS_H

/* The Bessel function I0 by its series, in which all terms are positive (M. Abramowitz and I.
 * Stegun, 9.6.12). |x| <= 700. */
double windows_bessel(double x);

#endif
