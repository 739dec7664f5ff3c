/* Runs in flight and how they end. */
#ifndef RLXVK_TICKET_H
#define RLXVK_TICKET_H

#include "exec/executable.h"

/* The output that was asked for as item i. `own` is memory for a copy of it. */
static inline const rlxvk_run_output *ticket_output(const ticket_state *t, size_t i,
                                                    rlxvk_run_output *own)
{
    return sized_item(SIZED(rlxvk_run_output), &t->outputs, i, own);
}
bool ticket_in_flight(const rlxvk_executable *e);
/* Waits for a run and delivers its outputs once. Returns how the run ended, as often as it is
 * called. */
rlxvk_status ticket_complete(rlxvk_executable *e, ticket_state *t);
/* Completes every ticket, so that the host may touch device memory. It fails only with
 * E_DEVICE_LOST or if waiting fails, because each run's own error is for its own wait. */
rlxvk_status ticket_complete_all(rlxvk_executable *e);
/* Submits pending row feeds, if any, and then completes every ticket. */
rlxvk_status ticket_flush(rlxvk_executable *e);
/* Checks once what the run itself reports, for example singular matrices or bad indices. */
void ticket_diagnose(rlxvk_executable *e, ticket_state *t);
/* NULL if max_in_flight runs are in flight. */
ticket_state *ticket_find_free(rlxvk_executable *e);
/* Completes the tickets that read the arena itself, before another run overwrites it. */
rlxvk_status ticket_settle(rlxvk_executable *e);

#endif
