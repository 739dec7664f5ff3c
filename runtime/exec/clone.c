/* A second executable with the content of the first. */
#include "exec/compile.h"
#include "exec/copy.h"
#include "exec/feed.h"
#include "exec/feed_copy.h"
#include "exec/transfer.h"

static rlxvk_status copy_feeds(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->input_count; i++) {
        to->inputs[i].feed = from->inputs[i].feed;
        to->inputs[i].row_feed = from->inputs[i].row_feed;
    }
    for (size_t i = 0; i < from->output_count; i++)
        if (from->outputs[i].copy)
            TRY(feed_keep_output(to, &to->outputs[i]));
    TRY(feed_record(to));
error:
    return status;
}

/* Outputs of the last run are read, and fed by rows, before the next. */
static rlxvk_status copy_outputs(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->output_count; i++) {
        location source = state_output_location(from, &from->outputs[i]);
        location target = state_output_location(to, &to->outputs[i]);
        TRY(transfer_copy(to, &target, &source));
    }
error:
    return status;
}

rlxvk_status rlxvk_clone(rlxvk_executable *executable, rlxvk_executable **out_executable)
{
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(status_require(executable, "clone", "executable"));
    TRY(status_require(out_executable, "clone", "out_executable"));
    TRY(compile_graph(executable->context, executable->source, &executable->options, &e));
    TRY(copy_content(e, executable));
    TRY(copy_feeds(e, executable));
    TRY(copy_outputs(e, executable));
    *out_executable = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}
