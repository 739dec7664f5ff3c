/*
 * Changes the active extent. Scaled dispatches are recorded once, and read their group counts from
 * a small block of memory. A new extent changes only that block and the lengths of prefix feeds.
 * Runs do not look at the extent, except that they write the count of active rows if nodes read it.
 */
#include "exec/active_extent.h"
#include "exec/bounded.h"
#include "exec/feed.h"
#include "exec/ticket.h"
#include "exec/transfer.h"
#include "exec/upload.h"
#include "op/array/keep_first.h"

#include <rlxvk_symbols.h>

#include <string.h>

/* ---- Group counts ---- */

/* The executable must be idle. */
static rlxvk_status write_counts(rlxvk_executable *e)
{
    const program *p = e->program;
    size_t count = p->schedule.dispatches.count;
    location block = {e->group_counts, 0, 0, state_group_counts(count)};
    uint64_t upper = e->extent_upper ? (uint64_t)e->extent_upper : 1; /* 0: all rows are active */
    uint64_t actual = e->extent_upper ? (uint64_t)e->extent_actual : 1;
    uint32_t(*counts)[3] = memory_zeroed(count + 1, sizeof *counts);
    rlxvk_status status;
    TRY(counts ? RLXVK_OK : status_fail_memory("group counts"));
    for (size_t i = 0; i < count; i++) {
        const dispatch *d = &p->schedule.dispatches.items[i];
        if (extent_scales(&p->extent, i))
            extent_launch(d, &p->extent.groups[i], &e->device->setup.profile, actual, upper,
                          counts[i]);
    }
    TRY(transfer_write(e, &block, counts, block.bytes));
error:
    memory_free(counts);
    return status;
}

rlxvk_status active_prepare(rlxvk_executable *e)
{
    uint64_t bytes = state_group_counts(e->program->schedule.dispatches.count);
    rlxvk_status status = RLXVK_OK;
    if (e->program->extent.scaled_count == 0)
        return RLXVK_OK;
    TRY(pool_create(e->device, MEMORY_ARENA, &bytes, 1, 0, &e->group_counts));
    TRY(write_counts(e));
error:
    return status;
}

rlxvk_status active_copy(rlxvk_executable *e, const rlxvk_executable *from)
{
    e->extent_actual = from->extent_actual;
    e->extent_upper = from->extent_upper;
    return e->group_counts && e->extent_upper ? write_counts(e) : RLXVK_OK;
}

/* ---- The count of active rows, for nodes that end at them ---- */

void active_find_count(rlxvk_executable *e)
{
    e->count_input = executable_own_input(e, EXTENT_COUNT_NAME);
}

rlxvk_status active_upload(rlxvk_executable *e, uint32_t ticket)
{
    uint64_t unit = e->program->extent.unit, rows = unit;
    float count;
    rlxvk_run_input item = {EXTENT_COUNT_NAME, &count, 1, RLXVK_F32, true};
    if (!e->count_input)
        return RLXVK_OK;
    if (e->extent_upper)
        rows = unit / (uint64_t)e->extent_upper * (uint64_t)e->extent_actual;
    count = (float)rows; /* exact, because rows are at most SHORTEN_MOST_ROWS */
    return upload_input(e, e->count_input, ticket, &item);
}

/* ---- Changing it ---- */

static bool has_prefix_feeds(const rlxvk_executable *e)
{
    bool any = false;
    for (size_t i = 0; i < e->program->input_count && !any; i++)
        any = e->inputs[i].feed >= 0 && e->inputs[i].feed_prefix;
    return any;
}

static rlxvk_status check(const rlxvk_executable *e, int64_t actual, int64_t upper)
{
    uint64_t unit = e->program->extent.unit;
    rlxvk_status status = RLXVK_OK;
    if (upper <= 0 || actual < 0 || actual > upper)
        return status_fail(RLXVK_E_EXTENT,
                           "set_active_extent: %lld of %lld rows; upper must be above 0 and actual "
                           "from 0 to it",
                           (long long)actual, (long long)upper);
    if (unit && unit % (uint64_t)upper)
        return status_fail(RLXVK_E_EXTENT,
                           "set_active_extent: a bucket of %lld rows; the inputs have %llu, or a "
                           "multiple of it: upper must divide that",
                           (long long)upper, (unsigned long long)unit);
    for (size_t i = 0; i < e->program->input_count; i++)
        TRY(feed_check_rows(e, &e->inputs[i], upper));
error:
    return status;
}

/* Feeds come last, because the old feed commands stay if the new ones cannot be made. */
static rlxvk_status apply(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(ticket_complete_all(e));
    if (e->group_counts)
        TRY(write_counts(e));
    bounded_adapt(e);
    if (has_prefix_feeds(e))
        TRY(feed_record(e));
error:
    return status;
}

/* If the change fails, the old extent stays. */
static rlxvk_status change(rlxvk_executable *e, int64_t actual, int64_t upper)
{
    int64_t actual_before = e->extent_actual, upper_before = e->extent_upper;
    status_sentence sentence;
    if (actual == actual_before && upper == upper_before)
        return RLXVK_OK;
    e->extent_actual = actual;
    e->extent_upper = upper;
    rlxvk_status status = apply(e);
    if (status != RLXVK_OK) {
        status_save(&sentence);
        e->extent_actual = actual_before;
        e->extent_upper = upper_before;
        if (e->group_counts)
            (void)write_counts(e);
        status_restore(&sentence);
    }
    return status;
}

/* ---- The public calls ---- */

rlxvk_status rlxvk_set_active_extent(rlxvk_executable *executable, int64_t actual, int64_t upper)
{
    rlxvk_status status;
    TRY(executable_require(executable, "set_active_extent"));
    TRY(check(executable, actual, upper));
    TRY(change(executable, actual, upper));
error:
    return status;
}

rlxvk_status rlxvk_clear_active_extent(rlxvk_executable *executable)
{
    rlxvk_status status;
    TRY(executable_require(executable, "clear_active_extent"));
    TRY(change(executable, 0, 0));
error:
    return status;
}

bool rlxvk_extent_supported(const rlxvk_executable *executable, rlxvk_extent_report *out_report)
{
    rlxvk_extent_report report = {.reason = rlxvk_last_error()};
    if (executable_require(executable, "extent_supported") == RLXVK_OK) {
        const extent *x = &executable->program->extent;
        report = (rlxvk_extent_report){.supported = x->spans != NULL,
                                       .reason = x->why,
                                       .actual = executable->extent_actual,
                                       .upper = executable->extent_upper,
                                       .scaled_dispatches = x->scaled_count};
    }
    if (out_report)
        sized_write(SIZED(rlxvk_extent_report), &report, out_report);
    return report.supported;
}
