/* The clock with which the tools measure time. */
#ifndef RLXVK_CLOCK_H
#define RLXVK_CLOCK_H

#include "base/system.h"

static inline double clock_seconds(void)
{
    return 1e-9 * (double)system_nanoseconds();
}

#endif
