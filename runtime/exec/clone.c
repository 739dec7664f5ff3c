/*
 * A second executable of one program: its memory is copied block by block on the device, handles
 * and feeds are set as the first one's are. Nothing is lowered, planned or looked up.
 */
#include "exec/copy.h"
#include "exec/executable.h"
#include "exec/feed.h"
#include "exec/feed_copy.h"
#include "exec/ticket.h"
#include "exec/transfer.h"

/* Outputs that feeds overwrite have a copy, with what the last run left: it is read, and fed by
 * rows, before the next. */
static rlxvk_status copy_kept_output(rlxvk_executable *to, const rlxvk_executable *from, size_t i)
{
    location source = state_output_location(from, &from->outputs[i]), target;
    rlxvk_status status;
    if (!from->outputs[i].copy)
        return RLXVK_OK;
    TRY(feed_keep_output(to, &to->outputs[i]));
    target = state_output_location(to, &to->outputs[i]);
    TRY(transfer_copy(to, &target, &source));
error:
    return status;
}

static rlxvk_status copy_feeds(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->program->input_count; i++) {
        to->inputs[i].feed = from->inputs[i].feed;
        to->inputs[i].row_feed = from->inputs[i].row_feed;
    }
    for (size_t i = 0; i < from->program->result_count; i++)
        TRY(copy_kept_output(to, from, i));
    to->row_pipeline = from->row_pipeline;
    TRY(feed_record(to));
error:
    return status;
}

rlxvk_status rlxvk_clone(rlxvk_executable *executable, rlxvk_executable **out_executable)
{
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(status_require(executable, "clone", "executable"));
    TRY(status_require(out_executable, "clone", "out_executable"));
    TRY(ticket_flush(executable));
    TRY(executable_create(executable->program, NULL, executable, &e));
    TRY(copy_state(e, executable));
    TRY(copy_feeds(e, executable));
    *out_executable = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}
