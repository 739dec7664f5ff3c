/*
 * Clones an executable: makes a second one of the same program. Its memory is copied block by block
 * on the device, and handles and feeds are set like those of the first one. Nothing is lowered,
 * planned or compiled.
 */
#include "exec/active_extent.h"
#include "exec/bounded.h"
#include "exec/cached_bindings.h"
#include "exec/copy.h"
#include "exec/create.h"
#include "exec/feed.h"
#include "exec/feed_copy.h"
#include "exec/prepared.h"
#include "exec/ticket.h"
#include "exec/transfer.h"

/* An output that a feed overwrites has a copy with the result of the last run. The clone needs that
 * copy, too, because it may be read or fed by rows before the next run. */
static rlxvk_status copy_kept_output(rlxvk_executable *to, const rlxvk_executable *from, size_t i)
{
    location source = executable_output_location(from, &from->outputs[i]), target;
    rlxvk_status status;
    if (!from->outputs[i].copy)
        return RLXVK_OK;
    TRY(feed_keep_output(to, &to->outputs[i]));
    target = executable_output_location(to, &to->outputs[i]);
    TRY(transfer_copy(to, &target, &source));
error:
    return status;
}

static rlxvk_status copy_feeds(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->program->input_count; i++) {
        to->inputs[i].feed = from->inputs[i].feed;
        to->inputs[i].feed_prefix = from->inputs[i].feed_prefix;
        to->inputs[i].row_feed = from->inputs[i].row_feed;
    }
    for (size_t i = 0; i < from->program->result_count; i++)
        TRY(copy_kept_output(to, from, i));
    to->row_pipeline = from->row_pipeline;
    TRY(feed_record(to));
error:
    return status;
}

static rlxvk_status clone_current(rlxvk_executable *from, rlxvk_executable **out)
{
    rlxvk_status status;
    TRY(ticket_flush(from));
    TRY(create_executable(from->program, NULL, from, out));
    TRY(copy_state(*out, from));
    TRY(active_copy(*out, from));
    TRY(bounded_copy(*out, from));
    TRY(copy_feeds(*out, from));
    prepared_copy(*out, from);
error:
    return status;
}

/* Clones only the current member. Others are compiled again if their sizes come up. */
static rlxvk_status clone_with_symbols(rlxvk_executable *from, rlxvk_executable **out)
{
    cached_bindings *f = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(cached_copy(from->bindings, &f));
    if (!from->program) {
        TRY(cached_open(from->context, f, out));
        (*out)->rng = from->rng;
        return RLXVK_OK;
    }
    status = clone_current(from, &e);
    if (status == RLXVK_OK)
        status = cached_adopt(f, &from->bindings->members.items[from->bindings->current]);
    if (status != RLXVK_OK) {
        rlxvk_executable_destroy(e);
        cached_destroy(f);
        return status;
    }
    e->bindings = f;
    *out = e;
error:
    return status;
}

rlxvk_status rlxvk_clone(rlxvk_executable *executable, rlxvk_executable **out_executable)
{
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(status_require(out_executable, "clone", "out_executable"));
    *out_executable = NULL;
    TRY(status_require(executable, "clone", "executable"));
    TRY(executable->bindings ? clone_with_symbols(executable, &e) : clone_current(executable, &e));
    *out_executable = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}
