/*
 * Decides when the prepared steps must run. The record of a param's content has a version, which is
 * common to all who share its memory. Every set of the param, and every run that writes it in
 * place, increases the version. Results of prepared steps are not shared. So each executable
 * remembers the versions from which its results were made.
 */
#include "exec/prepared.h"

bool prepared_due(const rlxvk_executable *e)
{
    const program *p = e->program;
    bool due = p->schedule.prepared && !e->is_prepared;
    for (size_t i = 0; i < p->param_count && e->is_prepared && !due; i++)
        due = p->params[i].prepared && e->params[i].content->version != e->prepared[i];
    return due;
}

static void remember(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->param_count; i++)
        e->prepared[i] = e->params[i].content->version;
    e->is_prepared = true;
}

void prepared_note(rlxvk_executable *e, bool prepares)
{
    if (prepares)
        remember(e);
    e->preparations += prepares;
    for (size_t i = 0; i < e->program->param_count; i++)
        e->params[i].content->version += e->program->params[i].in_place;
}

void prepared_copy(rlxvk_executable *to, const rlxvk_executable *from)
{
    if (from->is_prepared && !prepared_due(from))
        remember(to);
}
