/* Runs in flight and how they end. */
#ifndef RLXVK_TICKET_H
#define RLXVK_TICKET_H

#include "exec/state.h"

/* Output i that was asked for; `own` is room for it. */
static inline const rlxvk_run_output *ticket_output(const ticket_state *t, size_t i,
                                                    rlxvk_run_output *own)
{
    return sized_item(SIZED(rlxvk_run_output), &t->outputs, i, own);
}
bool ticket_in_flight(const rlxvk_executable *e);
/* Waits for a run and delivers what it owes, once; then says how it ended, as often as asked. */
rlxvk_status ticket_complete(rlxvk_executable *e, ticket_state *t);
/* Completes every ticket, so that the host may touch device memory. E_DEVICE_LOST alone: how a run
 * ended is for its own wait to say. */
rlxvk_status ticket_complete_all(rlxvk_executable *e);
/* Submits pending row feeds when there are any; then as ticket_complete_all. */
rlxvk_status ticket_flush(rlxvk_executable *e);
/* Looks for what the run itself reports (singular matrices, bad indices), once. */
void ticket_diagnose(rlxvk_executable *e, ticket_state *t);
/* NULL when max_in_flight runs are in flight. */
ticket_state *ticket_find_free(rlxvk_executable *e);
/* Completes the tickets that read the arena itself, before another run overwrites it. */
rlxvk_status ticket_settle(rlxvk_executable *e);

#endif
