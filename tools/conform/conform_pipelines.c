/*
 * Selects the cases that --pipelines=N:P runs. Software drivers spend nearly all of a run on
 * compiling pipelines, one for each set of a kernel's constants. Most cases share all their
 * pipelines with others.
 *
 * The pipelines of each kernel and op have numbers, in the order in which the cases need them.
 * Those of number 0 and every Nth from number P are made, with all others of cases that need one of
 * them. A case runs if all its pipelines are made. So each case runs for at least one P. Lowering
 * decides this, so nothing is compiled. The selection depends only on the cases and the device's
 * profile.
 */
#include "conform/conform.h"

#include <string.h>

/* Finds the pipeline, or adds it with the next number of its kernel. NULL if out of memory. */
static conform_pipeline *find(conform_pipelines *p, const pipeline_request *wanted)
{
    conform_pipeline new = {.request = *wanted, .number = p->wanted[wanted->kernel]};
    for (size_t i = 0; i < p->known.count; i++)
        if (memcmp(&p->known.items[i].request, wanted, sizeof *wanted) == 0)
            return &p->known.items[i];
    if (!VECTOR_PUSH(&p->known, new))
        return NULL;
    p->wanted[wanted->kernel]++;
    return &p->known.items[p->known.count - 1];
}

/* The request is zeroed first, so that requests can be compared as bytes. */
static void request_of(const dispatch *d, pipeline_request *out)
{
    memset(out, 0, sizeof *out);
    out->kernel = d->kernel;
    memcpy(out->constants, d->constants, sizeof d->constants);
}

static bool take_schedule(conform_pipelines *p, const schedule *s, uint64_t every, uint64_t phase)
{
    pipeline_request wanted;
    conform_pipeline *found;
    bool has_all = true, chosen = false;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        request_of(&s->dispatches.items[i], &wanted);
        if (!(found = find(p, &wanted)))
            return true;
        has_all = has_all && found->made;
        chosen = chosen || (found->number ? found->number % every == phase : !found->made);
    }
    for (size_t i = 0; i < s->dispatches.count && chosen; i++) {
        request_of(&s->dispatches.items[i], &wanted);
        if ((found = find(p, &wanted)))
            found->made = true;
    }
    return has_all || chosen;
}

typedef struct taking {
    conform_pipelines *pipelines;
    uint64_t every, phase;
    bool take;
} taking;

static void take(void *user, const schedule *s)
{
    taking *t = user;
    t->take = take_schedule(t->pipelines, s, t->every, t->phase);
}

bool conform_take(conform_pipelines *p, const conform_setup *setup, const conform_case *c,
                  uint64_t every, uint64_t phase)
{
    taking t = {p, every, phase, true};
    return conform_lower(setup, c, NULL, take, &t) != RLXVK_OK || t.take;
}
