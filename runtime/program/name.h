/* Says why there is no leaf with a name. */
#ifndef RLXVK_PROGRAM_NAME_H
#define RLXVK_PROGRAM_NAME_H

#include "program/program.h"

/* Says why there is no leaf of this op ("input" or "param") with this name:
 *   E_UNKNOWN_NAME   the sentence lists the names that there are; or, if the name is a leaf of the
 *                    other op, how to use it
 *   E_NULL           the name is NULL */
rlxvk_status name_unknown(const rlxvk_graph *source, const char *call, const char *row,
                          const char *name);

#endif
