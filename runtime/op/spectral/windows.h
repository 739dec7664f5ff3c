/* What windows are made of. */
#ifndef RLXVK_WINDOWS_H
#define RLXVK_WINDOWS_H

/* I0, by its series: all terms are positive (M. Abramowitz and I. Stegun, 9.6.12). |x| <= 700. */
double windows_bessel(double x);

#endif
