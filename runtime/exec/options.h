/* The options of a compile over the switches of the context. */
#ifndef RLXVK_EXEC_OPTIONS_H
#define RLXVK_EXEC_OPTIONS_H

#include "exec/state.h"

void options_apply(rlxvk_executable *e);
/* OP_COUNT flags: the rows that are to run on the host. */
rlxvk_status options_force_rows(const rlxvk_executable *e, bool on_host[OP_COUNT]);
/* The option strings that a clone needs outlive the caller's. */
rlxvk_status options_keep(rlxvk_executable *e);
rlxvk_status options_read_modes(rlxvk_executable *e, schedule_options *how);
rlxvk_status options_check(const rlxvk_context *context, const rlxvk_compile_options *o);

#endif
