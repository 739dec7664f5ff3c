/*
 * When the prepared steps are due. Every set of a param, and every run that writes one in place,
 * counts up the version of its content, which all have in common who share the memory. Prepared
 * results are each executable's own: it remembers the versions that they were made of.
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
