/*
 * What C11 lacks and GCC, clang and clang-cl have: arithmetic that tells whether it overflowed,
 * bits, and attributes. No other file of the library uses a compiler's extensions for these.
 */
#ifndef RLXVK_COMPILER_H
#define RLXVK_COMPILER_H

#include <stdio.h> /* MinGW says there which formats its functions know */

/* Whether the result does not fit in *out, whatever the types are. */
#define add_overflows(a, b, out)      __builtin_add_overflow(a, b, out)
#define subtract_overflows(a, b, out) __builtin_sub_overflow(a, b, out)
#define multiply_overflows(a, b, out) __builtin_mul_overflow(a, b, out)

/* Bits that are set in an unsigned number; zeros below the lowest one, if there is one. */
#define count_set_bits(number)    __builtin_popcount(number)
#define count_zeros_below(number) __builtin_ctzll(number)

/* The argument of that number, from 1 on, is a format, and the arguments from `values` on are its
 * values; 0: they are a va_list. */
#ifdef __MINGW_PRINTF_FORMAT
#define FORMATS(format_at, values) __attribute__((format(__MINGW_PRINTF_FORMAT, format_at, values)))
#else
#define FORMATS(format_at, values) __attribute__((format(printf, format_at, values)))
#endif

#endif
