/* Birth of an executable whose plan is made. */
#ifndef RLXVK_EXECUTABLE_H
#define RLXVK_EXECUTABLE_H

#include "exec/state.h"

rlxvk_status executable_prepare(rlxvk_executable *e);

#endif
