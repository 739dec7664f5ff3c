/* Steps that run on the host. */
#ifndef RLXVK_HOST_STEP_H
#define RLXVK_HOST_STEP_H

#include "exec/executable.h"

rlxvk_status host_steps_prepare(rlxvk_executable *e);
rlxvk_status host_step_run(rlxvk_executable *e, const host_step *h);

#endif
