/*
 * Numbers that several threads change at once: those of C11. This is the only file that includes
 * <stdatomic.h>, and no file uses a compiler's own calls for it.
 */
#ifndef RLXVK_ATOMIC_H
#define RLXVK_ATOMIC_H

#include <stdatomic.h>

/* Numbers that nothing else depends on: counts, and flags that are asked again. */
#define atomic_add_alone(number, amount)                                                           \
    atomic_fetch_add_explicit(number, amount, memory_order_relaxed)
#define atomic_subtract_alone(number, amount)                                                      \
    atomic_fetch_sub_explicit(number, amount, memory_order_relaxed)
#define atomic_read_alone(number)         atomic_load_explicit(number, memory_order_relaxed)
#define atomic_write_alone(number, value) atomic_store_explicit(number, value, memory_order_relaxed)

#endif
